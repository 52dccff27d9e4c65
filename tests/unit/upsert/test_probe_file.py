"""Probing silver's files: exactly the live rows of changed keys, in files of any writer, or a clear error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import LakeRefused, SchemaMismatch
from tidegate.lake.files import LakeFiles
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.keys import key_columns
from tidegate.upsert.keys.file import KeyFile
from tidegate.upsert.keys.hash import SEED, key_hashes, leads
from tidegate.upsert.keys.probe_file import Hits, probe_file
from tidegate.upsert.keys.probe_table import KeyTable
from tidegate.upsert.keys.resolve import resolve

TABLE = "silver/t"


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    (tmp_path / TABLE).mkdir(parents=True)
    return LakeFiles(str(tmp_path))


def keys(**columns: pa.Array) -> KeyTable:
    arrays = list(columns.values())
    none = np.zeros(len(arrays[0]), np.int64)
    key_file = KeyFile(
        source="s",
        key_schema=pa.schema([(name, array.type) for name, array in columns.items()]),
        seed=SEED,
        hashes=key_hashes(arrays),
        commit_ts=none,
        seq=none,
        ordinal=none,
        file=none.astype(np.int32),
        row=none,
        leads=np.array([leads(array) for array in arrays]),
        adds=({"path": "new"},),
    )
    return resolve([key_file]).table


def stored(lake: LakeFiles, rows: pa.Table, **options: Any) -> LiveFile:
    path = Path(lake.root, TABLE, "a b.parquet")
    pq.write_table(rows, path, **{"store_schema": False, "row_group_size": 100, **options})
    stats = json.dumps({"numRecords": rows.num_rows})
    return LiveFile({"path": "a%20b.parquet", "size": path.stat().st_size, "partitionValues": {}, "stats": stats})


def probed(lake: LakeFiles, file: LiveFile, table: KeyTable) -> list[int]:
    fresh: list[int] = probe_file(lake, TABLE, file, table).fresh.tolist()
    return fresh


def test_rows_of_changed_keys_are_found_in_every_row_group(lake: LakeFiles) -> None:
    numbers = np.random.default_rng(1).permutation(1000)
    file = stored(lake, pa.table({"x": ["y"] * 1000, "id": numbers}))
    wanted = [0, 17, 500, 999, 5000]
    expected = sorted(np.flatnonzero(np.isin(numbers, wanted)).tolist())
    assert probed(lake, file, keys(id=pa.array(wanted))) == expected
    assert len(expected) == 4


def test_a_row_group_of_any_size_is_read_in_pieces(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_columns, "_BATCH_ROWS", 64)
    file = stored(lake, pa.table({"id": range(1000)}), row_group_size=300)
    assert probed(lake, file, keys(id=pa.array([63, 64, 299, 300, 364, 999]))) == [63, 64, 299, 300, 364, 999]


def test_row_groups_beside_all_keys_are_not_read(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    group_of = key_columns.KeyColumns._group

    def noted(self: Any, group: int, rows: int, at: int) -> Iterator[tuple[int, list[pa.Array]]]:
        read.append(group)
        return group_of(self, group, rows, at)

    monkeypatch.setattr(key_columns.KeyColumns, "_group", noted)
    file = stored(lake, pa.table({"id": range(1000), "x": [None] * 1000}))
    assert probed(lake, file, keys(id=pa.array([250, 999]))) == [250, 999]
    assert read == [2, 9]


UTC_US = pa.timestamp("us", tz="UTC")
UNSIGNED = pa.decimal128(20, 0)
PACKED = {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED"}}
PREFIXED = {"use_dictionary": False, "column_encoding": {"id": "DELTA_BYTE_ARRAY"}}
INT96 = {"use_deprecated_int96_timestamps": True}
AS_INTEGER = {"store_decimal_as_integer": True}
AMOUNTS = [Decimal(n) for n in (1, 2**63, 2**64 - 1, 0)]
FORMS: dict[str, tuple[pa.Array, pa.DataType, dict[str, Any]]] = {
    "narrower integers": (pa.array([4, 1, 7, 9], pa.int16()), pa.int64(), {}),
    "dictionary": (pa.array([4, 1, 7, 9]), pa.int64(), {"use_dictionary": True}),
    "packed integers": (pa.array([4, 1, 7, 9]), pa.int64(), PACKED),
    "text": (pa.array(["d", "a", "ü" * 50, ""]), pa.string(), {}),
    "text without a mark": (pa.array([b"d", b"a", b"\xc3\xbc", b""]), pa.string(), {}),
    "text in prefixes": (pa.array(["da", "db", "ü" * 50, ""]), pa.string(), PREFIXED),
    "text in views": (pa.array(["d", "a", "ü" * 50, ""], pa.string_view()), pa.string(), {}),
    "bytes in views": (pa.array([b"\0", b"\xff", b"", b"abc"], pa.binary_view()), pa.binary(), {}),
    "bytes": (pa.array([b"\0", b"\xff", b"", b"abc"]), pa.binary(), {}),
    "unsigned": (pa.array(AMOUNTS, UNSIGNED), UNSIGNED, {}),
    "decimal as integer": (pa.array(AMOUNTS[:1] + AMOUNTS[3:], pa.decimal128(9, 0)), pa.decimal128(9, 0), AS_INTEGER),
    "dates": (pa.array([5, -9000, 20000, 0], pa.date32()), pa.date32(), {}),
    "timestamps": (pa.array([5, -(1 << 50), 1 << 55, 0], UTC_US), UTC_US, {}),
    "int96": (pa.array([5, -(1 << 50), 1 << 50, 0], pa.timestamp("us")), UTC_US, INT96),
    "floats": (pa.array([0.5, -0.0, 1e30, -7.25], pa.float32()), pa.float32(), {}),
    "booleans": (pa.array([True, False]), pa.bool_(), {}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
def test_each_key_is_found_alone_in_every_form_of_its_type(lake: LakeFiles, form: str, page_version: str) -> None:
    column, declared, options = FORMS[form]
    file = stored(lake, pa.table({"id": column}), data_page_version=page_version, row_group_size=2, **options)
    silver = column.cast(declared)
    for position in range(len(silver)):
        assert probed(lake, file, keys(id=silver[position : position + 1])) == [position]


def test_negative_zero_in_a_file_is_zero(lake: LakeFiles) -> None:
    file = stored(lake, pa.table({"id": pa.array([-0.0, 1.0])}))
    assert probed(lake, file, keys(id=pa.array([0.0]))) == [0]


def test_all_columns_of_a_key_must_agree_and_null_never_does(lake: LakeFiles) -> None:
    file = stored(lake, pa.table({"b": ["x", "y", None, "x"], "a": [1, 1, 1, 2]}))
    assert probed(lake, file, keys(a=pa.array([1, 2]), b=pa.array(["x", "z"]))) == [0]


def test_a_column_named_as_a_path_is_not_a_nested_one(lake: LakeFiles) -> None:
    rows = pa.table({"id": [{"part": 1}], "id.part": [2]})
    assert probed(lake, stored(lake, rows), keys(**{"id.part": pa.array([2])})) == [0]
    with pytest.raises(SchemaMismatch, match="no key column id"):
        probed(lake, stored(lake, rows.select(["id"])), keys(**{"id.part": pa.array([1])}))
    with pytest.raises(SchemaMismatch, match="no key column id"):
        probed(lake, stored(lake, rows.select(["id"])), keys(id=pa.array([1])))


def test_part_of_the_key_may_lie_in_the_path(lake: LakeFiles) -> None:
    file = stored(lake, pa.table({"id": [1, 2, 3]}))
    east = LiveFile({**file.action, "partitionValues": {"region": "east"}})
    table = keys(region=pa.array(["east", "west"]), id=pa.array([2, 3]))
    assert probed(lake, east, table) == [1]


def with_vector(lake: LakeFiles, file: LiveFile, positions: list[int]) -> LiveFile:
    with VectorWriter(lake, TABLE) as vectors:
        return LiveFile({**file.action, "deletionVector": vectors.add(np.array(positions)).as_action()})


def test_rows_that_are_dead_already_do_not_die_again(lake: LakeFiles) -> None:
    file = with_vector(lake, stored(lake, pa.table({"id": [7, 7, 8, 9]})), [0, 3])
    hits = probe_file(lake, TABLE, file, keys(id=pa.array([7, 9])))
    assert isinstance(hits, Hits)
    assert (hits.fresh.tolist(), hits.dead.tolist(), hits.rows, hits.live_after) == ([1], [0, 3], 4, 1)


def test_a_vector_that_reaches_beyond_the_file_is_refused(lake: LakeFiles) -> None:
    file = with_vector(lake, stored(lake, pa.table({"id": [7]})), [1])
    with pytest.raises(LakeRefused, match="row 1 of 1"):
        probed(lake, file, keys(id=pa.array([7])))


@pytest.mark.parametrize(
    ("column", "declared"),
    [
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.int32()),
        (pa.array([1], pa.uint32()), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array([Decimal("1.00")]), UNSIGNED),
        (pa.array([1], pa.int32()), pa.date32()),
        (pa.array([1], pa.int64()), pa.timestamp("us")),
        (pa.array([1.5]), UNSIGNED),
        (pa.array([[1]]), pa.int64()),
    ],
)
def test_a_type_that_does_not_fit_is_refused(lake: LakeFiles, column: pa.Array, declared: pa.DataType) -> None:
    file = stored(lake, pa.table({"id": column}))
    with pytest.raises(SchemaMismatch, match="key column"):
        probed(lake, file, keys(id=pa.array([], declared)))


def test_files_that_are_not_what_the_log_says_are_refused(lake: LakeFiles) -> None:
    file = stored(lake, pa.table({"id": [1, 2]}))
    table = keys(id=pa.array([1]))
    with pytest.raises(LakeRefused, match="2 rows, the log says 3"):
        probed(lake, LiveFile({**file.action, "stats": '{"numRecords":3}'}), table)
    with pytest.raises(LakeRefused, match="gone"):
        probed(lake, LiveFile({**file.action, "path": "other.parquet"}), table)
    with pytest.raises(LakeRefused, match="outside"):
        probed(lake, LiveFile({**file.action, "path": "s3://b/other.parquet"}), table)
    Path(lake.root, TABLE, "a b.parquet").write_bytes(b"PAR1")
    with pytest.raises(LakeRefused, match="can't be read"):
        probed(lake, file, table)
