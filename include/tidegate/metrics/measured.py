"""The samples of a pipeline, from one look at it.

In:  a PipelineView; capture's status by source, where capture runs on this machine; the disks of this machine.
Out: Samples, each of a metric in the catalogue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tidegate.capture.chaser import ChaserState
from tidegate.capture.health import Health, health
from tidegate.capture.silence import LeasedWork
from tidegate.commit_ts import physical_ms
from tidegate.lake.figures.verified import VerifiedTogether
from tidegate.limits import HOUR_NAMED_TABLES_MAX
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.hours import overdue, waiting
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.standing.causes import Cause
from tidegate.tables import State
from tidegate.verify.report import Outcome

if TYPE_CHECKING:
    from tidegate.capture.standing import CaptureStanding, SourceStanding
    from tidegate.capture.status_file import CaptureStatus
    from tidegate.metrics.disks import Disk
    from tidegate.pipelines import PipelineView
    from tidegate.snapshot.progress.events import TableProgress


class Sample(NamedTuple):
    """labels: the values of the metric's labels, in their order."""

    metric: str
    labels: tuple[str, ...]
    value: float


def samples(
    view: PipelineView,
    captures: Mapping[str, CaptureStatus] | None = None,
    disks: Mapping[str, Disk | None] | None = None,
    *,
    per_table: bool = False,
) -> list[Sample]:
    """captures: by source, disks: by name, of this machine. A figure that isn't known has no sample."""
    name = view.pipeline.pipeline
    figures = [
        *_of_pipeline(view),
        *_of_captures(captures or {}),
        *_of_purges(view.standing, captures or {}),
        *(("tidegate_hour_overdue_seconds", (table,), seconds) for table, seconds in overdue(view)),
        *_of_waiting(view),
        *_of_disks(disks or {}),
        *(_of_tables(view.standing) if per_table and view.standing is not None else ()),
    ]
    made = [Sample(metric, (name, *labels), float(value)) for metric, labels, value in figures if value is not None]
    assert all(len(sample.labels) == len(METRICS[sample.metric].labels) for sample in made)
    return made


# What is yielded: the metric, the labels after the pipeline's, the value or None.
Figure = tuple[str, tuple[str, ...], float | None]


def _of_pipeline(view: PipelineView) -> Iterator[Figure]:
    stands, state = view.standing, health(view.standing)
    yield "tidegate_up", (), stands is not None
    yield "tidegate_look_timestamp_seconds", (), view.at
    yield from _of_errors(view)
    for known in Health:
        yield "tidegate_state", (str(known),), known is state
    if stands is None:
        return
    yield "tidegate_lag_seconds", (), stands.lag_seconds
    yield "tidegate_cut_timestamp_seconds", (), _unix(stands.cut_ts)
    yield "tidegate_clock_skew_seconds", (), stands.skew_seconds
    if view.timeline is not None:
        yield "tidegate_applied_rows_per_second", (), view.timeline.rows_a_second
        yield "tidegate_applied_bytes_per_second", (), view.timeline.bytes_a_second
        yield "tidegate_window_seconds", (), view.timeline.longest_window
    yield "tidegate_apply_down", (), stands.silence(LeasedWork.APPLY, stands.pipeline) is not None
    for holder in stands.holders:
        source_name = holder.of if holder.work is LeasedWork.CAPTURE else ""
        yield "tidegate_lease_since_timestamp_seconds", (source_name, str(holder.work), holder.host), holder.since
    for source in stands.sources:
        is_down = stands.silence(LeasedWork.CAPTURE, source.source) is not None
        yield "tidegate_capture_down", (source.source,), is_down or (None if source.is_down else False)
        yield from _of_source(source, is_asked=not view.pipeline.sources[source.source].traits.pushes)
    yield from _of_standing(stands)
    yield from _of_snapshots(view.snapshots, len(view.failed_snapshots))
    yield from _of_verification(view, stands)


def _of_errors(view: PipelineView) -> Iterator[Figure]:
    faults = [view.fault]
    if view.standing is not None:
        faults += [source.server.fault for source in view.standing.sources]
        faults += [table.fault for table in view.standing.held]
    for fault, count in Counter(filter(None, faults)).items():
        yield "tidegate_errors", (fault,), count


def _of_source(source: SourceStanding, *, is_asked: bool) -> Iterator[Figure]:
    label, answered = (source.source,), not source.server.error
    yield "tidegate_source_up", label, answered if is_asked else None
    yield "tidegate_source_lag_seconds", label, source.lag_seconds
    yield "tidegate_source_left_behind", label, source.behind_ts is not None
    yield "tidegate_source_clock_ahead_seconds", label, source.server.clock_ahead_seconds if answered else None
    yield "tidegate_source_behind_bytes", label, source.behind_bytes
    if source.captured is not None:
        yield "tidegate_source_resolved_timestamp_seconds", label, _unix(source.captured.resolved_ts)
        yield "tidegate_bronze_bytes", label, source.captured.bytes
        yield "tidegate_unapplied_bytes", label, source.unapplied_bytes


def _of_standing(stands: CaptureStanding) -> Iterator[Figure]:
    """Every state and every cause has a sample, 0 included: without one an alert on it would see nothing."""
    states = Counter(table.state for table in stands.tables)
    for state in State:
        yield "tidegate_tables", (str(state),), states[state]
    causes = Counter(table.cause for table in stands.held)
    for cause in Cause:
        yield "tidegate_held_tables", (str(cause),), causes[cause]
    behind = (stands.seconds_behind(table) for table in stands.tables if not table.has_ended)
    yield "tidegate_tables_behind_max_seconds", (), max((age for age in behind if age is not None), default=None)


def _of_snapshots(snapshots: tuple[TableProgress, ...], failed: int) -> Iterator[Figure]:
    yield "tidegate_snapshot_tables", (str(SnapshotState.FAILED),), failed
    for state, count in Counter(str(table.state) for table in snapshots).items():
        yield "tidegate_snapshot_tables", (state,), count
    yield "tidegate_snapshot_read_rows", (), sum(table.rows for table in snapshots)
    yield "tidegate_snapshot_estimated_rows", (), sum(max(table.estimate, table.rows) for table in snapshots)


def _of_verification(view: PipelineView, stands: CaptureStanding) -> Iterator[Figure]:
    together = VerifiedTogether.of(stands.alive, view.verified)
    for outcome in Outcome:
        yield "tidegate_verified_tables", (str(outcome),), together.outcomes.get(outcome, 0)
    yield "tidegate_unverified_tables", (), together.never
    through = _unix(together.through_ts)
    yield "tidegate_verified_through_timestamp_seconds", (), through
    is_unwanted = view.pipeline.verify.each_table_hours == 0
    since = through if through is not None else stands.first_cut_at
    yield "tidegate_unverified_since_timestamp_seconds", (), None if is_unwanted else since


def _of_captures(captures: Mapping[str, CaptureStatus]) -> Iterator[Figure]:
    for source, status in captures.items():
        label = (source,)
        yield "tidegate_capture_chasing", label, status.state is not ChaserState.DIRECT
        yield "tidegate_capture_behind_bytes", label, status.behind_bytes
        yield "tidegate_capture_read_bytes_per_second", label, status.bytes_per_second
        yield "tidegate_capture_value_log_bytes", label, status.value_log_bytes
        yield "tidegate_capture_room_bytes", label, status.room_bytes
        yield "tidegate_capture_status_timestamp_seconds", label, status.written_at


def _of_waiting(view: PipelineView) -> Iterator[Figure]:
    for table, seconds in waiting(view)[:HOUR_NAMED_TABLES_MAX]:
        yield "tidegate_waiting_table_overdue_seconds", (table,), seconds


def _of_disks(disks: Mapping[str, Disk | None]) -> Iterator[Figure]:
    """disks: None for one without an answer."""
    for name, disk in disks.items():
        yield "tidegate_disk_up", (name,), disk is not None
        yield "tidegate_disk_bytes", (name,), disk.total if disk is not None else None
        yield "tidegate_disk_free_bytes", (name,), disk.free if disk is not None else None


def _of_purges(stands: CaptureStanding | None, captures: Mapping[str, CaptureStatus]) -> Iterator[Figure]:
    """Capture's own forecast, if it runs here; else the source's answer."""
    said = {name: status.retention for name, status in captures.items() if status.retention is not None}
    asked = {source.source: source.purge for source in stands.sources if source.purge} if stands is not None else {}
    for name, purge in (asked | said).items():
        yield "tidegate_source_purge_in_seconds", (name,), purge.seconds_left


def _of_tables(stands: CaptureStanding) -> Iterator[Figure]:
    for table in stands.tables:
        yield "tidegate_table_lag_seconds", (table.table,), stands.seconds_behind(table)
        yield "tidegate_table_state", (table.table, str(table.state)), 1


def _unix(commit_ts: int) -> float | None:
    return physical_ms(commit_ts) / 1000 if commit_ts else None
