"""A server's prepared XA branches, as its log names them.

In:  a cursor.
Out: names such as X'6731',X'6231',7 (binlog/format/xa.py), in order.
"""

from __future__ import annotations

import time
from typing import Any

import pymysql
from pymysql.constants import ER

from tidegate.binlog.format.xa import branch_name
from tidegate.limits import BRANCH_SEEN_SECONDS, CAPTURE_POLL_SECONDS


def prepared_branches(cursor: Any) -> list[str]:
    """Raises MySQLError: of MySQL 8 and later without XA_RECOVER_ADMIN.

    MySQL sends the bytes of a name as text (not all of them are), or in hexadecimal; MariaDB knows
    no CONVERT.
    """
    try:
        cursor.execute("XA RECOVER CONVERT XID")
    except pymysql.err.MySQLError as error:
        if error.args[0] != ER.PARSE_ERROR:
            raise
        cursor.execute("XA RECOVER")
    return sorted(_name(*row) for row in cursor.fetchall())


def see_commits(cursor: Any, *, wait_seconds: float = BRANCH_SEEN_SECONDS) -> None:
    """Wait until the rows of all branches answered by now are visible. Raises MySQLError, as
    prepared_branches.

    MariaDB logs an XA COMMIT before its engine commits it, in another order than other commits.
    Until then the branch stays in the list. A branch that stays there the whole time waits for its
    answer, and we wait no longer.
    """
    until = time.monotonic() + wait_seconds
    waiting = set(prepared_branches(cursor))
    while waiting and time.monotonic() < until:
        time.sleep(CAPTURE_POLL_SECONDS)
        waiting.intersection_update(prepared_branches(cursor))


def readable(name: str) -> str:
    """A branch's name as a person gave it, where it has letters: 'g1','b1',7 of X'6731',X'6231',7."""
    gtrid, bqual, form = name.replace("X'", "").replace("'", "").split(",")
    texts = [bytes.fromhex(part).decode("latin-1") for part in (gtrid, bqual)]
    if not all(text.isascii() and text.isprintable() for text in texts):
        return name
    return ",".join([*(repr(text) for text in texts if text or text is texts[0]), *([form] if form != "1" else [])])


def _name(form: int, gtrid_bytes: int, bqual_bytes: int, data: str | bytes) -> str:
    raw = data if isinstance(data, bytes) else bytes.fromhex(data.removeprefix("0x"))
    return branch_name(raw[:gtrid_bytes].hex(), raw[gtrid_bytes : gtrid_bytes + bqual_bytes].hex(), form)
