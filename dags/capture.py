"""Reads a source's binlog and lands it in bronze, without pause.

**Tables read:** in the lake only the last rows of `bronze/segments` (the position) and of
`control/schema_history`; at the source: its binlog, and information_schema once per table.

**Tables written:** `bronze/segments`, exactly once, one row per segment; `control/schema_history`, the first
version of each table.

**How it runs:** each source has a DAG of its own, so that none waits for another: the first one's is
`<pipeline>__capture`, any other's `<pipeline>__capture_<source>`. A run reads for `run_for_seconds`, and the next run
continues. After `idle_seconds` without changes a pipeline's only source gives its slot back, and waits in the triggerer
until the source writes. You may end, kill or pause it: the next run continues at the end of bronze and of the value
log. While the lake is slow or down, capture reads into the value log. `tidegate status` says how long this machine's
disk lasts. The runs of a TiDB's Pumps end at different moments.

**When it is red:** the task's log ends with one line: fault, place, remedy.

- *Up for retry:* the source can't be reached, or the lake is down and the value log's disk budget is used up. The task
  tries again by itself, at least once a minute.
- *Failed:* a person must help (password, grants, binlog_format, a purged binlog, a full disk). Do what the line
  says. A pipeline with one source pauses itself after three failures in a row: unpause it then. With several sources,
  the failed one is tried again about once a minute. A Pump is tried again all the time.
- A retry can't repair a purged position: the log lacks changes, and the tables need a snapshot.
"""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate import pipelines
from tidegate_airflow.assets import bronze_asset
from tidegate_airflow.capture_sensor import CaptureSensor
from tidegate_airflow.dag_arguments import dag_arguments
from tidegate_airflow.params import params_of

for file in pipelines.good_files():
    pipeline = file.pipeline
    for work, source in pipeline.captures.items():
        arguments = dag_arguments(pipeline, work, params_of(pipeline.capture), __doc__)
        # With several sources a paused capture would hold back the cut of all. The sensor puts a pause between failed
        # runs instead.
        arguments["max_consecutive_failed_dag_runs"] = 3 if len(pipeline.sources) == 1 else 0
        with DAG(schedule="@continuous", description=f"Binlog of {source} into bronze", **arguments):
            CaptureSensor(
                task_id=source,
                pipeline_file=str(file.path),
                source=source,
                outlets=[bronze_asset(pipeline)],  # for the asset graph; its events come from its watcher
                max_active_tis_per_dag=1,
            )
