"""In which partition a row lies, told from its values: random tables, and a real server's SELECT ... PARTITION.

TIDEGATE_PARTITIONS_SEED runs a printed seed again.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.support.random_partitions import definitions, rows
from tests.support.servers import FreshDatabase
from tidegate.capture.baseline import read_schema
from tidegate.demo.server import Server
from tidegate.errors import UnsupportedValue
from tidegate.position import Position
from tidegate.schema.columns import TableVersion
from tidegate.schema.ddl_reader import read
from tidegate.schema.ddl_statements import CreateTable
from tidegate.schema.ddl_tokens import Server as Dialect
from tidegate.schema.partition_rows import rows_where
from tidegate.schema.partitions import Partitioning
from tidegate.schema.types import canonical

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 150


def _as_silver(version: TableVersion, cells: list[tuple[object, ...]], path: Path) -> str:
    """The rows as a Parquet file with silver's types."""
    kinds = [canonical(column).arrow for column in version.columns]
    columns = []
    for kind, values in zip(kinds, zip(*cells, strict=True), strict=True):
        zoned = pa.types.is_timestamp(kind) and kind.tz  # the session is in UTC
        columns.append(pa.array(values, pa.timestamp("us")).cast(kind) if zoned else pa.array(values, kind))
    pq.write_table(pa.table(dict(zip((column.name for column in version.columns), columns, strict=True))), path)
    return str(path)


def test_the_condition_of_a_partition_is_true_of_the_rows_that_the_server_has_there(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TIDEGATE_PARTITIONS_SEED", random.randrange(10**6)))
    print(f"TIDEGATE_PARTITIONS_SEED={seed}")
    rng = random.Random(seed)
    database = fresh_database(any_server)
    found = definitions(rng, mariadb=any_server.flavour == "mariadb")
    cells: dict[str, list[tuple[object, ...]]] = {}
    written: dict[str, Partitioning | None] = {}
    placed: dict[tuple[str, str], list[int]] = {}
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES'")
        cursor.execute("SELECT VERSION()")
        dialect = Dialect.of(cursor.fetchone()[0])
        for number, definition in enumerate(found):
            name = f"t{number}"
            columns = "".join(f", {column} {kind} NULL" for column, (kind, _) in definition.columns.items())
            sql = f"CREATE TABLE {name} (id INT{columns}) {definition.clause}"
            cursor.execute(sql)
            statement = read(sql, database=database, server=dialect)
            assert isinstance(statement, CreateTable)
            written[name] = statement.partitioning
            marks = ", ".join(["%s"] * (1 + len(definition.columns)))
            for at, row in enumerate(rows(rng, definition, ROWS)):
                try:
                    cursor.execute(f"INSERT INTO {name} VALUES ({marks})", (at, *row))
                except pymysql.err.MySQLError:
                    continue  # no partition for it
            cursor.execute(f"SELECT * FROM {name}")
            cells[name] = list(cursor.fetchall())
            assert len(cells[name]) > ROWS / 3, sql
        connection.commit()
        versions = {v.table: v for v in read_schema(connection, "s", lambda d, _: d == database, Position.of("b.1", 4))}
        for name in cells:
            partitioning = versions[name].partitioning
            assert partitioning is not None
            for partition in partitioning.partitions:
                cursor.execute(f"SELECT id FROM {name} PARTITION ({partition.name})")
                placed[name, partition.name] = sorted(row[0] for row in cursor.fetchall())
    wrong = []
    for number, definition in enumerate(found):
        name = f"t{number}"
        version = versions[name]
        silver = spark.read.parquet(_as_silver(version, cells[name], tmp_path / f"{name}.parquet"))
        silver.createOrReplaceTempView("silver")
        for partitioning in (version.partitioning, written[name]):
            assert partitioning is not None
            assert not partitioning.unknown, f"{definition.clause}: {partitioning.unknown}"
            names = [partition.name for partition in partitioning.partitions]
            try:
                asked = {partition: rows_where(version.columns, partitioning, [partition]) for partition in names}
            except UnsupportedValue as error:
                raise AssertionError(f"{definition.clause}: {error.what}") from error
            # Null dates are doubts, and rightly so: here they are what they seem.
            select = ", ".join(f"collect_list(if({where.condition}, id, NULL))" for where in asked.values())
            (got,) = spark.sql(f"SELECT {select} FROM silver").collect()
            for partition, ids in zip(names, got, strict=True):
                if sorted(ids) != placed[name, partition]:
                    differ = set(ids) ^ set(placed[name, partition])
                    some = [row for row in cells[name] if row[0] in differ][:5]
                    wrong.append(f"{definition.columns} {definition.clause} {partition}: {some} {asked[partition]}")
    assert not wrong, f"TIDEGATE_PARTITIONS_SEED={seed}\n" + "\n".join(wrong)
