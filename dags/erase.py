"""Erases a person's rows from the whole lake: bronze, snapshots, silver with its past, changelogs,
older versions.

**Tables read:** `bronze/segments`, `bronze/chunks`, `control/schema_history`, `control/cuts`, the
silver table and its changelog; the table at the source, which must not have the rows any more.

**Tables written:** the same of bronze, silver and the changelog, without the rows; `control/cuts`:
older cuts go; `control/actions`: the user, the time, the result. The condition is a hash there.

**How it runs:** by hand only. First delete the rows at the source. Then trigger it as it is: a dry
run, whose log has the counts. Then trigger it again without `dry_run`. The task's result is the
certificate: the table, its keys' count, new files, the version of each table that has no such row
any more, and what couldn't be reached. A killed task goes on with its next try. `tidegate erase`
does the same ([runbook](docs/runbooks/erase-a-person.md)).

**Rights:** a user with the right to trigger this DAG makes dry runs. Only the users in `erase.by`
of the pipeline file erase rows. **Airflow's database** keeps the params of a run, and shows them
to whoever may read the DAG's runs. Name the rows by their key (`id = 4711`), and delete the run in
Airflow when you have the certificate.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* apply, a snapshot or a rebuild is at work, or source or lake can't be reached.
  The task tries again.
- *Failed:* the table can't be erased from, or the source still has such a row. Nothing was
  changed. Do what the line says.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from tidegate import pipelines
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.erase_operator import EraseOperator

for file in pipelines.good_files():
    pipeline = file.pipeline
    if not any(source.traits.erases_rows for source in pipeline.sources.values()):
        continue
    params = {
        "table": Param("", title="Table", type="string", description="One table, database.table, as at the source"),
        "where": Param(
            "", title="Where", type="string", description="Which rows, as in tables.rows: id = 4711. Best by the key"
        ),
        "follow_keys": Param(
            False,
            title="Follow keys",
            type="boolean",
            description="Also rows of other tables that refer to these, by foreign keys",
        ),
        "wait": Param(
            600,
            title="Wait",
            type="integer",
            minimum=0,
            description="Seconds to wait for apply to come past the delete, and to end",
        ),
        "dry_run": Param(True, title="Dry run", type="boolean", description="Only say what would be erased"),
    }
    arguments = dag_arguments(pipeline, "erase", params, __doc__)
    arguments["max_consecutive_failed_dag_runs"] = 0  # a refused order says nothing of the next one
    with DAG(
        schedule=None,
        description=f"Erases a person's rows from the lake of {pipeline.pipeline}",
        **arguments,
    ):
        EraseOperator(task_id="erase", pipeline_file=str(file.path), max_active_tis_per_dag=1)
