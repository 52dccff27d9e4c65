"""Rights of tidegate's account that only snapshots need, and the statements that give all rights.

In:  a cursor of the account; the facts of its server.
Out: whether it may write marks, and why not; whether it may lock tables of a database. Statements for
     an administrator to paste.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tidegate.config import DumpMode, Flavour, Pipeline, SnapshotMarks, SnapshotMode
from tidegate.mysql.demands.paste import ToRun, account_of, to_run
from tidegate.mysql.facts.managed import Service
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.sql_text.catalog import asked_by, names_there
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
    """(our account as in a GRANT, whether it may write the marks of snapshots). Grants of roles don't count."""
    cursor.execute("SELECT CURRENT_USER()")
    user = str(cursor.fetchone()[0])
    grantee = "@".join(f"'{part}'" for part in user.rsplit("@", 1))  # information_schema escapes nothing in it
    cursor.execute(_MAY_WRITE, (grantee, grantee, WATERMARK_DATABASE, grantee, WATERMARK_DATABASE))
    return account_of(user), cursor.fetchone() is not None


def unmarked(pipeline: Pipeline, facts: SourceFacts) -> str:
    """Why snapshots write no marks at this server, whatever the account's rights; "" if they do."""
    if pipeline.snapshot.marks is SnapshotMarks.UNLOGGED:
        return "snapshot.marks is unlogged"
    if facts.is_read_only:
        return "the server is read-only"
    if (facts.replications or facts.may_replicate) and facts.gives_gtids:
        return f"the server {'is' if facts.replications else 'may be'} a replica: its own GTID would end replication"
    return ""


def run_there(cursor: Any, facts: SourceFacts, pipeline: Pipeline, source: str) -> ToRun:
    """What an administrator has to run before the pipeline can use the server as this source."""
    if facts.managed.service is Service.TIDB:
        return ToRun()
    account, writes = marks_of(cursor)
    writes = writes or pipeline.snapshot.mode is SnapshotMode.MANUAL or bool(unmarked(pipeline, facts))
    sees = any(pipeline.tables.keeps(*name) for name in names_there(asked_by(cursor)))
    gtids = pipeline.server(source).dump is DumpMode.GTID
    return to_run(facts, account, writes_marks=writes, sees_tables=sees, gtids=gtids)


def may_lock(facts: SourceFacts, database: str) -> bool:
    """Whether snapshots may lock a table without a key in this database. Only MySQL needs a right for it.
    With a role granted, the answer is yes: the role may have the right.
    """
    if facts.flavour is not Flavour.MYSQL or facts.holds("LOCK TABLES", database):
        return True
    return any(map(_ROLE.match, facts.grants))
