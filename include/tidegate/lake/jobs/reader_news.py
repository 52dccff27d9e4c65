"""Whether a snapshot's reader has reported something lately. Then apply takes its waves, even if
the source is quiet.

In:  the log of control/snapshots, looked at now and then.
Out: True for some time after each event of a reader.

If a reader may write its marks into the source's log, each wave is a change of that source. If it
may not, the log stays quiet, and without this the rows of a quiet source would wait for the next
look at quiet sources.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail
from tidegate.limits import NEWS_TAIL_COMMITS_MAX, READER_LOOK_SECONDS, READER_NEWS_SECONDS

# Events that apply must act on. A test compares them with the kinds of snapshot/progress/events.py.
FOR_APPLY: Final = ("view", "wave", "marked", "ended")


class ReaderNews:
    """Events from before this object was made count as old."""

    def __init__(self, log: DeltaLog) -> None:
        """Reads the log. Raises LakeUnavailable, LakeRefused."""
        self._log, self._tail = log, LogTail(log)
        self._seen = self._tail.version()
        self._looked_at = self._heard_at = -READER_NEWS_SECONDS

    def recent(self) -> bool:
        """Whether a reader reported something within READER_NEWS_SECONDS. Blocks."""
        now = time.monotonic()
        if now - self._looked_at >= READER_LOOK_SECONDS:
            self._looked_at = now
            if self._spoke():
                self._heard_at = now
        return now - self._heard_at < READER_NEWS_SECONDS

    def _spoke(self) -> bool:
        before, version = self._seen, self._tail.version()
        numbers = range(max(before + 1, version - NEWS_TAIL_COMMITS_MAX), version + 1)
        spoke = version < before or any(map(_speaks, map(self._log.actions, numbers)))  # a log made anew may have any
        self._seen = version  # at the end: after an error the same commits are looked at again
        return spoke


def _speaks(actions: list[dict[str, Any]] | None) -> bool:
    """Whether a commit may have such an event, by its statistics. A commit that is gone may."""
    return actions is None or any(_may_have(action["add"]) for action in actions if "add" in action)


def _may_have(added: Mapping[str, Any]) -> bool:
    try:
        statistics = json.loads(added["stats"])
        least, most = statistics["minValues"]["event"], statistics["maxValues"]["event"]
    except (KeyError, TypeError, ValueError):
        return True
    return any(least <= kind <= most for kind in FOR_APPLY)
