"""What of logged changes a play of foreign keys takes in, and what it is done with."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_jobs.cascades import logged
from spark_jobs.cascades.logged import LoggedChanges, Looked, Store
from tidegate import tables
from tidegate.binlog.batch import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images
from tidegate.binlog.row_images import TableImages
from tidegate.cascades.values import Doubt

P, C = ("d", "p"), ("d", "c")


class _Version:
    version = 1


def _images(name: tuple[str, str], ops: list[int], **columns: list[Any] | pa.Array) -> TableImages:
    count = len(ops)
    made = {
        tables.OP: pa.array(ops, pa.int8()),
        tables.COMMIT_TS: pa.array([5] * count, pa.int64()),
        tables.SEQ: pa.array([1] * count, pa.int64()),
        tables.ORDINAL: pa.array(range(count), pa.int64()),
        **{name: of if isinstance(of, pa.Array) else pa.array(of) for name, of in columns.items()},
    }
    rows, places = pa.RecordBatch.from_pydict(made), np.arange(count)
    version: Any = _Version()
    nothing: Any = None
    images = Images(rows, None, 0)
    return TableImages(name, version, nothing, images, places, places, {}, np.zeros(count, np.uint8))


def _reader() -> LoggedChanges:
    nothing: Any = None
    return LoggedChanges(nothing, nothing, "s")


def test_updates_of_a_parent_that_touch_no_key_leave_its_children_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "CASCADE_LOGGED_ROWS_MAX", 3)
    reader, store = _reader(), Store()
    ops = [IMAGE_BEFORE, IMAGE_AFTER] * 3 + [IMAGE_DELETE]
    of_parent = _images(P, ops, id=[1, 1, 2, 2, 3, 4, 9], n=[1, 2, 1, 2, 1, 2, 1])
    acting = list(reader._of_images(of_parent, 1, Looked(0, ("id",)), store))
    assert [(one.before and one.before.cells, one.after and one.after.cells) for one in acting] == [
        ({"id": 3}, {"id": 4}),
        ({"id": 9}, None),
    ]
    assert [one.order[2] for one in acting] == [5, 6], "the place of the after image, where there is one"
    own = Looked(0, ("id",), ("id",))
    assert len(list(reader._of_images(_images(C, [IMAGE_INSERT] * 3, id=[1, 2, 3]), 1, own, store))) == 3
    with pytest.raises(Doubt, match="more rows"):
        list(reader._of_images(_images(C, [IMAGE_INSERT], id=[4]), 1, own, store))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 1, 1, 2, None, 1, None, None], pa.uint64()),
        pa.array([Decimal(v) if v else None for v in (1, 1, 1, 2, 0, 1, 0, 0)], pa.decimal128(20, 0)),
        pa.array(["a", "a", "a", "A", None, "a", None, None]),
        pa.array([b"a", b"a", b"a", b"b", None, b"a", None, None], pa.binary()),
        pa.array([b"a", b"a", b"a", b"b", None, b"a", None, None], pa.binary(1)),
    ],
)
def test_values_of_any_type_that_keys_have_are_told_apart(values: pa.Array) -> None:
    found = _images(P, [IMAGE_BEFORE, IMAGE_AFTER] * 4, id=values)
    acting = list(_reader()._of_images(found, 1, Looked(0, ("id",)), Store()))
    assert [one.order[2] for one in acting] == [3, 5]


def test_an_image_without_the_column_is_judged_by_itself() -> None:
    found = _images(P, [IMAGE_BEFORE, IMAGE_AFTER], id=[1, 2])
    missing = np.array([[True, False]])
    found = TableImages(
        found.name, found.version, found.plan, Images(found.images.rows, missing, 0), found.positions, found.ordinals,
        {}, found.flags,
    )  # fmt: skip
    assert list(_reader()._of_images(found, 1, Looked(0, ("id",)), Store())) == []
