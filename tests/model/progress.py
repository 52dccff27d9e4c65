"""Whether every table that waits has a way to go on, and no promise is broken.

In:  a Life.
Out: stuck(): the trace to a state that breaks a promise, else to one from which no way leads, without a kill or a
     person where none is needed, to one where nobody waits for more than what isn't in any log, or for a cut that isn't
     there yet.
"""

from __future__ import annotations

from collections import defaultdict

from tests.model import asked
from tests.model.checker import Result, TooLargeError, trace_to
from tests.model.life import UNNEEDED, Life
from tests.model.world import Bounds, State, is_there, is_unlogged
from tidegate.standing.causes import Cause
from tidegate.tables import State as Is

_TICKS = 2  # how often the cut may go on with nothing new


def stuck(bounds: Bounds, states_max: int) -> Result[State]:
    """Look at all states, as checker.explore does, then backwards from those where nobody waits."""
    life = Life(bounds, _TICKS)
    first = life.first()
    came: dict[State, tuple[State, str] | None] = {first: None}
    backwards: dict[State, list[State]] = defaultdict(list)
    order, at = [first], 0
    while at < len(order):
        state = order[at]
        at += 1
        if not state.ticks and (what := life.broken(state)):
            return Result(len(came), what, trace_to(came, state), state)
        for name, after in life.steps(state):
            if "killed" not in name and UNNEEDED not in name:
                backwards[after].append(state)
            if after not in came:
                came[after] = (state, name)
                order.append(after)
        if len(came) > states_max:
            raise TooLargeError(f"more than {states_max} states")
    good = {state for state in order if is_settled(life, state)}
    waiting = list(good)
    while waiting:
        for before in backwards[waiting.pop()]:
            if before not in good:
                good.add(before)
                waiting.append(before)
    needed = max(len(bounds.physical(table)) for table in bounds.tables)  # waves, of a table that begins anew
    looked = (
        state for state in order if not state.ticks and (not bounds.snaps or state.waves + needed <= bounds.snaps)
    )
    bad = next((state for state in looked if state not in good), None)
    if bad is None:
        return Result(len(order))
    return Result(len(order), f"nobody gets {_who(life, bad)} to go on", trace_to(came, bad), bad)


def is_settled(life: Life, state: State) -> bool:
    """Whether nobody waits."""
    return state.window is None and not state.pending and not _who(life, state)


def _who(life: Life, state: State) -> str:
    return "".join(asked.NAMES[table] for table in life.bounds.tables if _waits(life, state, table))


def _waits(life: Life, state: State, table: int) -> bool:
    standing = state.tables[table].standing
    sources = {life.bounds.feeds[at][0] for at in life.bounds.physical(table)}
    if table in state.failing or _is_read(life.bounds, state, table):
        return True
    if standing is None or not state.chosen[0][table] or not all(state.chosen[1][source] for source in sources):
        return False
    if standing.lacks_rows and 0 < life.bounds.snaps <= state.waves and _is_unread(life.bounds, state, table):
        return False  # a reader would begin, but for the bound
    if standing.state is Is.SNAPSHOT or (life.bounds.snaps and standing.lacks_rows):
        return any(is_there(state.logs[at], state.clock) for at in life.bounds.physical(table))
    if standing.cause is Cause.UNLOGGED and _is_logged(life.bounds, state, table):
        return True
    if standing.state is Is.HELD:
        partner = state.tables[asked.NAMES.index(standing.partner)].standing if standing.partner else standing
        return partner is None or not partner.is_blocked
    return standing.state is Is.RELEASED


def _is_unread(bounds: Bounds, state: State, table: int) -> bool:
    """Whether a snapshot was never begun."""
    return all(state.snaps[at] is None for at in bounds.physical(table))


def _is_read(bounds: Bounds, state: State, table: int) -> bool:
    """Whether a reader waits for apply's answer."""
    snaps = (state.snaps[at] for at in bounds.physical(table))
    return any(snap is not None and snap.high and not (snap.taken or snap.over) for snap in snaps)


def _is_logged(bounds: Bounds, state: State, table: int) -> bool:
    """Whether nothing changes it any more without row events, as far as the cut."""
    logs = (state.logs[at] for at in bounds.physical(table))
    return not any(is_unlogged(log, state.cut) for log in logs)
