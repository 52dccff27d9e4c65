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

from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.limits import FENCE_LOOK_SECONDS, STANDING_ANSWER_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.mysql.facts.cluster import check_in_cluster, read_cut_off
from tidegate.mysql.facts.server_facts import SourceFacts, facts_of, read_facts, says_read_only
from tidegate.mysql.servers.other_hosts import is_fenced, takes_over

log = logging.getLogger(__name__)


class FenceWatch:
    """The check of one connection of capture. at: its host, and the host's facts."""

    def __init__(self, hosts: ConnectionInfo, at: ConnectionInfo, facts: SourceFacts) -> None:
        self._at = at
        self._variables = facts.variables if facts.clustered else None
        self._others = [host for host in hosts.each if host.endpoint != at.endpoint]
        self._look_at = time.monotonic() + FENCE_LOOK_SECONDS
        self._receives: bool | None = None  # at the last look, of a host that was read-only then

    def look(self, ask: Callable[[Callable[[Any], Any]], Any]) -> None:
        """Look, when it is time. Raises SourceUnavailable: the host is fenced off, or is silent."""
        if (self._others or self._variables is not None) and time.monotonic() >= self._look_at:
            self._looked(ask)

    def has_all(self, ask: Callable[[Callable[[Any], Any]], Any]) -> bool:
        """Whether no other host has committed anything that this host lacks: then this host's quiet is
        the source's quiet. A read-only host knows it only from its last look. Raises as look().
        """
        if self._variables is not None:
            self._check_in_cluster(ask)
        if not self._others:
            return True
        if not ask(_reads_only):
            self._receives = None
            return True
        if self._receives is None or time.monotonic() >= self._look_at:
            return self._looked(ask)
        return self._receives

    def _looked(self, ask: Callable[[Callable[[Any], Any]], Any]) -> bool:
        self._look_at = time.monotonic() + FENCE_LOOK_SECONDS
        self._check_in_cluster(ask)
        self._receives = None
        if not self._others or not ask(_reads_only):
            return True
        facts: SourceFacts = ask(lambda cursor: facts_of(cursor, self._at))
        self._receives = not is_fenced(facts)
        if self._receives:
            return True
        silent = list[str]()
        for other in self._others:
            try:
                promoted = _asked(other)
            except (SourceUnavailable, SourceRefused):  # asked again later; the stream isn't read meanwhile
                silent.append(str(other.endpoint))
                continue
            if takes_over(facts, promoted):
                raise SourceUnavailable(
                    f"the server is read-only and follows nobody, and host {other.endpoint} was promoted: it has more",
                    where=self._at.where,
                    remedy="capture continues at that host, if it has the whole captured log",
                )
        if silent:
            what = "is read-only and follows nobody; its quiet proves nothing while these hosts don't answer"
            log.warning("%s: %s: %s", self._at.where, what, ", ".join(silent))
        return not silent

    def _check_in_cluster(self, ask: Callable[[Callable[[Any], Any]], Any]) -> None:
        if (variables := self._variables) is not None:
            check_in_cluster(ask(lambda cursor: read_cut_off(cursor, variables)), self._at)


def _asked(host: ConnectionInfo) -> SourceFacts:
    seconds = STANDING_ANSWER_SECONDS
    with connect(host, connect_timeout=seconds, read_timeout=seconds) as connection:
        return read_facts(connection, host)


def _reads_only(cursor: Any) -> bool:
    cursor.execute("SELECT @@global.read_only")
    return says_read_only(cursor.fetchone()[0])
