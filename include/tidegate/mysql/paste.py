"""The statements that prepare a server for a pipeline, for an administrator to paste.

In:  the facts of a server, and the account that tidegate logs in as.
Out: SQL lines; none where nothing is missing. Comments among them say what SQL can't do.

Each statement is the remedy of a rule of mysql/preflight.py, in the order in which the server takes
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidegate.config import Flavour
from tidegate.mysql.preflight import missing_privileges
from tidegate.mysql.server_facts import SourceFacts
from tidegate.mysql.unlogged_columns import computing_grant
from tidegate.tables import WATERMARK_DATABASE

# https://dev.mysql.com/doc/refman/8.4/en/replication-mode-change-online-enable-gtids.html
_GTIDS: Final = (
    "SET PERSIST enforce_gtid_consistency = WARN;  -- read the error log, mend what it names, then go on",
    "SET PERSIST enforce_gtid_consistency = ON;",
    "SET PERSIST gtid_mode = OFF_PERMISSIVE;",
    "SET PERSIST gtid_mode = ON_PERMISSIVE;",
    "SET PERSIST gtid_mode = ON;  -- when SHOW STATUS LIKE 'ongoing_anonymous_transaction_count' is 0",
)
_MODES: Final = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
_BINLOG_OFF: Final = "-- The server writes no binlog: start it with --log-bin, then run this again."
_MANAGED: Final = "-- A managed server refuses SET: change these in its parameter group, or its flags."


def statements(facts: SourceFacts, account: str, *, writes_marks: bool) -> list[str]:
    """account: as in a GRANT, quoted. writes_marks: it may write snapshots' marks already."""
    settings = list(_settings(facts))
    grants = list(_grants(facts, account, writes_marks=writes_marks))
    return [*([_MANAGED, *settings] if settings else []), *grants]


def account_of(current_user: str) -> str:
    """The value of CURRENT_USER() (name@host), quoted as in a GRANT."""
    return "@".join(_quoted(part) for part in current_user.rsplit("@", 1))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _settings(facts: SourceFacts) -> Iterator[str]:
    if not facts.on("log_bin"):
        yield _BINLOG_OFF
    # MariaDB forgets SET GLOBAL at its next start.
    lasting = "SET PERSIST" if facts.flavour is Flavour.MYSQL else "SET GLOBAL"
    wanted = [("binlog_format", "ROW"), ("binlog_row_metadata", "FULL")]
    if facts.variables.get("binlog_row_image", "FULL").upper() not in ("FULL", "FULL_NODUP"):
        wanted.append(("binlog_row_image", "FULL"))
    differs = [(name, value) for name, value in wanted if facts.variables.get(name, value).upper() != value]
    for name, value in differs:
        yield f"{lasting} {name} = {value};"
    if differs and facts.flavour is Flavour.MARIADB:
        yield "-- and in the server's configuration, under [mariadb]: " + ", ".join(f"{n} = {v}" for n, v in differs)
    if differs:
        yield "-- Sessions that are open keep the old value: let the applications connect again."
    mode = facts.variables.get("gtid_mode", "OFF").upper()
    if facts.flavour is Flavour.MYSQL and mode != "ON":
        yield from _GTIDS if mode not in _MODES[1:] else _GTIDS[2 + _MODES.index(mode) :]


def _grants(facts: SourceFacts, account: str, *, writes_marks: bool) -> Iterator[str]:
    if missing := missing_privileges(facts):
        yield f"GRANT {', '.join(missing)} ON *.* TO {account};"
    if not writes_marks:
        yield f"{marks_grant(account)};  -- for snapshots' marks"
    if grant := computing_grant(facts):
        yield f"{grant} TO {account};  -- for generated columns"


def marks_grant(account: str) -> str:
    """The statement that lets an account, quoted, write the marks of snapshots."""
    return f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO {account}"
