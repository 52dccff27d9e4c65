"""A model of one source captured on two machines: value logs, leases, what a log owes, bronze, kills, a lake put back.

In:  a World; cures that are left out.
Out: states of two machines with a folder each, of the lake, and of what the source was told or has in its log.

The product's own rules are asked: recover() says where a start goes on, check_attaches() whether a log fits once the
lake answers, check_continues() (seq, commit_ts, place) what bronze takes. The steps between them are those of
capture/run.py, lander.py, source_lease.py and owing.py.

The promise: bronze has each transaction once, in order; and none is missing below its resolved_ts, unless a person
said that the log which has it is lost. A source that promises can't be asked again: what a machine acknowledged is in
its log alone.

Not covered: the value log's files (tests/unit/capture), leases between clocks (tests/unit/delta), transactions over
several segments, GTIDs, a folder that is moved to the other machine, a log that a person gave up by mistake and that
comes back while the lake is away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple
from unittest import mock

from tests.model.cuts import Cut, FakeBronze, FakeLog, made
from tidegate.capture import checkpoint, recovery
from tidegate.capture.own_stream import NOTHING, check_continues
from tidegate.errors import Fenced, LakeUnavailable, StreamCorrupt
from tidegate.lake.bronze import table

NOBODY: Final = -1
RESTORED: Final = 9  # the id of what a lake that was put back counts on: a log that nobody has
CURES: Final = frozenset(
    {
        "a log that owes keeps other machines from beginning",
        "a machine looks again behind its word in the lake",
        "a restored lake counts on what was acknowledged since",
        "bronze has one writer at a time",
        "a log goes on where bronze ends",
        "common segments are compared",
        "a promised log isn't moved aside",
    }
)


class Run(NamedTuple):
    """A process. at: its next step. end: where its next segment begins (seq, resolved, place). ours: the seq to which
    it knows bronze; -1: it couldn't ask. granted: its lease was good when it looked.
    """

    at: str
    end: tuple[int, int, int] = (0, 0, 0)
    ours: int = -1
    granted: bool = False


class Machine(NamedTuple):
    """noted: the folder knows that it owes."""

    log: tuple[Cut, ...] = ()
    noted: bool = False
    run: Run | None = None


class State(NamedTuple):
    """txns: as many has the source. debts: of which machines' logs the lake counts. copy: bronze and debts of a backup.

    lost: transactions that a person gave up. left: how many kills, sleeps, outages, words and restores may come.
    """

    txns: int = 0
    bronze: tuple[Cut, ...] = ()
    debts: frozenset[int] = frozenset()
    holder: int = NOBODY
    is_up: bool = True
    machines: tuple[Machine, Machine] = (Machine(), Machine())
    lost: frozenset[int] = frozenset()
    copy: tuple[tuple[Cut, ...], frozenset[int]] | None = None
    left: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)


KILL, SLEEP, OUTAGE, WORD, RESTORE = range(5)


@dataclass(frozen=True)
class World:
    """left: as in State. cuts: how many segments a machine may cut."""

    name: str
    promises: bool
    txns: int
    seqs: int
    left: tuple[int, int, int, int, int]


WORLDS: Final = (
    World("promises: kills, sleeps", True, 2, 2, (2, 1, 0, 0, 0)),
    World("promises: no lake", True, 2, 3, (0, 0, 1, 0, 0)),
    World("promises: a person's word", True, 2, 2, (1, 0, 0, 1, 0)),
    World("promises: put back", True, 2, 3, (0, 0, 0, 1, 1)),
    World("asked again: kills, sleeps", False, 2, 3, (1, 1, 0, 0, 0)),
    World("asked again: no lake", False, 2, 2, (1, 0, 1, 0, 0)),
    World("asked again: put back", False, 2, 2, (1, 0, 0, 0, 1)),
)


class TwoMachines:
    """See the module's docstring."""

    def __init__(self, world: World, *without: str) -> None:
        assert set(without) <= CURES
        self.world, self.cures = world, CURES - set(without)

    def first(self) -> State:
        return State(left=self.world.left)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if not self.world.promises and state.txns < self.world.txns:
            yield "the source commits", state._replace(txns=state.txns + 1)
        for number, machine in enumerate(state.machines):
            for what, after in self._machine(state, number, machine):
                yield f"{'AB'[number]} {what}", after
        yield from self._people(state)

    def _people(self, state: State) -> Iterator[tuple[str, State]]:
        if state.is_up and state.left[OUTAGE]:
            yield "the lake goes away", _spent(state, OUTAGE)._replace(is_up=False)
        if not state.is_up:
            yield "the lake is back", state._replace(is_up=True)
            return
        rests = all(machine.run is None for machine in state.machines)
        if state.left[WORD] and self._is_free(state, NOBODY):
            for number in state.debts:
                yield from self._gives_up(state, number)
        if state.left[RESTORE]:
            if state.copy is None:
                yield "a backup is made", state._replace(copy=(state.bronze, state.debts))
            elif rests and state.copy[0]:
                bronze, debts = state.copy
                if self.world.promises and "a restored lake counts on what was acknowledged since" in self.cures:
                    debts |= {RESTORED}
                yield "the lake is put back", _spent(state, RESTORE)._replace(bronze=bronze, debts=debts, holder=NOBODY)

    def _gives_up(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        """A person says that a log is lost. It may come back all the same, but it isn't at work."""
        if number == RESTORED:
            only = set(range(1, state.txns + 1))
        elif state.machines[number].run is None:
            only = {cut.txn for cut in state.machines[number].log if cut.txn}
        else:
            return
        lost = state.lost | only - {cut.txn for cut in state.bronze}
        said = _spent(state, WORD)._replace(debts=state.debts - {number}, lost=lost)
        yield f"a person gives up what log {number} has", said

    def _machine(self, state: State, number: int, machine: Machine) -> Iterator[tuple[str, State]]:
        run = machine.run
        if run is None:
            yield from self._starts(state, number)
            return
        if state.left[KILL]:
            yield "is killed", _spent(_with(state, number, machine._replace(run=None)), KILL)
        if state.left[SLEEP] and state.holder == number:
            yield "sleeps, and its lease is over", _spent(state, SLEEP)._replace(holder=NOBODY)
        if run.at == "recover":
            yield from self._recovers(state, number, machine)
        elif run.at in ("look", "write", "look again"):
            yield from self._begins(state, number, machine, run)
        else:
            yield from self._reads(state, number, machine, run)
            yield from self._lands(state, number, machine, run)

    def _starts(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        machine = state.machines[number]
        begun = _with(state, number, machine._replace(run=Run("recover")))
        if not state.is_up:
            yield "starts without the lake", begun
        elif self._is_free(state, number):
            yield "starts", begun._replace(holder=number)

    def _is_free(self, state: State, number: int) -> bool:
        """Whether the lease may be had: its holder is gone, or his term is over."""
        return state.holder in (NOBODY, number) or state.machines[state.holder].run is None

    def _recovers(self, state: State, number: int, machine: Machine) -> Iterator[tuple[str, State]]:
        promised = self.world.promises or machine.noted
        if "a promised log isn't moved aside" not in self.cures:
            promised = False
        try:
            found = _recovered(state.bronze, machine.log, state.is_up, self.cures)
        except LakeUnavailable:
            yield "can't start without the lake", self._ended(state, number)
            return
        except Fenced:
            if promised:
                yield "refuses its value log", self._ended(state, number)
                return
            machine = machine._replace(log=())
            found = _recovered(state.bronze, (), state.is_up, self.cures)
        place = found.checkpoint.place.offset
        run = Run(
            "look" if self.world.promises else "read",
            (found.checkpoint.seq, found.checkpoint.resolved_ts, place),
            len(state.bronze) if state.is_up else -1,
        )
        yield "finds where to go on", _with(state, number, machine._replace(run=run))

    def _begins(self, state: State, number: int, machine: Machine, run: Run) -> Iterator[tuple[str, State]]:
        """As Owing.begin."""
        if not state.is_up:
            after = machine._replace(run=run._replace(at="read"))
            going_on = machine.noted
            yield "counts on its own word", _with(state, number, after) if going_on else self._ended(state, number)
            return
        others = state.debts - {number}
        owed = bool(others) and "a log that owes keeps other machines from beginning" in self.cures
        if run.at == "write":
            after = machine._replace(run=run._replace(at="look again"))
            yield "writes that it owes", _with(state, number, after)._replace(debts=state.debts | {number})
        elif owed and (run.at == "look" or "a machine looks again behind its word in the lake" in self.cures):
            taken_back = state.debts - {number} if run.at == "look again" and not machine.noted else state.debts
            yield "sees that another log owes", self._ended(state, number)._replace(debts=taken_back)
        else:
            at = {"look": "write", "look again": "read"}[run.at]
            after = machine._replace(noted=machine.noted or at == "read", run=run._replace(at=at))
            yield f"sees no other log that owes, and goes on to {at}", _with(state, number, after)

    def _reads(self, state: State, number: int, machine: Machine, run: Run) -> Iterator[tuple[str, State]]:
        seq, resolved, place = run.end
        if seq >= self.world.seqs:
            return
        if self.world.promises and state.txns < self.world.txns:
            txn = state.txns + 1
            cut = Cut(seq + 1, resolved, 2 * txn, place, place + 1, txn)
            yield f"acknowledges {txn}", _logged(state._replace(txns=txn), number, cut)
        if not self.world.promises and place < state.txns:
            cut = Cut(seq + 1, resolved, 2 * (place + 1), place, place + 1, place + 1)
            yield f"reads {place + 1}", _logged(state, number, cut)
        now = 2 * state.txns + 1
        if resolved < now and (self.world.promises or place == state.txns):
            cut = Cut(seq + 1, resolved, now, place, place + self.world.promises, 0)
            yield "cuts a heartbeat", _logged(state, number, cut)

    def _lands(self, state: State, number: int, machine: Machine, run: Run) -> Iterator[tuple[str, State]]:
        if not state.is_up:
            return
        if run.ours < 0:
            yield self._attaches(state, number, machine, run)
            return
        waiting = [cut for cut in machine.log if cut.seq > run.ours]
        if not waiting:
            yield from self._ends(state, number, machine)
        elif run.granted:
            yield self._appends(state, number, machine, run)
        elif self._is_free(state, number) or "bronze has one writer at a time" not in self.cures:
            granted = _with(state, number, machine._replace(run=run._replace(granted=True)))
            yield "has its lease", granted._replace(holder=number)
        else:
            yield "finds its lease taken", self._ended(state, number)

    def _attaches(self, state: State, number: int, machine: Machine, run: Run) -> tuple[str, State]:
        """As Lander._attach."""
        bronze = FakeBronze(state.bronze)
        log = FakeLog(machine.log)
        shared = [record.segment for record in islice(log.heads(max(len(state.bronze) - 1, 0)), 2)]
        newest = next(iter(bronze.last_segments()), None)
        try:
            if "a log goes on where bronze ends" in self.cures:
                with alike(self.cures):
                    checkpoint.check_attaches(shared, newest, "one", log.folder)
        except Fenced:
            return "finds a bronze that its log doesn't follow", self._ended(state, number)
        return "finds the end of bronze", _with(
            state, number, machine._replace(run=run._replace(ours=len(state.bronze)))
        )

    def _appends(self, state: State, number: int, machine: Machine, run: Run) -> tuple[str, State]:
        """As Bronze.append."""
        if len(state.bronze) != run.ours and "bronze has one writer at a time" in self.cures:
            return "meets another writer in bronze", self._ended(state, number)
        bronze = state.bronze
        for cut in machine.log:
            if cut.seq <= len(bronze):
                continue
            try:
                if bronze and "a log goes on where bronze ends" in self.cures:
                    table.check_continues(made(bronze[-1]), made(cut))
                    check_continues(made(bronze[-1]), made(cut))
            except StreamCorrupt:
                return "is refused by bronze", self._ended(state, number)
            bronze = (*bronze, cut)
        after = machine._replace(run=run._replace(granted=False, ours=len(bronze)))
        return "lands its segments", _with(state, number, after)._replace(bronze=bronze)

    def _ends(self, state: State, number: int, machine: Machine) -> Iterator[tuple[str, State]]:
        """All is landed; gc leaves the newest segment. Its debt goes behind its note."""
        rest = _with(state, number, Machine(machine.log[-1:]))
        if state.left[KILL]:
            yield "is killed between note and debt", _spent(rest, KILL)
        free = NOBODY if state.holder == number else state.holder
        yield "ends", rest._replace(debts=state.debts - {number}, holder=free)

    def _ended(self, state: State, number: int) -> State:
        free = NOBODY if state.holder == number else state.holder
        return _with(state, number, state.machines[number]._replace(run=None))._replace(holder=free)

    def broken(self, state: State) -> str:
        txns = [cut.txn for cut in state.bronze if cut.txn]
        if len(set(txns)) < len(txns):
            return f"bronze has {txns}: one of them twice"
        if sorted(txns) != txns:
            return f"bronze has {txns}, not in order"
        resolved = state.bronze[-1].resolved if state.bronze else 0
        lacks = {txn for txn in range(1, state.txns + 1) if 2 * txn <= resolved} - {*txns} - state.lost
        return f"bronze is resolved up to {resolved}, and lacks {sorted(lacks)}" if lacks else ""


def _with(state: State, number: int, machine: Machine) -> State:
    first, second = state.machines
    return state._replace(machines=(machine, second) if number == 0 else (first, machine))


def _spent(state: State, what: int) -> State:
    left = tuple(count - (at == what) for at, count in enumerate(state.left))
    return state._replace(left=left)  # type: ignore[arg-type]


def _logged(state: State, number: int, cut: Cut) -> State:
    machine = state.machines[number]
    assert machine.run is not None
    run = machine.run._replace(end=(cut.seq, cut.resolved, cut.end))
    return _with(state, number, machine._replace(log=(*machine.log, cut), run=run))


@cache
def _recovered(bronze: tuple[Cut, ...], log: tuple[Cut, ...], is_up: bool, cures: frozenset[str]) -> Any:
    lake: Any = FakeBronze(bronze, is_up)
    there: Any = FakeLog(log)
    with alike(cures):
        return recovery.recover(lake, there, NOTHING)


@contextmanager
def alike(cures: frozenset[str]) -> Iterator[None]:
    """Whether a segment that the log and bronze both have is compared."""
    with ExitStack() as patched:
        if "common segments are compared" not in cures:
            for module in (recovery, checkpoint):
                patched.enter_context(mock.patch.object(module, "check_alike"))
        yield
