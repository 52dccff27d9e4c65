"""How much of a server's log a read sees if it begins now.

In:  a cursor.
Out: a Visible: everything up to this place of the log is visible. On MariaDB the cursor's
     connection has a view there.

During a commit the end of the log is ahead of what a read sees, above all while the commit waits
for a semi-synchronous replica, so the end alone isn't enough. MariaDB opens a view at one place of
its log, and tells this place. On MySQL a transaction is in @@gtid_executed once the engine has
committed it.
"""

from __future__ import annotations

from typing import Any

from tidegate.errors import SourceUnavailable
from tidegate.lake.bronze.captured_places import Visible
from tidegate.limits import VERIFY_VIEW_ATTEMPTS_MAX
from tidegate.mysql.facts.server_facts import current_position
from tidegate.position import MysqlGtidSet


def visible_place(cursor: Any, *, mariadb: bool, gtids: bool = True) -> Visible | None:
    """The place that a read from now on sees all up to; None: the server writes no log.

    gtids: of MySQL, whether its transactions have GTIDs. Raises MySQLError, SourceUnavailable.
    """
    end = current_position(cursor)
    if end is None:
        return None
    if not mariadb:
        if not gtids:
            return Visible(end.file, end.offset)
        cursor.execute("SELECT @@global.gtid_executed")
        return Visible(end.file, end.offset, MysqlGtidSet.parse(_text(cursor.fetchone()[0])))
    place = Visible(end.file, end.offset)
    for _ in range(VERIFY_VIEW_ATTEMPTS_MAX):
        view = _view(cursor)
        if view is None:
            return place
        # As the log goes on in another file, the server tells that file's beginning before it commits what ends the old
        # one. Who was told the same file before (SHOW MASTER STATUS waits for such a commit to begin) isn't told so.
        if view.file == place.file:
            return view
        end = current_position(cursor)
        if end is not None:
            place = Visible(end.file, end.offset)
    raise SourceUnavailable(
        f"the log moved to another file each of {VERIFY_VIEW_ATTEMPTS_MAX} times that a view was opened",
        where=place.file,
        remedy="it is tried again",
    )


def _view(cursor: Any) -> Visible | None:
    """Open a view; where in the log it lies."""
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    statuses = {_text(name).lower(): _text(value) for name, value in cursor.fetchall()}
    file, offset = statuses.get("binlog_snapshot_file", ""), statuses.get("binlog_snapshot_position") or "0"
    return Visible(file, int(offset)) if file else None


def _text(cell: Any) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)
