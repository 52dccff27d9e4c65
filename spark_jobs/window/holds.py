"""Who waits, and why: the one place where a table leaves a window before the window's end.

In:  a table, what happened to it; the window's moves.
Out: window.held, which publish_cut records: the table held, or released to catch up; its partners with it.

A held table waits for a person, or for a pause. A released one goes on by itself from where silver has it, in windows
of its own: so does one whose columns were healed, or that its writer gave back. A rename or a moved partition links
tables: the taker reads the giver's silver as it was then, so neither may go past that commit_ts without the other, and
who takes one out takes both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spark_jobs.window.application import Application
from spark_jobs.window.moves import partners
from spark_jobs.window.window import Window
from tidegate.errors import RECREATE, REFILL, REREAD
from tidegate.lake.held import DDL_NOT_READ, Place, TableState
from tidegate.schema.model.columns import TableVersion, VersionStatus, why_unproven
from tidegate.tables import BEHIND_SOURCE, RENAMED_WITH_HELD, State


def hold(app: Application, window: Window, name: str, error: str, reason: str, place: Place | None = None) -> None:
    """A table waits until its cause is mended, with all up to here in silver; the first reason counts."""
    hold_at(app, window, name, TableState(State.HELD, reason, error, app.applied(name), place))


def hold_at(app: Application, window: Window, name: str, state: TableState) -> None:
    """As hold; the state says up to where silver has it."""
    window.take_out(name, _told(app, name, state))
    take_along(app, window, [name])


def hold_for_error(app: Application, window: Window, name: str, error: BaseException) -> None:
    """A table can't be written. Whom it holds with it, the writer of linked tables has said already."""
    state = TableState(
        State.HELD, str(error), type(error).__name__, app.held_at(name, error), met_in(app, window, name)
    )
    window.take_out(name, _told(app, name, state))


def _told(app: Application, name: str, state: TableState) -> TableState:
    """Its reason without a remedy that its source doesn't have, where no snapshot reads it."""
    sources = {source for source, _, _ in app.flows().get(name, ())}
    if not any(source in app.pipeline.sources and app.pipeline.lacks_snapshots(source) for source in sources):
        return state
    return replace(state, reason=state.reason.replace(f"{REREAD}; or ", ""))


def met_in(app: Application, window: Window, name: str) -> Place:
    """The place of what a table met somewhere in a window, not at one event: no file, and the window's end."""
    return Place("", *app.pair(name), "", 0, window.cut_ts)


def hold_with(app: Application, window: Window, name: str, partner: str, why: str) -> None:
    """A table waits because of its partner."""
    what = f"a rename or a partition moves rows between it and {partner}"
    reason = f"{name}: {what}, which is held; it goes on with that one, or once both are emptied ({why})"
    held = window.held.get(partner) or app.states.get(partner)
    place = held.place if held else None
    window.take_out(name, TableState(State.HELD, reason, f"{RENAMED_WITH_HELD} {partner}", app.applied(name), place))


def release(app: Application, window: Window, name: str, reason: str, *, unread: bool = False) -> None:
    """A table goes on from where silver has it, in windows of its own. unread: a statement about it isn't followed yet.

    What a person approved stays so. One that went on with its source doesn't any more: it stands lower than that one.
    """
    before = app.states.get(name)
    known = before if before is not None and before.state is State.RELEASED else TableState(State.RELEASED)
    error = DDL_NOT_READ if unread else "" if known.behind_source else known.error
    window.take_out(name, replace(known, reason=reason, error=error, applied_ts=app.applied(name)))
    take_along(app, window, [name])


def mend(app: Application, window: Window, name: str, applied_ts: int) -> None:
    """Nothing from before applied_ts counts any more: a held table goes on from there, in this very window."""
    window.held.pop(name, None)
    error = f"{BEHIND_SOURCE} {window.behind}" if window.behind else ""
    app.note_states({name: TableState(State.RELEASED, error=error, applied_ts=applied_ts)})


def take_along(app: Application, window: Window, names: Iterable[str]) -> None:
    """Whoever gives rows to one of these tables that is held, or takes rows from it, waits with it.

    With one that catches up below this window it waits too, but to catch up together with it; so it does in a window
    of a source that was behind with one that other sources feed as well: that one goes on when it has all of them.
    """
    for name in sorted(names):
        state = window.held.get(name) or app.states.get(name)
        if state is None:
            continue
        below = name not in window.tables and (app.waits_below(name, window.low_ts) or _goes_apart(window, state))
        below = below or (name in window.held and state.state is State.RELEASED)
        for partner in sorted(partners(window.moves, name)) if below or state.state is State.HELD else ():
            if partner in window.held or app.is_held(partner):
                continue
            if state.state is State.HELD:
                hold_with(app, window, partner, name, state.reason)
            elif not app.waits_below(partner, window.low_ts):
                what = f"{partner}: a rename or a partition moves rows between it and {name}, which catches up first"
                release(app, window, partner, what, unread=state.error == DDL_NOT_READ)


def _goes_apart(window: Window, state: TableState) -> bool:
    """Whether a table isn't taken by this window of one source, but by windows of its own."""
    return window.behind is not None and state.state is State.RELEASED and not state.behind_source


def release_with_partners(app: Application) -> None:
    """Let tables go on whose partner is no longer held."""
    looked = app.memory(_Looked)
    while looked.stamp != app.states.stamp:
        looked.stamp = app.states.stamp
        free = {
            name: TableState(State.RELEASED, applied_ts=state.applied_ts)
            for name, state in app.states.of(State.HELD)
            if (partner := waits_for(state)) and not app.is_held(partner)
        }
        app.note_states(free)
    app.record_states({})


@dataclass(slots=True)
class _Looked:
    """stamp: of the States in which no held table's partner goes on."""

    stamp: int = 0


def waits_for(state: TableState) -> str:
    """The table that a held one waits with; "" when it waits for itself."""
    word, _, partner = state.error.partition(" ")
    return partner if word == RENAMED_WITH_HELD else ""


def needs_snapshot_reason(version: TableVersion) -> str:
    """One line for table_states: what, where, what to do."""
    place = f"{version.name} at {version.file}:{version.pos} of {version.source}"
    if version.status is VersionStatus.UNPROVEN:
        return f"{place}: {why_unproven(version)}; {RECREATE}"
    if version.kind == "create":
        return f"{place}: it was there with rows that the source's log doesn't tell ({version.ddl[:120]}); {REFILL}"
    if version.kind == "rename":
        return f"{place}: renamed from another table ({version.ddl[:120]}); {REFILL}"
    if version.kind == "baseline":
        return f"{place}: held rows before capture started; {REFILL}"
    if version.moved is not None and version.moved.why:
        changed = f"{version.ddl[:120]} changed rows that the binlog does not show: {version.moved.why}"
        return f"{place}: {changed}; {REFILL}"
    changed = f"{version.kind} changed rows that the binlog does not show ({version.ddl[:120]})"
    return f"{place}: {changed}; {REFILL}"
