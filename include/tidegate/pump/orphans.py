"""Prewrites without an answer: what became of them by TiDB's MVCC records.

In:  a Pump's pairing; a TiDB to ask.
Out: certain answers. The other prewrites wait, and hold resolved_ts back.

TiDB's record of a commit or a rollback is an answer at once. No record may also mean that the
transaction is slow and will still write, or that garbage collection took the record away.
Therefore:

- a prewrite's age counts from its arrival, by the timestamps that its Pump was told: a session may
  have begun hours before it commits;
- "nothing" counts when TiDB says it twice, orphan_seconds apart: a running transaction has a lock
  or a record by then;
- it counts only while garbage collection's safe point, asked for after the answer, is below every
  possible commit_ts of the transaction: above all timestamps named when its prewrite came, and
  above all named at the first look.

Beyond that nobody can tell. When TiDB has nothing at the second look, either, a person or the
pipeline file decides; for a DDL TiDB's own history does (parked.py).

TiDB is asked aside (aside.py), so its commits don't wait for its answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tidegate.commit_ts import physical_ms, time_text
from tidegate.errors import SourceUnavailable, TidegateError
from tidegate.limits import PUMP_ORPHAN_LOOK_SECONDS, PUMP_ORPHANS_ROWS_MAX, PUMP_WORD_SECONDS
from tidegate.pump.aside import Aside
from tidegate.tidb.records.mvcc import NOTHING
from tidegate.tidb.records.pairing import ROLLED_BACK, Pairing, UnansweredPrewrite

log = logging.getLogger(__name__)


class Words(Protocol):
    """Decisions about transactions that MVCC has nothing of, by a person, the pipeline file, or for
    a DDL TiDB's history: start_ts -> commit_ts or ROLLED_BACK. One that nobody was asked about yet
    is put before a person.
    """

    def decided(self, lost: Sequence[UnansweredPrewrite[int]]) -> dict[int, int]: ...


class Fates(Protocol):
    """TiDB's answer about a transaction: its commit_ts, ROLLED_BACK, NOTHING, or None while it runs."""

    def fate(self, key: bytes, start_ts: int) -> int | None: ...

    def safe_point(self) -> int:
        """Records of commits at or below it may be gone. Raises SourceUnavailable, SourceRefused."""
        ...


@dataclass(frozen=True, slots=True)
class _Look:
    """fate: of a prewrite. at_ts: the newest timestamp that the Pump knew at the question. safe_point: as of after the
    answer.
    """

    prewrite: UnansweredPrewrite[int]
    fate: int | None
    at_ts: int
    safe_point: int


@dataclass(slots=True)
class PumpOrphans:
    """fates: None: nobody can be asked. words: None: nobody decides. _absent, _lost: start_ts ->
    the Pump's knowledge when TiDB first had nothing of it, and when nobody could tell any more.
    _ripe: those for a person to decide.
    """

    fates: Fates | None
    seconds: float
    words: Words | None = None
    ask_at: float = 0.0
    _word_at: float = 0.0
    _absent: dict[int, int] = field(default_factory=dict)
    _lost: dict[int, int] = field(default_factory=dict)
    _ripe: dict[int, UnansweredPrewrite[int]] = field(default_factory=dict)
    _decided: Aside[dict[int, int]] = field(default_factory=lambda: Aside("decided"))
    _asked: Aside[list[_Look]] = field(default_factory=lambda: Aside("orphans"))

    def answers(self, pairing: Pairing[int], node: str) -> Iterator[tuple[UnansweredPrewrite[int], int]]:
        """Prewrites with their commit_ts or ROLLED_BACK."""
        if self.fates is None:
            return
        try:
            looks = self._asked.answer()
        except TidegateError as error:
            log.warning("the fate of transactions without an answer isn't known yet: %s", error)
            looks = None
        for look in looks or ():
            fate = self._judged(look)
            if fate is not None and pairing.waits(look.prewrite.start_ts):
                said = "rolled back" if fate == ROLLED_BACK else f"committed at {fate}"
                log.warning("transaction %d had no answer; TiDB says it was %s", look.prewrite.start_ts, said)
                yield look.prewrite, fate
        yield from self._words(pairing)
        now = time.monotonic()
        if not self._asked.waits and now >= self.ask_at:
            self.ask_at = now + PUMP_ORPHAN_LOOK_SECONDS
            self._ask(pairing, node)

    def _words(self, pairing: Pairing[int]) -> Iterator[tuple[UnansweredPrewrite[int], int]]:
        """The decisions about those that TiDB can't tell of."""
        try:
            decided = self._decided.answer() or {}
        except TidegateError as error:
            log.warning("the decisions about transactions beyond TiDB's knowledge aren't known yet: %s", error)
            decided = {}
        self._ripe = {start_ts: ripe for start_ts, ripe in self._ripe.items() if pairing.waits(start_ts)}
        for start_ts, fate in decided.items():
            if (prewrite := self._ripe.pop(start_ts, None)) is not None:
                said = "rolled back" if fate == ROLLED_BACK else f"committed, at {fate}"
                log.warning(
                    "transaction %d, which TiDB doesn't know any more, is decided: it counts as %s", start_ts, said
                )
                yield prewrite, fate
        now = time.monotonic()
        if self.words is not None and self._ripe and not self._decided.waits and now >= self._word_at:
            self._word_at = now + PUMP_WORD_SECONDS
            self._decided.ask(partial(self.words.decided, list(self._ripe.values())))

    def _ask(self, pairing: Pairing[int], node: str) -> None:
        latest_ts = pairing.latest_ts(node)
        old_ms = physical_ms(latest_ts) - self.seconds * 1000
        oldest = pairing.oldest(PUMP_ORPHANS_ROWS_MAX)
        waiting = {prewrite.start_ts for prewrite in oldest}
        self._absent = {start_ts: at_ts for start_ts, at_ts in self._absent.items() if start_ts in waiting}
        wanted = [
            prewrite
            for prewrite in oldest
            if physical_ms(self._absent.get(prewrite.start_ts, prewrite.came_ts)) <= old_ms
        ]
        if wanted:
            self._asked.ask(partial(self._look_up, wanted, latest_ts))

    def _look_up(self, wanted: Sequence[UnansweredPrewrite[int]], at_ts: int) -> list[_Look]:
        """TiDB's answers, as far as they came. Raises SourceUnavailable, SourceRefused."""
        assert self.fates is not None, "else none is asked for"
        looks: list[tuple[UnansweredPrewrite[int], int | None]] = []
        for prewrite in wanted:
            try:
                looks.append((prewrite, self.fates.fate(prewrite.key, prewrite.start_ts)))
            except SourceUnavailable:
                if not looks:
                    raise
                break  # the answers so far count; the rest is asked for again
        nothing = any(fate == NOTHING for _, fate in looks)
        safe_point = self.fates.safe_point() if nothing else 0
        return [_Look(lookup, fate, at_ts, safe_point) for lookup, fate in looks]

    def _judged(self, look: _Look) -> int | None:
        """None: not yet."""
        if look.fate != NOTHING:
            return look.fate
        start_ts = look.prewrite.start_ts
        if start_ts in self._lost:
            self._note_lost(look)
            return None
        before_ts = self._absent.get(start_ts)
        if look.safe_point >= (look.prewrite.came_ts if before_ts is None else before_ts):
            self._note_lost(look)
            return None
        if before_ts is not None:
            return ROLLED_BACK
        self._absent[start_ts] = look.at_ts
        return None

    def _note_lost(self, look: _Look) -> None:
        start_ts, job_id = look.prewrite.start_ts, look.prewrite.place
        if start_ts not in self._lost:
            self._lost[start_ts] = look.at_ts
            decides = f"TiDB's history of DDL job {job_id} decides" if job_id else "`tidegate prewrites` decides"
            log.error(
                "nobody can say whether transaction %d was committed: TiDB has nothing of it, and its garbage"
                " collection has passed it (safe point %s). It and everything committed after it waits: %s once"
                " it is listed by `tidegate prewrites`. tidb_gc_life_time above twice orphan_seconds keeps it from"
                " coming again",
                start_ts,
                time_text(look.safe_point),
                decides,
            )
        waited_ms = physical_ms(look.at_ts) - physical_ms(self._lost[start_ts])
        if waited_ms >= self.seconds * 1000:
            self._ripe[start_ts] = look.prewrite
