"""Since when a table lacks rows, by the events of its snapshots in any order.

In:  a physical table's events `opened`, `applied` and `done`, of all its snapshots.
Out: the `opened` event that emptied it in silver, until a snapshot with all rows from then on is done.

That is its own snapshot, or a later one that read on. The source's commit_ts decides which is later: two applies may
have run on machines with different clocks, so an earlier snapshot's `done` may seem younger than this one's `opened`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.snapshot.progress.events import EventKind, Meaning, SnapshotEvent


@dataclass(slots=True)
class Filling:
    """begun: the newest beginning. done: snapshot -> the number of its `done`; lows: -> its first applied low mark.

    numbers: of the events in their order, which counts where no low mark is known.
    """

    begun: SnapshotEvent | None = None
    begun_number: int = 0
    done: dict[str, int] = field(default_factory=dict)
    lows: dict[str, int] = field(default_factory=dict)

    def take_in(self, event: SnapshotEvent, number: int) -> bool:
        """Whether lacks() may be another now."""
        if event.meaning is Meaning.BEGUN:
            if self.begun is not None and (self.begun.low_ts or 0) > (event.low_ts or 0):
                return False
            self.begun, self.begun_number = event, number
        elif event.event is EventKind.DONE:
            self.done[event.snapshot] = number
        elif event.event is EventKind.APPLIED and event.low_ts is not None:
            low_ts = self.lows.get(event.snapshot)
            if low_ts is not None and low_ts <= event.low_ts:
                return False
            self.lows[event.snapshot] = event.low_ts
        else:
            return False
        return True

    def lacks(self) -> SnapshotEvent | None:
        """The beginning, unless a snapshot has ended it."""
        begun = self.begun
        if begun is None or any(self._ends(snapshot, number, begun) for snapshot, number in self.done.items()):
            return None
        return begun

    def _ends(self, snapshot: str, number: int, begun: SnapshotEvent) -> bool:
        low_ts = self.lows.get(snapshot)
        if snapshot == begun.snapshot:
            return True
        return number > self.begun_number if low_ts is None or begun.low_ts is None else low_ts >= begun.low_ts
