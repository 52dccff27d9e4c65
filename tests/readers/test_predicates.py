"""A reader that skips files by their statistics finds what it finds without: every predicate on every type.

In:  a table of all types whose files have odd bounds, by position, by Spark on a private log, and after OPTIMIZE.
Out: for each reader the rows of `WHERE p`, held against the rows for which the same reader says that p is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from spark_jobs.merge.private.log import PrivateLog, change_table
from spark_jobs.session.spark import maintenance_session
from tests.support.readers import _duckdb
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.query import duck
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout

PATH: Final = "silver/d/zoo"
_INF: Final = float("inf")
_local: Final = datetime.fromisoformat
_MANY: Final = 40
# name -> (type in Spark, in Arrow, the values of each file). The third file has NULLs alone.
ZOO: Final[dict[str, tuple[str, pa.DataType, list[list[Any]]]]] = {
    "small": ("tinyint", pa.int8(), [[-128, -1], [0, 0], [None, None], [1, 127], [5, None]]),
    "n": ("int", pa.int32(), [[-(2**31), -1], [-1, 0], [None, None], [1, 2**31 - 1], [7, 7]]),
    "wide": ("bigint", pa.int64(), [[-(2**63), -1], [-1, 0], [None, None], [2**53, 2**53 + 1], [2**63 - 1, 1]]),
    "unsigned": (
        "decimal(20,0)",
        pa.decimal128(20, 0),
        [[Decimal(0)] * 2, [Decimal(1), None], [None, None], [Decimal(2**63), Decimal(2**64 - 1)], [Decimal(9)] * 2],
    ),
    "amount": (
        "decimal(38,10)",
        pa.decimal128(38, 10),
        [
            [Decimal("-9999999999999999999999999999.9999999999"), Decimal("-0.0000000001")],
            [Decimal("0.0000000000"), Decimal("0.0000000001")],
            [None, None],
            [Decimal("0.1000000000"), Decimal("9999999999999999999999999999.9999999999")],
            [Decimal("1.0000000000"), None],
        ],
    ),
    "single": ("float", pa.float32(), [[-5.0, -0.0], [-0.0, 0.0], [None, None], [0.0, 1e-45], [0.1, 3.4028235e38]]),
    "double": ("double", pa.float64(), [[-5.0, -0.0], [0.0, -0.0], [None, None], [0.0, 5e-324], [0.1, 1.79e308]]),
    "beyond": ("double", pa.float64(), [[-_INF, -0.0], [0.0, _INF], [None, None], [1.0, _INF], [2.0, None]]),
    "flag": ("boolean", pa.bool_(), [[False, False], [True, True], [None, None], [True, False], [None, True]]),
    "day": (
        "date",
        pa.date32(),
        [
            [date.min, date(1582, 10, 10)],
            [date(1969, 12, 31), date(1970, 1, 1)],
            [None, None],
            [date(2024, 2, 29), date.max],
            [date(2024, 1, 1), None],
        ],
    ),
    "local": (
        "timestamp_ntz",
        pa.timestamp("us"),
        [
            [_local("0001-01-01"), _local("1582-10-10 01:00:00")],
            [_local("1969-12-31 23:59:59.999999"), _local("1970-01-01 00:00:00.000001")],
            [None, None],
            [_local("2024-01-01 00:00:00.999001"), _local("2024-01-01 00:00:00.999999")],
            [_local("2024-06-01"), _local("9999-12-31 23:59:59.999999")],
        ],
    ),
    "moment": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        [
            [datetime(1900, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)],
            [datetime(1970, 1, 1, 0, 0, 0, 1, UTC), datetime(1970, 1, 1, 0, 0, 0, 2, UTC)],
            [None, None],
            [datetime(2024, 1, 1, 0, 0, 0, 999_001, UTC), datetime(2024, 1, 1, 0, 0, 0, 999_999, UTC)],
            [datetime(2038, 1, 19, 3, 14, 7, 999_999, UTC), None],
        ],
    ),
    "text": (
        "string",
        pa.string(),
        [
            ["", "A"],
            ["a" * 32 + "x", "a" * 32 + "\x7f" * 9],
            [None, None],
            ["a" * 31 + "\U0001f600" * 9, "\uffff" * _MANY],
            ["\U0001f600" * _MANY, "\U0010ffff" * _MANY],
        ],
    ),
    "tied": (
        "string",
        pa.string(),
        [
            ["z" * _MANY, "z" * 32],
            ["é" * _MANY, "é" * 31 + "\U0001f600\U0001f600"],
            [None, None],
            ["\ue000" * _MANY, "\U00010000" * _MANY],
            ["\U0010ffff" * 33, "\U0010ffff" * 32],
        ],
    ),
    "bytes": ("binary", pa.binary(), [[b"", b"\0"], [b"\xff" * _MANY, b"\x7f"], [None, None], [b"a"] * 2, [b"b"] * 2]),
}
FILES: Final = 5


def rows_of(file: int) -> pa.Table:
    columns = {name: pa.array(values[file], kind) for name, (_, kind, values) in ZOO.items()}
    ids = pa.array([2 * file, 2 * file + 1], pa.int64())
    return pa.table({"id": ids, **columns, "_tg_commit_ts": pa.array([1, 1], pa.int64())})


def made(lake: LakeFiles) -> None:
    columns = [SilverColumn(name, kind) for name, (kind, _, _) in ZOO.items()]
    shape = SilverShape((SilverColumn("id", "bigint"), *columns), ("id",))
    create_silver(lake.log(PATH), shape)


def by_position(lake: LakeFiles) -> None:
    made(lake)
    log = lake.log(PATH)
    layout = FileLayout.of(log.state(), ("id",))
    for file in range(FILES):
        adds = data_file.write(lake, PATH, layout.fit(rows_of(file)), layout)
        log.commit(log.state(), Change(moved([], adds, data_change=True), "UPSERT"))


def by_spark(lake: LakeFiles, spark: SparkSession, files: Iterable[int] = range(FILES)) -> None:
    made(lake)
    for file in files:
        staged = f"{lake.local('staged')}-{file}.parquet"
        pq.write_table(rows_of(file), staged, store_schema=False)

        def work(private: PrivateLog, staged: str = staged) -> None:
            source = f"parquet.`{staged}`"
            spark.sql(
                f"MERGE INTO {private.target} t USING {source} s ON t.id = s.id"
                " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )

        change_table(lake, spark, PATH, work)


def optimized(lake: LakeFiles, spark: SparkSession) -> None:
    """Of two files one, whose bounds are still narrow."""
    by_spark(lake, spark, range(2))
    session = maintenance_session(spark, 1 << 28)
    change_table(lake, session, PATH, lambda private: session.sql(f"OPTIMIZE {private.target}").collect() and None)
    assert len(lake.log(PATH).state().files) == 1


@dataclass(frozen=True)
class Predicate:
    """column <operation> values. operation: a comparison, IN, BETWEEN, IS NULL or IS NOT NULL."""

    column: str
    operation: str
    values: tuple[Any, ...] = ()

    def sql(self, literal: Callable[[str, Any], str]) -> str:
        texts = [literal(self.column, value) for value in self.values]
        match self.operation:
            case "IN":
                return f"{self.column} IN ({', '.join(texts)})"
            case "BETWEEN":
                return f"{self.column} BETWEEN {texts[0]} AND {texts[1]}"
            case _:
                return " ".join([self.column, self.operation, *texts])

    def polars(self) -> pl.Expr:
        column, kind = pl.col(self.column), pl.from_arrow(pa.array([], ZOO[self.column][1])).dtype  # type: ignore[union-attr]
        values = [pl.lit(value, dtype=kind) for value in self.values]
        match self.operation:
            case "IN":
                return column.is_in(list(self.values))
            case "BETWEEN":
                return column.is_between(*values)
            case "IS NULL":
                return column.is_null()
            case "IS NOT NULL":
                return column.is_not_null()
            case "=":
                return column == values[0]
            case "<":
                return column < values[0]
            case "<=":
                return column <= values[0]
            case ">":
                return column > values[0]
            case _:
                return column >= values[0]


def predicates(column: str, *, few: bool = False) -> list[Predicate]:
    there = [value for values in ZOO[column][2] for value in values if value is not None]
    distinct = list({repr(value): value for value in there}.values())
    distinct = [distinct[0], distinct[-1]] if few else distinct
    compared = [Predicate(column, op, (value,)) for value in distinct for op in ("=", "<", "<=", ">", ">=")]
    pairs = [(distinct[0], distinct[-1]), (distinct[-1], distinct[0])] + [(value, value) for value in distinct]
    sets = [
        Predicate(column, operation, pair) for operation in ("IN", "BETWEEN") for pair in pairs[: 2 if few else None]
    ]
    return [*compared, *sets, Predicate(column, "IS NULL"), Predicate(column, "IS NOT NULL")]


def literal_of(column: str, value: Any, types: dict[str, str]) -> str:
    """A typed one, by a cast of its text."""
    kind = ZOO[column][0]
    if kind == "binary":
        return f"{types['binary']}'{value.hex()}'" if "binary" in types else f"from_hex('{value.hex()}')"
    if kind == "string":
        return duck.literal(value)
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ", timespec="microseconds")
    return f"CAST('{text}' AS {types.get(kind, kind)})"


DUCKDB: Final = {"timestamp_ntz": "TIMESTAMP", "timestamp": "TIMESTAMPTZ"}
DATAFUSION: Final = {"timestamp_ntz": "TIMESTAMP", "string": "VARCHAR", "binary": "X"}
SPARK: Final = {"binary": "X"}


class Reader:
    """One of them on one table. hits: ids for which a predicate is true by WHERE; says: the same without a WHERE."""

    def __init__(self, lake: LakeFiles, spark: SparkSession | None = None) -> None:
        self.place = lake.uri(PATH)
        self.spark = spark

    def hits(self, predicate: Predicate) -> set[int]:
        raise NotImplementedError

    def says(self, asked: Sequence[Predicate]) -> list[set[int]]:
        raise NotImplementedError


class BySql(Reader):
    def run(self, sql: str) -> pa.Table:
        """{t} stands for the table."""
        raise NotImplementedError

    def text(self, predicate: Predicate) -> str:
        raise NotImplementedError

    def hits(self, predicate: Predicate) -> set[int]:
        return set(self.run(f"SELECT id FROM {{t}} WHERE {self.text(predicate)}")["id"].to_pylist())

    def says(self, asked: Sequence[Predicate]) -> list[set[int]]:
        columns = ", ".join(f"({self.text(one)}) AS p{at}" for at, one in enumerate(asked))
        return columns_true(self.run(f"SELECT id, {columns} FROM {{t}}"), len(asked))


class DuckDb(BySql):
    def run(self, sql: str) -> pa.Table:
        with _duckdb().cursor() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(sql.replace("{t}", f"delta_scan({duck.literal(self.place)})")).to_arrow_table()

    def text(self, predicate: Predicate) -> str:
        return predicate.sql(lambda column, value: literal_of(column, value, DUCKDB))


class DeltaRs(BySql):
    def run(self, sql: str) -> pa.Table:
        builder = QueryBuilder().register("t", DeltaTable(self.place))
        return pa.table(builder.execute(sql.replace("{t}", "t")))

    def text(self, predicate: Predicate) -> str:
        def literal(column: str, value: Any) -> str:
            if ZOO[column][0] == "timestamp":
                return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
            return literal_of(column, value, DATAFUSION)

        return predicate.sql(literal)


class Spark(BySql):
    def run(self, sql: str) -> pa.Table:
        assert self.spark is not None, "made with one"
        return self.spark.sql(sql.replace("{t}", f"delta.`{self.place}`")).toArrow()

    def text(self, predicate: Predicate) -> str:
        return predicate.sql(lambda column, value: literal_of(column, value, SPARK))


class Polars(Reader):
    def hits(self, predicate: Predicate) -> set[int]:
        return set(pl.scan_delta(self.place).filter(predicate.polars()).select("id").collect()["id"].to_list())

    def says(self, asked: Sequence[Predicate]) -> list[set[int]]:
        columns = [one.polars().alias(f"p{at}") for at, one in enumerate(asked)]
        return columns_true(pl.scan_delta(self.place).select("id", *columns).collect().to_arrow(), len(asked))


def columns_true(rows: pa.Table, count: int) -> list[set[int]]:
    ids = rows["id"].to_pylist()
    return [{one for one, hit in zip(ids, rows[f"p{at}"].to_pylist(), strict=True) if hit} for at in range(count)]


def asked_of(reader: Reader) -> Iterator[tuple[Predicate, set[int], set[int]]]:
    """Each predicate with the rows that it finds and those of which it is true."""
    few = isinstance(reader, Spark)  # each of its queries takes a job
    for column in ZOO:
        asked = predicates(column, few=few)
        try:
            says = reader.says(asked)
            hits = [reader.hits(one) for one in asked]
        except Exception as error:  # noqa: BLE001 - what a reader can't do is looked up below
            yield Predicate(column, "error: " + str(error).splitlines()[0]), set(), {-1}
            continue
        yield from zip(asked, hits, says, strict=True)


# What a reader can't do by itself, whoever wrote the table: (reader, column) -> why.
LIMITS: Final[dict[tuple[str, str], str]] = {
    ("DeltaRs", "local"): "it compares timestamps as nanoseconds, which reach from 1677 to 2262",
}


def wrong_of(readers: Iterable[Reader]) -> list[str]:
    return [
        f"{type(reader).__name__}: {predicate}: {sorted(hits)} instead of {sorted(true)}"
        for reader in readers
        for predicate, hits, true in asked_of(reader)
        if hits != true and (type(reader).__name__, predicate.column) not in LIMITS
    ]


@pytest.mark.parametrize("kind", [DuckDb, Polars, DeltaRs], ids=lambda kind: kind.__name__)
def test_what_a_filter_finds_is_what_is_there(kind: type[Reader], tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    by_position(lake)
    assert not (wrong := wrong_of([kind(lake)])), "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.parametrize("make", [by_spark, optimized], ids=lambda make: make.__name__)
def test_what_a_filter_finds_in_files_of_spark_is_what_is_there(
    make: Callable[[LakeFiles, SparkSession], None], spark: SparkSession, tmp_path: Path
) -> None:
    lake = LakeFiles(str(tmp_path))
    make(lake, spark)
    assert not (wrong := wrong_of([DuckDb(lake), Polars(lake), DeltaRs(lake), Spark(lake, spark)])), "\n".join(wrong)


@pytest.mark.spark
def test_what_a_filter_of_spark_finds_is_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    by_position(lake)
    assert not (wrong := wrong_of([Spark(lake, spark)])), "\n".join(wrong)
