"""XA branches prepared when capture begins: their rows lie below its beginning, their commit may
come after it.

In:  a connection's address, directly after the position was taken where capture is to begin.
Out: nothing, once each branch was answered; or after some time, with a warning that names the
     others.

If a branch is answered before the baseline looks at the tables, its rows are seen there. A later
answer would be lost: the log has its rows below the beginning, and only the answer above it. If a
branch waits for its answer, or the account may not look, the baseline finds out to which tables
such branches have written (mysql/start/uncommitted.py), and these tables wait. A forgotten branch
must not keep all tables from being captured.
"""

from __future__ import annotations

import logging
import time
from typing import Final

import pymysql

from tidegate.limits import PREPARED_LOOK_SECONDS, PREPARED_WAIT_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.mysql.facts.branches import prepared_branches, readable

log = logging.getLogger(__name__)

_NAMED_MAX: Final = 3


def wait_for_prepared(info: ConnectionInfo, where: str, *, wait_seconds: float = PREPARED_WAIT_SECONDS) -> None:
    """Wait until what is prepared now is committed or rolled back, or long enough. Raises SourceUnavailable."""
    with connect(info) as connection, connection.cursor() as cursor:
        until = time.monotonic() + wait_seconds
        waiting: set[str] | None = None
        while True:
            try:
                branches = set(prepared_branches(cursor))
            except pymysql.err.MySQLError as error:
                log.warning(
                    "%s: XA RECOVER is refused (%s): a table that a prepared XA transaction has written to counts as"
                    " holding rows; if the source uses XA, GRANT XA_RECOVER_ADMIN, and capture waits for these",
                    where,
                    error.args[-1],
                )
                return
            waiting = branches if waiting is None else waiting & branches
            if not waiting:
                return
            if time.monotonic() >= until:
                break
            time.sleep(PREPARED_LOOK_SECONDS)
    names = [readable(name) for name in sorted(waiting)[:_NAMED_MAX]]
    log.warning(
        "%s: %d XA transactions are prepared and not answered after %.0f s, %s among them: capture begins without them."
        " Their tables wait for a snapshot, and an XA COMMIT of one needs a person's word on its tables."
        " Nothing waits if you XA COMMIT or XA ROLLBACK them before capture begins (XA RECOVER lists them)",
        where,
        len(waiting),
        wait_seconds,
        ", ".join(names),
    )
