"""Row images of a changefeed's lines, as they were written.

In:  a segment of kind ticdc, as decode.py takes it.
Out: LoggedImages. An image has the columns of its line. If an UPDATE has no old values, or a DELETE
     only its key, the side before has only the key.

A line that TiCDC wrote again after a restart is left out: all lines of a commit_ts are in one
segment, and within a transaction a key is changed once, or its row is deleted and then inserted.
Deletes stand before them, as in decode.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.segments.images import LoggedImages
from tidegate.segments.result import CommitSpan, Known, Ledger
from tidegate.segments.segment import Segment
from tidegate.ticdc.cells import cells
from tidegate.ticdc.decode import SYSTEM_FIELDS, Name, TableLines, sort_in, version_of
from tidegate.ticdc.logged import LoggedLines, logged_of
from tidegate.ticdc.pieces import Form, form_of, pieces_of
from tidegate.ticdc.rows import WantedColumns

_Numbers = npt.NDArray[np.int64]


def row_images(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    windows: Mapping[Name, CommitSpan],
    *,
    known: Known,
) -> Iterator[LoggedImages]:
    """An ImageFeed (segments/images.py)."""
    del known  # a changefeed's files have no prewrites
    form, by_name = form_of(segment), dict[Name, TableLines]()
    in_force = {
        name: sorted(versions.get(name, ()), key=lambda table_version: table_version.commit_ts) for name in windows
    }
    for placed in pieces_of(segment):
        name = placed.piece.name
        if not placed.piece.schema and name in windows:
            table = by_name.setdefault(name, TableLines(placed.at))
            sort_in(table, placed, form, windows[name], in_force[name], Ledger(0))
    for name, table in sorted(by_name.items()):
        for number, runs in sorted(table.runs.items()):
            version = version_of(in_force[name], number, table)
            places = np.concatenate(table.places[number])
            yield _images(segment, name, version, form, runs, places)


def _images(
    segment: Segment, name: Name, version: TableVersion, form: Form, runs: Sequence[bytes], places: _Numbers
) -> LoggedImages:
    names = [column.name for column in version.columns]
    lines = logged_of(runs, WantedColumns(form, names, version.key_names, whole_deletes=""))
    kept = _first_of_each(lines, [names.index(key_name) for key_name in version.key_names])
    kept = kept[np.lexsort((places[lines.first[kept]], lines.kind[kept] != IMAGE_DELETE, lines.commit_ts[kept]))]
    is_update = lines.kind[kept] == IMAGE_BEFORE
    number = np.repeat(kept, 1 + is_update)  # per image the number of its change
    second = np.concatenate([np.zeros(1, np.bool_), number[1:] == number[:-1]])[: len(number)]
    op = np.where(second, IMAGE_AFTER, lines.kind[number]).astype(np.int8)
    old = op == IMAGE_BEFORE
    take = pa.array(np.where(old, number + len(lines.kind), number))
    arrays, fields = [], list(SYSTEM_FIELDS)
    for column, new, before in zip(version.columns, lines.new, lines.old, strict=True):
        texts = pa.concat_arrays([new, before]).take(take)
        values = cells(texts, column, form, ZeroDates.NULL).values
        arrays.append(values)
        fields.append(pa.field(column.silver, values.type))
    at = places[lines.first[number]]
    # Each image gets its own place; deletes stand before all others of their transaction.
    ordinals = at + np.where(lines.kind[number] == IMAGE_DELETE, 0, len(segment.payload))
    system = [
        pa.array(op),
        pa.array(lines.commit_ts[number]),
        pa.array(np.full(len(number), segment.seq, np.int64)),
        pa.array(ordinals),
    ]
    present = np.where(old, lines.has_old[:, number], lines.has_new[:, number])
    batch = pa.RecordBatch.from_arrays([*system, *arrays], schema=pa.schema(fields))
    return LoggedImages(name, version, batch, None if present.all() else present, segment.start_pos + at, {})


def _first_of_each(lines: LoggedLines, key: Sequence[int]) -> _Numbers:
    """Numbers of the changes, without repeated ones."""
    columns = {"commit_ts": pa.array(lines.commit_ts), "kind": pa.array(lines.kind)}
    for at in key:
        columns |= {f"new_{at}": lines.new[at], f"old_{at}": lines.old[at]}
    numbered = pa.table(columns | {"number": pa.array(np.arange(len(lines.kind)))})
    firsts = numbered.group_by(list(columns), use_threads=False).aggregate([("number", "min")])
    return np.sort(firsts["number_min"].to_numpy())
