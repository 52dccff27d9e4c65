"""Tables whose values couldn't be had, in this application.

In:  the windows in which they were asked for.
Out: whether a table is worth another window yet.
"""

from __future__ import annotations


class AskedInVain(dict[str, tuple[int, int]]):
    """Logical name -> how often in a row, and up to which cut_ts it was tried."""

    def note(self, name: str, cut_ts: int) -> int:
        """Count a failed try; returns how many there were."""
        times = self.get(name, (0, 0))[0] + 1
        self[name] = (times, cut_ts)
        return times

    def waits(self, name: str, cut_ts: int) -> bool:
        """A row has changed since: without its later change a window would be the same again."""
        return name in self and cut_ts <= self[name][1]
