"""Keeps silver and bronze small and quick to read: few files, deleted rows purged, dead files removed.

**Tables read:** `control/cuts`, `control/table_states`, `control/schema_history`, and the logs and files of silver and
bronze.

**Tables written:** the silver tables (the same rows in other files), `control/cuts` (cuts that are too old go),
`control/maintenance` (what was done, or why not); all tables under `control` are compacted, and
their records of before `keep_records_days` go. Small files of
`bronze/segments` are packed, beside capture; segments of before `keep_bronze_days` go once every table has them, one
that is held or waits included (empty: they stay for ever).

**How it runs:** by `schedule`, meant to be once a day, beside apply. Nothing waits for it and it waits for nobody: a
rewrite that apply or a person was quicker than is tried again, then left to the next run. A cut that was published
less than `keep_cuts_hours` ago stays readable: VACUUM removes no file that it needs, and leaves a table alone when
it can't be sure. `dry_run` says in the log what would be done.

**When it is red:** the task's log ends with one line: what, where, what to do.

- *Up for retry:* the lake can't be reached, another maintain is running, or a table could not be maintained: the
  others were, and `control/maintenance` says why. It tries again by itself.
- *Failed:* do what the line says, then clear the task, or wait for the next run. Data is not behind meanwhile.
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
        "dry_run": Param(False, title="Dry run", type="boolean", description="Only say what would be done"),
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
