"""Asks a person before silver follows a DDL, or about an unanswered XA transaction, if the file says `ask`.

**Tables read:** `control/table_states`, `control/prewrites`.

**Tables written:** `control/table_states`: an approved table is released, with the name of the user;
`control/prewrites`: the decision about an XA transaction, with the name of the user.

**How it runs:** a table that is held for approval starts a run by itself, within seconds. Its task *approve* waits
under **Required Actions** with the statement, its place in the binlog and two answers. Only this table waits. All
others continue, and a waiting run uses no worker. A run started by hand asks about every waiting
table that no open question is about. Nine of many tables are asked about alone, and one question is
about all the others. Unlike other DAGs, this one begins unpaused. If somebody pauses it, nobody is
asked: the page of the pipeline then says so. At most 50 runs wait for answers. The next questions
come when one of them ends.

*Approve* releases the table at once, and it catches up from bronze. *Keep holding* changes nothing.
`tidegate release PIPELINE TABLE` and the page do the same as *Approve*. The question here then ends
by itself within seconds, as *Ended elsewhere*. A question whose table doesn't wait any more ends, too.

Orphaned XA transactions (`xa.orphans`) are asked about in the same way. The source no longer has them prepared, and
its log has no answer. *Commit* applies their rows, and *Roll back* leaves them out, in every table that they changed.
`tidegate prewrites PIPELINE` decides about one of them, too. A Pump may wait for transactions that TiDB can't decide
any more. The question about them has the name of their source.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* the lake can't be reached. The task tries again by itself.
- *Failed:* do what the line says. Then clear the task, and it asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, task

from tidegate import pipelines
from tidegate_airflow.answer_trigger import asked_by_others
from tidegate_airflow.approve_operator import ApproveOperator, table_questions
from tidegate_airflow.assets import bronze_asset, questions_asset
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.question_trigger import asked_tables

if TYPE_CHECKING:
    from airflow.sdk.types import AssetEventDagRunReferenceResult, RuntimeTaskInstanceProtocol

# Most runs that may wait for answers at the same time, each with some questions. A triggerer has room for 1,000
# triggers, and takes those of tasks before the watchers.
_QUESTIONS_MAX = 50


@task(max_active_tis_per_dag=1)  # the next run sees what this one asks
def questions(
    pipeline_file: str,
    triggering_asset_events: dict[Any, list[AssetEventDagRunReferenceResult]] | None = None,
    ti: RuntimeTaskInstanceProtocol | None = None,
) -> list[Any]:
    """The questions of a run, and none that waits for its answer already."""
    events = [event for of_asset in (triggering_asset_events or {}).values() for event in of_asset]
    asked = asked_by_others(ti, "approve") if ti else {}
    return list(table_questions(pipeline_file, asked_tables(events), asked))


for file in pipelines.good_files():
    pipeline = file.pipeline
    if not pipeline.asks:
        continue
    arguments = dag_arguments(pipeline, "approve", {}, __doc__)
    arguments["max_active_runs"] = _QUESTIONS_MAX
    # It may come when the file gets its first `ask`: paused, it would ask nobody, and a question changes nothing.
    arguments["is_paused_upon_creation"] = False
    with DAG(
        schedule=[questions_asset(pipeline)],
        description=f"What of {pipeline.pipeline} waits for a person's answer",
        **arguments,
    ):
        ApproveOperator.partial(
            task_id="approve",
            pipeline_file=str(file.path),
            map_index_template="{{ task.table }}",
            outlets=[bronze_asset(pipeline)],  # wakes apply, also if the source is quiet
        ).expand_kwargs(questions(str(file.path)))
