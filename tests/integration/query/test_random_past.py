"""Random histories, asked for random moments whose cuts are gone, against plain replay.

In:  a real MariaDB; a random script of rows and statements on two tables; windows, kills and others' writers between.
Out: each moment from the known beginning on has the rows of a model in plain Python, or is refused by name.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.query.test_history_forgotten import spark_table
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.known_history import check, forget_cuts, since, taken
from tests.support.past import Past
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = "(id INT PRIMARY KEY, n INT, s VARCHAR(9))"
NAMES = ("a", "b")
WINDOWS, STEPS = 6, 7
KILLS = (
    "delta_after_commit:4",
    "apply_after_merge",
    "delta_before_commit:3",
    "apply_before_publish",
    "delta_after_commit:6",
)


@dataclass
class Model:
    """Tables as a plain replay of the script has them: name -> id -> (n, s); a name that isn't there: no table."""

    dice: random.Random
    tables: dict[str, dict[int, tuple[int, str]]] = field(default_factory=dict)

    def step(self) -> list[str]:
        """A transaction of a few rows, or a statement; what it does here it does at the source."""
        name = self.dice.choice(NAMES)
        rows = self.tables.get(name)
        if rows is None:
            self.tables[name] = {}
            return [f"CREATE TABLE {name} {COLUMNS}"]
        match self.dice.randrange(16):
            case 0:
                rows.clear()
                return [f"TRUNCATE TABLE {name}"]
            case 1:
                del self.tables[name]
                return [f"DROP TABLE {name}"]
            case 2:
                del self.tables[name]
                self.tables[name] = {}
                return [f"CREATE OR REPLACE TABLE {name} {COLUMNS}"]
            case 3 if len(self.tables) == len(NAMES):
                self.tables["a"], self.tables["b"] = self.tables["b"], self.tables["a"]
                return ["RENAME TABLE a TO x, b TO a, x TO b"]
        return [statement for _ in range(self.dice.randint(1, 3)) for statement in self.change(name, rows)]

    def change(self, name: str, rows: dict[int, tuple[int, str]]) -> list[str]:
        number, text = self.dice.randrange(100), self.dice.choice("xyz")
        key = self.dice.randrange(12)
        match self.dice.randrange(5):
            case 0 if key in rows:
                del rows[key]
                return [f"DELETE FROM {name} WHERE id = {key}"]
            case 1:
                rows.update({other: (n + 1, s) for other, (n, s) in rows.items()})
                return [f"UPDATE {name} SET n = n + 1"]
            case 2 if rows and key + 20 not in rows:
                old = self.dice.choice(sorted(rows))
                rows[key + 20] = rows.pop(old)
                return [f"UPDATE {name} SET id = {key + 20} WHERE id = {old}"]
        rows[key] = (number, text)
        return [f"REPLACE INTO {name} VALUES ({key}, {number}, '{text}')"]

    def as_selected(self) -> dict[str, list[dict[str, object]]]:
        return {
            name: [{"id": key, "n": n, "s": s} for key, (n, s) in sorted(rows.items())]
            for name, rows in self.tables.items()
        }


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("seed", "writer"), [(1, "positional"), (2, "merge")])
def test_a_random_history_is_what_plain_replay_says(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, seed: int, writer: str
) -> None:
    database = fresh_database(mariadb)
    names = ", ".join(f"'{database}.{name}'" for name in (*NAMES, "tick"))
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: [{names}]", apply=f", writer: {writer}")
    road.capture()
    model, past = Model(random.Random(seed)), Past(mariadb, database, NAMES)
    past.begin()
    asked = 0
    for number in range(WINDOWS):
        for _ in range(STEPS):
            past.done(*model.step())
            wanted = model.as_selected()
            seen = {name: sorted(rows, key=lambda row: row["id"]) for name, rows in past.states[-1].items()}
            assert seen == wanted, "the model itself is wrong"
            past.states[-1] = wanted
        if model.dice.randrange(3) == 0:
            road.capture()
            killed(spark, road.file, KILLS[number % len(KILLS)])
        if number == WINDOWS // 2 and "a" in model.tables:
            others(road, spark, f"{database}.a", model.dice)
        taken(road, spark)
        if model.dice.randrange(3) == 0:
            forget_cuts(road)
            asked += sum(check(road, past, name, spark) for name in model.tables)
    past.done()
    taken(road, spark)
    forget_cuts(road)
    asked += sum(check(road, past, name, spark) for name in model.tables)
    print({name: since(road, f"{database}.{name}") for name in model.tables}, asked)
    assert asked > WINDOWS * STEPS // 3


def others(road: Road, spark: SparkSession, name: str, dice: random.Random) -> None:
    """Another writer packs the table, or takes old versions away."""
    table = spark_table(road, name)
    if dice.randrange(2):
        spark.sql(f"OPTIMIZE {table} FULL")
    else:
        spark.sql(f"DELETE FROM {table} WHERE NOT _tg_is_current")
