"""Where places of a server's log lie in commit time, by capture's landed segments.

In:  bronze/segments; places: a file and an offset, on MySQL the engine's committed transactions,
     too.
Out: the commit_ts up to which a read at a place saw everything; the one over the whole log up to a
     place.
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
    """Everything up to this place of the log is visible to a read begun now.

    gtids: ... as far as it is in this set too (MySQL); None: it is known without. at_ts: for reads
    of exactly the commits at or below a commit_ts (TiDB), this commit_ts; 0 otherwise.
    """

    file: str
    offset: int
    gtids: MysqlGtidSet | None = None
    at_ts: int = 0


@dataclass(slots=True)
class CapturedPlaces:
    """servers: per source the server whose places are asked for.

    A look twice a second costs only the news: the new part of bronze's log, its files newest first.
    """

    lake: LakeFiles
    servers: Mapping[str, Server]
    _below: set[str] = field(default_factory=set)  # files of bronze without a position that was wanted
    _files: BronzeFiles = field(init=False)

    def __post_init__(self) -> None:
        self._files = BronzeFiles(self.lake.log(tables.SEGMENTS.path))

    def covered_by(self, source: str, file: str, offset: int) -> int | None:
        """The resolved_ts a cut must have reached to hold all up to a position; None: not captured
        yet.

        Positions of a server captured before a failover say nothing of its successor's.
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
        """A commit_ts: every transaction at or below it was visible to a read begun at this place;
        0: none known.

        The one of a segment ending at or before the place, so nothing of a later one counts.
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
