"""Every metric of tidegate: its name, its labels, its unit and its meaning.

In:  nothing.
Out: METRICS. docs/metrics.md, the dashboard and the alerts in docker/monitoring are held to it by tests.

All are gauges: a figure is the present value, and an unknown one has no sample. Names and labels are stable: the
changelog announces a removal one release before. The pipeline file bounds the number of series, not the number of
tables: a label `table` names tables of completeness.tables, and others only with --per-table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PIPELINE: Final = ("pipeline",)
SOURCE: Final = ("pipeline", "source")
TABLE: Final = ("pipeline", "table")
DISK: Final = ("pipeline", "disk")


@dataclass(frozen=True, slots=True)
class Metric:
    """name: its last word is the unit where it has one. labels: of each sample, in this order. meaning: a sentence."""

    name: str
    labels: tuple[str, ...]
    meaning: str


METRICS: Final[dict[str, Metric]] = {
    name: Metric(name, labels, meaning)
    for name, labels, meaning in (
        ("tidegate_up", PIPELINE, "1 if the lake could be read at the last look, else 0."),
        ("tidegate_look_timestamp_seconds", PIPELINE, "When the pipeline was looked at last, Unix time."),
        (
            "tidegate_state",
            (*PIPELINE, "state"),
            "1 for the state in one word that the page shows (docs/page.md), 0 for the other words.",
        ),
        ("tidegate_lag_seconds", PIPELINE, "How far silver is behind its sources; 0 while nothing is missing."),
        ("tidegate_cut_timestamp_seconds", PIPELINE, "Silver is complete through this time, Unix time."),
        ("tidegate_applied_rows_per_second", PIPELINE, "Row changes applied a second, over five minutes."),
        ("tidegate_applied_bytes_per_second", PIPELINE, "Binlog applied a second, over five minutes."),
        ("tidegate_window_seconds", PIPELINE, "The longest time from one cut to the next, over five minutes."),
        ("tidegate_clock_skew_seconds", PIPELINE, "The largest difference between the clocks of two sources."),
        ("tidegate_source_up", SOURCE, "1 if the source answered, else 0. A Pump is not asked, and has no sample."),
        ("tidegate_source_lag_seconds", SOURCE, "How far bronze is behind the source; 0 while nothing is missing."),
        ("tidegate_source_resolved_timestamp_seconds", SOURCE, "Bronze is complete through this time, Unix time."),
        ("tidegate_source_left_behind", SOURCE, "1 if the cut goes on without the source, else 0."),
        ("tidegate_source_clock_ahead_seconds", SOURCE, "The source's clock minus this machine's."),
        ("tidegate_source_behind_bytes", SOURCE, "Binlog at the source that isn't in bronze."),
        ("tidegate_bronze_bytes", SOURCE, "Bytes of the source in bronze."),
        ("tidegate_unapplied_bytes", SOURCE, "Bytes of the source in bronze that aren't in silver, by whole files."),
        (
            "tidegate_capture_down",
            SOURCE,
            "1 if capture of the source was killed, or is silent, or ended and isn't begun again, else 0.",
        ),
        ("tidegate_apply_down", PIPELINE, "The same of apply."),
        (
            "tidegate_lease_since_timestamp_seconds",
            (*SOURCE, "work", "host"),
            "Since when a process of this host holds the lease of `capture`, or of `apply` (without a source).",
        ),
        (
            "tidegate_errors",
            (*PIPELINE, "class"),
            "Errors of now, by class: of the lake, of sources, of held tables. A class without one has no sample.",
        ),
        ("tidegate_tables", (*PIPELINE, "state"), "Tables by state, as `tidegate status` names it."),
        (
            "tidegate_held_tables",
            (*PIPELINE, "cause"),
            "Held tables by cause (docs/inside/standing.md).",
        ),
        ("tidegate_tables_behind_max_seconds", PIPELINE, "How far the table that is furthest behind is behind."),
        (
            "tidegate_snapshot_tables",
            (*PIPELINE, "state"),
            "Tables that are being read, by their snapshot's state; `failed`: tables with a failed last one.",
        ),
        ("tidegate_snapshot_read_rows", PIPELINE, "Rows read by the snapshots that are under way."),
        ("tidegate_snapshot_estimated_rows", PIPELINE, "About how many rows the tables of these snapshots have."),
        ("tidegate_verified_tables", (*PIPELINE, "outcome"), "Tables by the outcome of their last verification."),
        ("tidegate_unverified_tables", PIPELINE, "Tables that were never verified."),
        (
            "tidegate_verified_through_timestamp_seconds",
            PIPELINE,
            "What verify found equal has no fault from before this time, Unix time. The oldest of all tables.",
        ),
        (
            "tidegate_unverified_since_timestamp_seconds",
            PIPELINE,
            "The same; the first cut's time, if nothing was ever verified. None with `verify.each_table_hours: 0`.",
        ),
        ("tidegate_capture_chasing", SOURCE, "1 if the lake doesn't take what capture reads, else 0."),
        ("tidegate_capture_behind_bytes", SOURCE, "Bytes in the value log that the lake lacks."),
        ("tidegate_capture_read_bytes_per_second", SOURCE, "Binlog read from the source a second, in the last minute."),
        ("tidegate_capture_value_log_bytes", SOURCE, "Bytes of the value log."),
        ("tidegate_capture_room_bytes", SOURCE, "Room that is left for the value log."),
        ("tidegate_capture_status_timestamp_seconds", SOURCE, "When capture wrote its status, Unix time."),
        (
            "tidegate_source_purge_in_seconds",
            SOURCE,
            "When the source purges uncaptured log, if capture stops now.",
        ),
        (
            "tidegate_hour_overdue_seconds",
            TABLE,
            "How long an hour of `completeness.tables` is over without being complete; 0 without one. `*`: all tables.",
        ),
        (
            "tidegate_waiting_table_overdue_seconds",
            TABLE,
            "The same of the tables behind the delay of all tables together: the first five.",
        ),
        ("tidegate_disk_up", DISK, "1 if a disk of this machine answers, else 0: its mount hangs, or is stale."),
        ("tidegate_disk_bytes", DISK, "Size of a disk of this machine: `lake` (a folder), `value log`, `spark`."),
        ("tidegate_disk_free_bytes", DISK, "Room on it."),
        ("tidegate_table_lag_seconds", TABLE, "How far a table is behind (--per-table)."),
        ("tidegate_table_state", (*TABLE, "state"), "1 for the state of a table (--per-table)."),
    )
}
