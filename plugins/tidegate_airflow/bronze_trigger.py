"""Wake apply when bronze has gained changes.

In:  bronze's Delta log, looked at about twice a second.
Out: one asset event per look with applicable changes; Airflow merges events during a run of apply. Commits of a merely
     quiet source make an event every quiet_seconds, to move its cut on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.lake.jobs.news import FollowedBronze
from tidegate_airflow.lake_trigger import LakeTrigger


class BronzeVersionTrigger(LakeTrigger):
    """Fires when bronze/segments of a lake has changes to apply that it hasn't fired for.

    sources: the pipeline's sources. quiet_seconds: heartbeats alone make an event this often. hourly: the end of an
    hour makes an event, too.
    """

    kept_key = "fired_version"

    def __init__(
        self,
        lake: str,
        conn_id: str | None = None,
        options: dict[str, str] | None = None,
        *,
        sources: Sequence[str] = (),
        quiet_seconds: float = 300.0,
        hourly: bool = False,
        poll_seconds: float = 0.5,
    ) -> None:
        super().__init__(lake, conn_id, options, poll_seconds=poll_seconds)
        self.sources = list(sources)
        self.quiet_seconds = quiet_seconds
        self.hourly = hourly

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.bronze_trigger.BronzeVersionTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "sources": self.sources,
                "quiet_seconds": self.quiet_seconds,
                "hourly": self.hourly,
                "poll_seconds": self.poll_seconds,
            },
        )

    def follow(self, kept: Any) -> FollowedBronze:
        """Follows bronze's log from the version that was fired last."""
        return FollowedBronze(tuple(self.sources), kept, self.quiet_seconds, hourly=self.hourly)
