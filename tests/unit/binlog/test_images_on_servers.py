"""Row images as servers write them under each setting, held against the server's own SELECT."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.kit.decoding import ALL_TIME, changed_rows, current_binlog, decode_both, segment_of_file
from tests.support.servers import FreshDatabase
from tests.unit.binlog.images import images_of, replica
from tidegate.columnar.json_document import patched_json_text
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import DecodedSegment
from tidegate.tables import OP, OP_DELETE

DEFAULTS = (
    "a INT DEFAULT 7, b VARCHAR(20) NOT NULL DEFAULT 'it''s', d DECIMAL(8,2) DEFAULT 1.50,"
    " e ENUM('p','q') NOT NULL DEFAULT 'q', n INT, day DATE DEFAULT '2024-02-29', z INT NOT NULL DEFAULT -3"
)
NEW_ROW: dict[str, Any] = {"a": 7, "b": "it's", "d": 1.5, "e": "q", "n": None, "z": -3}
MYSQL_JSON = ", j JSON"
LARGE = ", tx TEXT, bl BLOB"


@dataclass(frozen=True)
class Play:
    """A table and what is done to it. key: "" or its clause. settings: SET SESSION's. kinds: of statements, drawn."""

    columns: str
    settings: str
    kinds: str = "IIIUUDK"
    key: str = "PRIMARY KEY"


def value(r: random.Random, name: str) -> str:
    if name not in ("b", "e", "z", "id") and r.random() < 0.2:
        return "NULL"
    text = "".join(r.choice("abé'") for _ in range(r.randrange(12)))
    made = {
        "d": f"{r.randrange(-9999, 9999) / 100}",
        "e": r.choice(["'p'", "'q'"]),
        "day": f"'20{r.randrange(10, 99)}-0{r.randrange(1, 9)}-1{r.randrange(9)}'",
        "j": "'" + r.choice(DOCUMENTS) + "'",
        "k": "'" + r.choice(DOCUMENTS) + "'",
    }
    if name in ("b", "tx", "bl"):
        return "'" + text.replace("'", "''") + "'"
    return made.get(name, str(r.randrange(-100, 100)))


DOCUMENTS = ['{"a": [1, 2, {"b": "x"}], "k": "' + "v" * 60 + '"}', "[1, 2, 3]", "17", '{"é": {}, "zz": null}']
EDITS = [
    "JSON_SET(j, '$.a', 5)", "JSON_SET(j, '$.k', 'n')", "JSON_REMOVE(j, '$.k')", "JSON_ARRAY_APPEND(j, '$', NULL)",
    "JSON_REPLACE(j, '$.a[2].b', 'longer')", "JSON_SET(j, '$.new', CAST('[1,{}]' AS JSON), '$.a[0]', 1.5)",
    "JSON_ARRAY_INSERT(j, '$[1]', 'in')", "JSON_SET(j, '$.\"é\"', 2, '$[9]', 'end')", "JSON_SET(j, '$[last]', 8)",
    "JSON_REMOVE(j, '$.a[1]', '$[0]')", "JSON_INSERT(j, '$.\"q\\\\\" .\"', 1)", "JSON_REMOVE(j, '$.a[last-1]')",
]  # fmt: skip


def statements(r: random.Random, play: Play, count: int) -> list[str]:
    names = [part.split()[0] for part in play.columns.split(", ")]
    made = [f"SET {play.settings}"]
    for number in range(count):
        some = [name for name in names if r.random() < 0.4] or ["z"]
        where = f"WHERE id % 7 = {r.randrange(7)}"
        match r.choice(play.kinds):
            case "I":
                values = ", ".join(value(r, name) for name in some)
                made.append(f"INSERT INTO t (id, {', '.join(some)}) VALUES ({number}, {values})")
            case "U":
                edits = [f"{n} = {r.choice(EDITS) if n == 'j' and r.random() < 0.8 else value(r, n)}" for n in some]
                made.append(f"UPDATE t SET {', '.join(edits)} {where}")
            case "D":
                made.append(f"DELETE FROM t {where} LIMIT 2")
            case "K":
                made.append(f"UPDATE t SET id = id + 1000 {where} LIMIT 2")
    return made


def version_of(server: Server, database: str) -> TableVersion:
    """As capture's baseline has it."""
    with server.connect(database) as connection:
        versions = read_schema(connection, "test", lambda d, _t: d == database, Position.of("binlog.000001", 4))
    return next(version for version in versions if version.table == "t")


def run(server: Server, database: str, create: str, played: Sequence[str]) -> tuple[Path, TableVersion]:
    server.query("FLUSH BINARY LOGS")
    path = current_binlog(server)
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(create)
        for statement in played:
            cursor.execute(statement)
    return path, version_of(server, database)


def decoded(path: Path, version: TableVersion) -> DecodedSegment:
    name = (version.database, version.table)
    return decode_both(segment_of_file(path.read_bytes()), {name: [version]}, {name: ALL_TIME})


def selected(server: Server, database: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
    with server.connect(database).cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(names)} FROM t")
        return list(cursor.fetchall())


def assert_equal_to_select(server: Server, database: str, found: DecodedSegment) -> None:
    """Rows as a multiset: deletes come before the upserts they make room for."""
    assert found.problems == ()
    names = found.changes[0].batch.schema.names[4:]
    keyed: dict[Any, tuple[Any, ...]] = {}
    for row in changed_rows(found):
        values = tuple(row[name] for name in names)
        if row[OP] == OP_DELETE:
            del keyed[row["id"]]
        else:
            keyed[row["id"]] = values
    assert sorted(map(repr, keyed.values())) == sorted(map(repr, selected(server, database, names)))


def check(server: Server, database: str, play: Play, seed: int) -> DecodedSegment:
    """Play, and follow the images as a replica would; the log, netted, is the caller's to judge."""
    path, version = run(
        server,
        database,
        f"CREATE TABLE t (id INT {play.key}, {play.columns})",
        statements(random.Random(seed), play, 60),
    )
    if play.key and "PARTIAL_JSON" not in play.settings:
        new_row: dict[str, Any] = dict.fromkeys(column.name for column in version.columns) | NEW_ROW
        names = [name for name in new_row if name not in ("d", "day")]
        images = [(op, {n: v for n, v in known.items() if n in names}) for op, known in images_of(path, version)]
        rows = replica(images, "id", {name: new_row[name] for name in names})
        ours = [tuple(row[name] for name in names) for row in rows.values()]
        assert sorted(map(repr, ours)) == sorted(map(repr, selected(server, database, names)))
    return decoded(path, version)


def large(server: Server) -> str:
    return DEFAULTS + LARGE + (MYSQL_JSON if server.flavour == "mysql" else "")


IMAGE = "binlog_row_image = "


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("setting", "wide", "kinds"),
    [
        ("FULL", True, "IIIUUDK"),
        ("MINIMAL", False, "IIID"),
        ("MINIMAL", True, "IIID"),
        ("MINIMAL", False, "IIIUDK: stops"),
        ("NOBLOB", False, "IIIUUDK"),
        ("NOBLOB", True, "IIID"),
        ("NOBLOB", True, "IIIUDK: stops"),
    ],
)
def test_images_that_lack_columns_are_what_the_server_has_or_stop_the_table(
    any_server: Server, fresh_database: FreshDatabase, setting: str, wide: bool, kinds: str, seed: int
) -> None:
    database = fresh_database(any_server)
    drawn, _, stops = kinds.partition(":")
    play = Play(large(any_server) if wide else DEFAULTS, IMAGE + setting, drawn)
    found = check(any_server, database, play, seed)
    if stops:
        assert [problem.error for problem in found.problems] == ["UnsupportedValue"]
        assert "an update doesn't tell column" in found.problems[0].message
        assert found.changes == ()
    else:
        assert_equal_to_select(any_server, database, found)


@pytest.mark.parametrize("seed", range(2))
def test_full_nodup_needs_no_more_than_it_logs(mariadb: Server, fresh_database: FreshDatabase, seed: int) -> None:
    database = fresh_database(mariadb)
    found = check(mariadb, database, Play(DEFAULTS + LARGE, IMAGE + "FULL_NODUP"), seed)
    assert_equal_to_select(mariadb, database, found)


def test_a_virtual_column_that_full_nodup_leaves_out_is_not_taken_from_before(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(mariadb)
    played = ["SET binlog_row_image = FULL_NODUP", "INSERT INTO t (id, a) VALUES (1, 1)", "UPDATE t SET a = 5"]
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL)"
    found = decoded(*run(mariadb, database, create, played))
    assert "an update doesn't tell column v" in found.problems[0].message


@pytest.mark.parametrize("setting", ["FULL", "MINIMAL", "NOBLOB"])
def test_tables_without_a_key_have_all_columns_before(
    any_server: Server, fresh_database: FreshDatabase, setting: str
) -> None:
    database = fresh_database(any_server)
    play = Play(large(any_server), IMAGE + setting, "IIIUUDK", key="")
    assert_equal_to_select(any_server, database, check(any_server, database, play, 5))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("setting", ["FULL", "MINIMAL", "NOBLOB"])
def test_partial_json_is_the_whole_document_or_stops_the_table(
    mysql9: Server, fresh_database: FreshDatabase, setting: str, seed: int
) -> None:
    database = fresh_database(mysql9)
    play = Play(
        "z INT, j JSON, t TEXT, k JSON", f"binlog_row_value_options = PARTIAL_JSON, {IMAGE}{setting}", "IIUUUUDK"
    )
    with mock.patch("tidegate.columnar.finish.patched_json_text", wraps=patched_json_text) as patched:
        found = check(mysql9, database, play, seed)
    if setting == "FULL":
        assert_equal_to_select(mysql9, database, found)
        assert any(document[:1] == b"\xff" for (document,), _ in patched.call_args_list)
    else:
        assert [problem.error for problem in found.problems] == ["UnsupportedValue"]


TRIGGERS = [
    "SET binlog_row_image = {}",
    "CREATE TRIGGER i BEFORE INSERT ON t FOR EACH ROW SET NEW.tx = 'by trigger', NEW.n = 5",
    "CREATE TRIGGER u BEFORE UPDATE ON t FOR EACH ROW SET NEW.n = NEW.n + 1",
    "INSERT INTO t (id) VALUES (1)",
    "INSERT INTO t (id, n) VALUES (2, 9)",
    "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE z = 4",
]


@pytest.mark.parametrize("setting", ["FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"])
def test_what_triggers_set_is_in_the_images(any_server: Server, fresh_database: FreshDatabase, setting: str) -> None:
    if setting == "FULL_NODUP" and any_server.flavour == "mysql":
        pytest.skip("MariaDB's alone")
    database = fresh_database(any_server)
    last = len(TRIGGERS) - (setting in ("MINIMAL", "NOBLOB"))
    played = [statement.format(setting) for statement in TRIGGERS[:last]]
    path, version = run(any_server, database, f"CREATE TABLE t (id INT PRIMARY KEY, {DEFAULTS}{LARGE})", played)
    assert_equal_to_select(any_server, database, decoded(path, version))


def test_a_default_that_only_the_server_can_compute_stops_the_table_when_it_is_left_out(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    played = ["SET binlog_row_image = MINIMAL", "INSERT INTO t (id) VALUES (1)"]
    create = "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00')"
    found = decoded(*run(any_server, database, create, played))
    assert "a new row lacks column ts" in found.problems[0].message


def test_what_the_server_computes_is_in_a_minimal_image(any_server: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(any_server)
    played = ["SET binlog_row_image = MINIMAL", "INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (NULL)"]
    create = (
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, s INT AS (a + 1) STORED, u VARCHAR(40) DEFAULT"
        " (UUID()), ts TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6), dt DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6))"
    )
    path, version = run(any_server, database, create, played)
    found = decoded(path, version)
    assert found.problems == ()
    names = ["id", "a", "s", "u", "dt"]
    ours = [tuple(row[name] for name in names) for row in changed_rows(found)]
    assert sorted(ours) == sorted(selected(any_server, database, names))
