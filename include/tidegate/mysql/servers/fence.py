"""Whether the host of capture still gets its source's commits: looked at now and then.

In:  the hosts of a source, capture's host, questions to it over the second connection.
Out: nothing; or SourceUnavailable, to end the connection: the next one goes to a continuing host
     (mysql/servers/hosts.py).

A former primary, fenced off while another host was promoted, answers as a quiet server does, and so
does a node cut off from its cluster (mysql/facts/cluster.py). Their logs tell nothing of events
elsewhere.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.limits import FENCE_LOOK_SECONDS, STANDING_ANSWER_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.mysql.facts.cluster import check_in_cluster, read_cut_off
from tidegate.mysql.facts.server_facts import SourceFacts, facts_of, read_facts, says_read_only
from tidegate.mysql.servers.other_hosts import is_fenced, takes_over


class FenceWatch:
    """The check of one connection of capture. at: its host, and the host's facts."""

    def __init__(self, hosts: ConnectionInfo, at: ConnectionInfo, facts: SourceFacts) -> None:
        self._at = at
        self._variables = facts.variables if facts.clustered else None
        self._others = [host for host in hosts.each if host.endpoint != at.endpoint]
        self._look_at = time.monotonic() + FENCE_LOOK_SECONDS

    def look(self, ask: Callable[[Callable[[Any], Any]], Any]) -> None:
        """Look, when it is time. Raises SourceUnavailable: the host is fenced off, or is silent."""
        variables = self._variables
        if (not self._others and variables is None) or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + FENCE_LOOK_SECONDS
        if variables is not None:
            check_in_cluster(ask(lambda cursor: read_cut_off(cursor, variables)), self._at)
        if not self._others or not ask(_reads_only):
            return
        facts: SourceFacts = ask(lambda cursor: facts_of(cursor, self._at))
        for other in self._others if is_fenced(facts) else ():
            # One that doesn't answer now is asked again later; the stream isn't read meanwhile.
            with contextlib.suppress(SourceUnavailable, SourceRefused):
                promoted = _asked(other)
                if takes_over(facts, promoted):
                    break
        else:
            return
        raise SourceUnavailable(
            f"the server is read-only and follows nobody, and host {other.endpoint} was promoted: it has more",
            where=self._at.where,
            remedy="capture continues at that host, if it has the whole captured log",
        )


def _asked(host: ConnectionInfo) -> SourceFacts:
    seconds = STANDING_ANSWER_SECONDS
    with connect(host, connect_timeout=seconds, read_timeout=seconds) as connection:
        return read_facts(connection, host)


def _reads_only(cursor: Any) -> bool:
    cursor.execute("SELECT @@global.read_only")
    return says_read_only(cursor.fetchone()[0])
