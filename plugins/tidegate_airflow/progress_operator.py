"""Make an event of the silver asset while apply runs.

In:  the lake; the asset's newest event.
Out: the event, when the task succeeds; nothing is written anywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from tidegate import pipelines
from tidegate_airflow.assets import silver_asset
from tidegate_airflow.connections import lake_connection
from tidegate_airflow.silver_event import is_known, silver_event

if TYPE_CHECKING:
    from airflow.sdk import Context


class ProgressOperator(BaseOperator):
    """One run makes one event."""

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file

    def execute(self, context: Context) -> None:
        """Raises LakeUnavailable, LakeRefused; AirflowSkipException when the newest event says the same."""
        pipeline = pipelines.load(Path(self.pipeline_file))
        event = silver_event(pipelines.open_lake(pipeline, lake_connection), pipeline.lacks_snapshots)
        if is_known(event, pipeline, context):
            raise AirflowSkipException("the newest event says the same")
        self.log.info("%s", event["text"])
        context["outlet_events"][silver_asset(pipeline)].extra.update(event)
