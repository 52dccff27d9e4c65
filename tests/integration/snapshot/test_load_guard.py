"""A reader pauses by itself while its source has too much to do, and says why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.support.captures import info_of
from tests.support.servers import FreshDatabase
from tidegate.errors import SourceRefused
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.snapshot.load_guard import LoadBounds, LoadGuard
from tidegate.snapshot.reading.connection import WorkerConnection

pytestmark = pytest.mark.server

SECONDS_MAX = 300.0


def becomes(wanted: bool, ask: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS_MAX
    while ask() is not wanted:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_running_threads_are_counted_and_the_pause_and_its_end_are_told_once(any_server: Server) -> None:
    lines: list[str] = []
    told: list[str] = []
    # Several: of what ran when the server was asked, another test's dump, some may end meanwhile.
    others = [any_server.connect() for _ in range(4)]
    with WorkerConnection(info_of(any_server)) as asked:
        free = LoadGuard(LoadBounds(threads_running=1000), "shop", lines.append)
        assert not free.is_busy(asked)
        ((_, now),) = asked.ask("SHOW GLOBAL STATUS LIKE 'Threads_running'")
        guard = LoadGuard(LoadBounds(threads_running=int(now)), "shop", lines.append, told.append)
        sleeping = [threading.Thread(target=other.query, args=("DO SLEEP(600)",)) for other in others]
        for thread in sleeping:
            thread.start()
        assert becomes(True, lambda: guard.is_busy(asked))
        assert guard.is_busy(asked)
        for other, thread in zip(others, sleeping, strict=True):
            while thread.is_alive():  # it may not have begun to sleep
                any_server.query(f"KILL QUERY {other.thread_id()}")
                thread.join(0.1)
            other.close()
        assert becomes(False, lambda: guard.is_busy(asked))
    assert len(lines) == 2, lines
    assert lines[0].startswith("shop: reading pauses, Threads_running is ")
    assert lines[1] == "shop: reading goes on"
    assert told[0].startswith("Threads_running is ")
    assert told[1:] == [""]


def test_an_old_view_that_holds_purge_back_is_seen(any_server: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, n INT)")
    any_server.query(f"INSERT INTO {database}.t VALUES (1, 1)")
    guard, info = LoadGuard(LoadBounds(history_list=500), "shop", lambda _: None), info_of(any_server)
    with any_server.connect(database) as old, any_server.connect(database) as writing:
        old.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        for _ in range(700):
            writing.query("UPDATE t SET n = n + 1")
        if any_server.flavour == "mysql":
            with WorkerConnection(info) as asked, pytest.raises(SourceRefused, match="GRANT PROCESS"):
                guard.is_busy(asked)
            any_server.query(f"GRANT PROCESS ON *.* TO '{info.user}'@'%'")
        try:
            with WorkerConnection(info) as asked:
                assert becomes(True, lambda: guard.is_busy(asked))
                old.rollback()
                assert becomes(False, lambda: guard.is_busy(asked))
        finally:
            if any_server.flavour == "mysql":
                any_server.query(f"REVOKE PROCESS ON *.* FROM '{info.user}'@'%'")


def test_a_replica_that_can_not_be_asked_pauses_and_one_that_is_none_is_refused(any_server: Server) -> None:
    lines: list[str] = []
    info = info_of(any_server)
    nowhere = ConnectionInfo("127.0.0.1", 1, "nobody")
    with WorkerConnection(info) as asked:
        gone = LoadGuard(LoadBounds(replica_lag_seconds=5, replica=nowhere), "shop", lines.append)
        assert gone.is_busy(asked)
        assert "its replica can't be asked: nobody@127.0.0.1:1: connection refused" in lines[0]
        none = LoadGuard(LoadBounds(replica_lag_seconds=5, replica=info), "shop", lines.append)
        with pytest.raises(SourceRefused, match=r"is no replica|GRANT REPLICATION CLIENT \(MariaDB: REPLICA MONITOR"):
            none.is_busy(asked)
        unnamed = LoadGuard(LoadBounds(replica_lag_seconds=5), "shop", lines.append)
        assert not unnamed.is_busy(asked)
    assert lines[-1] == "shop: names no replica_conn_id: the lag of its replicas isn't looked at"
