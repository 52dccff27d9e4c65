"""What commits of bronze say: is there anything that an apply run could apply?

In:  the actions of bronze's commits, in order.
Out: whether a change has come within reach of the cut since apply was last woken.

A source proves that it is quiet by rows without bytes: such a commit moves resolved_ts and nothing else, and Spark
need not be started for it. It does matter when changes of another source were waiting for just that, because
the cut is the smallest resolved_ts of all sources. Both stand in the statistics of the add actions; no data is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


class BronzeNews:
    """Changes between the last call of `taken` and now. All times are commit_ts.

    resolved: per source, how far it is known. [first, last]: where changes lie that apply wasn't woken for.
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
        """Something was committed that can't be looked at any more: it may be anything."""
        self._unknown = True

    @property
    def waiting(self) -> bool:
        """Whether an apply run would find changes."""
        return self._unknown or (self._first is not None and self._first <= self._frontier)

    def taken(self) -> None:
        """Apply is woken: what is resolved now is its business."""
        self._unknown = False
        if self._first is not None:
            frontier = self._frontier
            self._first = max(self._first, frontier + 1) if self._last > frontier else None

    def to_json(self) -> dict[str, Any]:
        """For a store that outlives this process."""
        return {"resolved": self._resolved, "first": self._first, "last": self._last}

    @classmethod
    def from_json(cls, sources: tuple[str, ...], kept: Mapping[str, Any]) -> BronzeNews:
        """What to_json said, for the sources that the pipeline has now."""
        news = cls(sources)
        news._resolved = {str(name): int(ts) for name, ts in kept["resolved"].items()}
        news._first = None if kept["first"] is None else int(kept["first"])
        news._last = int(kept["last"])
        return news

    @property
    def _frontier(self) -> int:
        """Up to where every source is known; one that never sent anything holds the cut back, as it does in apply."""
        return min((self._resolved.get(name, 0) for name in self._sources or self._resolved), default=0)

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
