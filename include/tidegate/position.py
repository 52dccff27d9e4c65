"""A place in a source's binlog: file and offset, and the GTIDs executed up to there.

In:  a position as the server, bronze or a person writes it.
Out: values that can be compared, advanced and printed.

Offsets are 64-bit: the u32 in event headers wraps at 4 GiB, so capture adds up event lengths and
only compares the low half. A GTID set is kept as text in bronze and as intervals here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Self

_FILE = re.compile(r"^(?P<base>.*)\.(?P<number>\d+)$")


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """An offset in bytes in a binlog file; orders by file number, then offset.

    File names of one server sort by their numeric suffix, not as text (mysql-bin.999999 is followed
    by mysql-bin.1000000).
    """

    number: int
    offset: int
    file: str = field(compare=False)

    @classmethod
    def of(cls, file: str, offset: int) -> Self:
        match = _FILE.match(file)
        return cls(number=int(match["number"]) if match else 0, offset=offset, file=file)

    @property
    def base(self) -> str:
        """The file's name without its number: another one has numbers of its own (log_bin was renamed)."""
        return self.file.rpartition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


@dataclass(slots=True)
class MysqlGtidSet:
    """MySQL GTID set: source uuid (with an optional tag) -> sorted, disjoint [first, last] intervals.

    Text form: `uuid[:tag]:1-5:8,uuid:3` (MySQL manual, "GTID Sets").
    """

    intervals: dict[str, list[list[int]]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        gtids = cls()
        for part in "".join(text.split()).split(","):
            if not part:
                continue
            sid, *rest = part.split(":")
            name = sid.lower()
            for piece in rest:
                if re.fullmatch(r"\d+(-\d+)?", piece):
                    first, _, last = piece.partition("-")
                    gtids.add(name, int(first), int(last or first))
                else:  # a tag: what follows belongs to uuid:tag (MySQL 8.3+)
                    name = f"{sid.lower()}:{piece.lower()}"
        return gtids

    def add(self, sid: str, first: int, last: int) -> None:
        """Add [first, last]; appending the next number, the usual case, touches only the last interval."""
        spans = self.intervals.setdefault(sid, [])
        if spans and spans[-1][1] + 1 == first:
            spans[-1][1] = last
            return
        spans.append([first, last])
        spans.sort()
        merged: list[list[int]] = []
        for span in spans:
            if merged and span[0] <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], span[1])
            else:
                merged.append(list(span))
        self.intervals[sid] = merged

    def overlaps(self, sid: str, low: int, high: int) -> bool:
        """Whether any of [low, high] is in here."""
        return any(first <= high and low <= last for first, last in self.intervals.get(sid, ()))

    def covers(self, other: MysqlGtidSet) -> bool:
        """Whether every GTID of other is in here."""
        return all(self._has(sid, *span) for sid, spans in other.intervals.items() for span in spans)

    def _has(self, sid: str, low: int, high: int) -> bool:
        return any(first <= low and high <= last for first, last in self.intervals.get(sid, ()))

    def minus(self, other: MysqlGtidSet) -> MysqlGtidSet:
        """The GTIDs that other lacks."""
        lacking = MysqlGtidSet()
        for sid, spans in self.intervals.items():
            taken = other.intervals.get(sid, [])
            for first, last in spans:
                for since, until in taken:
                    if since > last or first > last:
                        break
                    if first < since:
                        lacking.add(sid, first, since - 1)
                    first = max(first, until + 1)  # noqa: PLW2901  what is left of the span
                if first <= last:
                    lacking.add(sid, first, last)
        return lacking

    def __str__(self) -> str:
        parts = []
        for sid in sorted(self.intervals):
            spans = ":".join(f"{a}-{b}" if b > a else f"{a}" for a, b in self.intervals[sid])
            parts.append(f"{sid}:{spans}")
        return ",".join(parts)


@dataclass(slots=True)
class MariadbGtidPosition:
    """MariaDB GTID position: the last (server_id, sequence) per replication domain.

    Text form: `domain-server-sequence,...` (MariaDB knowledge base, "GTID").
    """

    domains: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        position = cls()
        for part in "".join(text.split()).split(","):
            if part:
                domain, server, sequence = (int(piece) for piece in part.split("-"))
                position.domains[domain] = (server, sequence)
        return position

    def covers(self, other: MariadbGtidPosition) -> bool:
        """Whether this position is at or past other in every domain of other."""
        return all(
            domain in self.domains and self.domains[domain][1] >= sequence
            for domain, (_, sequence) in other.domains.items()
        )

    def __str__(self) -> str:
        return ",".join(f"{d}-{s}-{n}" for d, (s, n) in sorted(self.domains.items()))
