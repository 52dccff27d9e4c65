"""The newest published cut, and whether it holds all that a source has written.

In:  control/cuts, control/table_states and bronze/segments, read with delta-rs; positions of the sources.
Out: a Cut; or VerifyError when none covers the positions in time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tidegate import tables
from tidegate.errors import VerifyError
from tidegate.position import Position

_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Cut:
    """versions: logical table -> (Delta version, state) as the newest row about it says; reasons: why one is held."""

    cut_ts: int
    versions: dict[str, tuple[int, str]]
    reasons: dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LakeReader:
    """root: absolute path or URL of the lake; options: delta-rs storage options; servers: server_id per source."""

    root: str
    options: Mapping[str, str]
    pipeline: str
    servers: Mapping[str, int]

    def newest_cut(self) -> Cut | None:
        """The cut with the largest cut_ts; None before the first."""
        rows = self._rows(tables.CUTS, ["cut_ts", "table", "delta_version", "state", "published_at"])
        rows.sort(key=lambda row: (row["cut_ts"], row["published_at"]))
        newest = max((row["cut_ts"] for row in rows if row["table"] == ""), default=None)
        if newest is None:
            return None
        versions = {
            row["table"]: (row["delta_version"], row["state"])
            for row in rows
            if row["table"] and row["cut_ts"] <= newest
        }
        states = self._rows(tables.TABLE_STATES, ["pipeline", "table", "state", "reason", "recorded_at"])
        states.sort(key=lambda row: row["recorded_at"])
        reasons = {row["table"]: (row["state"], row["reason"]) for row in states if row["pipeline"] == self.pipeline}
        return Cut(newest, versions, reasons)

    def covered_by(self, source: str, file: str, offset: int) -> int | None:
        """The resolved_ts that a cut must have reached to hold all up to a position; None: not captured yet.

        Positions of a server that was captured before a failover say nothing of its successor's.
        """
        wanted = Position.of(file, offset)
        columns = ["source", "server_id", "file", "end_pos", "resolved_ts"]
        rows = self._rows(tables.SEGMENTS, columns, filters=[("source", "=", source)])
        mine = [row for row in rows if row["server_id"] == self.servers[source]]
        found = [row["resolved_ts"] for row in mine if Position.of(row["file"], row["end_pos"]) >= wanted]
        return min(found, default=None)

    def wait(self, positions: Mapping[str, tuple[str, int]], timeout_seconds: float) -> Cut:
        """The first cut that covers all positions. Raises VerifyError when none does in time."""
        until = time.monotonic() + timeout_seconds
        needed: dict[str, int] = {}
        while True:
            for source, (file, offset) in positions.items():
                resolved = needed.get(source) or self.covered_by(source, file, offset)
                if resolved is not None:
                    needed[source] = resolved
            cut = self.newest_cut()
            if len(needed) == len(positions) and cut is not None and cut.cut_ts >= max(needed.values()):
                return cut
            if time.monotonic() >= until:
                raise _too_late(positions, needed, cut, timeout_seconds)
            time.sleep(_POLL_SECONDS)

    def _rows(self, table: tables.Table, columns: list[str], filters: Any = None) -> list[dict[str, Any]]:
        try:
            found = DeltaTable(f"{self.root}/{table.path}", storage_options=dict(self.options))
        except TableNotFoundError:
            return []
        rows: list[dict[str, Any]] = found.to_pyarrow_table(columns=columns, filters=filters).to_pylist()
        return rows


def _too_late(
    positions: Mapping[str, tuple[str, int]], needed: Mapping[str, int], cut: Cut | None, seconds: float
) -> VerifyError:
    waiting = [source for source in positions if source not in needed]
    if waiting:
        file, offset = positions[waiting[0]]
        return VerifyError(
            f"not captured up to {file}:{offset} after {seconds:g} s",
            where=waiting[0],
            remedy="is capture running? give a larger --timeout",
        )
    at = f"the newest cut is {cut.cut_ts}" if cut else "there is no cut"
    return VerifyError(
        f"{at}, wanted is {max(needed.values())} after {seconds:g} s",
        remedy="is apply running? give a larger --timeout",
    )
