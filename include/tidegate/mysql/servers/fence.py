"""Whether the host of capture still gets its source's commits, checked now and then.

In:  the hosts of a source, capture's host, questions to it over the second connection.
Out: nothing; or SourceUnavailable, which ends the connection: the next one goes to a host that
     continues (mysql/servers/hosts.py). has_all(): whether the host's quiet is the source's.

If another host was promoted, the former primary is fenced off, and answers like a quiet server. So
does a node cut off from its cluster (mysql/facts/cluster.py). Their logs show nothing of events
elsewhere.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from tidegate.config import Flavour
from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.limits import FENCE_LOOK_SECONDS, STANDING_ANSWER_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.mysql.facts.cluster import check_in_cluster, read_cut_off
from tidegate.mysql.facts.server_facts import (
    SourceFacts,
    facts_of,
    read_facts,
    read_replications,
    says_read_only,
)
from tidegate.mysql.servers.other_hosts import is_fenced, takes_over

log = logging.getLogger(__name__)

Ask = Callable[[Callable[[Any], Any]], Any]


class FenceWatch:
    """The check of one connection of capture. at: its host, and the host's facts."""

    def __init__(self, hosts: ConnectionInfo, at: ConnectionInfo, facts: SourceFacts) -> None:
        self._at = at
        self._mariadb = facts.flavour is Flavour.MARIADB
        self._variables = facts.variables if facts.clustered else None
        # The host's own address, too: a name or a virtual address may lead to another server by now.
        self._asked = [*(host for host in hosts.each if host.endpoint != at.endpoint), at]
        self._look_at = time.monotonic() + FENCE_LOOK_SECONDS
        self._is_fenced = False  # when heartbeats asked last

    def look(self, ask: Ask) -> None:
        """Look, when it is time. Raises SourceUnavailable: the host is fenced off, or is silent."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + FENCE_LOOK_SECONDS
            self._check_in_cluster(ask)
            if ask(self._is_fenced_off):
                self._has_all(ask)

    def has_all(self, ask: Ask) -> bool:
        """Whether no other host has committed anything that this host lacks: then this host's quiet is
        the source's quiet. A fenced host knows it right after a look alone. Raises as look().
        """
        self._check_in_cluster(ask)
        before, self._is_fenced = self._is_fenced, bool(ask(self._is_fenced_off))
        if not self._is_fenced:
            return True
        if before and time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + FENCE_LOOK_SECONDS
        return self._has_all(ask)

    def _is_fenced_off(self, cursor: Any) -> bool:
        """As other_hosts.is_fenced, in two questions at most: a heartbeat asks it."""
        if self._variables is not None or not _reads_only(cursor):
            return False
        return not any(of.applies for of in read_replications(cursor, mariadb=self._mariadb)[0])

    def _has_all(self, ask: Ask) -> bool:
        """Ask the others of a fenced host."""
        facts: SourceFacts = ask(lambda cursor: facts_of(cursor, self._at))
        if not is_fenced(facts):
            return True
        silent = list[str]()
        for other in self._asked:
            try:
                promoted = _asked(other)
            except (SourceUnavailable, SourceRefused):  # asked again later; the stream isn't read meanwhile
                silent.append(str(other.endpoint))
                continue
            if takes_over(facts, promoted):
                who = "another one at its address" if other is self._at else f"host {other.endpoint}"
                raise SourceUnavailable(
                    f"the server is read-only and follows nobody, and {who} was promoted: it has more",
                    where=self._at.where,
                    remedy="capture continues at that host, if it has the whole captured log",
                )
        if silent:
            what = "is read-only and follows nobody; its quiet proves nothing while these hosts don't answer"
            log.warning("%s: %s: %s", self._at.where, what, ", ".join(silent))
        return not silent

    def _check_in_cluster(self, ask: Ask) -> None:
        if (variables := self._variables) is not None:
            check_in_cluster(ask(lambda cursor: read_cut_off(cursor, variables)), self._at)


def _asked(host: ConnectionInfo) -> SourceFacts:
    seconds = STANDING_ANSWER_SECONDS
    with connect(host, connect_timeout=seconds, read_timeout=seconds) as connection:
        return read_facts(connection, host)


def _reads_only(cursor: Any) -> bool:
    cursor.execute("SELECT @@global.read_only")
    return says_read_only(cursor.fetchone()[0])
