"""The statements that prepare a server for a pipeline, for an administrator to paste.

In:  the facts of a server, and the account that tidegate logs in as.
Out: SQL lines; none where nothing is missing. Comments among them say what SQL can't do. A cloud's
     settings are commands for a shell, apart from the SQL.

Each statement is the remedy of a rule of mysql/demands/preflight.py, in the order in which the server takes
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tidegate.config import Flavour
from tidegate.limits import BINLOG_KEPT_HOURS
from tidegate.mysql.demands.preflight import keeps_no_log, missing_privileges
from tidegate.mysql.demands.service_commands import KEEP_BINLOG, Setting, commands, page_of
from tidegate.mysql.facts.managed import Service
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.facts.unlogged_columns import computing_grant
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


@dataclass(frozen=True, slots=True)
class ToRun:
    """shell: commands of a cloud's own tool. page: the page that explains them. sql: statements for an
    administrator.
    """

    shell: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()
    page: str = ""

    def __bool__(self) -> bool:
        return bool(self.shell or self.sql)

    def lines(self, of: str = "the server") -> list[str]:
        """Text to be shown uncut: each command stands on a line of its own."""
        shown = list[str]()
        if self.shell:
            shown += [
                "",
                f"The owner of {of} runs this in a shell, with names for the words in capitals ({self.page}):",
            ]
            shown += ["", *(f"  {line}" for line in self.shell)]
        if self.sql:
            shown += ["", f"An administrator runs this at {of}:", "", *(f"  {line}" for line in self.sql)]
        return shown


def to_run(
    facts: SourceFacts, account: str, *, writes_marks: bool, sees_tables: bool = True, gtids: bool = True
) -> ToRun:
    """account: as in a GRANT, quoted. writes_marks: it may already write snapshots' marks, or needs no
    right to. sees_tables: the server shows it at least one table to keep. gtids: the pipeline needs GTIDs.
    """
    service = facts.managed.service
    grants = tuple(_grants(facts, account, writes_marks=writes_marks, sees_tables=sees_tables))
    if service in (Service.OWN, Service.TIDB):
        return ToRun(sql=(*_settings(facts, gtids=gtids), *grants))
    shell = commands(facts.managed, _wanted(facts, gtids=gtids), logs=facts.on("log_bin"))
    keep = (f"{KEEP_BINLOG};",) if facts.managed.is_amazon and not facts.managed.binlog_hours else ()
    return ToRun(tuple(shell), (*keep, *grants), page_of(service))


def statements(facts: SourceFacts, account: str, *, writes_marks: bool) -> list[str]:
    """The SQL of to_run."""
    return list(to_run(facts, account, writes_marks=writes_marks).sql)


def account_of(current_user: str) -> str:
    """The value of CURRENT_USER() (name@host), quoted as in a GRANT."""
    return "@".join(_quoted(part) for part in current_user.rsplit("@", 1))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _differing(facts: SourceFacts) -> list[Setting]:
    """The settings to change, with the values they need. Settings the server doesn't have are left out."""
    wanted = [("binlog_format", "ROW"), ("binlog_row_metadata", "FULL")]
    if facts.variables.get("binlog_row_image", "FULL").upper() not in ("FULL", "FULL_NODUP"):
        wanted.append(("binlog_row_image", "FULL"))
    return [(name, value) for name, value in wanted if facts.variables.get(name, value).upper() != value]


def _wanted(facts: SourceFacts, *, gtids: bool) -> list[Setting]:
    """All settings to be changed at a cloud's server."""
    wanted = _differing(facts)
    if gtids and facts.flavour is Flavour.MYSQL and facts.variables.get("gtid_mode", "OFF").upper() != "ON":
        if facts.variables.get("enforce_gtid_consistency", "OFF").upper() != "ON":
            wanted.append(("enforce_gtid_consistency", "ON"))
        wanted.append(("gtid_mode", "ON"))
    if facts.managed.service in (Service.CLOUD_SQL, Service.AZURE) and keeps_no_log(facts):
        wanted.append(("binlog_expire_logs_seconds", str(BINLOG_KEPT_HOURS * 3600)))
    return wanted


def _settings(facts: SourceFacts, *, gtids: bool) -> Iterator[str]:
    if not facts.on("log_bin"):
        yield _BINLOG_OFF
    # MariaDB forgets SET GLOBAL at its next start.
    lasting = "SET PERSIST" if facts.flavour is Flavour.MYSQL else "SET GLOBAL"
    differs = _differing(facts)
    for name, value in differs:
        yield f"{lasting} {name} = {value};"
    if differs and facts.flavour is Flavour.MARIADB:
        yield "-- and in the server's configuration, under [mariadb]: " + ", ".join(f"{n} = {v}" for n, v in differs)
    if differs:
        yield "-- Sessions that are open keep the old value: let the applications connect again."
    mode = facts.variables.get("gtid_mode", "OFF").upper()
    if gtids and facts.flavour is Flavour.MYSQL and mode != "ON":
        yield from _GTIDS if mode not in _MODES[1:] else _GTIDS[2 + _MODES.index(mode) :]


def _grants(facts: SourceFacts, account: str, *, writes_marks: bool, sees_tables: bool) -> Iterator[str]:
    if not sees_tables and not facts.holds("SELECT"):
        yield f"GRANT SELECT ON *.* TO {account};  -- or on the databases to keep alone"
    if missing := missing_privileges(facts):
        yield f"GRANT {', '.join(missing)} ON *.* TO {account};"
    if not writes_marks:
        yield f"{marks_grant(account)};  -- for snapshots' marks"
    if grant := computing_grant(facts):
        yield f"{grant} TO {account};  -- for generated columns"


def marks_grant(account: str) -> str:
    """The statement that lets an account, quoted, write the marks of snapshots."""
    return f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO {account}"
