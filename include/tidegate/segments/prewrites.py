"""Prewrites and their answers: rows that come before their transaction's commit, and what becomes
of them.

In:  the records in a source's segments, in log order. A Pending is the end of rows without an
     answer. A PrewriteAnswer commits or rolls back an earlier transaction.
Out: Prewrites: each has its state, and points to its rows in bronze.

A Pending never holds resolved_ts back. Its rows are due at the commit_ts of its answer, which is
the answer's place in the log. Therefore a window is complete without the prewrites that are open at its
end. A window with an answer gets the rows, however far back in bronze they lie. An open transaction
in which a segment was cut is something else: it has its own commit_ts, resolved_ts waits for it,
and the neighbouring segments say whether it went on (segments/window.py).

An answer belongs to the last Pending of its id that has no answer yet: an id may be used again
after its answer. An answer is taken once: its commit_ts shows whether a killed window has taken it
before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Self

from tidegate.tables.prewrites_table import PrewriteState


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows that wait for an answer. id: as the answer names them. start_ts: their commit_ts in
    their segments, from began_seq to ended_seq. tables: `database.table`, as in Segment.tables.
    """

    id: str
    start_ts: int
    began_seq: int
    ended_seq: int
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrewriteAnswer:
    """commit_ts: of its place in the log; its rows get this one. file, pos: of its event."""

    id: str
    committed: bool
    commit_ts: int
    file: str
    pos: int


@dataclass(frozen=True, slots=True)
class Prewrite:
    """A row of control/prewrites; tables/prewrites_table.py says what each field means."""

    source: str
    id: str
    start_ts: int
    began_seq: int
    ended_seq: int
    tables: tuple[str, ...]
    state: PrewriteState = PrewriteState.OPEN
    answer_ts: int = 0
    answer_file: str = ""
    answer_pos: int = 0
    decided_by: str = ""

    @property
    def waits(self) -> bool:
        """Whether an answer may still come."""
        return self.state in (PrewriteState.OPEN, PrewriteState.PARKED)

    @classmethod
    def of(cls, source: str, pending: Pending) -> Self:
        return cls(source, pending.id, pending.start_ts, pending.began_seq, pending.ended_seq, pending.tables)

    @classmethod
    def unknown(cls, source: str, answer: PrewriteAnswer) -> Self:
        """The prewrite of a committing answer whose rows never came."""
        return cls(source, answer.id, answer.commit_ts, 0, 0, ()).answered(answer, PrewriteState.UNKNOWN)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        cells = {field.name: row[field.name] for field in fields(cls)}
        return cls(**cells | {"state": PrewriteState(row["state"]), "tables": tuple(row["tables"])})

    def to_row(self, recorded_at: datetime) -> dict[str, Any]:
        cells = {field.name: getattr(self, field.name) for field in fields(self)}
        return cells | {"tables": list(self.tables), "recorded_at": recorded_at}

    def answered(self, answer: PrewriteAnswer, state: PrewriteState | None = None) -> Self:
        outcome = state or (PrewriteState.COMMITTED if answer.committed else PrewriteState.ROLLED_BACK)
        at = answer
        return replace(
            self, state=outcome, answer_ts=at.commit_ts, answer_file=at.file, answer_pos=at.pos, decided_by=""
        )


class Prewrites:
    """The prewrites of one source that are open, or were answered above the cut."""

    def __init__(self, source: str, known: Iterable[Prewrite] = ()) -> None:
        """known: in any order."""
        self._source = source
        self._by_id: dict[str, list[Prewrite]] = {}
        self._answered: set[str] = set()  # ids with an answer: a window looks at these, and not at all open ones
        for prewrite in sorted(known, key=lambda entry: entry.start_ts):
            self._by_id.setdefault(prewrite.id, []).append(prewrite)
            if prewrite.answer_ts:
                self._answered.add(prewrite.id)

    def __iter__(self) -> Iterator[Prewrite]:
        return (prewrite for same in self._by_id.values() for prewrite in same)

    def take(self, logged: Sequence[Pending | PrewriteAnswer]) -> list[Prewrite]:
        """Take in records in log order. Returns the changed prewrites, each once, in its last
        state.
        """
        changed: dict[tuple[str, int], Prewrite] = {}
        self._answered.update(answer.id for answer in logged if isinstance(answer, PrewriteAnswer))
        for entry in logged:
            now = self._begin(entry) if isinstance(entry, Pending) else self._answer(entry)
            if now is not None:
                changed[now.id, now.start_ts] = now
        return list(changed.values())

    def forget(self, upto_ts: int) -> None:
        """Drop prewrites answered at or below upto_ts. Decided ones stay: the log may still answer
        them.
        """
        for name in list(self._answered):
            same = self._by_id.get(name, [])
            kept = [
                prewrite for prewrite in same if prewrite.waits or prewrite.decided_by or prewrite.answer_ts > upto_ts
            ]
            if kept:
                self._by_id[name] = kept
            else:
                self._by_id.pop(name, None)
            if not any(prewrite.answer_ts for prewrite in kept):
                self._answered.remove(name)

    def answered_in(self, after_ts: int, upto_ts: int) -> list[Prewrite]:
        """Prewrites whose answer is in (after_ts, upto_ts]."""
        same = (prewrite for name in self._answered for prewrite in self._by_id.get(name, ()))
        return [prewrite for prewrite in same if after_ts < prewrite.answer_ts <= upto_ts]

    def _begin(self, pending: Pending) -> Prewrite | None:
        same = self._by_id.setdefault(pending.id, [])
        if any(prewrite.start_ts == pending.start_ts for prewrite in same):
            return None  # a killed window has taken it before
        same.append(Prewrite.of(self._source, pending))
        return same[-1]

    def _answer(self, answer: PrewriteAnswer) -> Prewrite | None:
        same = self._by_id.setdefault(answer.id, [])
        if any(prewrite.answer_ts == answer.commit_ts for prewrite in same):
            return None
        # The last waiting one of its id: an id may be used again, but only after its answer.
        for at in range(len(same) - 1, -1, -1):
            if same[at].waits and same[at].start_ts <= answer.commit_ts:
                same[at] = same[at].answered(answer)
                return same[at]
        decided = next((prewrite for prewrite in reversed(same) if prewrite.decided_by), None)
        if decided is not None:
            return self._late(decided, answer)
        if not answer.committed:
            return None  # rows that never came are rolled back: nothing changes
        same.append(Prewrite.unknown(self._source, answer))
        return same[-1]

    def orphans(self, upto_ts: int, prepared: Collection[str]) -> list[Prewrite]:
        """Open prewrites that began at or below upto_ts, and that the source doesn't list as
        prepared.
        """
        return [
            prewrite
            for prewrite in self
            if prewrite.state is PrewriteState.OPEN and prewrite.start_ts <= upto_ts and prewrite.id not in prepared
        ]

    def decide(self, orphan: Prewrite, state: PrewriteState, place: PrewriteAnswer, decided_by: str) -> Prewrite:
        """Record a decision about an orphan. place: where the source's list of prepared branches is
        in its log.
        """
        same = self._by_id[orphan.id]
        self._answered.add(orphan.id)
        decision = replace(orphan.answered(place, state), decided_by=decided_by)
        same[same.index(orphan)] = decision
        return decision

    def _late(self, decided: Prewrite, answer: PrewriteAnswer) -> Prewrite | None:
        """The log answers a decided prewrite. The same answer changes nothing; another one holds
        its tables.
        """
        if answer.committed == (decided.state is PrewriteState.COMMITTED):
            return None
        late = replace(Prewrite.unknown(self._source, answer), tables=decided.tables)
        self._by_id[answer.id].append(late)
        return late


def within_segment(
    source: str, logged: Iterable[Pending | PrewriteAnswer]
) -> tuple[list[Prewrite], list[Pending | PrewriteAnswer]]:
    """(prewrites that are in one segment with their answers, the other records).

    logged: of one segment, in log order.
    """
    waiting: dict[str, Pending] = {}
    whole: list[Prewrite] = []
    rest: list[Pending | PrewriteAnswer] = []
    for entry in logged:
        pending = waiting.pop(entry.id, None)
        if isinstance(entry, Pending):
            # An earlier one of this id has no answer in this segment: it may come in a later one.
            rest += [pending] if pending is not None else []
            waiting[entry.id] = entry
        elif pending is None:
            rest.append(entry)
        elif pending.began_seq != pending.ended_seq:  # some of its rows are in earlier segments
            rest += [pending, entry]
        else:
            whole.append(Prewrite.of(source, pending).answered(entry))
    rest += waiting.values()
    return whole, sorted(rest, key=_place)


def _place(entry: Pending | PrewriteAnswer) -> tuple[int, bool]:
    """Sorts records in log order; a transaction prepared and answered at once has one commit_ts for
    both.
    """
    return (entry.start_ts, False) if isinstance(entry, Pending) else (entry.commit_ts, True)
