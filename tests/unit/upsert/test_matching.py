"""Live rows with wanted values: those that a filter of all live rows gives, whatever files and vectors there are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hand_table import HandTable
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.matching import Wanted, matching_of, matching_rows

SCHEMA = pa.schema([("id", pa.int64()), ("parent", pa.int32()), ("word", pa.string())])
_NUMBER, _WORD = st.integers(-3, 5), st.sampled_from(["a", "b", "A", ""])
_ROW = st.tuples(
    st.one_of(st.none(), _NUMBER), st.one_of(st.none(), _WORD), st.booleans()
)  # the last: whether it lives
_FILES = st.lists(st.lists(_ROW, min_size=1, max_size=9), max_size=3)


@given(_FILES, st.sets(st.tuples(_NUMBER), max_size=3), st.sets(st.tuples(_NUMBER, _WORD), max_size=4))
def test_as_a_filter_of_live_rows(files: Any, numbers: set[tuple[int]], pairs: set[tuple[int, str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        made, live = _table(Path(root), files)
        state = made.snapshot()
        layout = FileLayout.of(state, ())
        for columns, values in ((("parent",), numbers), (("parent", "word"), pairs)):
            wanted = Wanted(columns, (None,) * len(columns), values)
            rows = [
                row for part in matching_rows(made.lake, made.path, state, layout, wanted) for row in part.to_pylist()
            ]
            expected = [row for row in live if tuple(row[name] for name in columns) in values]
            assert sorted(rows, key=_id) == sorted(expected, key=_id)
            if values:
                at_hand = matching_of(pa.Table.from_pylist(live, SCHEMA), wanted).to_pylist()
                assert at_hand == [row for row in live if tuple(row[name] for name in columns) in values]


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])


def _table(root: Path, files: Any) -> tuple[HandTable, list[dict[str, Any]]]:
    """A table with a commit for each file, and its live rows."""
    made, live, number = HandTable.create(root, SCHEMA), list[dict[str, Any]](), 0
    layout = FileLayout.of(made.snapshot(), ())
    for rows in files:
        cells = [{"id": number + at, "parent": parent, "word": word} for at, (parent, word, _) in enumerate(rows)]
        number += len(cells)
        (add,) = data_file.write(made.lake, made.path, pa.Table.from_pylist(cells, SCHEMA), layout)
        dead = [at for at, (_, _, lives) in enumerate(rows) if not lives]
        if dead:
            with VectorWriter(made.lake, made.path) as vectors:
                add["deletionVector"] = vectors.add(np.array(dead, np.int64)).as_action()
        made.commit([], [add])
        live += [row for row, (_, _, lives) in zip(cells, rows, strict=True) if lives]
    return made, live
