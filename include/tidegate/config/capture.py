"""The section `capture` of a pipeline file: how a binlog is read and landed in bronze.

In:  the section, as pydantic gets it.
Out: a Capture, frozen.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate import limits
from tidegate.config.section import Section


class Capture(Section):
    """How the binlog is read and landed in bronze."""

    run_for_seconds: int = Field(
        600, ge=5, description="One capture run reads for this long, then hands over to the next"
    )
    idle_seconds: int = Field(
        60, ge=1, description="Nothing new for this long: the run gives its slot back and waits deferred"
    )
    heartbeat_seconds: float = Field(
        2.0, ge=0.5, le=3600, description="A quiet source proves its resolved_ts this often"
    )
    segment_bytes: int = Field(
        limits.SEGMENT_BYTES_DEFAULT,
        ge=4096,
        le=limits.SEGMENT_BYTES_MAX,
        description="A segment is cut at the first transaction end past this",
    )
    land_seconds: float | None = Field(
        None,
        ge=0.05,
        le=300,
        description="Bronze is appended to this often while a source writes; 1, or 0.25 for micro-batches, when empty",
    )
    land_bytes: int = Field(limits.LAND_BYTES_DEFAULT, ge=4096, description="... or when this much is waiting")
    compression: Literal["zstd", "lz4", "none"] = Field(
        "zstd", description="How bronze packs payloads: lz4 takes half of zstd's CPU and 1.6 times its space"
    )
    queue_bytes: int = Field(
        limits.QUEUE_BYTES_DEFAULT, ge=1 << 20, description="Memory between the reader and the lander"
    )
    value_log_path: str | None = Field(
        None, description="Folder of value logs, one for each source; .tidegate/value_log/<pipeline> when empty"
    )
    value_log_bytes_max: int | None = Field(
        None,
        ge=1 << 20,
        description="What the value log may grow to while the lake is slow or down; then capture stops. null: to what"
        " value_log_reserve_bytes leaves",
    )
    value_log_reserve_bytes: int = Field(
        limits.DISK_RESERVE_BYTES_DEFAULT,
        ge=0,
        description="So much of the value log's disk stays free: capture stops before it is full",
    )
    slow_seconds: float = Field(
        limits.SLOW_LAKE_SECONDS_DEFAULT,
        ge=0.05,
        le=60,
        description="The reader has waited so long for the lander: from then on the lander follows from the value log",
    )
    hold_seconds: float = Field(
        limits.HOLD_SECONDS_DEFAULT,
        ge=0.05,
        le=60,
        description="The reader is held at most this long while the lander returns from the value log to memory",
    )
    retention_alert_hours: float = Field(
        12.0,
        ge=0,
        description="The log and `tidegate status` warn when the source may purge what isn't captured sooner than this",
    )
    failover_wait_seconds: float = Field(
        300.0,
        ge=0,
        le=86400,
        description="A replica that was promoted, and lacks what is captured, may apply its relay log for this long",
    )
    return_seconds: float = Field(
        limits.RETURN_SECONDS_DEFAULT, ge=0.1, description="That return is tried at most this often"
    )
