"""The assets by which a pipeline's DAGs start each other and the rest of Airflow.

In:  a pipeline.
Out: its bronze Asset, watched in its Delta log, the schedule of apply; its silver Asset, for the schedules of other
     teams' DAGs; its questions, watched in control/table_states, the schedule of approve; its tables in wait of a
     snapshot, watched in the same and beside it, the schedule of snapshot.
"""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from tidegate.config import Pipeline
from tidegate_airflow.bronze_trigger import BronzeVersionTrigger
from tidegate_airflow.question_trigger import QuestionTrigger
from tidegate_airflow.snapshot_trigger import SnapshotTrigger


def bronze_asset(pipeline: Pipeline) -> Asset:
    """bronze/segments of the pipeline's lake; an event whenever it has changes to apply."""
    lake = pipeline.lake.path
    trigger = BronzeVersionTrigger(
        lake,
        pipeline.lake.conn_id,
        pipeline.lake.storage_options,
        sources=sorted(pipeline.sources),
        quiet_seconds=pipeline.apply.quiet_seconds,
    )
    return Asset(
        name=f"{pipeline.pipeline}__bronze",
        uri=f"tidegate://{pipeline.pipeline}/bronze/segments",
        extra={"lake": lake},
        watchers=[AssetWatcher(name=f"{pipeline.pipeline}__bronze_version", trigger=trigger)],
    )


def silver_asset(pipeline: Pipeline) -> Asset:
    """The pipeline's silver tables; an event at the end of every apply run that succeeded."""
    return Asset(
        name=f"{pipeline.pipeline}__silver",
        uri=f"tidegate://{pipeline.pipeline}/silver",
        extra={"lake": pipeline.lake.path},
    )


def questions_asset(pipeline: Pipeline) -> Asset:
    """Tables that wait for approval of their DDL; an event when there are new ones."""
    lake = pipeline.lake.path
    trigger = QuestionTrigger(lake, pipeline.lake.conn_id, pipeline.lake.storage_options)
    return Asset(
        name=f"{pipeline.pipeline}__questions",
        uri=f"tidegate://{pipeline.pipeline}/control/table_states",
        extra={"lake": lake},
        watchers=[AssetWatcher(name=f"{pipeline.pipeline}__questions", trigger=trigger)],
    )


def waiting_asset(pipeline: Pipeline) -> Asset:
    """Tables in wait of a snapshot's rows; an event when there are new ones."""
    trigger = SnapshotTrigger(pipeline.model_dump(mode="json"))
    return Asset(
        name=f"{pipeline.pipeline}__waiting",
        uri=f"tidegate://{pipeline.pipeline}/control/snapshots",
        extra={"lake": pipeline.lake.path},
        watchers=[AssetWatcher(name=f"{pipeline.pipeline}__waiting", trigger=trigger)],
    )
