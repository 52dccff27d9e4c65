"""Two commands to paste into a shell: `tidegate query`, and plain Spark SQL, over the demo's silver.

In:  the project's root and the lake.
Out: command lines with real paths; the settings that Spark needs for Delta, as a properties file.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

_SQL = "SELECT channel, status, count(*) AS orders, sum(total) AS total FROM {orders} GROUP BY ALL ORDER BY ALL"


def query_command() -> str:
    """As short as it can be typed: from the folder of the checkout, or of the environment."""
    program = Path(sys.executable).with_name("tidegate")
    here = Path.cwd()
    shown = program.relative_to(here) if program.is_relative_to(here) else program
    return f"{shlex.quote(str(shown))} query demo {shlex.quote(_SQL.format(orders='shop.orders'))}"


def spark_command(lake: Path, state: Path, jars: Path) -> str:
    """Writes state/spark.conf and gives the command that uses it."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Duser.timezone=UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # No Hive metastore: tables are named by their paths.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(state / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
    }
    state.mkdir(parents=True, exist_ok=True)
    properties = state / "spark.conf"
    properties.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    home = _package("pyspark")
    sql = _SQL.format(orders=f"delta.`{lake / 'silver' / 'shop' / 'orders'}`")
    command = [str(home / "bin" / "spark-sql"), "--properties-file", str(properties), "-S", "-e", sql]
    return f"SPARK_HOME={shlex.quote(str(home))} {shlex.join(command)}"


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is pinned in requirements.txt"
    assert spec.submodule_search_locations, f"{name} is a package"
    return Path(next(iter(spec.submodule_search_locations)))
