"""Reads existing rows (older than the captured log) by SELECT, without locks, while everything else runs.

**Tables read:** `control/table_states` (which tables wait for a snapshot), `control/snapshots`; on the source: the
tables themselves, and information_schema.

**Tables written:** `control/snapshots` (requests and progress), `bronze/chunks` (the rows); at the source: marks in
`tidegate.watermark`. The account needs a grant for them.

**How it runs:** a table that waits for its rows starts a run by itself, within seconds. If the pipeline file says
`snapshot: {mode: manual}`, only what a person asks for does, as on tidegate's page, within about a minute. The same run
also reads tables that come to wait meanwhile. In a run by hand, `tables`
names tables as in silver. A complete table is read again in place. Empty: every table that waits. Capture and apply
must run meanwhile: apply takes each wave of rows. The task ends when all tables are read and marked. One reader works
on a source at a time. A failed snapshot is tried again after a minute, then less and less often. `tidegate snapshot
pause`, `resume`, `cancel` and `restart` control it. A cancelled snapshot starts again only when somebody asks for it.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* a source or the lake can't be reached, or another process reads the source's snapshots. The task tries
  again by itself, and continues.
- *Failed:* a grant is missing, or a table can't be read. Do what the line says. Then clear the task, or wait: it is
  tried again by itself, less and less often. A run by hand also fails if somebody pauses or
  cancels one of its tables.
"""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate import pipelines
from tidegate_airflow.assets import waiting_asset
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.params import params_of, tables_param
from tidegate_airflow.snapshot_operator import SnapshotOperator

for file in pipelines.good_files():
    pipeline = file.pipeline
    params = params_of(pipeline.snapshot) | {
        "tables": tables_param("Tables, database.table as in silver; empty: every table that waits for a snapshot")
    }
    arguments = dag_arguments(pipeline, "snapshot", params, __doc__)
    # Never paused by failures: a table that can't be read must not stop the others. Each table's own tries become rare.
    arguments["max_consecutive_failed_dag_runs"] = 0
    with DAG(
        schedule=[waiting_asset(pipeline)],
        description=f"Rows of {pipeline.pipeline} from before its log was followed",
        **arguments,
    ):
        SnapshotOperator(task_id="snapshot", pipeline_file=str(file.path), max_active_tis_per_dag=1)
