"""Tells other DAGs how far silver is, once a minute while a run of apply goes on.

**Tables read:** `control/cuts`, `control/table_states`.

**Tables written:** none. When the task succeeds, the asset `<name>__silver` gets an event.

**How it runs:** the DAG exists with `completeness.each_minute` in the pipeline file. A watcher looks once a minute, and
starts a run if the same run of apply has published a further cut since its last look. A run of apply makes an event at
its end, if the newest event doesn't say the same.

**When it is red:** the lake can't be read. The task tries again by itself. *Skipped:* the newest event says the same.
"""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate import pipelines
from tidegate_airflow.assets import cuts_asset, silver_asset
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.progress_operator import ProgressOperator

for file in pipelines.good_files():
    pipeline = file.pipeline
    if not pipeline.completeness.each_minute:
        continue
    silver = silver_asset(pipeline)
    with DAG(
        schedule=[cuts_asset(pipeline)],
        description=f"How far silver of {pipeline.pipeline} is, each minute",
        **dag_arguments(pipeline, "progress", {}, __doc__),
    ):
        ProgressOperator(
            task_id="progress",
            pipeline_file=str(file.path),
            inlets=[silver],
            outlets=[silver],
            max_active_tis_per_dag=1,
        )
