"""Indexes of files' keys: they answer what looking through the file answers, and stay within their memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.key_indexes import of_small_files
from tests.unit.upsert.test_known_groups import made
from tests.unit.upsert.test_probe_file import TABLE, keys, stored
from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.limits import KEY_INDEX_READ_ROWS_MIN
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.keys import key_indexes
from tidegate.upsert.keys.bounds import KnownGroups
from tidegate.upsert.keys.file_index import bytes_of, index_of, indexed
from tidegate.upsert.keys.hash import SEED, compares_exactly, key_hashes
from tidegate.upsert.keys.key_indexes import KeyIndexes
from tidegate.upsert.keys.probe_file import Earlier, probe_file
from tidegate.upsert.keys.probe_table import KeyTable


class Clock:
    """Seconds that pass when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    of_small_files(monkeypatch, KEY_INDEX_READ_ROWS_MIN)


def file_of(lake: LakeFiles, name: str, rows: pa.Table) -> LiveFile:
    path = Path(lake.root, TABLE, name)
    pq.write_table(rows, path)
    about = {"path": name, "size": path.stat().st_size, "partitionValues": {}}
    return LiveFile(about | {"stats": json.dumps({"numRecords": rows.num_rows})})


def look_through(indexes: KeyIndexes, files: Sequence[LiveFile], table: KeyTable, times: int) -> None:
    """As so many windows do that read all of each file; each waits for what is made of it."""
    for _ in range(times):
        for file in files:
            assert file.rows is not None
            indexes.looked_through(TABLE, file, table, file.rows)
            indexes.wait()


KINDS = st.sampled_from(["int64", "int32", "date32", "string", "decimal", "int64 string"])


def columns(kind: str, values: list[int | None]) -> list[pa.Array]:
    texts = pa.array([None if value is None else f"key {value}" for value in values], pa.string())
    if kind == "string":
        return [texts]
    if kind == "decimal":
        return [pa.array(values, pa.int64()).cast(pa.decimal128(20, 0))]
    if kind == "date32":
        return [pa.array(values, pa.int32()).cast(pa.date32())]
    first = pa.array(values, pa.int32() if kind == "int32" else pa.int64())
    return [first, texts] if kind == "int64 string" else [first]


@settings(max_examples=150, deadline=None)
@given(
    kind=KINDS,
    stored_keys=st.lists(st.one_of(st.none(), st.integers(-40, 300)), max_size=400),
    wanted=st.lists(st.integers(-60, 320), max_size=40, unique=True),
)
def test_an_index_finds_the_rows_that_have_a_key(kind: str, stored_keys: list[int | None], wanted: list[int]) -> None:
    schema = pa.schema([(f"k{i}", array.type) for i, array in enumerate(columns(kind, []))])
    index = indexed(key_hashes(columns(kind, stored_keys)), exact=compares_exactly(schema))
    expected = [at for at, value in enumerate(stored_keys) if value in set(wanted)]
    assert index.find(key_hashes(columns(kind, [*wanted]))).tolist() == expected
    assert index.rows == len(stored_keys)
    assert index.nbytes <= bytes_of(len(stored_keys), schema)


def test_a_key_that_many_rows_have_gives_all_of_them() -> None:
    index = indexed(key_hashes([pa.array([7] * 1000 + [8])]), exact=True)
    assert index.find(key_hashes([pa.array([7])])).tolist() == list(range(1000))


def test_keys_of_one_number_are_compared_exactly() -> None:
    whole = [pa.int8(), pa.int64(), pa.date32(), pa.timestamp("us"), pa.uint32()]
    assert all(compares_exactly(pa.schema([("k", kind)])) for kind in whole)
    others = [pa.string(), pa.float64(), pa.bool_(), pa.decimal128(38, 0), pa.binary(16)]
    assert not any(compares_exactly(pa.schema([("k", kind)])) for kind in others)
    assert not compares_exactly(pa.schema([("k", pa.int64()), ("l", pa.int64())]))


@settings(max_examples=40, deadline=None)
@given(
    ids=st.lists(st.integers(-50, 400), min_size=1, max_size=300),
    group=st.integers(1, 60),
    windows=st.lists(st.lists(st.integers(-60, 410), min_size=1, max_size=8), min_size=4, max_size=16),
    dead=st.sets(st.integers(0, 299), max_size=30),
)
def test_windows_find_the_same_rows_with_indexes(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int], group: int, windows: list[list[int]], dead: set[int]
) -> None:
    lake = made(tmp_path_factory.mktemp("lake"))
    file = stored(lake, pa.table({"id": pa.array(ids, pa.int64())}), row_group_size=group)
    gone = np.array(sorted(row for row in dead if row < len(ids)), np.int64)
    if len(gone):
        with VectorWriter(lake, TABLE) as vectors:
            file = LiveFile({**file.action, "deletionVector": vectors.add(gone).as_action()})
    with pytest.MonkeyPatch.context() as patched:
        of_small_files(patched)
        earlier = Earlier(KnownGroups(1 << 20), KeyIndexes(lake, SEED, 1 << 20))
        for wanted in windows:
            table = keys(id=pa.array(sorted(set(wanted))))
            expected = np.setdiff1d(np.flatnonzero(np.isin(ids, wanted)), gone).tolist()
            assert probe_file(lake, TABLE, file, table, earlier).fresh.tolist() == expected
            earlier.indexes.wait()


@pytest.mark.usefixtures("small")
def test_a_file_is_not_read_again_once_it_has_an_index(tmp_path: Path) -> None:
    lake = made(tmp_path)
    earlier = Earlier(KnownGroups(1 << 20), KeyIndexes(lake, SEED, 1 << 20))
    file, table = stored(lake, pa.table({"id": pa.array(range(500))})), keys(id=pa.array([3, 450]))
    for _ in range(60):
        probe_file(lake, TABLE, file, table, earlier)
        earlier.indexes.wait()
    assert len(earlier.indexes) == 1
    Path(lake.root, TABLE, file.local_path).unlink()
    assert probe_file(lake, TABLE, file, table, earlier).fresh.tolist() == [3, 450]


@pytest.mark.usefixtures("small")
def test_an_index_is_of_one_file_one_key_and_one_seed(tmp_path: Path) -> None:
    lake = made(tmp_path)
    indexes = KeyIndexes(lake, SEED, 1 << 20)
    rows = pa.table({"id": pa.array([1, 2, 3]), "code": pa.array(["a", "b", "c"])})
    file, other = file_of(lake, "one.parquet", rows), file_of(lake, "two.parquet", rows.slice(1))
    by_id, by_code = keys(id=pa.array([2])), keys(code=pa.array(["b"]))
    look_through(indexes, [file], by_id, 9)
    assert indexes.of(TABLE, file, by_id, 3) is not None
    assert indexes.of(TABLE, other, by_id, 3) is None
    assert indexes.of("silver/other", file, by_id, 3) is None
    assert indexes.of(TABLE, file, by_code, 3) is None
    strange = KeyIndexes(lake, (1, 2), 1 << 20)
    look_through(strange, [file], by_id, 9)
    assert strange.of(TABLE, file, by_id, 3) is None


def test_many_keys_and_small_files_are_looked_through(tmp_path: Path) -> None:
    lake = made(tmp_path)
    indexes = KeyIndexes(lake, SEED, 1 << 30)
    file = file_of(lake, "large.parquet", pa.table({"id": pa.array(range(70_000))}))
    few, many = keys(id=pa.array([2])), keys(id=pa.array(range(0, 70_000, 2)))
    look_through(indexes, [file], many, 20)
    assert not len(indexes), "an index is not what they wait for"
    look_through(indexes, [file], few, 20)
    assert indexes.of(TABLE, file, few, 70_000) is not None
    assert indexes.of(TABLE, file, many, 70_000) is None
    little = file_of(lake, "small.parquet", pa.table({"id": pa.array(range(6000))}))
    look_through(indexes, [little], few, 20)
    assert indexes.of(TABLE, little, few, 6000) is None


@pytest.mark.usefixtures("small")
def test_memory_is_bounded_and_what_is_in_use_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_indexes, "KEY_INDEX_READ_ROWS_MIN", 1)
    lake, clock, table = made(tmp_path), Clock(), keys(id=pa.array([2]))
    rows = pa.table({"id": pa.array(range(1000))})
    files = [file_of(lake, f"{number}.parquet", rows) for number in range(3)]
    one = bytes_of(1000, table.key_schema)
    indexes = KeyIndexes(lake, SEED, 2 * one + 16 * 1000, clock)
    look_through(indexes, files, table, 3)
    assert [indexes.of(TABLE, file, table, 1000) is not None for file in files] == [True, True, False]
    clock.now += 100
    assert indexes.of(TABLE, files[0], table, 1000) is not None, "and in use again"
    look_through(indexes, files[2:], table, 1)
    assert [indexes.of(TABLE, file, table, 1000) is not None for file in files] == [True, False, True]
    assert not len(KeyIndexes(lake, SEED, 0)), "none"


@pytest.mark.usefixtures("small")
def test_what_can_not_fit_drops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_indexes, "KEY_INDEX_READ_ROWS_MIN", 1)
    lake, clock, table = made(tmp_path), Clock(), keys(id=pa.array([2]))
    indexes = KeyIndexes(lake, SEED, 2 * bytes_of(1000, table.key_schema) + 16 * 1000, clock)
    idle, used, large = (
        file_of(lake, f"{rows}.parquet", pa.table({"id": pa.array(range(rows))})) for rows in (999, 1000, 2000)
    )
    look_through(indexes, [idle, used], table, 1)
    clock.now += 100
    assert indexes.of(TABLE, used, table, 1000) is not None
    look_through(indexes, [large], table, 9)
    assert indexes.of(TABLE, idle, table, 1000) is not None
    assert len(indexes) == 2


@pytest.mark.usefixtures("small")
def test_an_index_answers_where_the_files_groups_are_not_known(tmp_path: Path) -> None:
    """Spark's workers looked through the file, or bounds of too many groups were kept since."""
    lake = made(tmp_path)
    file, table = file_of(lake, "one.parquet", pa.table({"id": pa.array(range(500))})), keys(id=pa.array([3, 450]))
    indexes = KeyIndexes(lake, SEED, 1 << 20)
    look_through(indexes, [file], table, 9)
    Path(lake.root, TABLE, "one.parquet").unlink()
    assert probe_file(lake, TABLE, file, table, Earlier(KnownGroups(1 << 20), indexes)).fresh.tolist() == [3, 450]


@pytest.mark.usefixtures("small")
def test_a_name_that_another_file_gets_has_no_index(tmp_path: Path) -> None:
    """A writer with fixed names, after VACUUM. Both files have the same size."""
    lake, table = made(tmp_path), keys(id=pa.array([7]))
    earlier = Earlier(KnownGroups(1 << 20), KeyIndexes(lake, SEED, 1 << 20))
    sizes = set()
    for written_at in range(3):
        ids = np.random.default_rng(written_at).permutation(100)
        file = file_of(lake, "part-0.parquet", pa.table({"id": ids}))
        file = LiveFile({**file.action, "modificationTime": 1_000 + written_at})
        sizes.add(file.size)
        for _ in range(20):
            assert probe_file(lake, TABLE, file, table, earlier).fresh.tolist() == np.flatnonzero(ids == 7).tolist()
            earlier.indexes.wait()
        assert len(earlier.indexes) == written_at + 1
    assert len(sizes) == 1


@pytest.mark.usefixtures("small")
def test_a_file_that_can_not_be_read_has_no_index_and_takes_no_memory(tmp_path: Path) -> None:
    lake, table = made(tmp_path), keys(id=pa.array([2]))
    rows = pa.table({"id": pa.array(range(1000))})
    lost, good = file_of(lake, "lost.parquet", rows), file_of(lake, "good.parquet", rows)
    Path(lake.root, TABLE, "lost.parquet").unlink()
    indexes = KeyIndexes(lake, SEED, bytes_of(1000, table.key_schema) + 16 * 1000)
    look_through(indexes, [lost], table, 20)
    assert indexes.of(TABLE, lost, table, 1000) is None
    look_through(indexes, [good], table, 20)
    assert indexes.of(TABLE, good, table, 1000) is not None


@pytest.mark.usefixtures("small")
def test_one_index_is_made_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_indexes, "KEY_INDEX_READ_ROWS_MIN", 1)
    lake, table = made(tmp_path), keys(id=pa.array([2]))
    rows = pa.table({"id": pa.array(range(1000))})
    files = [file_of(lake, f"{number}.parquet", rows) for number in range(2)]
    may_go, names = threading.Event(), []

    def slow(*arguments: Any) -> Any:
        names.append(arguments[2].local_path)
        assert may_go.wait(30)
        return index_of(*arguments)

    monkeypatch.setattr(key_indexes, "index_of", slow)
    indexes = KeyIndexes(lake, SEED, 1 << 20)
    for file in (*files, *files):
        indexes.looked_through(TABLE, file, table, 1000)
    may_go.set()
    indexes.wait()
    assert names == ["0.parquet"]
    look_through(indexes, files, table, 1)
    assert len(indexes) == 2
