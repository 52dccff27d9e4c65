"""Each type of TiDB as canal-json and csv have it, to the value that a SELECT shows.

Files are written by tests/support/changefeed_writer.py, values by type_values.py: neither uses the product.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.changefeed_writer import ID, NULL, Cell, Change, Changefeed, number, text, ts
from tests.unit.changefeed.test_reader import given, opened, source
from tests.unit.ticdc.type_values import BYTES, TYPES, binary, member, moment
from tidegate.config import Csv, Protocol
from tidegate.schema.model.types import ZeroDates
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segment_kinds import changes_of, statements_of
from tidegate.segments.result import NOTHING_KNOWN, CommitSpan, DecodedSegment
from tidegate.tables import OP_DELETE, SegmentFlag
from tidegate.ticdc.pieces import Form


def decoded(feed: Changefeed, form: Form, upto_ts: int, **window: Any) -> DecodedSegment:
    """What decoding gives of everything up to a commit_ts, which is one segment."""
    history, found = SchemaHistory("one"), None
    for segment in given(opened(source(feed, form=form)), upto_ts):
        if segment.flags & SegmentFlag.HAS_DDL:
            for statement in statements_of(segment):
                history.replay(statement)
        versions = {name: history.versions(*name) for name in history.tables()}
        windows = {name: CommitSpan(0, upto_ts, **window) for name in versions}
        (found,) = changes_of(segment, versions, windows, NOTHING_KNOWN)
        found.ledger.check()
    assert found is not None
    return found


def form_of(protocol: str, *, all_rows: bool = True, **csv: Any) -> Form:
    return Form(Protocol(protocol), "UTC", all_rows, Csv(**csv))


def every_type(folder: Path, protocol: str, **csv: Any) -> Changefeed:
    """One table with a column of each type: two rows, one of NULLs, and a delete."""
    feed = Changefeed(folder / "feed", protocol=protocol, csv=csv)
    columns = {"id": ID, **{f"c{at}": {"ColumnType": kind.shown} for at, kind in enumerate(TYPES)}}
    made = ", ".join(f"`c{at}` {kind.sql}" for at, kind in enumerate(TYPES))
    feed.ddl(
        "shop.t",
        ts(1),
        f"CREATE TABLE `t` (`id` BIGINT NOT NULL PRIMARY KEY /*T![clustered_index] CLUSTERED */, {made})",
        3,
        columns,
    )
    rows = [{"id": number(row), **{f"c{at}": kind.values[row][0] for at, kind in enumerate(TYPES)}} for row in range(2)]
    empty = {"id": number(2), **{f"c{at}": NULL for at in range(len(TYPES))}}
    feed.rows(
        "shop.t",
        Change(ts(2), rows[0]),
        Change(ts(2), rows[1]),
        Change(ts(3), empty),
        Change(ts(4), empty | {"id": number(1)}, rows[1]),
        Change(ts(5), rows[1], empty | {"id": number(1)}),
        Change(ts(6), None, rows[0]),
    )
    feed.checkpoint(ts(6))
    return feed


FORMS: list[dict[str, Any]] = [
    {"protocol": "canal-json"},
    {"protocol": "csv"},
    {"protocol": "csv", "old_value": True},
    {"protocol": "csv", "delimiter": ";", "quote": "'", "null": "NULL"},
    {"protocol": "csv", "header": True},
]


@pytest.mark.parametrize("asked", FORMS, ids="-".join)
def test_each_type_is_the_value_that_a_select_shows(tmp_path: Path, asked: dict[str, Any]) -> None:
    feed = every_type(tmp_path, **asked)
    known = {key: value for key, value in asked.items() if key != "header"}
    done = decoded(feed, form_of(**known), ts(6))
    assert not done.problems, done.problems
    (changes,) = done.changes
    rows = changes.batch.to_pylist()
    ops = [(row["_tg_op"], row["id"], row["_tg_commit_ts"]) for row in rows]
    halves = [(OP_DELETE, 1, ts(4)), (1, 1, ts(4)), (OP_DELETE, 1, ts(5)), (1, 1, ts(5))]
    updates = halves if asked.get("old_value") else halves[1::2]
    assert ops == [(1, 0, ts(2)), (1, 1, ts(2)), (1, 2, ts(3)), *updates, (OP_DELETE, 0, ts(6))]
    assert [row["_tg_ordinal"] for row in rows] == list(range(len(rows)))
    last = {row["id"]: row for row in rows if row["_tg_op"] == 1}
    for at, kind in enumerate(TYPES):
        for row in range(2):
            assert last[row][f"c{at}"] == kind.values[row][1], kind.sql
        assert last[2][f"c{at}"] is None
        assert rows[-1][f"c{at}"] == kind.values[0][1], kind.sql
    assert done.ledger.null_dates == (3 if asked.get("old_value") else 2)


def test_hexadecimal_digits_are_bytes(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed", protocol="csv")
    columns = {"id": ID, "b": {"ColumnType": "BLOB"}}
    feed.ddl("shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, b BLOB)", 3, columns)
    feed.rows("shop.t", Change(ts(2), {"id": number(1), "b": Cell("", BYTES.hex(), quoted=True)}))
    feed.checkpoint(ts(2))
    done = decoded(feed, form_of("csv", binary_encoding="hex"), ts(2))
    assert done.changes[0].batch.column("b").to_pylist() == [BYTES]
    (problem,) = decoded(feed, form_of("csv", binary_encoding="base64"), ts(2)).problems or [None]
    assert problem is None or "base64" in problem.message


@pytest.mark.parametrize(
    ("sql", "value", "says"),
    [
        ("INT", "12x", "isn't written as"),
        ("INT", "2147483648", "isn't written as"),
        ("DECIMAL(5,2)", "1.234", "isn't written as"),
        ("DECIMAL(5,2)", "12345.6", "isn't written as"),
        ("BIT(3)", "8", "more than 3 bits"),
        ("ENUM('a')", "2", "beyond its 1 members"),
        ("SET('a')", "2", "beyond its 1 members"),
        ("VARBINARY(9)", "\u0101", "beyond ISO 8859-1"),
        ("DATETIME", "yesterday", "impossible date"),
        ("INT AS (id + 1) VIRTUAL", "2", "generated VIRTUAL"),
    ],
)
def test_what_is_no_such_value_holds_its_table_alone(tmp_path: Path, sql: str, value: str, says: str) -> None:
    feed = Changefeed(tmp_path / "feed")
    for table, kind in (("bad", sql), ("good", "TEXT")):
        columns = {"id": ID, "c": {"ColumnType": kind.partition("(")[0].split()[0]}}
        feed.ddl(f"shop.{table}", ts(1), f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, c {kind})", 3, columns)
        feed.rows(f"shop.{table}", Change(ts(2), {"id": number(1), "c": text(value)}))
    feed.checkpoint(ts(2))
    done = decoded(feed, form_of("canal-json"), ts(2), zero_dates=ZeroDates.ERROR)
    (problem,) = done.problems
    assert (problem.database, problem.table) == ("shop", "bad")
    assert says in problem.message
    assert len(value) < 2 or value not in problem.message, "it may be nobody's to see"
    assert [changes.table for changes in done.changes] == ["good"]
    assert done.ledger.quarantined_bytes > 0


def test_an_update_of_the_key_deletes_the_old_row(tmp_path: Path) -> None:
    """TiCDC splits it, unless output-raw-change-event is set."""
    feed = Changefeed(tmp_path / "feed")
    feed.ddl("shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY)", 3, {"id": ID})
    feed.rows("shop.t", Change(ts(2), {"id": number(1)}), Change(ts(3), {"id": number(2)}, {"id": number(1)}))
    feed.checkpoint(ts(3))
    (changes,) = decoded(feed, form_of("canal-json"), ts(3)).changes
    assert [(row["_tg_op"], row["id"]) for row in changes.batch.to_pylist()] == [(1, 1), (3, 1), (1, 2)]


def test_an_update_of_the_key_is_seen_behind_a_column_named_type(tmp_path: Path) -> None:
    """Whose text is a word of the protocol."""
    feed = Changefeed(tmp_path / "feed")
    columns = {"id": ID, "type": {"ColumnType": "TEXT"}}
    feed.ddl("shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, type TEXT)", 3, columns)
    before, after = ({"id": number(at), "type": text("UPDATE")} for at in (1, 2))
    feed.rows("shop.t", Change(ts(2), before), Change(ts(3), after, before))
    feed.checkpoint(ts(3))
    (changes,) = decoded(feed, form_of("canal-json"), ts(3)).changes
    assert [(row["_tg_op"], row["id"]) for row in changes.batch.to_pylist()] == [(1, 1), (3, 1), (1, 2)]


def test_a_row_that_moves_between_two_partitions_stays(tmp_path: Path) -> None:
    """Its delete stands in one folder, its insert in another, of one commit_ts: whichever is read first."""
    for first, second in (("105", "106"), ("106", "105")):
        feed = Changefeed(tmp_path / first)
        feed.ddl(
            "shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, p INT)", 3, {"id": ID, "p": {"ColumnType": "INT"}}
        )
        old, new = ({"id": number(1), "p": number(at)} for at in (1, 2))
        feed.rows("shop.t", Change(ts(2), old), Change(ts(3), None, old), folder=first)
        feed.rows("shop.t", Change(ts(3), new), folder=second)
        feed.checkpoint(ts(3))
        (changes,) = decoded(feed, form_of("canal-json"), ts(3)).changes
        assert [(row["_tg_op"], row["p"]) for row in changes.batch.to_pylist()] == [(1, 1), (3, 1), (1, 2)]


def test_lines_with_other_columns_than_the_table_hold_it(tmp_path: Path) -> None:
    """A column selector of the changefeed leaves columns out, which would read as NULL."""
    feed = Changefeed(tmp_path / "feed")
    columns = {"id": ID, "c": {"ColumnType": "INT"}, "d": {"ColumnType": "INT"}}
    feed.ddl("shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, c INT, d INT)", 3, columns)
    feed.rows("shop.t", Change(ts(2), {"id": number(1), "c": number(1)}))
    feed.checkpoint(ts(2))
    (problem,) = decoded(feed, form_of("canal-json"), ts(2)).problems
    assert problem.error == "SchemaMismatch"


def test_each_file_is_looked_at_for_its_columns(tmp_path: Path) -> None:
    """The second lacks one, as behind a DDL that the changefeed's filter left out."""
    columns = {"id": ID, "c": {"ColumnType": "INT"}}
    for protocol in ("canal-json", "csv"):
        feed = Changefeed(tmp_path / protocol, protocol=protocol)
        feed.ddl("shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, c INT)", 3, columns)
        feed.rows("shop.t", Change(ts(2), {"id": number(1), "c": number(1)}))
        feed.rows("shop.t", Change(ts(3), {"id": number(2)}))
        feed.checkpoint(ts(3))
        (problem,) = decoded(feed, form_of(protocol), ts(3)).problems
        assert problem.error == "SchemaMismatch"


def test_a_delete_that_has_its_key_alone_is_enough_unless_all_of_the_row_is_kept(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.ddl(
        "shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, c INT)", 3, {"id": ID, "c": {"ColumnType": "INT"}}
    )
    feed.rows("shop.t", Change(ts(2), {"id": number(1), "c": number(1)}), Change(ts(3), None, {"id": number(1)}))
    feed.checkpoint(ts(3))
    (changes,) = decoded(feed, form_of("canal-json"), ts(3)).changes
    assert changes.batch.column("_tg_op").to_pylist() == [1, 3]
    (problem,) = decoded(feed, form_of("canal-json"), ts(3), whole_deletes="soft_delete").problems
    assert "soft_delete" in problem.message


def test_a_found_table_is_known_by_its_schema_file(tmp_path: Path) -> None:
    """Its columns' types are as the file shows them; members of an enum it doesn't show, and canal-json needs them."""
    found = {
        "id": {**ID, "ColumnType": "BIGINT UNSIGNED"},
        "d": {"ColumnType": "DECIMAL", "ColumnPrecision": "12", "ColumnScale": "2"},
        "t": {"ColumnType": "DATETIME", "ColumnScale": "3"},
        "e": {"ColumnType": "ENUM"},
        "b": {"ColumnType": "BIT", "ColumnPrecision": "9"},
        "v": {"ColumnType": "VARBINARY", "ColumnPrecision": "9"},
        "f": {"ColumnType": "FLOAT", "ColumnPrecision": "12"},
        "x": {"ColumnType": "TEXT", "ColumnPrecision": "65535"},
    }
    row = {
        "id": number(2**64 - 1), "d": text("1.50"), "t": text("2024-01-01 00:00:00.123"), "e": member(1, "a"),
        "b": number(256), "v": binary(b"\xff"), "f": number("0.5"), "x": text("y"),
    }  # fmt: skip
    wanted = [
        Decimal(2**64 - 1), Decimal("1.50"), moment("2024-01-01 00:00:00.123000"), "a", b"\x01\x00", b"\xff", 0.5,
        "y",
    ]  # fmt: skip
    for protocol in ("csv", "canal-json"):
        feed = Changefeed(tmp_path / protocol, protocol=protocol)
        feed.found("shop.t", ts(0), found)
        feed.rows("shop.t", Change(ts(2), row))
        feed.checkpoint(ts(2))
        done = decoded(feed, form_of(protocol), ts(2))
        if protocol == "csv":
            assert list(done.changes[0].batch.to_pylist()[0].values())[4:] == wanted
        else:
            assert "don't tell its members" in done.problems[0].message


def test_a_record_is_cut_at_line_breaks_outside_of_quotes_alone(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed", protocol="csv", terminator="\n")
    feed.ddl(
        "shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, c TEXT)", 3, {"id": ID, "c": {"ColumnType": "TEXT"}}
    )
    words = ['a\nb""\r\n,"', '"', '\n"\n', "D"]
    feed.rows("shop.t", *(Change(ts(2 + at), {"id": number(at), "c": text(word)}) for at, word in enumerate(words)))
    feed.checkpoint(ts(9))
    (changes,) = decoded(feed, form_of("csv"), ts(9)).changes
    assert changes.batch.column("c").to_pylist() == words


def test_text_that_looks_like_a_commit_ts_is_text(tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    feed.ddl(
        "shop.t", ts(1), "CREATE TABLE t (id BIGINT PRIMARY KEY, c TEXT)", 3, {"id": ID, "c": {"ColumnType": "TEXT"}}
    )
    word = json.dumps({"_tidb": {"commitTs": 5}}, separators=(",", ":"))
    feed.rows("shop.t", Change(ts(2), {"id": number(1), "c": text(word + ',"_tidb":{"commitTs":7}')}))
    feed.checkpoint(ts(2))
    (changes,) = decoded(feed, form_of("canal-json"), ts(2)).changes
    assert changes.batch.column("_tg_commit_ts").to_pylist() == [ts(2)]
