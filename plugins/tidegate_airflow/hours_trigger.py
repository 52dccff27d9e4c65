"""Wake the DAG `complete` when silver has come to a further complete hour.

In:  the Delta logs of control/cuts, control/table_states and control/followed (and control/verification), looked at
     every few seconds.
Out: an asset event that names the hours. The run itself reads the lake again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.lake.figures.complete_hours import NewHours
from tidegate_airflow.lake_trigger import LakeTrigger


class HoursTrigger(LakeTrigger):
    """tables, include, verified: as in the section `completeness` of the pipeline file."""

    kept_key = "hours"

    def __init__(
        self,
        lake: str,
        conn_id: str | None = None,
        options: dict[str, str] | None = None,
        *,
        tables: Sequence[str] = (),
        include: Sequence[str] = (),
        verified: bool = False,
        poll_seconds: float = 5.0,
    ) -> None:
        super().__init__(lake, conn_id, options, poll_seconds=poll_seconds)
        self.tables, self.include = list(tables), list(include)
        self.verified = verified

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.hours_trigger.HoursTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "tables": self.tables,
                "include": self.include,
                "verified": self.verified,
                "poll_seconds": self.poll_seconds,
            },
        )

    def follow(self, kept: Any) -> NewHours:
        """Follows the hours that it hasn't fired for."""
        return NewHours(self.tables, include=self.include, verified=self.verified, kept=kept)
