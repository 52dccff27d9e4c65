"""A table as Spark reads it by JDBC, to nobody or into a Delta table, in a process of its own.

In:  per run one line of JSON on standard input: {"host", "port", "user", "password", "database", "table", "rows",
     "times", "target"}; rows: of the table; target: the folder of a Delta table to be made, or "" for Spark's sink
     that keeps nothing.
Out: one line of JSON: {"rows": rows read, of all times, "values": as many, when there are any}.

One partition, so one connection, as the others have; rows come in portions (fetchsize), or the driver would hold them
all. It is MariaDB's connector under a MySQL URL, from which Spark learns how names are quoted. The JVM has Java's own
settings: they are best for long work.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "Spark JDBC"
JARS: Final = ("MariaDB-Connector-J 3.5.6", ("org.mariadb.jdbc:mariadb-java-client:3.5.6",))
_FETCH_ROWS: Final = 10_000


def program(root: Path, cache: Path) -> list[str]:
    """The command that runs this file with the connector's jar and Delta's. Raises Missing."""
    from benchmarks.peers import maven
    from tidegate.local import jars

    paths = f"{maven.jars(JARS, cache)}/*:{jars.ensure(root)}/*"
    return ["env", f"PYSPARK_PYTHON={sys.executable}", sys.executable, str(Path(__file__).resolve()), paths]


def session(class_path: str) -> SparkSession:
    """On two cores, with Delta's settings as its own pages give them."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("Spark JDBC")
    for name, value in {
        "spark.driver.extraClassPath": class_path,
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read(spark: SparkSession, asked: dict[str, Any]) -> dict[str, int]:
    """The whole table over one connection, as often as asked."""
    rows = 0
    for _ in range(asked["times"]):
        found = (
            spark.read.format("jdbc")
            .option("url", f"jdbc:mysql://{asked['host']}:{asked['port']}/{asked['database']}?permitMysqlScheme")
            .option("driver", "org.mariadb.jdbc.Driver")
            .option("user", asked["user"])
            .option("password", asked["password"])
            .option("dbtable", asked["table"])
            .option("fetchsize", str(_FETCH_ROWS))
            .load()
        )
        if asked["target"]:
            found.write.format("delta").mode("overwrite").save(asked["target"])
            rows += spark.read.format("delta").load(asked["target"]).count()  # of statistics: no row is read
        else:
            found.write.format("noop").mode("overwrite").save()
            rows += asked["rows"]  # that sink can't count; it fails when a row does
    return {"rows": rows, "values": rows}


if __name__ == "__main__":
    warm = session(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(read(warm, json.loads(line))), flush=True)
