"""How the model's application plans a window: whom it takes, what it meets in the log, who waits.

In:  a State, a kind of window and its bounds in commit_ts.
Out: Plan: the window, and the state once what planning noted is recorded. As plan_window, replay_schema_history and
     judge_ddl of spark_jobs/apply_steps do it, and spark_jobs/window/standing/standings.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.model import asked, shards
from tests.model.mending import ends
from tests.model.waves import resolve
from tests.model.world import EMPTIES, NOT_BEHIND, Bounds, Op, Snap, State, Window, is_unlogged, swapped, taker_of
from tidegate.remedy import Needs
from tidegate.standing import events as e
from tidegate.standing import step as rules
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.tables import State as Is

_DDL = "CDTSULXAGKW"


@dataclass(slots=True)
class Plan:
    """A window that is being planned. tables: those that it takes, and after which commit_ts."""

    bounds: Bounds
    state: State
    kind: str
    low: int
    upto: int
    catches: tuple[int, ...] = ()
    source: int = -1
    tables: dict[int, int] = field(default_factory=dict)
    held: dict[int, Standing] = field(default_factory=dict)
    moves: list[tuple[int, int, int]] = field(default_factory=list)
    waves: dict[int, int] = field(default_factory=dict)
    answers: dict[int, Snap] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    sweeps: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    begins: dict[int, int] = field(default_factory=dict)
    chunks: dict[int, int] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    half: State | None = None

    def made(self) -> State | None:
        """The state with the window; None when it can't be had yet."""
        taken = self._ops("".join((*_DDL, "REP")))
        for at, _ in taken:
            self.take_in(at)
        while self.kind == "main" and (reach := self._reach()) > self.upto:
            if reach > min(self.state.seen[source] for source in self.sources()):
                return None
            self.upto = reach
            for at, _ in self._ops("".join((*_DDL, "REP"))):
                self.take_in(at)
        if self.kind == "source":  # what such a window meets is recorded before its versions
            self.half = self.state
        known = self.state.known
        for source in self.sources():
            known = swapped(known, source, max(known[source], self.upto))
        self.state = self.state._replace(known=known)
        self._replay()
        resolve(self)
        shards.leave_out_shards(self)
        self._judge()
        return self.state._replace(window=self._window())

    def _reach(self) -> int:
        """What an earlier try has written of its tables, and was killed before its cut."""
        return max([0, *self.tables.values(), *(asked.reached(self.state, table) for table in self.tables)])

    def _window(self) -> Window:
        answers = self.answers | {at: self._answer(at) for at in self.taken}
        todo = sorted(self.tables.items(), key=lambda item: (-self._takes(item[0]), item[0]))
        return Window(
            self.kind, self.low, self.upto, tuple(todo), tuple(sorted(self.held.items())), (),
            tuple(sorted(self.tables)), self.catches, self.source, waves=tuple(sorted(self.waves.items())),
            answers=tuple(sorted(answers.items())), swept=tuple(sorted(self.sweeps)), whole=tuple(sorted(self.whole)),
            begins=tuple(sorted(self.begins.items())), chunks=tuple(sorted(self.chunks.items())),
        )  # fmt: skip

    def _answer(self, at: int) -> Snap:
        snap = self.state.snaps[at]
        assert snap is not None, "it was taken"
        return snap._replace(taken=True)

    def _takes(self, table: int) -> int:
        """Who takes rows is written before who gives them."""
        return max([0, *(at for _, taker, at in self.moves if taker == table)])

    # --- what the window has --------------------------------------------------------------------------
    def sources(self) -> list[int]:
        if self.kind == "source":
            return [self.source]
        assert self.state.read is not None
        keeps = self.state.read[1]
        if self.kind == "tables":
            return list({self.bounds.feeds[at][0] for table in self.catches for at in self.bounds.physical(table)})
        return [s for s in self.bounds.sources if keeps[s] and self.state.behind[s] == NOT_BEHIND]

    def _ops(self, kinds: str) -> list[tuple[int, Op]]:
        """The window's operations, by commit_ts, with their physical table."""
        assert self.state.read is not None
        found = []
        for at, (source, table) in enumerate(self.bounds.feeds):
            if source not in self.sources() or not self.state.read[0][table]:
                continue
            if self.kind == "tables" and table not in self.catches:
                continue
            found += [(at, op) for op in self.state.logs[at] if self.low < op[0] <= self.upto and op[1] in kinds]
        return sorted(found, key=lambda item: item[1])

    def take_in(self, at: int) -> bool:
        table = self.bounds.feeds[at][1]
        if table in self.held or not self._is_for(table, at) or asked.is_held(self.state, table):
            return False
        if table not in self.tables:
            after = asked.applied(self.bounds, self.state, table)
            if after < self.low:
                return False
            self.tables[table] = after
        self.touched.add(at)
        return True

    def _is_for(self, table: int, at: int) -> bool:
        source = asked.SOURCES[self.bounds.feeds[at][0]]
        if self.kind == "tables":
            return table in self.catches
        if self.kind == "source":
            if self.bounds.routed(table) and shards.part(self.bounds, self.state, at, 0, self.upto) is None:
                return False
            self.note(table, e.SourceMeets(source))
            standing = self.state.tables[table].standing
            return standing is not None and standing.state is Is.RELEASED and standing.source == source
        before = self.state.tables[table].standing
        done, _ = asked.after(self.bounds, self.state, table, e.FlowsIn(source, ""))
        if done is not None and done.state is Is.HELD and done != before:
            self.meet(table, e.FlowsIn(source, ""))
            return False
        self.note(table, e.FlowsIn(source, ""))
        return not asked.waits_below(self.bounds, self.state, table, self.low)

    # --- what the log says ----------------------------------------------------------------------------
    def _replay(self) -> None:
        for at, op in self._ops(_DDL):
            self._version(at, op)
        self._find_moves()
        self.take_along({table for giver, taker, _ in self.moves for table in (giver, taker)})

    def _version(self, at: int, op: Op) -> None:
        """Bring a table into the window, or hold it, or let a mended one go on."""
        table, (commit_ts, kind) = self.bounds.feeds[at][1], op
        is_applied = commit_ts <= asked.applied(self.bounds, self.state, table)
        if is_applied or (kind == "X" and commit_ts in self.state.judged):
            return
        place = self.place(at, commit_ts)
        is_waiting = asked.is_held(self.state, table) or table in self.held
        if kind == "X":
            self._unread(table, place)
        elif kind == "S":
            if not is_waiting and not self.bounds.routed(table) and self.take_in(at):
                self.hold(table, Cause.NEEDS_ROWS, place, Needs.ROWS)
        elif is_unlogged(self.state.logs[at], commit_ts):
            if not is_waiting and self.take_in(at):
                self.hold(table, Cause.UNLOGGED, place)
        else:
            if kind in EMPTIES and not self.bounds.routed(table) and self._mended(at, commit_ts):
                return
            if table in self.held or asked.is_held(self.state, table):
                self.meet_always(table, e.LoggedAgain(""))
            self.take_in(at)

    def _unread(self, table: int, place: Place) -> None:
        if asked.waits_below(self.bounds, self.state, table, self.low):
            self.meet(table, e.SentBelow("", unread=True))
        elif not asked.is_held(self.state, table):
            self.hold(table, Cause.DDL_NOT_READ, place)

    def _mended(self, at: int, commit_ts: int) -> bool:
        """A held table that this empties goes on, in this very window, and who waits with it."""
        found = ends(self.bounds, self.state, self.bounds.feeds[at][1], commit_ts, self.held)
        source = asked.SOURCES[self.source] if self.kind == "source" else ""
        for table, end in found.items():
            before = self.held.pop(table, None) or self.state.tables[table].standing
            self._cancel(table, end)
            step = rules.step(before, e.Emptied(end - 1, source), asked.facts(self.bounds, self.state, table))
            self._put(table, asked.plain(step.standing))
        for table, end in sorted(found.items()):
            physical = self.bounds.physical(table)[0]
            for op in self.state.logs[physical]:
                if end <= op[0] <= commit_ts and op[1] in _DDL:
                    self._version(physical, op)
        return bool(found)

    def _cancel(self, table: int, end: int) -> None:
        self.state = cancelled(self.bounds, self.state, table)

    def _find_moves(self) -> None:
        given = [(at, op[0]) for at, log in enumerate(self.state.logs) for op in log if op[1] in "GW"]
        for at, commit_ts in sorted(given, key=lambda item: item[1]):
            if not self.low < commit_ts <= self.upto:
                continue
            taker = self.bounds.feeds[taker_of(self.state.logs, commit_ts, at)][1]
            assert self.state.read is not None
            if (
                self.state.read[0][taker]
                and self.state.read[0][self.bounds.feeds[at][1]]
                and asked.applied(self.bounds, self.state, taker) < commit_ts
            ):
                self.moves.append((self.bounds.feeds[at][1], taker, commit_ts))

    def _judge(self) -> None:
        """The policy of the pipeline file on what ALTER says."""
        for table in sorted(self.tables):
            after = self.tables.get(table)
            for at in self.bounds.physical(table):
                for commit_ts, kind in self.state.logs[at]:
                    if after is None or kind != "A" or not after < commit_ts <= self.upto or table not in self.tables:
                        continue
                    self._gate(table, at, commit_ts)

    def _gate(self, table: int, at: int, commit_ts: int) -> None:
        standing = self.state.tables[table].standing
        approved = standing.approved_ts if standing is not None else 0
        if self.state.policy == "stop":
            self.hold(table, Cause.DDL_STOPS, self.place(at, commit_ts))
        elif self.state.policy == "ask" and commit_ts > approved:
            self.hold(table, Cause.DDL_ASKS, self.place(at, commit_ts))

    # --- standings --------------------------------------------------------------------------------------
    def place(self, at: int, commit_ts: int) -> Place:
        """Of an operation."""
        source, database, table = asked.physical_name(self.bounds, at)
        return Place(source, database, table, "f", commit_ts, commit_ts)

    def hold(self, table: int, cause: Cause, place: Place, needs: Needs = Needs.NOTHING) -> None:
        """A table can't be taken on."""
        self.meet(table, e.Refused(cause, "", place, needs))

    def note(self, table: int, event: e.Event) -> None:
        """What is recorded before anything is written."""
        self.state = asked.note(self.bounds, self.state, table, event)

    def meet(self, table: int, event: e.Event) -> None:
        """What is recorded at the window's end."""
        if table not in self.held:
            standing, _ = asked.after(self.bounds, self.state, table, event)
            if standing is None or standing == self.state.tables[table].standing:
                return
            self.tables.pop(table, None)
            self.held[table] = standing
        if isinstance(event, e.Refused | e.SentBelow | e.SnapshotLost):
            self.take_along({table})

    def meet_always(self, table: int, event: e.Event) -> None:
        """Whether or not it has left the window."""
        if table in self.held:
            done = rules.step(self.held[table], event, asked.facts(self.bounds, self.state, table))
            self.held[table] = asked.plain(done.standing) or self.held[table]
        else:
            self.note(table, event)

    def _put(self, table: int, standing: Standing | None) -> None:
        from tests.model.world import replaced

        self.state = replaced(self.state, table, standing=standing)

    def take_along(self, tables: set[int]) -> None:
        """Whoever a rename links with a table that waits, or catches up, does so too."""
        for table in sorted(tables):
            standing = self.held.get(table) or self.state.tables[table].standing
            if standing is None:
                continue
            apart = self.kind == "source" and standing.state is Is.RELEASED and not standing.source
            below = table not in self.tables and (asked.waits_below(self.bounds, self.state, table, self.low) or apart)
            below = below or (table in self.held and standing.state is Is.RELEASED)
            if below or standing.state is Is.HELD:
                self._along(table, standing)

    def _along(self, table: int, standing: Standing) -> None:
        pairs = [(giver, taker) for giver, taker, _ in self.moves if table in (giver, taker)]
        for partner in sorted({other for pair in pairs for other in pair} - {table}):
            if partner in self.held or asked.is_held(self.state, partner):
                continue
            if standing.state is Is.HELD:
                needs = (
                    (standing.needs if standing.needs.rows else Needs.ROWS) if standing.lacks_rows else Needs.NOTHING
                )
                refused = e.Refused(Cause.WAITS_WITH, "", standing.place, needs, partner=asked.NAMES[table])
                done, _ = asked.after(self.bounds, self.state, partner, refused)
                if done is not None:
                    self.tables.pop(partner, None)
                    self.held[partner] = done
            elif not asked.waits_below(self.bounds, self.state, partner, self.low):
                self.meet(partner, e.SentBelow("", unread=standing.is_unread))


def cancelled(bounds: Bounds, state: State, table: int) -> State:
    """Snapshots of a table that was emptied are over."""
    snaps = list(state.snaps)
    for at in bounds.physical(table):
        snap = snaps[at] if snaps else None
        if snap is not None and not snap.over:
            snaps[at] = snap._replace(over="lost")
    return state._replace(snaps=tuple(snaps))
