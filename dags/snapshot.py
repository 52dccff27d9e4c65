"""Reads the rows that tables held before capture began, by SELECT and without locks, while everything goes on.

**Tables read:** `control/table_states` (which tables wait for a snapshot), `control/snapshots`; on the source: the
tables themselves, and information_schema.

**Tables written:** `control/snapshots` (requests, and how far they are), `bronze/chunks` (the rows); on the source:
marks in `tidegate.watermark`, for which the account needs a grant.

**How it runs:** a table that waits for its rows starts a run by itself, within seconds, unless the pipeline file says
`snapshot: {mode: manual}`; what comes to wait meanwhile is read in the same run. By hand `tables` names tables as in
silver, of which those that are whole are read again in place; empty: every table that waits. The pipeline's capture and
apply run meanwhile: each wave of rows is taken by apply, and the task ends when all tables are read and marked. One
reader works on a source at a time. A table whose snapshot fails is tried again after a minute, then ever more seldom.
`tidegate snapshot pause`, `resume`, `cancel` and `restart` work on it from outside; one that was cancelled isn't begun
again until somebody asks for it.

**When it is red:** the task's log ends with one line: what, where, what to do.

- *Up for retry:* a source or the lake can't be reached, or somebody else reads the source's snapshots. It tries again
  by itself, and goes on where it was.
- *Failed:* a grant is missing, or a table can't be read: do what the line says, then clear the task, or wait: it is
  tried again by itself, ever more seldom.
"""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate import pipelines
from tidegate.config import SnapshotMode
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
    # A table that can't be read must not keep others from being read: each table's own tries grow rare.
    arguments["max_consecutive_failed_dag_runs"] = 0
    with DAG(
        schedule=[waiting_asset(pipeline)] if pipeline.snapshot.mode is SnapshotMode.AUTO else None,
        description=f"Rows of {pipeline.pipeline} from before its log was followed",
        **arguments,
    ):
        SnapshotOperator(task_id="snapshot", pipeline_file=str(file.path), max_active_tis_per_dag=1)
