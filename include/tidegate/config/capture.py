"""The section `capture` of a pipeline file: how a binlog is read and landed in bronze.

In:  the section, as pydantic gets it.
Out: a Capture, frozen.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from tidegate import limits
from tidegate.config.section import Section


class Capture(Section):
    """How the binlog is read and landed in bronze."""

    run_for_seconds: int = Field(
        600,
        ge=5,
        le=limits.SECONDS_MAX,
        description="One capture run reads for this long, four heartbeats at least. Then the next run continues",
    )
    idle_seconds: int = Field(
        60,
        ge=1,
        le=limits.SECONDS_MAX,
        description="After this long without changes a run gives its slot back and waits deferred",
    )
    heartbeat_seconds: float = Field(
        2.0, ge=0.5, le=3600, description="How often a quiet source proves its resolved_ts"
    )
    segment_bytes: int = Field(
        limits.SEGMENT_BYTES_DEFAULT,
        ge=4096,
        le=limits.SEGMENT_BYTES_MAX,
        description="Capture cuts a segment at the first end of a transaction after this size",
    )
    land_seconds: float | None = Field(
        None,
        ge=0.05,
        le=300,
        description="How often capture appends to bronze while a source writes. Empty: 1, or 0.25 for micro-batches",
    )
    land_bytes: int = Field(
        limits.LAND_BYTES_DEFAULT, ge=4096, description="Capture also appends to bronze when this much waits"
    )
    compression: Literal["zstd", "lz4", "none"] = Field(
        "zstd",
        description="Compression of payloads in bronze. lz4 takes about half of zstd's CPU and 1.3 to 1.7 times its space",
    )
    queue_bytes: int = Field(
        limits.QUEUE_BYTES_DEFAULT, ge=1 << 20, description="Memory of the queue between the reader and the lander"
    )
    value_log_path: str | None = Field(
        None,
        description="Folder of this pipeline's value logs, one per source; another pipeline needs another folder. Empty:"
        " .tidegate/value_log/<pipeline>",
    )
    value_log_bytes_max: int | None = Field(
        None,
        ge=1 << 20,
        description="Largest size of the value log while the lake is slow or down. At this size capture stops. null:"
        " value_log_reserve_bytes alone is the bound",
    )
    value_log_reserve_bytes: int = Field(
        limits.DISK_RESERVE_BYTES_DEFAULT,
        ge=0,
        description="Free space to leave on the value log's disk. Capture stops before the disk is full",
    )
    slow_seconds: float = Field(
        limits.SLOW_LAKE_SECONDS_DEFAULT,
        ge=0.05,
        le=60,
        description="When the reader has waited this long for the lander, the lander reads from the value log instead",
    )
    hold_seconds: float = Field(
        limits.HOLD_SECONDS_DEFAULT,
        ge=0.05,
        le=60,
        description="Longest wait of the reader while the lander returns from the value log to memory",
    )
    retention_alert_hours: float = Field(
        12.0,
        ge=0,
        description="The log and `tidegate status` warn when the source may purge uncaptured log within this time",
    )
    failover_wait_seconds: float = Field(
        300.0,
        ge=0,
        le=86400,
        description="How long capture waits for a promoted replica that lacks captured transactions and still applies"
        " its relay log",
    )
    return_seconds: float = Field(
        limits.RETURN_SECONDS_DEFAULT,
        ge=0.1,
        le=limits.SECONDS_MAX,
        description="Shortest time between two tries of the lander to return to memory",
    )

    @model_validator(mode="after")
    def _proves_quiet(self) -> Self:
        if why := self.why_unproven(self.run_for_seconds):
            raise ValueError(f"{why}; raise run_for_seconds, or lower heartbeat_seconds")
        return self

    def why_unproven(self, run_seconds: float) -> str:
        """Why so long a run doesn't prove that its source is quiet; "" where it does."""
        if run_seconds >= self.proof_seconds:
            return ""
        heartbeats = f"{limits.PROOF_HEARTBEATS_MAX} heartbeats of {self.heartbeat_seconds:g} s"
        return f"a run of {run_seconds:g} s never proves that its source is quiet: that takes {heartbeats}"

    @property
    def proof_seconds(self) -> float:
        """A new connection has proved by then that its source is quiet, if it is."""
        return limits.PROOF_HEARTBEATS_MAX * self.heartbeat_seconds

    @property
    def idle_end_seconds(self) -> float:
        """A run ends by itself after this long without changes."""
        return self.idle_end(self.idle_seconds)

    def idle_end(self, seconds: float) -> float:
        """The same for a run that is asked to end after so long: not before it has proved that its source is quiet."""
        return max(seconds, self.proof_seconds)
