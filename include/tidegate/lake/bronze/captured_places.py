"""The commit_ts of a place in a server's log, from capture's landed segments.

In:  bronze/segments; a place: a file and an offset. On MySQL also the transactions the engine had
     committed.
Out: the commit_ts up to which a read at this place saw everything; the commit_ts up to which the
     log before a place reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from tidegate import tables
from tidegate.lake.bronze.log import BronzeFiles
from tidegate.lake.files import LakeFiles
from tidegate.position import MysqlGtidSet, Position
from tidegate.segments.segment import Server

_PLACES: Final = ["seq", "server_id", "server_uuid", "file", "end_pos", "resolved_ts"]


@dataclass(frozen=True, slots=True)
class Visible:
    """A read begun now sees everything up to this place of the log.

    gtids: on MySQL it sees only what is also in this set; None: no set is needed. at_ts: for a read
    of exactly the commits at or below a commit_ts (TiDB), this commit_ts; 0 otherwise.
    """

    file: str
    offset: int
    gtids: MysqlGtidSet | None = None
    at_ts: int = 0


@dataclass(slots=True)
class CapturedPlaces:
    """servers: per source, the server the places belong to.

    A look reads only what is new: the new part of bronze's log, and new files, the newest first.
    """

    lake: LakeFiles
    servers: Mapping[str, Server]
    _below: set[str] = field(default_factory=set)  # files without a row at a wanted position or above
    _files: BronzeFiles = field(init=False)

    def __post_init__(self) -> None:
        self._files = BronzeFiles(self.lake.log(tables.SEGMENTS.path))

    def covered_by(self, source: str, file: str, offset: int) -> int | None:
        """The resolved_ts a cut must reach to hold all up to a position; None: not captured yet.

        A position is compared only with rows of the same server: another server's positions say
        nothing about it.
        """
        wanted = Position.of(file, offset)
        covering_ts: int | None = None
        last: Position | None = None
        for path in self._newest_first(source):
            if path in self._below:
                break
            for row in self._rows(path, _PLACES):
                end = Position.of(row["file"], row["end_pos"])
                if end < wanted or not self._is_here(source, row) or (last is not None and end > last):
                    if covering_ts is None:
                        self._below.add(path)
                    return covering_ts
                covering_ts, last = row["resolved_ts"], end
        return covering_ts

    def visible_ts(self, source: str, place: Visible) -> int:
        """A commit_ts: a read begun at this place saw every transaction at or below it. 0: none is
        known.

        It is the resolved_ts of a segment that ends at or before the place.
        """
        if place.at_ts:
            return place.at_ts
        wanted = Position.of(place.file, place.offset)
        for path in self._newest_first(source):
            resolved = [
                row["resolved_ts"]
                for row in self._rows(path, [*_PLACES, "gtid_executed"])
                if self._is_here(source, row)
                and Position.of(row["file"], row["end_pos"]) <= wanted
                and (place.gtids is None or place.gtids.covers(MysqlGtidSet.parse(row["gtid_executed"])))
            ]
            if resolved:
                return int(max(resolved))
        return 0

    def _newest_first(self, source: str) -> list[str]:
        return [unquote(file.path) for file in reversed(self._files.by_source().get(source, []))]

    def _rows(self, path: str, columns: list[str]) -> list[dict[str, Any]]:
        """The newest first."""
        with self.lake.open(f"{tables.SEGMENTS.path}/{path}") as handle:
            rows = pq.read_table(handle, columns=columns, partitioning=None).to_pylist()
        return sorted(rows, key=lambda row: -int(row["seq"]))

    def _is_here(self, source: str, row: Mapping[str, Any]) -> bool:
        return (row["server_id"], row["server_uuid"]) == self.servers[source]
