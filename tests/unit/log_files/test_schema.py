"""`tidegate decode` where the log says little: names and types from a schema script, and what is said without one."""

from __future__ import annotations

from pathlib import Path

from tests.support.log_decode import decoded
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType

# tinyint, varchar(40 bytes), enum: without any optional metadata, as MariaDB's default is.
TYPES, METADATA = b"\x01\x0f\xfe", b"\x28\x00\xf7\x01"
SHAPE = "(small tinyint unsigned, name varchar(10) character set utf8mb4, kind enum('red','blue'))"


def transaction(number: int, *images: bytes, types: bytes = TYPES, metadata: bytes = METADATA) -> list[bytes]:
    mapped = e.table_map(7, "things", types, metadata)
    rows = e.rows(EventType.WRITE_ROWS_V1, 7, len(types), b"".join(images))
    return [e.mariadb_gtid(number), mapped, rows, e.xid(number)]


def ddl(number: int, sql: str) -> list[bytes]:
    return [e.mariadb_gtid(number, standalone=True), e.query(sql)]


def image(small: int, name: bytes, kind: int) -> bytes:
    return e.image(bytes([small]), bytes([len(name)]) + name, bytes([kind]))


def log(path: Path, *events: bytes) -> Path:
    path.write_bytes(b"\xfebin" + e.format_description() + b"".join(events))
    return path


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "schema.sql"
    path.write_text(text)
    return path


def test_without_metadata_columns_are_numbered_integers_signed_and_bytes_text_when_they_can_be(tmp_path: Path) -> None:
    path = log(tmp_path / "b.000001", *transaction(1, image(200, "é".encode(), 2), image(1, b"\xff\x00", 1)))
    found = decoded([path])
    assert [row["after"] for row in found.rows] == [
        {"@1": -56, "@2": "é", "@3": 2},
        {"@1": 1, "@2": {"base64": "/wA="}, "@3": 1},
    ]
    assert not found.faults
    assert len(found.notes) == 1
    assert "shop.things" in found.notes[0]
    assert "--schema" in found.notes[0]


def test_a_script_gives_names_signs_charsets_and_members(tmp_path: Path) -> None:
    path = log(tmp_path / "b.000001", *transaction(1, image(200, "é".encode(), 2)))
    for text in (
        f"CREATE TABLE things {SHAPE}; INSERT INTO things VALUES (1, 'x', 'red')",
        f"CREATE DATABASE shop; USE shop; CREATE TABLE things {SHAPE};",
        f"CREATE TABLE shop.things {SHAPE};",
    ):
        found = decoded([path], schema=script(tmp_path, text))
        assert [row["after"] for row in found.rows] == [{"small": 200, "name": "é", "kind": "blue"}]
        assert not found.faults + found.notes


def test_the_logs_own_ddl_is_followed_from_the_script_on(tmp_path: Path) -> None:
    path = log(
        tmp_path / "b.000001",
        *transaction(1, image(1, b"a", 1)),
        *ddl(2, "ALTER TABLE things RENAME COLUMN name TO title"),
        *transaction(3, image(2, b"b", 1)),
        *ddl(4, "ALTER TABLE things DROP COLUMN kind"),
        *transaction(5, e.image(b"\x03", b"\x01c"), types=TYPES[:2], metadata=METADATA[:2]),
    )
    found = decoded([path], schema=script(tmp_path, f"CREATE TABLE things {SHAPE}"))
    assert [row["after"] for row in found.rows] == [
        {"small": 1, "name": "a", "kind": "red"},
        {"small": 2, "title": "b", "kind": "red"},
        {"small": 3, "title": "c"},
    ]
    assert not found.faults


def test_a_script_taken_after_the_log_still_fits_by_an_earlier_version(tmp_path: Path) -> None:
    path = log(tmp_path / "b.000001", *transaction(1, image(1, b"a", 1)))
    text = f"CREATE TABLE things {SHAPE}; ALTER TABLE things ADD later int;"
    found = decoded([path], schema=script(tmp_path, text))
    assert [row["after"] for row in found.rows] == [{"small": 1, "name": "a", "kind": "red"}]
    assert not found.faults


def test_a_script_that_does_not_fit_stops_its_table_with_both_sides_and_no_other(tmp_path: Path) -> None:
    other = [e.mariadb_gtid(2), e.table_map(8, "others", b"\x03", b"")]
    other += [e.rows(EventType.WRITE_ROWS_V1, 8, 1, e.image(e.integer(5))), e.xid(2)]
    path = log(tmp_path / "b.000001", *transaction(1, image(1, b"a", 1)), *other)
    text = "CREATE TABLE things (small int, name varchar(10), kind enum('red')); CREATE TABLE others (n int unsigned)"
    found = decoded([path], schema=script(tmp_path, text))
    assert [row["after"] for row in found.rows] == [{"n": 5}]
    assert len(found.faults) == 1
    assert found.faults[0].startswith("shop.things at b.000001:")
    assert "small is TINY" in found.faults[0]
    assert "int(11)" in found.faults[0]
    assert found.stats[0]["ledger"]["quarantined"] > 0


def test_statements_of_a_script_that_cannot_be_read_are_notes(tmp_path: Path) -> None:
    path = log(tmp_path / "b.000001", *transaction(1, image(1, b"a", 1)))
    text = f"CREATE TABLE things {SHAPE};\nCREATE TABLE odd (x nonsense);\n"
    found = decoded([path], schema=script(tmp_path, text))
    assert len(found.rows) == 1
    assert len(found.notes) == 1
    assert found.notes[0].startswith("schema.sql:2: ")
