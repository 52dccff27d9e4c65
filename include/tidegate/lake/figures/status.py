"""The state of a lake: bronze per source, silver per table, the newest cut.

In:  a lake.
Out: values for people (`tidegate status`, the demo's display); nothing is written.

Totals come from the statistics in the Delta logs. In bronze, only the newest file of each source is
opened, and only for its small columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.bronze.log import BronzeFile, BronzeFiles
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import layout_of
from tidegate.lake.silver.sizes import SIZE_COLUMNS, SilverSize, size_of
from tidegate.lake.standing.held import last_states
from tidegate.segments.segment import NO_SERVER, Server
from tidegate.standing.shown import LacksSnapshots, goes_on, way_out
from tidegate.standing.standing import Standing
from tidegate.tables import State

_DDL_SHOWN = 120
_LAST = ["seq", "kind", "server_id", "server_uuid", "file", "end_pos", "gtid_executed", "captured_at"]


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Bronze's state of a source. max_commit_ts: of all its transactions; 0 without any. heard_at:
    when its newest segment was cut, Unix seconds.

    unapplied_bytes: of files with a transaction above the cut. unapplied_since: when the first of
    these files was written. unapplied_ts: the first commit above the cut, or the cut itself, if the
    statistics of a file can't tell; 0 without one. above_cut_since: when bronze's log of it passed
    the cut; 0 if it hasn't.
    """

    source: str
    seq: int
    segments: int
    bytes: int
    resolved_ts: int
    max_commit_ts: int
    file: str
    end_pos: int
    gtid_executed: str
    server_id: int = 0
    heard_at: float = 0.0
    unapplied_bytes: int = 0
    unapplied_since: float = 0.0
    unapplied_ts: int = 0
    above_cut_since: float = 0.0


@dataclass(frozen=True, slots=True)
class TableStatus:
    """Silver's state of a logical table: it has every change up to applied_ts.

    way_out: the end of its wait, for a held or released table. The next fields are for a held
    table: why, since when (ISO, UTC), the place of the trouble in its source's log (file "" without
    one), the statement ("" without one), the cause (a Cause), and the class of its error. For other
    tables they are "" or 0. size: of the published silver, for every table; None if it isn't known.
    """

    table: str
    state: State
    applied_ts: int
    delta_version: int
    reason: str
    since: str = ""
    file: str = ""
    pos: int = 0
    ddl: str = ""
    way_out: str = ""
    source: str = ""
    cause: str = ""
    fault: str = ""
    size: SilverSize | None = None

    @property
    def has_ended(self) -> bool:
        """Whether no more changes of the table come."""
        return self.state in (State.DROPPED, State.LEFT)


def sources(lake: LakeFiles, cut_ts: int = 0) -> list[SourceStatus]:
    """The sources by name; empty before bronze exists. cut_ts: the applied cut."""
    return [_source(lake, source, files, cut_ts) for source, files in sorted(bronze_files(lake).items())]


def source_status(lake: LakeFiles, source: str) -> SourceStatus | None:
    """The state of one source; None before bronze has anything of it."""
    files = bronze_files(lake).get(source)
    return _source(lake, source, files) if files else None


def bronze_files(lake: LakeFiles) -> dict[str, list[BronzeFile]]:
    """The files of bronze/segments of each source, in order of seq. Raises LakeUnavailable."""
    return dict(BronzeFiles(lake.log(tables.SEGMENTS.path)).by_source())


def captured_server(lake: LakeFiles, source: str) -> Server | None:
    """The server of a source's newest segment. NO_SERVER for a Pump, since any TiDB of its cluster
    may write to it. None before the first segment. Raises LakeUnavailable.
    """
    files = bronze_files(lake).get(source)
    if not files:
        return None
    last = _last_row(lake, files)
    return NO_SERVER if last["kind"] == tables.SegmentKind.TIDB else (last["server_id"], last["server_uuid"])


def captured_cluster(lake: LakeFiles, source: str) -> str:
    """The TiDB cluster in a Pump's newest segment; "" before the first segment. Raises
    LakeUnavailable.
    """
    files = bronze_files(lake).get(source)
    return str(_last_row(lake, files)["server_uuid"]) if files else ""


def cut_ts(lake: LakeFiles) -> int:
    """The newest published cut; 0 before the first."""
    state = control.load(lake, tables.CUTS)
    if state is None:
        return 0
    older = bool(layout_of(state, tables.CUTS).steps)  # then the statistics of its files are about other columns
    bounded = [(file, None if older else file.bounds("cut_ts")) for file in state.files]
    untold = [file for file, bounds in bounded if bounds is None]  # of another writer, without statistics
    rows = control.rows_of(lake, tables.CUTS, state, pa.schema([tables.CUTS.schema.field("cut_ts")]), files=untold)
    return int(max([0, *(bounds[1] for _, bounds in bounded if bounds is not None), *rows["cut_ts"].to_pylist()]))


def first_cut_at(lake: LakeFiles) -> float | None:
    """When the first cut was published, Unix time, also after its row has left the lake; None before it."""
    state = control.load(lake, tables.CUTS)
    made_ms = state.metadata.get("createdTime") if state is not None else None
    return made_ms / 1000 if made_ms else None


def table_statuses(lake: LakeFiles, lacks_snapshots: LacksSnapshots = lambda _: False) -> list[TableStatus]:
    """Every table with a row in a cut or a state, by name. lacks_snapshots:
    Pipeline.lacks_snapshots.
    """
    newest = cut_ts(lake)
    states = last_states(lake)
    columns = ["table", "applied_ts", "delta_version", *SIZE_COLUMNS]
    rows = control.newest(lake, tables.CUTS, by=["table"], order=["cut_ts", "published_at"], columns=columns)
    cuts = {row["table"]: row for row in rows.to_pylist() if row["table"]}
    statuses = []
    for name in sorted(states.keys() | cuts.keys()):
        state, cut = states.get(name), cuts.get(name)
        held = state is not None and (state.state.waits or state.state is State.LEFT)
        applied = cut["applied_ts"] if cut is not None else 0
        statuses.append(
            TableStatus(
                table=name,
                state=state.state if state is not None else State.ACTIVE,
                # A table without a row in a cut had no changes: it is complete up to the newest cut, too.
                applied_ts=applied if held else newest,
                delta_version=cut["delta_version"] if cut is not None else -1,
                reason=state.reason if state and (held or state.state is State.SNAPSHOT) else "",
                size=size_of(cut) if cut is not None else None,
                **(_told(state, lacks_snapshots) if state is not None else {}),
            )
        )
    return statuses


def _told(state: Standing, lacks_snapshots: LacksSnapshots) -> dict[str, Any]:
    """The fields of a held or released table beside its reason."""
    if state.state is State.RELEASED:
        return {"way_out": goes_on(state)}
    if state.state is not State.HELD:
        return {}
    ddl = " ".join(state.place.ddl.split()) if state.place else ""
    return {
        "since": state.since.isoformat(timespec="seconds") if state.since else "",
        "file": state.place.file if state.place else "",
        "pos": state.place.pos if state.place else 0,
        "ddl": ddl if len(ddl) <= _DDL_SHOWN else ddl[:_DDL_SHOWN] + " ...",
        "way_out": way_out(state, lacks_snapshots),
        "source": state.place.source if state.place else "",
        "cause": str(state.cause or ""),
        "fault": state.fault,
    }


def _last_row(lake: LakeFiles, files: list[BronzeFile]) -> dict[str, Any]:
    with lake.open(f"{tables.SEGMENTS.path}/{unquote(files[-1].path)}") as handle:
        return max(pq.read_table(handle, columns=_LAST, partitioning=None).to_pylist(), key=lambda row: row["seq"])


def _source(lake: LakeFiles, source: str, files: list[BronzeFile], cut_ts: int = 0) -> SourceStatus:
    """files: in order of seq."""
    last = _last_row(lake, files)
    unapplied = [file for file in files if file.max_commit_ts > cut_ts]
    return SourceStatus(
        source=source,
        seq=last["seq"],
        segments=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        resolved_ts=max(file.resolved_ts for file in files),
        max_commit_ts=max(file.max_commit_ts for file in files),
        file=last["file"],
        end_pos=last["end_pos"],
        gtid_executed=last["gtid_executed"],
        server_id=last["server_id"],
        heard_at=last["captured_at"].timestamp(),
        unapplied_bytes=sum(file.bytes for file in unapplied),
        unapplied_since=min((file.modified_ms for file in unapplied), default=0) / 1000,
        unapplied_ts=min((max(file.min_commit_ts, cut_ts) for file in unapplied), default=0),
        above_cut_since=min((file.modified_ms for file in files if file.resolved_ts > cut_ts), default=0) / 1000,
    )
