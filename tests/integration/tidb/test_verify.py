"""Verify a TiDB's tables at a cut: every type is equal, what was planted is found and nothing else.

What is planted is changed while TiDB writes no binlog.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.tidb.pumps import Pumps, apply_upto, applying, collected_upto, tidb_with_pumps, under_way
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.kit.tidb.types import fill, make_tables
from tidegate import config, pipelines
from tidegate.connections import from_environment
from tidegate.errors import VerifyError
from tidegate.lake.files import LakeFiles
from tidegate.repair import verify_and_repair
from tidegate.verify import check
from tidegate.verify.report import Difference, Outcome, Report
from tidegate.verify.under_way import VerifyOptions

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING),
]

CHUNKED = VerifyOptions(chunk_rows=3)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[tuple[Pumps, Tidb]]:
    """Tables of every type, in silver."""
    with tidb_with_pumps(tmp_path_factory.mktemp("verify"), pipeline="checked", names=("p0",)) as (pumps, tidb):
        with tidb.connect() as connection, connection.cursor() as cursor:
            make_tables(cursor, "Typed")
            fill(cursor)
            cursor.execute("CREATE TABLE busy (id INT PRIMARY KEY, n INT)")
            cursor.execute(f"INSERT INTO busy VALUES {', '.join(f'({n}, 0)' for n in range(40))}")
        tidb.settle()
        apply_upto(pumps, tidb, spark)
        yield pumps, tidb


def verified(pumps: Pumps, options: VerifyOptions = CHUNKED, *, repair: bool = False) -> Report:
    pipeline, lake = config.load(pumps.file), LakeFiles(str(pumps.lake))
    connections = pipelines.sql_infos(pipeline, lambda name: from_environment(name, pumps.environment), lake)
    said: list[str] = []
    return verify_and_repair(pipeline, lake, connections, options, repair=repair, report=said.append)


def unlike(report: Report) -> dict[str, object]:
    """Of tables that aren't equal why, or the cells that differ."""
    return {
        one.table: one.reason or [_cells(row) for row in one.differences]
        for one in report.tables
        if one.outcome != Outcome.EQUAL
    }


def _cells(row: Difference) -> object:
    source, silver = row.source, row.silver
    if source is None or silver is None:
        return row.key, source is None, silver is None
    return row.key, {name: (source[name], silver[name]) for name in source if source[name] != silver[name]}


def test_every_type_and_kind_of_key_is_equal(world: tuple[Pumps, Tidb]) -> None:
    report = verified(world[0])
    assert unlike(report) == {}
    found = {one.table: one for one in report.tables}
    assert found["typed.str"].source_rows == 17
    assert len(found["typed.str"].ranges) == 6
    assert all(one.verified_through == report.cut_ts for one in report.tables if one.source_rows)


def test_what_is_committed_behind_the_cut_is_no_difference(world: tuple[Pumps, Tidb]) -> None:
    pumps, tidb = world
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE typed.parted SET v = 'later'")
        cursor.execute("DELETE FROM typed.bare WHERE a = 1")
        cursor.execute("ALTER TABLE typed.js ADD COLUMN later INT DEFAULT 5")
    report = verified(pumps)
    assert unlike(report) == {}
    assert next(one for one in report.tables if one.table == "typed.bare").source_rows == 4


def test_verify_says_nothing_false_while_tidb_and_apply_go_on(
    world: tuple[Pumps, Tidb], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk of a first read is of another cut."""
    pumps, tidb = world
    monkeypatch.setattr(check, "VERIFY_CUT_SECONDS", -1.0)
    done, applied = threading.Event(), list[int]()

    def write() -> None:
        with tidb.connect() as connection, connection.cursor() as cursor:
            while not done.is_set():
                cursor.execute("UPDATE typed.busy SET n = n + 1 WHERE id %% 5 = %s", (len(applied) % 5,))
                cursor.execute("DELETE FROM typed.busy WHERE id = 7")
                cursor.execute("INSERT INTO typed.busy VALUES (7, 7)")

    def apply() -> None:
        while not done.is_set():
            applied.append(apply_upto(pumps, tidb, spark).cut_ts)

    threads = [threading.Thread(target=write), threading.Thread(target=apply)]
    for thread in threads:
        thread.start()
    try:
        reports = [verified(pumps, replace(CHUNKED, tables={"typed.busy"})) for _ in range(4)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert [unlike(report) for report in reports] == [{}] * 4


def test_what_was_planted_is_found_by_key_and_range(tmp_path: Path, spark: SparkSession) -> None:
    with tidb_with_pumps(tmp_path, pipeline="checked", names=("p0",)) as (pumps, tidb):
        with tidb.connect() as connection, connection.cursor() as cursor:
            make_tables(cursor, "typed")
            fill(cursor)
        tidb.settle()
        apply_upto(pumps, tidb, spark)
        with tidb.without_pumps() as alone, alone.connect() as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE typed.parted SET v = 'planted' WHERE id = 4")
            cursor.execute("DELETE FROM typed.parted WHERE id = 5")
            cursor.execute("INSERT INTO typed.parted VALUES (100, 'new')")
            cursor.execute("INSERT INTO typed.bare VALUES (1, 0.5)")
            cursor.execute("UPDATE typed.num SET ii = 77 WHERE ii = 1")
        app = apply_upto(pumps, tidb, spark)
        report = verified(pumps)
        assert report.cut_ts >= app.cut_ts
        assert unlike(report).keys() == {"typed.parted", "typed.bare", "typed.num"}
        parted = next(one for one in report.tables if one.table == "typed.parted")
        assert sorted(one.key["id"] for one in parted.differences) == [4, 5, 100]
        off = [one for one in parted.ranges if one.source_hash != one.silver_hash or one.source_rows != one.silver_rows]
        assert [(one.after, one.upto) for one in off] == [(("2",), ("6",)), (("18",), None)]
        with under_way(applying(pumps, tidb, spark)):
            mended = verified(pumps, repair=True)
        assert unlike(mended).keys() == {"typed.bare"}  # which has no key
        collected_upto(tidb, datetime.now(UTC).strftime("%Y%m%d-%H:%M:%S +0000"))
        with pytest.raises(VerifyError, match=r"garbage collection has passed the cut at .* raise tidb_gc_life_time"):
            verified(pumps)
