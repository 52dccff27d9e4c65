"""A replica of one table in a dict, fed with row images as they were logged: what the server's own replicas do.

In:  a binlog file of a real server, a table version.
Out: its images, decoded alike by kernel and reference; and the rows they leave behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.kit.decoding import segment_of_file
from tests.reference.decode import reference_images
from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.kernel import index as K  # noqa: N812
from tidegate.binlog.rows.batch import decode_images
from tidegate.binlog.rows.decode_plan import make_plan
from tidegate.binlog.transaction_scan import ROWS
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, Images
from tidegate.columnar.kernel import layout as L  # noqa: N812
from tidegate.schema.model.columns import TableVersion
from tidegate.tables import OP, ORDINAL

# (IMAGE_*, the columns that the image has)
Image = tuple[int, dict[str, Any]]
_OPS = {
    L.OP_WRITE: (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS_V2),
    L.OP_UPDATE: (EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2),
    L.OP_DELETE: (EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS_V2),
    L.OP_PARTIAL_UPDATE: (EventType.PARTIAL_UPDATE_ROWS,),
}
OP_OF_TYPE = {code: op for op, codes in _OPS.items() for code in codes}


def images_of(path: Path, version: TableVersion) -> list[Image]:
    """A table's images in log order."""
    found: list[tuple[int, Image]] = []
    for index in index_pieces(segment_of_file(path.read_bytes())):
        events = index.events
        for content, name in enumerate(index.names()):
            mine = events[((events[:, K.BITS] & ROWS) != 0) & (events[:, K.CONTENT] == content)]
            if name != (version.database, version.table) or not len(mine):
                continue
            given = np.zeros((len(mine), L.EVENT_WORDS), np.int64)
            given[:, L.EVENT_START], given[:, L.EVENT_END] = mine[:, K.START], mine[:, K.END]
            given[:, L.EVENT_OP] = [OP_OF_TYPE[code] for code in mine[:, K.TYPE].tolist()]
            plan = make_plan(index.bodies[content], version)
            both = [decode(index.data, given, plan, 1) for decode in (decode_images, reference_images)]
            assert_alike(*both)
            found += [(row[ORDINAL] + index.base, image) for row, image in shown(both[0])]
    return [image for _, image in sorted(found, key=lambda at: at[0])]


def assert_alike(one: Images, other: Images) -> None:
    one.rows.validate(full=True)
    assert one.rows.to_pylist() == other.rows.to_pylist()
    assert one.null_dates == other.null_dates
    assert (one.present is None) == (other.present is None)
    assert one.present is None or np.array_equal(one.present, other.present)  # type: ignore[arg-type]


def shown(images: Images) -> Iterator[tuple[dict[str, Any], Image]]:
    names = images.rows.schema.names[4:]
    for at, row in enumerate(images.rows.to_pylist()):
        known = {n: row[n] for i, n in enumerate(names) if images.present is None or images.present[i, at]}
        yield row, (row[OP], known)


def replica(images: list[Image], key: str, new_row: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """The rows that images leave behind, by key. new_row: the defaults of what a written image lacks."""
    rows: dict[Any, dict[str, Any]] = {}
    before: dict[str, Any] = {}
    for op, known in images:
        if op == IMAGE_BEFORE:
            before = rows.pop(known[key])
            assert before.items() >= known.items()  # the log says what the row was
        elif op == IMAGE_DELETE:
            assert rows.pop(known[key]).items() >= known.items()
        else:
            row = (before if op == IMAGE_AFTER else new_row) | known
            rows[row[key]] = row
    return rows
