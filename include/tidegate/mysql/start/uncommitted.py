"""Rows in a table that no SELECT shows yet: their transaction isn't committed.

In:  a connection; InnoDB tables that look empty to a plain SELECT, later than the position where
     capture begins.
Out: those with rows: somebody's rows have come by now, or somebody holds uncommitted rows there.

A transaction before a position of the binlog may be committed after it, and an XA branch prepared
before it long after. If the server can't be asked about either, its locks tell: an uncommitted row
is locked by its writer. SERIALIZABLE makes a plain SELECT wait for such locks, with no other
privilege than SELECT.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate.config import Flavour
from tidegate.limits import SETTLE_SECONDS
from tidegate.mysql.facts.branches import prepared_branches
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.sql_text.sql import quote_name

log = logging.getLogger(__name__)

_NAMED_MAX: Final = 3
# What says that another one's row is in the way: its lock, or that it was written since this SELECT began.
_IN_THE_WAY: Final = {ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, ER.CHECKREAD}

Name = tuple[str, str]


def may_hide_rows(cursor: Any, facts: SourceFacts) -> bool:
    """Whether some of the log may not be committed yet. MySQL without GTIDs doesn't show it
    (mysql/start/settled.py). An account without the right can't see XA branches (mysql/start/prepared.py).
    """
    if facts.flavour is Flavour.MYSQL and facts.value("gtid_mode").upper() != "ON":
        return True
    try:
        return bool(prepared_branches(cursor))
    except pymysql.err.MySQLError:
        return True


def written_to(connection: Any, names: Iterable[Name], *, wait_seconds: float = SETTLE_SECONDS) -> set[Name]:
    """The tables that hold a row, committed or not. It waits for locked rows, wait_seconds in all; a table
    still locked then counts as holding one. Raises MySQLError for a missing table.
    """
    written: set[Name] = set()
    waiting, until = set(names), time.monotonic() + wait_seconds
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        try:
            while waiting:
                answers = {name: _holds_row(cursor, name) for name in sorted(waiting)}
                written |= {name for name, holds in answers.items() if holds}
                waiting = {name for name, holds in answers.items() if holds is None}
                if time.monotonic() >= until:
                    break
        finally:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = DEFAULT")
    if waiting:
        named = ", ".join(".".join(name) for name in sorted(waiting)[:_NAMED_MAX])
        log.warning(
            "%d tables count as holding rows, as a transaction or an XA branch has written to them and isn't committed"
            " after %.0f s, %s among them",
            len(waiting),
            wait_seconds,
            named,
        )
    return written | waiting


def _holds_row(cursor: Any, name: Name) -> bool | None:
    """Whether a table holds a row; None while another session's lock is in the way. It asks in a
    transaction: outside of one, SERIALIZABLE takes no locks.
    """
    cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")  # of the next one
    cursor.execute("START TRANSACTION")
    try:
        cursor.execute(f"SELECT 1 FROM {quote_name(*name)} LIMIT 1")
        return cursor.fetchone() is not None
    except pymysql.err.MySQLError as error:
        if error.args[0] not in _IN_THE_WAY:
            raise
        return None
    finally:
        cursor.execute("ROLLBACK")
