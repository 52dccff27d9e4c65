"""What a worker hands on of segments in pieces: staged rows, one problem per table, one ledger per segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply_steps.decode_changes import InDriver, decode_refs, in_driver, in_workers
from spark_jobs.window.shape.decode_plan import DecodePlan
from spark_jobs.window.window import Accounted, StagedFile, Trouble
from tests.kit.decoding import ALL_TIME
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.test_expand import ITEMS, ORDERS, VERSIONS, large, made, row, transaction, write
from tidegate import limits
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.rows.batch import decode_batch
from tidegate.binlog.rows.decode_plan import make_plan
from tidegate.errors import StreamCorrupt
from tidegate.lake.bronze.index import BronzeIndex, verified
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.crc32c import crc32c
from tidegate.segments.result import Problem
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef
from tidegate.tables import SegmentFlag
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.row_hash import row_hashes


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_pieces(given: Segment, **keywords: Any) -> Any:
        return index_pieces(given, **{"piece_bytes": 2000, **keywords})

    monkeypatch.setattr("tidegate.binlog.rows.decode.index_pieces", in_pieces)


def bronze_gives(given: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: LakeFiles, refs: list[SegmentRef]) -> Iterator[tuple[SegmentRef, Segment | StreamCorrupt]]:
        return ((ref, verified(given)) for ref in refs)

    monkeypatch.setattr("spark_jobs.apply_steps.decode_changes.segments_or_damage", read)


@dataclass(frozen=True)
class Gave:
    staged: list[StagedFile]
    problems: list[Problem]
    ledgers: list[Accounted]


def decoded(folder: Path, given: Segment, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] = ("*",)) -> Gave:
    bronze_gives(given, monkeypatch)
    windows = dict.fromkeys((ORDERS, ITEMS), ALL_TIME)
    plan = DecodePlan(LakeFiles(str(folder)), {"s": dict(VERSIONS)}, {"s": windows}, {}, "staging/one")
    ref = SegmentRef("s", 7, "b", 4, 4 + len(given.payload), 5, 5, 5, names, SegmentFlag(0), "p", 0, 0)
    found = list(decode_refs([ref], plan, stage_bytes=5000))
    return Gave(
        [one for one in found if isinstance(one, StagedFile)],
        [one.problem for one in found if isinstance(one, Trouble)],
        [one for one in found if isinstance(one, Accounted)],
    )


def test_a_segment_in_pieces_is_staged_as_it_goes_and_has_one_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, count = large()
    found = decoded(tmp_path, given, monkeypatch)
    assert len(found.staged) > 4
    ids = [n for f in found.staged for n in pq.read_table(tmp_path / f.path)["id"].to_pylist()]
    assert sorted(ids) == sorted([*range(300), 1001, 1002, 1003])
    (told,) = found.ledgers
    ledger = told.ledger
    assert (told.seq, ledger.rows, ledger.payload_bytes) == (7, count, len(given.payload))
    total = ledger.decoded_bytes + sum(ledger.ignored.values()) + ledger.quarantined_bytes
    assert total == len(given.payload)


@pytest.mark.parametrize("names", [("*",), ("shop.orders", "shop.other")])
def test_a_flipped_bit_in_bronze_stops_the_tables_of_its_segment_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    given = made(e.mysql_gtid(1, 10**15), *transaction(*write(row(1, "text"))))
    at = bytes(given.payload).index(b"text")
    flipped = given.payload[:at] + b"u" + given.payload[at + 1 :]
    (staged,) = decoded(tmp_path, replace(given, payload=flipped, payload_crc32c=crc32c(flipped)), monkeypatch).staged
    assert "uext" in str(pq.read_table(tmp_path / staged.path).to_pylist()), "decoding alone does not see it"
    found = decoded(tmp_path, replace(given, payload=flipped), monkeypatch, names)
    stopped = {(p.database, p.table): p for p in found.problems}
    assert set(stopped) == ({ORDERS, ITEMS} if names == ("*",) else {ORDERS})
    assert stopped[ORDERS].error == "StreamCorrupt"
    assert "test at binlog.000042:4: payload of segment 7 has CRC-32C" in stopped[ORDERS].message
    assert not found.staged
    assert found.ledgers[0].ledger.quarantined_bytes == found.ledgers[0].ledger.payload_bytes == len(flipped)


def test_a_table_with_a_problem_in_a_late_piece_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = [event for number in range(100) for event in write(row(number), name=(ORDERS, ITEMS)[number % 2])]
    broken = [e.table_map(5, "orders", b"\x03\x0f", b"\x50\x00"), e.rows(30, 5, 2, row(1)[:-1])]
    outer = e.payload(*transaction(*inner, *broken, *inner))
    found = decoded(tmp_path, made(e.mysql_gtid(1, 10**15), outer), monkeypatch)
    assert [(p.table, p.error) for p in found.problems] == [("orders", "DecodeError")]
    assert found.ledgers[0].ledger.quarantined_bytes == len(outer)
    items = [f.rows for f in found.staged if f.table == "items"]
    assert sum(items) >= 50


@pytest.mark.parametrize("routed", [False, True])
def test_changes_of_a_table_without_a_key_are_staged_with_the_hashes_of_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, routed: bool
) -> None:
    given, _ = large()
    bronze_gives(given, monkeypatch)
    keyless = {name: [replace(version, key=()) for version in versions] for name, versions in VERSIONS.items()}
    plan = DecodePlan(LakeFiles(str(tmp_path)), {"s": keyless}, {"s": {ORDERS: ALL_TIME}}, {}, "staging/one")
    plan = replace(plan, routed={"s": {ORDERS}} if routed else {})
    ref = SegmentRef("s", 7, "b", 4, 99, 5, 5, 5, ("*",), SegmentFlag(0), "p", 0, 0)
    shard = {"_tg_source": "s", "_tg_database": "shop", "_tg_table": "orders"} if routed else {}
    seen = 0
    for staged in decode_refs([ref], plan, stage_bytes=5000):
        if not isinstance(staged, StagedFile):
            continue
        rows = pq.read_table(tmp_path / staged.path)
        columns = {name: rows[name] for name in rows.column_names if not name.startswith("_tg_")}
        columns |= {name: pa.chunked_array([pa.repeat(text, len(rows))]) for name, text in shard.items()}
        assert rows["_tg_row_hash"].to_pylist() == row_hashes(columns).to_pylist()
        seen += len(rows)
    assert seen > 0


def landed(lake: LakeFiles, count: int) -> list[SegmentRef]:
    """Copies of one segment in bronze, one behind the other; each has commit_ts of its own."""
    given, _ = large()
    step = len(given.payload)
    for number in range(count):
        # Events say milliseconds only: what stands before a segment moves its transactions.
        stamps = {"prev_commit_ts": (10**12 + number) << 18, "resolved_ts": (10**12 + number + 1) << 18}
        place = {"source": "s", "seq": number + 1, "start_pos": 4 + number * step, "end_pos": 4 + (number + 1) * step}
        Bronze(lake, "s").append([replace(given, **stamps, **place)])
    index = BronzeIndex(lake)
    index.refresh(0)
    return index.refs["s"]


@pytest.mark.spark
def test_threads_of_the_driver_and_sparks_workers_stage_what_one_task_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    lake = LakeFiles(str(tmp_path))
    refs = landed(lake, 5)
    windows = dict.fromkeys((ORDERS, ITEMS), ALL_TIME)
    plan = DecodePlan(lake, {"s": dict(VERSIONS)}, {"s": windows}, {}, "staging/one")
    monkeypatch.setattr(limits, "DRIVER_DECODE_THREAD_BYTES", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    ways = {
        "one task": decode_refs(refs, plan),
        "threads": in_driver(refs, plan, InDriver(KeyFilesAtHand())),
        "workers": in_workers(spark, refs, plan),
    }
    rows, ledgers, files = {}, {}, {}
    for way, came in ways.items():
        gave = list(came)
        staged = [one for one in gave if isinstance(one, StagedFile)]
        files[way] = len(staged)
        newest: dict[tuple[str, int], tuple[Any, ...]] = {}
        for file in staged:
            for found in pq.read_table(tmp_path / file.path).to_pylist():
                key, value = (file.table, found["id"]), (found["_tg_commit_ts"], found["_tg_seq"], found["name"])
                newest[key] = max(newest.get(key, value), value)
        rows[way] = newest
        ledgers[way] = sorted((one for one in gave if isinstance(one, Accounted)), key=lambda one: one.seq)
    assert len(rows["one task"]) == 303
    assert rows["threads"] == rows["workers"] == rows["one task"]
    assert ledgers["threads"] == ledgers["workers"] == ledgers["one task"]
    assert (files["one task"], files["threads"], files["workers"]) == (2, 6, 10)


def test_a_fault_of_our_own_at_one_tables_rows_holds_that_table_alone_with_class_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [event for number in range(6) for event in write(row(number), name=(ORDERS, ITEMS)[number % 2])]
    given = made(e.mysql_gtid(1, 10**15), *transaction(*rows))

    def faulty(data: Any, events: Any, plan: Any, seq: int) -> Any:
        if plan is first:
            raise IndexError("tuple index out of range")
        return decode_batch(data, events, plan, seq)

    plans: list[Any] = []
    first: Any = None

    def planned(*given: Any, **more: Any) -> Any:
        nonlocal first
        plans.append(make_plan(*given, **more))
        first = plans[0]
        return plans[-1]

    monkeypatch.setattr("tidegate.binlog.rows.table_rows.make_plan", planned)
    monkeypatch.setattr("tidegate.binlog.rows.decode.decode_batch", faulty)
    found = decoded(tmp_path, given, monkeypatch)
    (problem,) = found.problems
    assert problem.error == "Unexpected"
    assert "unexpected IndexError: tuple index out of range (test_decode_changes.py:" in problem.message
    assert f"{problem.database}.{problem.table} at binlog.000042:" in problem.message
    assert {(f.database, f.table) for f in found.staged} == {ORDERS, ITEMS} - {(problem.database, problem.table)}


def test_a_fault_of_our_own_in_a_segment_holds_the_tables_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = made(e.mysql_gtid(1, 10**15), *transaction(*write(row(1, "text"))))
    monkeypatch.setattr("tidegate.binlog.index.event_index.settle_outcomes", lambda data, _: data["no"])
    found = decoded(tmp_path, given, monkeypatch, ("shop.orders",))
    assert [(p.table, p.error) for p in found.problems] == [("orders", "Unexpected")]
    assert found.ledgers[0].ledger.quarantined_bytes == len(given.payload)
