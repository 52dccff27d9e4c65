"""control/prewrites: per source, the prewrites that wait or were answered, and their segments in
bronze.

In:  a lake.
Out: Prewrites (segments/prewrites.py) that are open, or were answered above a commit_ts; their
     segments.

A prewrite whose answer is in its own segment isn't here: the reader of that segment finds both. All
others are here, also those of tables outside the pipeline, since a table may be included later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.commit_ts import FOREVER
from tidegate.config import Orphans
from tidegate.lake import control
from tidegate.lake.bronze.beginning import begins
from tidegate.lake.bronze.index import refs_in
from tidegate.lake.bronze.log import bronze_log, files_of
from tidegate.lake.files import LakeFiles
from tidegate.segments.prewrites import Prewrite
from tidegate.segments.window import SegmentRef
from tidegate.tables.prewrites_table import PREWRITES, PrewriteState

# Of one prewrite, a row with the answer comes after the rows from before the answer.
_ORDER: Final = ["answer_ts", "recorded_at"]
# The id of a TiDB transaction that a Pump answers in its stream (pump/parked.py) begins so; its start_ts follows.
PUMPS_ID: Final = "tidb "
_FATES: Final = {
    Orphans.PARK: PrewriteState.PARKED,
    Orphans.ASK: PrewriteState.PARKED,
    Orphans.ROLLBACK: PrewriteState.ROLLED_BACK,
    Orphans.COMMIT: PrewriteState.COMMITTED,
}


def standing(lake: LakeFiles, after_ts: int) -> dict[str, list[Prewrite]]:
    """Per source, the prewrites no answer in the log has settled, and those answered above
    after_ts.
    """
    rows = _last(lake)
    return _by_source(rows.filter(pc.or_(_stays(rows), pc.greater(rows["answer_ts"], after_ts))))


def unsettled(lake: LakeFiles) -> dict[str, list[Prewrite]]:
    """Per source, the prewrites no answer in the log has settled, even if somebody decided about
    them meanwhile.
    """
    return standing(lake, FOREVER)


def waiting(lake: LakeFiles) -> tuple[Prewrite, ...]:
    """Those of all sources without an answer, the oldest first. Raises LakeUnavailable, LakeRefused."""
    rows = _last(lake)
    every = _by_source(rows.filter(_waits(rows))).values()
    return tuple(sorted((prewrite for of in every for prewrite in of), key=lambda prewrite: prewrite.start_ts))


def for_apply(lake: LakeFiles, after_ts: int) -> dict[str, list[Prewrite]]:
    """As `standing`, without those answered in a Pump's stream: apply meets their answers in the
    log itself.
    """
    by_source = standing(lake, after_ts)
    return {source: [prewrite for prewrite in of if not of_pump(prewrite)] for source, of in by_source.items()}


def answered_in(lake: LakeFiles, after_ts: int, upto_ts: int) -> dict[str, list[Prewrite]]:
    """Per source those whose answer is in (after_ts, upto_ts]."""
    filters: list[tuple[str, str, Any]] = [("answer_ts", ">", after_ts)]
    last = control.newest(lake, PREWRITES, by=PREWRITES.key, order=_ORDER, filters=filters)
    # Of what was parked in there and answered above, the answer counts.
    return _by_source(last.filter(pc.less_equal(last["answer_ts"], upto_ts)))


def first_needed(lake: LakeFiles, after_ts: Mapping[str, int]) -> dict[str, int]:
    """Per source, the smallest start_ts of the open prewrites and of those answered above the
    source's after_ts.
    """
    if not after_ts:
        return {}
    rows = _last(lake, ["source", "start_ts", "answer_ts", "state"])
    smallest: dict[str, int] = {}
    for source, floor in after_ts.items():
        wanted = pc.or_(_waits(rows), pc.greater(rows["answer_ts"], floor))
        own_rows = rows.filter(pc.and_(wanted, pc.equal(rows["source"], source)))
        if own_rows.num_rows:
            smallest[source] = pc.min(own_rows["start_ts"]).as_py()
    return smallest


def by_policy(policy: Orphans) -> tuple[PrewriteState, str]:
    """The decision of `xa.orphans` about an orphan, and who made it; "" if a person must decide."""
    state = _FATES[policy]
    return state, "" if state is PrewriteState.PARKED else f"xa.orphans: {policy}"


def decide(lake: LakeFiles, orphan: Prewrite, state: PrewriteState, decided_by: str) -> bool:
    """Record a person's decision on a parked prewrite. False if it isn't parked any more: the log,
    or somebody else, has answered it.

    The answer gets the place of the prewrite: the waiting tables meet it there. Its row is the last
    one even where this machine's clock is behind.
    """
    same: list[tuple[str, str, Any]] = [(name, "=", getattr(orphan, name)) for name in PREWRITES.key]

    def parked_at(rows: pa.Table) -> datetime | None:
        last = control.last_of(rows, PREWRITES.key, _ORDER).to_pylist()
        return last[0]["recorded_at"] if last and last[0]["state"] == PrewriteState.PARKED else None

    at = parked_at(control.read(lake, PREWRITES, filters=same))
    if at is None:
        return False
    now = max(datetime.now(UTC), at + timedelta(microseconds=1))
    row = replace(orphan, state=state, decided_by=decided_by).to_row(now)
    return control.append_if(
        lake, PREWRITES, row, lambda read: parked_at(control.rows_of(lake, PREWRITES, read, filters=same)) == at
    )


def of_pump(prewrite: Prewrite) -> bool:
    """Whether a Pump answers it."""
    return prewrite.id.startswith(PUMPS_ID)


def parked_by_pumps(lake: LakeFiles) -> dict[str, list[Prewrite]]:
    """Per source, the prewrites of its Pumps that wait for a person. Raises LakeUnavailable,
    LakeRefused.
    """
    parked = PrewriteState.PARKED  # a DDL isn't parked: it stays open until TiDB's history has it
    parked_of = {
        s: [prewrite for prewrite in of if prewrite.state is parked and of_pump(prewrite)]
        for s, of in unsettled(lake).items()
    }
    return {source: of for source, of in parked_of.items() if of}


def record(
    tables: control.ControlTables, prewrites: Sequence[Prewrite], app_transaction: tuple[str, int] | None = None
) -> None:
    """Append rows, as ControlTables does. The same rows again do no harm: a prewrite's last row
    counts.
    """
    now = datetime.now(UTC)
    tables.append(PREWRITES, [prewrite.to_row(now) for prewrite in prewrites], app_transaction)


def refs_of(lake: LakeFiles, wanted: Mapping[str, Collection[int]]) -> dict[tuple[str, int], SegmentRef]:
    """(source, seq) -> its segment, wherever it lies in bronze. Removed segments are left out."""

    def needed(add: Mapping[str, Any]) -> bool:
        stats = json.loads(add["stats"])
        low, high = stats["minValues"]["seq"], stats["maxValues"]["seq"]
        return any(low <= seq <= high for seq in wanted.get(add["partitionValues"]["source"], ()))

    if not any(wanted.values()):
        return {}
    return {
        (ref.source, ref.seq): ref
        for file in files_of(bronze_log(lake, needed).state())
        for ref in refs_in(lake, file.path, file.source, -1)
        if ref.seq in wanted[file.source]
    }


def begins_of(lake: LakeFiles) -> dict[str, int]:
    """Source -> the commit_ts before its first segment in bronze, if earlier ones were removed."""
    return begins(lake, files_of(bronze_log(lake).state()))


def worth_keeping(rows: pa.Table, begins: Mapping[str, int]) -> pa.Table:
    """The rows to keep: open prewrites, and those answered above the beginning of their source's
    bronze (begins_of).
    """
    last = control.last_of(rows, PREWRITES.key, _ORDER)
    begin = pa.array([begins.get(source, 0) for source in last["source"].to_pylist()], pa.int64())
    return last.filter(pc.or_(_stays(last), pc.greater(last["answer_ts"], begin)))


def _waits(rows: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(rows["state"], pa.array([PrewriteState.OPEN, PrewriteState.PARKED]))


def _stays(rows: pa.Table) -> pa.ChunkedArray:
    """Rows of waiting prewrites, and of decided ones: the log may still say otherwise."""
    return pc.or_(_waits(rows), pc.not_equal(rows["decided_by"], ""))


def _last(lake: LakeFiles, columns: Sequence[str] | None = None) -> pa.Table:
    return control.newest(lake, PREWRITES, by=PREWRITES.key, order=_ORDER, columns=columns)


def _by_source(rows: pa.Table) -> dict[str, list[Prewrite]]:
    by_source: dict[str, list[Prewrite]] = {}
    for row in rows.to_pylist():
        by_source.setdefault(row["source"], []).append(Prewrite.from_row(row))
    return by_source
