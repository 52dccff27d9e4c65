"""One source of several: its servers, its shop at work, who captures it, who witnesses it, and its turns.

In:  what stands there already: servers that run, a capture that isn't started.
Out: Place; its faults come one after the other (turns), beside those of other places.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tests.soak.capturing import Capture, until
from tests.soak.shards.replicas import Replicas
from tests.soak.shards.shop import MONEY, Shop
from tests.soak.shards.turns import Turns
from tests.soak.source import DATABASE
from tests.soak.witness import Witness, Wrong
from tests.support.captures import binlog_end
from tests.support.fault_proxy import FaultProxy
from tidegate.local.server import Server

_MARKER_SESSION: Final = 98


class Place:
    """folder: of the whole soak. told: how many transactions were acknowledged, and looked for after a failover."""

    def __init__(self, folder: Path, servers: Replicas, shop: Shop, capture: Capture) -> None:
        self.folder, self.servers, self.shop, self.capture = folder, servers, shop, capture
        self.witness = Witness(folder / "lake", servers.primary, shop.source, servers.all)
        self.turns = Turns()
        self.failovers = self.told = 0

    @property
    def is_up(self) -> bool:
        return self.servers.primary.process is not None

    @property
    def proxy(self) -> FaultProxy:
        return self.servers.proxy

    def begin(self) -> None:
        """Make its tables, once capture is there: nothing is from before."""
        witness = self.witness
        until(self.capture, witness, lambda: witness.look()[1] > 0, f"{self.shop.source}: capture doesn't begin")
        self.shop.create()

    def catch_up(self) -> None:
        """Bronze has all that the primary has now, perhaps by its replica: capture stays where it is. Raises Wrong."""
        server, marker = self.servers.primary, (_MARKER_SESSION, time.time_ns())
        server.query("INSERT INTO txns VALUES (%s, %s)", marker, database=DATABASE)
        file, offset = binlog_end(server)
        what = f"{self.shop.source}: bronze doesn't get to {file}:{offset} of the primary"
        until(self.capture, self.witness, lambda: self._has(marker), what)

    def settle(self) -> None:
        """No branch is open, all that was acknowledged is there, and bronze has all of it once. Raises Wrong."""
        (self.capture.gate / "arm").unlink(missing_ok=True)
        self.proxy.mend()
        self.shop.pause()
        self.shop.answer_all()
        self.catch_up()
        self.look_for_told()
        self.shop.told.clear()
        self.servers.replicated()
        self.witness.settle()
        if (found := self.shop.money()) != MONEY:
            raise Wrong(f"{self.shop.source} itself has {found} of {MONEY}")
        self.capture.rivals = 0

    def moves_to(self, server: Server) -> None:
        """Wait until bronze has something of this server, and so all that it takes of the other one. Raises Wrong."""
        until(self.capture, self.witness, lambda: self._reads(server), f"{self.shop.source}: it isn't read on")

    def now_at(self, server: Server) -> None:
        """All go on at this server."""
        self.shop.server = self.witness.server = server

    def look_for_told(self) -> None:
        """What a session was told is committed is there. Raises Wrong."""
        told = set(self.shop.told)
        rows = self.servers.primary.query("SELECT session, n FROM txns", database=DATABASE)
        if lost := told - set(rows):
            raise Wrong(f"{self.shop.source}: the server lost {len(lost)} that were acknowledged: {sorted(lost)[:3]}")
        self.told += len(told)

    def _has(self, marker: tuple[int, int]) -> bool:
        """By what was committed, not by a place in a log: a server that was made anew has others of the same names."""
        self.witness.look()
        return self.witness.has(marker)

    def _reads(self, server: Server) -> bool:
        self.witness.look()
        return self.witness.read_from is server
