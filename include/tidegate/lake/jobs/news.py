"""News in commits of bronze: does an apply run have work?

In:  the actions of bronze's commits, in order.
Out: whether a change has come within reach of the cut since apply was last started.

A quiet source sends segments without bytes. Such a commit only moves resolved_ts, and Spark need
not start for it. It counts if changes of another source wait for it, because the cut is the
smallest resolved_ts of all sources. The statistics of the add actions have both: no data is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail
from tidegate.lake.figures.complete_hours import hours_before
from tidegate.lake.jobs.reader_news import ReaderNews
from tidegate.limits import NEWS_TAIL_COMMITS_MAX, READER_LOOK_SECONDS
from tidegate.segments.frontier import cut_frontier


class BronzeNews:
    """Changes since the last call of `taken`. All times are commit_ts.

    resolved: source -> how far it is known. [first, last]: where the changes lie for which apply
    hasn't been started yet.
    """

    def __init__(self, sources: tuple[str, ...] = ()) -> None:
        self._sources = sources
        self._resolved: dict[str, int] = {}
        self._first: int | None = None
        self._last = 0
        self._unknown = False

    def add(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Take in one commit's actions."""
        for action in actions:
            if "add" in action:
                self._add_file(action["add"])

    def add_unknown(self) -> None:
        """A commit is no longer in the log: it may have had changes."""
        self._unknown = True

    @property
    def waiting(self) -> bool:
        """Whether an apply run would find changes."""
        return self._unknown or (self._first is not None and self._first <= self.frontier)

    def taken(self) -> None:
        """Apply was started: it takes everything resolved by now."""
        self._unknown = False
        if self._first is not None:
            frontier = self.frontier
            self._first = max(self._first, frontier + 1) if self._last > frontier else None

    def to_json(self) -> dict[str, Any]:
        """For a store that outlives this process."""
        return {"resolved": self._resolved, "first": self._first, "last": self._last}

    @classmethod
    def from_json(cls, sources: tuple[str, ...], kept: Mapping[str, Any]) -> BronzeNews:
        """The inverse of to_json, for the pipeline's present sources."""
        news = cls(sources)
        news._resolved = {str(name): int(ts) for name, ts in kept["resolved"].items()}
        news._first = None if kept["first"] is None else int(kept["first"])
        news._last = int(kept["last"])
        return news

    @property
    def frontier(self) -> int:
        """Up to here every source is known. A source that has sent nothing holds this back, as it
        holds the cut back.
        """
        return cut_frontier(self._resolved, self._sources or self._resolved.keys())

    def _add_file(self, action: Mapping[str, Any]) -> None:
        try:
            source = str(action["partitionValues"]["source"])
            statistics = json.loads(action["stats"])
            resolved = int(statistics["maxValues"]["resolved_ts"])
            first = int(statistics["minValues"]["min_commit_ts"])
            last = int(statistics["maxValues"]["max_commit_ts"])
        except (KeyError, TypeError, ValueError):
            self._unknown = True
            return
        known = self._resolved.get(source, 0)
        self._resolved[source] = max(known, resolved)
        if last > known:  # last is 0 without a transaction, and isn't above `known` if upkeep rewrote a file
            self._first = first if self._first is None else min(self._first, first)
            self._last = max(self._last, last)


class FollowedBronze:
    """Bronze's log since the last news. kept: the memory at the last news, to be stored once the
    news is safe.

    hourly: it is also news if all sources have reached another hour: the cut reaches it then.
    """

    def __init__(self, sources: tuple[str, ...], kept: Any, quiet_seconds: float, *, hourly: bool = False) -> None:
        self._hourly, self._fired_hours = hourly, 0
        self._log: DeltaLog | None = None
        self._tail: LogTail | None = None
        self._readers: ReaderNews | None = None
        self._sources = sources
        self._quiet_seconds = quiet_seconds
        self._news = BronzeNews(sources)
        if isinstance(kept, dict):
            self._news = BronzeNews.from_json(sources, kept)
            kept = kept["version"]
        self._seen = self._fired = -1 if kept is None else int(kept)
        self._fired_at = time.monotonic()

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Open the log. Blocks."""
        from tidegate.tables import SEGMENTS  # imports pyarrow: in the thread that looks
        from tidegate.tables.snapshot_tables import SNAPSHOTS

        self._log = DeltaLog(f"{lake.rstrip('/')}/{SEGMENTS.path}", options)
        self._tail = LogTail(self._log)
        self._readers = ReaderNews(DeltaLog(f"{lake.rstrip('/')}/{SNAPSHOTS.path}", options))

    @property
    def kept(self) -> dict[str, Any]:
        """The memory at the last news."""
        return {"version": self._fired, **self._news.to_json()}

    def look(self) -> dict[str, Any] | None:
        """{"delta_version": the one with news}; None if apply has no work. Blocks; an error forgets
        nothing.
        """
        assert self._log is not None
        assert self._tail is not None
        version = self._tail.version()
        if version < self._seen:  # the lake was made anew
            self._news, self._seen, self._fired = BronzeNews(self._sources), -1, -1
        if version - self._seen > NEWS_TAIL_COMMITS_MAX:
            self._news.add_unknown()
            self._seen = version - NEWS_TAIL_COMMITS_MAX
        for number in range(self._seen + 1, version + 1):
            actions = self._log.actions(number)
            if actions is None:
                self._news.add_unknown()
            else:
                self._news.add(actions)
            self._seen = number
        quiet = self._seen > self._fired and self._is_due()
        hours = hours_before(self._news.frontier) if self._hourly else 0
        if not (self._news.waiting or quiet or hours > self._fired_hours):
            return None
        self._fired_hours = hours
        self._news.taken()
        self._fired, self._fired_at = self._seen, time.monotonic()
        return {"delta_version": self._fired}

    def _is_due(self) -> bool:
        """Whether a quiet source's new resolved_ts is news: its time has come, or a snapshot is
        being read.
        """
        assert self._readers is not None
        since = time.monotonic() - self._fired_at
        if since >= self._quiet_seconds:
            return True
        return since >= READER_LOOK_SECONDS and self._readers.recent()
