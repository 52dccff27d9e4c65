"""Run each kind of Spark statement once, so that the JVM's class archive (CDS) has the classes that
jobs load.

In:  a folder for a table that nobody needs (tidegate/local/class_archive.py submits this).
Out: nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark_jobs.session.spark import application_session, table_session


def main(folder: Path) -> None:
    """Make a table, change it, read it, and pack it."""
    spark = application_session("classes for the archive")
    session = table_session(spark, large=False)
    table = f"delta.`{folder / 'table'}`"
    rows = session.range(3).selectExpr("id", "CAST(id AS STRING) AS name")
    rows.write.format("delta").save(str(folder / "table"))
    rows.createOrReplaceTempView("changes")
    matched = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    session.sql(f"MERGE INTO {table} t USING (SELECT id + 1 AS id, name FROM changes) s ON t.id = s.id {matched}")
    session.sql(f"DELETE FROM {table} WHERE id = 2")
    session.sql(f"OPTIMIZE {table}")
    session.read.format("delta").load(str(folder / "table")).orderBy("id").limit(1).collect()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
