"""The sources of apply: a changed pipeline file counts from the next start on, and a stalled source
is left behind.

In:  the pipeline file's selection, control/followed, schema histories, bronze and silver.
Out: changes in control/followed, and the resulting events of control/table_states.

tidegate/merge/follow.py has the rules, and explains why a cut is complete by them. A running
application with an older pipeline file does no harm: its cuts are right for the tables it follows.
Tables that join are judged when an application with the new file starts, by its cut.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from spark_jobs.window.application import Application
from spark_jobs.window.life.clusters import check_clusters
from spark_jobs.window.standing.facts import has_silver
from spark_jobs.window.standing.standings import after, hold, hold_for_error, meet, note
from spark_jobs.window.waves.shards import is_left_out, leave_out
from spark_jobs.window.window import TableWindow, Window
from tidegate import tables
from tidegate.commit_ts import compose, physical_ms
from tidegate.config import Policy
from tidegate.errors import Overtaken
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.lake.standing.followed import (
    CATCHING_UP,
    FOLLOWED,
    FollowedChange,
    Selection,
    captures_into,
    check_own,
    rows_of,
)
from tidegate.merge import follow as rules
from tidegate.merge.follow import FollowVerdict, LeftAt
from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import UNFOLLOWED
from tidegate.standing.causes import Cause
from tidegate.standing.events import FlowsIn, Refused, Selected, SourceMeets, SourceStalls
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State

log = logging.getLogger(__name__)

_FOREVER: Final = (1 << 63) - 1
_ONE: Final = "run one apply of a pipeline at a time; this one begins again"


def take_up_selection(app: Application) -> None:
    """Compare the pipeline file with the selection followed until now. Raises LakeRefused in
    another pipeline's lake, ConfigError where the Pumps of a TiDB can't be as the file has them.
    """
    known = app.followed
    check_own(app.lake, app.pipeline.pipeline, known.pipeline or captures_into(app.lake))
    check_clusters(app)
    _show(app)
    now = Selection.of(app.pipeline)
    if known.selection is not None and known.selection.text == now.text:
        return
    changes = [] if known.selection is None else _changes(app, known.selection, now)
    _mark_unfollowed(app, changes)
    joins = {change.source: change.commit_ts for change in changes if change.state == CATCHING_UP}
    leave_out(app, [change.physical for change in changes if change.state == State.SNAPSHOT], joins)
    _record(app, changes, now)
    _show(app)
    app.reload()


def _mark_unfollowed(app: Application, changes: Sequence[FollowedChange]) -> None:
    """Mark tables that the file leaves out while a statement about them waits to be followed. No
    version shows this, so a later version would be believed. It is done once, before the change is
    recorded.
    """
    waits = {name for name, state in app.states.items() if state.is_unread}
    left = {change.physical for change in changes if change.state == State.LEFT and change.logical in waits}
    marks = [
        replace(
            versions[-1],
            version=versions[-1].version + 1,
            commit_ts=app.positions.of(versions[-1].source),
            kind=UNFOLLOWED,
            ddl="an earlier statement",
            status=VersionStatus.UNPROVEN,
            moved=None,
        )
        for versions in _versions(app, left).values()
        if versions[-1].commit_ts < app.positions.of(versions[-1].source)
    ]
    if marks:
        app.control.append(tables.SCHEMA_HISTORY, [mark.to_row() for mark in marks])


def _record(app: Application, changes: Sequence[FollowedChange], selection: Selection | None = None) -> None:
    """Record the changes in one commit: all of them, or none."""
    number = app.followed.number + 1
    rows = rows_of(number, app.pipeline.pipeline, changes, selection, app.cut_ts)
    app.control.append(tables.FOLLOWED, rows, (f"tidegate/{app.pipeline.pipeline}/followed", number))
    recorded = control.read(app.lake, tables.FOLLOWED, columns=["recorded_at"], filters=[("number", "==", number)])
    if any(at != rows[0]["recorded_at"] for at in recorded["recorded_at"].to_pylist()):
        raise Overtaken(
            f"change {number} of control/followed is another application's", where=app.lake.root, remedy=_ONE
        )
    app.followed.take_in(number, rows)
    failpoint("apply_after_followed")


def _show(app: Application) -> None:
    """The states for the newest change of the selection, once."""
    standings, behind = dict[str, Standing](), app.followed.behind
    sources: dict[str, set[str]] = {}
    for change in app.followed.changes:
        sources.setdefault(change.logical, set()).add(change.source)
    for change in app.followed.changes:
        if change.reason and change.state != State.SNAPSHOT:  # else the other shards go on
            with_source = len(sources[change.logical]) == 1 and change.commit_ts >= behind.get(change.source, _FOREVER)
            source = change.source if change.state == State.RELEASED and with_source else ""
            needs = Needs(change.needs or Needs.NOTHING)
            at_ts = 0 if change.whole is False else change.commit_ts  # silver has no prefix of what it lacks rows of
            standing = after(app, change.logical, Selected(State(change.state), at_ts, change.reason, needs, source))
            if standing is not None:
                standings[change.logical] = standing
    app.record_states(standings, (f"tidegate/{app.pipeline.pipeline}/followed", app.followed.selected_in))


def _changes(app: Application, before: Selection, now: Selection) -> list[FollowedChange]:
    app.index.refresh(app.cut_ts)
    changes = [_source_joins(app, source) for source in sorted(now.sources - before.sources)]
    gone = sorted(before.sources - now.sources)
    changes += [FollowedChange(source, State.LEFT, app.positions.of(source)) for source in gone]
    known = needed_rows(app.lake, before.sources | now.sources, lambda *_: app.cut_ts)
    names = {_physical(of) for rows in known.values() for of in rows.rows if of["table"]}
    old = _flows(before, before.sources, names)
    # Of a source that joins nobody knows all tables yet: its own windows meet the others.
    tables_of = {name for name in names if name.source not in app.histories or not _is_sequence(app, name)}
    new = _flows(now, now.sources, tables_of)
    versions = _versions(app, {name for name in new if old.get(name) != new[name]})
    ground = rules.Ground(
        app.cut_ts,
        lambda name: versions.get(name, ()),
        app.followed.left,
        app.positions.mark,
        lambda name: has_silver(app, name),
        lambda name: _emptied(app, name),
        {source: app.index.begin(source) for source in now.sources},
        lambda name: (silver := app.positions.silver(name)) is not None and not silver.live,
        {source: history.settings.gap_ts for source, history in app.histories.items()},
    )
    verdicts = {name: _remembered(app, name, verdict) for name, verdict in rules.follow(old, new, ground).items()}
    for name, verdict in verdicts.items():
        log.info("%s", verdict.reason, extra={"table": name})
        state, at = str(verdict.state), LeftAt(verdict.commit_ts)
        whole = None
        if verdict.state == State.LEFT:
            at = _left_at(app, name)
            whole = at.whole
        rest = (name, whole, str(verdict.needs) if verdict.needs.rows else None)
        changes += [FollowedChange(s, state, at.commit_ts, verdict.reason, d, t, *rest) for s, d, t in verdict.physical]
    for physical, name in old.items():
        if new.get(physical) != name and verdicts.get(name, rules.GOES_ON).state != State.LEFT:
            source, database, table = physical
            at = _left_at(app, name)
            changes.append(FollowedChange(source, State.LEFT, at.commit_ts, "", database, table, name, at.whole))
    return changes


def _remembered(app: Application, name: str, verdict: FollowVerdict) -> FollowVerdict:
    """The verdict on a table that was left, and is kept again. Its history was forgotten as it left; if silver's log
    couldn't say so then, and can't now, the table waits for rows: it would tell the time between once it can be read.
    """
    is_back = any((physical, name) in app.followed.left for physical in verdict.physical)
    if verdict.state is not State.RELEASED or not is_back or (error := app.positions.forget_history(name)) is None:
        return verdict
    why = f"{name}: is kept again, and nobody could record that its history before is unknown: {error.line}"
    return replace(verdict, state=State.HELD, reason=why, needs=Needs.ROWS)


def _source_joins(app: Application, source: str) -> FollowedChange:
    """A source joins where it was left, or at its beginning. It is behind until its windows have reached the cut."""
    left_ts = app.followed.sources_left.get(source, 0)
    begin = app.index.begin(source)
    if app.pipeline.sources[source].traits.pushes and not app.index.has(source):
        # A Pump that has written nothing: all that comes to it is committed above the cut, which waits for it.
        return FollowedChange(source, FOLLOWED, app.cut_ts, f"{source} joins at the cut")
    return FollowedChange(
        source, CATCHING_UP, max(left_ts, begin), f"{source} joins at {left_ts}, bronze begins at {begin}"
    )


def _flows(selection: Selection, sources: Collection[str], names: Collection[Physical]) -> dict[Physical, str]:
    """The silver table of every physical one kept by a selection, shadows of kept ones included."""
    patterns = selection.tables
    return {
        Physical(source, database, table): patterns.logical(database, table).name
        for source, database, table in names
        if source in sources and (patterns.keeps(database, table) or patterns.shadows(database, table))
    }


def _physical(row: Mapping[str, Any]) -> Physical:
    """The table of a row of control/schema_history."""
    return Physical(row["source"], row["database"], row["table"])


def _is_sequence(app: Application, physical: Physical) -> bool:
    return app.histories[physical.source].is_sequence(physical.pair)


def _left_at(app: Application, name: str) -> LeftAt:
    """The commit_ts up to which silver has a table that was left. If the log from there on wouldn't
    make it whole: the commit_ts up to which its missing rows lie.
    """
    standing = app.states.get(name)
    if standing is None:
        return LeftAt(app.positions.mark(name))
    if standing.state == State.SNAPSHOT:
        return LeftAt(app.cut_ts, whole=False)
    if standing.partner:
        return LeftAt(app.positions.applied(name), whole=False)
    if standing.is_unread or (standing.state == State.HELD and standing.cause is Cause.NEEDS_ROWS):
        # The place is of what holds it now.
        place = None if standing.unread and standing.state is State.HELD else standing.place
        return LeftAt(place.at_ts if place is not None else app.cut_ts, whole=False)
    return LeftAt(app.positions.mark(name))


def _versions(app: Application, joined: Collection[Physical]) -> dict[Physical, list[TableVersion]]:
    """All versions of these tables, oldest first."""
    rows = needed_rows(app.lake, {name.source for name in joined}, lambda *name: -1 if name in joined else _FOREVER)
    versions: dict[Physical, list[TableVersion]] = {}
    for of in rows.values():
        for row in sorted(of.rows, key=lambda row: (row["commit_ts"], row["version"])):
            name = _physical(row)
            if name in joined:
                versions.setdefault(name, []).append(TableVersion.from_row(row))
    return versions


def _emptied(app: Application, name: str) -> bool:
    """Whether a CREATE or TRUNCATE leaves nothing of silver's older rows."""
    ddl = app.pipeline.ddl
    return Policy.IGNORE not in (ddl.truncate, ddl.drop_table) and not app.pipeline.tables.keeps_past(
        *app.names.pair(name)
    )


def stalled(app: Application) -> None:
    """Let the cut go on without sources too far behind the others.

    If a source's clock is ahead of ours, its time counts only up to ours: otherwise the other
    sources would look late.
    """
    sources = [source for source in app.pipeline.sources if source not in app.followed.behind]
    newest = min(max((app.index.resolved(source) for source in sources), default=0), compose(int(time.time() * 1000)))
    for source in sources:
        entry, resolved = app.pipeline.sources[source], app.index.resolved(source)
        seconds = app.pipeline.apply.stalled_seconds if entry.max_hold_seconds is None else entry.max_hold_seconds
        # A transaction's commit may be with any Pump of its cluster: none is left behind.
        if entry.required or seconds is None or entry.traits.cluster:
            continue
        if physical_ms(newest) - physical_ms(resolved) > seconds * 1000:
            at = datetime.fromtimestamp(physical_ms(resolved) / 1000, UTC).isoformat(timespec="seconds")
            since = f"is captured up to {at}" if resolved else "was never captured"
            what = f"source {source} {since}, more than {seconds:.0f} s behind another; the cut goes on without it"
            log.warning("%s", what, extra={"source": source})
            leave_behind(app, source, f"{what}; it catches up by itself once capture of {source} runs")


def leave_behind(app: Application, source: str, reason: str) -> None:
    """The cut goes on without a stalled source, and its tables wait by name.

    Tables are recorded first: such a record is also right while the source isn't behind yet.
    """
    for name, physical in app.names.flows().items():
        if any(table.source == source for table in physical):
            note(app, name, SourceStalls(source, reason))
    app.record_states({})
    _record(app, [FollowedChange(source, CATCHING_UP, app.cut_ts, reason)])


def source_reached(app: Application, source: str, upto_ts: int) -> None:
    """Note that silver has all data of a source behind the cut up to upto_ts. At the cut the source
    is back, with one exception: silver has a routed table beyond the cut. A killed apply wrote that
    without this source, and the table's applied_ts counts for all of its shards.
    """
    state = FOLLOWED if upto_ts >= app.cut_ts and not _shards_are_ahead(app) else CATCHING_UP
    _record(app, [FollowedChange(source, state, upto_ts)])


def _shards_are_ahead(app: Application) -> bool:
    """Whether silver has a routed table beyond the cut. All such tables count, since nobody knows
    beforehand which ones a source has shards of. A table with unreadable silver counts until it is
    held.
    """
    if not app.pipeline.tables.routes:
        return False
    routed = (
        name for name, of in app.names.flows().items() if any(app.names.logical(*table.pair).routed for table in of)
    )
    positions = app.positions
    return any(
        positions.reached(name) > app.cut_ts
        or (name in positions.unread and not positions.is_held(name) and positions.silver(name) is None)
        for name in routed
    )


def _meet(app: Application, name: str, source: str) -> bool:
    """Whether a window of a source behind the cut may take a table; one without a state gets it
    first.

    The state tells an earlier try's rows from older ones.
    """
    standing = note(app, name, SourceMeets(source)).standing
    return standing is not None and standing.source == source


def target(app: Application, physical: Collection[Physical]) -> int:
    """The commit_ts up to which a table can catch up: the lowest position of its sources in silver."""
    return min(app.positions.of(source) for source, _, _ in physical)


def take_in(app: Application, window: Window, physical: Physical) -> bool:
    """Let a physical table's logical one take part in a window, if it does by the rules. True when it does."""
    database, table, routed = app.names.logical(physical.database, physical.table)
    name = f"{database}.{table}"
    # One that is held meets a source that is behind, too: later it goes on from where that one's rows are passed.
    if name in window.held or not _is_for(app, window, name, physical) or app.positions.is_held(name):
        return False
    if name not in window.tables:
        after_ts = app.positions.applied(name)
        if name in app.positions.unread and app.positions.silver(name) is None:
            hold_for_error(app, window, name, app.positions.unread[name])
            return False
        if after_ts < window.low_ts:  # what lies between isn't in this window
            return False
        window.taking.tables[name] = TableWindow(name, database, table, routed, after_ts)
    entry = window.tables[name]
    if (entry.database, entry.table) != (database, table) and _is_known(app, physical):
        known = {other for other in entry.physical if _is_known(app, other)}
        if all(app.names.logical(*other.pair)[:2] == (database, table) for other in known):
            # Its name was read the other way before the window's DDL was replayed, and there is no such table.
            window.taking.tables[name] = TableWindow(name, database, table, routed, entry.after_ts, known | {physical})
            return True
        both = f"`{entry.database}`.`{entry.table}` and `{database}`.`{table}` are both {name} here"
        what = f"{both}; leave one of them out (tables.exclude), or rename it at the source"
        hold(app, window, name, Refused(Cause.SAME_NAME, what))
        return False
    entry.physical.add(physical)
    return True


def _is_known(app: Application, physical: Physical) -> bool:
    return bool(app.histories[physical.source].versions(*physical.pair))


def _is_for(app: Application, window: Window, name: str, physical: Physical) -> bool:
    if window.catches_up is not None:
        return name in window.catches_up
    if window.behind is not None:
        return not is_left_out(app, window, physical) and _meet(app, name, window.behind)
    flows_in, state = FlowsIn(physical.source, physical.shown), app.states.get(name)
    if state is not None and state.state == State.LEFT:
        meet(app, window, name, flows_in)
        return False
    if state is not None and state.source:
        note(app, name, flows_in)
    return not app.positions.waits_below(name, window.low_ts)
