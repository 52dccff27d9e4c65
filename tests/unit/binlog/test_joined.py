"""The parts of a segment as one: rows in order, and what any part lacks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.binlog.rows.decode import joined
from tidegate.segments.result import NOTHING_KNOWN, DecodedSegment, Ledger, TableChanges


@pytest.mark.parametrize(
    ("parts", "made"),
    [
        ([([], False), ([], False)], []),
        ([([1], False), ([], True), ([2, 3], False)], [([1, 2, 3], True)]),
    ],
    ids=["without a row", "rows"],
)
def test_parts_of_a_version_become_one(parts: list[tuple[list[int], bool]], made: list[tuple[list[int], bool]]) -> None:
    decoded = []
    for rows, lacks in parts:
        batch = pa.record_batch({"id": pa.array(rows, pa.int64())})
        decoded.append(DecodedSegment((TableChanges("d", "t", 1, batch, lacks),), (), Ledger(0)))
    whole = joined(lambda *_: decoded, {}, NOTHING_KNOWN)
    assert [(change.batch.column(0).to_pylist(), change.lacks) for change in whole.changes] == made
