"""Wake apply when bronze has gained changes.

In:  bronze's Delta log, looked at about twice a second.
Out: one asset event per look that found changes which can be applied; Airflow merges events that come while apply
     runs. Commits that only prove a source quiet make an event every quiet_seconds, so that its cut moves on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail
from tidegate_airflow.bronze_news import BronzeNews
from tidegate_airflow.lake_trigger import LakeTrigger

# After a longer absence the log isn't read commit by commit: something will have happened.
_COMMITS_READ_MAX: Final = 1000


class BronzeVersionTrigger(LakeTrigger):
    """Fires when bronze/segments of a lake has changes to apply that it hasn't fired for.

    sources: the pipeline's; quiet_seconds: how often heartbeats alone make an event.
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
        poll_seconds: float = 0.5,
    ) -> None:
        super().__init__(lake, conn_id, options, poll_seconds=poll_seconds)
        self.sources = list(sources)
        self.quiet_seconds = quiet_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments, from which the triggerer makes it again."""
        return (
            "tidegate_airflow.bronze_trigger.BronzeVersionTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "sources": self.sources,
                "quiet_seconds": self.quiet_seconds,
                "poll_seconds": self.poll_seconds,
            },
        )

    def follow(self, kept: Any) -> _FollowedLog:
        """Bronze's log from the version that was fired last."""
        return _FollowedLog(tuple(self.sources), kept, self.quiet_seconds)


class _FollowedLog:
    """Bronze's log from what was last fired on. `kept` is what to remember of it once the event is safe."""

    def __init__(self, sources: tuple[str, ...], kept: Any, quiet_seconds: float) -> None:
        self._log: DeltaLog | None = None
        self._tail: LogTail | None = None
        self._sources = sources
        self._quiet_seconds = quiet_seconds
        self._news = BronzeNews(sources)
        if isinstance(kept, dict):
            self._news = BronzeNews.from_json(sources, kept)
            kept = kept["version"]
        self._seen = self._fired = -1 if kept is None else int(kept)
        self._fired_at = time.monotonic()

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks."""
        from tidegate.tables import SEGMENTS  # imports pyarrow: in a thread, not in the triggerer's loop

        self._log = DeltaLog(f"{lake.rstrip('/')}/{SEGMENTS.path}", options)
        self._tail = LogTail(self._log)

    @property
    def kept(self) -> dict[str, Any]:
        """As it was when it fired last."""
        return {"version": self._fired, **self._news.to_json()}

    def look(self) -> dict[str, Any] | None:
        """{"delta_version": the one to fire for}; None when nothing needs apply. Blocks; an error forgets nothing."""
        assert self._log is not None
        assert self._tail is not None
        version = self._tail.version()
        if version < self._seen:  # the lake was made anew
            self._news, self._seen, self._fired = BronzeNews(self._sources), -1, -1
        if version - self._seen > _COMMITS_READ_MAX:
            self._news.add_unknown()
            self._seen = version - _COMMITS_READ_MAX
        for number in range(self._seen + 1, version + 1):
            actions = self._log.actions(number)
            if actions is None:
                self._news.add_unknown()
            else:
                self._news.add(actions)
            self._seen = number
        quiet = self._seen > self._fired and time.monotonic() - self._fired_at >= self._quiet_seconds
        if not (self._news.waiting or quiet):
            return None
        self._news.taken()
        self._fired, self._fired_at = self._seen, time.monotonic()
        return {"delta_version": self._fired}
