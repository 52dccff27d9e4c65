"""A random workload of DDL and DML at a real server: after every round silver has what the server's SELECT has.

tests/support/seeds.py tells how other seeds are run; TIDEGATE_DDL_ROUNDS makes it longer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.support.road import Road
from tests.support.seeds import VARIABLE, seed
from tests.support.servers import FreshDatabase
from tidegate.demo.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

STATEMENTS = 14  # of a round
TABLES_MAX = 5
# (type, a literal default of it, how a value is drawn)
TYPES: tuple[tuple[str, str, Callable[[random.Random], object]], ...] = (
    ("INT", "7", lambda rng: rng.randint(-(2**31), 2**31 - 1)),
    ("BIGINT UNSIGNED", "9", lambda rng: rng.randint(0, 2**64 - 1)),
    ("DECIMAL(12,3)", "1.5", lambda rng: rng.randint(-(10**9), 10**9) / 1000),
    ("VARCHAR(40)", "'none'", lambda rng: "é漢x '"[: rng.randint(0, 5)]),
    ("DATETIME(3)", "'2020-01-02 03:04:05.006'", lambda rng: f"2024-02-{rng.randint(1, 29):02} 01:02:03.004"),
    ("VARBINARY(8)", "X'00FF'", lambda rng: rng.randbytes(rng.randint(0, 8))),
    ("DECIMAL(14,2)", "0.25", lambda rng: rng.randint(-(10**9), 10**9) / 100),
    ("VARCHAR(25)", "'x'", lambda rng: "é漢x '"[: rng.randint(0, 5)]),
)
# Index in TYPES -> what a column of it may become; a statement that strict mode refuses is left out.
RETYPED = {0: 6, 6: 3, 3: 7, 7: 3}
# Of ids from 1 to 60.
PARTITIONS = (
    " PARTITION BY RANGE (id) (PARTITION p20 VALUES LESS THAN (20), PARTITION p40 VALUES LESS THAN (40),"
    " PARTITION pm VALUES LESS THAN MAXVALUE)"
)


class Shape:
    """What a table has, as this side knows it: the server is asked for nothing. columns: name -> index in TYPES."""

    def __init__(self, *, keyed: bool, columns: dict[str, int], partitions: tuple[str, ...] = ()) -> None:
        self.keyed = keyed
        self.columns = columns
        self.partitions = partitions

    def copy(self) -> Shape:
        return Shape(keyed=self.keyed, columns=dict(self.columns), partitions=self.partitions)


class Workload:
    """Statements drawn from one seed; a statement that the server refuses is left out."""

    def __init__(self, server: Server, database: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.connection = server.connect(database)
        self.tables: dict[str, Shape] = {}
        self.count = 0
        self.done: list[str] = []

    def name(self) -> str:
        """A new name, or one that was there before."""
        self.count += 1
        free = [name for name in "abcdefgh" if name not in self.tables]
        return self.rng.choice(free)

    def run(self, sql: str, values: tuple[object, ...] = ()) -> bool:
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(sql, values or None)
            except pymysql.err.ProgrammingError:
                raise  # not the server's refusal, but our mistake
            except pymysql.err.MySQLError:
                self.connection.rollback()
                return False
        self.connection.commit()
        self.done.append(sql)
        return True

    def round(self) -> None:
        for _ in range(STATEMENTS):
            if len(self.tables) < 2:
                self.create()
            elif self.rng.random() < 0.55:
                self.rows()
            else:
                self.rng.choice((
                    self.create, self.create_from, self.drop, self.truncate, self.rename, self.swap, self.rename,
                    self.add, self.add, self.remove, self.rename_column, self.add_and_rename, self.retype, self.retype,
                    self.partition, self.partition, self.partition,
                ))()  # fmt: skip

    def table(self) -> tuple[str, Shape]:
        return self.rng.choice(sorted(self.tables.items(), key=lambda item: item[0]))

    def rows(self) -> None:
        name, shape = self.table()
        kinds = list(shape.columns.items())
        drawn = [None if self.rng.random() < 0.1 else TYPES[kind][2](self.rng) for _, kind in kinds]
        what = self.rng.random()
        if what < 0.6:
            for _ in range(self.rng.randint(1, 3)):
                values = (self.rng.randint(1, 60), *drawn)
                marks = ", ".join(["%s"] * len(values))
                columns = ", ".join(["id", *shape.columns])
                self.run(f"INSERT INTO {name} ({columns}) VALUES ({marks})", values)
        elif what < 0.85 and kinds:
            at = self.rng.randrange(len(kinds))
            self.run(f"UPDATE {name} SET {kinds[at][0]} = %s WHERE id %% 3 = {self.rng.randrange(3)}", (drawn[at],))
        else:
            self.run(f"DELETE FROM {name} WHERE id % 4 = {self.rng.randrange(4)}")

    def create(self) -> None:
        if len(self.tables) >= TABLES_MAX:
            return
        shape = Shape(keyed=self.rng.random() < 0.7, columns={})
        for _ in range(self.rng.randint(0, 3)):
            shape.columns[self.column()] = self.rng.randrange(len(TYPES))
        columns = "".join(f", {name} {TYPES[kind][0]}" for name, kind in shape.columns.items())
        name = self.name()
        shape.partitions = ("p20", "p40", "pm") if self.rng.random() < 0.5 else ()
        clause = PARTITIONS if shape.partitions else ""
        if self.run(f"CREATE TABLE {name} (id INT{' PRIMARY KEY' if shape.keyed else ''}{columns}){clause}"):
            self.tables[name] = shape

    def partition(self) -> None:
        """Rows of a partition go, or change places with a table that is made for it."""
        found = sorted(name for name, shape in self.tables.items() if shape.partitions)
        if not found:
            return
        name = self.rng.choice(found)
        shape = self.tables[name]
        partition, what = self.rng.choice(shape.partitions), self.rng.random()
        rest = tuple(other for other in shape.partitions if other != partition)
        if what < 0.4:
            self.run(f"ALTER TABLE {name} TRUNCATE PARTITION {partition}")
        elif what < 0.6 and partition != "pm":
            if self.run(f"ALTER TABLE {name} DROP PARTITION {partition}"):
                shape.partitions = rest
        elif what < 0.75 and partition != "pm" and len(self.tables) < TABLES_MAX:
            new = self.name()
            if self.run(f"ALTER TABLE {name} CONVERT PARTITION {partition} TO TABLE {new}"):  # MySQL has no such thing
                shape.partitions = rest
                self.tables[new] = Shape(keyed=shape.keyed, columns=dict(shape.columns))
        elif len(self.tables) < TABLES_MAX:
            new = self.name()
            if self.run(f"CREATE TABLE {new} LIKE {name}") and self.run(f"ALTER TABLE {new} REMOVE PARTITIONING"):
                self.tables[new] = Shape(keyed=shape.keyed, columns=dict(shape.columns))
                ids = {"p20": 5, "p40": 25, "pm": 45}
                if partition == shape.partitions[-1] or len(shape.partitions) == 3:
                    self.run(f"INSERT INTO {new} (id) VALUES ({ids[partition]})")
                self.run(f"ALTER TABLE {name} EXCHANGE PARTITION {partition} WITH TABLE {new}")

    def create_from(self) -> None:
        """LIKE, and from a SELECT, whose rows are in the log with the statement."""
        if len(self.tables) >= TABLES_MAX:
            return
        (old, shape), name = self.table(), self.name()
        if self.rng.random() < 0.5:
            if self.run(f"CREATE TABLE {name} LIKE {old}"):
                self.tables[name] = shape.copy()
        elif self.run(f"CREATE TABLE {name} AS SELECT * FROM {old} WHERE id > 20"):
            self.tables[name] = Shape(keyed=False, columns=dict(shape.columns))

    def drop(self) -> None:
        name, _ = self.table()
        if self.run(f"DROP TABLE {name}"):
            del self.tables[name]

    def truncate(self) -> None:
        self.run(f"TRUNCATE TABLE {self.table()[0]}")

    def rename(self) -> None:
        (old, shape), new = self.table(), self.name()
        sql = f"RENAME TABLE {old} TO {new}" if self.rng.random() < 0.6 else f"ALTER TABLE {old} RENAME TO {new}"
        if self.run(sql):
            del self.tables[old]
            self.tables[new] = shape

    def swap(self) -> None:
        one, two = self.rng.sample(sorted(self.tables), 2)
        if self.run(f"RENAME TABLE {one} TO swapping, {two} TO {one}, swapping TO {two}"):
            self.tables[one], self.tables[two] = self.tables[two], self.tables[one]

    def column(self) -> str:
        self.count += 1
        return f"c{self.count}"

    def add(self) -> None:
        name, shape = self.table()
        kind, column = self.rng.randrange(len(TYPES)), self.column()
        if self.run(f"ALTER TABLE {name} ADD COLUMN {column} {self._added(kind)}"):
            shape.columns[column] = kind

    def _added(self, kind: int) -> str:
        text, default, _ = TYPES[kind]
        return text + self.rng.choice(("", f" DEFAULT {default}", f" NOT NULL DEFAULT {default}"))

    def remove(self) -> None:
        name, shape = self.table()
        if shape.columns:
            column = self.rng.choice(sorted(shape.columns))
            if self.run(f"ALTER TABLE {name} DROP COLUMN {column}"):
                del shape.columns[column]

    def rename_column(self) -> None:
        name, shape = self.table()
        if shape.columns:
            column, new = self.rng.choice(sorted(shape.columns)), self.column()
            if self.run(f"ALTER TABLE {name} RENAME COLUMN {column} TO {new}"):
                shape.columns = {new if found == column else found: kind for found, kind in shape.columns.items()}

    def retype(self) -> None:
        """To a type that all values fit, there and back; the log shows none of them."""
        name, shape = self.table()
        found = sorted(column for column, kind in shape.columns.items() if kind in RETYPED)
        if found:
            column = self.rng.choice(found)
            kind = RETYPED[shape.columns[column]]
            if self.run(f"ALTER TABLE {name} MODIFY {column} {TYPES[kind][0]}"):
                shape.columns[column] = kind

    def add_and_rename(self) -> None:
        (old, shape), new, column = self.table(), self.name(), self.column()
        if self.run(f"ALTER TABLE {old} ADD COLUMN {column} {self._added(0)} FIRST, RENAME TO {new}"):
            del self.tables[old]
            shape.columns = {column: 0, **shape.columns}
            self.tables[new] = shape


def test_silver_follows_a_random_workload_of_ddl_and_dml(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    drawn_from, database = seed(), fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture(idle=0.5)
    workload = Workload(any_server, database, drawn_from)
    rounds = int(os.environ.get("TIDEGATE_DDL_ROUNDS", "2" if any_server.flavour == "mariadb" else "1"))
    for number in range(rounds):
        workload.round()
        road.capture(idle=0.5)
        app = road.apply(spark)
        told = f"{VARIABLE}={drawn_from}, round {number}:\n" + "\n".join(workload.done[-2 * STATEMENTS :])
        held = [state.reason for state in app.states.values() if state.state == "held"]
        assert not held, f"{held}\n{told}"
        try:
            assert set(road.assert_equal()) == set(workload.tables)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{told}") from error
