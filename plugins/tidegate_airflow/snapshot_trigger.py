"""Start a reader of snapshots when tables wait for one.

In:  the Delta logs of control/table_states, schema_history and snapshots, looked at every few seconds.
Out: an asset event that names the tables.
"""

from __future__ import annotations

from typing import Any

from tidegate.config import Pipeline
from tidegate.snapshot.progress.wakes import WaitingTables
from tidegate_airflow.lake_trigger import LakeTrigger


class SnapshotTrigger(LakeTrigger):
    """Fires when tables of the pipeline need a reader: once for each table, and again if no reader comes.

    pipeline: the pipeline file as plain values; it has no secrets.
    """

    kept_key = "woken"

    def __init__(self, pipeline: dict[str, Any], *, poll_seconds: float = 2.0) -> None:
        self.pipeline = pipeline
        self._file = Pipeline.model_validate(pipeline)
        lake = self._file.lake
        super().__init__(lake.path, lake.conn_id, lake.storage_options, poll_seconds=poll_seconds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.snapshot_trigger.SnapshotTrigger",
            {"pipeline": self.pipeline, "poll_seconds": self.poll_seconds},
        )

    def follow(self, kept: Any) -> WaitingTables:
        """Follows the tables that need a reader."""
        return WaitingTables(self._file, kept)
