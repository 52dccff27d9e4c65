"""A lake with rows of a person, who is to be erased from it.

In:  a real MariaDB's database, a folder; Spark, or none where apply must need none.
Out: the road to the lake. Its table t had a row of PERSON, which is deleted: bronze has both changes.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tidegate.local.server import Server

PERSON = "ada-4711@example"


def road_with_person(mariadb: Server, database: str, folder: Path, spark: SparkSession | None = None) -> Road:
    road = Road(mariadb, folder, include=f"{database}.*")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(60), born DATE)
        INSERT INTO t VALUES (1, '{PERSON}', NULL), (2, 'bob', NULL)
        DELETE FROM t WHERE id = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    return road
