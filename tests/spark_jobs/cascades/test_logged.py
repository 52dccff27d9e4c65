"""What of logged changes a play of foreign keys takes in, and what it is done with."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_jobs.cascades import logged
from spark_jobs.cascades.logged import LoggedChanges, Looked, Store
from spark_jobs.window import named_segments
from tidegate import tables
from tidegate.binlog.rows.row_images import TableImages
from tidegate.cascades.values import Doubt
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images
from tidegate.errors import StreamCorrupt

P, C = ("d", "p"), ("d", "c")


@dataclass(frozen=True)
class _Ref:
    seq: int
    tables: tuple[str, ...]
    source: str = "s"
    whole: bool = True
    file: str = "b.000001"

    def upto(self, cut_ts: int) -> int:
        return cut_ts


class _Version:
    version = 1
    columns: tuple[Any, ...] = ()


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
    return LoggedChanges(nothing, nothing, (), "s")


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


def test_a_damaged_segment_is_in_doubt_for_the_tables_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two segments: what hangs on the sound one's tables goes on."""
    refs = [_Ref(1, ("d.o",)), _Ref(2, ("d.p", "d.c"))]
    app: Any = SimpleNamespace(
        names=SimpleNamespace(kept=lambda _source, named: [tuple(name.split(".")) for name in named]),
        histories={"s": SimpleNamespace(versions=lambda *_: [])},
        lake=None,
    )
    window: Any = SimpleNamespace(refs=refs, cut_ts=9)
    broken = StreamCorrupt("its bytes aren't what was captured", where="s", remedy="report it")
    monkeypatch.setattr(
        named_segments, "segments_or_damage", lambda _lake, wanted: [(ref, broken) for ref in wanted if ref.seq == 2]
    )
    monkeypatch.setattr(LoggedChanges, "_of_segment", lambda *_: [])
    reader, looked = LoggedChanges(app, window, (), "s"), Looked(0, ("id",))
    for names, about in (([P, C, ("d", "o")], C), ([P, ("d", "o")], P)):
        with pytest.raises(Doubt, match="is damaged") as raised:
            list(reader.read(dict.fromkeys(names, looked), Store(), inserts=False))
        assert raised.value.table == about
    assert list(reader.read({("d", "o"): looked}, Store(), inserts=False)) == []
    nothing: Any = None
    with pytest.raises(Doubt, match="is damaged") as raised:
        reader.check_readable({("d", "o"): 0, P: 0}, nothing)
    assert raised.value.table == P


def test_an_image_without_the_column_is_judged_by_itself() -> None:
    found = _images(P, [IMAGE_BEFORE, IMAGE_AFTER], id=[1, 2])
    missing = np.array([[True, False]])
    found = TableImages(
        found.name, found.version, found.plan, Images(found.images.rows, missing, 0), found.positions, found.ordinals,
        {}, found.flags,
    )  # fmt: skip
    assert list(_reader()._of_images(found, 1, Looked(0, ("id",)), Store())) == []
