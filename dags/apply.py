"""Turns what bronze has gained into silver: one Delta transaction per table, up to one cut of commit time.

**Tables read:** `bronze/segments`, `control/schema_history`, `control/table_states`, and the silver tables that it
merges into.

**Tables written:** the silver tables (with the applied position inside the same transaction), `control/schema_history`
(DDL), `control/table_states` (why a table is held), `control/ledger` (every byte accounted for), `control/cuts`.

**How it runs:** the pipeline's bronze asset starts a run whenever bronze has gained changes, and every
`quiet_seconds` while sources only prove that they are quiet; what comes while a run is going on is merged into
the next. mode `batch` applies what is there and ends; `micro_batch` keeps one Spark application looking for
`run_for_seconds`, or until no changes came for `idle_seconds`. Running it again, killing it or clearing it is
harmless: each window is applied exactly once.

**When it is red:** the task's log ends with one line: what, where, what to do.

- *Up for retry:* the lake can't be reached, or Spark was ended from outside, or hung for a day. It tries again by
  itself.
- *Failed:* do what the line says, then clear the task, or wait: the next bronze event starts a run. It pauses
  itself after five failures in a row: unpause it then.
- *Green, but a table doesn't move:* that table is held, the others go on; `control/table_states` says why.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from tidegate import limits, pipelines
from tidegate_airflow.apply_operator import ApplyOperator
from tidegate_airflow.assets import bronze_asset, silver_asset
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.params import params_of

for file in pipelines.good_files():
    pipeline = file.pipeline
    params = params_of(pipeline.apply)
    bronze = bronze_asset(pipeline)
    with DAG(
        schedule=[bronze],
        description=f"Bronze of {pipeline.pipeline} into silver",
        **dag_arguments(pipeline, "apply", params, __doc__),
    ):
        ApplyOperator(
            task_id="apply",
            pipeline_file=str(file.path),
            conn_id=pipeline.apply.spark_conn_id,
            inlets=[bronze],
            outlets=[silver_asset(pipeline)],
            max_active_tis_per_dag=1,
            execution_timeout=timedelta(seconds=pipeline.apply.run_for_seconds + limits.JOB_HANGS_SECONDS),
        )
