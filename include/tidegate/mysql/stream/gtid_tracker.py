"""GTIDs executed, as text for bronze: the runs that the walk counted are added to the set at each cut.

In:  the flavour, the set before, runs of (kind, high, low, first, last) from packet_walk.
Out: the set after; StreamCorrupt when the server sends a transaction that is in the set already.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from tidegate.config import Flavour
from tidegate.errors import StreamCorrupt
from tidegate.mysql.stream.packet_walk import MARIADB_GTID, TAGGED_GTID
from tidegate.position import MariadbGtidPosition, MysqlGtidSet


class GtidTracker:
    """The executed GTIDs of one source. strict: a repeated GTID is an error; set if the dump is by GTID."""

    def __init__(self, flavour: Flavour, executed: str, *, strict: bool) -> None:
        self._strict = strict
        self._tagged: list[str] = []
        self._mysql = MysqlGtidSet.parse(executed) if flavour is Flavour.MYSQL else MysqlGtidSet()
        self._mariadb = MariadbGtidPosition.parse(executed) if flavour is Flavour.MARIADB else MariadbGtidPosition()
        self._is_mysql = flavour is Flavour.MYSQL
        self._text: str | None = executed

    def __str__(self) -> str:
        if self._text is None:
            self._text = str(self._mysql if self._is_mysql else self._mariadb)
        return self._text

    def tagged(self, name: str) -> int:
        """The number under which the walk keeps a uuid:tag."""
        if name not in self._tagged:
            self._tagged.append(name)
        return self._tagged.index(name)

    def add(self, runs: Iterable[Any], where: str) -> None:
        """Add runs. Raises StreamCorrupt on one that was executed before."""
        for run in runs:
            kind, high, low, first, last = (int(run[name]) for name in ("kind", "high", "low", "first", "last"))
            self._text = None
            if kind == MARIADB_GTID:
                self._add_mariadb(high, low, first, last, where)
            else:
                self._add_mysql(self._tagged[high] if kind == TAGGED_GTID else _uuid(high, low), first, last, where)

    def _add_mysql(self, name: str, first: int, last: int, where: str) -> None:
        if self._strict and self._mysql.overlaps(name, first, last):
            raise StreamCorrupt(
                f"the server sent {name}:{first}-{last} again",
                where=where,
                remedy="check that no other writer feeds this lake",
            )
        self._mysql.add(name, first, last)

    def _add_mariadb(self, domain: int, server: int, first: int, last: int, where: str) -> None:
        before = self._mariadb.domains.get(domain)
        if self._strict and before is not None and before[0] == server and first <= before[1]:
            raise StreamCorrupt(
                f"the server sent {domain}-{server}-{first} after {domain}-{server}-{before[1]}: numbers of a domain"
                " went back (SET gtid_seq_no?), so GTIDs no longer show where to continue",
                where=where,
                remedy="set dump: position in the pipeline file; gtid_strict_mode = ON at the server prevents it",
            )
        self._mariadb.domains[domain] = (server, last)


def _uuid(high: int, low: int) -> str:
    """A uuid's text. The walk reads its 16 bytes as two little-endian integers."""
    mask = (1 << 64) - 1
    return str(uuid.UUID(bytes=(high & mask).to_bytes(8, "little") + (low & mask).to_bytes(8, "little")))
