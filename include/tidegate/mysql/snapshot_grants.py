"""Rights of tidegate's account that snapshots need, and others don't.

In:  a cursor of the account; the facts of its server.
Out: whether it may write marks; whether it may lock the tables of a database.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tidegate.config import Flavour
from tidegate.mysql.paste import account_of
from tidegate.mysql.server_facts import SourceFacts
from tidegate.tables import WATERMARK_DATABASE

_MAY_WRITE: Final = (
    "SELECT 1 FROM information_schema.user_privileges WHERE grantee = %s AND privilege_type = 'INSERT'"
    " UNION SELECT 1 FROM information_schema.schema_privileges WHERE grantee = %s AND %s LIKE table_schema"
    " AND privilege_type = 'INSERT'"
    " UNION SELECT 1 FROM information_schema.table_privileges WHERE grantee = %s AND table_schema = %s"
    " AND privilege_type = 'INSERT'"
)
_ROLE: Final = re.compile(r"GRANT [`'][^ ]*@[^ ]* TO ", re.IGNORECASE)


def marks_of(cursor: Any) -> tuple[str, bool]:
    """(our account as in a GRANT, whether a grant of its own, not of a role, lets it write the marks of snapshots)."""
    cursor.execute("SELECT CURRENT_USER()")
    user = str(cursor.fetchone()[0])
    grantee = "@".join(f"'{part}'" for part in user.rsplit("@", 1))  # information_schema escapes nothing in it
    cursor.execute(_MAY_WRITE, (grantee, grantee, WATERMARK_DATABASE, grantee, WATERMARK_DATABASE))
    return account_of(user), cursor.fetchone() is not None


def may_lock(facts: SourceFacts, database: str) -> bool:
    """Whether snapshots may lock a table without a key there. MySQL alone asks for a right; a role may give it, too."""
    if facts.flavour is not Flavour.MYSQL or facts.holds("LOCK TABLES", database):
        return True
    return any(map(_ROLE.match, facts.grants))
