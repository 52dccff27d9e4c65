"""Each prewrite with its answer, over binlogs in order of arrival.

In:  binlogs of a cluster's pumps, each pump's in its order; answers that TiDB's MVCC gave for prewrites whose own got
     lost. Binlogs may come late, out of order, twice, and from another pump than their prewrite's.
Out: committed transactions in order of commit_ts, once each, and resolved_ts: no later one has a commit_ts at or below.

Why resolved_ts holds. A transaction takes its commit_ts from PD after its prewrite was
acknowledged, and PD's timestamps only grow. Let a pump store a binlog that names the timestamp T. A
binlog that it stores later is committed above T, or its prewrite was there before. A prewrite
without an answer is committed above its own start_ts. Therefore resolved_ts is the minimum of the pumps'
latest timestamps and of the oldest unanswered start_ts. It never goes back: a late prewrite with an
older start_ts commits above all timestamps that its pump has named before.

A prewrite may come again after its answer: TiDB repeats it if an acknowledgement got lost. It is
recognised by its start_ts. For prewrites that were answered long ago only resolved_ts is known: if
the answer is at or below the resolved_ts at the copy's arrival, the first copy was applied.

Time decides nothing here: an orphan waits until it is answered, and holds resolved_ts back.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tidegate.errors import StreamCorrupt
from tidegate.limits import TIDB_ANSWERED_COMMITS_MAX
from tidegate.remedy import REPORT
from tidegate.tidb.records.payload import NOTES, Binlog, BinlogType

ROLLED_BACK: Final = 0
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class UnansweredPrewrite(Generic[P]):
    """A prewrite without an answer. place: the place of its bytes, or they themselves. resolved_ts: at its arrival.
    came_ts: the latest timestamp in its pump's binlogs by then, its own among them.
    """

    start_ts: int
    key: bytes
    place: P
    resolved_ts: int
    came_ts: int


@dataclass(frozen=True, slots=True)
class Transaction(Generic[P]):
    """place: of its prewrite."""

    commit_ts: int
    start_ts: int
    place: P


class Pairing(Generic[P]):
    """pumps: all whose binlogs will come; resolved_ts waits for each of them. after_ts: all at or below is applied.

    Memory: unanswered prewrites, committed transactions above resolved_ts, and the newest TIDB_ANSWERED_COMMITS_MAX
    answers.
    """

    def __init__(self, pumps: Collection[str], after_ts: int = 0) -> None:
        self._latest = dict.fromkeys(pumps, after_ts)
        self._resolved = after_ts
        self._unanswered: dict[int, UnansweredPrewrite[P]] = {}
        self._oldest: list[int] = []  # a heap of start_ts, of which some are answered
        self._early: dict[int, int] = {}  # answers whose prewrite hasn't come
        self._answered: OrderedDict[int, int] = OrderedDict()
        self._ready: list[tuple[int, int, P]] = []
        self._given = after_ts

    @property
    def resolved_ts(self) -> int:
        while self._oldest and self._oldest[0] not in self._unanswered:
            heapq.heappop(self._oldest)
        bound = min(self._latest.values(), default=self._resolved)
        if self._oldest:
            bound = min(bound, self._oldest[0])
        self._resolved = max(self._resolved, bound)
        return self._resolved

    def latest_ts(self, pump: str) -> int:
        """The latest timestamp that a pump's binlogs name."""
        return self._latest[pump]

    def oldest(self, count: int) -> list[UnansweredPrewrite[P]]:
        """Some of the unanswered prewrites, the oldest first; cheap also when a million wait."""
        taken = list[int]()
        while self._oldest and len(taken) < count:
            start_ts = heapq.heappop(self._oldest)
            if start_ts in self._unanswered:
                taken.append(start_ts)
        for start_ts in taken:
            heapq.heappush(self._oldest, start_ts)
        return [self._unanswered[start_ts] for start_ts in taken]

    def waits(self, start_ts: int) -> bool:
        """Whether a prewrite is here without an answer."""
        return start_ts in self._unanswered

    @property
    def unanswered(self) -> list[UnansweredPrewrite[P]]:
        """The unanswered prewrites by start_ts, the oldest first."""
        return [self._unanswered[start_ts] for start_ts in sorted(self._unanswered)]

    def end(self) -> None:
        """Nothing more comes, from any pump."""
        latest = max(self._latest.values(), default=self._resolved)
        self._latest = dict.fromkeys(self._latest, latest)

    def take(self, binlog: Binlog, pump: str, place: P) -> None:
        """One binlog of a pump. Raises StreamCorrupt when it contradicts what came before."""
        if pump not in self._latest:
            raise StreamCorrupt(f"pump {pump} has a binlog, and never joined", remedy=REPORT)
        if binlog.tp in NOTES:
            return
        if binlog.is_fake:
            pass
        elif binlog.tp is BinlogType.PREWRITE:
            came_ts = max(self._latest[pump], binlog.start_ts)
            self._prewrite(UnansweredPrewrite(binlog.start_ts, binlog.prewrite_key, place, self.resolved_ts, came_ts))
        else:
            self.answer(binlog.start_ts, binlog.commit_ts if binlog.tp is BinlogType.COMMIT else ROLLED_BACK)
        self._latest[pump] = max(self._latest[pump], binlog.start_ts, binlog.commit_ts)

    def _prewrite(self, prewrite: UnansweredPrewrite[P]) -> None:
        start_ts = prewrite.start_ts
        if start_ts in self._unanswered or start_ts in self._answered:
            return
        self._unanswered[start_ts] = prewrite
        heapq.heappush(self._oldest, start_ts)
        if start_ts in self._early:
            self.answer(start_ts, self._early.pop(start_ts))

    def answer(self, start_ts: int, commit_ts: int) -> None:
        """The result of a prewrite: its commit_ts, or ROLLED_BACK. From a binlog, or from TiDB's MVCC."""
        known = self._answered.get(start_ts, self._early.get(start_ts))
        if known is not None:
            if known != commit_ts:
                raise _contradiction(start_ts, known, commit_ts)
            return
        prewrite = self._unanswered.pop(start_ts, None)
        if prewrite is None:
            self._early[start_ts] = commit_ts
            self._forget(self._early)
            return
        self._answered[start_ts] = commit_ts
        self._forget(self._answered)
        if commit_ts == ROLLED_BACK or commit_ts <= prewrite.resolved_ts:
            return
        if commit_ts <= self._given:
            raise StreamCorrupt(
                f"transaction {start_ts} was committed at {commit_ts}, after all up to {self._given} was passed on",
                remedy=f"a pump broke its promise; {REPORT}",
            )
        heapq.heappush(self._ready, (commit_ts, start_ts, prewrite.place))

    def _forget(self, answers: dict[int, int]) -> None:
        while len(answers) > TIDB_ANSWERED_COMMITS_MAX:
            answers.pop(next(iter(answers)))

    def committed(self, upto_ts: int) -> Iterator[Transaction[P]]:
        """Those at or below a timestamp that aren't given yet, in order. upto_ts: at most resolved_ts."""
        if upto_ts > self.resolved_ts:
            raise ValueError(f"{upto_ts} isn't resolved: {self.resolved_ts}")
        while self._ready and self._ready[0][0] <= upto_ts:
            yield Transaction(*heapq.heappop(self._ready))
        self._given = max(self._given, upto_ts)


def _contradiction(start_ts: int, first: int, second: int) -> StreamCorrupt:
    said = ["rolled back" if ts == ROLLED_BACK else f"committed at {ts}" for ts in (first, second)]
    return StreamCorrupt(
        f"transaction {start_ts} was {said[0]}, says one answer, and {said[1]}, says another",
        remedy=f"ask TiDB which is true (HTTP /mvcc/hex), and {REPORT}",
    )
