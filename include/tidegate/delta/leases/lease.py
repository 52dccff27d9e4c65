"""One holder of a name at a time, on any machines, without clocks that agree.

In:  a store's folder for the name, and the candidate.
Out: Lease: held until released, lost, or not renewed for its term. Its epoch is larger than that of
     every holder before.

The folder has entries with rising numbers; the one with the largest number counts. Each entry is
made by put-if-absent, under "the largest number that I saw, plus one". The holder makes one every
third of the term, with the same epoch. A taker makes one with the next epoch in three cases: the
newest entry says `released`; its maker has certainly ended (same machine, same boot, no such
process); or it stayed the newest for a whole term while the taker watched.

Why no two processes hold it (check() passes) at one moment, if no clock runs more than 2 % too fast
or too slow:
- Each process measures terms by its own clock. Nobody sets this clock, and it goes on while the
  machine sleeps. The holder counts from before it asked for its newest entry. The watcher counts
  from after it saw this entry, and 5 % longer, so the holder's term is over when the watcher's is.
- The holder's next entry and the taker's entry have the same number, and only one of them is made.
  If it is the holder's, the taker watches again. If it is the taker's, the holder's term was over,
  and its entry is refused.
- A late request, or a process that slept between looking and asking, may make an entry whose number
  was used and removed long ago. Therefore a taker looks again after its entry was made, and holds nothing
  unless this is the newest. And a holder's renewal counts only if the answer came within the term
  before: until then nobody else could make an entry.
- The newest entry is never removed: a holder removes entries some numbers below its own.
- If an answer is lost, the entry is read back: the id in it shows its maker. Its term counts from
  the first request.

Not guaranteed: that a holder does nothing after check() passed. It may sleep between check() and
its next action, a request may take long, a virtual machine may be frozen without its clock
noticing. Therefore a write that must not come from a former holder carries the epoch, and is refused where
a larger one is recorded (a transaction version in a Delta commit). The folder must not be emptied
while somebody holds the lease or relies on its epochs.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

from tidegate.delta.leases.lease_entry import (
    LeaseEntry,
    Process,
    entry_name,
    is_alive,
    is_gone,
    newest_entry,
    numbers,
    read_entry,
)
from tidegate.delta.stores.store import LogStore
from tidegate.errors import LakeRefused, LakeUnavailable, LeaseHeld, Overtaken
from tidegate.limits import LEASE_KEPT_FILES, LEASE_POLL_SECONDS_MAX, LEASE_SECONDS_DEFAULT, LEASE_UNHELD_ATTEMPTS_MAX

# A watcher waits so many terms: the speeds of two clocks may differ by as much.
_PATIENCE: Final = 1.05
# The older entries are removed every so many renewals, in one request.
_SWEEP_EVERY: Final = 6


def _boot_seconds() -> float:
    """A clock that is never set. Linux' CLOCK_MONOTONIC stands still while the machine sleeps, this one doesn't."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The services of the machine for a lease."""

    clock: Callable[[], float] = _boot_seconds
    gone: Callable[[LeaseEntry], bool] = is_gone
    alive: Callable[[LeaseEntry], bool] = is_alive


class Hold:
    """The lease as its holder has it. One thread renews it, any thread may check it."""

    def __init__(self, store: LogStore, entry: LeaseEntry, asked_at: float, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self.entry = entry
        self.until = asked_at + entry.term_seconds
        self.lost = ""  # why it is lost, once it is
        self._asked = (entry.number, asked_at)  # the number that was requested last, and when first
        self.older: list[int] = []  # entries that may still exist

    @property
    def renewed_at(self) -> float:
        return self.until - self.entry.term_seconds

    def check(self) -> None:
        """Raise Overtaken unless it is certain that nobody else held the lease until now."""
        if self.lost or self._clock() >= self.until:
            raise Overtaken(
                f"the lease of {self.entry.holder} is lost: "
                + (self.lost or f"it was not renewed for {self.entry.term_seconds:g} s"),
                where=self._store.where,
                remedy="this run ends; the next one goes on where the tables stand",
            )

    def renew(self) -> None:
        """Make the next entry. Then it is held for another term, or lost. Raises LakeUnavailable:
        try again.
        """
        number = self.entry.number + 1
        if self._asked[0] != number:
            self._asked = (number, self._clock())
        asked_at = self._asked[1]
        following = replace(self.entry, number=number, written_ms=time.time_ns() // 1_000_000)
        made = make_entry(self._store, following)
        if self._clock() >= self.until:
            self.lost = f"its renewal took longer than the {self.entry.term_seconds:g} s of its term"
        elif not made:
            self.lost = "another one has taken it"
            with suppress(LakeUnavailable, LakeRefused):
                newest = newest_entry(self._store)
                self.lost = f"taken by {newest.told()}" if newest else "its entries were removed"
        else:
            self.older.append(self.entry.number)
            self.entry, self.until = following, asked_at + following.term_seconds
            if number % _SWEEP_EVERY == 0:
                self.sweep()

    def release(self) -> None:
        """Release it, so that the next holder needn't wait. Raises LakeUnavailable: then it ends
        after its term.
        """
        if self._asked[0] > self.entry.number:
            self.renew()  # it isn't known whether the last request succeeded
        if not self.lost and self._clock() < self.until:
            make_entry(self._store, replace(self.entry, number=self.entry.number + 1, released=True))
        self.lost = self.lost or "it was released"

    def sweep(self) -> None:
        """Remove entries that are too old to matter. The others stay for the next holder."""
        old = [number for number in self.older if number < self.entry.number - LEASE_KEPT_FILES]
        self.older = self.older[len(old) :]
        if old:
            with suppress(LakeUnavailable, LakeRefused):
                self._store.delete([entry_name(number) for number in old])


# Attempts of this process whose answers were lost: their entries may exist, and nobody holds them. The next take in
# this process needn't watch such an entry for its term.
_unheld: list[str] = []


def _note_unheld(attempt: str) -> None:
    _unheld.append(attempt)
    del _unheld[:-LEASE_UNHELD_ATTEMPTS_MAX]


def make_entry(store: LogStore, entry: LeaseEntry) -> bool:
    """Make an entry. Returns whether it is there and is this one."""
    if store.create(entry_name(entry.number), entry.encoded()):
        return True
    stored = read_entry(store, entry.number)
    return stored is not None and (stored.attempt, stored.released) == (entry.attempt, entry.released)


class Watch:
    """A candidate for the lease, with its observations. own: attempts that certainly hold nothing
    any more.
    """

    def __init__(
        self, store: LogStore, holder: str, term_seconds: float, around: Surroundings, own: frozenset[str] = frozenset()
    ) -> None:
        self._store, self._holder, self._term_seconds, self._around = store, holder, term_seconds, around
        self._own = set(own) | set(_unheld)
        self.seen: LeaseEntry | None = None
        self._since = 0.0
        self.alive = False  # whether there was a sign of a holder's life

    def look(self) -> Hold | None:
        """The lease, if it can be taken now; else None. Raises LakeUnavailable, LakeRefused."""
        newest = newest_entry(self._store)
        now = self._around.clock()  # after the entry was seen
        if newest is None or newest.released or newest.attempt in self._own or self._around.gone(newest):
            return self._claim(newest)
        if newest != self.seen:
            self.alive = self.seen is not None or self._around.alive(newest)
            self.seen, self._since = newest, now
        elif now - self._since >= _PATIENCE * newest.term_seconds:
            return self._claim(newest)
        return None

    def _claim(self, before: LeaseEntry | None) -> Hold | None:
        """Make the entry after the newest one. None if somebody was faster."""
        number, epoch = (before.number + 1, before.epoch + 1) if before else (1, 1)
        attempt, now_ms = uuid.uuid4().hex, time.time_ns() // 1_000_000
        entry = LeaseEntry(number, epoch, attempt, self._holder, Process.this(), self._term_seconds, now_ms, now_ms)
        asked_at = self._around.clock()
        self._own.add(attempt)  # without an answer the entry may exist, but nobody holds it
        try:
            made = make_entry(self._store, entry)
            present = numbers(self._store) if made else []
        except BaseException:
            _note_unheld(attempt)
            raise
        if not made or present[-1:] != [number]:
            self.alive = True
            return None
        hold = Hold(self._store, entry, asked_at, self._around.clock)
        hold.older = present[:-1]
        hold.sweep()
        return hold


class Lease:
    """A held lease, renewed in the background. As a context manager it releases itself."""

    def __init__(self, store: LogStore, hold: Hold, around: Surroundings, report: Callable[[str], None]) -> None:
        self._store, self._hold, self._around, self._report = store, hold, around, report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease of {hold.entry.holder}", daemon=True)
        self._thread.start()

    @classmethod
    def take(
        cls,
        store: LogStore,
        holder: str,
        *,
        term_seconds: float = LEASE_SECONDS_DEFAULT,
        wait_seconds: float = 0.0,
        stop: threading.Event | None = None,
        report: Callable[[str], None],
    ) -> Lease:
        """Take it: at once if it is free, or if its holder has certainly ended.

        Otherwise the holder is watched. Without a sign of life the lease is taken after its term.
        If the holder lives, this waits wait_seconds. Then, or if `stop` is set, it raises LeaseHeld
        with the holder's name. holder: the purpose of the lease, in a person's words. Raises
        LakeUnavailable, LakeRefused, LeaseHeld.
        """
        around = Surroundings()
        watch = Watch(store, holder, term_seconds, around)
        started, stop = time.monotonic(), stop or threading.Event()
        reported = False
        while True:
            hold = watch.look()
            if hold is not None:
                return cls(store, hold, around, report)
            seen = watch.seen
            if watch.alive and time.monotonic() - started >= wait_seconds:
                raise _held(store, seen)
            if seen is not None and not reported:
                reported = True
                report(
                    f"waiting for a sign of life of {seen.told()}: without one it is over in {seen.term_seconds:g} s"
                )
            if stop.wait(min(LEASE_POLL_SECONDS_MAX, (seen.term_seconds if seen else term_seconds) / 20)):
                raise _held(store, seen)

    def again(self) -> Lease:
        """A new lease after this one was lost because the store didn't answer: at once, if nobody
        else took it.

        It has a larger epoch. Raises as take does, without waiting for anybody.
        """
        self._end()
        self._hold.lost = self._hold.lost or "it was taken anew"
        entry = self._hold.entry
        watch = Watch(self._store, entry.holder, entry.term_seconds, self._around, frozenset({entry.attempt}))
        hold = watch.look()
        if hold is None:
            raise _held(self._store, watch.seen)
        return Lease(self._store, hold, self._around, self._report)

    @property
    def epoch(self) -> int:
        """Larger than that of every holder before: the fencing token."""
        return self._hold.entry.epoch

    def check(self) -> None:
        """Raises Overtaken unless this process certainly holds the lease at this moment. Costs a look at the clock."""
        self._hold.check()

    @property
    def held(self) -> bool:
        """Whether check() would pass."""
        try:
            self.check()
        except Overtaken:
            return False
        return True

    def release(self) -> None:
        """Release it. If the store doesn't answer, that is no error: a waiter takes it after the
        term.
        """
        if self._end():
            try:
                self._hold.release()
            except (LakeUnavailable, LakeRefused) as error:
                self._report(f"the lease of {self._hold.entry.holder} ends by itself: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _end(self) -> bool:
        """End the thread. False while it waits for an answer of the store."""
        self._stop.set()
        self._thread.join(self._hold.entry.term_seconds / 3)
        return not self._thread.is_alive()

    def _keep(self) -> None:
        """The thread: it renews every third of the term; after a failure soon again, while the term
        lasts.
        """
        hold, silent = self._hold, False
        period = hold.entry.term_seconds / 3
        wait = period
        while not self._stop.wait(wait):
            try:
                hold.renew()
                silent = False
                wait = max(0.0, hold.renewed_at + period - self._around.clock())
            except (LakeUnavailable, LakeRefused) as error:
                if not silent:
                    self._report(f"the lease of {hold.entry.holder} can't be renewed: {error}")
                silent, wait = True, period / 10
            if hold.lost or self._around.clock() >= hold.until:
                why = hold.lost or "its term ended before the store answered"
                self._report(f"the lease of {hold.entry.holder} is lost: {why}")
                return


def _held(store: LogStore, seen: LeaseEntry | None) -> LeaseHeld:
    who = seen.told() if seen else "another one, since this moment"
    term = seen.term_seconds if seen else LEASE_SECONDS_DEFAULT
    return LeaseHeld(
        f"held by {who}",
        where=store.where,
        remedy=f"wait for it to end, or end that process: {term:g} s after its last sign of life the lease is free",
    )
