"""The assets by which a pipeline's DAGs start each other and the rest of Airflow.

In:  a pipeline.
Out: an Asset for each schedule. Bronze starts apply; a watcher reads its Delta log. Questions start
     approve, waiting tables start snapshot, hours start complete, cuts start progress: watchers
     read control tables. Alerts start the DAGs that send messages: a watcher reads the whole
     pipeline. Silver, and the assets with a partition per complete hour, are for other teams' DAGs.
"""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk import Asset, AssetWatcher

from tidegate.config import Pipeline
from tidegate.lake.figures.complete_hours import ALL_TABLES
from tidegate_airflow.alerts_trigger import AlertsTrigger
from tidegate_airflow.bronze_trigger import BronzeVersionTrigger
from tidegate_airflow.cuts_trigger import CutsTrigger
from tidegate_airflow.hours_trigger import HoursTrigger
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
        hourly=pipeline.completeness.hourly,
    )
    return Asset(
        name=f"{pipeline.pipeline}__bronze",
        uri=f"tidegate://{pipeline.pipeline}/bronze/segments",
        extra={"lake": lake},
        watchers=[AssetWatcher(name=f"{pipeline.pipeline}__bronze_version", trigger=trigger)],
    )


def silver_asset(pipeline: Pipeline) -> Asset:
    """The pipeline's silver tables; an event at the end of every apply run that succeeded, and each minute of it if
    the pipeline file says so.
    """
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


def hours_asset(pipeline: Pipeline) -> Asset:
    """The newest cut and the tables' states; an event when a further hour is complete."""
    part = pipeline.completeness
    trigger = HoursTrigger(
        pipeline.lake.path,
        pipeline.lake.conn_id,
        pipeline.lake.storage_options,
        tables=part.tables,
        include=part.include,
        verified=part.verified,
    )
    return Asset(
        name=f"{pipeline.pipeline}__hours",
        uri=f"tidegate://{pipeline.pipeline}/control/cuts",
        extra={"lake": pipeline.lake.path},
        watchers=[AssetWatcher(name=f"{pipeline.pipeline}__hours", trigger=trigger)],
    )


def cuts_asset(pipeline: Pipeline) -> Asset:
    """The cuts of a running apply; an event for each minute with a new cut."""
    lake = pipeline.lake
    trigger = CutsTrigger(lake.path, lake.conn_id, lake.storage_options, pipeline=pipeline.pipeline)
    return Asset(
        name=f"{pipeline.pipeline}__cuts",
        uri=f"tidegate://{pipeline.pipeline}/control/cuts/each_minute",
        extra={"lake": lake.path},
        watchers=[AssetWatcher(name=f"{pipeline.pipeline}__cuts", trigger=trigger)],
    )


def alerts_asset(pipeline: Pipeline) -> Asset:
    """The pipeline's alerts; an event when one begins or ends."""
    return Asset(
        name=f"{pipeline.pipeline}__alerts",
        uri=f"tidegate://{pipeline.pipeline}/alerts",
        extra={"lake": pipeline.lake.path},
        watchers=[
            AssetWatcher(name=f"{pipeline.pipeline}__alerts", trigger=AlertsTrigger(pipeline.model_dump(mode="json")))
        ],
    )


def complete_asset(pipeline: Pipeline, table: str = ALL_TABLES) -> Asset:
    """A partition for each complete hour: no commit of it is missing in a table of silver, or, by
    default, in any table.
    """
    return _partitioned(pipeline, "complete", table)


def verified_asset(pipeline: Pipeline, table: str) -> Asset:
    """A partition for each hour through which verify has shown a table to be equal."""
    return _partitioned(pipeline, "verified", table)


def added_hours_asset(pipeline: Pipeline) -> Asset:
    """The record of what was added to the assets above, for the DAG itself. No DAG is scheduled by it."""
    return Asset(name=f"{pipeline.pipeline}__added_hours", uri=f"tidegate://{pipeline.pipeline}/added_hours")


def _partitioned(pipeline: Pipeline, what: str, table: str) -> Asset:
    name = f"{pipeline.pipeline}__{what}" + (f"__{table}" if table else "")
    return Asset(name=name, uri=f"tidegate://{pipeline.pipeline}/{what}/{quote(table)}".rstrip("/"))
