"""A real TiDB's tables in ranges of whatever they are read by: each row once, by several connections, after kills."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit.tidb.pumps import SAFE_POINT, collected_upto
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tidegate.commit_ts import physical_ms
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.snapshot import moment_reading
from tidegate.snapshot.chunks.chunk import rows_of
from tidegate.snapshot.chunks.chunk_table import chunk_refs
from tidegate.snapshot.chunks.ranges import divide
from tidegate.snapshot.chunks.sampled import region_starts
from tidegate.snapshot.chunks.spans import WHOLE, is_whole
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState
from tidegate.snapshot.progress.requests import events_of, request, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result.literals import span_condition
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.tables import SNAPSHOTS

pytestmark = [pytest.mark.server, pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING)]

ROWS = 600
SMALL = ReaderSettings(parallel=3, chunk=ChunkBounds(20, 1 << 20, 1.0), wave_bytes=1, waves_waiting=1 << 30)

# name -> (definition, what splits it into regions)
_PARTS = "PARTITION BY RANGE (n) (PARTITION p0 VALUES LESS THAN (300), PARTITION p1 VALUES LESS THAN (9999))"
_NINE = "BY " + ", ".join(f"({n})" for n in range(70, 600, 70))
TABLES = {
    "numbers": ("(id BIGINT PRIMARY KEY, n INT)", _NINE),
    "scattered": ("(id BIGINT AUTO_RANDOM PRIMARY KEY, n INT)", ""),
    "texts": ("(k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY CLUSTERED, n INT)", "BY ('k1'), ('k3'), ('k5')"),
    "pairs": ("(a DATE, b VARBINARY(9), n INT, PRIMARY KEY (a, b))", "BY ('2020-03-01', 'x'), ('2020-06-01', '')"),
    "prices": ("(p DECIMAL(9, 2) PRIMARY KEY CLUSTERED, n INT)", "BY (100.50), (250), (400.25)"),
    "apart": ("(k VARCHAR(20) PRIMARY KEY NONCLUSTERED, n INT)", _NINE),
    "bare": ("(k VARCHAR(20), n INT)", _NINE),
    "bare_shards": ("(k VARCHAR(20), n INT) SHARD_ROW_ID_BITS = 4", ""),
    "bare_parts": (f"(k VARCHAR(20), n INT) {_PARTS}", ""),
    "bare_prefix": ("(k VARCHAR(20), n INT, PRIMARY KEY (k(9)) CLUSTERED)", ""),
}


def row_of(table: str, n: int) -> str:
    """The values of an INSERT (n last)."""
    match table:
        case "numbers":
            return f"({n}, {n})"
        case "pairs":
            return f"('2020-{n % 12 + 1:02}-01', x'{n:04x}', {n})"
        case "prices":
            return f"({n}.25, {n})"
    return f"('k{n}', {n})"


@pytest.fixture(scope="module")
def tidb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tidb]:
    found = Tidb(tmp_path_factory.mktemp("ranges") / "tidb", ())
    try:
        stock(found)
        yield found
    finally:
        found.stop()


def stock(tidb: Tidb) -> None:
    collected_upto(tidb, SAFE_POINT)
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("USE d")
        for name, (definition, split) in TABLES.items():
            cursor.execute(f"CREATE TABLE {name} {definition}")
            if split:
                cursor.execute(f"SPLIT TABLE {name} {split}")
            names = "(n)" if name == "scattered" else ""
            rows = (f"({n})" if name == "scattered" else row_of(name, n) for n in range(ROWS))
            cursor.execute(f"INSERT INTO {name} {names} VALUES {', '.join(rows)}")
        # Rows of another table keep their numbers when they come: two rows of one number.
        cursor.execute("CREATE TABLE other (k VARCHAR(20), n INT)")
        cursor.execute(f"INSERT INTO other VALUES {', '.join(f'({n}, {n})' for n in range(200))}")
        cursor.execute("ALTER TABLE bare_parts EXCHANGE PARTITION p0 WITH TABLE other")
        cursor.execute(f"INSERT INTO bare_parts VALUES {', '.join(row_of('bare_parts', n) for n in range(200))}")


def info_of(tidb: Tidb) -> ConnectionInfo:
    return ConnectionInfo("127.0.0.1", tidb.port, "root")


@pytest.mark.parametrize("name", list(TABLES))
def test_ranges_are_several_and_have_each_row_once(tidb: Tidb, name: str) -> None:
    with WorkerConnection(info_of(tidb)) as asked:
        version = asked.versions("s", [("d", name)])["d", name]
        spans = divide(version, asked.ask, 4)
        key = make_read_plan(version).key
        assert is_whole(spans)
        counts = []
        for span in spans:
            where = span_condition(key, span)
            ((count,),) = asked.ask(f"SELECT COUNT(*) FROM d.{name}" + (f" WHERE {where}" if where else ""))
            counts.append(int(count))
        ((all_rows,),) = asked.ask(f"SELECT COUNT(*) FROM d.{name}")
    assert sum(counts) == int(all_rows) >= ROWS - 200
    if name == "bare_prefix":
        assert spans == (WHOLE,)
    else:
        assert sum(count > 0 for count in counts) >= 3, (counts, spans)


def test_regions_are_sampled_without_a_scan(tidb: Tidb) -> None:
    with WorkerConnection(info_of(tidb)) as asked:
        version = asked.versions("s", [("d", "texts")])["d", "texts"]
        starts = region_starts(version, asked.ask)
        assert 2 <= len(starts) <= 4, starts
        told_plan = asked.ask("EXPLAIN SELECT k FROM d.texts TABLESAMPLE REGIONS()")
        assert any("TableSample" in str(row) for row in told_plan)
        for key, table in (("_tidb_rowid", "bare"), ("id", "scattered")):
            plan = asked.ask(f"EXPLAIN SELECT MIN({key}), MAX({key}) FROM d.{table}")
            assert not any("TableFullScan" in str(row) and "Limit" not in str(plan) for row in plan), plan


def content(tidb: Tidb, table: str) -> Counter[tuple[Any, ...]]:
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT k, n FROM d.{table}")
        return Counter(cursor.fetchall())


def landed(lake: LakeFiles, token: str) -> Counter[tuple[Any, ...]]:
    rows = [row for ref in chunk_refs(lake, "s", [token]) for row in rows_of(ref.read(lake)).to_pylist()]
    return Counter((row["k"], row["n"]) for row in rows)


def answer(lake: LakeFiles) -> None:
    """As apply does."""
    events = events_of(lake, "p")
    known = {(one.token, one.name) for one in events if one.event is EventKind.APPLIED}
    for one in events:
        if one.event is EventKind.WAVE and (one.token, one.name) not in known:
            place = (one.snapshot, "p", "s", EventKind.APPLIED, datetime.now(UTC), *one.name)
            ControlTables(lake).append(SNAPSHOTS, [SnapshotEvent(*place, wave=one.wave, token=one.token).to_row()])


def read_to_the_end(tidb: Tidb, lake: LakeFiles, report: list[str]) -> None:
    reader = SnapshotReader("p", "s", info_of(tidb), lake, SMALL, report.append)

    def stop() -> bool:
        answer(lake)
        return False

    reader.run(stop)


def waves_of(lake: LakeFiles) -> dict[str, SnapshotEvent]:
    return {one.table: one for one in events_of(lake, "p") if one.event is EventKind.WAVE}


CHILD = """
import sys
from pathlib import Path
from tests.integration.tidb.test_ranges import SMALL, ConnectionInfo, LakeFiles, SnapshotReader, moment_reading
moment_reading.SNAPSHOT_LAND_BYTES = 1
SnapshotReader("p", "s", ConnectionInfo("127.0.0.1", int(sys.argv[1]), "root"), LakeFiles(sys.argv[2]), SMALL).run()
"""


def killed(tidb: Tidb, lake: LakeFiles, landing: int) -> bool:
    """Whether a reader was killed behind so many landings."""
    environment = os.environ | {"TIDEGATE_FAILPOINT": f"snapshot_after_landing:{landing}"}
    command = [sys.executable, "-c", CHILD, str(tidb.port), str(lake.root)]
    return subprocess.run(command, env=environment, cwd=Path(__file__).parents[3], check=False).returncode == -9


@pytest.mark.parametrize("name", ["bare", "bare_parts"])
def test_a_killed_reader_of_a_table_without_a_key_is_gone_on_with(
    tidb: Tidb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What was landed isn't read again, and what was committed since isn't seen."""
    monkeypatch.setattr(moment_reading, "SNAPSHOT_LAND_BYTES", 1)
    lake = LakeFiles(str(tmp_path))
    request(lake, "p", [("s", "d", name)])
    before = content(tidb, name)
    assert killed(tidb, lake, 3)
    (view,) = {one.token for one in events_of(lake, "p") if one.event is EventKind.VIEW}
    first = chunk_refs(lake, "s", [view])
    assert len(first) >= 3
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO d.{name} VALUES ('later', 1), ('later', 1)")
        cursor.execute(f"DELETE FROM d.{name} WHERE n % 7 = 0")
    assert killed(tidb, lake, 5)
    second = chunk_refs(lake, "s", [view])
    assert len(second) >= len(first) + 5
    read_to_the_end(tidb, lake, [])
    wave = waves_of(lake)[name]
    assert wave.token == view
    assert landed(lake, view) == before != content(tidb, name)
    refs = chunk_refs(lake, "s", [view])
    assert {(one.path, one.row_group) for one in second} <= {(one.path, one.row_group) for one in refs}
    chunks = [one.chunk for one in refs]
    assert [one.chunk for one in chunks] == list(range(1, len(chunks) + 1))
    assert is_whole([one.span for one in chunks])
    assert (wave.chunks, wave.rows) == (len(chunks), sum(one.rows for one in chunks))
    assert {one.state for one in told(lake, "p")} == {SnapshotState.ENDED}


def test_a_wave_that_garbage_collection_has_passed_begins_anew(
    tidb: Tidb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself, at another timestamp; a line says so."""
    monkeypatch.setattr(moment_reading, "SNAPSHOT_LAND_BYTES", 1)
    lake, lines = LakeFiles(str(tmp_path)), list[str]()
    request(lake, "p", [("s", "d", "bare_shards")])
    assert killed(tidb, lake, 4)
    (view,) = [one for one in events_of(lake, "p") if one.event is EventKind.VIEW]
    seconds = physical_ms(view.low_ts or 0) // 1000 + 1  # a safe point is told in whole seconds
    while time.time() <= seconds:
        time.sleep(0.05)
    collected_upto(tidb, datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d-%H:%M:%S +0000"))
    try:
        with tidb.connect() as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO d.bare_shards VALUES ('later', 1)")
        read_to_the_end(tidb, lake, lines)
    finally:
        collected_upto(tidb, SAFE_POINT)
    wave = waves_of(lake)["bare_shards"]
    assert wave.token != view.token
    assert any("garbage collection has passed the timestamp" in line for line in lines), lines
    assert landed(lake, wave.token) == content(tidb, "bare_shards")
    assert {one.state for one in told(lake, "p")} == {SnapshotState.ENDED}


def test_a_killed_reader_of_a_table_with_a_key_goes_on_at_its_last_wave(tidb: Tidb, tmp_path: Path) -> None:
    """Each wave has a timestamp of its own; what was landed in the one that was killed counts for nothing."""
    lake = LakeFiles(str(tmp_path))
    request(lake, "p", [("s", "d", "texts")])
    assert killed(tidb, lake, 4)
    before = [one for one in events_of(lake, "p") if one.event is EventKind.WAVE]
    assert sorted(one.wave for one in before) == [1, 2, 3]
    read_to_the_end(tidb, lake, [])
    waves = [one for one in events_of(lake, "p") if one.event is EventKind.WAVE]
    assert {one.token for one in before} < {one.token for one in waves}
    rows = sum((landed(lake, one.token) for one in waves), Counter())
    assert rows == content(tidb, "texts")
    assert {one.state for one in told(lake, "p")} == {SnapshotState.ENDED}


def test_a_table_by_prefixes_comes_whole(tidb: Tidb, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    request(lake, "p", [("s", "d", "bare_prefix")])
    read_to_the_end(tidb, lake, [])
    assert landed(lake, waves_of(lake)["bare_prefix"].token) == content(tidb, "bare_prefix")
