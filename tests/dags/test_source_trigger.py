"""The trigger that wakes a waiting capture run, asked of a real server.

In:  MariaDB, and MySQL 9 where it can be had.
Out: the one event it fires, for each of the three ways it can end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = [pytest.mark.airflow, pytest.mark.server]

LONG_SECONDS = 300  # a wait that something ends long before


def uri(server: Server, password: str | None = None) -> str:
    return f"mysql://{server.user}:{password or server.password}@{server.host}:{server.port}/"


def position(monkeypatch: pytest.MonkeyPatch, server: Server) -> str:
    from tidegate.mysql.looking.position_asker import PositionAsker
    from tidegate_airflow.connections import connection_info

    monkeypatch.setenv("AIRFLOW_CONN_TRIGGER_TEST", uri(server))
    asker = PositionAsker(connection_info("trigger_test"))
    try:
        return asker.position()
    finally:
        asker.close()


def fire(seen: str, seconds: float, *, meanwhile: Callable[[], Any] | None = None) -> dict[str, Any]:
    """The one event of a wait of so many seconds. meanwhile: something that happens after some looks."""
    from tidegate_airflow.source_trigger import SourceAdvancedTrigger

    async def live() -> dict[str, Any]:
        first = SourceAdvancedTrigger("trigger_test", seen, time.time() + seconds, poll_seconds=0.1)
        path, arguments = first.serialize()
        assert path == f"{SourceAdvancedTrigger.__module__}.{SourceAdvancedTrigger.__qualname__}"
        if meanwhile:
            asyncio.get_running_loop().call_later(0.4, meanwhile)
        events = [event.payload async for event in SourceAdvancedTrigger(**arguments).run()]
        assert len(events) == 1
        payload: dict[str, Any] = events[0]
        return payload

    return asyncio.run(live())


def test_a_write_at_the_source_fires_while_it_is_waited_for(
    any_server: Server, fresh_database: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY)")
    seen = position(monkeypatch, any_server)
    written: list[int] = []

    def write() -> None:
        any_server.query(f"INSERT INTO `{database}`.t VALUES (1)")
        written.append(1)

    assert fire(seen, LONG_SECONDS, meanwhile=write) == {"reason": "advanced"}
    assert written, "it fired before there was anything new"


def test_a_write_before_the_trigger_started_fires_at_once(
    mariadb: Server, fresh_database: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = position(monkeypatch, mariadb)
    fresh_database(mariadb)
    assert fire(seen, LONG_SECONDS) == {"reason": "advanced"}


def test_a_quiet_source_fires_when_the_wait_is_over(mariadb: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, started = position(monkeypatch, mariadb), time.monotonic()
    assert fire(seen, 1.0) == {"reason": "waited"}
    assert time.monotonic() - started > 0.9


def test_a_source_that_refuses_wakes_capture_which_can_say_why(
    mariadb: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = position(monkeypatch, mariadb)
    monkeypatch.setenv("AIRFLOW_CONN_TRIGGER_TEST", uri(mariadb, password="wrong"))
    assert fire(seen, LONG_SECONDS) == {"reason": "lost"}
    monkeypatch.delenv("AIRFLOW_CONN_TRIGGER_TEST")
    assert fire(seen, LONG_SECONDS) == {"reason": "lost"}
