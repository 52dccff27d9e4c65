"""In which partition a row lies, told from its values: random tables, and a real server's SELECT ... PARTITION.

tests/support/seeds.py tells how other seeds are run.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.support.random_partitions import Definition, definitions, rows
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.ddl.reader import read
from tidegate.schema.ddl.tree import CreateTable
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partition_rows import rows_where
from tidegate.schema.model.partitions import Partitioning
from tidegate.schema.model.server import ServerVersion as Dialect
from tidegate.schema.model.types import canonical

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


@dataclass(frozen=True)
class Filled:
    """A table at the server. cells: its rows. written: as the statement says. placed: ids per partition."""

    clause: str
    cells: list[tuple[object, ...]]
    written: Partitioning | None
    version: TableVersion
    placed: dict[str, list[int]]


def _filled(connection: Any, database: str, found: list[Definition], rng: random.Random) -> list[Filled]:
    """The definitions' tables with random rows; those that no partition takes are left out."""
    cells, written = {}, {}
    with connection.cursor() as cursor:
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
                with suppress(pymysql.err.MySQLError):
                    cursor.execute(f"INSERT INTO {name} VALUES ({marks})", (at, *row))
            cursor.execute(f"SELECT * FROM {name}")
            cells[name] = list(cursor.fetchall())
            assert len(cells[name]) > ROWS / 3, sql
        connection.commit()
        versions = {v.table: v for v in read_schema(connection, "s", lambda d, _: d == database, Position.of("b.1", 4))}
        placed: dict[str, dict[str, list[int]]] = {name: {} for name in cells}
        for name in cells:
            partitioning = versions[name].partitioning
            assert partitioning is not None
            for partition in partitioning.partitions:
                cursor.execute(f"SELECT id FROM {name} PARTITION ({partition.name})")
                placed[name][partition.name] = sorted(row[0] for row in cursor.fetchall())
    return [
        Filled(definition.clause, cells[name], written[name], versions[name], placed[name])
        for definition, name in zip(found, cells, strict=True)
    ]


def test_the_condition_of_a_partition_is_true_of_the_rows_that_the_server_has_there(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(seed())
    database = fresh_database(any_server)
    with any_server.connect(database) as connection:
        found = definitions(rng, mariadb=any_server.flavour == "mariadb")
        filled = _filled(connection, database, found, rng)
    wrong = []
    for table in filled:
        path = tmp_path / f"{table.version.table}.parquet"
        spark.read.parquet(_as_silver(table.version, table.cells, path)).createOrReplaceTempView("silver")
        asked = []
        for partitioning in (table.version.partitioning, table.written):  # of the server's words, and of ours
            assert partitioning is not None
            assert not partitioning.unknown, f"{table.clause}: {partitioning.unknown}"
            names = [partition.name for partition in partitioning.partitions]
            asked += [(name, rows_where(table.version.columns, partitioning, [name])) for name in names]
        # Null dates are doubts, and rightly so: here they are what they seem. One question costs half of two.
        select = ", ".join(f"collect_list(if({where.condition}, id, NULL))" for _, where in asked)
        (got,) = spark.sql(f"SELECT {select} FROM silver").collect()
        for (name, where), ids in zip(asked, got, strict=True):
            if differ := set(ids) ^ set(table.placed[name]):
                some = [row for row in table.cells if row[0] in differ][:5]
                wrong.append(f"{table.clause} {name}: {some} {where}")
    assert not wrong, "\n".join(wrong)
