"""Random DDL and rows under tables.renames, against the source's own SELECT.

In:  a real MariaDB; random statements on columns that rules name, swap and bring together.
Out: silver has what the server has, under the names that the rules give by the test's own reading of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_columns_left_out import fields
from tests.integration.road.test_masks import silver_of
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

NAMES = {"id": "key_id", "c0": "s0", "c1": "c2", "c2": "c1", "c3": "same", "c4": "same", "c5": "C6"}
HISTORY, KEYLESS = 3, 4  # seeds
TYPES = ("INT", "BIGINT", "VARCHAR(30)", "DECIMAL(12,2)")


@dataclass
class Table:
    """A table as the test knows it. columns: name -> index of its type."""

    dice: random.Random
    columns: dict[str, int] = field(default_factory=lambda: {"id": 0, "c0": 0, "c1": 0})
    keys: int = 0

    def clashes(self, names: list[str]) -> bool:
        given = [NAMES.get(name, name).lower() for name in names]
        return len({*given}) < len(given)

    def statement(self) -> str:
        """One more, that brings no two columns under one name."""
        others = [name for name in self.columns if name != "id"]
        free = [f"c{number}" for number in range(8) if f"c{number}" not in self.columns]
        fits = [name for name in free if not self.clashes([*self.columns, name])]
        match self.dice.randrange(8):
            case 0 if fits and len(others) < 5:
                name, kind = self.dice.choice(fits), self.dice.randrange(len(TYPES))
                self.columns[name] = kind
                place = self.dice.choice(["", " FIRST", f" AFTER {self.dice.choice(others)}"])
                return f"ALTER TABLE t ADD COLUMN {name} {TYPES[kind]} DEFAULT {self.dice.choice(['NULL', '7'])}{place}"
            case 1 if len(others) > 1:
                name = self.dice.choice(others)
                del self.columns[name]
                return f"ALTER TABLE t DROP COLUMN {name}"
            case 2:
                old = self.dice.choice(others)
                ways = [new for new in free if not self.clashes([*(n for n in self.columns if n != old), new])]
                if ways:
                    new = self.dice.choice(ways)
                    self.columns[new] = self.columns.pop(old)
                    return f"ALTER TABLE t RENAME COLUMN {old} TO {new}"
            case 3 if "c1" in self.columns and "c2" in self.columns:
                self.columns["c1"], self.columns["c2"] = self.columns["c2"], self.columns["c1"]
                return "ALTER TABLE t RENAME COLUMN c1 TO c2, RENAME COLUMN c2 TO c1"
            case 4:
                ints = [name for name, kind in self.columns.items() if kind == 0 and name != "id"]
                if ints:
                    name = self.dice.choice(ints)
                    self.columns[name] = 1
                    return f"ALTER TABLE t MODIFY {name} BIGINT"
        return self.rows(others)

    def rows(self, others: list[str]) -> str:
        value = self.dice.choice(["NULL", "1", "22", "333"])
        if self.dice.random() < 0.5 or not self.keys:
            self.keys += 1
            return f"INSERT INTO t (id, {self.dice.choice(others)}) VALUES ({self.keys}, {value})"
        key = self.dice.randint(1, self.keys)
        if self.dice.random() < 0.2:
            return f"DELETE FROM t WHERE id = {key}"
        if self.dice.random() < 0.2:
            self.keys += 1
            return f"UPDATE t SET id = {self.keys} WHERE id = {key}"
        return f"UPDATE t SET {self.dice.choice(others)} = {value} WHERE id >= {key}"


@pytest.mark.parametrize(
    ("seed", "mode"), [(1, "writer: merge"), (2, "writer: auto"), (3, "writer: auto"), (4, "writer: auto")]
)
def test_silver_is_what_the_source_selects(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, seed: int, mode: str
) -> None:
    database, table = fresh_database(mariadb), Table(random.Random(seed))
    rule = ", ".join(f"{source}: {silver}" for source, silver in NAMES.items())
    more = f", renames: [{{match: '{database}.t', columns: {{{rule}}}}}]"
    more += f", history: ['{database}.t']" if seed == HISTORY else ""
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=more, apply=f", {mode}")
    road.capture()
    key = "" if seed == KEYLESS else " PRIMARY KEY"
    run(mariadb, database, f"CREATE TABLE t (id INT{key}, c0 INT, c1 INT)\nINSERT INTO t VALUES (0, 1, 2)")
    for _ in range(7):
        statements = [table.statement() for _ in range(table.dice.randint(3, 9))]
        run(mariadb, database, "\n".join(statements))
        road.capture()
        assert not held(road.apply(spark)), statements
        road.assert_equal()
        given = {name: NAMES.get(name, name) for name in sorted(table.columns)}
        if seed != HISTORY:
            assert sorted(n for n in fields(road, database, "t") if not n.startswith("_tg_")) == sorted(given.values())
        shown = ", ".join(f"CAST({name} AS VARCHAR)" for name in given.values())
        columns = f"{shown}, CAST({'_tg_is_current' if seed == HISTORY else 'true'} AS INT)"
        silver = [row[:-1] for row in silver_of(road, f"{database}.t", columns) if row[-1]]
        there = mariadb.query(f"SELECT {', '.join(f'CAST({name} AS CHAR)' for name in given)} FROM {database}.t")
        assert sorted(silver, key=repr) == sorted(there, key=repr), statements
