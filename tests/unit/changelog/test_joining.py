"""Rows of many segments written together are those of each segment written alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import tables
from tidegate.changelog import joining
from tidegate.changelog.joining import Joining
from tidegate.changelog.rows import Imaged, as_changes, shown_plans
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus

_ROWS = pa.schema(
    [
        (tables.OP, pa.int8()),
        (tables.COMMIT_TS, pa.int64()),
        (tables.SEQ, pa.int64()),
        (tables.ORDINAL, pa.int64()),
        ("id", pa.int32()),
        ("name", pa.string()),
    ]
)


def _version(number: int) -> TableVersion:
    return TableVersion(
        source="s", database="d", table="t", version=number, commit_ts=number, file="b.1", pos=4, kind="create", ddl="",
        columns=(Column(1, "id", "int(11)", nullable=False), Column(2, "name", "varchar(9)", charset="utf8mb4")),
        key=(1,), charset="utf8mb4", status=VersionStatus.ACTIVE,
    )  # fmt: skip


VERSIONS = [_version(1), _version(2)]
_CHANGE = st.one_of(
    st.tuples(st.just((IMAGE_INSERT,)), st.booleans()),
    st.tuples(st.just((IMAGE_BEFORE, IMAGE_AFTER)), st.booleans()),
    st.tuples(st.just((IMAGE_DELETE,)), st.booleans()),
)
_SEGMENT = st.tuples(st.lists(_CHANGE, min_size=1, max_size=4), st.booleans(), st.sampled_from("tu"))


def _imaged(seq: int, changes: Sequence[tuple[tuple[int, ...], bool]], *, whole: bool, table: str = "t") -> Imaged:
    """A segment's images. whole: all images have all columns. A change with True has a GTID."""
    rows, present, gtids = list[tuple[object, ...]](), list[list[bool]](), dict[int, str]()
    for number, (ops, named) in enumerate(changes):
        stamp = 100 * seq + number
        if named:
            gtids[stamp] = f"0-1-{stamp}"
        for op in ops:
            ordinal = 10 * len(rows)
            rows.append((op, stamp, seq, ordinal, stamp, None if stamp % 3 == 0 else f"é{ordinal}"))
            present.append([True, stamp % 2 == 0])
    columns = [pa.array(list(cells), kind.type) for cells, kind in zip(zip(*rows, strict=True), _ROWS, strict=True)]
    batch = pa.record_batch(columns, schema=_ROWS)
    version = VERSIONS[0]
    ordinals = batch.column(3).to_numpy()
    images = Images(batch, None if whole else np.array(present).T, 0)
    return Imaged(
        ("d", table), "s", version, images, shown_plans(version), ordinals + 4, ordinals, gtids, f"b.{seq // 3}", seq
    )


@given(st.lists(_SEGMENT, min_size=1, max_size=6))
def test_together_as_alone(segments: list[tuple[list[tuple[tuple[int, ...], bool]], bool, str]]) -> None:
    given_ = [_imaged(seq, changes, whole=whole, table=t) for seq, (changes, whole, t) in enumerate(segments, start=1)]
    waiting, lists = Joining(), list[list[Imaged]]()
    for imaged in given_:
        lists += waiting.take(imaged)
    assert lists == []  # so few wait
    lists += waiting.rest()
    assert list(waiting.rest()) == []
    assert len(lists) == len({imaged.name for imaged in given_})
    together = pa.concat_tables([as_changes(parts) for parts in lists])
    alone = pa.concat_tables([as_changes([imaged]) for parts in lists for imaged in parts])
    assert together.to_pylist() == alone.to_pylist()
    assert together.num_rows == sum(len(changes) for changes, _, _ in segments)


def test_another_version_begins_a_list_of_its_own() -> None:
    first = _imaged(1, [((IMAGE_INSERT,), True)], whole=True)
    facts = (first.images, first.shown, first.positions, first.ordinals, first.gtids, first.file, 2)
    second = Imaged(first.name, first.source, VERSIONS[1], *facts)
    waiting = Joining()
    assert list(waiting.take(first)) == []
    assert list(waiting.take(second)) == [[first]]
    assert list(waiting.rest()) == [[second]]


def test_what_lies_beside_narrow_rows_is_counted() -> None:
    """Transactions of one row: their names are most of the memory."""
    tracemalloc.start()
    try:
        imaged = _imaged(1, [((IMAGE_INSERT,), True)] * 5000, whole=True)
        beside, _ = tracemalloc.get_traced_memory()  # Arrow's memory isn't in it
    finally:
        tracemalloc.stop()
    assert imaged.nbytes - imaged.images.rows.nbytes >= beside


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    small = [_imaged(seq, [((IMAGE_INSERT,), True)], whole=True, table=f"t{seq}") for seq in range(1, 6)]
    monkeypatch.setattr(joining, "CHANGELOG_JOINED_BYTES", 10_000)
    waiting = Joining()
    outs = [len(list(waiting.take(imaged))) for imaged in small]
    assert outs == [0, 0, 0, 0, 5]  # each is counted with what lies beside its rows
    monkeypatch.setattr(joining, "CHANGELOG_TABLE_JOINED_BYTES", 1)
    assert list(waiting.take(small[0])) == [[small[0]]]
    assert list(waiting.rest()) == []
