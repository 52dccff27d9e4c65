"""The newest published cut, and whether it holds all that a source has written.

In:  control/cuts, control/table_states and bronze/segments; positions of the sources.
Out: a Cut, or VerifyError when none covers the positions in time; the commit_ts up to which a read saw everything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from tidegate import tables
from tidegate.errors import VerifyError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.status import bronze_files, cut_ts
from tidegate.limits import VERIFY_POLL_SECONDS
from tidegate.position import MysqlGtidSet, Position
from tidegate.verify.source_side import Visible

_PLACES: Final = ["server_id", "file", "end_pos", "resolved_ts"]


@dataclass(frozen=True, slots=True)
class Cut:
    """versions: logical table -> (Delta version, state) as the newest row about it says; reasons: why one is held."""

    cut_ts: int
    versions: dict[str, tuple[int, str]]
    reasons: dict[str, tuple[str, str]]


def newest_cut(lake: LakeFiles, pipeline: str) -> Cut | None:
    """The cut with the largest cut_ts; None before the first."""
    newest = cut_ts(lake)
    if not newest:
        return None
    found = control.newest(
        lake,
        tables.CUTS,
        by=["table"],
        order=["cut_ts", "published_at"],
        columns=["table", "delta_version", "state"],
        filters=[("cut_ts", "<=", newest)],
    ).to_pylist()
    versions = {row["table"]: (row["delta_version"], row["state"]) for row in found if row["table"]}
    states = control.newest(
        lake,
        tables.TABLE_STATES,
        by=["table"],
        order=["recorded_at"],
        columns=["table", "state", "reason"],
        filters=[("pipeline", "=", pipeline)],
    ).to_pylist()
    return Cut(newest, versions, {row["table"]: (row["state"], row["reason"]) for row in states})


@dataclass(slots=True)
class LakeReader:
    """root: absolute path or URL of the lake; options: delta-rs storage options; servers: server_id per source.

    What is asked twice a second costs as much as came since: statistics in the log, and bronze's files newest first.
    """

    root: str
    options: Mapping[str, str]
    pipeline: str
    servers: Mapping[str, int]
    lake: LakeFiles = field(init=False)
    _below: set[str] = field(default_factory=set, init=False)  # files of bronze without a position that was wanted

    def __post_init__(self) -> None:
        self.lake = LakeFiles(self.root, dict(self.options))

    def newest_cut(self) -> Cut | None:
        """The cut with the largest cut_ts; None before the first."""
        return newest_cut(self.lake, self.pipeline)

    def covered_by(self, source: str, file: str, offset: int) -> int | None:
        """The resolved_ts that a cut must have reached to hold all up to a position; None: not captured yet.

        Positions of a server that was captured before a failover say nothing of its successor's.
        """
        wanted = Position.of(file, offset)
        found: list[int] = []
        for path in self._newest_first(source):
            if path in self._below:
                break
            with self.lake.open(f"{tables.SEGMENTS.path}/{path}") as handle:
                rows = pq.read_table(handle, columns=_PLACES, partitioning=None).to_pylist()
            mine = [row for row in rows if row["server_id"] == self.servers[source]]
            covering = [row["resolved_ts"] for row in mine if Position.of(row["file"], row["end_pos"]) >= wanted]
            found += covering
            if not covering:
                self._below.add(path)
            if len(covering) < len(mine):
                break  # what a server wrote before lies lower
        return min(found, default=None)

    def visible_ts(self, source: str, place: Visible) -> int:
        """A commit_ts: every transaction at or below it was visible to a read that began at this place; 0: none known.

        That of a segment that ends at or before the place, so nothing of a later one counts.
        """
        wanted = Position.of(place.file, place.offset)
        for path in self._newest_first(source):
            with self.lake.open(f"{tables.SEGMENTS.path}/{path}") as handle:
                rows = pq.read_table(handle, columns=[*_PLACES, "gtid_executed"], partitioning=None).to_pylist()
            found = [
                row["resolved_ts"]
                for row in rows
                if row["server_id"] == self.servers[source]
                and Position.of(row["file"], row["end_pos"]) <= wanted
                and (place.gtids is None or place.gtids.covers(MysqlGtidSet.parse(row["gtid_executed"])))
            ]
            if found:
                return int(max(found))
        return 0

    def _newest_first(self, source: str) -> list[str]:
        return [unquote(file.path) for file in reversed(bronze_files(self.lake).get(source, []))]

    def wait(self, positions: Mapping[str, tuple[str, int]], timeout_seconds: float) -> Cut:
        """The first cut that covers all positions. Raises VerifyError when none does in time."""
        until = time.monotonic() + timeout_seconds
        needed: dict[str, int] = {}
        while True:
            for source, (file, offset) in positions.items():
                resolved = needed.get(source) or self.covered_by(source, file, offset)
                if resolved is not None:
                    needed[source] = resolved
            newest = cut_ts(self.lake)
            if len(needed) == len(positions) and newest >= max(needed.values()):
                cut = self.newest_cut()
                if cut is not None:
                    return cut
            if time.monotonic() >= until:
                raise _too_late(positions, needed, newest, timeout_seconds)
            time.sleep(VERIFY_POLL_SECONDS)


def _too_late(
    positions: Mapping[str, tuple[str, int]], needed: Mapping[str, int], newest: int, seconds: float
) -> VerifyError:
    waiting = [source for source in positions if source not in needed]
    if waiting:
        file, offset = positions[waiting[0]]
        return VerifyError(
            f"not captured up to {file}:{offset} after {seconds:g} s",
            where=waiting[0],
            remedy="is capture running? give a larger --timeout",
        )
    at = f"the newest cut is {newest}" if newest else "there is no cut"
    return VerifyError(
        f"{at}, wanted is {max(needed.values())} after {seconds:g} s",
        remedy="is apply running? give a larger --timeout",
    )
