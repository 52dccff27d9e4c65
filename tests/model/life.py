"""A model of tables' lives: every decision about a standing is the rules' own (tidegate/standing, merge/follow.py).

In:  Bounds.
Out: states of two sources, what the lake has of their tables, one application at a time, which may be killed between
     any two commits and may run on with an older pipeline file, and people.

The promises: silver holds what the log says up to max(its transaction version, applied) of every table that is kept,
but of one that is known to lack rows; active tables are applied up to the cut, and the cut's row of them shows just
that; what the pipeline file stops, or asks for, reaches silver by a person's word alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tests.model import asked, publishing, put_back, shards, waves
from tests.model.mending import ends
from tests.model.planning import Plan, cancelled
from tests.model.promises import Promises
from tests.model.world import (
    NOT_BEHIND,
    Bounds,
    State,
    Table,
    Window,
    is_there,
    is_unlogged,
    replaced,
    swapped,
)
from tidegate.standing import events as e
from tidegate.standing import step as rules
from tidegate.standing.causes import ENDS, Cause, Word
from tidegate.tables import State as Is

UNNEEDED = " though it goes on by itself"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _mended(state: State, table: int) -> State:
    """Time, or a person, has mended why it couldn't be written."""
    is_held = rules.is_in(state.tables[table].standing, Is.HELD)
    return state if is_held else state._replace(failing=tuple(at for at in state.failing if at != table))


class Life(Promises):
    """See the module's docstring."""

    def __init__(self, bounds: Bounds, ticks: int = 0) -> None:
        """ticks: how often time passes where nothing else happens, so that the cut goes on."""
        super().__init__(bounds)
        self.ticks = ticks

    def first(self) -> State:
        b = self.bounds
        zeros = tuple(0 for _ in b.sources)
        keeps = b.keeps
        return State(
            tuple(() for _ in b.feeds), tuple(Table() for _ in b.tables), keeps, keeps, zeros, zeros,
            tuple(NOT_BEHIND for _ in b.sources), zeros, snaps=tuple(None for _ in b.feeds), policy=b.policy,
            made=tuple(() for _ in b.feeds),
        )  # fmt: skip

    # --- the world ----------------------------------------------------------------------------------
    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.window is None:
            yield from self._sources(state)
            yield from self._file(state)
        yield from self._people(state)
        if state.read is None:
            yield from put_back.put_back(self.bounds, state)
            started = put_back.asked_at_start(self.bounds, state._replace(read=state.keeps))
            yield "an application starts", started
            return
        if state.kills < self.bounds.kills and (state.window or state.pending) and not state.ticks:
            yield "the application is killed", state._replace(read=None, window=None, kills=state.kills + 1)
        if state.pending:
            yield "the states of a change are recorded", self._show(state)
        elif state.window is not None:
            yield from self._write(state, state.window)
        elif state.chosen != state.read:
            yield "the change of the selection is recorded", self._take_up(state)
        else:
            if state.keeps != state.read:
                yield "the application ends", state._replace(read=None)
            yield from self._turn(state)

    def _sources(self, state: State) -> Iterator[tuple[str, State]]:
        b, clock = self.bounds, state.clock + 1
        for at, (source, _) in enumerate(b.feeds):
            if len(state.logs[at]) >= b.ops[at] or state.ticks:
                continue
            for kind in self._kinds(state, at):
                logs = list(state.logs)
                logs[at] = (*logs[at], (clock, kind))
                if kind in "GW":
                    logs[1 - at] = (*logs[1 - at], (clock, "K" if kind == "G" else "W"))
                yield (
                    f"{asked.SOURCES[source]}: {kind} of {at}",
                    self._captured(state._replace(logs=tuple(logs), clock=clock)),
                )
        if b.snaps:
            yield from ((what, self._captured(after)) for what, after in waves.read(b, state))
        for source in b.lags:
            if state.seen[source] != state.clock and state.keeps[1][source]:
                seen = swapped(state.seen, source, state.clock)
                yield f"{asked.SOURCES[source]} is captured", state._replace(seen=seen)

    def _captured(self, state: State) -> State:
        """What doesn't lag is captured at once: a window may end at any transaction anyway."""
        seen = tuple(
            state.clock if s not in self.bounds.lags and state.keeps[1][s] else at for s, at in enumerate(state.seen)
        )
        return state._replace(seen=seen)

    def _kinds(self, state: State, at: int) -> str:
        """A table that isn't there can only be made."""
        log, kinds = state.logs[at], self.bounds.kinds[at]
        if not is_there(log, state.clock):
            return "C" if "C" in kinds else ""
        many = sum(kind not in "CRDTKL" for log in state.logs for _, kind in log)
        allowed = "".join(kind for kind in kinds if kind in "RDT" or (kind != "C" and many < self.bounds.specials))
        if "G" in kinds and (is_there(state.logs[1 - at], state.clock) or is_unlogged(log, state.clock)):
            allowed = allowed.replace("G", "")
        if "W" in kinds and not is_there(state.logs[1 - at], state.clock):
            allowed = allowed.replace("W", "")
        return allowed + "L" if is_unlogged(log, state.clock) else allowed.replace("L", "")

    def _file(self, state: State) -> Iterator[tuple[str, State]]:
        if state.changes >= self.bounds.changes or state.ticks:
            return
        more = state.changes + 1
        for which, word in ((0, "table"), (1, "source")):
            for at in self.bounds.toggles[which]:
                now = tuple(kept != (number == at) for number, kept in enumerate(state.keeps[which]))
                keeps = (now, state.keeps[1]) if which == 0 else (state.keeps[0], now)
                yield (
                    f"the file keeps {word} {at}, or no longer",
                    self._captured(state._replace(keeps=keeps, changes=more)),
                )

    def _people(self, state: State) -> Iterator[tuple[str, State]]:
        for table in self.bounds.tables:
            standing = state.tables[table].standing
            if standing is None or standing.state is not Is.HELD or standing.cause is None:
                continue
            word = ENDS[standing.cause].word
            place = standing.place.at_ts if standing.place is not None else 0
            if word is Word.DECIDE:
                answered = self._unseen(asked.note(self.bounds, state, table, e.Answered()), table)
                yield f"{table}: its transactions are answered", self._met(answered, place)
            elif standing.releasable:
                after = self._met(state, place) if word is Word.JUDGE else state
                if word is Word.APPROVE or standing.cause is Cause.DDL_STOPS:
                    passed = max(state.tables[table].passed, place)
                    after = replaced(after, table, passed=passed)
                    after = after._replace(policy="apply") if standing.cause is Cause.DDL_STOPS else after
                after = _mended(asked.note(self.bounds, after, table, e.Released()), table)
                by_itself = ENDS[standing.cause].pause or ENDS[standing.cause].partner
                yield f"{table} is released{UNNEEDED * by_itself}", self._unseen(after, table)

    def _unseen(self, state: State, table: int) -> State:
        """A window that was planned before has the table as it was."""
        if state.window is None:
            return state
        return state._replace(window=state.window._replace(unseen=tuple(sorted({*state.window.unseen, table}))))

    def _met(self, state: State, place: int) -> State:
        return state._replace(judged=tuple(sorted({*state.judged, place})))

    # --- joining and leaving --------------------------------------------------------------------------
    def _take_up(self, state: State) -> State:
        """One commit: the new selection, where sources stand, and the states that are to follow."""
        assert state.read is not None
        b, was, now = self.bounds, state.chosen, state.read
        flows = [{at for at, (s, t) in enumerate(b.feeds) if keeps[0][t] and keeps[1][s]} for keeps in (was, now)]
        met = {at for at in range(len(b.feeds)) if asked.known_log(b, state, at)}
        verdicts = asked.verdicts(b, state, flows[0] & met, flows[1] & met)
        pending: list[tuple[int, object]] = []
        for name, verdict in verdicts.items():
            table = asked.NAMES.index(name)
            if verdict.state is Is.SNAPSHOT:  # these shards alone are left out
                late = [at for at in range(len(b.feeds)) if asked.physical_name(b, at) in verdict.physical]
                joins = {s: asked.joins_at(state, s) for s in b.sources if now[1][s] and not was[1][s]}
                state, _ = shards.leave_out(b, state, late, joins)
                state = state._replace(fresh=tuple(sorted({*state.fresh, *late})))
                continue
            pending.append((table, verdict))
            left = asked.left_at(b, state, table) if verdict.state is Is.LEFT else None
            state = replaced(state, table, left=left)
        for source in b.sources:
            if was[1][source] and not now[1][source]:
                at = asked.position(state, source)
                state = state._replace(
                    behind=swapped(state.behind, source, NOT_BEHIND),
                    left_sources=swapped(state.left_sources, source, at),
                )
            if now[1][source] and not was[1][source]:
                state = state._replace(behind=swapped(state.behind, source, asked.joins_at(state, source)))
        gone = (flows[0] - flows[1]) & met
        left_shards = tuple(sorted({*state.left_shards, *(at for at in gone if b.routed(b.feeds[at][1]))}))
        return state._replace(chosen=now, pending=tuple(pending), left_shards=left_shards)

    def _show(self, state: State) -> State:
        b = self.bounds
        for table, verdict in state.pending:
            sources = {b.feeds[at][0] for at in b.physical(table)}
            source = ""
            if verdict.state is Is.RELEASED and len(sources) == 1:  # type: ignore[attr-defined]
                behind = state.behind[min(sources)]
                if behind != NOT_BEHIND and verdict.commit_ts >= behind:  # type: ignore[attr-defined]
                    source = asked.SOURCES[min(sources)]
            at = verdict.commit_ts  # type: ignore[attr-defined]
            selected = e.Selected(verdict.state, at, "", verdict.needs, source)  # type: ignore[attr-defined]
            gates = [ts for p in b.physical(table) for ts, kind in state.logs[p] if kind == "A" and ts <= at]
            passed = max([state.tables[table].passed, *gates]) if verdict.state is not Is.LEFT else 0  # type: ignore[attr-defined]
            state = replaced(asked.note(b, state, table, selected), table, passed=passed)
        return state._replace(pending=())

    # --- the application's turns ----------------------------------------------------------------------
    def _turn(self, state: State) -> Iterator[tuple[str, State]]:
        is_waiting = any(rules.is_in(of.standing, Is.RELEASED, Is.SNAPSHOT) for of in state.tables)
        if state.ticks < self.ticks and state.cut == state.clock and is_waiting:
            yield "time passes", self._captured(state._replace(clock=state.clock + 1, ticks=state.ticks + 1))
        released = put_back.asked_when_released(self.bounds, state)
        if released != state:
            yield "silver of who goes on is asked", released
            return
        freed = self._freed(state)
        if freed != state:
            yield "held tables go on by themselves", freed
            return
        for table in self.bounds.tables:
            after = asked.note(self.bounds, state, table, e.PauseOver(_NOW))
            if after != state:
                yield f"the pause of {table} is over", _mended(after, table)
        if self.bounds.forgets:
            yield from self._forgets(state)
        assert state.read is not None
        if state.stalls < self.bounds.stalls:
            for source in self.bounds.lags:
                if state.read[1][source] and state.behind[source] == NOT_BEHIND:
                    yield from self._stalls(state, source)
        yield from self._plans(state)

    def _freed(self, state: State) -> State:
        b = self.bounds
        assert state.read is not None
        for table in b.tables:
            if not asked.is_held(state, table) or not state.read[0][table]:
                continue
            for name, end in ends(b, state, table, None, {}).items():
                state = cancelled(b, state, name)
                state = asked.note(b, state, name, e.Emptied(end - 1))
        for table in b.tables:
            standing = state.tables[table].standing
            partner = standing.partner if standing is not None else ""
            if partner and not asked.is_held(state, asked.NAMES.index(partner)):
                state = asked.note(b, state, table, e.PartnerGoesOn())
        return state

    def _stalls(self, state: State, source: int) -> Iterator[tuple[str, State]]:
        if state.seen[source] >= max(state.seen):
            return
        b, named = self.bounds, state._replace(stalls=state.stalls + 1)
        for table in b.tables:
            if source in asked.feeding(b, state, table):
                named = asked.note(b, named, table, e.SourceStalls(asked.SOURCES[source], ""))
        yield f"{asked.SOURCES[source]} stalls", named._replace(behind=swapped(state.behind, source, state.cut))
        if state.kills < b.kills:
            killed = named._replace(read=None, kills=state.kills + 1)
            yield f"killed between the states of {asked.SOURCES[source]}'s tables and its own", killed

    def _plans(self, state: State) -> Iterator[tuple[str, State]]:
        b = self.bounds
        assert state.read is not None
        here = [s for s in b.sources if state.read[1][s] and state.behind[s] == NOT_BEHIND]
        if here:
            yield from self._windows(state, "main", state.cut, min(state.seen[s] for s in here), (), -1)
        catches = tuple(table for table in b.tables if state.read[0][table] and self._catches_up(state, table))
        if catches:
            low = min(self._applied_ts(state, table) for table in catches)
            most = min(self._target(state, table) for table in catches)
            yield from self._windows(state, "tables", low, most, catches, -1)
        for source in b.sources:
            if state.read[1][source] and (low := state.behind[source]) != NOT_BEHIND:
                yield from self._windows(state, "source", low, min(state.cut, state.seen[source]), (), source)

    def _applied_ts(self, state: State, table: int) -> int:
        standing = state.tables[table].standing
        return standing.applied_ts if standing is not None else 0

    def _target(self, state: State, table: int) -> int:
        feeds = {self.bounds.feeds[at][0] for at in self.bounds.physical(table)}
        return min(asked.position(state, source) for source in feeds)

    def _catches_up(self, state: State, table: int) -> bool:
        standing = state.tables[table].standing
        if standing is None or standing.state is not Is.RELEASED or standing.source:
            return False
        return standing.applied_ts < state.cut and standing.applied_ts < self._target(state, table)

    def _windows(
        self, state: State, kind: str, low: int, most: int, catches: tuple[int, ...], source: int
    ) -> Iterator[tuple[str, State]]:
        """A window may end at any transaction, or at the most."""
        marks = {at for snap in state.snaps if snap for at in (snap.low, snap.high, snap.end)}
        upto_all = {at for at in marks | {at for log in state.logs for at, _ in log} if low < at < most} | (
            {most} if most > low else set()
        )
        for upto in sorted(upto_all):
            plan = Plan(self.bounds, state, kind, low, upto, catches, source)
            planned = plan.made()
            if planned is not None:
                yield f"{kind} window ({low}, {upto}]", planned
            if plan.half is not None and state.kills < self.bounds.kills:
                killed = plan.half._replace(read=None, window=None, kills=state.kills + 1)
                yield "killed between a table's version and its state", killed

    # --- a window ---------------------------------------------------------------------------------------
    def _write(self, state: State, window: Window) -> Iterator[tuple[str, State]]:
        if window.unseen:
            yield "a passing failure: the window is planned anew", state._replace(window=None)
        if not window.todo:
            yield from publishing.closing(self.bounds, state, window)
            return
        (table, after), rest = window.todo[0], window.todo[1:]
        if refused := self._refused(state, window, table, after):
            held = dict(window.held)
            standing, _ = asked.after(self.bounds, state, table, refused)
            assert standing is not None, "refused"
            held[table] = standing
            taken = tuple(at for at in window.taken if at != table)
            later = window._replace(todo=rest, held=tuple(sorted(held.items())), taken=taken)
            yield f"{table} meets what it can't take: {refused.cause}", state._replace(window=later)
            return
        if state.fails < self.bounds.fails or table in state.failing:
            yield f"{table} can't be written", self._fails(state, table)
        if table in state.failing:
            return
        if state.gives < self.bounds.gives:
            yield f"the writer gives {table} back", self._given_back(state, window, table)
        if self.bounds.halves and (half := publishing.half_written(self.bounds, state, window, table, after)):
            begun = replaced(state, table, **half._asdict())
            if state.kills < self.bounds.kills:
                killed = begun._replace(read=None, window=None, kills=state.kills + 1)
                yield f"killed between a statement on {table} and its rows", killed
            if state.gives < self.bounds.gives:
                yield f"{table} is given back behind a statement", self._given_back(begun, window, table)
        silver = publishing.written(self.bounds, state, window, table, after)
        is_news = silver != state.tables[table] or silver.version > state.cut
        later = window._replace(todo=rest, wrote=(*window.wrote, table) if is_news else window.wrote)
        yield f"{table} is written", replaced(state, table, **silver._asdict())._replace(window=later)

    def _given_back(self, state: State, window: Window, table: int) -> State:
        """It is to catch up in windows of its own; one that stands as before stays in this one, unwritten."""
        before = state.tables[table].standing
        standing = rules.step(before, e.SentBelow(""), asked.facts(self.bounds, state, table)).standing
        later = window._replace(todo=window.todo[1:])
        if standing is not None and standing is not before:
            held = {**dict(window.held), table: asked.plain(standing)}
            taken = tuple(at for at in window.taken if at != table)
            later = later._replace(held=tuple(sorted(held.items())), taken=taken)
        return state._replace(window=later, gives=state.gives + 1)

    def _forgets(self, state: State) -> Iterator[tuple[str, State]]:
        """What a step says of a table that waits already changes nothing."""
        for table in filter(lambda table: asked.is_held(state, table), self.bounds.tables):
            for event in (e.SentBelow(""), e.Refused(Cause.FAULT, "")):
                yield (
                    f"{table}, which is held, meets {type(event).__name__}",
                    asked.note(self.bounds, state, table, event),
                )

    def _fails(self, state: State, table: int) -> State:
        """In all tries: the window is planned anew without it, else it fails again."""
        failed = asked.note(self.bounds, state, table, e.NotWritten(""))
        failing = tuple(sorted({*state.failing, table}))
        fails = state.fails + (table not in state.failing)
        return failed._replace(window=None, fails=fails, failing=failing)

    def _refused(self, state: State, window: Window, table: int, after: int) -> e.Refused | None:
        after = max(after, asked.written(self.bounds, state, table))
        for at in self.bounds.physical(table):
            for commit_ts, kind in state.logs[at]:
                if not after < commit_ts <= window.upto or kind not in "EP" or commit_ts in state.judged:
                    continue
                cause = Cause.EVENT_NOT_READ if kind == "E" else Cause.PARKED
                place = Plan(self.bounds, state, "", 0, 0).place(at, commit_ts)
                return e.Refused(cause, "", place)
        return None
