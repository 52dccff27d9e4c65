"""An end of the binlog before which everything is committed, so a SELECT from now on sees it.

In:  a connection, the server's facts.
Out: the facts with such a position and its GTIDs.

A transaction is in the log before it is committed; with semi-synchronous replication (AFTER_SYNC)
perhaps long before. A reader that notes the log's end then, and reads the tables, misses it in
both. If MySQL logs a transaction without a GTID, it can't be asked for here:
mysql/start/uncommitted.py looks for it in the tables.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any, Final

import pymysql

from tidegate.config import Flavour
from tidegate.errors import SourceUnavailable
from tidegate.limits import SETTLE_SECONDS, SETTLED_POLL_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.facts.server_facts import SourceFacts, check_is, current_position
from tidegate.position import Position

_OWNED: Final = re.compile(r"[^,\s]+")


def settled(info: ConnectionInfo, facts: SourceFacts) -> SourceFacts:
    """The facts, with a position and GTIDs before which all is committed. Raises SourceUnavailable if a
    transaction in the log isn't committed after SETTLE_SECONDS, or if another server answers.
    """
    with connect(info) as connection, connection.cursor() as cursor:
        try:
            check_is(facts.server, cursor, info)
            end = _mariadb(cursor) if facts.flavour is Flavour.MARIADB else _mysql(cursor, facts)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, info) from error
    position, executed = end
    return facts if position is None else replace(facts, position=position, gtid_executed=executed)


def _mariadb(cursor: Any) -> tuple[Position | None, str]:
    """MariaDB shows the end of the committed log in Binlog_snapshot_*; START TRANSACTION WITH CONSISTENT
    SNAPSHOT uses the same.
    """
    cursor.execute("SHOW STATUS LIKE 'Binlog_snapshot_%'")
    status = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    position = Position.of(status["binlog_snapshot_file"], int(status["binlog_snapshot_position"]))
    cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", (position.file, position.offset))
    executed = cursor.fetchone()[0]
    return (None, "") if executed is None else (position, str(executed))


def _mysql(cursor: Any, facts: SourceFacts) -> tuple[Position | None, str]:
    """Wait until each GTID owned now is no longer owned. A transaction owns its GTID before it is in the
    log, until it is committed.
    """
    position = current_position(cursor)
    waiting, until = _owned(cursor), time.monotonic() + SETTLE_SECONDS
    while waiting and time.monotonic() < until:
        time.sleep(SETTLED_POLL_SECONDS)
        waiting &= _owned(cursor)
    if waiting:
        raise SourceUnavailable(
            f"{len(waiting)} transactions are in the binlog and aren't committed after {SETTLE_SECONDS:.0f} s",
            where=facts.where,
            remedy="see what commits wait for: with semi-synchronous replication, for a replica",
        )
    cursor.execute("SELECT @@GLOBAL.gtid_executed")
    return position, "".join(str(cursor.fetchone()[0]).split())


def _owned(cursor: Any) -> set[str]:
    """The owned GTIDs as uuid:number. The server writes `uuid:number#thread:number#thread, ...`."""
    cursor.execute("SELECT @@GLOBAL.gtid_owned")
    owned = set()
    for part in _OWNED.findall(str(cursor.fetchone()[0])):
        name, *numbers = part.split(":")
        owned |= {f"{name}:{number.partition('#')[0]}" for number in numbers}
    return owned
