"""A changelog of a table whose values silver hides: none of them gets there from the rule on.

In:  a real server; tables with a changelog that are masked, or have a column left out, from the start or later.
Out: the table is held by name, and its changelog has no plain value from the rule on.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate import config
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

PLAIN, BEFORE = "secret-4711", "known-before"


@pytest.mark.parametrize("writer", ["auto", "merge"])
def test_no_hidden_value_gets_into_a_changelog(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    rules = (
        f", masks: [{{match: '{database}.m.*', columns: [v], how: constant, value: x}}]"
        f", columns: [{{match: '{database}.c.*', exclude: [v]}}]"
    )
    more = f", changelog: ['{database}.*']"
    road = Road(
        mariadb, tmp_path, include=f"{database}.*", extra=f"{more}, soft_delete: []", apply=f", writer: {writer}"
    )
    road.capture()
    for name in ("m_old", "c_old"):
        run(mariadb, database, f"""
            CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(40))
            INSERT INTO {name} VALUES (1, '{BEFORE}')
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert "changelog" in places_of(tmp_path / "lake", BEFORE)

    plain = road.text
    road.file.write_text(plain.replace(", soft_delete: []", rules))
    road.pipeline = config.load(road.file)
    run(mariadb, database, """
        CREATE TABLE m_new (id INT PRIMARY KEY, v VARCHAR(40))
        CREATE TABLE c_new (id INT PRIMARY KEY, v VARCHAR(40))
        CREATE TABLE other (id INT PRIMARY KEY)
    """)  # fmt: skip
    for name in ("m_old", "c_old", "m_new", "c_new"):
        run(mariadb, database, f"""
            INSERT INTO {name} VALUES (2, '{PLAIN}')
            UPDATE {name} SET v = '{PLAIN} b' WHERE id = 2
            DELETE FROM {name}
        """)  # fmt: skip
    road.capture()
    reasons = held(road.apply(spark))
    assert reasons.keys() == {f"{database}.{name}" for name in ("m_old", "c_old", "m_new", "c_new")}
    assert all("its changelog would have" in reason for reason in reasons.values()), reasons
    assert places_of(tmp_path / "lake", PLAIN) <= {"bronze"}
    run(mariadb, database, f"INSERT INTO m_old VALUES (3, '{PLAIN}')\nINSERT INTO c_new VALUES (3, '{PLAIN}')")
    road.capture()
    road.apply(spark)
    assert places_of(tmp_path / "lake", PLAIN) <= {"bronze"}
