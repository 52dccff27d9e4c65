"""Silver's own files: rows in key order, partitions and sizes, and what the log says about them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.table_states import table_state
from tidegate import tables
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.lake.files import LakeFiles
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import rewrite
from tidegate.upsert.stage import Target, staged

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "note", "type": "string", "nullable": True, "metadata": {}},
        {"name": "amount", "type": "decimal(20,0)", "nullable": True, "metadata": {}},
        {"name": "tags", "type": {"type": "array", "elementType": "float", "containsNull": True}, "nullable": True,
         "metadata": {}},
        {"name": tables.COMMIT_TS, "type": "long", "nullable": True, "metadata": {}},
    ],
}  # fmt: skip


def snapshot(*partitions: str, **configuration: str) -> TableState:
    named = {name.replace("_", "."): value for name, value in configuration.items()}
    return table_state(SCHEMA["fields"], named, partitions=partitions)


def layout(*partitions: str, key: tuple[str, ...] = ("id",)) -> FileLayout:
    return FileLayout.of(snapshot(*partitions), key)


def changes(ids: list[int], ops: list[int] | None = None, notes: list[str | None] | None = None) -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            tables.OP: pa.array(ops or [tables.OP_UPSERT] * count, pa.int8()),
            tables.COMMIT_TS: pa.array([9] * count, pa.int64()),
            tables.SEQ: pa.array([1] * count, pa.int64()),
            tables.ORDINAL: pa.array(range(count), pa.int64()),
            "id": pa.array(ids, pa.int64()),
            "note": pa.array(notes or [f"n{number}" for number in ids]),
            "amount": pa.array([Decimal(2**64 - 1)] * count, pa.decimal128(20, 0)),
            "tags": pa.array([[1.5, None]] * count, pa.list_(pa.float32())),
        }
    )


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    (tmp_path / "t").mkdir()
    return LakeFiles(str(tmp_path))


def read(lake: LakeFiles, add: dict[str, Any]) -> pa.Table:
    return pq.ParquetFile(Path(lake.root, "t", unquote(add["path"]))).read()


def test_staged_rows_lie_in_key_order_and_the_key_file_knows_where(lake: LakeFiles) -> None:
    ids = [5, 3, 9, 1, 3, 7]
    ops = [1, 1, 3, 1, 1, 3]
    keys = staged(Target(lake, "t", layout()), changes(ids, ops), "s")
    (add,) = keys.adds
    rows = read(lake, dict(add))
    assert rows.column("id").to_pylist() == [1, 3, 3, 5]
    assert keys.row.tolist() == [3, 1, -1, 0, 2, -1]
    assert rows.column_names == [field["name"] for field in SCHEMA["fields"]]
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == 4
    assert stats["minValues"] == {"id": 1, "note": "n1", "amount": 2**64 - 1, tables.COMMIT_TS: 9}
    assert stats["nullCount"]["tags"] == 0
    assert add["size"] == Path(lake.root, "t", add["path"]).stat().st_size


def test_only_deletes_write_no_file(lake: LakeFiles) -> None:
    keys = staged(Target(lake, "t", layout()), changes([1, 2], [3, 3]), "s")
    assert (keys.adds, keys.row.tolist()) == ((), [-1, -1])
    assert not list(Path(lake.root, "t").iterdir())


def test_each_partition_has_files_of_its_own(lake: LakeFiles) -> None:
    notes: list[str | None] = ["b", None, "a/ü=%", "b", "c"]
    keys = staged(Target(lake, "t", layout("note")), changes([5, 4, 3, 2, 1], notes=notes), "s")
    found = {add["partitionValues"]["note"]: read(lake, dict(add)).column("id").to_pylist() for add in keys.adds}
    assert found == {"b": [2, 5], "a/ü=%": [3], None: [4], "c": [1]}
    for change, (file, row) in enumerate(zip(keys.file.tolist(), keys.row.tolist(), strict=True)):
        assert read(lake, dict(keys.adds[file])).column("id")[row].as_py() == 5 - change
    assert all("note" not in read(lake, dict(add)).column_names for add in keys.adds)
    assert "note" not in json.loads(keys.adds[0]["stats"])["nullCount"]


def test_an_empty_text_in_a_key_is_no_partition(lake: LakeFiles) -> None:
    """Delta takes it for NULL, which equals nothing."""
    with pytest.raises(UnsupportedValue, match="partition"):
        staged(Target(lake, "t", layout("note", key=("id", "note"))), changes([1], notes=[""]), "s")


def test_files_and_row_groups_are_bounded(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_file, "FILE_BYTES", 400_000)
    monkeypatch.setattr(data_file, "ROW_GROUP_BYTES", 100_000)
    keys = staged(Target(lake, "t", layout()), changes(list(range(10_000))), "s")
    assert len(keys.adds) > 1
    at = 0
    for number, add in enumerate(keys.adds):
        metadata = pq.ParquetFile(Path(lake.root, "t", add["path"])).metadata
        assert metadata.num_row_groups > 1
        mine = np.flatnonzero(keys.file == number)
        assert (keys.row[mine] == np.arange(len(mine))).all()
        assert mine[0] == at
        at += len(mine)
    assert at == 10_000


def test_files_are_plain_parquet(lake: LakeFiles) -> None:
    keys = staged(Target(lake, "t", layout()), changes([1, 2]), "s")
    parquet = pq.ParquetFile(Path(lake.root, "t", keys.adds[0]["path"]))
    assert not parquet.metadata.metadata
    assert {parquet.schema.column(i).max_definition_level for i in (0, 1, 2)} == {1}
    assert [column.path for column in parquet.schema][3] == "tags.list.element"


def test_rows_that_do_not_fit_silver_are_refused(lake: LakeFiles) -> None:
    target = Target(lake, "t", layout())
    with pytest.raises(SchemaMismatch, match="column more"):
        staged(target, changes([1]).append_column("more", pa.array([1])), "s")
    with pytest.raises(SchemaMismatch, match="differ in column note"):
        staged(target, changes([1]).drop_columns(["note"]), "s")
    wide = changes([1]).set_column(6, "amount", pa.array([Decimal("0.5")]))
    with pytest.raises(SchemaMismatch, match="column amount is decimal"):
        staged(target, wide, "s")
    empty = changes([1]).set_column(4, "id", pa.array([None], pa.int64()))
    with pytest.raises(UnsupportedValue, match="NULL"):
        staged(target, empty, "s")
    with pytest.raises(SchemaMismatch, match="id is NULL but"):
        staged(Target(lake, "t", layout(key=("note",))), empty, "s")


def test_statistics_are_on_deltas_columns_the_key_and_the_system_columns() -> None:
    def indexed(**configuration: str) -> tuple[str, ...]:
        return FileLayout.of(snapshot(**configuration), ("amount",)).indexed

    assert indexed() == ("id", "note", "amount", "tags", tables.COMMIT_TS)
    assert indexed(delta_dataSkippingNumIndexedCols="1") == ("id", "amount", tables.COMMIT_TS)
    assert indexed(delta_dataSkippingNumIndexedCols="-1") == ("id", "note", "amount", "tags", tables.COMMIT_TS)
    assert indexed(delta_dataSkippingStatsColumns="`note`") == ("note", "amount", tables.COMMIT_TS)


def test_a_key_that_silver_does_not_have_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="key column k"):
        layout(key=("k",))


def test_rewriting_leaves_out_the_dead_and_fills_later_columns(lake: LakeFiles) -> None:
    old = pa.table({"id": [4, 2, 3], tables.COMMIT_TS: [1, 1, 1]})
    pq.write_table(old, Path(lake.root, "t", "old.parquet"), row_group_size=2)
    first = LiveFile({"path": "old.parquet", "size": 1, "partitionValues": {}})
    keys = staged(Target(lake, "t", layout()), changes([1, 5]), "s")
    from tidegate.upsert.deletions.deletion_vector import VectorWriter

    with VectorWriter(lake, "t") as vectors:
        descriptor = vectors.add(np.array([2]))
    second = LiveFile({**first.action, "deletionVector": descriptor.as_action()})
    (add,) = rewrite(lake, "t", [second, LiveFile(keys.adds[0])], layout())
    rows = read(lake, add)
    assert rows.column("id").to_pylist() == [1, 2, 4, 5]
    assert rows.column("note").to_pylist() == ["n1", None, None, "n5"]
    assert add["dataChange"] is False


RANGES = [(5000, 3000), (0, 5000), (8000, 2000)]  # of indices: where a run begins, how long it is


@pytest.mark.parametrize(
    "indices",
    [
        np.concatenate([np.arange(first, first + count) for first, count in RANGES]),
        np.concatenate([np.arange(first, first + count) for first, count in [*RANGES, (10_000, 0)]])[1:-1],
        np.random.default_rng(3).permutation(10_000),
        np.arange(0, 10_000, 3),
        np.zeros(0, np.int64),
        np.array([7]),
    ],
    ids=["ranges", "cut ranges", "anywhere", "a third", "none", "one"],
)
def test_rows_are_gathered_as_take_gives_them(indices: Any) -> None:
    parts = [pa.table({"id": range(first, first + 2500), "note": [f"n{i}" for i in range(2500)]})
             for first in range(0, 10_000, 2500)]  # fmt: skip
    rows = pa.concat_tables(parts)
    assert data_file.gathered(rows, indices).equals(rows.take(pa.array(indices)))


def test_ranges_of_one_table_are_gathered_without_a_copy() -> None:
    rows = pa.table({"id": pa.array(np.arange(10_000))})
    found = data_file.gathered(rows, np.concatenate([np.arange(first, first + count) for first, count in RANGES]))
    there = rows.column("id").chunk(0).buffers()[1].address
    assert {chunk.buffers()[1].address for chunk in found.column("id").chunks} == {there}
