"""Watch a Delta table of a lake, and wake a DAG when the table has news.

In:  a table's log, looked at about twice a second; what was fired last, from Airflow's asset state.
Out: one asset event per look that found something.

After an event there is a pause of some seconds, for two reasons. In it Airflow moves the event from memory to its
database. Only after that the trigger notes it in Airflow's asset state. A triggerer that dies before fires once
more, and one that dies later doesn't. (One wake-up too many finds nothing to do; one too few would leave something
waiting.) And a busy table, which grows every second, makes a dozen events a minute in Airflow's database instead of a
hundred.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Final, Protocol

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from tidegate.limits import WATCH_PAUSE_SECONDS_MAX
from tidegate_airflow.connections import astorage_options
from tidegate_airflow.looks import looked

# The pause after an event, in looks: Airflow persists a fired event within about a second.
_SETTLE_LOOKS: Final = 10


class FollowedTable(Protocol):
    """Follows a table from the last event on."""

    @property
    def kept(self) -> Any:
        """The value to store once the event is safe, as JSON."""

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks. Called before the first look, and after each error."""

    def look(self) -> dict[str, Any] | None:
        """The event's payload; None when there is nothing new. Blocks; on an error nothing is forgotten."""


class LakeTrigger(BaseEventTrigger):
    """lake: local path or store URL; conn_id and options: as Lake of the pipeline file (no secrets in here)."""

    kept_key: ClassVar[str]

    def __init__(
        self, lake: str, conn_id: str | None, options: dict[str, str] | None, *, poll_seconds: float = 0.5
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lake = lake
        self.conn_id = conn_id
        self.options = options or {}
        self.poll_seconds = poll_seconds

    def follow(self, kept: Any) -> FollowedTable:
        """The follower of the table. kept: what was stored; None the first time."""
        raise NotImplementedError

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look for ever. If the lake can't be read, look again after a pause, which doubles up to a minute."""
        store = self.asset_state_store
        assert store is not None, "Airflow gives a watcher's trigger its asset's state"
        table: FollowedTable | None = None
        opened, settled = False, True
        pause = self.poll_seconds
        while True:
            try:
                if table is None:
                    table = self.follow(await store.aget(self.kept_key, None))
                if not settled:
                    await store.aset(self.kept_key, table.kept)
                    settled = True
                if not opened:
                    await looked(table.open, self.lake, await astorage_options(self.conn_id, self.options))
                    opened = True
                payload = await looked(table.look)
            except Exception as error:  # noqa: BLE001 - a watcher that ends isn't started again: say so, look again
                opened = False
                pause = min(pause * 2, WATCH_PAUSE_SECONDS_MAX)
                self.log.warning("%s can't be looked at, again in %.0f s: %s", self.lake, pause, error)
                await asyncio.sleep(pause)
                continue
            pause = self.poll_seconds
            if payload is not None:
                settled = False
                yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
                await asyncio.sleep(self.poll_seconds * _SETTLE_LOOKS)
            else:
                await asyncio.sleep(pause)
