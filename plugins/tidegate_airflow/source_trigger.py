"""Wake a capture run that waits, because its source has written something.

In:  the source's binlog position when capture had read everything, and how long to wait at most.
Out: one event: advanced; waited (the time is up, and heartbeats must go on); or lost (the source doesn't answer: the
     woken capture run then reports why, with its own retries).

It keeps one connection, and asks about once a second. The server answers from memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.errors import TidegateError
from tidegate_airflow.connections import asource_connection
from tidegate_airflow.looks import looked

ADVANCED = "advanced"
WAITED = "waited"
LOST = "lost"


class SourceAdvancedTrigger(BaseTrigger):
    """Fires once: when the source's position differs from `position`, or at `until` (Unix time).

    position: `file:offset` as Position prints it.
    """

    def __init__(self, conn_id: str, position: str, until: float, poll_seconds: float = 1.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.conn_id = conn_id
        self.position = position
        self.until = until
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.source_trigger.SourceAdvancedTrigger",
            {
                "conn_id": self.conn_id,
                "position": self.position,
                "until": self.until,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask until one of the three happens."""
        from tidegate.mysql.connecting.connection import ConnectionInfo  # imports PyMySQL
        from tidegate.mysql.looking.position_asker import PositionAsker

        asker: PositionAsker | None = None
        try:
            asker = PositionAsker(ConnectionInfo.of(await asource_connection(self.conn_id)), self.position)
            while await looked(asker.position) == self.position:
                if time.time() >= self.until:
                    yield TriggerEvent({"reason": WAITED})  # type: ignore[no-untyped-call]
                    return
                await asyncio.sleep(self.poll_seconds)
        except TidegateError as error:
            self.log.warning("the source can't be asked: %s", error)
            yield TriggerEvent({"reason": LOST})  # type: ignore[no-untyped-call]
            return
        finally:
            if asker is not None:
                await looked(asker.close)
        yield TriggerEvent({"reason": ADVANCED})  # type: ignore[no-untyped-call]
