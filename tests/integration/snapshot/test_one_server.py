"""One reading takes several connections. An address that leads to another server meanwhile gives the reading nothing.

In:  two servers with tables of the same names, behind one address that moves between two connections.
Out: an error that passes; no row, no column and no place of the other server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.captures import pipeline_for
from tests.support.fault_proxy import FaultProxy
from tests.support.own_server import own_server
from tidegate.config import SnapshotMarks
from tidegate.errors import SourceUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.mysql.facts.server_facts import current_position, read_facts
from tidegate.mysql.start.baseline import baseline_writer
from tidegate.mysql.start.settled import settled
from tidegate.position import Position
from tidegate.snapshot.marks.unlogged_marks import marks_for
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.view_reading import ExactView
from tidegate.snapshot.watermark import Mark, MarkKind

pytestmark = pytest.mark.server


class Unlogged:
    """A mark in no log: the end of the log of the server that is read."""

    at_ts = 0

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def begin(self) -> None:
        """Nothing is to be made."""

    def over(self, connection: Any) -> Unlogged:
        return self

    def write(self, mark: Mark) -> Position | None:
        with self._connection.cursor() as cursor:
            return current_position(cursor)


class Moving(NamedTuple):
    """An address that leads to the first server."""

    proxy: FaultProxy
    info: ConnectionInfo
    first: Server
    second: Server

    @contextmanager
    def moved(self) -> Iterator[None]:
        """New connections lead to the second one."""
        self.proxy.lead_to(self.second.host, self.second.port)
        try:
            yield
        finally:
            self.proxy.lead_to(self.first.host, self.first.port)


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moving]:
    folder = tmp_path_factory.mktemp("servers")
    with own_server("mariadb", folder / "a") as a, own_server("mariadb", folder / "b") as b:
        for server in (a, b):
            server.query("CREATE USER one@'%' IDENTIFIED BY 'both'")
            server.query("GRANT ALL ON *.* TO one@'%'")
            server.query("RESET MASTER")  # so places in their logs look alike
            server.query("CREATE DATABASE shop")
            server.query("CREATE TABLE shop.log (id INT)")
        b.query("INSERT INTO shop.log VALUES (2)")
        with FaultProxy(a.host, a.port) as proxy:
            yield Moving(proxy, ConnectionInfo(proxy.host, proxy.port, "one", "both"), a, b)


def test_a_view_at_one_place_is_of_the_server_whose_log_has_the_place(moving: Moving) -> None:
    mark, names = Mark("snapshot", 1, MarkKind.LOW, "0" * 32), [("shop", "log")]
    with WorkerConnection(moving.info) as asked, connect(moving.info) as marking:
        with moving.moved():
            with pytest.raises(SourceUnavailable, match="a different server answers now"):
                ExactView(asked, Unlogged(marking), mark, names)
            with pytest.raises(SourceUnavailable, match="leads to several servers"):
                asked.versions("one", names)
        assert asked.versions("one", names).keys() == set(names)
        with ExactView(asked, Unlogged(marking), mark, names) as view:
            assert view.connection.ask("SELECT count(*) FROM shop.log") == [(0,)]


@pytest.mark.parametrize("how", SnapshotMarks)
def test_marks_go_to_the_server_whose_rows_are_read(moving: Moving, tmp_path: Path, how: SnapshotMarks) -> None:
    """Servers of a cluster get each other's marks: a mark says nothing of what is visible at another one."""
    lake = LakeFiles(str(tmp_path))
    with WorkerConnection(moving.info) as asked:
        with moving.moved():
            elsewhere = connect(moving.info)
        with elsewhere, pytest.raises(SourceUnavailable, match="leads to several servers"):
            marks_for(asked, elsewhere, lake, ("p", "one"), how)
        with connect(moving.info) as marking:
            marks_for(asked, marking, lake, ("p", "one"), how)
    assert not moving.second.query("SHOW DATABASES LIKE 'tidegate'")


def test_a_beginning_takes_no_place_and_no_columns_of_another_server(moving: Moving, tmp_path: Path) -> None:
    with connect(moving.info) as connection:
        facts = read_facts(connection, moving.info)
    assert facts.position is not None
    pipeline = pipeline_for(moving.first, tmp_path, start="now")
    record = baseline_writer(pipeline, "one", moving.info, LakeFiles(str(tmp_path)))
    with moving.moved():
        with pytest.raises(SourceUnavailable, match="leads to several servers"):
            settled(moving.info, facts)
        with pytest.raises(SourceUnavailable, match="leads to several servers"):
            record(facts, facts.position)
    assert settled(moving.info, facts).position == facts.position
    record(facts, facts.position)
