"""A pipeline file's section `snapshot` as the reader takes it, and the line that says how far a source is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidegate.cli.snapshot_lines import progress_lines
from tidegate.config import Snapshot, parse
from tidegate.errors import ConfigError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import to_row
from tidegate.limits import SNAPSHOT_WAITING_SECONDS, SNAPSHOT_WAVE_BYTES_DEFAULT, SNAPSHOT_WAVE_SECONDS_DEFAULT
from tidegate.schema.model.types import ZeroDates
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.load_guard import LoadBounds
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate.snapshot.progress.held_back import held_back
from tidegate.snapshot.reader import ReaderSettings
from tidegate.snapshot.work import Looks, newest, progress_line, settings_of, where_others_are
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import TABLE_STATES, State

BASE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['a.*']}\n"


def test_an_empty_section_is_the_readers_own_settings() -> None:
    assert settings_of(parse(BASE, where="p.yaml").snapshot) == ReaderSettings()


def test_every_key_reaches_the_reader() -> None:
    text = "snapshot: {parallel: 7, chunk_rows: 500, chunk_bytes: 70000, bytes_per_second: 8, "
    text += "threads_running_max: 9, history_list_max: 10, replica_lag_seconds_max: 11}"
    found = settings_of(parse(BASE + text, where="p.yaml").snapshot)
    assert (found.parallel, found.load, found.bytes_per_second) == (7, LoadBounds(9, 10, 11), 8)
    assert (found.chunk.rows, found.chunk.bytes) == (500, 65536), "a slow reader's chunks are small"
    assert settings_of(Snapshot(chunk_bytes=70000)).chunk.bytes == 70000
    assert settings_of(Snapshot(), ZeroDates.ERROR).zero_dates is ZeroDates.ERROR


def test_a_wave_of_a_slow_reader_is_no_more_than_it_may_read_in_its_time() -> None:
    for rate in (100_000, 1_000_000, 5_000_000):
        found = settings_of(Snapshot(bytes_per_second=rate))
        assert found.wave_bytes == rate * SNAPSHOT_WAVE_SECONDS_DEFAULT
        assert found.chunk.bytes * found.parallel <= found.wave_bytes
    assert settings_of(Snapshot(bytes_per_second=10**9)).wave_bytes == SNAPSHOT_WAVE_BYTES_DEFAULT


@pytest.mark.parametrize(
    ("key", "value"),
    [("parallel", 0), ("parallel", 65), ("chunk_rows", 1), ("chunk_bytes", 1), ("bytes_per_second", -1), ("waves", 3)],
)
def test_a_value_out_of_bounds_is_refused_with_its_line(key: str, value: int) -> None:
    with pytest.raises(ConfigError, match=rf"p\.yaml:5: snapshot\.{key}: "):
        parse(f"{BASE}snapshot: {{{key}: {value}}}", where="p.yaml")


def told(
    table: str, state: SnapshotState, rows: int, waiting: tuple[str, ...] = (), snapshot: str = "1"
) -> TableProgress:
    return TableProgress(snapshot, "s", "d", table, state, (WHOLE,), waiting, rows=rows)


def test_a_line_says_tables_rows_rate_and_share() -> None:
    tables = [told("a", SnapshotState.ENDED, 1000), told("b", SnapshotState.RUNNING, 500, ("w1", "w2"))]
    line = progress_line("s", tables, {("d", "a"): 1000, ("d", "b"): 2000}, 250.4)
    assert line == (
        "s: 1 of 2 tables are read and marked, 1,500 rows, 250 rows/s, about 50 %, 2 waves wait for capture and apply"
    )
    assert "%" not in progress_line("s", tables, {("d", "a"): 1000, ("d", "b"): None}, None), "nobody knows"
    assert "about 99 %" in progress_line("s", tables, {("d", "a"): 10, ("d", "b"): 10}, None), "an estimate"


def test_who_waits_is_told_where_capture_and_apply_are(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert where_others_are(lake, "s") == "capture is not begun, apply not begun"
    line = progress_line("s", [told("b", SnapshotState.RUNNING, 5, ("w1",))], {}, None, "capture is not begun")
    assert line.endswith("1 wave waits for capture and apply (capture is not begun)")


READ_AT = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


def shown(*tables: TableProgress, tables_max: int | None = None) -> list[str]:
    return progress_lines(tables, {}, {}, {}, tables_max, now=READ_AT.timestamp())


def test_what_is_read_and_not_yet_applied_has_no_seconds_left() -> None:
    began = READ_AT - timedelta(seconds=10)
    going = replace(told("a", SnapshotState.RUNNING, 970), estimate=1000, waves=1, began_at=began, read_at=READ_AT)
    assert shown(going)[1].split()[2:7] == ["running", "970", "97", "%", "97"]
    assert "0 s" in shown(going)[1]
    read_all = replace(going, left=(), waiting=("w1",))
    for one in (read_all, replace(read_all, state=SnapshotState.ENDED)):
        assert "all read" in shown(one)[1], "an estimate is no share of what is read"
        assert "being applied" in shown(one)[1]
    total = shown(read_all, replace(read_all, table="b"))[3]
    assert "2 tables that are open" in total
    assert "being applied" in total
    assert " s " not in shown(replace(going, state=SnapshotState.PAUSED))[1], "nobody reads it"


def test_a_reader_that_slows_down_has_more_left() -> None:
    fast = replace(
        told("a", SnapshotState.RUNNING, 100),
        estimate=1000,
        waves=1,
        began_at=READ_AT - timedelta(seconds=61),
        read_at=READ_AT - timedelta(seconds=60),
    )
    assert "539 s" in shown(fast)[1], "100 rows in a second, and none in the minute since"
    assert "544 s" in shown(fast, replace(fast, table="b"))[3]


def test_a_screen_shows_what_is_at_work_and_counts_the_others() -> None:
    done = [told(f"d{n}", SnapshotState.DONE, 1) for n in range(30)]
    lines = shown(*done, told("z", SnapshotState.RUNNING, 1), told("y", SnapshotState.FAILED, 0), tables_max=3)
    assert [line.split()[1] for line in lines[1:4]] == ["d.y", "d.z", "d.d0"]
    assert lines[4] == "and 29 more: 29 done"
    assert len(shown(*done)) == 31


def test_the_newest_snapshot_of_each_table_is_shown() -> None:
    found = newest(
        [
            told("b", SnapshotState.FAILED, 1),
            told("a", SnapshotState.DONE, 1),
            told("b", SnapshotState.DONE, 2, snapshot="2"),
        ]
    )
    assert [(one.table, one.state) for one in found] == [("a", "done"), ("b", "done")]


def test_looks_that_take_long_are_seldom() -> None:
    """Of ever more tables each look takes longer, and there are ever more changes to look at."""
    looks = Looks(0.0)
    assert not looks.are_due(SNAPSHOT_WAITING_SECONDS)
    assert looks.are_due(SNAPSHOT_WAITING_SECONDS + 0.1)
    looks.took(0.01, 10.0)
    assert looks.are_due(10.1 + SNAPSHOT_WAITING_SECONDS), "of few tables as often as before"
    for seconds in (0.3, 5.0):
        looks.took(seconds, 20.0)
        assert not looks.are_due(20.0 + 20 * seconds), "a small share of the time, of however many tables"
        assert looks.are_due(20.0 + 40 * seconds)


def test_waves_that_a_hold_keeps_are_told_with_what_ends_it(tmp_path: Path) -> None:
    lake, waits = LakeFiles(str(tmp_path)), told("b", SnapshotState.RUNNING, 5, ("w1",))
    pipeline = parse(BASE, where="p.yaml")
    assert held_back(pipeline, lake, [waits]) == {}
    for cause in (Cause.NEEDS_ROWS, Cause.MISMATCH):
        held = Standing(State.HELD, "its columns", cause)
        control.append(lake, TABLE_STATES, [to_row(held, "p", "d.b", datetime.now(UTC))])
        lines = held_back(pipeline, lake, [waits])
        assert bool(lines) == (cause is Cause.MISMATCH), "its first wave ends the hold of a table that needs rows"
    assert held_back(pipeline, lake, [replace(waits, waiting=())]) == {}
    assert "tidegate release p d.b" in lines["s", ("d", "b")]
    shown_lines = " ".join(progress_lines([waits], {}, {"s": "apply is at 1 s ago"}, lines))
    assert "d.b of s is held, and its waves wait for the end of that" in shown_lines
    assert "for capture and apply" not in shown_lines
    assert "for capture and apply" not in progress_line("s", [waits], {}, None, held=lines)
