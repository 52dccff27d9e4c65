"""A model of who is followed since when: tables and sources that join, leave, come back, are held and released.

In:  cures that are left out; bounds.
Out: states of two sources with a table each (t of a, v of b), what capture has of them, the lake, and one application
     at a time, which may be killed between any two commits and may run on with an older pipeline file.

The promise: silver holds what the log says up to max(its transaction version, applied), of every table that is kept,
whatever its state, but of one that is held for rows that nobody can tell; active tables are applied up to the cut, and
the cut's row of them shows just that. So a cut is complete of what it doesn't name as behind. The
rules modelled are those at the head of include/tidegate/merge/follow.py; code: spark_jobs/window/life/following.py,
publish_cut.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.followed import (
    ACTIVE,
    AHEAD_STAYS,
    AHEAD_WAITS,
    CURES,
    ENDS_BEHIND,
    HELD,
    LEFT,
    MENDED_WAITS,
    NEVER,
    PLANS_ANEW,
    REACHES,
    RELEASED,
    ROW_BACK,
    ROW_FIRST,
    SHORT_RETURNS,
    SKEW,
    SOURCE_JOINS,
    STATES_FIRST,
    STAYS_RELEASED,
    TABLE_JOINS,
    TABLE_RETURNS,
    UNSEEN_HOLDS,
    Bounds,
    State,
    Table,
    Window,
    captured,
    is_named,
    may,
    told,
    unseen,
)


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
            for kind in may(state.a, self.bounds.unseen):
                yield f"a: {kind}", state._replace(clock=clock, a=(*state.a, (clock, kind)))
        if len(state.b) < self.bounds.ops_b:
            last = state.b[-1][0] if state.b else 0
            at = max(last, state.seen_b[1], clock - SKEW) + 1
            for kind in may(state.b):
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
            pending.append(("v", LEFT, at))
        if now[1] and not was[1]:
            joins = state.source_left if SOURCE_JOINS in self.cures else state.cut
            state = state._replace(behind=joins)
            pending.append(("v", RELEASED, joins))
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
        main = tuple(name for name in takes if self._in_main(state, name))
        for name, planned in self._windows(state, "main", state.cut, min(resolved), main):
            todo = planned.window.todo if planned.window else ()
            written = max([0, *(getattr(state, name).version for name in todo)]) if REACHES in self.cures else 0
            if planned.window is not None and planned.window.upto >= written:
                yield name, self._mended_in(planned, planned.window)
        if state.read[0] and state.t.state == RELEASED:
            low = state.t.applied  # what a killed window has written is published by the same one
            yield from self._windows(state, "catch-up", low, state.cut, ("t",))
        if state.read[1] and state.behind >= 0:
            yield from self._windows(state, "source", state.behind, min(state.cut, state.seen_b[1]), ("v",))
            if state.behind >= state.cut:
                yield "b has caught up", state._replace(behind=-1, v=self._back(state, state.v))

    def _mended_in(self, state: State, window: Window) -> State:
        """T is emptied in the very window: it goes on behind that, which is recorded before anything is written."""
        lacks = state.t.lacks
        if state.t.state != HELD or not lacks or state.read is None or not state.read[0]:
            return state
        after = max(lacks, self._floor(state, "t"))
        ends = [at for at, kind in captured(state, "t") if after < at <= window.upto and kind in "CD"]
        if not ends:
            return state
        mended = state.t._replace(state=RELEASED, applied=ends[0] - 1, lacks=0)
        return state._replace(t=mended, window=window._replace(todo=("t", *window.todo), released=("t",)))

    def _in_main(self, state: State, name: str) -> bool:
        table: Table = getattr(state, name)
        late = name == "v" and state.behind >= 0
        return table.state == ACTIVE or (table.state == RELEASED and table.applied >= state.cut and not late)

    def _windows(
        self, state: State, kind: str, low: int, most: int, todo: tuple[str, ...]
    ) -> Iterator[tuple[str, State]]:
        """A window may end at any transaction, or at the most."""
        ends = {at for at, _ in (*state.a, *state.b) if low < at < most} | ({most} if most > low else set())
        for upto in sorted(ends):
            named = tuple(name for name in todo if is_named(captured(state, name), low, upto))
            released = tuple(name for name in todo if getattr(state, name).state == RELEASED)
            window = Window(kind, low, upto, named, released=released)
            yield f"{kind} window ({low}, {upto}]", state._replace(window=window)

    def _write(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        if window.kind == "main" and state.read is not None and state.read[0]:
            yield from self._tries_again(state, window)
        if not window.todo:
            yield from self._publish(state, window)
            return
        name, rest = window.todo[0], window.todo[1:]
        table: Table = getattr(state, name)
        ops = captured(state, name)
        after = self._floor(state, name)
        if name == "t" and UNSEEN_HOLDS in self.cures and unseen(ops, after, window.upto):
            held = window._replace(todo=rest, held=(*window.held, name))
            yield "t meets what nobody can follow: it is held", state._replace(window=held)
            return
        later = state._replace(window=window._replace(todo=rest, wrote=(*window.wrote, name)))
        if window.upto > table.version and after < window.upto:
            # The window's segments begin at its low end, whatever the table has.
            seen = tuple(op for op in ops if op[1] != "S")
            rows = told(seen, window.upto, max(after, window.low), table.rows)
            later = later._replace(**{name: table._replace(rows=rows, version=window.upto)})
        if (window.upto > table.version and after < window.upto) or table.version > state.cut:
            assert later.window is not None
            later = later._replace(window=later.window._replace(fresh=(*window.fresh, name)))
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
            if advanced.state == ACTIVE or "t" in window.fresh:
                advanced = advanced._replace(shown=state.t.rows, waits=advanced.state != ACTIVE)
            yield "t's progress is recorded", after._replace(t=advanced)
            if state.kills < self.bounds.kills and advanced.state == ACTIVE:
                half = state.t._replace(shown=advanced.shown, waits=False)
                if ROW_FIRST not in self.cures:
                    half = advanced._replace(shown=state.t.shown, waits=state.t.waits)
                yield (
                    "killed between the cut's row of t and its state",
                    after._replace(t=half, read=None, kills=state.kills + 1),
                )
        elif window.kind == "source":
            yield from self._publish_source(state, window)
        else:
            yield from self._publish_cut(state, window)

    def _publish_source(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        """Rows, then where the source stands, then its tables' states."""
        back = window.upto >= state.cut
        has_row = "v" in window.fresh or (back and ROW_BACK in self.cures)
        table = state.v._replace(shown=state.v.rows, waits=True) if has_row else state.v
        killed = state._replace(window=None, read=None, v=table, kills=state.kills + 1)
        if state.kills < self.bounds.kills:
            yield "killed between rows of b's tables and its progress", killed
        table = table._replace(state=RELEASED, applied=window.upto)
        after = state._replace(window=None, behind=window.upto, v=table)
        if not back:
            yield "b's progress is recorded", after
            return
        yield "b is back", after._replace(behind=-1, v=self._back(after, table))
        if state.kills < self.bounds.kills:
            yield "killed between b's progress and its tables' states", killed._replace(behind=-1, v=table)

    def _back(self, state: State, table: Table) -> Table:
        """V, once b is at the cut."""
        ahead = table.version > state.cut and AHEAD_STAYS in self.cures
        return table._replace(state=RELEASED if ahead else ACTIVE, applied=max(state.behind, ahead * table.version))

    def _held(self, state: State, window: Window) -> Table:
        floor = self._floor(state, "t")
        lacks = unseen(state.a, floor, window.upto)
        return state.t._replace(state=HELD, applied=floor, lacks=lacks, shown=state.t.rows, waits=True)

    def _advanced(self, state: State, table: Table, upto: int) -> Table:
        gone = [kind for at, kind in state.a if at <= upto and kind in "CD"][-1:] == ["D"]
        if upto >= state.cut and table.version > state.cut and AHEAD_WAITS in self.cures:
            return table._replace(state=RELEASED, applied=table.version)
        if upto >= state.cut or (gone and STAYS_RELEASED not in self.cures):
            return table._replace(state=ACTIVE, applied=upto)
        return table._replace(state=RELEASED, applied=upto)

    def _publish_cut(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        named, rows = state, state
        if "t" in window.held:
            named = named._replace(t=self._held(state, window)._replace(shown=state.t.shown, waits=state.t.waits))
        for name, of in zip("tv", state.read or (), strict=True):
            if of and name in window.released and name not in window.held:
                named = named._replace(**{name: self._goes_on(state, window, name)})
        for name in "tv":
            table = getattr(named, name)
            if name in (*window.fresh, *window.held):
                table = table._replace(shown=table.rows, waits=table.state != ACTIVE)
            rows = rows._replace(**{name: table})
        yield "the cut is published", rows._replace(cut=window.upto, window=None)
        if state.kills < self.bounds.kills and named != state:
            kills = state.kills + 1
            half = named if STATES_FIRST in self.cures else state._replace(cut=window.upto)
            yield "killed between states and cut", half._replace(window=None, read=None, kills=kills)

    def _goes_on(self, state: State, window: Window, name: str) -> Table:
        """What a released table is at the end of a main window, whether the window names it or not."""
        table: Table = getattr(state, name)
        if not window.low <= table.applied <= window.upto:
            return table
        if table.version > window.upto and AHEAD_WAITS in self.cures:
            return table
        if table.version < table.applied == window.upto and MENDED_WAITS in self.cures:
            return table
        return table._replace(state=ACTIVE, applied=window.upto)

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
            if (
                kept
                and name not in pending
                and table.state == ACTIVE
                and not (table.waits and table.applied > state.cut)
            ):
                # What waits by its row waits until the cut is there that its state speaks of.
                wanted = told(ops, state.cut)
                if table.shown != wanted:
                    return f"the cut's row of {name} shows {table.shown} at {state.cut}, the log says {wanted}"
        return ""
