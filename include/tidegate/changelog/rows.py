"""A segment's row changes as rows of changelogs.

In:  Segments, table versions, windows.
Out: per table Imaged values of each segment; of many, one Arrow table of changelog_table.SCHEMA.

Values are JSON as `tidegate decode` prints them, but for a geometry, which keeps its SRID as
silver's do. An object has the columns of the log's image. With binlog_row_image MINIMAL a before
image has the key alone, an after image the set columns; a missing column isn't NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.rows.row_images import TableImages, row_images
from tidegate.changelog.changelog_table import BY_A_FOREIGN_KEY, DELETE, INSERT, SCHEMA, UPDATE
from tidegate.columnar.column_plan import ColumnPlan
from tidegate.columnar.decoded import IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images
from tidegate.errors import UnknownEvent
from tidegate.log_files.as_json.column import ShownJson
from tidegate.log_files.as_json.dates import RawDate
from tidegate.log_files.ndjson import row_changes
from tidegate.log_files.plans import ShownZeroDates, as_shown
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.segments.images import ImageFeed, LoggedImages
from tidegate.segments.result import CommitSpan, Known
from tidegate.segments.segment import Segment
from tidegate.ticdc import images as ticdc
from tidegate.tidb.rows import row_images as tidb

Name = tuple[str, str]
_NO_CELL: Final = -1  # the values are canonical already: nothing is read by a kind of cell
_GTID_BYTES: Final = 200  # of its text, its commit_ts, and their place in a mapping
_FEEDS: Final[Mapping[tables.SegmentKind, ImageFeed]] = {
    tables.SegmentKind.TIDB: tidb.row_images,
    tables.SegmentKind.TICDC: ticdc.row_images,
}
_OPS = {IMAGE_INSERT: INSERT, IMAGE_BEFORE: UPDATE, IMAGE_DELETE: DELETE}


@dataclass(frozen=True, slots=True)
class Imaged:
    """Images of one table in one segment, of whatever kind. gtids: commit_ts -> the transaction's
    name, as far as it has one.
    """

    name: Name
    source: str
    version: TableVersion
    images: Images
    shown: tuple[ShownJson, ...]
    positions: npt.NDArray[np.int64]
    ordinals: npt.NDArray[np.int64]
    gtids: Mapping[int, str]
    file: str = ""
    seq: int = 0

    @property
    def nbytes(self) -> int:
        """Memory of all its values. A narrow row's GTID is several times as large as the row."""
        present = 0 if self.images.present is None else self.images.present.nbytes
        places = self.positions.nbytes + self.ordinals.nbytes
        return int(self.images.rows.nbytes + present + places) + _GTID_BYTES * len(self.gtids)

    def is_like(self, other: Imaged) -> bool:
        """Whether the rows of both are written alike."""
        if (self.name, self.source) != (other.name, other.source) or self.version is not other.version:
            return False
        return self.shown == other.shown and self.images.rows.schema == other.images.rows.schema


def segment_images(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known,
    owner: str = "",
) -> Iterator[Imaged]:
    """owner: the tables' source, where it isn't the segment's own.

    Raises as the kind's row_images does; UnknownEvent for a segment of a kind that has no rows.
    """
    source = owner or segment.source
    if segment.kind is tables.SegmentKind.BINLOG:
        for table_images in row_images(segment, versions, windows, known=known):
            yield _of_binlog(segment, source, table_images)
        return
    feed = _FEEDS.get(segment.kind)
    if feed is None:
        what = f"a changelog can't be made of segments of kind {segment.kind}"
        raise UnknownEvent(what, where=segment.where, remedy="read silver, or leave it out of tables.changelog")
    for other_images in feed(segment, versions, windows, known=known):
        yield _of_other(segment, source, other_images)


def as_changes(parts: Sequence[Imaged]) -> pa.Table:
    """Rows of a changelog, from images that are alike, in the order given."""
    rows, first = _changes(_joined(parts))
    part = np.repeat(np.arange(len(parts)), [len(imaged.ordinals) for imaged in parts])[first]
    gtids = dict[int, str]()
    for imaged in parts:
        gtids |= imaged.gtids
    columns = {
        "file": pa.array([imaged.file for imaged in parts], pa.string()).take(pa.array(part)),
        "gtid": _gtids(gtids, rows["commit_ts"].to_numpy()),
        "seq": pa.array(np.array([imaged.seq for imaged in parts], np.int64)[part]),
        "note": pa.nulls(len(first), pa.string()),
    }
    return pa.table({**rows, **columns}).select(SCHEMA.names).cast(SCHEMA)


def made_changes(
    version: TableVersion, batch: pa.RecordBatch, source: str, places: Sequence[tuple[str, int, str | None]]
) -> pa.Table:
    """Changes that no event tells of. batch: as LoggedImages'; its ordinals are FINER_BITS finer than a segment's.
    places: per image the file, the place in it, and the GTID of the change that brought it about.
    """
    plans = shown_plans(version)
    name, images = (version.database, version.table), Images(batch, None, 0)
    positions = np.array([pos for _, pos, _ in places], np.int64)
    ordinals = batch.column(tables.ORDINAL).to_numpy()
    rows, first = _changes(Imaged(name, source, version, images, plans, positions, ordinals, {}))
    first_places = [places[at] for at in first.tolist()]
    columns = {
        "file": pa.array([file for file, _, _ in first_places], pa.string()),
        "gtid": pa.array([gtid for _, _, gtid in first_places], pa.string()),
        "seq": batch.column(tables.SEQ).take(pa.array(first)),
        "note": pa.repeat(BY_A_FOREIGN_KEY, len(first_places)),
    }
    return pa.table({**rows, **columns}).select(SCHEMA.names).cast(SCHEMA)


def _of_binlog(segment: Segment, source: str, logged: TableImages) -> Imaged:
    shown = as_shown(logged.plan, ShownZeroDates.NULL).shown
    return Imaged(
        name=logged.name,
        source=source,
        version=logged.version,
        images=logged.images,
        shown=shown[: len(shown) - logged.plan.hidden],
        positions=logged.positions,
        ordinals=logged.ordinals,
        gtids=_of_images(logged.gtids, logged.images),
        file=segment.file,
        seq=segment.seq,
    )


def _of_other(segment: Segment, source: str, logged: LoggedImages) -> Imaged:
    images = Images(logged.batch, logged.present, 0)
    return Imaged(
        name=logged.name,
        source=source,
        version=logged.version,
        images=images,
        shown=shown_plans(logged.version),
        positions=logged.positions,
        ordinals=logged.batch.column(tables.ORDINAL).to_numpy(),
        gtids=_of_images(logged.transactions, images),
        file=segment.file,
        seq=segment.seq,
    )


def _of_images(gtids: Mapping[int, str], images: Images) -> dict[int, str]:
    """Those of transactions with an image here."""
    stamps = np.unique(images.rows.column(tables.COMMIT_TS).to_numpy())
    return {stamp: gtids[stamp] for stamp in stamps.tolist() if stamp in gtids}


def _joined(parts: Sequence[Imaged]) -> Imaged:
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_batches([part.images.rows for part in parts])
    present = None
    if any(part.images.present is not None for part in parts):
        present = np.concatenate([_present(part) for part in parts], axis=1)
    return replace(
        parts[0],
        images=Images(rows, present, 0),
        positions=np.concatenate([part.positions for part in parts]),
        ordinals=np.concatenate([part.ordinals for part in parts]),
    )


def _present(part: Imaged) -> npt.NDArray[np.bool_]:
    """As Images.present, with all that is there where that is None."""
    if part.images.present is None:
        return np.ones((len(part.shown), part.images.rows.num_rows), np.bool_)
    return part.images.present[: len(part.shown)]


def shown_plans(version: TableVersion) -> tuple[ShownJson, ...]:
    """How a version's canonical values are written, by its columns."""
    plans = [ColumnPlan(column.name, canonical(column), _NO_CELL, "") for column in version.columns]
    return tuple(ShownJson(plan, RawDate(_NO_CELL, 0, 0)) for plan in plans)


def _changes(imaged: Imaged) -> tuple[dict[str, Any], npt.NDArray[np.int64]]:
    """Columns that hang on the images alone, and the first image of each change."""
    changes = row_changes(imaged.images, imaged.shown, srids_apart=False)
    first = changes.first
    count = len(first)
    ops = pa.array([_OPS.get(code, "") for code in range(int(max(_OPS)) + 1)])
    columns = {
        "op": ops.take(pa.array(changes.op.astype(np.int64))),
        "before": _side(changes.before, changes.op != IMAGE_INSERT),
        "after": _side(changes.after, changes.op != IMAGE_DELETE),
        "commit_ts": imaged.images.rows.column(tables.COMMIT_TS).take(pa.array(first)),
        "source": pa.repeat(imaged.source, count),
        "database": pa.repeat(imaged.name[0], count),
        "table": pa.repeat(imaged.name[1], count),
        "pos": pa.array(imaged.positions[first]),
        "ordinal": pa.array(imaged.ordinals[first]),
        "version": pa.array(np.full(count, imaged.version.version, np.int64)),
    }
    return columns, first


def _side(objects: pa.Array | pa.Scalar, present: np.ndarray) -> pa.Array:
    """A side's objects; null where there is none."""
    if isinstance(objects, pa.Scalar):  # none of them has one
        return pa.nulls(len(present), pa.string())
    return pc.if_else(pa.array(present), objects, pa.scalar(None, objects.type))


def _gtids(gtids: Mapping[int, str], stamps: np.ndarray) -> pa.Array:
    known, at = np.unique(stamps, return_inverse=True)
    names = pa.array([gtids.get(stamp) for stamp in known.tolist()], pa.string())
    return names.take(pa.array(at))
