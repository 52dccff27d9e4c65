"""Count the different rows of a rebuilt table and silver at the same moment.

In:  a lake, a table, the path of its rebuilt copy, a moment; Spark for large tables, and for what DuckDB can't read.
Out: differences_of(): how many rows each has alone.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING

from spark_jobs.session.background import BackgroundSession
from tidegate import limits, tables
from tidegate.errors import HostLacks
from tidegate.lake.files import LakeFiles
from tidegate.lake.rebuild.rebuild_lake import silver_version
from tidegate.query.rows_apart import TableAt, rows_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# These columns aren't compared: the numbers of equal rows, and the time of a row's last change, may
# differ.
_NOT_COMPARED = frozenset({tables.OCCURRENCE, tables.ROW_HASH})


def differences_of(
    lake: LakeFiles, pair: tuple[str, str], to: str, at_ts: int, spark: BackgroundSession, where: str = "true"
) -> tuple[int, int] | None:
    """(rows of the new table alone, rows of silver alone); None when silver can't be read at at_ts.

    pair: database and name of the table. to: the new one's path in the lake. where: SQL of the rows that are compared.
    """
    database, name = pair
    version = silver_version(lake, f"{database}.{name}", at_ts)
    if version is None:
        return None
    silver = tables.silver_path(database, name)
    new = lake.log(to).state()
    keyless = any(field["name"] == tables.OCCURRENCE for field in new.schema["fields"])
    left_out = _NOT_COMPARED | {tables.COMMIT_TS} if keyless else frozenset()
    if lake.is_local and sum(file.size for file in new.files) <= limits.COMPARE_LOCAL_BYTES:
        new_table, old_table = TableAt(lake.uri(to)), TableAt(lake.uri(silver), version)
        with suppress(HostLacks):  # DuckDB's extension, or a reader of some feature: Spark has it
            return rows_apart(new_table, old_table, left_out=left_out, where=where)
    old_rows = _at(spark.session, lake.spark_uri(silver), version)
    return _apart(_at(spark.session, lake.spark_uri(to), None).where(where), old_rows.where(where), left_out)


def _apart(new: DataFrame, old: DataFrame, left_out: AbstractSet[str]) -> tuple[int, int]:
    columns = [f"`{name.replace('`', '``')}`" for name in old.columns if name not in left_out]
    if sorted(old.columns) != sorted(new.columns):
        return new.count(), old.count()
    old, new = old.select(*columns), new.select(*columns)
    return new.exceptAll(old).count(), old.exceptAll(new).count()


def _at(spark: SparkSession, uri: str, version: int | None) -> DataFrame:
    of = "" if version is None else f" VERSION AS OF {version}"
    return spark.sql("SELECT * FROM delta.`" + uri.replace("`", "``") + "`" + of)
