"""Which published cuts are kept, and which Delta versions of silver they need.

In:  rows of control/cuts, and how long cuts are kept.
Out: the rows to keep; per table the versions that readers of a kept cut need. Pure.

A cut names only the tables its window changed. A reader of cut C takes, for each table, the
newest row at or below C, so a row stays while a kept cut resolves to it, however old it is. A later
row with a lower version, or another id, tells such a reader that its own version is gone
(published.py): it stays while a kept cut is below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.limits import DENSE_CUTS_SECONDS
from tidegate.tables import State

_ORDER: Final = [("cut_ts", "ascending"), ("published_at", "ascending")]
_DENSE: Final = timedelta(seconds=DENSE_CUTS_SECONDS)


def kept_rows(cuts: pa.Table, now: datetime, keep: timedelta, thin_seconds: int) -> pa.Table:
    """The rows of control/cuts needed by kept cuts, in order of cut_ts.

    Kept are the newest cut, all cuts of the last hour, and of older ones the last of every
    `thin_seconds`, if published within `keep`.
    """
    rows = cuts.sort_by(_ORDER)
    is_cut = _numpy(pc.equal(rows["table"], "")).astype(bool)
    if not is_cut.any():
        return rows
    stamps = _numpy(rows["cut_ts"]).astype(np.int64)
    published = _numpy(rows["published_at"].cast(pa.timestamp("us")).cast(pa.int64())).astype(np.int64)
    chosen = _chosen(published[is_cut], now, keep, thin_seconds)
    kept = stamps[is_cut][chosen]
    # Each row serves the first kept cut at or above it. Of a table's rows that serve the same cut, the last counts.
    serves = np.searchsorted(kept, stamps, side="left")
    stays = np.zeros(rows.num_rows, dtype=bool)
    stays[np.flatnonzero(is_cut)[chosen]] = True
    at = pa.table({"table": rows["table"], "serves": serves, "at": np.arange(rows.num_rows)}).filter(pa.array(~is_cut))
    stays[_numpy(at.group_by(["table", "serves"], use_threads=False).aggregate([("at", "max")])["at_max"])] = True
    stays |= _begins_anew(rows) & (serves > 0) & ~is_cut
    stays |= (serves == len(kept)) & ~is_cut  # rows of a cut that is being published right now
    if stays.all():
        return rows
    # Once rows between two others are gone, the later one may no longer begin anything anew: look again.
    return kept_rows(rows.filter(pa.array(stays)), now, keep, thin_seconds)


@dataclass(frozen=True, slots=True)
class Needed:
    """The needs of kept cuts for a table. versions: of silver, ascending. gone: every kept cut has
    the table dropped.

    newest: the table's last row, as a row of the newest cut; None before the first cut.
    """

    versions: list[int]
    gone: bool
    newest: dict[str, Any] | None


def needed(rows: pa.Table) -> dict[str, Needed]:
    """Per table, what the kept rows need. A table without silver isn't here."""
    rows = rows.sort_by(_ORDER)
    is_cut = pc.equal(rows["table"], "")
    newest_cut = pc.max(rows["cut_ts"].filter(is_cut)).as_py()
    of_tables = rows.filter(pc.and_(pc.invert(is_cut), pc.greater_equal(rows["delta_version"], 0)))
    of_tables = of_tables.append_column("at", pa.array(np.arange(of_tables.num_rows)))
    of_tables = of_tables.append_column("gone", pc.equal(of_tables["state"], State.DROPPED.value))
    grouped = of_tables.group_by("table", use_threads=False).aggregate(
        [("delta_version", "distinct"), ("gone", "all"), ("at", "max")]
    )
    last = of_tables.drop_columns(["at", "gone"]).take(grouped["at_max"]).to_pylist()
    return {
        row["table"]: Needed(
            sorted(versions), gone, None if newest_cut is None else {**row, "cut_ts": max(newest_cut, row["cut_ts"])}
        )
        for row, versions, gone in zip(
            last, grouped["delta_version_distinct"].to_pylist(), grouped["gone_all"].to_pylist(), strict=True
        )
    }


def _chosen(
    published: npt.NDArray[np.int64], now: datetime, keep: timedelta, thin_seconds: int
) -> npt.NDArray[np.int64]:
    """Positions of the kept cuts. published: Unix microseconds, in order of cut_ts."""
    at = int(now.timestamp() * 1e6)
    bucket = published // (thin_seconds * 1_000_000)
    last_of_bucket = np.append(bucket[1:] != bucket[:-1], True)
    young = published >= at - keep // timedelta(microseconds=1)
    dense = published >= at - _DENSE // timedelta(microseconds=1)
    stays = young & (dense | last_of_bucket)
    stays[-1] = True
    return np.flatnonzero(stays)


def _begins_anew(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Rows directly after silver was put back or made anew. rows: in order."""
    table = _codes(rows["table"])
    order = np.argsort(table, kind="stable")
    follows = np.append(False, table[order][1:] == table[order][:-1])
    version = _numpy(rows["delta_version"]).astype(np.int64)[order]
    silver_id = _codes(rows["silver_id"])[order]
    # A row of an older release has no id: the row before it counts.
    at = np.where((silver_id >= 0) | ~follows, np.arange(len(order)), 0)
    silver_id = silver_id[np.maximum.accumulate(at)]
    before = np.append(-1, silver_id[:-1])
    anew = np.append(False, version[1:] < version[:-1]) | ((before >= 0) & (silver_id != before))
    begins = np.zeros(len(order), np.bool_)
    begins[order] = follows & anew
    return begins


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each value, -1 for NULL."""
    codes = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    numbers: npt.NDArray[np.int64] = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _numpy(column: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    array: npt.NDArray[np.generic] = column.combine_chunks().to_numpy(zero_copy_only=False)
    return array
