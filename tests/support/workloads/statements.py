"""A random workload of DDL and DML whose every statement must be followed in silver, values equal to the server's.

In:  a real server, an empty database, a seed.
Out: Workload.round() runs statements; `tables` is what there must be afterwards, `done` what was run.

What a statement does to a table is kept on this side; the server is asked for nothing. A statement that it refuses is
left out. What the product may hold (tests/integration/road/test_rewritten.py and its neighbours) isn't drawn.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pymysql

from tests.support.workloads.alter import Actions, Shape
from tests.support.workloads.types import MARIADB, MYSQL, ColumnType
from tidegate.local.server import Server

STATEMENTS = 12  # of a round
TABLES_MAX = 5
_NAMES = "abcdefgh"
_IDS = {"p20": 5, "p40": 25, "pm": 45}  # an id that lies in each partition; ids are from 1 to 60
_RANGES = (
    " PARTITION BY RANGE (id) (PARTITION p20 VALUES LESS THAN (20), PARTITION p40 VALUES LESS THAN (40),"
    " PARTITION pm VALUES LESS THAN MAXVALUE)"
)
_HASH = " PARTITION BY HASH (id) PARTITIONS 3"
_LIST = " PARTITION BY LIST (id % 2) (PARTITION even VALUES IN (0), PARTITION odd VALUES IN (1, NULL))"
_PARTITIONS = {_RANGES: ("p20", "p40", "pm"), _HASH: ("p0", "p1", "p2"), _LIST: ("even", "odd")}


class Workload:
    """Statements drawn from one seed."""

    def __init__(self, server: Server, database: str, seed: int, *, statements: int = STATEMENTS) -> None:
        self.rng = random.Random(seed)
        self.mariadb = server.flavour == "mariadb"
        self.types: dict[str, ColumnType] = MARIADB if self.mariadb else MYSQL
        self.connection = server.connect(database)
        self.statements = statements
        self.tables: dict[str, Shape] = {}
        self.actions = Actions(self.rng, self.types)
        self.done: list[str] = []

    def run(self, sql: str, values: tuple[object, ...] = ()) -> bool:
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(sql, values or None)
            except pymysql.err.ProgrammingError as error:
                if error.args[0] not in _REFUSALS:
                    raise  # our mistake
                return False
            except pymysql.err.MySQLError:
                return False
        self.done.append(f"{sql} {values}" if values else sql)
        return True

    def round(self) -> None:
        for _ in range(self.statements):
            if len(self.tables) < 2:
                self.create()
            elif self.rng.random() < 0.55:
                self.transaction()
            else:
                self.rng.choice((
                    self.create, self.create_from, self.drop, self.truncate, self.rename, self.swap, self.rename,
                    self.alter, self.alter, self.alter, self.alter, self.alter, self.alter, self.alter, self.rekey,
                    self.tighten, self.convert, self.partition, self.partition, self.partition, self.repartition,
                    self.pass_by,
                ))()  # fmt: skip
                self.connection.commit()

    # --- rows -----------------------------------------------------------------------------------------

    def transaction(self) -> None:
        """Rows of one to three tables; some of it is taken back."""
        self.run("BEGIN")
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            if self.rng.random() < 0.1:
                self.run("SAVEPOINT here")
                self.rows()
                self.run("ROLLBACK TO SAVEPOINT here")
            self.rows()
        if self.rng.random() < 0.05:
            self.connection.rollback()
            self.done.append("ROLLBACK")
        else:
            self.connection.commit()
            self.done.append("COMMIT")

    def table(self) -> tuple[str, Shape]:
        return self.rng.choice(sorted(self.tables.items(), key=lambda item: item[0]))

    def value(self, shape: Shape, column: str) -> object:
        if self.rng.random() < 0.1:
            return None  # which a key refuses
        return self.types[shape.columns[column]].draw(self.rng)

    def rows(self) -> None:
        name, shape = self.table()
        what = self.rng.random()
        if what < 0.6:
            verb = self.rng.choice(("INSERT", "INSERT", "REPLACE", "INSERT IGNORE"))
            columns = ", ".join(["id", *shape.columns])
            for _ in range(self.rng.randint(1, 3)):
                cells = (self.rng.randint(1, 60), *(self.value(shape, column) for column in shape.columns))
                if None in cells and verb == "INSERT IGNORE":
                    continue  # it may become a zero date, which holds its table in a key
                self.run(f"{verb} INTO {name} ({columns}) VALUES ({', '.join(['%s'] * len(cells))})", cells)
            if self.rng.random() < 0.2:
                self.run(f"INSERT INTO {name} ({columns}) SELECT {columns.replace('id', 'id + 1', 1)} FROM {name}"
                         " ORDER BY id LIMIT 3")  # fmt: skip
        elif what < 0.85 and shape.columns:
            column = self.rng.choice(list(shape.columns))
            change = (self.value(shape, column),)
            self.run(f"UPDATE {name} SET {column} = %s WHERE id %% 3 = {self.rng.randrange(3)}", change)
        elif what < 0.92:
            self.run(f"UPDATE {name} SET id = id + {self.rng.choice((1, 100))} WHERE id % 5 = {self.rng.randrange(5)}")
        else:
            self.run(f"DELETE FROM {name} WHERE id % 4 = {self.rng.randrange(4)}")

    # --- whole tables -----------------------------------------------------------------------------------

    def name(self) -> str:
        """A new name, or one that was there before."""
        return self.rng.choice([name for name in _NAMES if name not in self.tables])

    def create(self) -> None:
        if len(self.tables) >= TABLES_MAX:
            return
        shape = Shape()
        for _ in range(self.rng.randint(0, 6)):
            shape.columns[self.actions.column()] = self.actions.kind()
        written = [f"{name} {self.types[kind].sql}" for name, kind in shape.columns.items()]
        if self.rng.random() < 0.15:
            written.append(f"g{self.actions.count} INT AS (id * 2) {self.rng.choice(('VIRTUAL', 'STORED'))}")
        key = self.rng.choice(("", "", "id", "id", "id", "two", "unique"))
        if key == "two":
            column = self.actions.column()
            kind = self.rng.choice(
                ("short", "bin", "char", "latin", "decimal", "datetime", "binary", "enum", "ubigint")
            )
            shape.columns[column] = kind
            written.append(f"{column} {self.types[kind].sql} NOT NULL, PRIMARY KEY ({column}, id)")
            shape.key = (column, "id")
        elif key:
            written.append("PRIMARY KEY (id)" if key == "id" else "UNIQUE KEY u (id)")
            shape.key = ("id",)
        self.rng.shuffle(written)
        clause = self.rng.choice(("", "", "", _RANGES, _RANGES, _HASH, _LIST))
        shape.partitions = _PARTITIONS.get(clause, ())
        charset = self.rng.choice(("", "", " CHARACTER SET latin1", " CHARACTER SET utf8mb3"))
        name = self.name()
        if self.run(f"CREATE TABLE {name} (id INT{' NOT NULL' * bool(key)}, {', '.join(written)}){charset}{clause}"
                    .replace(", )", ")")):  # fmt: skip
            self.tables[name] = shape

    def create_from(self) -> None:
        """LIKE, and from a SELECT, whose rows are in the log with the statement."""
        if len(self.tables) >= TABLES_MAX:
            return
        (old, shape), name = self.table(), self.name()
        if self.rng.random() < 0.5:
            if self.run(f"CREATE TABLE {name} LIKE {old}"):
                self.tables[name] = shape.copy()
            return
        columns = dict(shape.columns)
        listed = ", ".join(["id", *columns])
        if self.run(f"CREATE TABLE {name} AS SELECT {listed} FROM {old} WHERE id > 20"):
            self.tables[name] = Shape(columns=columns)

    def drop(self) -> None:
        name, _ = self.table()
        if self.rng.random() < 0.3:
            other, _ = self.table()
            if other != name and self.run(f"DROP TABLE IF EXISTS {name}, not_there, {other}"):
                del self.tables[name], self.tables[other]
        elif self.run(f"DROP TABLE {name}"):
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

    def pass_by(self) -> None:
        """What changes no kept table, whatever its name says."""
        name, _ = self.table()
        if self.rng.random() < 0.5:
            self.run(f"CREATE TABLE IF NOT EXISTS {name} (other INT)")
            self.run(f"CREATE OR REPLACE VIEW seen AS SELECT id FROM {name}")
        else:
            assert self.run(f"CREATE TEMPORARY TABLE {name} (id INT, other INT)")
            self.run(f"INSERT INTO {name} VALUES (1, 2)")
            self.run(f"ALTER TABLE {name} DROP COLUMN other")
            self.run(f"TRUNCATE TABLE {name}")
            self.run(f"DROP TEMPORARY TABLE {name}")

    # --- columns ----------------------------------------------------------------------------------------

    def alter(self) -> None:
        """One to four actions in one statement, a rename of the table among them."""
        name, shape = self.table()
        after = shape.copy()
        actions = self.actions.draw(after)
        new = name
        if self.rng.random() < 0.15:
            new = self.name()
            actions.append(f"RENAME TO {new}")
        if actions and self.run(f"ALTER TABLE {name} {', '.join(actions)}"):
            del self.tables[name]
            self.tables[new] = after

    def rekey(self) -> None:
        """Another primary key, one where there was none, or none any more; a server's own key of ids."""
        name, shape = self.table()
        whole = [column for column, kind in shape.columns.items() if kind in _KEYS]
        key = ("id", self.rng.choice(whole)) if whole and self.rng.random() < 0.5 else ("id",)
        add = f"ADD PRIMARY KEY ({', '.join(key)})"
        drop = "DROP PRIMARY KEY"
        for column in key[1:]:
            self.run(f"DELETE FROM {name} WHERE {column} IS NULL")
            self.connection.commit()
        choices = (add, f"{drop}, {add}") if shape.key else (add,)
        chosen = self.rng.choice((drop, *choices)) if not shape.partitions else self.rng.choice(choices)
        if self.run(f"ALTER TABLE {name} {chosen}"):
            shape.key = key if add in chosen else ()

    def tighten(self) -> None:
        """NOT NULL, once no value is NULL."""
        name, shape = self.table()
        column = self.actions.picked(shape)
        if column and "NULL" not in self.types[shape.columns[column]].sql:
            self.run(f"DELETE FROM {name} WHERE {column} IS NULL")
            self.connection.commit()
            self.run(f"ALTER TABLE {name} MODIFY {column} {self.types[shape.columns[column]].sql} NOT NULL")

    def convert(self) -> None:
        """To a character set that has all our characters."""
        name, _ = self.table()
        charset = self.rng.choice(("utf8mb4", "utf8mb3", "utf8mb4 COLLATE utf8mb4_bin"))
        what = self.rng.choice(("CONVERT TO", "CONVERT TO", "DEFAULT"))
        self.run(f"ALTER TABLE {name} {what} CHARACTER SET {charset}")

    # --- partitions -------------------------------------------------------------------------------------

    def repartition(self) -> None:
        """Rows stay whatever the partitions are."""
        name, shape = self.table()
        clause = self.rng.choice((_RANGES, _RANGES, _HASH, _LIST))
        if shape.partitions and self.rng.random() < 0.4:
            clause = " REMOVE PARTITIONING"
        if shape.partitions == ("p20", "p40", "pm") and self.rng.random() < 0.5:
            clause = " REORGANIZE PARTITION p20, p40 INTO (PARTITION p40 VALUES LESS THAN (40))"
            if self.run(f"ALTER TABLE {name}{clause}"):
                shape.partitions = ("p40", "pm")
        elif self.run(f"ALTER TABLE {name}{clause}"):
            shape.partitions = _PARTITIONS.get(clause, ())

    def partition(self) -> None:
        """Rows of a partition go, or change places with another table's."""
        found = sorted(name for name, shape in self.tables.items() if shape.partitions)
        if not found:
            return
        name = self.rng.choice(found)
        shape = self.tables[name]
        partition, what = self.rng.choice(shape.partitions), self.rng.random()
        rest = tuple(other for other in shape.partitions if other != partition)
        if what < 0.4:
            self.run(f"ALTER TABLE {name} TRUNCATE PARTITION {partition}")
        elif what < 0.6 and partition not in ("pm", *_PARTITIONS[_HASH]):
            if self.run(f"ALTER TABLE {name} DROP PARTITION {partition}"):
                shape.partitions = rest
        elif what < 0.75 and partition != "pm" and len(self.tables) < TABLES_MAX and self.mariadb:
            new = self.name()
            if self.run(f"ALTER TABLE {name} CONVERT PARTITION {partition} TO TABLE {new}"):
                shape.partitions = rest
                self.tables[new] = replace(shape.copy(), partitions=())
        elif what < 0.85:
            other = self.rng.choice(sorted(self.tables))
            self.run(f"ALTER TABLE {name} EXCHANGE PARTITION {partition} WITH TABLE {other}")
        elif len(self.tables) < TABLES_MAX:
            self._exchange_with_new(name, shape, partition)

    def _exchange_with_new(self, name: str, shape: Shape, partition: str) -> None:
        new = self.name()
        if self.run(f"CREATE TABLE {new} LIKE {name}"):
            self.tables[new] = shape.copy()
            if self.run(f"ALTER TABLE {new} REMOVE PARTITIONING"):
                self.tables[new].partitions = ()
                if partition in _IDS:
                    self.run(f"INSERT INTO {new} (id) VALUES ({_IDS[partition]})")
                    self.connection.commit()
                self.run(f"ALTER TABLE {name} EXCHANGE PARTITION {partition} WITH TABLE {new}")


_KEYS = (
    "short",
    "bin",
    "char",
    "latin",
    "decimal",
    "datetime",
    "binary",
    "enum",
    "ubigint",
    "date",
    "int",
    "timestamp",
)
# ER_NO_SUCH_TABLE and its like are mistakes of ours; these a random statement may meet.
_REFUSALS = frozenset(range(1000, 5000)) - {1064, 1146}
