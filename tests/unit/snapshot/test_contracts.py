"""What readers and apply hand each other: chunks, marks, events, as they are written and read back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.errors import DecodeError, LakeUnavailable, Overtaken, StreamCorrupt
from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.chunk import Chunk, changes_of, packer, rows_of, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, chunk_refs, claim_reader
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress, progress
from tidegate.snapshot.watermark import Manifest, Mark, MarkKind
from tidegate.snapshot.waves import EndedWave, SeenMark, follow, refusals

NOW = datetime(2026, 2, 3, 23, 59, 59, 5, tzinfo=UTC)
TOKEN, OTHER = "a" * 32, "b" * 32
COLUMNS = (Column(1, "id", "int unsigned", nullable=False), Column(2, "_tg_x", "varchar(9)", charset="utf8mb4"))
VERSION = TableVersion("s", "d", "t", 3, 7, "b.1", 9, "alter", "", COLUMNS, (1,), "utf8mb4")


def chunk(number: int, told: list[tuple[int, str | None]], **cells: Any) -> Chunk:
    schema = schema_of(VERSION)
    batch = pa.record_batch([pa.array([row[n] for row in told], schema.types[n]) for n in (0, 1)], schema=schema)
    payload = to_payload([batch] if told else [], schema)
    made = Chunk(
        source="s",
        snapshot="c" * 32,
        database="d",
        table="t",
        wave=1,
        chunk=number,
        low_token=TOKEN,
        high_token=TOKEN,
        key_after=None,
        key_upto=("17", "x'27'"),
        rows=len(told),
        version=VERSION.version,
        shape=shape_of(schema),
        payload=payload.to_pybytes(),
        payload_bytes=payload.size,
        payload_crc32c=crc32c(memoryview(payload)),
        null_dates=0,
        server_id=1,
        server_uuid="A",
        read_at=NOW,
    )
    return replace(made, **cells)


def test_a_chunks_rows_are_upserts_of_its_low_watermark() -> None:
    (found,) = changes_of(chunk(1, [(1, "a"), (4_000_000_000, None)]), 99)
    assert found.to_pylist() == [
        {"_tg_op": 1, "_tg_commit_ts": 99, "_tg_seq": 0, "_tg_ordinal": 0, "id": 1, "~5f~tg_x": "a"},
        {"_tg_op": 1, "_tg_commit_ts": 99, "_tg_seq": 0, "_tg_ordinal": 1, "id": 4_000_000_000, "~5f~tg_x": None},
    ]
    assert changes_of(chunk(1, []), 99) == []


@pytest.mark.parametrize("is_local", [True, False])
def test_a_chunk_of_several_batches_counts_its_rows_through(is_local: bool) -> None:
    whole = rows_of(chunk(1, [(number, str(number)) for number in range(5)]))
    sink = pa.BufferOutputStream()
    with packer(sink, whole.schema, is_local=is_local) as writer:
        writer.write_table(whole, max_chunksize=2)
    payload = memoryview(sink.getvalue()).cast("B")
    made = chunk(1, [], rows=5, payload=payload, payload_bytes=len(payload), payload_crc32c=crc32c(payload))
    found = changes_of(made, 99)
    assert [batch.num_rows for batch in found] == [2, 2, 1]
    assert [row["_tg_ordinal"] for batch in found for row in batch.to_pylist()] == [0, 1, 2, 3, 4]
    assert [row["id"] for batch in found for row in batch.to_pylist()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("cells", [{"payload": b"x"}, {"payload_crc32c": 1}, {"rows": 3}, {"shape": "0" * 32}])
def test_a_chunk_that_isnt_what_was_landed_is_never_read(cells: dict[str, Any]) -> None:
    with pytest.raises(StreamCorrupt, match=r"s d\.t wave 1 chunk 1"):
        rows_of(chunk(1, [(1, "a"), (2, "b")], **cells))


def test_chunks_come_back_as_they_were_landed_by_their_waves_token(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    writer = ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s"))
    mine = [chunk(2, [(2, "b")], read_at=NOW + timedelta(seconds=1)), chunk(1, [(1, "a")])]  # across midnight
    writer.append(mine)
    writer.append([chunk(1, [(3, "c")], low_token=OTHER, wave=2, key_after=("17", "x'27'"), key_upto=None)])
    ChunkWriter(lake, "other", 1).append([chunk(1, [(4, "d")], source="other")])
    found = [ref.read(LakeFiles(str(tmp_path))) for ref in chunk_refs(lake, "s", [TOKEN])]
    assert found == list(reversed(mine))
    assert [rows_of(one).to_pylist()[0]["id"] for one in found] == [1, 2]
    assert len(chunk_refs(lake, "s", [TOKEN, OTHER])) == 3
    assert chunk_refs(lake, "s", []) == chunk_refs(lake, "nobody", [TOKEN]) == []
    theirs = DeltaTable(lake.uri(tables.CHUNKS.path)).to_pyarrow_table()
    assert sorted(theirs["payload"].to_pylist()) == sorted(
        [*(bytes(one.payload) for one in mine), *(bytes(chunk(1, [(n, t)]).payload) for n, t in ((3, "c"), (4, "d")))]
    )
    assert {field.name: str(field.type) for field in tables.CHUNKS.schema} == {
        field.name: str(field.type).replace("large_string", "string") for field in theirs.schema
    } | {"payload": "large_binary"}


def test_a_landing_whose_answer_was_lost_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path))
    writer = ChunkWriter(lake, "s", 1)
    real = DeltaLog.update

    def lost(self: DeltaLog, *given: Any, **more: Any) -> Any:
        real(self, *given, **more)
        raise LakeUnavailable("the answer was lost")

    monkeypatch.setattr(DeltaLog, "update", lost)
    with pytest.raises(LakeUnavailable):
        writer.append([chunk(1, [(1, "a")])])
    monkeypatch.setattr(DeltaLog, "update", real)
    writer.append([chunk(1, [(1, "a")])])
    writer.append([chunk(2, [(2, "b")])])
    assert [ref.chunk.chunk for ref in chunk_refs(lake, "s", [TOKEN])] == [1, 2]


def test_a_reader_that_was_overtaken_lands_nothing(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    first = ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s"))
    first.append([chunk(1, [(1, "a")])])
    ChunkWriter(lake, "s", claim_reader(ControlTables(lake), "s")).append([chunk(1, [(1, "a")], low_token=OTHER)])
    with pytest.raises(Overtaken, match="another snapshot reader of s"):
        first.append([chunk(2, [(2, "b")])])
    assert len(chunk_refs(lake, "s", [TOKEN])) == 1


def test_a_mark_reads_as_it_was_written_and_nothing_else_is_one() -> None:
    mark = Mark("c" * 32, 4, MarkKind.HIGH, TOKEN, (Manifest("d", "t\u00e4'\"", 3, 0xFFFFFFFF),))
    assert Mark.from_text(mark.to_text()) == mark
    assert mark.to_text().isascii()
    assert Mark.from_text("") is None
    for text in ("{}", "x", mark.to_text().replace("high", "higher"), "[1]"):
        with pytest.raises(DecodeError):
            Mark.from_text(text)


def seen(ts: int, kind: MarkKind, token: str, server: str = "A", tables: tuple[Manifest, ...] = ()) -> SeenMark:
    return SeenMark(ts, server, Mark("c" * 32, 1, kind, token, tables))


def test_a_wave_goes_from_its_low_mark_to_its_high_one_and_over_windows() -> None:
    table = (Manifest("d", "t", 1, 5),)
    first = follow((), [seen(10, MarkKind.LOW, TOKEN)])
    assert (first.open[TOKEN].low_ts, first.ended) == (10, [])
    second = follow(
        first.open.values(), [seen(20, MarkKind.HIGH, TOKEN, tables=table), seen(30, MarkKind.END, "", tables=table)]
    )
    (wave,) = second.ended
    assert (wave.low_ts, wave.high_ts, wave.after_ts, wave.tables, wave.refused) == (10, 20, 9, table, "")
    assert not second.open
    assert [(one.table, one.end_ts) for one in second.whole] == [("t", 30)]


@pytest.mark.parametrize(
    "marks",
    [
        [seen(20, MarkKind.HIGH, TOKEN)],
        [seen(10, MarkKind.LOW, OTHER), seen(20, MarkKind.HIGH, TOKEN)],
        [seen(10, MarkKind.LOW, TOKEN, "B"), seen(20, MarkKind.HIGH, TOKEN)],
        [seen(10, MarkKind.LOW, TOKEN), seen(15, MarkKind.HIGH, TOKEN), seen(20, MarkKind.HIGH, TOKEN)],
    ],
)
def test_a_wave_without_its_own_low_mark_on_the_same_server_is_refused(marks: list[SeenMark]) -> None:
    wave = follow((), marks).ended[-1]
    told = replace(wave, tables=(Manifest("d", "t"),))
    assert wave.refused
    assert refusals(told, [], ()) == {("d", "t"): wave.refused}


def test_the_marks_of_two_lakes_at_one_server_end_each_ones_own_wave() -> None:
    low, high = MarkKind.LOW, MarkKind.HIGH
    found = follow((), [seen(10, low, TOKEN), seen(15, low, OTHER), seen(20, high, TOKEN), seen(25, high, OTHER)])
    assert [(wave.token, wave.low_ts, wave.refused) for wave in found.ended] == [(TOKEN, 10, ""), (OTHER, 15, "")]
    assert not found.open


def test_a_table_is_refused_alone_and_for_a_reason() -> None:
    good = chunk(1, [(1, "a")])
    wave = EndedWave("c" * 32, 1, TOKEN, 10, 20, "A", (Manifest("d", "t", 1, good.payload_crc32c), Manifest("d", "u")))
    assert refusals(wave, [good], ()) == {}
    assert list(refusals(wave, [good], {("d", "u")})) == [("d", "u")]
    assert "DDL" in refusals(wave, [good], {("d", "t")})["d", "t"]
    assert "0 chunks" in refusals(wave, [], ())["d", "t"]
    assert "others" in refusals(wave, [chunk(1, [(2, "b")])], ())["d", "t"]
    assert "another server" in refusals(wave, [replace(good, server_uuid="B")], ())["d", "t"]


def told(*given: tuple[EventKind, dict[str, Any]], shuffled: bool = False) -> TableProgress:
    made = [
        SnapshotEvent("c", "p", "s", kind, NOW + timedelta(seconds=n), **({"database": "d", "table": "t"} | cells))
        for n, (kind, cells) in enumerate(given)
    ]
    again = [SnapshotEvent.from_row(one.to_row()) for one in made]
    assert again == made
    return progress(reversed(again) if shuffled else again)["c", "s", "d", "t"]


def wave(number: int, *spans: Span) -> tuple[EventKind, dict[str, Any]]:
    return EventKind.WAVE, {"wave": number, "token": f"t{number}", "spans": spans, "rows": 10, "bytes": 99}


ASKED = (EventKind.REQUESTED, {"options": {"where": "a > 1"}})
WHOLE_SNAPSHOT = {"database": "", "table": ""}


def answer(kind: EventKind, number: int) -> tuple[EventKind, dict[str, Any]]:
    return kind, {"token": f"t{number}", "wave": number, "low_ts": number * 10, "reason": "why" * (kind == "refused")}


def test_what_is_left_is_what_no_wave_that_counts_has_read() -> None:
    ranges = (EventKind.RANGES, {"spans": (Span(None, ("5",)), Span(("5",), None))})
    first = told(ASKED, ranges, wave(1, Span(None, ("2",)), Span(("5",), None)))
    assert (first.left, first.waiting, first.state) == ((Span(("2",), ("5",)),), ("t1",), SnapshotState.RUNNING)
    both = (ASKED, ranges, wave(1, Span(None, ("2",)), Span(("5",), None)), wave(2, Span(("2",), ("5",))))
    second = told(*both, answer(EventKind.REFUSED, 1), answer(EventKind.APPLIED, 2), shuffled=True)
    assert second.left == (Span(None, ("2",)), Span(("5",), None))
    assert (second.waiting, second.low_ts, second.rows, second.refused) == ((), 20, 10, ("why",))
    assert not second.is_read
    again = (*both, answer(EventKind.REFUSED, 1), answer(EventKind.APPLIED, 2))
    third = told(*again, wave(3, Span(None, ("1",)), Span(("5",), None)), wave(4, Span(("1",), ("2",))))
    assert (third.left, third.waiting, third.is_read) == ((), ("t3", "t4"), False)
    assert told(ASKED, wave(1, Span()), answer(EventKind.APPLIED, 1)).is_read


def test_a_wave_that_apply_passed_over_is_read_again() -> None:
    """Its high mark was lost with its server's log: no answer ever comes."""
    waves = (ASKED, wave(1, Span(None, ("2",))), wave(2, Span(("2",), None)))
    assert told(*waves).waiting == ("t1", "t2"), "nothing is known yet"
    found = told(*waves, answer(EventKind.APPLIED, 2), shuffled=True)
    assert (found.waiting, found.left, found.rows) == ((), (Span(None, ("2",)),), 10)
    late = told(*waves, answer(EventKind.APPLIED, 2), answer(EventKind.APPLIED, 1))
    assert late.is_read


def test_a_person_stops_and_goes_on_and_what_is_over_stays_over() -> None:
    paused = (ASKED, wave(1, Span(None, ("2",))), (EventKind.PAUSED, WHOLE_SNAPSHOT))
    assert told(*paused).state is SnapshotState.PAUSED
    assert told(*paused, wave(2, Span(("2",), ("5",)))).state is SnapshotState.PAUSED
    read = (*paused, wave(2, Span(("2",), None)))
    assert told(*read).state is SnapshotState.RUNNING, "all is read: a pause that stays would never end"
    assert told(*read, answer(EventKind.REFUSED, 2)).state is SnapshotState.PAUSED, "it would be read again"
    ended = (ASKED, wave(1, Span()), answer(EventKind.APPLIED, 1), (EventKind.ENDED, {}))
    assert told(*ended, (EventKind.PAUSED, {})).state is SnapshotState.ENDED
    assert told(*paused, (EventKind.RESUMED, {})).state is SnapshotState.RUNNING
    before_its_turn = (ASKED, (EventKind.PAUSED, {}), (EventKind.RESUMED, {}))
    assert told(*before_its_turn).state is SnapshotState.REQUESTED, "a reader has still to divide it"
    assert told(*before_its_turn, (EventKind.RANGES, {})).state is SnapshotState.RUNNING
    assert told(*paused, (EventKind.CANCELLED, {}), (EventKind.RESUMED, {})).state is SnapshotState.CANCELLED
    assert told(ASKED, (EventKind.ENDED, {}), (EventKind.DONE, {})).state.is_over
    assert told(ASKED).options == {"where": "a > 1"}


def test_events_stand_in_control_as_they_were_told(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    event = SnapshotEvent("c", "p", "s", EventKind.WAVE, NOW, "d", "t", wave=1, spans=(Span(None, ("'a'",)),))
    control.append(lake, tables.SNAPSHOTS, [event.to_row()])
    (row,) = control.read(lake, tables.SNAPSHOTS).to_pylist()
    assert SnapshotEvent.from_row(row) == event
