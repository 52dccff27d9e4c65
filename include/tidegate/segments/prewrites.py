"""Prewrites and their answers: rows before their transaction's commit, and their fate.

In:  the records in a source's segments, in log order: a Pending where unanswered rows end, an
     Answer where an earlier transaction is committed or rolled back.
Out: Prewrites, each a pointer to rows in bronze and its state.

A Pending never holds `resolved_ts` back: its rows are due at the commit_ts of its answer, the
answer's place in the log. A window is therefore whole without the open prewrites at its end, and a
window with an answer gets the rows, however far back in bronze they lie. An open transaction that a
segment was cut in is none of this: its commit_ts is its own, resolved_ts waits for it, and a
segment's neighbours say whether it went on (segments/window.py).

The Pending of an answer: the last one of its id before it without an answer. An id may be used
again once it is answered. An answer is taken once: what a killed window has taken before is
recognised by its commit_ts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Self

from tidegate.tables.prewrites_table import PrewriteState


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows in wait of an answer. id: the answer's name for them. start_ts: their commit_ts in their segments, from
    began_seq to ended_seq. tables: `database.table`, as a segment names them.
    """

    id: str
    start_ts: int
    began_seq: int
    ended_seq: int
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrewriteAnswer:
    """commit_ts: where it stands, and what its rows get. file, pos: of its event."""

    id: str
    committed: bool
    commit_ts: int
    file: str
    pos: int


@dataclass(frozen=True, slots=True)
class Prewrite:
    """A row of control/prewrites; the meaning of each field stands in tables/prewrites_table.py."""

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
    """Those of one source that are open, or answered above the cut."""

    def __init__(self, source: str, known: Iterable[Prewrite] = ()) -> None:
        """known: in any order."""
        self._source = source
        self._by_id: dict[str, list[Prewrite]] = {}
        self._answered: set[str] = set()  # ids with an answer: a window looks at these, not at all that is open
        for prewrite in sorted(known, key=lambda entry: entry.start_ts):
            self._by_id.setdefault(prewrite.id, []).append(prewrite)
            if prewrite.answer_ts:
                self._answered.add(prewrite.id)

    def __iter__(self) -> Iterator[Prewrite]:
        return (prewrite for same in self._by_id.values() for prewrite in same)

    def take(self, logged: Sequence[Pending | PrewriteAnswer]) -> list[Prewrite]:
        """The new prewrites with these, in log order; each prewrite once, in its last state."""
        changed: dict[tuple[str, int], Prewrite] = {}
        self._answered.update(answer.id for answer in logged if isinstance(answer, PrewriteAnswer))
        for entry in logged:
            now = self._begin(entry) if isinstance(entry, Pending) else self._answer(entry)
            if now is not None:
                changed[now.id, now.start_ts] = now
        return list(changed.values())

    def forget(self, upto_ts: int) -> None:
        """Let go of what was answered at or below upto_ts."""
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
        """Those whose answer is in (after_ts, upto_ts]."""
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
        # The last one of its id that waits: an id may be used again, but only after its answer.
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
        """Open ones, begun at or below upto_ts and missing in the source's list of prepared names."""
        return [
            prewrite
            for prewrite in self
            if prewrite.state is PrewriteState.OPEN and prewrite.start_ts <= upto_ts and prewrite.id not in prepared
        ]

    def decide(self, orphan: Prewrite, state: PrewriteState, place: PrewriteAnswer, decided_by: str) -> Prewrite:
        """The decision about an orphan. place: where the source's word on its prepared branches stands in its log."""
        same = self._by_id[orphan.id]
        self._answered.add(orphan.id)
        decision = replace(orphan.answered(place, state), decided_by=decided_by)
        same[same.index(orphan)] = decision
        return decision

    def _late(self, decided: Prewrite, answer: PrewriteAnswer) -> Prewrite | None:
        """An answer to what was decided without it: the same word is none; another one holds its tables."""
        if answer.committed == (decided.state is PrewriteState.COMMITTED):
            return None
        late = replace(Prewrite.unknown(self._source, answer), tables=decided.tables)
        self._by_id[answer.id].append(late)
        return late


def within_segment(
    source: str, logged: Iterable[Pending | PrewriteAnswer]
) -> tuple[list[Prewrite], list[Pending | PrewriteAnswer]]:
    """(prewrites wholly in one segment with their answers, the rest for others to answer).

    logged: of one segment, in log order.
    """
    waiting: dict[str, Pending] = {}
    whole: list[Prewrite] = []
    rest: list[Pending | PrewriteAnswer] = []
    for entry in logged:
        pending = waiting.pop(entry.id, None)
        if isinstance(entry, Pending):
            # An earlier one of this id had no answer in this segment: others look for it.
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
    """In log order; what is prepared and answered at once has one commit_ts."""
    return (entry.start_ts, False) if isinstance(entry, Pending) else (entry.commit_ts, True)
