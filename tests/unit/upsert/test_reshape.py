"""Files written anew with other columns: values, dead rows, order, partitions and statistics, read by all readers."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.readers import READERS
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import columns_added, create_silver, reshaped
from tidegate.merge.column import SilverColumn
from tidegate.merge.past import SOFT_DELETE
from tidegate.merge.silver_sql import SilverShape
from tidegate.upsert.actions import rows_of, with_vector
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import live_rows, rows_at
from tidegate.upsert.files.statistics import Seen, statistics
from tidegate.upsert.reshape import Reshape, Reshaping, value_of
from tidegate.upsert.row_hash import row_hashes

PATH = "silver/d/t"
STAMP = tables.COMMIT_TS
UTC = dt.UTC
VALUES: list[tuple[str, pa.DataType, Any]] = [
    ("tinyint", pa.int8(), -7),
    ("bigint", pa.int64(), 2**62),
    ("decimal(20,0)", pa.decimal128(20, 0), Decimal(2**64 - 1)),
    ("decimal(12,3)", pa.decimal128(12, 3), Decimal("-1.250")),
    ("float", pa.float32(), 1.5),
    ("double", pa.float64(), 0.1),
    ("boolean", pa.bool_(), True),
    ("binary", pa.binary(), b"\x00\xff"),
    ("string", pa.string(), "漢" * 40),
    ("date", pa.date32(), dt.date(1000, 1, 1)),
    ("timestamp", pa.timestamp("us", "UTC"), dt.datetime(2024, 2, 3, 4, 5, 6, 789001, UTC)),
    ("timestamp_ntz", pa.timestamp("us"), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001
]


class Made:
    """A silver table, its files made by hand; what reshape() makes of them is committed."""

    def __init__(self, folder: Path, shape: SilverShape, partitions: Sequence[str] = ()) -> None:
        self.lake = LakeFiles(str(folder))
        self.shape = shape
        state = create_silver(self.lake.log(PATH), shape)
        if partitions:
            facts = {"metaData": {**state.metadata, "partitionColumns": list(partitions)}}
            self.lake.log(PATH).commit(state, Change([facts], "PARTITION"))

    def state(self) -> TableState:
        return self.lake.log(PATH).state()

    def write(self, rows: Mapping[str, Sequence[Any]], dead: Sequence[int] = ()) -> None:
        """One or more files of rows in the order given; the first one loses some."""
        state = self.state()
        layout = FileLayout.of(state, self.shape.key or (tables.ROW_HASH,))
        columns = {field.name: pa.array(rows[field.name], field.type) for field in layout.schema}
        adds = data_file.write(self.lake, PATH, layout.fit(pa.table(columns)), layout)
        if dead:
            with VectorWriter(self.lake, PATH) as vectors:
                adds[0] = with_vector(adds[0], vectors.add(np.array(dead)), rows_of(adds[0]))
        self.lake.log(PATH).commit(state, Change(moved([], adds, data_change=True), "WRITE"))

    def reshape(self, reshape: Reshape) -> list[LiveFile]:
        """As apply does it; the new files in the order of the old ones."""
        state = self.state()
        turn = Reshaping(reshape, state)
        assert turn.why_not() is None
        files = turn.files
        adds = [add for file in files if (add := turn.written(self.lake, PATH, file)) is not None]
        actions = [*turn.facts, *moved(files, adds, data_change=True)]
        self.lake.log(PATH).commit(state, Change(actions, "REPLACE COLUMNS"))
        return [LiveFile(add) for add in adds]

    def parquet(self, file: LiveFile) -> pq.ParquetFile:
        return pq.ParquetFile(self.lake.uri(f"{PATH}/{unquote(file.path)}"))

    def read(self) -> list[dict[str, Any]]:
        """The same by every reader."""
        found = {name: read(self.lake.uri(PATH)).to_pylist() for name, read in READERS.items()}
        first = sorted(found.pop("DuckDB"), key=repr)
        for name, rows in found.items():
            assert sorted(({k: row[k] for k in first[0]} for row in rows), key=repr) == first, name
        return first


def shape(*columns: tuple[str, str], key: tuple[str, ...] = ("id",), routed: bool = False) -> SilverShape:
    return SilverShape(tuple(SilverColumn(*one) for one in columns), key, routed=routed)


def filled(made: Made, values: Mapping[str, tuple[str, Any]], **more: Any) -> Reshape:
    """Columns at the end: name -> (type, value)."""
    columns = [SilverColumn(name, kind) for name, (kind, _) in values.items()]
    added = {name: value for name, (_, value) in values.items()}
    return Reshape(lambda read: columns_added(read, columns), made.shape.key, added=added, **more)


def test_every_kind_of_value_is_given_to_live_rows_and_read_by_every_reader(tmp_path: Path) -> None:
    made = Made(tmp_path, shape(("id", "bigint"), ("note", "string")))
    made.write({"id": [1, 2, 3], "note": ["a", None, "c"], STAMP: [5, 5, 6]}, dead=[1])
    made.write({"id": [7, 8], "note": [None, None], STAMP: [7, 7]})
    given = {f"c{at}": (sql, value_of(value, kind)) for at, (sql, kind, value) in enumerate(VALUES)}
    given |= {f"n{at}": (sql, None) for at, (sql, _, _) in enumerate(VALUES)}
    first, _ = made.reshape(filled(made, given))
    rows = made.read()
    assert [(row["id"], row["note"], row[STAMP]) for row in rows] == [
        (1, "a", 5), (3, "c", 6), (7, None, 7), (8, None, 7),
    ]  # fmt: skip
    for at, (_, _, value) in enumerate(VALUES):
        assert {row[f"c{at}"] for row in rows} == {value}
        assert {row[f"n{at}"] for row in rows} == {None}
    assert first.deletion_vector is None
    assert [made.parquet(first).schema_arrow.field(f"c{at}").type for at in range(len(VALUES))] == [
        pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind for _, kind, _ in VALUES
    ]


def test_columns_go_change_names_and_get_wider_in_one_go(tmp_path: Path) -> None:
    before = shape(("id", "int"), ("a", "string"), ("b", "smallint"), ("gone", "double"), ("d", "decimal(9,2)"))
    made = Made(tmp_path, before)
    made.write({
        "id": [1, 2], "a": ["x", "y"], "b": [3, None], "gone": [1.0, 2.0], "d": [Decimal("1.50"), None], STAMP: [5, 5],
    })  # fmt: skip
    after = shape(("id", "bigint"), ("b", "string"), ("bb", "int"), ("d", "decimal(12,4)"), ("gone", "string"))
    (file,) = made.reshape(
        Reshape(
            lambda read: reshaped(read, after),
            after.key,
            renamed={"b": "a", "bb": "b"},
            added={"gone": value_of(None, pa.string())},  # another column of the same name
        )
    )
    assert made.read() == [
        {"id": 1, "b": "x", "bb": 3, "d": Decimal("1.5000"), "gone": None, STAMP: 5},
        {"id": 2, "b": "y", "bb": None, "d": None, "gone": None, STAMP: 5},
    ]
    assert made.parquet(file).schema_arrow.names == ["id", "b", "bb", "d", "gone", STAMP], "nothing else is in the file"
    assert made.state().clustering_columns == ("id",)


def test_statistics_and_order_are_those_of_a_file_that_was_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path, shape(("id", "bigint"), ("note", "string"), ("at", "timestamp"), ("f", "double")))
    count = 9_000
    start = dt.datetime(2024, 1, 1, tzinfo=UTC)
    rows = {
        "id": [3 * number for number in range(count)],
        "note": [None if number % 7 == 0 else f"{number * 7919 % count:05} {'x' * 40}" for number in range(count)],
        "at": [start + dt.timedelta(microseconds=number * 1_234_567) for number in range(count)],
        "f": [number / 7 for number in range(count)],
        STAMP: [number % 13 for number in range(count)],
    }
    dead = list(range(0, count, 5))
    made.write(rows, dead=dead)
    monkeypatch.setattr(data_file, "ROW_GROUP_BYTES", 100_000)  # many pieces of a group that was one
    (file,) = made.reshape(filled(made, {"channel": ("string", value_of("web", pa.string()))}))
    parquet = made.parquet(file)
    assert parquet.metadata.num_row_groups > 3
    live = sorted(set(range(count)) - set(dead))
    found = parquet.read()
    assert found["id"].to_pylist() == [rows["id"][number] for number in live]
    assert found["note"].to_pylist() == [rows["note"][number] for number in live]
    indexed = FileLayout.of(made.state(), ("id",)).indexed
    assert json.loads(file.action["stats"]) == json.loads(statistics(found, indexed))
    assert file.rows == len(live)
    assert file.bounds("channel") == ("web", "web")


def test_pieces_are_small_where_each_row_gets_a_long_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(tmp_path, shape(("id", "bigint")))
    made.write({"id": list(range(2_000)), STAMP: [1] * 2_000})
    monkeypatch.setattr(data_file, "ROW_GROUP_BYTES", 500_000)
    (file,) = made.reshape(filled(made, {"long": ("string", value_of("y" * 5_000, pa.string()))}))
    groups = made.parquet(file).metadata
    assert max(groups.row_group(at).total_byte_size for at in range(groups.num_row_groups)) < 1_000_000
    assert made.parquet(file).read(["id"])["id"].to_pylist() == list(range(2_000))


def test_partitions_keep_their_values_and_their_folders(tmp_path: Path) -> None:
    made = Made(tmp_path, shape(("id", "bigint"), ("region", "string")), partitions=["region"])
    made.write({"id": [4, 1, 2, 3], "region": [None, "a/ü", "b", "b"], STAMP: [5, 5, 5, 5]})
    before = {file.path.rsplit("/", 1)[0]: dict(file.partition_values) for file in made.state().files}
    made.reshape(filled(made, {"n": ("int", value_of(7, pa.int32()))}))
    assert {file.path.rsplit("/", 1)[0]: dict(file.partition_values) for file in made.state().files} == before
    assert made.state().partition_columns == ("region",)
    assert [(row["id"], row["region"], row["n"]) for row in made.read()] == [
        (1, "a/ü", 7), (2, "b", 7), (3, "b", 7), (4, None, 7),
    ]  # fmt: skip
    wider = shape(("id", "bigint"), ("area", "string"), ("n", "int"))
    turn = Reshaping(Reshape(lambda r: reshaped(r, wider), ("id",), renamed={"area": "region"}), made.state())
    assert turn.why_not() == "a partition column changes"


def test_a_column_of_the_path_may_lie_in_the_file_too(tmp_path: Path) -> None:
    """Delta's writer in Spark puts it there since 4.4."""
    made = Made(tmp_path, shape(("id", "bigint"), ("region", "string")), partitions=["region"])
    made.write({"id": [1, 2, 3], "region": ["b", "b", "b"], STAMP: [5, 5, 5]})
    (file,) = made.state().files
    rows = made.parquet(file).read()
    pq.write_table(rows.append_column("region", pa.array(["b"] * 3)), made.lake.uri(f"{PATH}/{unquote(file.path)}"))
    layout = FileLayout.of(made.state(), ("id",))
    (live,) = live_rows(made.lake, PATH, file, layout)
    (chosen,) = rows_at(made.lake, PATH, file, layout, np.array([0, 2]))
    assert live.to_pylist() == [{"id": at, "region": "b", STAMP: 5} for at in (1, 2, 3)]
    assert chosen.to_pylist() == [{"id": at, "region": "b", STAMP: 5} for at in (1, 3)]


@pytest.mark.parametrize("partitions", [(), (tables.SHARD_TABLE,)])
def test_only_rows_of_the_shard_get_the_value_and_only_its_files_are_touched(
    tmp_path: Path, partitions: tuple[str, ...]
) -> None:
    key = (*tables.SHARDS, "id")
    made = Made(tmp_path, shape(("id", "bigint"), ("n", "bigint"), key=key, routed=True), partitions)

    def rows(ids: list[int], shard: list[str], n: list[int | None]) -> dict[str, list[Any]]:
        shards = dict(zip(tables.SHARDS, (["s"] * len(ids), ["d"] * len(ids), shard), strict=True))
        return {"id": ids, "n": n, STAMP: [1] * len(ids), **shards}

    made.write(rows([1, 2], ["t_1", "t_1"], [10, 20]))
    made.write(rows([1, 2, 3], ["t_1", "t_2", "t_2"], [11, None, 5]))
    untouched = made.state().files[0].path
    own = dict(zip(tables.SHARDS, ("s", "d", "t_2"), strict=True))
    given = {"n": ("bigint", value_of(7, pa.int32())), "more": ("string", value_of("w", pa.string()))}
    made.reshape(filled(made, given, own=own))
    assert untouched in {file.path for file in made.state().files}
    assert sorted((row[tables.SHARD_TABLE], row["id"], row["n"], row["more"]) for row in made.read()) == [
        ("t_1", 1, 10, None), ("t_1", 1, 11, None), ("t_1", 2, 20, None), ("t_2", 2, 7, "w"), ("t_2", 3, 7, "w"),
    ]  # fmt: skip


def test_rows_without_a_key_get_the_hash_of_what_they_are_now(tmp_path: Path) -> None:
    made = Made(tmp_path, shape(("a", "string"), key=()))
    hashes = row_hashes({"a": pa.array(["x", "x"])}).to_pylist()
    made.write({"a": ["x", "x"], tables.ROW_HASH: hashes, tables.OCCURRENCE: [1, 2], STAMP: [5, 6]})
    after = shape(("b", "string"), ("n", "int"), key=())
    made.reshape(
        Reshape(
            lambda read: reshaped(read, after),
            (tables.ROW_HASH,),
            renamed={"b": "a"},
            added={"n": value_of(3, pa.int32())},
            hashed=after.hashed_names,
        )
    )
    (now,) = set(row_hashes({"b": pa.array(["x"]), "n": pa.array([3], pa.int32())}).to_pylist())
    assert [(r["b"], r["n"], r[tables.ROW_HASH], r[tables.OCCURRENCE]) for r in made.read()] == [
        ("x", 3, now, 1), ("x", 3, now, 2),
    ]  # fmt: skip


def test_a_file_of_which_all_is_dead_has_no_successor(tmp_path: Path) -> None:
    made = Made(tmp_path, shape(("id", "bigint")))
    made.write({"id": [1, 2], STAMP: [1, 1]}, dead=[0, 1])
    assert made.reshape(filled(made, {"n": ("int", value_of(7, pa.int32()))})) == []
    assert made.state().files == ()


def test_what_is_not_certain_is_said_before_anything_is_written(tmp_path: Path) -> None:
    made = Made(tmp_path, shape(("id", "bigint"), ("a", "string")))
    made.write({"id": [1], "a": ["x"], STAMP: [1]})
    marked = SilverShape(made.shape.columns, ("id",), past=SOFT_DELETE)
    turn = Reshaping(Reshape(lambda read: reshaped(read, marked), ("id",)), made.state())
    assert turn.why_not() == f"nobody says what rows have in column {tables.DELETED}"
    narrow = shape(("id", "bigint"), ("a", "int"))
    turn = Reshaping(Reshape(lambda read: reshaped(read, narrow), ("id",)), made.state())
    with pytest.raises(SchemaMismatch, match="column a is"):
        turn.written(made.lake, PATH, made.state().files[0])
    with pytest.raises(UnsupportedValue, match="no int8"):
        value_of(300, pa.int8())


def test_statistics_of_pieces_are_those_of_the_whole() -> None:
    floats = pa.array([1.0, None, float("nan"), 2.0])
    rows = pa.table({"i": pa.array([3, None, 1, 2]), "f": floats, "n": pa.nulls(4, pa.int8()), "s": list("bcad")})
    seen = Seen(rows.column_names)
    for at in range(4):
        seen.take(rows.slice(at, 1))
    assert seen.text() == statistics(rows, rows.column_names)
