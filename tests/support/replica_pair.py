"""Two real servers of one flavour, of which the second replicates from the first by GTID; roles may be changed.

In:  a flavour, a folder.
Out: replica_pair(): a Pair, running; its methods replicate, promote, wait.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
from pymysql.constants import CR, ER

from tests.support.own_server import own_server_or_skip
from tidegate.local.server import Server

_GONE = (CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, ER.SERVER_SHUTDOWN)
_PACKET = "--max-allowed-packet=268435456"


@dataclass
class Pair:
    """primary, replica: as they were at the start."""

    primary: Server
    replica: Server

    def replicated(self) -> None:
        """Wait until the replica has all that the primary has."""
        until(lambda: executed(self.replica) == executed(self.primary))


@contextlib.contextmanager
def replica_pair(flavour: str, folder: Path, *options: str) -> Iterator[Pair]:
    """flavour: mariadb or mysql9."""
    with _server(flavour, folder / "a", 101, options) as primary, _server(flavour, folder / "b", 102, options) as other:
        replicate(primary, other)
        yield Pair(primary, other)


def _server(flavour: str, folder: Path, number: int, options: tuple[str, ...]) -> Server:
    own = ("--log-slave-updates=ON",) if flavour == "mariadb" else ()
    return own_server_or_skip(flavour, folder, options=(f"--server-id={number}", _PACKET, *own, *options))


def replicate(primary: Server, replica: Server) -> None:
    """Let a server replicate from another one, from where it is."""
    login = f"HOST='{primary.host}', {{0}}PORT={primary.port}, {{0}}USER='{primary.user}'"
    if replica.flavour == "mariadb":
        replica.query(f"SET GLOBAL gtid_slave_pos = '{executed(replica)}'")
        replica.query(
            "CHANGE MASTER TO MASTER_" + login.format("MASTER_") + f", MASTER_PASSWORD='{primary.password}',"
            " MASTER_USE_GTID=slave_pos, MASTER_SSL_VERIFY_SERVER_CERT=0, MASTER_CONNECT_RETRY=1"
        )
    else:
        replica.query(
            "CHANGE REPLICATION SOURCE TO SOURCE_"
            + login.format("SOURCE_")
            + f", SOURCE_PASSWORD='{primary.password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1,"
            " SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=86400"
        )
    replica.query(words(replica, "START"))


def promote(replica: Server) -> None:
    """It replicates no more, and forgets from whom it did."""
    replica.query(words(replica, "STOP"))
    replica.query(words(replica, "RESET") + " ALL")


def words(server: Server, verb: str) -> str:
    return f"{verb} {'SLAVE' if server.flavour == 'mariadb' else 'REPLICA'}"


def executed(server: Server) -> str:
    """GTIDs that its binlog has, as text."""
    return server.variables["gtid_binlog_pos" if server.flavour == "mariadb" else "gtid_executed"].replace("\n", "")


def purge_logs(server: Server) -> None:
    """Every file of its binlog but a new one goes. Of what a reader is in that has left, and that the server hasn't
    missed yet, PURGE keeps all without a word: it is asked until it is done.
    """
    server.query("FLUSH BINARY LOGS")
    newest = server.query("SHOW BINARY LOGS")[-1][0]

    def done() -> bool:
        server.query(f"PURGE BINARY LOGS TO '{newest}'")
        return bool(server.query("SHOW BINARY LOGS")[0][0] == newest)

    until(done)


def until(condition: Callable[[], bool], seconds: float = 900) -> None:
    """Wait for it. A server that restarts, wakes or leaves its group ends sessions, also those that begin:
    it is asked again.
    """
    end = time.monotonic() + seconds
    while not _holds(condition):
        assert time.monotonic() < end
        time.sleep(0.1)


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except pymysql.err.OperationalError as error:
        if error.args[0] not in _GONE:
            raise
        return False
