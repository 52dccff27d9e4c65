"""Prewrites whose answer doesn't come: what TiDB's MVCC says became of them.

In:  a Pump's pairing; a TiDB to ask.
Out: answers that are certain. The others wait, and hold resolved_ts back.

A commit or a rollback that TiDB has a record of is an answer at once. That it has nothing may mean two more things: the
transaction is slow and will write yet, or garbage collection took its record away. So:

- a prewrite's age counts from when it came, by the timestamps that its Pump was told: a session may have begun hours
  before it commits;
- "nothing" counts when TiDB says it twice, orphan_seconds apart: what runs yet has a lock or a record by then;
- it counts only while the safe point of garbage collection, asked for behind the answer, is below every commit_ts that
  the transaction can have: above what was named when its prewrite came, and above what was named at the first look.

TiDB is asked aside (aside.py): its commits don't wait for what it answers here.
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
from tidegate.limits import PUMP_ORPHAN_LOOK_SECONDS, PUMP_ORPHANS_ROWS_MAX
from tidegate.pump.aside import Aside
from tidegate.tidb.mvcc import NOTHING
from tidegate.tidb.pairing import ROLLED_BACK, Pairing, Prewrite

log = logging.getLogger(__name__)


class Fates(Protocol):
    """What TiDB knows of a transaction: its commit_ts, ROLLED_BACK, NOTHING, or None while it is under way."""

    def fate(self, key: bytes, start_ts: int) -> int | None: ...

    def safe_point(self) -> int:
        """Records of commits at or below it may be gone. Raises SourceUnavailable, SourceRefused."""
        ...


@dataclass(frozen=True, slots=True)
class _Look:
    """fate: of a prewrite. at_ts: what the Pump had been told as it was asked. safe_point: behind the answer."""

    prewrite: Prewrite[int]
    fate: int | None
    at_ts: int
    safe_point: int


@dataclass(slots=True)
class Orphans:
    """fates: None: nobody can be asked. _absent: start_ts -> what the Pump had been told when
    TiDB first had nothing of it.
    """

    fates: Fates | None
    seconds: float
    ask_at: float = 0.0
    _absent: dict[int, int] = field(default_factory=dict)
    _lost: set[int] = field(default_factory=set)  # of which it was said that nobody can tell
    _asked: Aside[list[_Look]] = field(default_factory=lambda: Aside("orphans"))

    def answers(self, pairing: Pairing[int], node: str) -> Iterator[tuple[Prewrite[int], int]]:
        """Prewrites with their commit_ts or ROLLED_BACK."""
        if self.fates is None:
            return
        try:
            looks = self._asked.answer()
        except TidegateError as error:
            log.warning("what became of transactions without an answer isn't known yet: %s", error)
            looks = None
        for look in looks or ():
            fate = self._judged(look)
            if fate is not None and pairing.waits(look.prewrite.start_ts):
                said = "rolled back" if fate == ROLLED_BACK else f"committed at {fate}"
                log.warning("transaction %d had no answer; TiDB says it was %s", look.prewrite.start_ts, said)
                yield look.prewrite, fate
        now = time.monotonic()
        if not self._asked.waits and now >= self.ask_at:
            self.ask_at = now + PUMP_ORPHAN_LOOK_SECONDS
            self._ask(pairing, node)

    def _ask(self, pairing: Pairing[int], node: str) -> None:
        latest_ts = pairing.latest_ts(node)
        old_ms = physical_ms(latest_ts) - self.seconds * 1000
        oldest = pairing.oldest(PUMP_ORPHANS_ROWS_MAX)
        there = {prewrite.start_ts for prewrite in oldest}
        self._absent = {start_ts: at_ts for start_ts, at_ts in self._absent.items() if start_ts in there}
        wanted = [one for one in oldest if physical_ms(self._absent.get(one.start_ts, one.came_ts)) <= old_ms]
        if wanted:
            self._asked.ask(partial(self._look_up, wanted, latest_ts))

    def _look_up(self, wanted: Sequence[Prewrite[int]], at_ts: int) -> list[_Look]:
        """Those that can be told. Raises SourceUnavailable, SourceRefused."""
        assert self.fates is not None, "else none is asked for"
        found: list[tuple[Prewrite[int], int | None]] = []
        for one in wanted:
            try:
                found.append((one, self.fates.fate(one.key, one.start_ts)))
            except SourceUnavailable:
                if not found:
                    raise
                break  # what is told by now counts; the rest is asked for again
        nothing = any(told == NOTHING for _, told in found)
        safe_point = self.fates.safe_point() if nothing else 0
        return [_Look(one, told, at_ts, safe_point) for one, told in found]

    def _judged(self, look: _Look) -> int | None:
        """None: not yet."""
        if look.fate != NOTHING:
            return look.fate
        start_ts = look.prewrite.start_ts
        before_ts = self._absent.get(start_ts)
        if look.safe_point >= (look.prewrite.came_ts if before_ts is None else before_ts):
            self._say_lost(start_ts, look.safe_point)
            return None
        if before_ts is not None:
            return ROLLED_BACK
        self._absent[start_ts] = look.at_ts
        return None

    def _say_lost(self, start_ts: int, safe_point: int) -> None:
        if start_ts not in self._lost:
            log.error(
                "whether transaction %d was committed can't be told: TiDB has nothing of it, and its garbage collection"
                " has passed it (safe point %s). It waits, and all that was committed after it; a new lake goes on"
                " without it, and tidb_gc_life_time above twice orphan_seconds keeps it from coming again",
                start_ts,
                time_text(safe_point),
            )
        self._lost.add(start_ts)
