"""Which chunks leave bronze: those that no rebuild reads, and no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.opened import opened
from tests.unit.snapshot.test_contracts import chunk
from tidegate import tables
from tidegate.delta.properties import set_properties
from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, chunk_refs, claim_reader
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.progress.orphans import keep_rows, orphan_files, remove, vacuum_chunks

__all__ = ["opened"]  # a fixture

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=9)


def test_chunks_that_apply_did_not_take_go_and_those_of_a_rebuild_stay(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    writer = ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s"))
    first = SnapshotEvent("c" * 32, "p", "s", EventKind.REQUESTED, OLD, "d", "t")
    other = replace(first, snapshot="e" * 32)

    def landed(token: str, snapshot: str = "c" * 32, read_at: datetime = OLD, table: str = "t") -> Chunk:
        made = chunk(1, [(1, "a")])
        return replace(made, low_token=token * 32, snapshot=snapshot, read_at=read_at, table=table)

    writer.append([landed("a")])  # taken
    writer.append([landed("b")])  # refused
    writer.append([landed("c"), landed("c", table="u")])  # refused of one table, taken of the other
    writer.append([landed("d")])  # its reader died; the snapshot goes on
    writer.append([landed("f", "e" * 32)])  # its reader died; the snapshot is over
    writer.append([landed("1", "9" * 32)])  # a repair that nobody answered
    writer.append([landed("2", "e" * 32, NOW)])  # young
    events = [
        *(first, other, replace(other, event=EventKind.CANCELLED)),
        replace(first, event=EventKind.APPLIED, token="a" * 32, low_ts=5),
        replace(first, event=EventKind.REFUSED, token="b" * 32),
        replace(first, event=EventKind.REFUSED, token="c" * 32),
        replace(first, event=EventKind.APPLIED, token="c" * 32, table="u", low_ts=5),
    ]
    told = [replace(one, recorded_at=OLD + timedelta(seconds=at)) for at, one in enumerate(events)]
    control.append(lake, tables.SNAPSHOTS, [one.to_row() for one in told])
    remove(lake, orphan_files(lake, NOW))
    tokens = [letter * 32 for letter in "abcdf12"]
    assert {ref.chunk.low_token[0] for ref in chunk_refs(lake, "s", tokens)} == set("acd2")
    log = lake.log(tables.CHUNKS.path)
    assert log.state().configuration["delta.appendOnly"] == "true"
    assert not orphan_files(lake, NOW)
    set_properties(log, {"delta.appendOnly": "false"})  # as who was killed between both commits left it
    keep_rows(lake)
    assert log.state().configuration["delta.appendOnly"] == "true"
    assert vacuum_chunks(lake) == [], "readers of an older version are at work for some days"
    writer.append([landed("3")])
    assert len(chunk_refs(lake, "s", ["3" * 32])) == 1, "readers go on"


def test_a_wave_that_apply_took_whole_is_not_looked_into_again(tmp_path: Path, opened: list[str]) -> None:
    """They stay for rebuilds, and each run of maintain would read all that was ever landed."""
    lake = LakeFiles(str(tmp_path))
    writer = ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s"))
    first = SnapshotEvent("c" * 32, "p", "s", EventKind.REQUESTED, OLD, "d", "t")
    events = [first, replace(first, table="u")]
    for token in "ab":  # of `b` a table's chunks were landed, and the table had trouble then
        made = replace(chunk(1, [(1, "a")]), low_token=token * 32, snapshot="c" * 32, read_at=OLD)
        writer.append([made, replace(made, chunk=2)])
        writer.append([replace(made, table="u")])
        for table, chunks in (("t", 2), *([("u", 1)] if token == "a" else [])):
            wave = replace(first, event=EventKind.WAVE, token=token * 32, table=table, chunks=chunks)
            events += [wave, replace(wave, event=EventKind.APPLIED, chunks=0, low_ts=5)]
    events.append(replace(first, event=EventKind.CANCELLED, table="u"))
    told = [replace(one, recorded_at=OLD + timedelta(seconds=at)) for at, one in enumerate(events)]
    control.append(lake, tables.SNAPSHOTS, [one.to_row() for one in told])
    opened.clear()
    found = orphan_files(lake, NOW)
    assert len([path for path in opened if path.startswith(tables.CHUNKS.path)]) == 2, "those of b"
    remove(lake, found)
    left = [(ref.chunk.low_token[0], ref.chunk.table) for ref in chunk_refs(lake, "s", ["a" * 32, "b" * 32])]
    assert sorted(left) == [("a", "t"), ("a", "t"), ("a", "u"), ("b", "t"), ("b", "t")]


def test_chunks_that_apply_took_go_with_the_segments_that_a_rebuild_needs_with_them(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    writer = ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s"))
    first = SnapshotEvent("c" * 32, "p", "s", EventKind.REQUESTED, OLD, "d", "t")
    goes_on = replace(first, snapshot="e" * 32)
    events = [first, goes_on]
    for token, of, low_ts, told in (("a", first, 5, 1), ("b", first, 9, 1), ("d", first, 5, 2), ("f", goes_on, 5, 1)):
        writer.append([replace(chunk(1, [(1, "a")]), low_token=token * 32, snapshot=of.snapshot, read_at=OLD)])
        wave = replace(of, event=EventKind.WAVE, token=token * 32, chunks=told)  # of `d` not all was landed
        events += [wave, replace(wave, event=EventKind.APPLIED, chunks=0, low_ts=low_ts)]
    events.append(replace(first, event=EventKind.DONE))
    told_at = [replace(one, recorded_at=OLD + timedelta(seconds=at)) for at, one in enumerate(events)]
    control.append(lake, tables.SNAPSHOTS, [one.to_row() for one in told_at])

    def gone(begin_ts: int, keep_days: int) -> int:
        return len(orphan_files(lake, NOW, {"s": begin_ts}, keep_days))

    assert (gone(4, 7), gone(5, 7), gone(8, 7), gone(9, 7)) == (0, 2, 2, 3), "a rebuild begins behind a commit_ts"
    assert gone(9, 30) == 0, "as young as segments that are kept"
    remove(lake, orphan_files(lake, NOW, {"s": 8}, 7))
    tokens = [letter * 32 for letter in "abdf"]
    assert {ref.chunk.low_token[0] for ref in chunk_refs(lake, "s", tokens)} == set("bf")
