"""`tidegate decode`: any binlog file as NDJSON, whole transactions only, every byte accounted for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import tidegate
from tests.support.log_decode import GOLDEN, decoded
from tests.support.seeds import share
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.errors import StreamCorrupt, TidegateError, UnsupportedValue, UsageError
from tidegate.log_files import log_file
from tidegate.log_files.log_file import BinlogFile

DML = next(path for path in GOLDEN if path.parent.name == "mysql9_dml")
XA = next(path for path in GOLDEN if path.parent.name == "mysql9_xa")


def write(path: Path, *events: bytes, magic: bytes = b"\xfebin") -> Path:
    path.write_bytes(magic + b"".join(events))
    return path


def transaction(number: int, *values: int) -> list[bytes]:
    images = b"".join(e.image(e.integer(value)) for value in values)
    mapped = e.table_map(7, "numbers", b"\x03", b"")
    return [e.mariadb_gtid(number), mapped, e.rows(EventType.WRITE_ROWS_V1, 7, 1, images), e.xid(number)]


def test_a_line_has_the_keys_in_their_order_and_the_place_of_its_rows_event() -> None:
    found = decoded([DML])
    assert list(found.rows[0]) == ["op", "database", "table", "commit_ts", "file", "pos", "before", "after"]
    assert found.rows[0] | {"commit_ts": 0} == {
        "op": "insert",
        "database": "t",
        "table": "pk",
        "commit_ts": 0,
        "file": "events.binlog",
        "pos": 1130,
        "before": None,
        "after": {"a": 1, "b": "a", "c": 1},
    }
    assert {row["op"] for row in found.rows} == {"insert", "update", "delete"}
    assert all((row["before"] is None) == (row["op"] == "insert") for row in found.rows)
    assert all((row["after"] is None) == (row["op"] == "delete") for row in found.rows)


@pytest.mark.parametrize("path", share(GOLDEN), ids=lambda path: path.parent.name)
def test_pieces_of_any_size_give_the_same_lines_and_books(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = decoded([path])
    for size in (1, 600):
        monkeypatch.setattr(log_file, "SEGMENT_BYTES_MAX", size)
        cut = decoded([path])
        if "rolled back" in whole.stats[0]["ledger"]["ignored"] and cut.faults:
            # what a piece takes back may be in an earlier one, whose lines are out: then it says so
            assert all("rolled back here" in str(fault) for fault in cut.faults)
            continue
        assert cut.text == whole.text
        assert cut.faults == whole.faults
        assert cut.stats == whole.stats


def test_stats_are_the_same_with_and_without_lines_and_take_in_every_byte() -> None:
    for path in share(GOLDEN):
        with_lines, without = decoded([path]), decoded([path], lines=False)
        assert with_lines.stats == without.stats
        assert not without.rows
        ledger = without.stats[0]["ledger"]
        assert ledger["decoded"] + sum(ledger["ignored"].values()) + ledger["quarantined"] == path.stat().st_size


def test_a_file_cut_at_any_byte_gives_the_whole_transactions_before_and_says_where_the_tail_starts(
    tmp_path: Path,
) -> None:
    events = [e.format_description(), *transaction(1, 1, 2), *transaction(2, 3), *transaction(3, 4, 5)]
    content = b"\xfebin" + b"".join(events)
    ends = [4 + sum(map(len, events[: 1 + 4 * n])) for n in range(4)]
    rows_before = dict(zip(ends, (0, 2, 3, 5), strict=True))
    for size in sorted({0, 4, *ends, *share(range(len(content) + 1))}):
        path = tmp_path / "cut.000001"
        path.write_bytes(content[:size])
        found = decoded([path])
        end = max((end for end in ends if end <= size), default=0)
        assert [row["after"]["@1"] for row in found.rows] == list(range(1, 1 + rows_before.get(end, 0)))
        if size in (0, 4, *ends):
            assert not found.faults
        else:
            assert len(found.faults) == 1
            start = end or (4 if size > 4 else 0)
            assert f"cut.000001:{start}: " in found.faults[0]


def test_any_flipped_byte_is_found_and_named(tmp_path: Path) -> None:
    content = b"\xfebin" + b"".join([e.format_description(), *transaction(1, 1), *transaction(2, 2)])
    path = tmp_path / "a.000001"
    clean = decoded([write_bytes(path, content)])
    assert not clean.faults
    for at in share(range(4, len(content))):
        flipped = bytearray(content)
        flipped[at] ^= 0x41
        found = decoded([write_bytes(path, bytes(flipped))])
        assert len(found.faults) == 1
        assert "a.000001:" in found.faults[0]
        assert clean.text.startswith(found.text)
        assert len(found.rows) < len(clean.rows)


def write_bytes(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_rows_of_a_prepared_branch_come_with_its_commit_and_never_after_a_rollback() -> None:
    found = decoded([XA])
    values = [row["after"]["v"] for row in found.rows]
    assert values == ["between", "binary xid", "xa commit", "one phase"]
    assert [row["commit_ts"] for row in found.rows] == sorted({row["commit_ts"] for row in found.rows})
    assert found.unanswered == ["X'6f727068616e',X'',1"]
    assert found.stats[0]["prepared_unanswered"] == 1
    assert found.stats[0]["ledger"]["ignored"]["xa rolled back"] > 0


def test_the_last_commit_ts_of_a_file_is_the_floor_of_the_next(tmp_path: Path) -> None:
    one = write(tmp_path / "b.000001", e.format_description(), *transaction(1, 1))
    found = decoded([one, one])
    first, second = (row["commit_ts"] for row in found.rows)
    assert second == first + 1


def test_one_table_can_be_asked_for() -> None:
    found = decoded([DML], only="t.nopk")
    assert {row["table"] for row in found.rows} == {"nopk"}
    assert found.stats[0]["ledger"]["ignored"]["table not asked for"] > 0


def test_what_is_not_a_binlog_is_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(StreamCorrupt, match="not a binlog file"):
        BinlogFile(write(tmp_path / "x", magic=b"PK\3\4"))
    with pytest.raises(UnsupportedValue, match="encrypted"):
        BinlogFile(write(tmp_path / "x", magic=b"\xfdbin"))
    with pytest.raises(UsageError, match="not a file"):
        BinlogFile(tmp_path)
    with pytest.raises(UsageError, match="No such file"):
        BinlogFile(tmp_path / "none")
    start_encryption = e.event(EventType.MARIADB_START_ENCRYPTION, bytes(17))
    encrypted = decoded([write(tmp_path / "x", e.format_description(), start_encryption, b"garbage" * 9)])
    assert len(encrypted.faults) == 1
    assert "encrypted" in encrypted.faults[0]
    headless = decoded([write(tmp_path / "x", *transaction(1, 1))])
    assert "before any FORMAT_DESCRIPTION" in headless.faults[0]


def test_statements_and_unknown_events_are_faults_and_other_tables_go_on(tmp_path: Path) -> None:
    statement = [e.mariadb_gtid(2), e.query("BEGIN"), e.query("INSERT INTO other VALUES (1)"), e.xid(2)]
    unknown = e.event(77, b"what")
    events = [e.format_description(), *transaction(1, 1), *statement, unknown, *transaction(3, 2)]
    found = decoded([write(tmp_path / "f.000001", *events)])
    assert [row["after"]["@1"] for row in found.rows] == [1, 2]
    assert len(found.faults) == 2
    assert all("f.000001:" in fault for fault in found.faults)
    assert found.stats[0]["ledger"]["quarantined"] == len(statement[2]) + len(unknown)
    own = [e.mariadb_gtid(2), e.query("BEGIN"), e.query("INSERT INTO numbers VALUES (1)"), e.xid(2)]
    found = decoded([write(tmp_path / "f.000001", *events[:5], *own, *transaction(3, 2))])
    assert [row["after"]["@1"] for row in found.rows] == [1]


def test_the_command_writes_lines_to_stdout_faults_to_stderr_and_gives_an_exit_code(tmp_path: Path) -> None:
    good = tidegate("decode", str(DML))
    assert (good.returncode, good.stderr) == (0, "")
    assert [json.loads(line) for line in good.stdout.splitlines()] == decoded([DML]).rows
    cut = write_bytes(tmp_path / "cut.000001", DML.read_bytes()[:3000])
    bad = tidegate("decode", "--stats", str(cut))
    assert bad.returncode == 1
    assert bad.stderr.count("\n") == 1
    assert json.loads(bad.stdout)["bytes"] == 3000
    assert tidegate("decode", str(tmp_path / "none")).returncode == 2


def test_every_fault_is_a_typed_error() -> None:
    assert issubclass(StreamCorrupt, TidegateError)


def test_a_relay_log_names_its_source_and_has_two_format_descriptions(tmp_path: Path) -> None:
    rotate = e.event(EventType.ROTATE, (4).to_bytes(8, "little") + b"binlog.000007", flags=0x20)
    other = e.format_description(checksum=False, version="11.4.5-MariaDB-log")
    unsummed = [event[:9] + (len(event) - 4).to_bytes(4, "little") + event[13:-4] for event in transaction(2, 2)]
    path = write(tmp_path / "relay.000002", e.format_description(), rotate, *transaction(1, 1), other, *unsummed)
    found = decoded([path])
    assert [row["after"]["@1"] for row in found.rows] == [1, 2]
    assert not found.faults
    assert found.stats[0]["events"]["FORMAT_DESCRIPTION"] == 2


def test_a_table_that_fails_stays_held_and_the_rows_before_its_fault_come(tmp_path: Path) -> None:
    cut = e.rows(EventType.WRITE_ROWS_V1, 7, 1, e.image(e.integer(3)) + b"\0\1")
    broken = [e.mariadb_gtid(3), e.table_map(7, "numbers", b"\x03", b""), cut, e.xid(3)]
    other = [e.mariadb_gtid(5), e.table_map(8, "others", b"\x03", b"")]
    other += [e.rows(EventType.WRITE_ROWS_V1, 8, 1, e.image(e.integer(5))), e.xid(5)]
    events = [e.format_description(), *transaction(1, 1), *transaction(2, 2), *broken, *transaction(4, 4), *other]
    found = decoded([write(tmp_path / "h.000001", *events)])
    assert [row["after"]["@1"] for row in found.rows] == [1, 2, 5]
    assert len(found.faults) == 1
    assert found.faults[0].startswith("shop.numbers at h.000001:")
    assert found.stats[0]["ledger"]["quarantined"] == len(cut) + len(transaction(4, 4)[2])


def test_a_large_transaction_that_is_rolled_back_gives_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = e.table_map(7, "numbers", b"\x03", b"")
    images = [e.rows(EventType.WRITE_ROWS_V1, 7, 1, e.image(e.integer(n)), end=n == 4) for n in range(5)]
    undone = [e.mariadb_gtid(2), mapped, *images, e.query("ROLLBACK")]
    path = write(tmp_path / "r.000001", e.format_description(), *transaction(1, 1), *undone, *transaction(3, 3))
    for size in (16 << 20, 100, 1):
        monkeypatch.setattr(log_file, "SEGMENT_BYTES_MAX", size)
        found = decoded([path])
        assert [row["after"]["@1"] for row in found.rows] == [1, 3]
        assert not found.faults
        assert found.stats[0]["ledger"]["ignored"]["rolled back"] == sum(map(len, images))


def test_a_refused_date_says_which_option_shows_it() -> None:
    types = next(path for path in GOLDEN if path.parent.name == "mysql9_types")
    found = decoded([types], zero_dates="error")
    assert len(found.faults) == 1
    assert "column da holds a date that no calendar has" in found.faults[0]
    assert "--zero-dates" in found.faults[0]
