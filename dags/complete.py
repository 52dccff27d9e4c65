"""Tells other DAGs that an hour is complete: every commit of it is in silver, and none can come any more.

**Tables read:** `control/cuts`, `control/table_states`, `control/followed`, and with `completeness.verified`
`control/verification`.

**Tables written:** none. When the task succeeds, Airflow adds the hours to the partitions of its outlets.

**How it runs:** the DAG exists with `completeness.hourly` in the pipeline file. A watcher looks at the lake every five
seconds. It starts a run when a table, or all tables together, have one more complete hour. A partition's key is the
beginning of the hour in UTC, as `2026-11-26T08:00:00`. The hour is that of the commit at the source. An added hour is
never removed. The first run adds the newest complete hour; later runs add every hour since. A table that is held, or
lacks rows until a snapshot ends, gets its hours when it follows again. The same goes for all tables together. While the
cut goes on without a source, all tables together wait for it, and so do the targets of routes.

**When it is red:** the lake can't be read. The task tries again by itself. *Skipped:* there was no hour to add.
"""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate import pipelines
from tidegate_airflow.assets import added_hours_asset, hours_asset
from tidegate_airflow.complete_operator import CompleteOperator, assets_of
from tidegate_airflow.dag_arguments import dag_arguments

for file in pipelines.good_files():
    pipeline = file.pipeline
    if not pipeline.completeness.hourly:
        continue
    with DAG(
        schedule=[hours_asset(pipeline)],
        description=f"Hours of {pipeline.pipeline} that are complete in silver",
        **dag_arguments(pipeline, "complete", {}, __doc__),
    ):
        CompleteOperator(
            task_id="complete",
            pipeline_file=str(file.path),
            inlets=[added_hours_asset(pipeline)],
            outlets=assets_of(pipeline),
            max_active_tis_per_dag=1,
        )
