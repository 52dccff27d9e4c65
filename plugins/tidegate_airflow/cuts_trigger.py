"""Wake the DAG `progress` when a running apply has published a cut.

In:  the Delta log of control/cuts, and apply's lease, looked at once a minute.
Out: an asset event with the cut.
"""

from __future__ import annotations

from typing import Any

from tidegate.lake.jobs.new_cuts import NewCuts
from tidegate.limits import PROGRESS_LOOK_SECONDS
from tidegate_airflow.lake_trigger import LakeTrigger


class CutsTrigger(LakeTrigger):
    """pipeline: its name."""

    kept_key = "cut"

    def __init__(
        self,
        lake: str,
        conn_id: str | None = None,
        options: dict[str, str] | None = None,
        *,
        pipeline: str,
        poll_seconds: float = PROGRESS_LOOK_SECONDS / 12,
    ) -> None:
        super().__init__(lake, conn_id, options, poll_seconds=poll_seconds)
        self.pipeline = pipeline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.cuts_trigger.CutsTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "pipeline": self.pipeline,
                "poll_seconds": self.poll_seconds,
            },
        )

    def follow(self, kept: Any) -> NewCuts:
        """Follows the cuts that it hasn't fired for."""
        return NewCuts(self.pipeline, kept, PROGRESS_LOOK_SECONDS)
