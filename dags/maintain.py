"""Keeps silver and bronze small and fast to read: few files, deleted rows purged, dead files removed.

**Tables read:** `control/cuts`, `control/table_states`, `control/schema_history`, and the logs and files of silver and
bronze.

**Tables written:**

- the silver tables (the same rows in other files);
- `control/cuts`: old cuts are removed; `control/maintenance`: what was done, or why not;
- all tables under `control`: they are compacted, and records older than `keep_records_days` are removed;
- `bronze/segments`: small files are packed, beside capture. Segments older than `keep_bronze_days` are removed once
  every table has them, held tables included (empty: they stay for ever).

**How it runs:** by `schedule`, normally once a day, beside apply. Nothing waits for it, and it waits for nothing. If
apply or a person is faster than a rewrite three times, the table is left to the next run. A cut stays readable for
`keep_cuts_hours`: VACUUM removes no file that it needs, and skips a table in doubt. `dry_run` only shows the work in
the log.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* the lake can't be reached, another maintain runs, or the upkeep of one table failed. The other tables
  are done, and `control/maintenance` has the reason. The task tries again by itself.
- *Failed:* do what the line says. Then clear the task, or wait for the next run. Silver doesn't lag meanwhile.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from tidegate import limits, pipelines
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.maintain_operator import MaintainOperator
from tidegate_airflow.params import params_of

for file in pipelines.good_files():
    pipeline = file.pipeline
    params = params_of(pipeline.maintain) | {
        "table": Param(
            None, title="Table", type=["null", "string"], description="One silver table, database.table; empty: all"
        ),
        "dry_run": Param(False, title="Dry run", type="boolean", description="Only show the work"),
    }
    with DAG(
        schedule=pipeline.maintain.schedule or None,
        description=f"Upkeep of silver of {pipeline.pipeline}",
        **dag_arguments(pipeline, "maintain", params, __doc__),
    ):
        MaintainOperator(
            task_id="maintain",
            pipeline_file=str(file.path),
            conn_id=pipeline.apply.spark_conn_id,
            max_active_tis_per_dag=1,
            execution_timeout=timedelta(seconds=limits.JOB_HANGS_SECONDS),
        )
