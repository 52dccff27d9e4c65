"""A model of who is followed since when: tables and sources that join, leave, come back, are held and released.

In:  cures that are left out; bounds.
Out: states of two sources with a table each (t of a, v of b), what capture has of them, the lake, and one application
     at a time, which may be killed between any two commits and may run on with an older pipeline file.

The promise: silver holds what the log says up to max(its transaction version, applied), of every table that is kept,
whatever its state, but of one that is held for rows that nobody can tell; active tables are applied up to the cut, and
the cut's row of them shows just that. So a cut is complete of what it doesn't name as behind. The
rules modelled are those at the head of include/tidegate/merge/follow.py; code: spark_jobs/window/following.py,
publish_cut.py.
"""

from __future__ import annotations

from collections.abc import Iterator
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
CURES: Final = frozenset(
    {
        *(TABLE_JOINS, TABLE_RETURNS, SOURCE_JOINS, STAYS_RELEASED, PLANS_ANEW, STATES_FIRST),
        *(UNSEEN_HOLDS, ENDS_BEHIND, SHORT_RETURNS, ROW_FIRST, REACHES),
    }
)

ACTIVE, HELD, RELEASED, LEFT = "active", "held", "released", "left"
SKEW: Final = 2  # by which the clock of source b is behind

NEVER: Final = -99

Op = tuple[int, str]  # commit_ts, and C (create), R (row), S (a row whose change the log doesn't tell) or D (drop)


class Table(NamedTuple):
    """What the lake says of one: its state at applied, silver's rows (by commit_ts) and transaction version.

    left_at: where it was left, NEVER when it wasn't; when it lacked rows, the negative commit_ts of the last of them.
    lacks: that commit_ts, of a table that is held for it. shown: the rows that the cut's row of it shows.
    """

    state: str = ACTIVE
    applied: int = 0
    rows: tuple[int, ...] = ()
    version: int = 0
    left_at: int = NEVER
    lacks: int = 0
    shown: tuple[int, ...] = ()


class Window(NamedTuple):
    """kind: main, catch-up (of t) or source (of b). todo: tables to write; held: those that couldn't be."""

    kind: str
    low: int
    upto: int
    todo: tuple[str, ...]
    held: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()


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


class Following:
    """See the module's docstring."""

    def __init__(self, *without: str, bounds: Bounds | None = None) -> None:
        assert set(without) <= CURES
        self.cures = CURES - set(without)
        self.bounds = bounds or Bounds()

    def first(self) -> State:
        return State(keeps=self.bounds.begins, chosen=self.bounds.begins)

    # --- the world ----------------------------------------------------------------------------------
    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        yield from self._sources(state)
        yield from self._people(state)
        if state.read is None:
            yield "an application starts", state._replace(read=state.keeps)
            return
        if state.kills < self.bounds.kills:
            yield "the application is killed", state._replace(read=None, window=None, kills=state.kills + 1)
        if state.pending:
            yield "the states of a change are recorded", self._show(state)
        elif state.window is None and state.chosen != state.read:
            yield "the change of the selection is recorded", self._take_up(state)
        elif state.window is None:
            yield "the application ends", state._replace(read=None)
            yield from self._plan(state)
        else:
            yield from self._write(state, state.window)

    def _sources(self, state: State) -> Iterator[tuple[str, State]]:
        clock = state.clock + 1
        if len(state.a) < self.bounds.ops_a:
            for kind in _may(state.a, self.bounds.unseen):
                yield f"a: {kind}", state._replace(clock=clock, a=(*state.a, (clock, kind)))
        if len(state.b) < self.bounds.ops_b:
            last = state.b[-1][0] if state.b else 0
            at = max(last, state.seen_b[1], clock - SKEW) + 1
            for kind in _may(state.b):
                yield f"b: {kind}", state._replace(clock=clock, b=(*state.b, (at, kind)))
        seen_a = (len(state.a), state.clock)
        if seen_a != state.seen_a:
            yield "a is captured", state._replace(seen_a=seen_a)
        last = state.b[-1][0] if state.b else 0
        seen_b = (len(state.b), max(last, state.seen_b[1], state.clock - SKEW))
        if seen_b != state.seen_b and (state.keeps[1] or state.chosen[1]):
            yield "b is captured", state._replace(seen_b=seen_b)

    def _people(self, state: State) -> Iterator[tuple[str, State]]:
        if state.changes < self.bounds.changes:
            (keeps_t, keeps_b), more = state.keeps, state.changes + 1
            yield "the file keeps t or no longer", state._replace(keeps=(not keeps_t, keeps_b), changes=more)
            yield "the file has b or no longer", state._replace(keeps=(keeps_t, not keeps_b), changes=more)
        if state.t.state == HELD:
            short = state.t.applied >= state.t.lacks > 0
            if not short:  # silver hasn't got what its state says: a release would meet nothing
                yield "t is released", state._replace(t=state.t._replace(state=RELEASED, lacks=0))

    # --- joining and leaving --------------------------------------------------------------------------
    def _take_up(self, state: State) -> State:
        """One commit: the new selection, where the source stands, and the states that are to follow."""
        assert state.read is not None
        was, now = state.chosen, state.read
        pending: list[tuple[str, str, int]] = []
        if was[0] and not now[0]:
            lacks = state.t.lacks if state.t.state == HELD else 0
            mark = state.cut if state.t.state == ACTIVE else state.t.applied  # by the cut's rows, not by silver
            pending.append(("t", LEFT, -lacks if lacks else mark))
        if now[0] and not was[0]:
            pending += self._joins(state)
        if was[1] and not now[1]:
            at = state.behind if state.behind >= 0 else state.cut
            state = state._replace(behind=-1, source_left=at)
            pending.append(("v", LEFT, self._floor(state, "v") if state.v.state != RELEASED else at))
        if now[1] and not was[1]:
            joins = state.source_left if SOURCE_JOINS in self.cures else state.cut
            state = state._replace(behind=joins if joins < state.cut else -1)
            pending.append(("v", RELEASED if joins < state.cut else ACTIVE, joins))
        return state._replace(chosen=now, pending=tuple(pending))

    def _joins(self, state: State) -> list[tuple[str, str, int]]:
        """T is kept from now on."""
        if NEVER < state.t.left_at < 0:
            return [self._returns_short(state, -state.t.left_at)]
        if state.t.left_at >= 0:
            returns = TABLE_RETURNS in self.cures
            return [("t", RELEASED, state.t.left_at) if returns else ("t", ACTIVE, state.cut)]
        made = [(at, kind) for at, kind in state.a if at <= state.cut and kind in "CD"]
        if made and made[-1][1] == "C" and TABLE_JOINS in self.cures:
            return [("t", RELEASED, made[-1][0] - 1)]
        return [("t", ACTIVE, state.cut)]

    def _returns_short(self, state: State, lacks: int) -> tuple[str, str, int]:
        """T is kept again, and lacked rows when it was left."""
        if SHORT_RETURNS not in self.cures:
            return "t", RELEASED, lacks
        ends = [at for at, kind in state.a if lacks < at <= state.cut and kind in "CD"]
        return ("t", RELEASED, ends[-1] - 1) if ends else ("t", HELD, state.cut)

    def _show(self, state: State) -> State:
        for name, becomes, at in state.pending:
            table: Table = getattr(state, name)
            left_at, lacks = at if becomes == LEFT else NEVER, at if becomes == HELD else 0
            shown = table._replace(state=becomes, applied=max(0, at), left_at=left_at, lacks=lacks)
            state = state._replace(**{name: shown})
        return state._replace(pending=())

    def _floor(self, state: State, name: str) -> int:
        """applied_ts: up to here the lake says that silver has everything."""
        table: Table = getattr(state, name)
        if table.state != ACTIVE:
            return max(table.version, table.applied)
        return max(table.version, state.cut)

    # --- windows ----------------------------------------------------------------------------------------
    def _plan(self, state: State) -> Iterator[tuple[str, State]]:
        assert state.read is not None
        resolved = [state.seen_a[1]]
        if state.read[1] and state.behind < 0:
            resolved.append(state.seen_b[1])
        if state.read[0] and state.t.state == HELD and state.t.lacks:
            lacks = state.t.lacks if ENDS_BEHIND in self.cures else 0
            ends = [at for at, kind in state.a if max(lacks, state.t.applied) < at <= state.cut and kind in "CD"]
            if ENDS_BEHIND not in self.cures:
                ends = [state.t.lacks + 1]
            for at in ends[:1]:
                mended = state.t._replace(state=RELEASED, applied=at - 1, lacks=0)
                yield "t was emptied: it goes on behind that", state._replace(t=mended)
        takes = [name for name, kept in zip("tv", state.read, strict=True) if kept]
        main = tuple(name for name in takes if getattr(state, name).state == ACTIVE)
        if state.read[0] and state.t.state == RELEASED and state.t.applied >= state.cut:
            main = ("t", *main)
        written = max([0, *(getattr(state, name).version for name in main)]) if REACHES in self.cures else 0
        for name, planned in self._windows(state, "main", state.cut, min(resolved), main):
            if planned.window is not None and planned.window.upto >= written:
                yield name, planned
        if state.read[0] and state.t.state == RELEASED:
            low = state.t.applied  # what a killed window has written is published by the same one
            yield from self._windows(state, "catch-up", low, state.cut, ("t",))
            if low >= state.cut:
                yield "t has caught up", state._replace(t=state.t._replace(state=ACTIVE, applied=low))
        if state.read[1] and state.behind >= 0:
            yield from self._windows(state, "source", state.behind, min(state.cut, state.seen_b[1]), ("v",))
            if state.behind >= state.cut:
                back = state.v._replace(state=ACTIVE, applied=state.behind)
                yield "b has caught up", state._replace(behind=-1, v=back)

    def _windows(
        self, state: State, kind: str, low: int, most: int, todo: tuple[str, ...]
    ) -> Iterator[tuple[str, State]]:
        """A window may end at any transaction, or at the most."""
        ends = {at for at, _ in (*state.a, *state.b) if low < at < most} | ({most} if most > low else set())
        for upto in sorted(ends):
            yield f"{kind} window ({low}, {upto}]", state._replace(window=Window(kind, low, upto, todo))

    def _write(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        if window.kind == "main" and state.read is not None and state.read[0]:
            yield from self._tries_again(state, window)
        if not window.todo:
            yield from self._publish(state, window)
            return
        name, rest = window.todo[0], window.todo[1:]
        table: Table = getattr(state, name)
        ops = state.a if name == "t" else state.b
        captured = ops[: (state.seen_a if name == "t" else state.seen_b)[0]]
        after = self._floor(state, name)
        if name == "t" and UNSEEN_HOLDS in self.cures and _unseen(captured, after, window.upto):
            held = window._replace(todo=rest, held=(*window.held, name))
            yield "t meets what nobody can follow: it is held", state._replace(window=held)
            return
        later = state._replace(window=window._replace(todo=rest, wrote=(*window.wrote, name)))
        if window.upto > table.version and after < window.upto:
            # The window's segments begin at its low end, whatever the table has.
            seen = tuple(op for op in captured if op[1] != "S")
            rows = told(seen, window.upto, max(after, window.low), table.rows)
            later = later._replace(**{name: table._replace(rows=rows, version=window.upto)})
        yield f"{name} is written", later
        if name == "t" and window.kind == "main" and state.holds < self.bounds.holds:
            held = window._replace(todo=rest, held=(*window.held, name))
            # A passing failure is tried again on states read anew; one that stays holds the table.
            yield "t can't be written: it is held", state._replace(window=held, holds=state.holds + 1)

    def _tries_again(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        """A passing failure: states are read anew, and a table that was released meanwhile shows up."""
        if state.t.state == RELEASED and "t" not in (*window.todo, *window.held, *window.wrote):
            if PLANS_ANEW in self.cures:
                yield "a passing failure: the window is planned anew", state._replace(window=None)
            else:
                again = window._replace(todo=("t", *window.todo))
                yield "a passing failure: the same window with t", state._replace(window=again)

    def _publish(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        after = state._replace(window=None)
        if window.kind == "catch-up" and window.held:
            yield "t is named as held", after._replace(t=self._held(state, window))
        elif window.kind == "catch-up":
            advanced = self._advanced(state, state.t, window.upto)
            shown = advanced.rows if advanced.state == ACTIVE else advanced.shown
            yield "t's progress is recorded", after._replace(t=advanced._replace(shown=shown))
            if state.kills < self.bounds.kills and advanced.state == ACTIVE:
                half = state.t._replace(shown=shown) if ROW_FIRST in self.cures else advanced
                yield (
                    "killed between the cut's row of t and its state",
                    after._replace(t=half, read=None, kills=state.kills + 1),
                )
        elif window.kind == "source":
            yield (
                "b's progress is recorded",
                after._replace(behind=window.upto, v=state.v._replace(state=RELEASED, applied=window.upto)),
            )
        else:
            yield from self._publish_cut(state, window)

    def _held(self, state: State, window: Window) -> Table:
        floor = self._floor(state, "t")
        lacks = _unseen(state.a, floor, window.upto)
        return state.t._replace(state=HELD, applied=floor, lacks=lacks, shown=state.t.rows)

    def _advanced(self, state: State, table: Table, upto: int) -> Table:
        gone = [kind for at, kind in state.a if at <= upto and kind in "CD"][-1:] == ["D"]
        if upto >= state.cut or (gone and STAYS_RELEASED not in self.cures):
            return table._replace(state=ACTIVE, applied=upto)
        return table._replace(state=RELEASED, applied=upto)

    def _publish_cut(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        held = "t" in window.held
        named = state._replace(t=self._held(state, window)) if held else state
        if state.t.state == RELEASED and "t" in window.wrote:
            named = named._replace(t=state.t._replace(state=ACTIVE, applied=window.upto))
        if "t" in window.wrote:
            named = named._replace(t=named.t._replace(shown=state.t.rows))
        whole = named._replace(cut=window.upto, window=None)
        yield "the cut is published", whole
        if state.kills < self.bounds.kills and held:
            kills = state.kills + 1
            half = named if STATES_FIRST in self.cures else state._replace(cut=window.upto)
            yield "killed between states and cut", half._replace(window=None, read=None, kills=kills)

    # --- the promise --------------------------------------------------------------------------------------
    def broken(self, state: State) -> str:
        pending = {name for name, _, _ in state.pending}
        for name, kept, ops in (("t", state.chosen[0], state.a), ("v", state.chosen[1], state.b)):
            table: Table = getattr(state, name)
            upto = self._floor(state, name)
            if table.state == HELD and table.applied >= table.lacks > 0:
                continue  # named as short
            if table.state == RELEASED and {(upto + 1, "C"), (upto + 1, "D")} & set(ops):
                continue  # what it goes on with empties it
            if kept and name not in pending and table.rows != (wanted := told(ops, upto)):
                return f"{name} ({table.state}) has rows {table.rows} at {upto}, the log {wanted}"
        wanted = told(state.a, state.cut)
        if state.chosen[0] and "t" not in pending and state.t.state == ACTIVE and state.t.shown != wanted:
            return f"the cut's row of t shows {state.t.shown} at {state.cut}, the log says {wanted}"
        return ""


def _may(ops: tuple[Op, ...], unseen: int = 0) -> str:
    """A table that isn't there can only be made."""
    kinds = [kind for _, kind in ops]
    if [kind for kind in kinds if kind in "CD"][-1:] != ["C"]:
        return "C"
    return "RDS" if kinds.count("S") < unseen else "RD"


def _unseen(ops: tuple[Op, ...], after: int, upto: int) -> int:
    """Where in a window the first change is that the log doesn't tell; 0: none."""
    return next((at for at, kind in ops if kind == "S" and after < at <= upto), 0)
