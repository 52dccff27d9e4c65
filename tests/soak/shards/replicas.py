"""The servers of one source: its primary, and where it has one the replica that takes its place.

In:  a flavour, a folder, a number; whether there is a replica.
Out: Replicas, a context manager: primary is the one that is written to. With a replica commits wait for its reply
     (semi-sync), so that a primary may die and nothing that was acknowledged is lost.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from tests.soak.shards.shop import OPTIONS
from tests.support.fault_proxy import FaultProxy
from tests.support.own_server import own_server
from tests.support.replica_pair import executed, promote, replicate, until, words
from tests.support.whole import Whole
from tidegate.local.server import Server
from tidegate.position import MariadbGtidPosition, MysqlGtidSet
from tidegate.tables import WATERMARK_DATABASE

_LOGS_REPLICATED: Final = {"mariadb": ("--log-slave-updates=ON",), "mysql9": ()}
_SECONDS: Final = 900.0  # a machine that is busy takes its time; a replica that stands still is a fault of ours


class Replicas(Whole):
    """all: both, by server_id. proxies: the network before each."""

    def __init__(self, flavour: str, folder: Path, number: int, *, replicated: bool) -> None:
        super().__init__()
        numbers = [101 + number, *([151 + number] if replicated else [])]
        self.all = {
            one: own_server(
                flavour, folder / str(one), options=(*OPTIONS, f"--server-id={one}", *_LOGS_REPLICATED[flavour])
            )
            for one in numbers
        }
        self.primary, *others = self.all.values()
        self.replica: Server | None = next(iter(others), None)
        self.replicates = False  # whether the replica follows, and commits wait for it
        self.proxies: dict[int, FaultProxy] = {}

    def _begin(self) -> None:
        primary = self.stack.enter_context(self.primary)
        account = f"'{primary.user}'@'%'"
        primary.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO {account}")
        if primary.flavour == "mysql":
            primary.query(f"GRANT XA_RECOVER_ADMIN ON *.* TO {account}")
        if self.replica is not None:
            if primary.flavour == "mysql":
                primary.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
                primary.query("INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
            self.replica.password = primary.password
            self.stack.callback(self.replica.stop)
            self.join()
        self.proxies = {
            number: self.stack.enter_context(FaultProxy(server.host, server.port))
            for number, server in self.all.items()
        }

    @property
    def proxy(self) -> FaultProxy:
        """Before the primary."""
        return next(self.proxies[number] for number, one in self.all.items() if one is self.primary)

    # --- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """The primary, which was down."""
        self.primary.start()
        if self.replicates:
            self._semi_sync()

    def replicated(self) -> None:
        """The replica has all that the primary has now."""
        if self.replica is not None and self.replicates:
            replica, wanted = self.replica, executed(self.primary)
            until(lambda: _has(replica, wanted), _SECONDS)

    def join(self) -> None:
        """The other server becomes a replica, as a copy of the primary, which stops for that long."""
        primary, replica = self.primary, self.replica
        assert replica is not None, "it has none"
        primary.stop()
        replica.stop()
        self._remember(replica)
        shutil.rmtree(replica.data / "data", ignore_errors=True)
        replica.data.mkdir(parents=True, exist_ok=True)
        shutil.copytree(primary.data / "data", replica.data / "data", symlinks=True)
        (replica.data / "data" / "auto.cnf").unlink(missing_ok=True)  # a server of its own
        primary.start()
        replica.start()
        replica.query(f"SET GLOBAL rpl_semi_sync_{self._word('replica')}_enabled = 1")
        replicate(primary, replica)
        self.replicates = True
        self._semi_sync()

    @staticmethod
    def _remember(server: Server) -> None:
        """Its binlog stays: capture may have read of it until now."""
        life = server.data / "lives" / f"{time.time_ns()}"
        life.mkdir(parents=True)
        for file in (server.data / "data").glob("binlog.0*"):
            file.rename(life / file.name)

    def _semi_sync(self) -> None:
        primary, word = self.primary, self._word("source")
        primary.query(f"SET GLOBAL rpl_semi_sync_{word}_timeout = 600000")
        primary.query(f"SET GLOBAL rpl_semi_sync_{word}_enabled = 1")
        until(lambda: self.clients > 0, _SECONDS)
        self.replicated()

    @property
    def clients(self) -> int:
        """Replicas whose reply commits wait for."""
        return int(self.primary.query(f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{self._word('source')}_clients'")[0][1])

    def take_over(self) -> None:
        """The replica applies what it received, and is the primary from here on: alone."""
        replica = self.replica
        assert replica is not None, "it has none"
        replica.query(words(replica, "STOP") + " IO_THREAD")
        until(lambda: self._has_applied(replica), _SECONDS)
        promote(replica)
        self.replicates = False
        self.primary, self.replica = replica, self.primary

    @staticmethod
    def _has_applied(replica: Server) -> bool:
        with replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute(words(replica, "SHOW") + " STATUS")
            names = [str(column[0]).lower() for column in cursor.description]
            told = dict(zip(names, cursor.fetchone(), strict=True))
        state = str(told.get("slave_sql_running_state") or told.get("replica_sql_running_state") or "")
        assert not (error := str(told.get("last_sql_error") or "")), f"the replica stopped: {error}"
        return "has read all relay log" in state

    def _word(self, role: str) -> str:
        return role if self.primary.flavour == "mysql" else {"source": "master", "replica": "slave"}[role]


def _has(server: Server, wanted: str) -> bool:
    """Whether all of these GTIDs are in its binlog: sessions write on meanwhile."""
    if server.flavour == "mysql":
        return not str(MysqlGtidSet.parse(wanted).minus(MysqlGtidSet.parse(executed(server))))
    there = MariadbGtidPosition.parse(executed(server)).domains
    return all(
        there.get(domain, (0, 0))[1] >= sequence
        for domain, (_, sequence) in MariadbGtidPosition.parse(wanted).domains.items()
    )
