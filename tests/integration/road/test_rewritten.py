"""ALTERs that rewrite values at a real server, which no log shows: silver equals its SELECT, or is held."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 60

Draw = Callable[[random.Random], str]


def integer(low: int, high: int) -> Draw:
    return lambda rng: str(rng.choice((low, high, max(0, low), rng.randint(low, high))))


def decimal(whole: int, scale: int) -> Draw:
    def draw(rng: random.Random) -> str:
        top = 10**whole - 1
        number = rng.choice((0, 1, top, rng.randint(0, top)))
        return f"{rng.choice(('', '-'))}{number}.{rng.randrange(10**scale):0{scale}}"

    return draw


def text(most: int, letters: str = "abcXYZ 019'%_-") -> Draw:
    def draw(rng: random.Random) -> str:
        found = "".join(rng.choices(letters, k=rng.randint(0, most)))
        return "'" + found.replace("'", "''") + "'"

    return draw


def moment(form: str) -> Draw:
    def draw(rng: random.Random) -> str:
        day = f"{rng.randint(1000, 9999)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        return "'" + form.format(day=day, clock=clock, ms=f"{rng.randrange(1000):03}") + "'"

    return draw


WIDE = "aé漢Я \u0301z"
CASES: tuple[tuple[str, str, Draw], ...] = (
    ("BIGINT", "INT", integer(-(2**31), 2**31 - 1)),
    ("BIGINT", "TINYINT UNSIGNED", integer(0, 255)),
    ("INT", "INT UNSIGNED", integer(0, 2**31 - 1)),
    ("BIGINT UNSIGNED", "BIGINT", integer(0, 2**63 - 1)),
    ("INT UNSIGNED", "MEDIUMINT", integer(0, 2**23 - 1)),
    ("BIGINT", "BIGINT UNSIGNED", integer(0, 2**63 - 1)),
    ("INT", "DECIMAL(12,2)", integer(-(2**31), 2**31 - 1)),
    ("BIGINT UNSIGNED", "DECIMAL(20,0)", integer(0, 2**64 - 1)),
    ("DECIMAL(12,2)", "DECIMAL(9,3)", decimal(6, 2)),
    ("DECIMAL(30,6)", "DECIMAL(12,6)", decimal(6, 6)),
    ("BIGINT", "VARCHAR(20)", integer(-(2**63), 2**63 - 1)),
    ("BIGINT UNSIGNED", "TEXT", integer(0, 2**64 - 1)),
    ("SMALLINT", "CHAR(6)", integer(-(2**15), 2**15 - 1)),
    ("DECIMAL(18,6)", "VARCHAR(30)", decimal(12, 6)),
    ("DECIMAL(10,0)", "VARCHAR(11)", lambda rng: str(rng.randint(-(10**10) + 1, 10**10 - 1))),
    ("VARCHAR(60)", "VARCHAR(12)", text(12)),
    ("VARCHAR(60)", "CHAR(12)", text(12)),
    ("CHAR(20)", "VARCHAR(9)", text(9)),
    ("LONGTEXT", "TEXT", text(40, WIDE)),
    ("TEXT", "VARCHAR(50)", text(50, WIDE)),
    ("VARCHAR(40) CHARACTER SET utf8mb4", "VARCHAR(40) CHARACTER SET utf8mb3", text(40, WIDE)),
    ("VARCHAR(40) CHARACTER SET utf8mb4", "VARCHAR(20) CHARACTER SET latin1", text(20)),
    ("VARCHAR(40) CHARACTER SET utf8mb3", "CHAR(20) CHARACTER SET ascii", text(20)),
    ("ENUM('a','bb','c c')", "VARCHAR(3)", lambda rng: rng.choice(("'a'", "'bb'", "'c c'"))),
    ("ENUM('a','bb','c c')", "ENUM('c c','a','new')", lambda rng: rng.choice(("'a'", "'c c'"))),
    ("SET('x','y','z')", "VARCHAR(10)", lambda rng: rng.choice(("''", "'x'", "'x,z'", "'y,z'"))),
    ("VARBINARY(40)", "VARBINARY(10)", lambda rng: f"X'{rng.randbytes(rng.randint(0, 10)).hex()}'"),
    ("LONGBLOB", "BLOB", lambda rng: f"X'{rng.randbytes(rng.randint(0, 30)).hex()}'"),
    ("DATETIME(6)", "DATETIME(3)", moment("{day} {clock}.{ms}000")),
    ("DATETIME(3)", "DATETIME", moment("{day} {clock}.000")),
    ("DATETIME", "DATE", moment("{day} 00:00:00")),
    ("DATE", "DATETIME", moment("{day}")),
    ("DATE", "DATETIME(3)", moment("{day}")),
)


def test_values_that_fit_their_new_type_are_what_the_server_made_of_them(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, rng = fresh_database(any_server), random.Random(20261121)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    columns = ", ".join(f"c{at} {old}" for at, (old, _, _) in enumerate(CASES))
    changes = ", ".join(f"MODIFY c{at} {new}" for at, (_, new, _) in enumerate(CASES))
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        for table, key in (("keyed", "id INT PRIMARY KEY"), ("bag", "id INT")):
            cursor.execute(f"CREATE TABLE {table} ({key}, {columns})")
            for row in range(ROWS):
                values = ["NULL" if rng.random() < 0.1 else draw(rng) for _, _, draw in CASES]
                cursor.execute(f"INSERT INTO {table} VALUES ({row}, {', '.join(values)})")
            connection.commit()
            cursor.execute(f"ALTER TABLE {table} {changes}")
            cursor.execute(f"DELETE FROM {table} WHERE id < 10")
        cursor.execute("CREATE TABLE nulls (id INT PRIMARY KEY, n INT, was BIGINT)")
        cursor.execute("INSERT INTO nulls VALUES (1, 1, 1)")
        connection.commit()
        cursor.execute("ALTER TABLE nulls MODIFY n INT NOT NULL, RENAME COLUMN was TO is_now")
        cursor.execute("ALTER TABLE nulls CHANGE is_now text_now VARCHAR(20) NOT NULL")
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    assert road.assert_equal() == {"keyed": ROWS - 10, "bag": ROWS - 10, "nulls": 1}


DOUBTFUL = (
    ("BIGINT", "TINYINT", "1000"),
    ("INT", "INT UNSIGNED", "-1"),
    ("DECIMAL(9,2)", "DECIMAL(9,1)", "1.25"),
    ("VARCHAR(20) CHARACTER SET utf8mb4", "VARCHAR(20) CHARACTER SET utf8mb3", "'\U0001f600'"),
    ("DATETIME(3)", "DATETIME", "'2024-02-03 04:05:06.789'"),
    ("INT", "INT NOT NULL", "NULL"),
)


def test_values_that_do_not_fit_hold_their_table_and_say_why(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET sql_mode = ''")
        for at, (old, new, value) in enumerate(DOUBTFUL):
            cursor.execute(f"CREATE TABLE t{at} (id INT PRIMARY KEY, c {old})")
            cursor.execute(f"INSERT INTO t{at} VALUES (1, {value})")
            connection.commit()
            cursor.execute(f"ALTER TABLE t{at} MODIFY c {new}")
    road.capture()
    app = road.apply(spark)
    held = {name: state for name, state in app.states.items() if state.state == "held"}
    assert set(held) == {f"{database}.t{at}" for at in range(len(DOUBTFUL))}
    assert all(state.lacks_rows for state in held.values())
