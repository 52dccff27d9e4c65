"""A person gives up a Pump's value log. Acknowledged writes may be nowhere else, and bronze records that.

In:  bronze of a Pump, the value log on this machine, the id of the log that is lost.
Out: a segment of bronze without bytes, flagged GAP and HAS_DDL, that names every table. Apply holds
     all tables of the cluster there, and a snapshot reads each anew.

TiDB sends an acknowledged write only once, so the loss is between bronze's newest segment and the
next one. The segments of this machine's own log land first, and the gap gets the next number. It
keeps resolved_ts: a prewrite from before the gap may be committed right above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tidegate.capture.own_stream import NOTHING
from tidegate.capture.recovery import land_rest, recover
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import UsageError
from tidegate.lake.bronze.table import Bronze
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import EVERY_TABLE, SegmentFlag, SegmentKind


def record_loss(bronze: Bronze, value_log: ValueLog, lost_log: str) -> Segment | None:
    """The gap; None where bronze has nothing of this Pump: it lists all tables when it begins.

    Raises UsageError where the log is the one on this machine, Fenced, LakeUnavailable,
    LakeRefused.
    """
    newest = _newest(bronze.last_segments())
    if value_log.id == lost_log and value_log.newest() is not None:
        raise UsageError(
            "this log isn't lost, it is on this machine",
            where=str(value_log.folder),
            remedy="start capture, which lands it; or move the folder away, and forget it then",
        )
    recover(bronze, value_log, NOTHING)  # whether this machine's log goes on from bronze's end
    newest = land_rest(bronze, value_log, newest.seq if newest else 0) or newest
    if newest is None:
        return None
    gap = _behind(newest)
    bronze.append([gap])
    return gap


def _newest(segments: Sequence[Segment]) -> Segment | None:
    return segments[-1] if segments else None


def _behind(newest: Segment) -> Segment:
    """The gap: in the stream one byte long, so that it is a place; its payload is empty."""
    begins_ts = newest.resolved_ts + 1
    return replace(
        newest,
        seq=newest.seq + 1,
        kind=SegmentKind.TIDB,
        start_pos=newest.end_pos,
        end_pos=newest.end_pos + 1,
        prev_commit_ts=newest.resolved_ts,
        min_commit_ts=begins_ts,
        max_commit_ts=max(newest.max_commit_ts, begins_ts),  # timestamps that segments name never fall
        tables=(EVERY_TABLE,),
        flags=SegmentFlag.GAP | SegmentFlag.HAS_DDL,
        event_count=0,
        txn_count=0,
        context=b"",
        payload=b"",
        payload_crc32c=crc32c(b""),
        captured_at=datetime.now(UTC),
    )
