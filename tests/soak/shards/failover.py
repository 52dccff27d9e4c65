"""A replica takes the place of its primary, while sessions write and capture reads.

In:  a place whose servers replicate.
Out: HOW: functions. After each the other server is the primary, all that was acknowledged is there, capture reads on
     there, and the former primary is its replica.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

import pymysql

from tests.soak.shards.place import Place
from tests.support.replica_pair import until
from tidegate.local.server import Server

_ALONE_SECONDS: Final = 0.5
_END_SECONDS: Final = 60.0


def killed(place: Place) -> None:
    """The primary dies while it is written to. Capture is away for a moment before that: it may have nothing that was
    never acknowledged, which the replica wouldn't have.
    """
    servers, capture = place.servers, place.capture
    with place.shop.branches:
        capture.stop()
        try:
            if capture.child is not None:
                capture.child.wait(_END_SECONDS)
            servers.replicated()
            time.sleep(_ALONE_SECONDS)
            servers.primary.kill()
            servers.take_over()
        finally:
            capture.go_on()
        place.now_at(servers.primary)
    _goes_on(place)


def fenced(place: Place) -> None:
    """The former primary lives on, and takes nothing any more."""
    _switched(place)
    _goes_on(place)


def fenced_and_killed(place: Place) -> None:
    """The same, and capture is started anew meanwhile."""
    _switched(place)
    place.capture.kill()
    _goes_on(place)


def _switched(place: Place) -> None:
    servers = place.servers
    with place.shop.branches:
        place.shop.frozen = True  # nobody comes from another server either: what isn't acknowledged may be captured
        place.shop.pause()
        try:
            _end_sessions(servers.primary)
            servers.replicated()
            servers.primary.query("SET GLOBAL read_only = 1")
            servers.take_over()
            place.now_at(servers.primary)
        finally:
            place.shop.resume()
            place.shop.frozen = False


def _end_sessions(server: Server) -> None:
    """Of those who write; a commit that is logged is waited for."""
    sessions = "SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> CONNECTION_ID()"
    for (session,) in server.query(sessions):
        with contextlib.suppress(pymysql.err.MySQLError):  # it is gone by itself
            server.query(f"KILL {session}")
    until(lambda: not server.query(sessions))


def _goes_on(place: Place) -> None:
    place.look_for_told()
    place.moves_to(place.servers.primary)
    place.failovers += 1
    with place.shop.branches:
        place.servers.join()


HOW: Final[dict[str, Callable[[Place], None]]] = {one.__name__: one for one in (killed, fenced, fenced_and_killed)}
