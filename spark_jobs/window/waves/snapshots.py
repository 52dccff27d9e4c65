"""Apply's answers to snapshots, and the fate of tables under one.

In:  control/snapshots as Known, waves and versions of a window, window.held.
Out: events of control/snapshots; the first version of a filled table; states.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.shape.moves import still_given
from spark_jobs.window.standing.facts import empties_all, lacks_since
from spark_jobs.window.standing.standings import (
    after,
    hold,
    meet,
    meet_always,
    note,
    standing_of,
)
from spark_jobs.window.waves import shards
from spark_jobs.window.waves.ends import EARLY
from spark_jobs.window.waves.told import answer, as_refused, told_of
from spark_jobs.window.window import Window
from tidegate import tables
from tidegate.failpoint import failpoint
from tidegate.lake.rebuild.rebuild_lake import OnlyTables
from tidegate.remedy import Needs
from tidegate.schema.follow.kinds import ddl_kinds
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableKey
from tidegate.snapshot.waves import EndedWave
from tidegate.standing import snapshots as rules
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused, RowsGone, ShardBegins, SnapshotLost, WaveBegins, Whole
from tidegate.standing.standing import Place, Standing
from tidegate.standing.step import is_in
from tidegate.table_names import Physical
from tidegate.tables import State

log = logging.getLogger(__name__)

_NAMED_MAX: Final = 8
_ID_DIGITS: Final = 8  # of a snapshot, as its other lines show it

_LEFT: Final = "the pipeline file no longer keeps the table"


def is_begun(app: Application, snapshot: str, physical: Physical, held: Standing) -> bool:
    """Whether a wave of the snapshot was taken, or due, before the table was held. Then the snapshot waits for the
    table's release.
    """
    opened = app.snapshots.opened(snapshot, physical)
    if opened is not None:
        return rules.held_since(held, opened.recorded_at)
    return app.snapshots.began(snapshot, physical) is not None


@dataclass(slots=True)
class Begun:
    """Events and versions, not in the lake yet, of tables that begin with a wave. fills: states are
    to be recorded, too.
    """

    opened: list[SnapshotEvent] = field(default_factory=list)
    made: list[TableVersion] = field(default_factory=list)
    fills: bool = False


def start(
    app: Application, window: Window, begun: Begun, wave: EndedWave, physical: Physical, made: Sequence[TableVersion]
) -> None:
    """Let a table begin anew at a wave's low mark, with these versions. made: empty if a killed
    window has made them.
    """
    if made:
        opened = answer(app, physical, EventKind.OPENED, wave)
        app.snapshots.take_in([opened])
        for version in made:
            app.histories[version.source].add([version])
        begun.opened.append(opened)
        begun.made += made
    begun.fills = True
    _fill(app, window, app.names.logical_name(*physical.pair), physical, wave)


def record_begun(app: Application, begun: Begun) -> None:
    """Record what start() noted of a wave's tables: one commit for all events, one for all
    versions, one for all states.

    The events come first, then the versions, then the states. After a kill, a table with a
    version is filled, and a table without one begins once more.
    """
    if begun.made:
        failpoint("apply_before_snapshot_version")
        app.snapshots.append(app.control, begun.opened)
        app.histories.written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in begun.made]))
        failpoint("apply_after_snapshot_version")
    if begun.fills:
        app.record_states({})


def _fill(app: Application, window: Window, name: str, physical: Physical, wave: EndedWave) -> None:
    """End the table's hold, whatever its cause was. A taker that waits for the table's older rows
    now waits for a snapshot of its own. Its history was forgotten before.
    """
    for shard in app.names.flows().get(name, ()):
        app.histories[shard.source].held.pop(shard.pair, None)
    window.taking.held.pop(name, None)
    if shards.is_shard(app, physical):  # the others' rows stay
        note(app, name, ShardBegins())
        return
    applied_ts = app.positions.applied(name)
    if not note(app, name, WaveBegins(wave.snapshot, wave.low_ts)).takers_lack:
        return
    for taker, taken in still_given(app, physical, applied_ts, wave.low_ts):
        line = f"{taker}: rows that it should get from {name} are gone: that table begins anew by a snapshot"
        meet_always(app, window, taker, RowsGone(line, Place.of(taken)))


def let_go(app: Application, window: Window) -> None:
    """Hold tables whose snapshot was cancelled or failed: they lack rows."""
    shards.let_shards_go(app)
    for name, state in app.states.of(State.SNAPSHOT):
        for physical in app.names.flows().get(name, ()):
            progress = app.snapshots.tables.get(TableKey(state.snapshot, *physical))
            if progress is not None and progress.state.is_over and progress.state is not SnapshotState.DONE:
                why = f"its snapshot is {progress.state}" + (f" ({progress.reason})" if progress.reason else "")
                meet(app, window, name, SnapshotLost(f"{name}: {why}, and rows are missing"))


def fails_meanwhile(app: Application, window: Window, waves: TakenWaves) -> None:
    """Fail snapshots under way because of the window's DDL, or because their tables are held."""
    _leave_takers(app, window)
    waves.answers.extend(_refused_earlier(app))
    waves.answers.extend(_of_lost_pasts(app))
    flows = app.names.flows()
    touched = {physical for name in window.tables for physical in flows.get(name, ())}
    for key, progress in app.snapshots.going.items():
        snapshot, physical = key.snapshot, key.physical
        begun = progress.low_ts is not None or app.snapshots.opened(snapshot, physical) is not None
        if not (begun or physical in touched) or physical.source not in app.histories:
            continue
        if not app.names.keeps(*physical):
            if begun and not isinstance(app.pipeline.tables, OnlyTables):
                waves.answers.append(told_of(app, snapshot, physical, EventKind.FAILED, _LEFT))
            continue
        name = app.names.logical_name(*physical.pair)
        held = _held_since(app, window, snapshot, physical)
        keeps_past = app.pipeline.tables.keeps_past(*app.names.pair(name))
        if held is not None and rules.fails(held, keeps_past=keeps_past):
            waves.answers.append(told_of(app, snapshot, physical, EventKind.FAILED, held.reason))
            continue
        if name not in window.tables:
            continue
        begun_ts = max(window.tables[name].after_ts, (progress.low_ts or 0))
        for version in app.histories[physical.source].versions(*physical.pair):
            if begun_ts < version.commit_ts <= window.cut_ts:
                _meet_ddl(app, window, waves, snapshot, version)


def _refused_earlier(app: Application) -> Iterator[SnapshotEvent]:
    """Refuse waves that were read before their table came to wait for rows, or was left. If the
    table waited for something else when their marks passed, no later window of it has these marks.
    A wave that is refused too early is only read twice.
    """
    for key, progress in app.snapshots.going.items():
        snapshot, physical = key.snapshot, key.physical
        state = app.states.get(app.names.logical_name(*physical.pair)) if progress.waiting else None
        if state is None or not rules.refuses_read(state, progress.read_at):
            continue
        what = "left" if state.state is State.LEFT else "held"
        refused = told_of(app, snapshot, physical, EventKind.REFUSED, f"its table is {what} since: {state.reason}")
        yield from (replace(refused, token=token) for token in progress.waiting)


def _of_lost_pasts(app: Application) -> Iterator[SnapshotEvent]:
    """Fail snapshots that were asked for before their table lost its past."""
    for key, progress in app.snapshots.going.items():
        state = app.states.get(app.names.logical_name(*key.physical.pair))
        if rules.loses_past(state, progress.asked_at, by_itself=progress.by_itself):
            yield told_of(app, key.snapshot, key.physical, EventKind.FAILED, rules.PAST_LOST)


def _held_since(app: Application, window: Window, snapshot: str, physical: Physical) -> Standing | None:
    """The hold of a table that began after the snapshot, in this window or before it; None without
    one.
    """
    name = app.names.logical_name(*physical.pair)
    if held := window.held.get(name):
        begun = app.snapshots.began(snapshot, physical) is not None
        return held if begun or app.snapshots.opened(snapshot, physical) is not None else None
    state = app.states.get(name)
    if state is None or state.state is not State.HELD or not is_begun(app, snapshot, physical, state):
        return None
    return state


def _leave_takers(app: Application, window: Window) -> None:
    """Hold the takers of a table that lacks rows: they lack them, too."""
    for move in list(window.moves):
        giver = move.old.physical
        lacks = move.giver != move.taker and (
            is_in(app.states.get(move.giver), State.SNAPSHOT) or lacks_since(app, giver, move.commit_ts - 1)
        )
        if shards.is_shard(app, giver):
            lacks = shards.lacks_rows(app, giver, move.commit_ts - 1)
        if lacks:
            window.taking.moves.remove(move)
            what = f"{move.taker}: {move.giver}, whose rows it takes at {move.new.file}:{move.new.pos}, lacks some"
            _lacks_too(app, window, move.taker, what, Place.of(move.new))


def _lacks_too(app: Application, window: Window, taker: str, what: str, place: Place) -> None:
    """Hold a table for rows. If it waits already, it now waits for rows as well: when it goes on,
    the giver's lack is no longer on record.
    """
    if is_in(standing_of(app, window, taker), State.HELD):
        meet_always(app, window, taker, RowsGone(what, place))
    else:
        hold(app, window, taker, Refused(Cause.NEEDS_ROWS, what, place, needs=Needs.ROWS))


def _meet_ddl(app: Application, window: Window, waves: TakenWaves, snapshot: str, version: TableVersion) -> None:
    physical = version.physical
    if empties_all(version) and not app.names.logical(*physical.pair).routed:
        waves.states.update(_whole(app, window, app.names.logical_name(*physical.pair)))
    reason = _over(app, physical, version)
    if reason:
        at = f"{reason} ({version.ddl[:120]})"
        waves.answers.append(told_of(app, snapshot, physical, EventKind.CANCELLED, at))


def _whole(app: Application, window: Window, name: str) -> dict[str, Standing]:
    standing = after(app, name, Whole(window.cut_ts))
    return {} if standing is None else {name: standing}


def _over(app: Application, physical: Physical, version: TableVersion) -> str:
    """Why a snapshot can't go on after a DDL."""
    if version.kind == "rename":
        return "the table was renamed; what has its rows now has another name"
    if version.status is VersionStatus.DROPPED:
        return "the table was dropped"
    if version.status.waits and shards.is_shard(app, physical):
        return "its rows changed without row events"
    before = app.histories[physical.source].version_at(*physical.pair, version.commit_ts - 1)
    if version.kind not in ("create", "truncate") and before is not None and "change_key" in ddl_kinds(before, version):
        return "the table has another key: begin from the start"
    return ""


def take_answers(
    app: Application, window: Window, waves: TakenWaves
) -> tuple[list[SnapshotEvent], dict[str, Standing]]:
    """This window's answers, taken into memory; and the new states of tables by its waves, whole
    tables included. It runs when the tables that left the window are known.
    """
    states = dict(waves.states)
    answers = list(waves.answers)
    for name, taken in waves.taken:
        held = window.held.get(name)
        if held is None:
            answers.append(taken)
        elif held.lacks_rows:  # it begins anew: without an answer here the reader would wait for ever
            answers.append(as_refused(taken, f"its table is held by the window that was to take it: {held.reason}"))
    known = app.snapshots
    known.take_in(answers)
    ended = list[SnapshotEvent]()
    for name, sweep in waves.sweeps:
        progress = known.tables.get(TableKey(sweep.snapshot, *sweep.physical))
        if (
            name in window.held
            or progress is None
            or (progress.state.is_over and progress.state is not SnapshotState.DONE)
        ):
            continue
        if progress.left or progress.waiting:
            ended.append(told_of(app, sweep.snapshot, sweep.physical, EventKind.FAILED, EARLY))
            continue
        if not shards.is_shard(app, sweep.physical):
            states |= _whole(app, window, name)
        if progress.state is not SnapshotState.DONE:
            ended.append(told_of(app, sweep.snapshot, sweep.physical, EventKind.DONE))
    known.take_in(ended)
    return [*answers, *ended], states


def record_answers(app: Application, answers: Sequence[SnapshotEvent]) -> None:
    """Record the answers before the cut. A killed window records them again, which changes nothing."""
    app.snapshots.append(app.control, answers)
    kept = app.pipeline.tables
    # A rebuild refuses the rows of all tables but one. That is no answer to the snapshots.
    heard = [
        answered
        for answered in answers
        if not isinstance(kept, OnlyTables) or kept.keeps(answered.database, answered.table)
    ]
    for line in _lines(heard):
        log.info("%s", line)


def _lines(answers: Iterable[SnapshotEvent]) -> list[str]:
    """Lines for people: one for all tables of a snapshot with the same end."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for event in answers:
        if event.event not in (EventKind.OPENED, EventKind.APPLIED):
            said = names.setdefault((event.snapshot, str(event.event), event.reason), [])
            said.append(f"{event.database}.{event.table}")
    return [_line(*key, tables) for key, tables in names.items()]


def _line(snapshot: str, end: str, reason: str, tables: list[str]) -> str:
    more = f" and {len(tables) - _NAMED_MAX} more" if len(tables) > _NAMED_MAX else ""
    why = f": {reason}" if reason else ""
    return f"snapshot {snapshot[:_ID_DIGITS]}: {end}: {', '.join(tables[:_NAMED_MAX])}{more}{why}"
