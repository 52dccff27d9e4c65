"""Turns the new segments of bronze into silver: one Delta transaction per table, up to one cut of commit time.

**Tables read:** `bronze/segments`, `control/schema_history`, `control/table_states`, and the silver tables that
change.

**Tables written:** the silver tables (with the applied position inside the same transaction), `control/schema_history`
(DDL), `control/table_states` (why a table is held), `control/ledger` (every byte accounted for), `control/cuts`.

**How it runs:** the pipeline's bronze asset starts a run when bronze has new changes. While sources only prove that
they are quiet, it starts one every `quiet_seconds`. Events that come during a run start one run after it. Mode `batch`
applies what is in bronze and ends. Mode `micro_batch` keeps one Spark application for `run_for_seconds`, or until
`idle_seconds` pass without changes. You may run it again, kill it or clear it: each window is applied exactly once.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* the lake can't be reached, or something ended Spark, or Spark hung for a day. The task tries again by
  itself.
- *Failed:* do what the line says. Then clear the task, or wait for the next bronze event. The DAG pauses itself after
  five failures in a row: unpause it then.
- *Green, but a table doesn't change:* that table is held, and the others continue. `control/table_states` has the
  reason.
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
    bronze, silver = bronze_asset(pipeline), silver_asset(pipeline)
    with DAG(
        schedule=[bronze],
        description=f"Bronze of {pipeline.pipeline} into silver",
        **dag_arguments(pipeline, "apply", params, __doc__),
    ):
        ApplyOperator(
            task_id="apply",
            pipeline_file=str(file.path),
            conn_id=pipeline.apply.spark_conn_id,
            inlets=[bronze, silver] if pipeline.completeness.each_minute else [bronze],
            outlets=[silver],
            max_active_tis_per_dag=1,
            execution_timeout=timedelta(seconds=pipeline.apply.run_for_seconds + limits.JOB_HANGS_SECONDS),
        )
