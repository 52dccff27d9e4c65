"""Several hosts of one source: which one is read, and when another one is.

In:  a connection's hosts in order, a way to open one, the last captured server.
Out: the first host able to continue the captured log; or one error with the reason of each host.

The last captured host is asked first, wherever it is in the list: a former primary may return,
alone and complete, and must not replace the new one. Only if this host is fenced off (it is
read-only, and nothing comes to it), a promoted host goes first: it is written to, follows nobody,
and has more (mysql/servers/other_hosts.py). Then the order of the list counts. A host that is dead,
refused, behind, or without the next events is skipped if another one can continue. If none can,
passing causes decide: a replica with a relay log to apply is waited for, a dead host may come back
with all of it. Capture stops only if each host can't continue for good; then a person decides
(`tidegate accept`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

import pymysql

from tidegate.errors import (
    ConfigError,
    PositionLost,
    SourceBehind,
    SourceRefused,
    SourceUnavailable,
    StreamCorrupt,
    TidegateError,
)
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.facts.server_facts import SERVER_IDS, SourceFacts, server_of
from tidegate.mysql.servers.other_hosts import is_fenced, takes_over
from tidegate.segments.segment import Server

log = logging.getLogger(__name__)

# What one host says that another may not; the first of these that any says is what becomes of the source.
_PASSED_OVER = (SourceBehind, SourceUnavailable, PositionLost, SourceRefused, StreamCorrupt)


class Opened(Protocol):
    """A host that is open, with its facts."""

    facts: SourceFacts

    def close(self) -> None: ...


T = TypeVar("T")
OpenedT = TypeVar("OpenedT", bound=Opened)


class Hosts:
    """A walk over a source's hosts, for one connection of capture.

    at_hand: the host until now. It is asked first, as the cause of a lost connection passes more often than the host
    dies. A dead host asked before it may take its time to say so.
    """

    def __init__(self, info: ConnectionInfo, at_hand: ConnectionInfo) -> None:
        self._info = info
        self._left = sorted(info.each, key=lambda host: host.endpoint != at_hand.endpoint)
        self._failures: list[tuple[ConnectionInfo, TidegateError]] = []

    def first(self, opening: Callable[[ConnectionInfo], OpenedT]) -> tuple[ConnectionInfo, OpenedT]:
        """The first host that can be opened. Raises what the hosts say together."""
        opened = next(self._opened(opening), None)
        if opened is None:
            raise together(self._info, self._failures)
        return opened

    def first_that(
        self,
        at: tuple[ConnectionInfo, OpenedT],
        opening: Callable[[ConnectionInfo], OpenedT],
        server: Server,
        goes_on: Callable[[ConnectionInfo, OpenedT], T],
    ) -> tuple[ConnectionInfo, OpenedT, T]:
        """The host that goes on, still open, and the result of goes_on there; all others are closed.

        at: the result of `first`. server: the last captured one. Raises what the hosts say together.
        """
        opened, promoted, chosen = [at], list[tuple[ConnectionInfo, OpenedT]](), None
        try:
            if not _is(at[1], server) or is_fenced(at[1].facts):
                # Another host may be the one. As the sort is stable, the rest keeps its order.
                opened += self._opened(opening)
                opened.sort(key=lambda host: not _is(host[1], server))
                promoted = [host for host in opened if _takes_over(opened[0][1], host[1], server)]
                opened.sort(key=lambda host: host not in promoted)
            for candidate in chain(list(opened), self._opened(opening)):
                if candidate not in opened:
                    opened.append(candidate)
                try:
                    outcome = goes_on(*candidate)
                except _PASSED_OVER as error:
                    self._failures.append((candidate[0], error))
                    if candidate in promoted:  # who is read instead gets nothing any more
                        log.warning(
                            "host %s was promoted, but capture can't continue there: %s", candidate[0].endpoint, error
                        )
                else:
                    chosen = candidate[1]
                    return *candidate, outcome
        finally:
            for _, other in opened:
                if other is not chosen:
                    other.close()
        raise together(self._info, self._failures)

    def _opened(self, opening: Callable[[ConnectionInfo], OpenedT]) -> Iterator[tuple[ConnectionInfo, OpenedT]]:
        while self._left:
            info = self._left.pop(0)
            try:
                yield info, opening(info)
            except (SourceUnavailable, SourceRefused, ConfigError) as error:
                self._failures.append((info, error))


def _takes_over(first: Opened, other: Opened, server: Server) -> bool:
    return _is(first, server) and takes_over(first.facts, other.facts)


def _is(opened: Opened, server: Server) -> bool:
    return (opened.facts.server_id, opened.facts.server_uuid) == server


def together(info: ConnectionInfo, failures: Sequence[tuple[ConnectionInfo, TidegateError]]) -> TidegateError:
    """One error in all hosts' words. Its kind is the one with most hope; a single host keeps its own error."""
    if not info.others and failures:
        return failures[-1][1]
    errors = {host.endpoint: error for host, error in failures}
    by_hope = [error for kind in (*_PASSED_OVER, ConfigError) for error in errors.values() if isinstance(error, kind)]
    best = next(iter(by_hope), SourceUnavailable("no host was asked", remedy="try again"))
    each = "; ".join(f"{endpoint}: {error.what} ({error.remedy!s})" for endpoint, error in errors.items())
    return type(best)(
        f"none of the source's {len(info.each)} hosts can go on: {each}", where=info.where, remedy=best.remedy
    )


def host_of(info: ConnectionInfo, server: Server | None) -> ConnectionInfo:
    """This server's host; else the first that answers; else the first. For those who write nothing there, and compare
    no positions.
    """
    if not info.others:
        return info
    answered: list[ConnectionInfo] = []
    for host in info.each:
        with contextlib.suppress(SourceUnavailable, SourceRefused):
            if server_at(host) == server or server is None:
                return host
            answered.append(host)
    return next(iter([*answered, *info.each]))


def captured_host(info: ConnectionInfo, server: Server | None) -> ConnectionInfo:
    """The host of capture's own server, for callers that need this very server: positions of
    another one mean nothing to them, and a write at a replica makes it unfit to take over.
    Before anything is captured (server None), as host_of.

    A connection with one host is asked nothing. Raises SourceUnavailable if no answering host is
    it.
    """
    if server is None or not info.others:
        return host_of(info, server)
    failures: list[tuple[ConnectionInfo, TidegateError]] = []
    for candidate in info.each:
        try:
            if (ids := server_at(candidate)) == server:
                return candidate
            error: TidegateError = SourceUnavailable(f"it is server {_shown(ids)}", remedy="it isn't used")
        except (SourceUnavailable, SourceRefused) as failure:
            error = failure
        failures.append((candidate, error))
    each = "; ".join(f"{host.endpoint}: {error.what}" for host, error in failures)
    raise SourceUnavailable(
        f"none of the source's hosts is server {_shown(server)}, which was captured last: {each}",
        where=info.where,
        remedy="it is tried again; once capture goes on at another host that one is used",
    )


def _shown(server: Server) -> str:
    return f"{server[0]} ({server[1]})" if server[1] else str(server[0])


def server_at(info: ConnectionInfo) -> Server:
    """Which server answers there. Raises SourceRefused, SourceUnavailable."""
    with connect(info, read_timeout=10) as connection, connection.cursor() as cursor:
        try:
            cursor.execute(SERVER_IDS)
            variables: dict[str, Any] = {str(name).lower(): value for name, value in cursor.fetchall()}
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, info) from error
    return server_of(variables)
