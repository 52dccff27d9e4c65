"""What looks at a source beside a running capture ends nothing; what a replica is told to leave out is seen.

In:  real servers.
Out: `tidegate accept`'s look at a source that is captured; the facts of a replica with a filter.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.captures import (
    Background,
    binlog_end,
    capture_run,
    has_reached,
    info_of,
    pipeline_for,
    source_of,
    wait_for_bronze,
)
from tests.support.own_server import own_server_or_skip
from tests.support.replica_pair import replicate
from tests.support.servers import FreshDatabase
from tidegate.capture.captured import Captured
from tidegate.capture.recovery import recover
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import SourceRefused
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.acceptance import find_gap
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.demands.preflight import SourceDemands, preflight
from tidegate.mysql.facts.server_facts import read_facts

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def test_a_look_at_a_source_ends_no_capture_of_it_elsewhere(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server ends the stream of a replica that comes again under its ids."""
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    with Background(capture_run(any_server, lake)):
        wait_for_bronze(lake, bool)
        any_server.query("INSERT INTO t VALUES (1)", database=database)
        end = binlog_end(any_server)
        wait_for_bronze(lake, has_reached(end))
        source, bronze = source_of(any_server, lake), Bronze(LakeFiles(str(lake)), "one")
        value_log = ValueLog(tmp_path / "elsewhere")
        recovered = recover(bronze, value_log, source.nothing)
        for _ in range(3):
            assert find_gap(source, Captured(bronze, value_log, recovered.tail), recovered.checkpoint) is None
        value_log.close()
        any_server.query("INSERT INTO t VALUES (2)", database=database)
        end = binlog_end(any_server)
        wait_for_bronze(lake, has_reached(end), seconds=60)
    assert "connection lost" not in caplog.text


@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_a_replica_that_leaves_a_kept_database_out_is_refused(tmp_path: Path, flavour: str) -> None:
    logs = ("--log-slave-updates=ON",) if flavour == "mariadb" else ()
    primary = own_server_or_skip(flavour, tmp_path / "a", options=("--server-id=101", *logs))
    replica = own_server_or_skip(
        flavour, tmp_path / "b", options=("--server-id=102", "--replicate-ignore-table=shop.left", *logs)
    )
    with primary, replica:
        for server in (primary, replica):
            server.query("CREATE DATABASE shop")
            server.query("RESET MASTER" if flavour == "mariadb" else "RESET BINARY LOGS AND GTIDS")
        replicate(primary, replica)
        with connect(info_of(replica)) as connection:
            facts = read_facts(connection, info_of(replica))
    wanted = SourceDemands.of(pipeline_for(replica, tmp_path / "lake"), "one")
    if facts.hides_replications:  # MariaDB shows it to accounts with REPLICA MONITOR alone
        assert not any(one.filters for one in facts.replications)
        return
    with pytest.raises(SourceRefused, match="without all that the pipeline keeps: replicate-ignore-table"):
        preflight(facts, wanted)
