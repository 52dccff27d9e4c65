"""The standings of an application's tables. It asks the rules, and records their answers for apply.

In:  a table, its event (tidegate/standing/events.py), the window's moves.
Out: standings, taken into the application's memory and recorded; partners wait or catch up with
     them.

A standing is recorded at one of three moments. Events of tables leaving the window (`meet`) wait in
window.held for publish_cut: states first, then the cut. Events from planning and DDL (`note`) are
recorded before any write follows from them, since a killed window must find them. Events without a
window are recorded at once.

A rename or a moved partition links tables: the taker reads the giver's silver as it was then, so
neither may go past this commit_ts without the other, and both are taken out together
(`take_along`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from spark_jobs.window.application import Application
from spark_jobs.window.shape.moves import partners
from spark_jobs.window.standing.facts import facts_of
from spark_jobs.window.window import Window
from tidegate.errors import PastDamaged, SilverDamaged, line_and_needs
from tidegate.remedy import Needs
from tidegate.standing import shown
from tidegate.standing.causes import Cause, cause_of
from tidegate.standing.events import Emptied, Event, PartnerGoesOn, Refused, SentBelow
from tidegate.standing.standing import Place, Standing
from tidegate.standing.step import Step, step
from tidegate.table_names import Physical
from tidegate.tables import State


def standing_of(app: Application, window: Window, name: str) -> Standing | None:
    """A table's standing in this window; None if nothing was ever recorded of it."""
    return window.held.get(name) or app.states.get(name)


def meet(app: Application, window: Window, name: str, event: Event) -> None:
    """Apply an event to a table in a window. If its standing changes, it leaves the window. For a
    table that has left already, nothing more happens in this window.
    """
    if name not in window.held:
        before = app.states.get(name)
        done = step(before, event, facts_of(app, name))
        # A table that was held before leaves the window, too: another table may have taken its rows in mid-window.
        leaves = done.standing is not before or (isinstance(event, Refused) and name in window.tables)
        if done.standing is None or not leaves:
            return
        window.taking.take_out(name, done.standing)
    take_along(app, window, [name])


def meet_always(app: Application, window: Window, name: str, event: Event) -> None:
    """Apply an event to a table, even if it has left the window: then its recorded standing
    changes.
    """
    before = standing_of(app, window, name)
    standing = step(before, event, facts_of(app, name)).standing
    if standing is None or standing is before:
        return
    if name in window.held:  # since a statement of this very window
        window.taking.held[name] = standing
    else:
        app.positions.note({name: standing})


def note(app: Application, name: str, event: Event) -> Step:
    """Apply an event to a table. The next record of states has its new standing."""
    before = app.states.get(name)
    done = step(before, event, facts_of(app, name))
    if done.standing is not None and done.standing is not before:
        app.positions.note({name: done.standing})
    return done


def after(app: Application, name: str, event: Event, physical: Collection[Physical] = ()) -> Standing | None:
    """The standing of a table after an event; None where it changes nothing. physical: as facts_of
    has it.
    """
    before = app.states.get(name)
    standing = step(before, event, facts_of(app, name, physical)).standing
    return None if standing is before else standing


def hold(app: Application, window: Window, name: str, refused: Refused) -> None:
    """Hold a table until its cause is mended. Silver has all of it up to at_ts. The first cause
    counts.

    refused: its reason says what and where.
    """
    meet(app, window, name, refused)


def hold_for_error(app: Application, window: Window, name: str, error: BaseException) -> None:
    """Hold a table that can't be written. The writer of linked tables has named the tables held
    with it already.
    """
    _leave(app, window, name, refused_by(app, name, error, met_in(app, window, name)))


def refused_by(app: Application, name: str, error: BaseException, place: Place | None = None) -> Refused:
    """The event of a table that can't be written because of this error."""
    line, needs = line_and_needs(error)
    fault, at_ts = _fault(app, name, error), app.positions.held_at(name, error)
    return Refused(cause_of(fault), line, place, needs, fault, at_ts=at_ts)


def _fault(app: Application, name: str, error: BaseException) -> str:
    is_past = isinstance(error, SilverDamaged) and app.pipeline.tables.keeps_past(*app.names.pair(name))
    return (PastDamaged if is_past else type(error)).__name__


def hold_tied(app: Application, window: Window, name: str, error: BaseException) -> None:
    """Hold a table that can't be written, before anything of the window is written. Tables that moves tie to it wait
    with it.
    """
    hold_for_error(app, window, name, error)
    take_along(app, window, [name])


def line_of(app: Application, name: str, standing: Standing) -> str:
    """The reason of a table's standing, and the way out if it is held."""
    named = replace(standing, pipeline=app.pipeline.pipeline, table=name)
    return shown.line_of(named, app.pipeline.lacks_snapshots)


def met_in(app: Application, window: Window, name: str) -> Place:
    """The place of an event without a position of its own: no file, and the window's end."""
    return Place("", *app.names.pair(name), "", 0, window.cut_ts)


def hold_with(
    app: Application, window: Window, name: str, partner: str, why: str, needs: Needs = Needs.NOTHING
) -> None:
    """Hold a table because of its partner. needs: what the partner lacks. The table may lack a part
    of it, too: a snapshot of either one brings it, and the other may be gone at the source.
    """
    standing = standing_of(app, window, partner)
    place = standing.place if standing else None
    refused = Refused(Cause.WAITS_WITH, shown.waits_with(name, partner, why), place, needs, partner=partner)
    _leave(app, window, name, refused)


def _leave(app: Application, window: Window, name: str, refused: Refused) -> None:
    """Take a table out of the window, held for this cause or an earlier one. The caller cares for
    its partners.
    """
    standing = step(app.states.get(name), refused, facts_of(app, name)).standing
    if standing is not None:
        window.taking.take_out(name, standing)


def _lacks(standing: Standing) -> Needs:
    if not standing.lacks_rows:
        return Needs.NOTHING
    return standing.needs if standing.needs.rows else Needs.ROWS


def send_below(app: Application, window: Window, name: str, reason: str, *, unread: bool = False) -> None:
    """Let a table go on from silver's position, in windows of its own. unread: a statement of it isn't followed yet."""
    meet(app, window, name, SentBelow(reason, unread))


def mend(app: Application, window: Window, name: str, applied_ts: int) -> None:
    """Let a held table go on from applied_ts, in this window: nothing from before counts any more."""
    before = standing_of(app, window, name)
    window.taking.held.pop(name, None)
    done = step(before, Emptied(applied_ts, window.behind or ""), facts_of(app, name))
    assert done.standing is not None, "a held table was emptied"
    app.positions.note({name: done.standing})


def take_along(app: Application, window: Window, names: Iterable[str]) -> None:
    """Let givers and takers of rows wait with the held tables among these.

    They also wait with a table that catches up below this window, and catch up together with it. In
    the window of a source that was left behind, they wait with a table of several sources, too: it
    goes on only with all of them.
    """
    for name in sorted(names):
        standing = standing_of(app, window, name)
        if standing is None:
            continue
        below = name not in window.tables and (
            app.positions.waits_below(name, window.low_ts) or _goes_apart(window, standing)
        )
        below = below or (name in window.held and standing.state is State.RELEASED)
        for partner in sorted(partners(window.moves, name)) if below or standing.state is State.HELD else ():
            if partner in window.held or app.positions.is_held(partner):
                continue
            if standing.state is State.HELD:
                hold_with(app, window, partner, name, standing.reason, _lacks(standing))
            elif not app.positions.waits_below(partner, window.low_ts):
                what = f"{partner}: a rename or a partition moves rows between it and {name}, which catches up first"
                send_below(app, window, partner, what, unread=standing.is_unread)


def _goes_apart(window: Window, standing: Standing) -> bool:
    """Whether a table goes by windows of its own, and not by this window of one source."""
    return window.behind is not None and standing.state is State.RELEASED and not standing.source


def release_with_partners(app: Application) -> None:
    """Let tables go on whose partner is no longer held."""
    looked = app.memory(_Looked)
    while looked.stamp != app.states.stamp:
        looked.stamp = app.states.stamp
        for name, standing in app.states.of(State.HELD):
            if standing.partner and not app.positions.is_held(standing.partner):
                note(app, name, PartnerGoesOn())
    app.record_states({})


@dataclass(slots=True)
class _Looked:
    """stamp: of the States without a held table whose partner goes on."""

    stamp: int = 0


__all__ = [
    "after",
    "hold",
    "hold_for_error",
    "hold_tied",
    "hold_with",
    "line_of",
    "meet",
    "meet_always",
    "mend",
    "met_in",
    "note",
    "release_with_partners",
    "send_below",
    "standing_of",
    "take_along",
]
