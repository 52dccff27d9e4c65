"""Compares silver with the sources' own SELECT while both change. With `repair` it copies different rows again.

**Tables read:** silver, `control/cuts`, `control/table_states`, `bronze/segments`, `control/verification`; on the
source: the tables themselves, and information_schema.

**Tables written:** `control/verification`: per table and range of its key the rows and hashes of both sides, the
verdict, and the `commit_ts` up to which it holds. With `repair`: `bronze/chunks`, and marks in `tidegate.watermark` at
the source. The account needs a grant for them.

**How it runs:** by hand. `tables` names tables as in silver or at the source. Empty: all. With
`verify.each_table_hours` in the pipeline file it also runs once an hour, and takes the due tables, at most
`rows_per_second`. Capture and apply must run meanwhile: each comparison waits for a cut. `repair` copies exactly the
different rows, as a snapshot does, and compares their tables once more. It only names a table without a key.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* a source or the lake can't be reached, or another process reads the source's snapshots.
- *Failed:* rows differ (the log names them), keys changed too often to be settled, or no cut came.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from tidegate import pipelines
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.params import params_of, tables_param
from tidegate_airflow.verify_operator import VerifyOperator

for file in pipelines.good_files():
    pipeline = file.pipeline
    params = params_of(pipeline.verify) | {
        "tables": tables_param("Tables, database.table; empty: those that are due, or all"),
        "repair": Param(
            default=False,
            title="Repair",
            type="boolean",
            description="Copy rows that differ again, and compare once more",
        ),
    }
    with DAG(
        schedule="@hourly" if pipeline.verify.each_table_hours else None,
        description=f"Silver of {pipeline.pipeline} against the sources' own SELECT",
        **dag_arguments(pipeline, "verify", params, __doc__),
    ):
        VerifyOperator(task_id="verify", pipeline_file=str(file.path), max_active_tis_per_dag=1)
