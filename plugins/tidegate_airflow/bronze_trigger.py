"""Wake apply when bronze has gained changes.

In:  bronze's Delta log, looked at about twice a second.
Out: one asset event per look that found changes which can be applied; Airflow merges events that come while apply
     runs. Commits that only prove a source quiet make an event every quiet_seconds, so that its cut moves on.

After an event comes a pause of some seconds, for two reasons. Airflow takes events from memory to its
database in between: only then is the version written to Airflow's asset state as fired, so that a
triggerer that dies before fires once more when it is back, and otherwise a restart doesn't fire again. (An
event too many is a short apply run that finds nothing; one too few would leave rows waiting.) And a busy
bronze, which grows every second, makes a dozen events a minute in Airflow's database instead of a hundred,
none of them late: apply runs for longer than the pause.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from tidegate.lake.delta_log import DeltaLog, delta_log
from tidegate_airflow.bronze_news import BronzeNews
from tidegate_airflow.connections import astorage_options

FIRED_KEY: Final = "fired_version"
# The pause after an event, in looks: Airflow persists a fired event within about a second.
_SETTLE_LOOKS: Final = 10
_PAUSE_SECONDS_MAX: Final = 60.0
# After a longer absence the log isn't read commit by commit: something will have happened.
_COMMITS_READ_MAX: Final = 1000


class BronzeVersionTrigger(BaseEventTrigger):
    """Fires when bronze/segments of a lake has changes to apply that it hasn't fired for.

    lake: local path or store URL; conn_id and options: as Lake of the pipeline file (no secrets in here).
    sources: the pipeline's; quiet_seconds: how often heartbeats alone make an event.
    """

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
        super().__init__()  # type: ignore[no-untyped-call]
        self.lake = lake
        self.conn_id = conn_id
        self.options = options or {}
        self.sources = list(sources)
        self.quiet_seconds = quiet_seconds
        self.poll_seconds = poll_seconds

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

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look for ever; a lake that can't be read is looked at again, ever more slowly up to a minute."""
        store = self.asset_state_store
        assert store is not None, "Airflow gives a watcher's trigger its asset's state"
        log: _FollowedLog | None = None
        settled = True
        pause = self.poll_seconds
        while True:
            try:
                if log is None:
                    log = _FollowedLog(tuple(self.sources), await store.aget(FIRED_KEY, None), self.quiet_seconds)
                if not settled:
                    await store.aset(FIRED_KEY, log.kept)
                    settled = True
                log.table = log.table or await self._open()
                version = await asyncio.to_thread(log.look)
            except Exception as error:  # noqa: BLE001 - a watcher that ends isn't started again: say so, look again
                if log is not None:
                    log.table = None
                pause = min(pause * 2, _PAUSE_SECONDS_MAX)
                self.log.warning("bronze of %s can't be looked at, again in %.0f s: %s", self.lake, pause, error)
                await asyncio.sleep(pause)
                continue
            pause = self.poll_seconds
            if version is not None:
                settled = False
                yield TriggerEvent({"delta_version": version})  # type: ignore[no-untyped-call]
                await asyncio.sleep(self.poll_seconds * _SETTLE_LOOKS)
            else:
                await asyncio.sleep(pause)

    async def _open(self) -> DeltaLog:
        options = await astorage_options(self.conn_id, self.options)
        return await asyncio.to_thread(_bronze, self.lake, options)


class _FollowedLog:
    """Bronze's log from what was last fired on. `kept` is what to remember of it once the event is safe."""

    def __init__(self, sources: tuple[str, ...], kept: Any, quiet_seconds: float) -> None:
        self.table: DeltaLog | None = None
        self._sources = sources
        self._quiet_seconds = quiet_seconds
        self._news = BronzeNews(sources)
        if isinstance(kept, dict):
            self._news = BronzeNews.from_json(sources, kept)
            kept = kept["version"]
        self._seen = self._fired = -1 if kept is None else int(kept)
        self._fired_at = time.monotonic()

    @property
    def kept(self) -> dict[str, Any]:
        """As it was when it fired last."""
        return {"version": self._fired, **self._news.to_json()}

    def look(self) -> int | None:
        """The version to fire for, None when nothing needs apply. Blocks; on an error nothing is forgotten."""
        assert self.table is not None
        version = self.table.latest()
        if version < self._seen:  # the lake was made anew
            self._news, self._seen, self._fired = BronzeNews(self._sources), -1, -1
        if version - self._seen > _COMMITS_READ_MAX:
            self._news.add_unknown()
            self._seen = version - _COMMITS_READ_MAX
        for number in range(self._seen + 1, version + 1):
            text = self.table.commit(number)
            if text is None:
                self._news.add_unknown()
            else:
                self._news.add(text)
            self._seen = number
        quiet = self._seen > self._fired and time.monotonic() - self._fired_at >= self._quiet_seconds
        if not (self._news.waiting or quiet):
            return None
        self._news.taken()
        self._fired, self._fired_at = self._seen, time.monotonic()
        return self._fired


def _bronze(lake: str, options: dict[str, str]) -> DeltaLog:
    from tidegate.tables import SEGMENTS  # imports pyarrow: in a thread, not in the triggerer's loop

    return delta_log(f"{lake.rstrip('/')}/{SEGMENTS.path}", options)
