"""A group of three MySQL servers (Group Replication): capture reads one that is in the group, whatever becomes of them.

In:  three real nodes, one pipeline that lists them; the node that is read is expelled, then the primary dies,
     then the majority is gone.
Out: every row once, from nodes that the group has; while no node has a majority, an error that says so.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.kit.road import Road
from tests.support.captures import Background, bronze_segments, wait_for_bronze
from tests.support.own_server import own_server_or_skip
from tests.support.replica_pair import until
from tidegate.lake.figures.status import captured_server
from tidegate.local.server import Server, free_port
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo, Endpoint
from tidegate.mysql.facts.server_facts import facts_of

pytestmark = [pytest.mark.server, pytest.mark.long, pytest.mark.timeout(1800)]

_SECONDS: Final = 300.0
_MEMBERS: Final = "SELECT member_id = @@server_uuid, member_state FROM performance_schema.replication_group_members"


def _options(number: int, ports: list[int]) -> tuple[str, ...]:
    own = {
        "group-name": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
        "local-address": f"127.0.0.1:{ports[number]}",
        "group-seeds": ",".join(f"127.0.0.1:{port}" for port in ports),
        "ip-allowlist": "127.0.0.1/32",
        "start-on-boot": "OFF",
        "communication-stack": "XCOM",
        "ssl-mode": "DISABLED",
        "recovery-get-public-key": "ON",
        "autorejoin-tries": "0",
        "member-expel-timeout": "0",
    }
    loose = [f"--loose-group-replication-{name}={value}" for name, value in own.items()]
    load = ("--performance-schema=ON", "--plugin-load-add=group_replication.so", "--report-host=127.0.0.1")
    return (f"--server-id={number + 1}", *load, *loose)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[list[Server]]:
    """The first one is the primary."""
    ports = [free_port() for _ in range(3)]
    with ExitStack() as running:
        nodes = [
            running.enter_context(own_server_or_skip("mysql9", tmp_path / str(at), options=_options(at, ports)))
            for at in range(3)
        ]
        for node in nodes:
            with node.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_log_bin = 0")
                cursor.execute(f"ALTER USER '{node.user}'@'%%' IDENTIFIED BY %s", (nodes[0].password,))
                node.password = nodes[0].password
                cursor.execute("RESET BINARY LOGS AND GTIDS")
                login = f"SOURCE_USER = '{node.user}', SOURCE_PASSWORD = '{node.password}'"
                cursor.execute(f"CHANGE REPLICATION SOURCE TO {login} FOR CHANNEL 'group_replication_recovery'")
                cursor.execute(f"SET GLOBAL group_replication_bootstrap_group = {int(node is nodes[0])}")
                cursor.execute("START GROUP_REPLICATION")
                cursor.execute("SET GLOBAL group_replication_bootstrap_group = 0")
        until(lambda: _states(nodes[0]) == ["ONLINE"] * 3, _SECONDS)
        yield nodes


def _states(node: Server) -> list[str]:
    """Its own first."""
    return [str(state) for _, state in sorted(node.query(_MEMBERS), reverse=True)]


class _Story:
    def __init__(self, nodes: list[Server], folder: Path) -> None:
        self.nodes = nodes
        self.rows = 0
        self.road = Road(nodes[1], folder, include="shop.*")
        self.lake = folder / "lake"

    def background(self) -> Background:
        """The second one is listed first."""
        first, *others = (self.nodes[at] for at in (1, 0, 2))
        info = ConnectionInfo(first.host, first.port, first.user, first.password)
        info = replace(info, others=tuple(Endpoint(one.host, one.port) for one in others))
        return Background(binlog_run(self.road.pipeline, "one", info, self.road.folder / "state"), 1800)

    def insert(self, node: Server) -> None:
        self.rows += 1
        node.query("INSERT INTO shop.t VALUES (%s, %s)", (self.rows, f"row-{self.rows:04d}."))

    def captured(self) -> bool:
        payload = b"".join(bytes(one.payload) for one in bronze_segments(self.lake))
        counts = [payload.count(f"row-{number:04d}.".encode()) for number in range(1, self.rows + 1)]
        assert max(counts) <= 1, "none is there twice"
        return all(counts)

    @property
    def read_from(self) -> Server:
        found = captured_server(self.road.lake, "one")
        assert found is not None
        return self.nodes[found[0] - 1]


def test_a_node_that_its_group_lost_is_left_and_one_that_joins_again_is_a_host_as_before(
    group: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.mysql.servers.fence.FENCE_LOOK_SECONDS", 1.0)
    first, second, third = group
    story = _Story(group, tmp_path)
    with story.background() as run:
        wait_for_bronze(story.lake, bool)
        first.query("CREATE DATABASE shop")
        first.query("CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(20))")
        story.insert(first)
        until(story.captured, _SECONDS)
        assert story.read_from is second

        _asleep(second, until_others_say=(first, 2))
        story.insert(first)
        second.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
        until(lambda: _states(second) == ["ERROR"], _SECONDS)
        story.insert(first)
        until(lambda: story.captured() and story.read_from is first, _SECONDS)
        second.query("STOP GROUP_REPLICATION")
        second.query("START GROUP_REPLICATION")
        until(lambda: _states(second) == ["ONLINE"] * 3, _SECONDS)

        first.kill()
        until(lambda: _states(second) == ["ONLINE"] * 2 and _primary(second, third) is not None, _SECONDS)
        primary = _primary(second, third)
        assert primary is not None
        story.insert(primary)
        until(lambda: story.captured() and story.read_from in (second, third), _SECONDS)
        assert run.error is None
    _no_majority(story, second, third)


def _no_majority(story: _Story, second: Server, third: Server) -> None:
    with story.background() as run:
        _asleep(third, until_others_say=(second, 2))
        until(lambda: _states(second) == ["ONLINE", "UNREACHABLE"], _SECONDS)
        third.process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
        until(lambda: _states(second) == ["ONLINE"] * 2, _SECONDS)
        primary = _primary(second, third)
        assert primary is not None
        story.insert(primary)
        until(story.captured, _SECONDS)
        assert run.error is None


def _asleep(node: Server, *, until_others_say: tuple[Server, int]) -> None:
    """As one whose network is gone for a while; until another node lists so many members."""
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    other, members = until_others_say
    until(lambda: len(_states(other)) == members, _SECONDS)


def _primary(*nodes: Server) -> Server | None:
    return next((node for node in nodes if node.query("SELECT @@super_read_only") == [(0,)]), None)


def test_a_replica_that_is_set_up_for_a_group_but_in_none_is_a_server_like_any_other(tmp_path: Path) -> None:
    """It is read-only, as replicas are; what comes to it comes from the server that it follows."""
    with own_server_or_skip("mysql9", tmp_path, options=_options(0, [free_port()])) as node:
        info = ConnectionInfo(node.host, port=node.port, user=node.user, password=node.password)

        def cut_off() -> str:
            with node.connect() as connection, connection.cursor() as cursor:
                return facts_of(cursor, info).cut_off

        node.query("SET GLOBAL read_only = ON")
        assert "OFFLINE" in cut_off()
        node.query("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_USER = 'nobody'")
        node.query("START REPLICA")
        assert cut_off() == ""
        node.query("STOP REPLICA")
        assert "OFFLINE" in cut_off()
