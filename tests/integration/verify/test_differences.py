"""tidegate verify against a real server and a silver table written by hand: equal is seen, and so is every defect.

Under load: test_at_work.py.

Silver's values are literals of this file, so that nothing of tidegate stands between the server and the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.kit.s3 import S3
from tests.support.servers import FreshDatabase
from tests.support.silver_by_hand import Lake, lake
from tests.support.typed_values import ONLY_MARIADB, ONLY_MYSQL, SAME
from tidegate import tables
from tidegate.config import ALL
from tidegate.errors import SourceUnavailable, UsageError, VerifyError
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts import visible
from tidegate.position import Position
from tidegate.verify.copies import Copies
from tidegate.verify.printing import report_lines
from tidegate.verify.report import ColumnDifference, Outcome
from tidegate.verify.source_side import SourceSide
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = pytest.mark.server

__all__ = ["lake"]  # a fixture


def _orders(rows: list[tuple[int, int, str | None]]) -> pa.Table:
    shop, number, note = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "shop": pa.array(shop, pa.int16()),
        "number": pa.array(number, pa.int64()),
        "note": pa.array(note, pa.string()),
    }
    return pa.table(columns)


ORDERS = [(1, 1, "a"), (1, 2, None), (2, 1, "ü😀"), (2, 2, "")]


def _make_orders(lake: Lake, *, key: bool = True) -> None:
    primary = ", PRIMARY KEY (shop, number)" if key else ""
    lake.server.query(
        f"CREATE TABLE orders (shop SMALLINT, number BIGINT, note VARCHAR(20){primary})", database=lake.database
    )
    for row in ORDERS:
        lake.server.query("INSERT INTO orders VALUES (%s, %s, %s)", row, database=lake.database)


def test_equal_tables_are_equal_whatever_the_order_of_their_rows(lake: Lake) -> None:
    _make_orders(lake)
    lake.silver("orders", _orders(ORDERS[::-1]))
    lake.publish()
    report = lake.verify()
    (result,) = report.tables
    assert report.equal
    assert (result.outcome, result.source_rows, result.silver_rows) == (Outcome.EQUAL, 4, 4)
    assert result.source_hash == result.silver_hash != "0" * 16


@pytest.mark.parametrize(
    ("silver", "key", "ours", "theirs"),
    [
        pytest.param([*ORDERS[:1], (1, 2, ""), *ORDERS[2:]], (1, 2), True, True, id="one wrong cell: '' for NULL"),
        pytest.param(ORDERS[:3], (2, 2), True, False, id="a missing row"),
        pytest.param([*ORDERS, (3, 1, "x")], (3, 1), False, True, id="a row that was deleted"),
        pytest.param([*ORDERS, ORDERS[0]], (1, 1), False, True, id="a duplicate"),
    ],
)
def test_a_planted_defect_is_found_with_its_composite_key(
    lake: Lake, silver: list[Any], key: tuple[int, int], ours: bool, theirs: bool
) -> None:
    _make_orders(lake)
    lake.silver("orders", _orders(silver))
    lake.publish()
    result = lake.result("orders")
    assert result.outcome is Outcome.DIFFERENT
    assert (result.source_hash, result.source_rows) != (result.silver_hash, result.silver_rows)
    (difference,) = result.differences
    assert difference.key == {"shop": key[0], "number": key[1]}
    assert (difference.source is not None, difference.silver is not None) == (ours, theirs)


def test_two_rows_that_swapped_a_cell_are_found(lake: Lake) -> None:
    """Sums per column would not see it."""
    _make_orders(lake)
    lake.silver("orders", _orders([(1, 1, None), (1, 2, "a"), *ORDERS[2:]]))
    lake.publish()
    assert len(lake.result("orders").differences) == 2


def test_a_table_without_a_key_is_compared_as_a_multiset(lake: Lake) -> None:
    _make_orders(lake, key=False)
    lake.server.query("INSERT INTO orders VALUES (1, 1, 'a')", database=lake.database)
    lake.silver("orders", _orders([*ORDERS, ORDERS[0]]))
    lake.publish()
    assert lake.result("orders").outcome is Outcome.EQUAL
    lake.silver("orders", _orders([*ORDERS, ORDERS[1]]))
    lake.cuts = [{"table": f"{lake.database}.orders", "delta_version": 1, "state": "active"}]
    lake.publish()
    result = lake.result("orders")
    assert sorted((d.source is None, d.silver is None) for d in result.differences) == [(False, True), (True, False)]


def test_every_canonical_type_compares_equal_to_its_value_and_to_null(lake: Lake) -> None:
    cases = SAME + (ONLY_MYSQL if lake.server.flavour == "mysql" else ONLY_MARIADB)
    columns = ", ".join(f"c{n} {kind} NULL" for n, (kind, *_) in enumerate(cases))
    silver = {"id": pa.array([1, 2], pa.int32())}
    silver |= {f"c{n}": pa.array([value, None], kind) for n, (_, _, kind, value) in enumerate(cases)}
    with lake.server.connect(lake.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
        cursor.execute(f"INSERT INTO t VALUES (1, {', '.join(sql for _, sql, _, _ in cases)})")
        cursor.execute("INSERT INTO t (id) VALUES (2)")
    lake.silver("t", pa.table(silver))
    lake.publish()
    result = lake.result("t")
    assert result.differences == ()
    assert (result.outcome, result.seemed) == (Outcome.EQUAL, 0), "the prints of both sides are the same, too"


def test_one_wrong_value_of_any_type_is_found(lake: Lake) -> None:
    """Each type's comparison can fail: the silver table has another row's value in one column at a time."""
    cases = [case for case in SAME if case[3] is not None and case[1] != "-0e0"]
    columns = ", ".join(f"c{n} {kind} NULL" for n, (kind, *_) in enumerate(cases))
    with lake.server.connect(lake.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
        for number, (_, sql, _, _) in enumerate(cases):
            cursor.execute(f"INSERT INTO t (id, c{number}) VALUES (%s, {sql})", (number,))
    silver: dict[str, Any] = {"id": pa.array(range(len(cases)), pa.int32())}
    silver |= {f"c{n}": pa.nulls(len(cases), kind) for n, (_, _, kind, _) in enumerate(cases)}
    lake.silver("t", pa.table(silver))
    lake.publish()
    options = VerifyOptions(None, 5, differences_max=1000)
    info = ConnectionInfo(lake.server.host, lake.server.port, lake.server.user, lake.server.password)
    (result,) = verify(lake.pipeline(), {"one": info}, lake.root, None, options).tables
    assert (result.seemed, result.different) == (len(cases), len(cases)), "no two values have one print"
    assert sorted(d.key["id"] for d in result.differences) == list(range(len(cases)))


def test_a_held_table_is_named_with_its_reason_and_not_compared(lake: Lake) -> None:
    _make_orders(lake)
    lake.publish()
    lake.state("orders", "held", "held rows before capture started; take a snapshot")
    report = lake.verify()
    assert report.equal, "what isn't compared doesn't differ"
    assert not report.complete
    assert report.verdict == "0 equal, 1 held; 0 differ"
    lines = report_lines(report)
    assert lines[2].split()[1:] == ["held", *"----"], "rows that were not counted aren't 0"
    assert lines[-1].startswith("0 equal, 1 held; 0 differ (")
    assert (report.tables[0].outcome, report.tables[0].reason) == (
        Outcome.HELD,
        "held rows before capture started; take a snapshot",
    )


@pytest.mark.parametrize(
    ("state", "then"),
    [
        ("released", "apply's next windows bring it up to date"),
        ("snapshot", "it lacks rows until its snapshot has ended"),
    ],
)
def test_a_table_that_goes_on_by_itself_waits_and_is_not_called_held(lake: Lake, state: str, then: str) -> None:
    _make_orders(lake)
    lake.publish()
    lake.state("orders", state, "approved by root")
    report = lake.verify()
    assert (report.tables[0].outcome, report.complete) == (Outcome.WAITS, False)
    assert report.verdict == "0 equal, 1 waits; 0 differ"
    said = " ".join(" ".join(report_lines(report)).split())
    assert f"orders waits: approved by root; {then}; verify it again then" in said


def test_a_table_that_silver_lacks_is_a_difference_unless_it_is_empty(lake: Lake) -> None:
    _make_orders(lake)
    lake.server.query("CREATE TABLE bare (a INT)", database=lake.database)
    lake.publish()
    assert lake.result("orders").outcome is Outcome.DIFFERENT
    assert lake.result("bare").outcome is Outcome.EQUAL


def test_a_dropped_table_must_be_marked_dropped(lake: Lake) -> None:
    lake.server.query("CREATE TABLE t (a INT)", database=lake.database)
    lake.silver("gone", _orders(ORDERS))
    lake.publish()
    assert lake.result("gone").outcome is Outcome.DIFFERENT
    lake.state("gone", "dropped", "")
    assert lake.result("gone").outcome is Outcome.DROPPED


def test_a_column_that_silver_lacks_is_named(lake: Lake) -> None:
    _make_orders(lake)
    lake.silver("orders", _orders(ORDERS).drop_columns(["note"]))
    lake.publish()
    result = lake.result("orders")
    assert result.outcome is Outcome.DIFFERENT
    assert "note" in result.reason


def test_shards_are_compared_each_with_its_own_rows(lake: Lake) -> None:
    for shard in (1, 2):
        lake.server.query(f"CREATE TABLE o_{shard} (id INT PRIMARY KEY)", database=lake.database)
        lake.server.query(f"INSERT INTO o_{shard} VALUES ({shard})", database=lake.database)
    shards = [pa.array(values) for values in (["one"] * 2, [lake.database] * 2, ["o_1", "o_1"])]
    names = [tables.SHARD_SOURCE, tables.SHARD_DATABASE, tables.SHARD_TABLE]
    lake.silver("o", pa.table([pa.array([1, 2], pa.int32()), *shards], ["id", *names]))
    lake.publish()
    routes = f"[{{match: '{lake.database}.o_\\d+', to: {lake.database}.o}}]"
    found = {
        r.table.split(".")[1]: (r.outcome, r.source_rows, r.silver_rows) for r in lake.verify(routes=routes).tables
    }
    assert found == {"o_1": (Outcome.DIFFERENT, 1, 2), "o_2": (Outcome.DIFFERENT, 1, 0)}


def test_without_a_cut_that_covers_the_source_it_says_what_is_missing(lake: Lake) -> None:
    with pytest.raises(VerifyError, match="not captured up to"):
        lake.verify(timeout=0)
    lake.publish()
    lake.server.query("CREATE TABLE later (a INT)", database=lake.database)
    with pytest.raises(VerifyError, match="is capture running"):
        lake.verify(timeout=0.2)


def test_the_report_as_json_has_only_what_json_has(lake: Lake) -> None:
    lake.server.query("CREATE TABLE t (a VARBINARY(4) PRIMARY KEY)", database=lake.database)
    lake.server.query("INSERT INTO t VALUES (x'00ff')", database=lake.database)
    lake.silver("t", pa.table({"a": pa.array([], pa.binary())}))
    lake.publish()
    found = replace(lake.verify()).to_json()
    assert found["equal"] is False
    assert found["tables"][0]["differences"] == [{"key": {"a": "00ff"}, "source": {"a": "00ff"}, "silver": None}]


def test_a_table_that_nobody_knows_is_a_usage_error_at_once(lake: Lake) -> None:
    _make_orders(lake)
    with pytest.raises(UsageError, match=f"did you mean {lake.database}.orders"):
        lake.verify(table=f"{lake.database}.order")


def test_a_lake_on_s3_is_compared_by_copies_of_its_files(
    mariadb: Server, fresh_database: FreshDatabase, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(s3.folder(), mariadb, fresh_database(mariadb), s3.options)
    folders: list[str] = []
    real = Copies.at
    monkeypatch.setattr(Copies, "at", lambda self, *place: folders.append(real(self, *place)) or folders[-1])
    _make_orders(lake)
    lake.silver("orders", _orders([*ORDERS[:1], (1, 2, ""), *ORDERS[2:]]))
    lake.publish()
    (result,) = lake.verify(timeout=20).tables
    assert (result.outcome, result.different, result.source_rows) == (Outcome.DIFFERENT, 1, 4)
    assert folders
    assert not Path(folders[0]).exists(), "copies go with the verification"


def test_a_table_that_is_made_meanwhile_is_no_difference(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the list of the source's tables, and before the cut that they are compared with."""
    _make_orders(lake)
    lake.silver("orders", _orders(ORDERS))
    lake.publish()
    real = SourceSide.tables

    def listed(side: SourceSide, keeps: Callable[[str, str], bool]) -> list[tuple[str, str]]:
        found = real(side, keeps)
        lake.server.query("CREATE TABLE later (id INT PRIMARY KEY)", database=lake.database)
        lake.silver("later", pa.table({"id": pa.array([], pa.int32())}))
        lake.publish()
        return found

    monkeypatch.setattr(SourceSide, "tables", listed)
    report = lake.verify()
    assert [(one.table, one.outcome) for one in report.tables] == [(f"{lake.database}.orders", Outcome.EQUAL)]


@pytest.mark.parametrize("times", [2, 1000])
def test_a_file_of_the_log_that_begins_as_a_view_is_opened_is_asked_about_again(
    mariadb: Server, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """And where it happens each time, no place is told: the log's end would be ahead of what the reads see."""
    user = {"user": mariadb.user, "password": mariadb.password}
    side = SourceSide(ConnectionInfo(host=mariadb.host, port=mariadb.port, **user), lambda _database, _table: ALL)
    real, asked = visible.current_position, list[str]()

    def placed(cursor: Any) -> Position | None:
        found = real(cursor)
        assert found is not None
        asked.append(found.file)
        if len(asked) <= times:
            mariadb.query("FLUSH BINARY LOGS")
        return found

    monkeypatch.setattr(visible, "current_position", placed)
    try:
        if times == 2:
            assert side.look().file == asked[-1]
            assert len(set(asked)) == 3
        else:
            with pytest.raises(SourceUnavailable, match="moved to another file each of 10 times"):
                side.look()
    finally:
        side.close()


def test_what_people_do_to_silver_is_found_though_no_cut_names_its_version_yet(lake: Lake) -> None:
    """Of a table that rests; a plain reader of silver would find it so."""
    lake.server.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)", database=lake.database)
    lake.server.query("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)", database=lake.database)
    lake.silver("t", pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": pa.array([10, 20, 30], pa.int32())}))
    lake.publish()
    assert lake.verify().equal
    there = DeltaTable(f"{lake.root}/{tables.silver_path(lake.database, 't')}")
    there.delete("id = 1")
    there.optimize.compact()
    there.update(updates={"v": "21"}, predicate="id = 2")
    (found,) = lake.verify().tables
    assert (found.outcome, found.different, found.silver_rows) == (Outcome.DIFFERENT, 2, 2)


def test_columns_of_other_types_are_named_though_their_values_read_the_same(lake: Lake) -> None:
    lake.server.query("CREATE TABLE t (id INT PRIMARY KEY, v BIGINT, w INT UNSIGNED)", database=lake.database)
    lake.server.query("INSERT INTO t VALUES (1, 10, 5)", database=lake.database)
    columns = {"id": pa.array([1], pa.int32()), "v": pa.array(["10"]), "w": pa.array([5], pa.int32())}
    lake.silver("t", pa.table(columns))
    lake.publish()
    (result,) = lake.verify().tables
    assert result.outcome is Outcome.DIFFERENT
    assert set(result.columns) == {ColumnDifference("v", "bigint", "string"), ColumnDifference("w", "bigint", "int")}
