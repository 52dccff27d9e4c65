"""The figures of `tidegate decode --stats` for a file.

In:  the events of each index with their fates, and the changes decoded.
Out: a dictionary, ready for JSON, in which decoded + ignored + quarantined bytes are the file's
     size.

An event's fate is that of its content: a compressed event takes the worst of several (quarantined
before decoded before ignored).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import IGNORE_RULES, EventType
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.transaction_scan import BEGINS, ENDS

MAGIC: Final = "file magic"
XA_ROLLED_BACK: Final = "xa rolled back"
XA_UNANSWERED: Final = "xa without an answer"
RULES: Final = (*IGNORE_RULES, XA_ROLLED_BACK, XA_UNANSWERED)
# A larger number is the worse fate, as in binlog/index/fates.py.
SKIPPED: Final = 0  # counts elsewhere
IGNORED: Final = {rule: number for number, rule in enumerate(RULES, 1)}
PENDING: Final = len(RULES) + 1  # rows of an XA branch, whose answer decides
DECODED: Final = len(RULES) + 2
QUARANTINED: Final = len(RULES) + 3
# Events that hold others; the index has those instead.
_HOLDERS: Final = frozenset({40, *range(165, 172)})


@dataclass(slots=True)
class FileStats:
    """Counters of one file; pending: commit_ts of an XA branch -> bytes of its rows events."""

    file: str
    size: int
    server_version: str = ""
    events: Counter[int] = field(default_factory=Counter)
    tables: dict[str, Counter[str]] = field(default_factory=dict)
    transactions: int = 0
    null_dates: int = 0
    unanswered: int = 0
    gtids_before: str = ""
    decoded: int = 0
    quarantined: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    first_commit_ts: int | None = None
    last_commit_ts: int | None = None
    pending: Counter[int] = field(default_factory=Counter)
    answers: dict[int, tuple[list[tuple[int, int]], str]] = field(default_factory=dict)

    def settle(self, fates: list[tuple[int, int, int]]) -> None:
        """Take in what PieceFates.settle gives."""
        for fate, count, commit_ts in fates:
            if fate == PENDING:
                self.pending[commit_ts] += count
            else:
                self.add_fate(fate, count)

    def answer(self, began: int, fates: list[tuple[int, int]], rule: str) -> None:
        """A branch's own fates, when it was committed; rule: why its rows are ignored, when it wasn't."""
        self.answers[began] = (fates, rule)

    def close(self) -> None:
        """Give the bytes of XA branches their fates, once all files are read."""
        for began, count in self.pending.items():
            fates, rule = self.answers.get(began, ([], ""))
            for fate, part in fates:
                self.add_fate(fate, part)
            left = count - sum(part for _, part in fates)
            self.add_fate(IGNORED[rule] if rule else QUARANTINED, left)
        self.pending.clear()

    def add_fate(self, fate: int, count: int) -> None:
        if fate == QUARANTINED:
            self.quarantined += count
        elif fate == DECODED:
            self.decoded += count
        else:
            self.ignored[RULES[fate - 1]] += count

    def add_events(self, index: EventIndex, holders: list[int]) -> None:
        """holders: types of compressed events that were met for the first time."""
        events = index.events
        for code, count in enumerate(np.bincount(events[:, K.TYPE], minlength=256).tolist()):
            if count:
                self.events[code] += count
        self.events.update(holders)
        self.transactions += int(np.count_nonzero(events[:, K.BITS] & ENDS))
        begun = events[(events[:, K.BITS] & BEGINS) != 0, K.COMMIT_TS]
        if len(begun):
            if self.first_commit_ts is None:
                self.first_commit_ts = int(begun[0])
            self.last_commit_ts = int(begun[-1])

    def add_rows(self, table: str, op: str, count: int) -> None:
        if count:
            self.tables.setdefault(table, Counter())[op] += count

    def as_dict(self) -> dict[str, Any]:
        ignored = {rule: count for rule, count in sorted(self.ignored.items()) if count}
        total = self.decoded + self.quarantined + sum(ignored.values())
        assert total == self.size, f"{self.file}: {total} of {self.size} bytes accounted for"
        return {
            "file": self.file,
            "server_version": self.server_version,
            "bytes": self.size,
            "events": {name_of(code): count for code, count in sorted(self.events.items())},
            "tables": {
                name: {op: counts[op] for op in ("insert", "update", "delete")}
                for name, counts in sorted(self.tables.items())
            },
            "transactions": self.transactions,
            "null_dates": self.null_dates,
            "prepared_unanswered": self.unanswered,
            "gtids_before": self.gtids_before,
            "ledger": {"decoded": self.decoded, "ignored": ignored, "quarantined": self.quarantined},
            "first_commit_ts": self.first_commit_ts,
            "last_commit_ts": self.last_commit_ts,
        }


def name_of(code: int) -> str:
    try:
        return EventType(code).name
    except ValueError:
        return f"UNKNOWN_{code}"


class PieceFates:
    """Fates of the captured events of one piece, gathered from its indexes."""

    def __init__(self) -> None:
        self._origins: list[npt.NDArray[np.int64]] = []
        self._fates: list[npt.NDArray[np.int64]] = []
        self._commits: list[npt.NDArray[np.int64]] = []
        self._last_holder = -1

    def add(self, index: EventIndex, fates: npt.NDArray[np.int64]) -> list[int]:
        """Take in the fates of an index's events; gives the types of compressed events not met before."""
        origins = index.events[:, K.ORIGIN]
        self._origins.append(origins)
        self._fates.append(fates)
        self._commits.append(index.events[:, K.COMMIT_TS])
        payload = np.frombuffer(index.segment.payload, np.uint8)
        holders = []
        if len(origins):
            distinct = np.unique(origins)
            types = payload[distinct + 4]
            for origin, code in zip(distinct.tolist(), types.tolist(), strict=True):
                if code in _HOLDERS and origin != self._last_holder:
                    holders.append(code)
                    self._last_holder = origin
        return holders

    def settle(self, payload: memoryview | bytes) -> list[tuple[int, int, int]]:
        """(fate, bytes, commit_ts of an XA branch or 0) of the captured events."""
        if not self._origins:
            return []
        origins, fates = np.concatenate(self._origins), np.concatenate(self._fates)
        commits = np.concatenate(self._commits)
        distinct, first = np.unique(origins, return_index=True)
        worst = np.maximum.reduceat(fates, first)
        data = np.frombuffer(payload, np.uint8)
        places = distinct[:, np.newaxis] + np.arange(9, 13)
        sizes = data[places].astype(np.int64) @ (np.int64(1) << np.arange(0, 32, 8))
        settled = []
        for fate in np.unique(worst).tolist():
            of_fate = worst == fate
            if fate != PENDING:
                settled.append((fate, int(sizes[of_fate].sum()), 0))
                continue
            begun = commits[first]
            per_branch = [(int(began), of_fate & (begun == began)) for began in np.unique(begun[of_fate])]
            settled += [(fate, int(sizes[which].sum()), began) for began, which in per_branch]
        return settled
