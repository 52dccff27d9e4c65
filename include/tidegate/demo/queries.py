"""Two commands to paste into a shell: `tidegate query`, and plain Spark SQL, over the demo's silver.

In:  the project's root and the lake.
Out: command lines; Spark's settings for Delta as a properties file, and a script that uses it.
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
    return f"{shlex.quote(_shown(program))} query demo {shlex.quote(_SQL.format(orders='shop.orders'))}"


def spark_command(lake: Path, state: Path, jars: Path) -> str:
    """Writes state/spark.conf and a script state/spark-sql with it; gives the command, short enough to be read."""
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
    command = shlex.join([str(home / "bin" / "spark-sql"), "--properties-file", str(properties), "-S", "-e"])
    script = state / "spark-sql"
    script.write_text(
        f"#!/bin/sh\n# Plain Spark SQL, with the settings of Delta.\nexport SPARK_HOME={shlex.quote(str(home))}\n"
        f'exec {command} "$1"\n'
    )
    script.chmod(0o755)
    sql = _SQL.format(orders=f"delta.`{lake / 'silver' / 'shop' / 'orders'}`")
    return f"{shlex.quote(_shown(script))} {shlex.quote(sql)}"


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is pinned in requirements.txt"
    assert spec.submodule_search_locations, f"{name} is a package"
    return Path(next(iter(spec.submodule_search_locations)))
