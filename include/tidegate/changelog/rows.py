"""A segment's row changes as rows of changelogs.

In:  a Segment, table versions, windows.
Out: per table Arrow tables of table.SCHEMA, in log order.

Values are JSON as `tidegate decode` prints them. An object has the columns that the log's image has: with
binlog_row_image MINIMAL a before image has the key alone, an after image what was set; a column that is missing isn't
NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.batch import IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT
from tidegate.binlog.row_images import TableImages, row_images
from tidegate.changelog.table import DELETE, INSERT, SCHEMA, UPDATE
from tidegate.errors import UnknownEvent
from tidegate.log_files.ndjson import row_changes
from tidegate.log_files.plans import ShownZeroDates, as_shown
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import CommitSpan, Known
from tidegate.segments.segment import Segment

Name = tuple[str, str]
_OPS = {IMAGE_INSERT: INSERT, IMAGE_BEFORE: UPDATE, IMAGE_DELETE: DELETE}


def segment_changes(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known,
) -> Iterator[tuple[Name, pa.Table]]:
    """Raises as row_images does; UnknownEvent for a segment that isn't a binlog's."""
    if segment.kind is not tables.SegmentKind.BINLOG:
        what = f"a changelog can't be made of segments of kind {segment.kind}"
        raise UnknownEvent(what, where=segment.where, remedy="read silver, or leave it out of tables.changelog")
    for found in row_images(segment, versions, windows, known=known):
        yield found.name, _rows(segment, found)


def _rows(segment: Segment, found: TableImages) -> pa.Table:
    shown = as_shown(found.plan, ShownZeroDates.NULL).shown
    changes = row_changes(found.images, shown[: len(shown) - found.plan.hidden])
    first = changes.first
    count = len(first)
    stamps = found.images.rows.column(tables.COMMIT_TS).to_numpy()[first]
    ops = pa.array([_OPS.get(code, "") for code in range(int(max(_OPS)) + 1)])
    columns = {
        "op": ops.take(pa.array(changes.op.astype(np.int64))),
        "before": _side(changes.before, changes.op != IMAGE_INSERT),
        "after": _side(changes.after, changes.op != IMAGE_DELETE),
        "commit_ts": pa.array(stamps),
        "source": pa.repeat(segment.source, count),
        "database": pa.repeat(found.name[0], count),
        "table": pa.repeat(found.name[1], count),
        "file": pa.repeat(segment.file, count),
        "pos": pa.array(found.positions[first]),
        "gtid": _gtids(found, stamps),
        "seq": pa.array(np.full(count, segment.seq, np.int64)),
        "ordinal": pa.array(found.ordinals[first]),
        "version": pa.array(np.full(count, found.version.version, np.int64)),
        "note": pa.nulls(count, pa.string()),
    }
    return pa.table(columns).cast(SCHEMA)


def _side(objects: pa.Array | pa.Scalar, there: np.ndarray) -> pa.Array:
    """A side's objects; null where there is none."""
    if isinstance(objects, pa.Scalar):  # none of them has one
        return pa.nulls(len(there), pa.string())
    return pc.if_else(pa.array(there), objects, pa.scalar(None, objects.type))


def _gtids(found: TableImages, stamps: np.ndarray) -> pa.Array:
    known, at = np.unique(stamps, return_inverse=True)
    names = pa.array([found.gtids.get(stamp) for stamp in known.tolist()], pa.string())
    return names.take(pa.array(at))
