"""News in commits of bronze: is there anything for an apply run?

In:  the actions of bronze's commits, in order.
Out: whether a change has come within reach of the cut since apply was last woken.

A source proves its quiet by rows without bytes: such a commit moves resolved_ts and nothing else,
and Spark need not be started for it. It does matter when changes of another source were waiting for
it, because the cut is the smallest resolved_ts of all sources. Both stand in the statistics of the
add actions; no data is read.
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
    """Changes between the last call of `taken` and now. All times are commit_ts.

    resolved: per source, how far it is known. [first, last]: the place of changes apply wasn't
    woken for.
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
        """A commit can't be looked at any more: it may be anything."""
        self._unknown = True

    @property
    def waiting(self) -> bool:
        """Whether an apply run would find changes."""
        return self._unknown or (self._first is not None and self._first <= self.frontier)

    def taken(self) -> None:
        """Apply is woken: the log resolved by now is its business."""
        self._unknown = False
        if self._first is not None:
            frontier = self.frontier
            self._first = max(self._first, frontier + 1) if self._last > frontier else None

    def to_json(self) -> dict[str, Any]:
        """For a store beyond this process's life."""
        return {"resolved": self._resolved, "first": self._first, "last": self._last}

    @classmethod
    def from_json(cls, sources: tuple[str, ...], kept: Mapping[str, Any]) -> BronzeNews:
        """The content of to_json, for the pipeline's present sources."""
        news = cls(sources)
        news._resolved = {str(name): int(ts) for name, ts in kept["resolved"].items()}
        news._first = None if kept["first"] is None else int(kept["first"])
        news._last = int(kept["last"])
        return news

    @property
    def frontier(self) -> int:
        """Up to where every source is known; a source silent so far holds the cut back, as it does
        in apply.
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
        if last > known:  # 0 when no transaction is in it; not above `known` when bronze's files were only rewritten
            self._first = first if self._first is None else min(self._first, first)
            self._last = max(self._last, last)


class FollowedBronze:
    """Bronze's log since the last news. kept: the memory of then, to be stored once the news is
    safe.

    hourly: a further hour reached by all sources is news, too: the cut comes to it.
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
        """Blocks."""
        from tidegate.tables import SEGMENTS  # imports pyarrow: in the thread of whoever looks
        from tidegate.tables.snapshot_tables import SNAPSHOTS

        self._log = DeltaLog(f"{lake.rstrip('/')}/{SEGMENTS.path}", options)
        self._tail = LogTail(self._log)
        self._readers = ReaderNews(DeltaLog(f"{lake.rstrip('/')}/{SNAPSHOTS.path}", options))

    @property
    def kept(self) -> dict[str, Any]:
        """As it was when there was news last."""
        return {"version": self._fired, **self._news.to_json()}

    def look(self) -> dict[str, Any] | None:
        """{"delta_version": the one with news}; None when nothing needs apply. Blocks; an error forgets nothing."""
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
        """Whether a quiet source's proof is news: its time has come, or a snapshot is read."""
        assert self._readers is not None
        since = time.monotonic() - self._fired_at
        if since >= self._quiet_seconds:
            return True
        return since >= READER_LOOK_SECONDS and self._readers.recent()
