"""Bronze's files are packed and its oldest removed beside a capture that appends: nothing is lost, doubled or moved."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.support.bronze import QuietBronze
from tidegate.delta.stores.store import LocalStore
from tidegate.errors import CommitConflict, LakeRefused, LakeUnavailable, StreamCorrupt
from tidegate.lake.bronze import upkeep as bronze_upkeep
from tidegate.lake.bronze.index import BronzeIndex, read_segments
from tidegate.lake.bronze.log import APPEND_ONLY, BronzeFile, BronzeLog, checked, properties
from tidegate.lake.bronze.retention import choose_gone, remove, whole_transactions
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.bronze.upkeep import Limits, choose_runs, compact_run
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_RUN_FILES_MAX
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS, SegmentFlag, capture_app_id

DAY = date(2026, 11, 1)
EVERYTHING = Limits(file_bytes=1 << 20, run_bytes=1 << 40, young_ms=1 << 60)


def file(seq: int, *, size: int = 10, rows: int = 1, day: date = DAY, source: str = "a", at: int = 0) -> BronzeFile:
    last = seq + rows - 1
    return BronzeFile(f"{source}{seq}", source, day, size, rows, seq, last, seq * 10, last * 10 + 5, last * 10 + 5, at)


def runs(files: Sequence[BronzeFile], limits: Limits = EVERYTHING) -> list[list[int]]:
    return [[one.min_seq for one in run] for run in choose_runs(checked(files, ""), limits)]


def test_neighbours_of_one_day_are_packed_and_the_newest_file_is_left() -> None:
    files = [file(seq, day=DAY if seq <= 10 else DAY + timedelta(1)) for seq in range(1, 31)]
    assert runs(files) == [list(range(1, 11)), list(range(11, 30))]
    assert runs(files[:8]) == [], "seven beside the newest: a later run has more"
    assert runs(files[:9]) == [list(range(1, 9))]


def test_large_files_and_young_ones_end_a_run_and_stay_as_they_are() -> None:
    files = [file(seq, size=1 << 19 if seq == 12 else 10, at=100 if seq > 25 else 0) for seq in range(1, 41)]
    assert runs(files, Limits(1 << 20, 1 << 40, young_ms=100)) == [list(range(1, 12)), list(range(13, 26))]


def test_a_run_ends_where_its_file_would_be_full_and_two_that_fill_one_are_enough() -> None:
    half = (1 << 19) - 1
    assert runs([file(1, size=half), file(2, size=half), file(3)]) == [[1, 2]]
    assert runs([file(1, size=half), file(2, size=half), file(3, size=half), file(4)]) == [[1, 2]]
    many = [file(seq, size=1 << 17) for seq in range(1, 30)]
    assert [len(run) for run in runs(many)] == [8, 8, 8, 4]
    assert max(map(len, runs([file(seq) for seq in range(1, 9000)]))) == BRONZE_RUN_FILES_MAX


def test_what_one_run_of_maintain_reads_is_bounded_and_the_oldest_come_first() -> None:
    files = [file(seq, day=DAY + timedelta(seq // 10), at=seq) for seq in range(1, 60)]
    first = runs(files, Limits(1 << 20, run_bytes=200, young_ms=1 << 60))
    assert first == [list(range(1, 10)), list(range(10, 20))]
    assert runs(files, Limits(1 << 20, run_bytes=1, young_ms=1 << 60)) == first[:1], "something is always done"


def test_a_gap_or_an_overlap_in_bronze_is_refused() -> None:
    for odd in ([file(1), file(3)], [file(1, rows=2), file(2)], [dataclasses.replace(file(1, rows=3), rows=2)]):
        with pytest.raises(LakeRefused, match="has a gap"):
            checked(odd, "lake")


def test_only_a_prefix_below_the_floor_and_before_the_day_goes() -> None:
    files = {"a": [file(seq, day=DAY + timedelta(seq)) for seq in range(1, 6)], "b": [file(1, source="b")]}

    def gone(floor_ts: int, day: date) -> list[list[int]]:
        return [[one.min_seq for one in mine] for mine in choose_gone(files, dict.fromkeys("ab", floor_ts), day)]

    late = DAY + timedelta(30)
    assert gone(1000, late) == [[1, 2, 3, 4]], "the newest file of each source stays"
    assert gone(35, late) == [[1, 2, 3]]
    assert gone(34, late) == [[1, 2]]
    assert gone(1000, DAY + timedelta(3)) == [[1, 2]]
    assert gone(0, late) == []
    quiet = [dataclasses.replace(file(seq), max_commit_ts=0) for seq in (3, 4)]
    assert choose_gone({"a": [file(1), file(2), *quiet]}, {"a": 1000}, late) == [[file(1)]], (
        "the last one with bytes stays"
    )
    assert choose_gone({"a": quiet}, {"a": 1000}, late) == []
    still_open = dataclasses.replace(files["a"][1], max_commit_ts=2000)
    assert choose_gone({"a": [files["a"][0], still_open, *files["a"][2:]]}, {"a": 1000}, late) == [files["a"][:1]]


# --- real tables --------------------------------------------------------------------------------------


def plain(segment: Segment) -> Segment:
    return dataclasses.replace(segment, payload=bytes(segment.payload), context=bytes(segment.context))


def landed(folder: Path, count: int = 20) -> tuple[QuietBronze, LakeFiles]:
    """Changes and heartbeats, a commit each."""
    bronze = QuietBronze(folder)
    for number in range(1, count + 1):
        ts = number * 10
        bronze.land("a", (ts,) if number % 3 == 0 else (ts, ts + 1, ts + 1))
    return bronze, LakeFiles(str(folder))


def compact(lake: LakeFiles) -> int:
    """How many files were made."""
    log = BronzeLog.load(lake)
    assert log is not None
    found = choose_runs(log.files(), EVERYTHING)
    for run in found:
        compact_run(log, run)
    return len(found)


def assert_holds(lake: LakeFiles, wanted: Sequence[Segment]) -> None:
    """Every segment once, as captured, where a fresh index finds it."""
    index = BronzeIndex(lake)
    index.refresh(0)
    refs = [ref for mine in index.refs.values() for ref in mine]
    assert [plain(segment) for _, segment in read_segments(lake, refs)] == list(wanted)
    log = BronzeLog.load(lake)
    assert log is not None
    assert sum(one.rows for mine in log.files().values() for one in mine) == len(wanted)


def test_packed_segments_are_what_they_were_and_capture_goes_on_where_it_stood(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    writer = Bronze(lake, "a")
    assert writer.last_seq == 20
    logged = BronzeLog.load(lake)
    assert logged is not None
    before = {one.path: one for one in logged.files()["a"]}
    assert compact(lake) == 1
    table = DeltaTable(str(tmp_path / SEGMENTS.path))
    assert len(table.file_uris()) == 2
    assert table.transaction_version(capture_app_id("a")) == 20
    after = BronzeLog.load(lake)
    assert after is not None
    packed = after.files()["a"][0]
    assert (packed.min_seq, packed.max_seq, packed.rows) == (1, 19, 19)
    assert packed.begin_ts == min(one.begin_ts for one in before.values())
    assert (packed.resolved_ts, packed.max_commit_ts) == (191, 191)
    assert_holds(lake, bronze.landed)
    added = bronze._segment("a", 300, 301, 301)
    writer.append([added])  # the same writer, from the snapshot it held
    assert_holds(lake, [*bronze.landed, added])
    assert Bronze(lake, "a").last_segments()[-1].seq == 21
    assert compact(lake) == 0


def test_row_groups_stay_small_enough_to_be_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bronze, lake = landed(tmp_path, 41)
    monkeypatch.setattr(bronze_upkeep, "BRONZE_GROUP_ROWS_MAX", 7)
    compact(lake)
    log = BronzeLog.load(lake)
    assert log is not None
    metadata = pq.ParquetFile(tmp_path / SEGMENTS.path / log.files()["a"][0].path).metadata
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [7, 7, 7, 7, 7, 5]
    assert_holds(lake, bronze.landed)
    index = BronzeIndex(lake)
    index.refresh(200)
    assert [ref.seq for ref in index.refs["a"]] == list(range(15, 42)), "row groups below the mark are not read"


def test_row_groups_hold_as_many_bytes_as_captures_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, lake = landed(tmp_path, 21)
    log = BronzeLog.load(lake)
    assert log is not None
    monkeypatch.setattr(bronze_upkeep, "ROW_GROUP_BYTES", 100)
    groups = list(bronze_upkeep._groups(bronze_upkeep._pieces(lake, log.files()["a"])))
    assert max(group["payload"].nbytes for group in groups) <= 100
    assert [seq for group in groups for seq in group["seq"].to_pylist()] == list(range(1, 22))
    assert len(groups) < 12


def test_a_window_that_was_planned_reads_the_files_that_were_packed_away(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    index = BronzeIndex(lake)
    index.refresh(50)
    index.forget(50)
    planned = index.refs["a"]
    compact(lake)
    assert [plain(segment) for _, segment in read_segments(lake, planned)] == bronze.landed[4:]
    loads: list[int] = []
    index._load = lambda: loads.append(1)  # type: ignore[method-assign]
    assert index.refresh(50)
    assert not loads, "a packed file is taken in without reading the table anew"
    anew = index.refs["a"]
    assert len({ref.path for ref in anew}) == 2
    wanted = {segment.seq: segment for segment in bronze.landed}
    assert all(plain(segment) == wanted[ref.seq] for ref, segment in read_segments(lake, anew))
    assert [ref.seq for ref in anew][-len(planned) :] == [ref.seq for ref in planned]


def test_packing_and_capture_at_the_same_time_lose_and_double_nothing(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    writer, ended, made = Bronze(lake, "a"), threading.Event(), []

    def upkeep() -> None:
        while not ended.is_set():
            made.append(compact(lake))

    beside = threading.Thread(target=upkeep)
    index = BronzeIndex(lake)
    beside.start()
    try:
        for number in range(21, 2000):  # a busy machine gives the packing no turn for long
            segment = bronze._segment("a", number * 10, number * 10 + 1, number * 10 + 1)
            writer.append([segment])
            bronze.landed.append(segment)
            index.refresh(0)
            if number >= 80 and sum(made) > 2:
                break
    finally:
        ended.set()
        beside.join()
    assert sum(made) > 2, made
    assert [ref.seq for ref in index.refs["a"]] == list(range(1, len(bronze.landed) + 1))
    assert [plain(segment) for _, segment in read_segments(lake, index.refs["a"])] == bronze.landed
    assert_holds(lake, bronze.landed)


def test_two_that_pack_the_same_files_are_told_apart(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    first, second = BronzeLog.load(lake), BronzeLog.load(lake)
    assert first is not None
    assert second is not None
    run = choose_runs(first.files(), EVERYTHING)[0]
    compact_run(first, run)
    with pytest.raises(CommitConflict):
        compact_run(second, run[:-1])
    assert_holds(lake, bronze.landed)


def test_upkeep_goes_on_behind_those_that_leave_its_files_alone(tmp_path: Path) -> None:
    """Capture appends, properties are set, others pack other files; and a removal of segments isn't undone."""
    bronze, lake = landed(tmp_path, 21)
    first, second, third = (BronzeLog.load(lake) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    files = first.files()["a"]
    compact_run(second, files[10:20])
    second.set_properties(properties(30 * 86_400))
    bronze.land("a", (300, 301, 301))
    compact_run(first, files[2:10])
    assert_holds(lake, bronze.landed)
    remove(third, files[:2])
    with pytest.raises(CommitConflict, match="took files of it out"):
        compact_run(first, files[:2])
    assert_holds(lake, bronze.landed[2:])
    assert third.properties() == properties(30 * 86_400)


def test_a_commit_that_was_made_though_it_was_reported_as_failed_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bronze, lake = landed(tmp_path)
    log = BronzeLog.load(lake)
    assert log is not None
    real = LocalStore.create

    def unsure(self: LocalStore, name: str, data: bytes) -> bool:
        real(self, name, data)
        raise LakeUnavailable("the connection broke", where=self.where)

    monkeypatch.setattr(LocalStore, "create", unsure)
    compact_run(log, choose_runs(log.files(), EVERYTHING)[0])
    assert_holds(lake, bronze.landed)


def test_damaged_bytes_are_not_packed(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    log = BronzeLog.load(lake)
    assert log is not None
    path = tmp_path / SEGMENTS.path / log.files()["a"][4].path
    bytes_ = bytearray(path.read_bytes())
    rows = pq.ParquetFile(path).read()
    payload = bytearray(bronze.landed[4].payload)
    payload[0] ^= 1
    schema = rows.schema
    changed = rows.to_pylist()[0] | {"payload": bytes(payload)}
    pq.write_table(type(rows).from_pylist([changed], schema=schema), path)
    version = log.version
    with pytest.raises(StreamCorrupt, match="payload of segment 5 isn't what was captured"):
        compact(lake)
    assert BronzeLog.load(lake).version == version  # type: ignore[union-attr]
    path.write_bytes(bytes_)
    compact(lake)
    assert_holds(lake, bronze.landed)


def test_removed_segments_leave_a_bronze_that_says_where_it_begins(tmp_path: Path) -> None:
    bronze, lake = QuietBronze(tmp_path), LakeFiles(str(tmp_path))
    for number in range(1, 21):
        bronze.at = datetime(2026, 11, number, tzinfo=UTC)
        bronze.land("a", (number * 10, number * 10 + 1, number * 10 + 1))
    index = BronzeIndex(lake)
    index.refresh(0)
    log = BronzeLog.load(lake)
    assert log is not None
    gone = choose_gone(log.files(), {"a": 161, "b": 161}, date(2026, 11, 13))[0]
    assert [one.max_seq for one in gone] == list(range(1, 13))
    remove(log, gone)
    assert log.properties()[APPEND_ONLY] == "true"
    assert log.properties() == properties(0)
    assert_holds(lake, bronze.landed[12:])
    for known in (index, BronzeIndex(lake)):
        known.refresh(0)
        assert [ref.seq for ref in known.refs["a"]] == list(range(13, 21))
        known.check_reaches(121, ["a"])
        with pytest.raises(LakeRefused, match=r"bronze begins after commit_ts 121, and changes from 120 on are needed"):
            known.check_reaches(120, ["a"])
    again = Bronze(lake, "a")
    assert again.last_segments()[-1].seq == 20
    again.append([bronze._segment("a", 300, 301, 301)])


def test_what_is_left_never_begins_inside_a_transaction(tmp_path: Path) -> None:
    bronze, lake = QuietBronze(tmp_path), LakeFiles(str(tmp_path))
    writer = Bronze(lake, "a")
    for number in range(1, 7):
        flags = SegmentFlag.OPEN_AT_START if number in (3, 4) else SegmentFlag(0)
        segment = bronze._segment("a", number * 10, number * 10 + 1, number * 10 + 1)
        writer.append([dataclasses.replace(segment, flags=flags)])
    log = BronzeLog.load(lake)
    assert log is not None
    files = log.files()["a"]
    kept = {count: len(whole_transactions(lake, files[:count], files, 61)) for count in range(6)}
    assert kept == {0: 0, 1: 1, 2: 1, 3: 1, 4: 4, 5: 5}


def test_a_segment_that_is_missing_stops_a_reader(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    log = BronzeLog.load(lake)
    assert log is not None
    remove(log, log.files()["a"][7:8])
    with pytest.raises(LakeRefused, match="bronze lacks segment 8"):
        BronzeIndex(lake).refresh(0)
    assert bronze.landed


def test_vacuum_takes_what_was_packed_away_and_what_no_log_names_after_two_days(tmp_path: Path) -> None:
    bronze, lake = landed(tmp_path)
    compact(lake)
    log = BronzeLog.load(lake)
    assert log is not None
    assert log.vacuum(dry_run=True) == []
    _older(tmp_path / SEGMENTS.path, hours=50)
    live = log.files()["a"][0].path
    young, old = (tmp_path / SEGMENTS.path / Path(live).parent / name for name in ("young.parquet", "old.parquet"))
    for orphan in (young, old):
        shutil.copy2(tmp_path / SEGMENTS.path / live, orphan)
    os.utime(young)
    log = BronzeLog.load(lake)
    assert log is not None
    assert len(log.vacuum(dry_run=True)) == 19 + 1
    assert old.exists()
    assert len(log.vacuum(dry_run=False)) == 19 + 1
    assert young.exists(), "a capture may be about to commit it"
    assert not old.exists()
    log.checkpoint()
    assert len(list((tmp_path / SEGMENTS.path).rglob("0*.parquet"))) == 3  # two of bronze, one checkpoint
    assert_holds(lake, bronze.landed)


def _older(table: Path, *, hours: float) -> None:
    """Commits and files, further back."""
    stamp = time.time() - hours * 3600
    for entry in table.rglob("*.*"):
        os.utime(entry, (stamp, stamp))
