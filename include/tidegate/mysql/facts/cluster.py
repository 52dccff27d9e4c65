"""Whether a node of a cluster still gets the commits of its cluster: Galera, or Group Replication.

In:  a cursor at the node, its variables (names in lower case).
Out: why it is cut off; "" if it isn't, if it is no node, and if we aren't allowed to look.

A node cut off from its cluster answers like a quiet server, and its log shows nothing of the
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate.errors import SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo

_LISTED: Final = "performance_schema.replication_group_members"
_FOLLOWS: Final = (
    "SELECT 1 FROM performance_schema.replication_connection_status"
    " WHERE service_state <> 'OFF' AND channel_name NOT LIKE 'group_replication%'"
)
_FENCED: Final = f"@@read_only AND NOT EXISTS ({_FOLLOWS})"
_MEMBERS: Final = f"SELECT member_state, member_id = @@server_uuid, {_FENCED} FROM {_LISTED}"
_IN_GROUP: Final = ("ONLINE", "RECOVERING")
_HIDDEN: Final = (ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.NO_SUCH_TABLE)


def in_galera(variables: Mapping[str, str]) -> bool:
    on = variables.get("wsrep_on", "").upper() in ("ON", "1")
    return on and variables.get("wsrep_provider", "").lower() not in ("", "none")


def in_group(variables: Mapping[str, str]) -> bool:
    return bool(variables.get("group_replication_group_name"))


def read_cut_off(cursor: Any, variables: Mapping[str, str]) -> str:
    """Raises MySQLError, but not where we may not look."""
    if in_galera(variables):
        cursor.execute("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_status'")
        row = cursor.fetchone()
        status = str(row[1]) if row else "unknown"
        return "" if status.lower() == "primary" else f"wsrep_cluster_status is {status}"
    if in_group(variables):
        try:
            cursor.execute(_MEMBERS)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _HIDDEN:
                raise
            return ""
        return _of_group([(str(state), bool(is_self), bool(fenced)) for state, is_self, fenced in cursor.fetchall()])
    return ""


def check_in_cluster(cut_off: str, info: ConnectionInfo) -> None:
    """Raises SourceUnavailable."""
    if cut_off:
        raise SourceUnavailable(
            f"this node is cut off from its cluster ({cut_off}): what is committed there doesn't come to it",
            where=info.where,
            remedy="let it join again; another node is read meanwhile where the connection lists one (hosts)",
        )


def _of_group(members: list[tuple[str, bool, bool]]) -> str:
    """(state, whether it is the node itself, whether that is read-only and follows nobody) of each;
    itself alone when it is in no group. One out of its group is a server like any other when it may
    be written to, or is a replica.
    """
    others = [state for state, is_self, _ in members if not is_self] if len(members) > 1 else []
    for state, itself, fenced in members:
        if (itself or not others) and state not in _IN_GROUP and (fenced or state == "ERROR"):
            return f"its state in its group is {state}"
    lost = sum(state not in _IN_GROUP for state in others)
    if 2 * lost >= len(members) > 1:
        return f"it can't reach {lost} of the {len(members)} members of its group"
    return ""
