"""Where a run continues: after the value log's last segment, which is at or after bronze's.

In:  bronze, the value log.
Out: the Checkpoint from which to ask the server; the value log's segments that bronze lacks.

Capture also starts while the lake can't be reached, if this machine has captured the source before:
then only the value log says where to continue. Before the first segment lands, the lander checks
that bronze really ends where the value log begins (lander._attach).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tidegate.capture.checkpoint import Checkpoint, check_alike, check_belongs
from tidegate.capture.lander import Backlog
from tidegate.capture.value_log.folder import aside
from tidegate.capture.value_log.log import Budget, ValueLog
from tidegate.commit_ts import time_text
from tidegate.config import Pipeline
from tidegate.errors import LakeLost, LakeUnavailable, StrayValueLog
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import applied_upto, was_applied
from tidegate.remedy import PUT_BACK
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS, SegmentFlag

log = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """The findings of a start. newest: bronze's last segment; None if it has none, or can't be
    asked. tail: the newest segment with bytes, in the log or in bronze.
    """

    checkpoint: Checkpoint[Any]
    newest: Segment | None
    backlog: Backlog | None
    tail: Segment | None


def _begun() -> bool:
    """For a source that records nothing at its first start."""
    return True


def open_and_recover(
    bronze: Bronze,
    folder: Path,
    budget: Budget,
    nothing: Checkpoint[Any],
    *,
    promised: bool,
    has_begun: Callable[[], bool] = _begun,
) -> tuple[ValueLog, Recovered]:
    """The value log in a folder, and what recover() finds.

    If capture has continued elsewhere and is back, this log doesn't follow bronze, and is useless:
    the server has the next events, or says that it hasn't. The folder is moved aside, unless
    commits were acknowledged because this log has them (`promised`). Raises Fenced, LakeLost,
    LakeUnavailable.
    """
    log_there = ValueLog(folder, budget=budget)
    try:
        return log_there, recover(bronze, log_there, nothing, has_begun)
    except StrayValueLog as error:
        log_there.close()
        if promised:
            raise
        left = aside(folder)
        folder.rename(left)
        log.warning("%s; moved aside to %s, which may be removed: the source is asked for the rest", error, left)
    except BaseException:
        log_there.close()
        raise
    return open_and_recover(bronze, folder, budget, nothing, promised=True, has_begun=has_begun)


def recover(
    bronze: Bronze, value_log: ValueLog, nothing: Checkpoint[Any], has_begun: Callable[[], bool] = _begun
) -> Recovered:
    """Writes nothing. nothing: the checkpoint of a source never captured, seq 0. has_begun: whether
    the lake has what a first start records. If it hasn't, the lake may be an empty folder in
    place of a lost one, such as a disk that isn't mounted. Then nothing begins in it.

    Raises Fenced, LakeLost, LakeUnavailable.
    """
    newest = value_log.newest()
    try:
        in_bronze = bronze.last_segments()
        is_lost = not in_bronze and newest is not None and not has_begun()
    except LakeUnavailable as error:
        return _without_bronze(value_log, nothing, error)
    if is_lost:
        raise LakeLost(
            f"this machine has captured {bronze.source} before, and the lake has nothing of it",
            where=bronze.url,
            remedy=f"{PUT_BACK}; for a new lake move {value_log.folder} away",
        )
    checkpoint = nothing
    for segment in in_bronze:
        checkpoint = checkpoint.after(segment)
    first, last, size, tail = None, None, 0, None
    ahead = newest is not None and newest.seq > checkpoint.seq
    if newest is not None and not ahead:  # if bronze ends after this log, capture has continued elsewhere
        theirs = in_bronze[-1] if newest.seq == checkpoint.seq else bronze.segment(newest.seq)
        check_alike(newest, theirs, value_log.folder)
    for record in value_log.heads(max(checkpoint.seq - 1, 0) if ahead else checkpoint.seq):
        if in_bronze and record.segment.seq == checkpoint.seq:
            check_alike(record.segment, in_bronze[-1], value_log.folder)
            continue
        if first is None:
            check_belongs(record.segment, in_bronze[-1] if in_bronze else None, bronze.source, value_log.folder)
            first = record.pointer
        checkpoint, last, size = checkpoint.after(record.segment), record.pointer, size + record.pointer.bytes
        tail = record.segment if record.segment.has_bytes else tail
    tail = tail or next((segment for segment in reversed(in_bronze) if segment.has_bytes), None)
    tail = tail or next(bronze.newest_first(), None)  # if bronze ends with a heartbeat: one more look at its log
    backlog = Backlog(first, last, size) if first is not None and last is not None else None
    return Recovered(checkpoint, in_bronze[-1] if in_bronze else None, backlog, tail)


def check_reaches(recovered: Recovered, lake: LakeFiles, pipeline: Pipeline, source: str) -> None:
    """Refuse to go on from before silver's position: a part of bronze was lost, or an older copy of
    it was put back. A new beginning would lack the changes in between, and changes that are captured
    again may get lower commit_ts than before. Apply would pass over both.

    A Pump joins at the cut, and has nothing below it: only a beginning after its writes were applied
    is refused. Raises LakeLost.
    """
    if recovered.backlog is not None and recovered.backlog.first is None:  # the lake is away
        return
    applied_ts, reached_ts = applied_upto(lake, pipeline.pipeline, source), recovered.checkpoint.resolved_ts
    is_begun_anew = not recovered.checkpoint.seq
    joins = pipeline.sources[source].traits.pushes and not (is_begun_anew and was_applied(lake, source))
    if applied_ts > reached_ts and not joins:
        ends = f"ends at {time_text(reached_ts)}" if reached_ts else "has nothing of it"
        raise LakeLost(
            f"silver has {source} up to {time_text(applied_ts)}, and bronze {ends}: a part of bronze is lost, or an"
            " older copy was put back",
            where=lake.uri(SEGMENTS.path),
            remedy=f"{PUT_BACK}, with all of its folders; or begin a new lake (docs/production.md)",
        )


def land_rest(bronze: Bronze, value_log: ValueLog, seq: int) -> Segment | None:
    """Append to bronze what the value log has after segment seq. Returns the last segment; None if
    there is none.

    For a person's command: no lander runs at the same time. Raises LakeUnavailable, Fenced.
    """
    last = None
    for last in value_log.read(seq):
        bronze.append([last])
    return last


def _without_bronze(value_log: ValueLog, nothing: Checkpoint[Any], error: LakeUnavailable) -> Recovered:
    """Recover from the value log alone. Raises the error if the log doesn't say where to continue."""
    checkpoint, last, tail = None, None, value_log.tail()
    for record in value_log.heads():
        if checkpoint is None and record.segment.flags & SegmentFlag.OPEN_AT_START:
            continue
        checkpoint, last = (checkpoint or nothing).after(record.segment), record.pointer
        tail = record.segment if record.segment.has_bytes else tail
    if checkpoint is None or last is None:
        raise error
    log.warning("the lake can't be reached; capture goes on from the value log alone: %s", error)
    return Recovered(checkpoint, None, Backlog(None, last, 0), tail)
