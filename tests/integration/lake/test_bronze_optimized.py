"""Bronze and control tables that somebody else's OPTIMIZE wrote anew: all goes on, by the same rows.

In:  a lake at work; Spark, or delta-rs, over every table of it.
Out: the server's own rows; a rebuilt table is equal; upkeep packs the files.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.integration.lake.test_rebuild import rebuilt
from tests.integration.road.test_renames import held
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.lake.bronze.file import FILE_SCHEMA, reading
from tidegate.lake.bronze.log import bronze_log, files_of
from tidegate.lake.bronze.upkeep import pack
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]


def step(road: Road, database: str, number: int, spark: SparkSession) -> None:
    road.server.query(f"REPLACE INTO {database}.t VALUES (1, {number}), ({number + 10}, {number})")
    road.capture()
    road.lake = LakeFiles(road.lake.root)
    assert not held(road.apply(spark))


@pytest.mark.parametrize("writer", ["Spark", "delta-rs"])
def test_tables_that_another_writer_optimized_are_read_as_before(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", changelog: ['{database}.*']")
    road.capture()
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    for number in range(3):
        step(road, database, number, spark)
    logs = (tmp_path / "lake").rglob("_delta_log")
    for place in [log.parent for log in logs if "silver" not in log.parts]:
        if writer == "Spark":
            spark.sql(f"OPTIMIZE delta.`{place}`")
        else:
            DeltaTable(place).optimize.compact()
    (file,) = files_of(bronze_log(road.lake).state())
    assert file.rows > 3
    for number in range(3, 5):
        step(road, database, number, spark)
    assert road.assert_equal() == {"t": 6}
    assert rebuilt(road, spark, f"{database}.t")[:2] == (0, "equal")
    packed = pack(road.lake, [file], "zstd")
    with reading(road.lake, packed["path"]) as parquet:
        assert parquet.schema_arrow.equals(FILE_SCHEMA)
