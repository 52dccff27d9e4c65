"""Wake apply when bronze has grown.

In:  bronze's Delta version, looked at about twice a second.
Out: one asset event per look that found a newer version; Airflow merges events that come while apply runs.

After an event comes a pause of some seconds, for two reasons. Airflow takes events from memory to its
database in between: only then is the version written to Airflow's asset state as fired, so that a
triggerer that dies before fires once more when it is back, and otherwise a restart doesn't fire again. (An
event too many is a short apply run that finds nothing; one too few would leave rows waiting.) And a busy
bronze, which grows every second, makes a dozen events a minute in Airflow's database instead of a hundred,
none of them late: apply runs for longer than the pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from tidegate_airflow.connections import astorage_options
from tidegate_airflow.delta_version import DeltaVersion, delta_version

FIRED_KEY = "fired_version"
# Airflow persists a fired event within about a second.
SETTLE_SECONDS = 5.0
_PAUSE_SECONDS_MAX = 60.0


class BronzeVersionTrigger(BaseEventTrigger):
    """Fires whenever bronze/segments of a lake has a newer Delta version than the last one fired.

    lake: local path or store URL; conn_id and options: as Lake of the pipeline file (no secrets in here).
    """

    def __init__(
        self,
        lake: str,
        conn_id: str | None = None,
        options: dict[str, str] | None = None,
        poll_seconds: float = 0.5,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lake = lake
        self.conn_id = conn_id
        self.options = options or {}
        self.poll_seconds = poll_seconds
        self.settle_seconds = settle_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments, from which the triggerer makes it again."""
        return (
            "tidegate_airflow.bronze_trigger.BronzeVersionTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "poll_seconds": self.poll_seconds,
                "settle_seconds": self.settle_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look for ever; a lake that can't be read is looked at again, ever more slowly up to a minute."""
        store = self.asset_state_store
        assert store is not None, "Airflow gives a watcher's trigger its asset's state"
        fired: int | None = None
        settled = True
        pause = self.poll_seconds
        table: DeltaVersion | None = None
        while True:
            try:
                if fired is None:
                    fired = int(await store.aget(FIRED_KEY, -1))  # type: ignore[arg-type]
                if not settled:
                    await store.aset(FIRED_KEY, fired)
                    settled = True
                table = table or await self._open()
                version = await asyncio.to_thread(table.latest)
            except Exception as error:  # noqa: BLE001 - a watcher that ends isn't started again: say so, look again
                table = None
                pause = min(pause * 2, _PAUSE_SECONDS_MAX)
                self.log.warning("bronze of %s can't be looked at, again in %.0f s: %s", self.lake, pause, error)
                await asyncio.sleep(pause)
                continue
            pause = self.poll_seconds
            if version != fired and version >= 0:  # smaller: the lake was made anew
                fired, settled = version, False
                yield TriggerEvent({"delta_version": version})  # type: ignore[no-untyped-call]
                await asyncio.sleep(self.settle_seconds)
            else:
                await asyncio.sleep(pause)

    async def _open(self) -> DeltaVersion:
        options = await astorage_options(self.conn_id, self.options)
        return await asyncio.to_thread(_bronze, self.lake, options)


def _bronze(lake: str, options: dict[str, str]) -> DeltaVersion:
    from tidegate.tables import SEGMENTS  # imports pyarrow: in a thread, not in the triggerer's loop

    return delta_version(f"{lake.rstrip('/')}/{SEGMENTS.path}", options)
