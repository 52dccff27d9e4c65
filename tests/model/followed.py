"""What a model of `following` is made of: its cures, its states, and what a log says of a table.

In:  nothing; these are the values.
Out: Table, Window, State, Bounds; told(): a table's rows by its log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

TABLE_JOINS: Final = "a table that joins is released at its beginning"
TABLE_RETURNS: Final = "a table that is kept again is released where it was left"
SOURCE_JOINS: Final = "a source that joins is behind until its own windows reach the cut"
STAYS_RELEASED: Final = "below the cut a released table stays released, dropped or not"
PLANS_ANEW: Final = "a release during a retry plans the window anew"
STATES_FIRST: Final = "held tables are recorded before the cut"
UNSEEN_HOLDS: Final = "a change that nobody can follow holds its table"
ENDS_BEHIND: Final = "such a hold ends at what empties the table behind the change"
SHORT_RETURNS: Final = "a table that lacked rows when it was left goes on behind an end of them alone"
ROW_FIRST: Final = "a table that caught up is active once the cut has its row"
REACHES: Final = "a window reaches what an earlier try has written"
AHEAD_WAITS: Final = "a released table goes on at no cut that silver is ahead of"
AHEAD_STAYS: Final = "a source's table that silver is ahead with stays released when its source is back"
MENDED_WAITS: Final = "a table that is to be emptied goes on at no cut before that"
ROW_BACK: Final = "tables of a source that is back have their rows, written in that window or not"
CURES: Final = frozenset(
    {
        *(TABLE_JOINS, TABLE_RETURNS, SOURCE_JOINS, STAYS_RELEASED, PLANS_ANEW, STATES_FIRST),
        *(UNSEEN_HOLDS, ENDS_BEHIND, SHORT_RETURNS, ROW_FIRST, REACHES),
        *(AHEAD_WAITS, AHEAD_STAYS, MENDED_WAITS, ROW_BACK),
    }
)

ACTIVE, HELD, RELEASED, LEFT = "active", "held", "released", "left"
SKEW: Final = 2  # by which the clock of source b is behind

NEVER: Final = -99

Op = tuple[int, str]  # commit_ts, and C (create), R (row), S (a row whose change the log doesn't tell) or D (drop)


class Table(NamedTuple):
    """What the lake says of one: its state at applied, silver's rows (by commit_ts) and transaction version.

    left_at: where it was left, NEVER when it wasn't; when it lacked rows, the negative commit_ts of the last of them.
    lacks: that commit_ts, of a table that is held for it. shown: the rows that the cut's row of it shows; waits:
    whether that row says that the table waits.
    """

    state: str = ACTIVE
    applied: int = 0
    rows: tuple[int, ...] = ()
    version: int = 0
    left_at: int = NEVER
    lacks: int = 0
    shown: tuple[int, ...] = ()
    waits: bool = False


class Window(NamedTuple):
    """kind: main, catch-up (of t) or source (of b). todo: tables to write; held: those that couldn't be; wrote: those
    that are at its end now; fresh: such of them as it wrote itself, or that silver is ahead of the cut with.
    released: tables that were so when it was planned, and may go on with it.
    """

    kind: str
    low: int
    upto: int
    todo: tuple[str, ...]
    held: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    released: tuple[str, ...] = ()


class State(NamedTuple):
    """keeps: what the pipeline file keeps now (t, b); chosen: what the lake says that it follows; read: what the
    application read at its start, None when none runs. behind: where source b stands, -1 when it isn't behind.
    pending: states that a recorded change of the selection still calls for.
    """

    clock: int = 0
    a: tuple[Op, ...] = ()
    b: tuple[Op, ...] = ()
    seen_a: tuple[int, int] = (0, 0)  # ops captured, resolved_ts
    seen_b: tuple[int, int] = (0, 0)
    keeps: tuple[bool, bool] = (True, False)
    chosen: tuple[bool, bool] = (True, False)
    pending: tuple[tuple[str, str, int], ...] = ()
    read: tuple[bool, bool] | None = None
    window: Window | None = None
    cut: int = 0
    behind: int = -1
    source_left: int = 0
    t: Table = Table()
    v: Table = Table()
    changes: int = 0
    holds: int = 0
    kills: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen. begins: what the file keeps at first."""

    ops_a: int = 3
    ops_b: int = 2
    changes: int = 2
    holds: int = 1
    kills: int = 1
    unseen: int = 0
    begins: tuple[bool, bool] = (True, False)


def told(ops: tuple[Op, ...], upto: int, after: int = -1, rows: tuple[int, ...] = ()) -> tuple[int, ...]:
    """A table's rows at upto by its log, from what it was at `after`."""
    for commit_ts, kind in ops:
        if after < commit_ts <= upto:
            rows = (*rows, commit_ts) if kind in "RS" else ()
    return rows


def captured(state: State, name: str) -> tuple[Op, ...]:
    """A table's log as far as it is in bronze."""
    return state.a[: state.seen_a[0]] if name == "t" else state.b[: state.seen_b[0]]


def is_named(ops: tuple[Op, ...], low: int, upto: int) -> bool:
    """Whether a window has segments of a table."""
    return any(low < at <= upto for at, _ in ops)


def may(ops: tuple[Op, ...], unseen: int = 0) -> str:
    """A table that isn't there can only be made."""
    kinds = [kind for _, kind in ops]
    if [kind for kind in kinds if kind in "CD"][-1:] != ["C"]:
        return "C"
    return "RDS" if kinds.count("S") < unseen else "RD"


def unseen(ops: tuple[Op, ...], after: int, upto: int) -> int:
    """Where in a window the first change is that the log doesn't tell; 0: none."""
    return next((at for at, kind in ops if kind == "S" and after < at <= upto), 0)
