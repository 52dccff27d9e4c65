"""The section `snapshot` of a pipeline file: how rows from before capture are read.

In:  the section, as pydantic gets it.
Out: a Snapshot, frozen.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from tidegate import limits
from tidegate.config.section import Section


class SnapshotMode(StrEnum):
    """The starter of a snapshot: the reader itself, or a person."""

    AUTO = "auto"  # the reader does
    MANUAL = "manual"  # a person does: tidegate snapshot start


class SnapshotMarks(StrEnum):
    """Where the marks of a snapshot go."""

    AUTO = "auto"  # into the source's log, unless the account or the server may not be written to
    UNLOGGED = "unlogged"  # into the lake alone: nothing is written at the source


class Snapshot(Section):
    """How `tidegate snapshot` reads rows by SELECT, and how much of a source it takes."""

    mode: SnapshotMode = Field(
        SnapshotMode.AUTO,
        description="auto: a snapshot starts by itself for a table whose rows the log lacks. manual: only a person"
        " starts it",
    )
    marks: SnapshotMarks = Field(
        SnapshotMarks.AUTO,
        description="auto: marks go into tidegate.watermark at the source, if it is writable. unlogged: never write"
        " at the source, as with a read-only replica",
    )
    parallel: int = Field(
        limits.SNAPSHOT_THREADS_DEFAULT, ge=1, le=64, description="Connections that read a source at the same time"
    )
    chunk_rows: int = Field(
        limits.SNAPSHOT_CHUNK_ROWS_DEFAULT, ge=100, le=10_000_000, description="Most rows in one SELECT"
    )
    chunk_bytes: int = Field(
        limits.SNAPSHOT_CHUNK_BYTES_DEFAULT,
        ge=limits.SNAPSHOT_CHUNK_BYTES_MIN,
        le=256 << 20,
        description="Size at which a chunk is cut. Each connection holds one chunk in memory",
    )
    bytes_per_second: int = Field(
        0, ge=0, description="Most bytes of rows read per second, in their packed form. 0: no bound"
    )
    threads_running_max: int = Field(
        0, ge=0, description="Reading pauses while the source's Threads_running is above this. 0: not checked"
    )
    history_list_max: int = Field(
        0,
        ge=0,
        description="Reading pauses while InnoDB's history list is longer than this (old views block purge). On MySQL"
        " the account needs PROCESS. 0: not checked",
    )
    replica_lag_seconds_max: int = Field(
        0,
        ge=0,
        description="Reading pauses while the replica in replica_conn_id is further behind, or doesn't answer. 0: not"
        " checked",
    )
