"""Windows find keys by indexes of files as the server compares rows, through changed keys and tables made again.

In:  real MariaDB; one application over many windows, whose files of a few rows have indexes; keys of many types.
Out: silver is equal after some rounds, and in the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.integration.road.test_renames import run
from tests.kit.road import Road
from tests.support.key_indexes import of_small_files
from tests.support.seeds import many
from tests.support.servers import FreshDatabase
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.long]

TEXTS = ("'a'", "'A'", "'a '", "'ä'", "'Ä'", "''", "'b'", "'key 1'", "'KEY 1'", "'zz'")
KEYS: dict[str, Callable[[random.Random], str]] = {
    "INT": lambda draw: str(draw.randrange(-9, 30)),
    "BIGINT UNSIGNED": lambda draw: str(draw.choice((0, 1, 1 << 63, (1 << 64) - 1, draw.randrange(20)))),
    "VARCHAR(40) COLLATE utf8mb4_general_ci": lambda draw: draw.choice(TEXTS),
    "VARCHAR(40) COLLATE utf8mb4_nopad_bin": lambda draw: draw.choice(TEXTS),
    "CHAR(9) COLLATE utf8mb4_unicode_ci": lambda draw: draw.choice(TEXTS),
    "VARBINARY(20)": lambda draw: draw.choice(("''", "0x00", "0x0000", "'a'", "'a '", "0xff")),
    "BINARY(3)": lambda draw: draw.choice(("''", "0x00", "'a'", "'a '", "0xffffff")),
    "DECIMAL(20, 3)": lambda draw: draw.choice(("0", "-0.001", "1.5", "1.50", "12345678901234567.999")),
    "DATETIME(6)": lambda draw: draw.choice(("'2024-01-01'", "'2024-01-01 00:00:00.000001'", "'1000-01-01'")),
    "TIMESTAMP(3)": lambda draw: draw.choice(("'2024-01-01 00:00:00'", "'2024-01-01 00:00:00.001'", "'1999-01-01'")),
    "DATE": lambda draw: draw.choice(("'2024-01-01'", "'2024-02-29'", "'9999-12-31'")),
    "ENUM('x', 'y', 'Z')": lambda draw: draw.choice(("'x'", "'Y'", "'z'", "1", "3")),
    "DOUBLE": lambda draw: draw.choice(("0", "-0.0", "1.5", "1e300", "-1e-300", "0.1")),
    "FLOAT": lambda draw: draw.choice(("0", "-0.0", "1.5", "0.1", "3e38")),
    "BIT(9)": lambda draw: draw.choice(("0", "1", "511")),
}
CHANGES = (
    "ALTER TABLE t0 MODIFY id BIGINT",
    "ALTER TABLE t2 MODIFY id VARCHAR(90) COLLATE utf8mb4_unicode_ci",
    "ALTER TABLE t7 MODIFY id DECIMAL(30, 3)",
    "ALTER TABLE t11 MODIFY id ENUM('x', 'y', 'Z', 'w')",
    "ALTER TABLE t13 MODIFY id DOUBLE",
    "TRUNCATE TABLE t3",
    "CREATE OR REPLACE TABLE t4 (id CHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, n INT)",
    "ALTER TABLE t5 DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)",
    "ALTER TABLE t10 ADD COLUMN more INT",
)


BEFORE = 4  # rounds until the first change, each with an index of its files
ROUNDS = many(BEFORE + len(CHANGES) + 2, 60)


def traffic(draw: random.Random, kind: str, table: str) -> list[str]:
    """Statements that leave no row twice: a key of another case moves to it by UPDATE."""
    statements = []
    for _ in range(draw.randrange(1, 5)):
        key, other, n = KEYS[kind](draw), KEYS[kind](draw), draw.randrange(1000)
        statements.append(
            draw.choice(
                (
                    f"REPLACE INTO {table} (id, n) VALUES ({key}, {n})",
                    f"UPDATE {table} SET n = n + 1000 WHERE id = {key}",
                    f"UPDATE IGNORE {table} SET id = {other} WHERE id = {key}",
                    f"DELETE FROM {table} WHERE id = {key}",
                )
            )
        )
    return statements


def test_silver_is_equal_whatever_a_key_is_and_becomes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_small_files(monkeypatch, 0)
    database, draw = fresh_database(mariadb), random.Random(8)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(
        mariadb,
        database,
        "\n".join(f"CREATE TABLE t{at} (id {kind} PRIMARY KEY, n INT)" for at, kind in enumerate(KEYS)),
    )
    app = Application(BackgroundSession(lambda: spark), road.pipeline, road.lake, BronzeIndex(road.lake))
    for number in range(ROUNDS):
        statements = [s for at, kind in enumerate(KEYS) for s in traffic(draw, kind, f"t{at}")]
        if 0 <= number - BEFORE < len(CHANGES):
            statements.insert(len(statements) // 2, CHANGES[number - BEFORE])
        run(mariadb, database, "\n".join(statements))
        road.capture()
        run_apply(app, report=road.lines.append)
        app.earlier.indexes.wait()
        if number % 5 == 4:
            assert len(road.assert_equal()) == len(KEYS)
    assert len(app.earlier.indexes) > len(KEYS)
