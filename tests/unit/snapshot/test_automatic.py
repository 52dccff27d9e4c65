"""Which tables are snapshotted by themselves, and when; and when a reader is started for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from tests.support.opened import opened
from tests.support.segments import segment
from tidegate import tables
from tidegate.config import Pipeline, parse
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.figures.status import table_statuses
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import to_row
from tidegate.limits import SNAPSHOT_AGAIN_SECONDS_MAX, SNAPSHOT_SILENT_SECONDS
from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress import automatic, wakes
from tidegate.snapshot.progress.automatic import Outlook, due, outlooks, seen, waiting
from tidegate.snapshot.progress.events import BY_ITSELF, EventKind, SnapshotEvent, SnapshotState, TableProgress
from tidegate.snapshot.progress.requests import request, told
from tidegate.snapshot.progress.wakes import WaitingTables
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import SegmentFlag, State

__all__ = ["opened"]  # a fixture

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TABLE = Physical("s", "d", "t")


def pipeline(more: str = "", section: str = "") -> Pipeline:
    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\n"
    return parse(f"{text}tables: {{include: ['d.*']{more}}}\n{section}", where="p.yaml")


def ended(state: SnapshotState, minutes: float, *, by_hand: bool = False, asked: bool = False) -> TableProgress:
    """A snapshot that ended so long ago. asked: by a person."""
    at, options = NOW - timedelta(minutes=minutes), {} if asked else {BY_ITSELF: True}
    told = {"reason": "it broke", "by_hand": by_hand, "told_at": at, "options": options}
    return TableProgress("1", *TABLE, state, (WHOLE,), **told)


def outlook(*past: TableProgress, of: Pipeline | None = None) -> Outlook:
    return outlooks(of or pipeline(), {"d.t": (TABLE,)}, past, NOW)["d.t"]


def test_a_table_that_waits_is_due_at_once() -> None:
    assert outlook() == Outlook((TABLE,), NOW)


@pytest.mark.parametrize("state", [SnapshotState.FAILED, SnapshotState.CANCELLED, SnapshotState.DONE])
def test_a_snapshot_that_did_not_end_the_wait_is_begun_again_ever_more_seldom(state: SnapshotState) -> None:
    pauses = []
    for tries in range(1, 9):
        found = outlook(*[ended(state, 5)] * tries)
        assert found.due_at is not None
        assert found.tries == tries
        pauses.append((found.due_at - NOW).total_seconds() + 300)
    assert pauses[:3] == [60, 240, 960]
    assert pauses[-1] == SNAPSHOT_AGAIN_SECONDS_MAX
    assert outlook(*[ended(state, 60 * 25)] * 5).is_due(NOW), "what was a day ago doesn't count"


def test_a_failure_by_a_clock_that_was_years_ahead_puts_no_later_snapshot_off() -> None:
    years, minutes = ended(SnapshotState.FAILED, -60 * 24 * 800), ended(SnapshotState.FAILED, -10)
    assert outlook(years).is_due(NOW)
    assert outlook(years, ended(SnapshotState.FAILED, 5)).tries == 1
    assert outlook(minutes).due_at == NOW + timedelta(minutes=11), "clocks of two machines differ a little"


def test_snapshots_of_a_whole_table_that_a_person_had_read_do_not_put_off_the_one_that_it_needs_now() -> None:
    well = [ended(SnapshotState.DONE, minutes, asked=True) for minutes in (50, 40, 30, 20, 10, 1)]
    assert outlook(*well) == Outlook((TABLE,), NOW)
    once = outlook(*well, ended(SnapshotState.DONE, 5), *well)
    assert (once.tries, once.due_at) == (1, NOW - timedelta(minutes=4)), "from where that one ended"
    assert outlook(*well, ended(SnapshotState.FAILED, 0.5, asked=True)).tries == 1, "in vain, whoever asked"


def test_who_is_not_asked_for_says_why() -> None:
    assert outlook(ended(SnapshotState.RUNNING, 0)).under_way == "running"
    assert outlook(ended(SnapshotState.PAUSED, 0)).due_at is None, "a person paused it"
    assert "cancelled by a person" in outlook(ended(SnapshotState.CANCELLED, 900, by_hand=True)).why
    assert "manual" in outlook(of=pipeline(section="snapshot: {mode: manual}")).why
    other, third = Physical("s", "d", "u"), Physical("s", "d", "v")
    both = pipeline(", routes: [{match: 'd.[tuv]', to: d.all}]")
    found = outlooks(both, {"d.all": (TABLE, other, third)}, (ended(SnapshotState.RUNNING, 0),), NOW)["d.all"]
    assert (found.due_at, found.physical) == (NOW, (other, third)), "each shard waits for itself"


def state_of(lake: LakeFiles, table: str, reason: str, cause: Cause, needs: Needs = Needs.NOTHING) -> None:
    state = Standing(State.HELD, reason, cause, 20, needs=needs)
    control.append(lake, tables.TABLE_STATES, [to_row(state, "p", table, datetime.now(UTC))])


def version(lake: LakeFiles, table: str, status: VersionStatus) -> None:
    found = TableVersion("s", "d", table, 1, 5, "f", 4, "baseline", "", (), (), "utf8mb4", status=status)
    control.append(lake, tables.SCHEMA_HISTORY, [found.to_row()])


def event(lake: LakeFiles, kind: EventKind, reason: str = "", *, table: str = "t") -> None:
    (snapshot,) = {one.snapshot for one in told(lake, "p") if one.table == table}
    found = SnapshotEvent(snapshot, "p", "s", kind, datetime.now(UTC), "d", table, reason=reason)
    control.append(lake, tables.SNAPSHOTS, [found.to_row()])


def test_tables_wait_by_their_state_and_on_a_first_start_by_their_version(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for table, status in {
        "full": VersionStatus.NEEDS_SNAPSHOT,
        "new": VersionStatus.ACTIVE,
        "odd": VersionStatus.ACTIVE,
        "gone": VersionStatus.DROPPED,
        "asks": VersionStatus.ACTIVE,
    }.items():
        version(lake, table, status)
    state_of(lake, "d.odd", "a fault", Cause.FAULT, Needs.ROWS)
    state_of(lake, "d.gone", "its rows are gone", Cause.NEEDS_ROWS)
    state_of(lake, "d.asks", "may it?", Cause.DDL_ASKS)
    state_of(lake, "d.unknown", "no columns", Cause.MISMATCH, Needs.COLUMNS)
    state_of(lake, "elsewhere.t", "no columns", Cause.MISMATCH, Needs.COLUMNS)
    found = waiting(pipeline(), lake)
    assert found.pop("elsewhere.t") == (), "the pipeline file doesn't keep it"
    assert found == {name: (("s", *name.split(".")),) for name in ("d.full", "d.odd", "d.unknown")}
    assert [table for _, _, table in due(pipeline(), found, ())] == ["full", "odd", "unknown"]
    assert due(pipeline(section="snapshot: {mode: manual}"), found, ()) == []
    text = "sources: {s: {flavour: ticdc, path: x, protocol: csv, time_zone: UTC}}"
    other = parse(f"pipeline: p\nlake: {{path: x}}\n{text}\ntables: {{include: ['d.*']}}\n", where="p.yaml")
    assert not any(waiting(other, lake).values()), "nobody reads a snapshot of a changefeed's tables"


def test_a_reader_is_started_once_for_what_waits_and_again_when_nothing_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, clock = LakeFiles(str(tmp_path)), [datetime.now(UTC)]
    monkeypatch.setattr(wakes, "_now", lambda: clock[0])

    def later(seconds: float) -> None:
        clock[0] += timedelta(seconds=seconds)

    looks = WaitingTables(pipeline(), None)
    looks.open(str(tmp_path), {})
    assert looks.look() is None, "there is no lake yet"
    version(lake, "t", VersionStatus.NEEDS_SNAPSHOT)
    assert looks.look() == {"tables": ["d.t"]}
    assert looks.look() is None
    again = WaitingTables(pipeline(), looks.kept)  # another triggerer
    again.open(str(tmp_path), {})
    assert again.look() is None
    later(SNAPSHOT_SILENT_SECONDS + 1)
    assert again.look() == {"tables": ["d.t"]}
    later(SNAPSHOT_SILENT_SECONDS + 1)
    assert again.look() is None, "twice as long"
    later(SNAPSHOT_SILENT_SECONDS + 1)
    assert again.look() == {"tables": ["d.t"]}
    request(lake, "p", [TABLE])
    forgot = again.kept | {"tables": [], "at": 0.0, "pause": SNAPSHOT_SILENT_SECONDS}
    clock[0], again = datetime.now(UTC), WaitingTables(pipeline(), forgot)
    again.open(str(tmp_path), {})
    assert again.look() is None, "somebody has asked, and reads"
    later(SNAPSHOT_SILENT_SECONDS + 1)
    assert again.look() == {"tables": ["d.t"]}, "... or did: nothing is said of it"
    event(lake, EventKind.PAUSED)
    later(4000)
    assert again.look() is None, "a person paused it"
    event(lake, EventKind.CANCELLED)
    later(4000)
    assert again.look() is None, "a person doesn't want it"


def test_a_reader_is_started_once_when_the_pipeline_file_keeps_other_tables(tmp_path: Path) -> None:
    """Of a quiet one that joins nothing in the lake tells: who runs asks its server."""
    lake = LakeFiles(str(tmp_path))
    version(lake, "t", VersionStatus.ACTIVE)

    def looks(of: Pipeline, kept: dict[str, Any] | None) -> WaitingTables:
        found = WaitingTables(of, kept)
        found.open(str(tmp_path), {})
        return found

    first = looks(pipeline(), None)
    assert first.look() == {"tables": []}
    assert first.look() is None
    assert looks(pipeline(), first.kept).look() is None, "another triggerer"
    wider = looks(pipeline(", exclude: ['d.u']"), first.kept)
    assert wider.look() == {"tables": []}
    assert wider.look() is None


def test_by_hand_a_reader_is_started_for_what_somebody_asked_for_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's button asks, and reads nothing itself."""
    lake, clock = LakeFiles(str(tmp_path)), [datetime.now(UTC)]
    monkeypatch.setattr(wakes, "_now", lambda: clock[0])
    version(lake, "t", VersionStatus.NEEDS_SNAPSHOT)
    looks = WaitingTables(pipeline(section="snapshot: {mode: manual}"), None)
    looks.open(str(tmp_path), {})
    assert looks.look() is None, "it waits, and nobody has asked"
    request(lake, "p", [TABLE])
    clock[0] += timedelta(seconds=SNAPSHOT_SILENT_SECONDS + 1)
    assert looks.look() == {"tables": ["d.t"]}


def test_a_look_reads_of_control_tables_what_came_since(tmp_path: Path, opened: list[str]) -> None:
    lake = LakeFiles(str(tmp_path))
    version(lake, "t", VersionStatus.NEEDS_SNAPSHOT)
    request(lake, "p", [TABLE])
    looks = WaitingTables(pipeline(), None)
    looks.open(str(tmp_path), {})
    looks.look()
    for _ in range(3):  # as a reader that is at work
        event(lake, EventKind.RANGES)
        opened.clear()
        looks.look()
        assert [path.rpartition("/")[0] for path in opened] == [tables.SNAPSHOTS.path]


def test_a_reader_is_started_when_another_server_is_captured_than_has_the_end_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, clock = LakeFiles(str(tmp_path)), [datetime.now(UTC)]
    monkeypatch.setattr(wakes, "_now", lambda: clock[0])
    version(lake, "t", VersionStatus.NEEDS_SNAPSHOT)
    request(lake, "p", [TABLE])
    looks = WaitingTables(pipeline(), None)
    looks.open(str(tmp_path), {})
    looks.look()
    (one,) = told(lake, "p")
    end = SnapshotEvent(one.snapshot, "p", "s", EventKind.ENDED, datetime.now(UTC), "d", "t")
    control.append(lake, tables.SNAPSHOTS, [replace(end, options={"server": (1, "u")}).to_row()])
    here = replace(segment(1), source="s", server_id=1, server_uuid="u", flags=SegmentFlag(0))
    Bronze(lake, "s").append([here])
    clock[0] += timedelta(hours=1)
    assert looks.look() is None, "apply is late"
    Bronze(lake, "s").append([replace(segment(2), source="s", server_id=2, flags=SegmentFlag(0))])
    clock[0] += timedelta(seconds=SNAPSHOT_SILENT_SECONDS + 1)
    assert looks.look() == {"tables": ["d.t"]}


def _later(seconds: float) -> type[datetime]:
    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Later:
            return super().now(tz) + timedelta(seconds=seconds)

    return Later


def test_a_person_sees_what_needs_nobody_as_waiting_for_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    version(lake, "t", VersionStatus.ACTIVE)
    state_of(lake, "d.t", "its rows", Cause.NEEDS_ROWS)

    def look(of: Pipeline) -> tuple[State, str, str]:
        (found,) = seen(of, lake, table_statuses(lake))
        return found.state, found.reason, found.way_out

    state, _, way = look(pipeline(section="snapshot: {mode: manual}"))
    assert (state, "by itself" in way) == (State.HELD, False)
    assert "snapshot.mode is manual; a snapshot reads its rows: by tidegate snapshot start p d.t; or" in way
    assert "begins by itself" in look(pipeline())[1]
    request(lake, "p", [TABLE])
    state, reason, way = look(pipeline())
    assert (state, way, "its snapshot is requested" in reason) == (State.SNAPSHOT, "", True)
    for seconds, expected in ((SNAPSHOT_SILENT_SECONDS + 30, State.SNAPSHOT), (200, State.HELD)):
        with monkeypatch.context() as later:
            later.setattr(automatic, "datetime", _later(seconds))
            state, _, way = look(pipeline())
            assert state is expected, "a reader is woken after a minute, and takes its time to start"
            assert ("`tidegate snapshot run p` reads, or says why not" in way) == (state is State.HELD)
    event(lake, EventKind.FAILED, "it broke")
    state, _, way = look(pipeline())
    assert state is State.HELD
    assert way.startswith("after 1 snapshot within a day (it broke) the next one begins by itself in ")
    assert "tidegate snapshot start p d.t" in way
    request(lake, "p", [TABLE])
    (last,) = [one.snapshot for one in told(lake, "p") if not one.state.is_over]
    cancelled = SnapshotEvent(last, "p", "s", EventKind.CANCELLED, datetime.now(UTC), "d", "t")
    control.append(lake, tables.SNAPSHOTS, [cancelled.to_row()])
    state, _, way = look(pipeline())
    assert (state, "by itself" in way) == (State.HELD, False)
    assert way.startswith(
        "its snapshot was cancelled by a person; a snapshot reads its rows: by tidegate snapshot start"
    )
