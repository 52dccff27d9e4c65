"""Tells people when a pipeline is in trouble, and when the trouble is over.

**Tables read:** `control/cuts`, `control/table_states`, `control/snapshots`, `control/verification`, and the log of
`bronze/segments`. Each source is asked for the end of its log.

**Tables written:** none. Airflow's asset state remembers the sent alerts.

**How it runs:** each notifier of the section `alerts` of the pipeline file has a DAG. A watcher looks at the pipeline
every 30 seconds, and starts a run when something began or ended. However many tables begin at once, a run sends one
message. The message names some and counts the rest. Start a run by hand to try the notifier. Each message comes at
least once: if Airflow is killed just after a message was sent, it may come again. While the DAG is paused, its messages
are lost.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* the notifier failed. The task tries again by itself, at least once a minute. Further alerts
  wait for the next run, and come as one message. Apply, capture and other notifiers don't wait.
- *Failed:* it failed for a week, or a person ended it. This run's message isn't sent; the log has it.
"""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate import pipelines
from tidegate_airflow.assets import alerts_asset
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.notify_operator import NotifyOperator

for file in pipelines.good_files():
    pipeline = file.pipeline
    for name, notifier in pipeline.alerts.notifiers.items():
        arguments = dag_arguments(pipeline, f"alerts_{name}", {}, __doc__)
        arguments["max_consecutive_failed_dag_runs"] = 0  # a paused DAG would send no message that it is paused
        with DAG(
            schedule=[alerts_asset(pipeline)],
            description=f"What a person must know of {pipeline.pipeline}, by {notifier.notifier.rpartition('.')[2]}",
            **arguments,
        ):
            NotifyOperator(
                task_id="notify",
                pipeline=pipeline.pipeline,
                notifier=notifier.notifier,
                arguments=notifier.arguments,
                max_active_tis_per_dag=1,
            )
