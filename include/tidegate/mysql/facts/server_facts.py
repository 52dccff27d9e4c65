"""The settings and facts of a source.

In:  an open connection.
Out: SourceFacts, which preflight.py and whoever compares two servers judge by.

Statements differ by age: MySQL 8.4 dropped SHOW MASTER STATUS for SHOW BINARY LOG STATUS; MariaDB and
older MySQL know only the first. MariaDB has no server_uuid; 10.11.12, 11.4 and later have server_uid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate.config import Flavour
from tidegate.errors import SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.mysql.facts.cluster import check_in_cluster, in_galera, in_group, read_cut_off
from tidegate.mysql.facts.managed import ONES_OWN, Managed, read_managed
from tidegate.position import MysqlGtidSet, Position
from tidegate.segments.segment import Server

SERVER_IDS: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('server_id', 'server_uuid', 'server_uid', 'wsrep_on', 'wsrep_node_name', 'version')"
)
# Columns of SHOW REPLICA STATUS, in lower case: of servers and GTID domains, then of tables.
EVENT_FILTERS: Final = ("replicate_ignore_server_ids", "replicate_do_domain_ids", "replicate_ignore_domain_ids")
REPLICATION_FILTERS: Final = (
    *EVENT_FILTERS,
    "replicate_do_db",
    "replicate_ignore_db",
    "replicate_do_table",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
    "replicate_rewrite_db",
)
# Values of gtid_mode with which a server gives its own transactions GTIDs.
GTIDS_GIVEN: Final = ("ON", "ON_PERMISSIVE")
# Its privileges, where it gives them, and to whom; both flavours quote so.
_GRANT: Final = re.compile(r"GRANT (.*?) ON (\*|`(?:[^`]|``)*`)\.\* TO (\S+)", re.IGNORECASE)
_SYNTAX_OR_NAME: Final = {ER.PARSE_ERROR, ER.UNKNOWN_SYSTEM_VARIABLE}
_NOT_ALLOWED: Final = {ER.SPECIFIC_ACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR}


@dataclass(frozen=True, slots=True)
class Replication:
    """A primary of the server. received: the GTIDs in its relay log, as text.

    filters: what it is told to leave out or to rename, (setting, its items).
    """

    primary: str
    received: str
    applies: bool
    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Settings, grants and position of a server at one instant.

    variables: as SHOW GLOBAL VARIABLES gives them, names in lower case. replications: those that run alone, when our
    grants don't let us look (hides_replications). binlog_do_dbs, binlog_ignore_dbs: the only logged databases, and the
    unlogged ones. cut_off: why nothing comes to it from its cluster any more, as to others of its nodes. managed: the
    service that runs it. utc_since: when it started, Unix seconds by its own clock, if its system's time zone is UTC;
    else None.
    """

    where: str
    flavour: Flavour
    version: str
    server_id: int
    server_uuid: str
    variables: dict[str, str]
    grants: tuple[str, ...]
    position: Position | None
    gtid_executed: str
    gtid_purged: str
    binary_logs: tuple[tuple[str, int], ...]
    databases: tuple[str, ...] = ()
    binlog_do_dbs: tuple[str, ...] = ()
    binlog_ignore_dbs: tuple[str, ...] = ()
    replications: tuple[Replication, ...] = ()
    hides_replications: bool = False
    semi_sync_replicas: int = 0
    cut_off: str = ""
    managed: Managed = ONES_OWN
    utc_since: int | None = None

    @property
    def server(self) -> Server:
        return self.server_id, self.server_uuid

    def value(self, *names: str) -> str:
        """The first of these variables that the server has, "" when it has none: servers rename them."""
        return next((self.variables[name] for name in names if name in self.variables), "")

    def on(self, *names: str) -> bool:
        """Whether the first of these variables that the server has is switched on."""
        return self.value(*names).upper() in ("ON", "1", "YES", "TRUE")

    def number(self, *names: str) -> int:
        """The first of these variables that the server has, 0 when it has none or no number."""
        text = self.value(*names)
        return int(text) if text.isdecimal() else 0

    @property
    def gtid_owned(self) -> MysqlGtidSet:
        """MySQL: of transactions that are under way, logged or not; `uuid:31#12:32#14` names their sessions, too."""
        return owned_gtids(self.value("gtid_owned"))

    @property
    def gives_gtids(self) -> bool:
        """Whether what is written at it gets a GTID."""
        return self.flavour is Flavour.MARIADB or self.value("gtid_mode").upper() in GTIDS_GIVEN

    @property
    def is_read_only(self) -> bool:
        return says_read_only(self.value("read_only"))

    @property
    def galera(self) -> bool:
        return in_galera(self.variables)

    @property
    def clustered(self) -> bool:
        """Whether it is a node of a cluster, in which each gets the others' commits."""
        return self.galera or in_group(self.variables)

    @property
    def replicates(self) -> bool:
        """Whether changes come to this server from another one, as a replica or in a cluster."""
        return bool(self.replications or self.clustered)

    @property
    def may_replicate(self) -> bool:
        """Whether it did once, and nobody tells us whether it stopped for a while or was promoted."""
        return self.hides_replications and bool(self.value("gtid_slave_pos"))

    @property
    def may_receive(self) -> bool:
        """Whether transactions of others may still come to it by themselves."""
        return self.clustered or any(replication.applies for replication in self.replications)

    @property
    def version_number(self) -> tuple[int, ...]:
        match = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)", self.version)
        return tuple(int(part) for part in match.groups()) if match else ()

    def holds(self, privilege: str, database: str = "") -> bool:
        """Whether a global grant gives it, or one of a database.

        The server takes an account's closest grant alone, and SHOW GRANTS lists that first.
        """
        closest = dict[str, re.Match[str]]()
        for grant in filter(None, map(_GRANT.match, self.grants)):
            if grant[2] == "*":
                if _gives(grant, privilege):
                    return True
            elif database and _like(grant[2]).fullmatch(database):
                closest.setdefault(grant[3], grant)
        return any(_gives(grant, privilege) for grant in closest.values())

    @property
    def account(self) -> str:
        """The name of ours in a GRANT."""
        quoted = r"(?:`[^`]*`|'[^']*')"
        match = re.search(rf" TO ({quoted}@{quoted})", "\n".join(self.grants))
        return match[1] if match else "this account"


def _gives(grant: re.Match[str], privilege: str) -> bool:
    return not {privilege, "ALL PRIVILEGES"}.isdisjoint(grant[1].upper().split(", "))


def _like(quoted: str) -> re.Pattern[str]:
    """A database in a grant: % and _ are any letters, unless a backslash is before them."""
    letters = {"%": ".*", "_": "."}
    name = quoted[1:-1].replace("``", "`")
    return re.compile(re.sub(r"\\.|.", lambda part: letters.get(part[0]) or re.escape(part[0][-1]), name))


def owned_gtids(text: str) -> MysqlGtidSet:
    """The value of the variable gtid_owned."""
    return MysqlGtidSet.parse(re.sub(r"#\d+", "", text))


def says_read_only(value: object) -> bool:
    """The variable read_only, however it comes: 0 and 1, OFF and ON, and in MariaDB 12 kinds of it (NO_LOCK ...)."""
    return str(value).upper() not in ("", "0", "OFF", "NONE")


def server_of(variables: Mapping[str, Any]) -> Server:
    """From the result of SERVER_IDS, names in lower case: every reader of a server gets the same as capture."""
    uuid = str(variables.get("server_uuid") or variables.get("server_uid") or "")
    if not uuid and variables.get("wsrep_on") == "ON":  # all nodes of a cluster may have one server_id
        uuid = str(variables.get("wsrep_node_name", ""))
    return int(variables.get("server_id", 0)), uuid


def check_is(wanted: Server, cursor: Any, info: ConnectionInfo) -> None:
    """Raises SourceUnavailable at another server than the one asked before: places in the log are
    its own. Raises PyMySQL's errors.
    """
    cursor.execute(SERVER_IDS)
    here = server_of({str(name).lower(): str(value) for name, value in cursor.fetchall()})
    if here != wanted:
        raise SourceUnavailable(
            f"this address leads to several servers: one connection to {wanted[0]} {wanted[1]}, the next to {here[0]}"
            f" {here[1]}",
            where=info.where,
            remedy="it is tried again; an address of replicas is no source: name the hosts one by one (hosts)",
        )


def read_facts(connection: pymysql.connections.Connection[Any], info: ConnectionInfo) -> SourceFacts:
    """Ask the server. Raises SourceRefused for a missing privilege, SourceUnavailable (also for a node cut off from
    its cluster).
    """
    try:
        with connection.cursor() as cursor:
            facts = facts_of(cursor, info)
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(error, info) from error
    check_in_cluster(facts.cut_off, info)
    return facts


def facts_of(cursor: Any, info: ConnectionInfo) -> SourceFacts:
    """The same of a cursor that is there. Raises what PyMySQL does."""
    cursor.execute("SHOW GLOBAL VARIABLES")
    variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    version = variables.get("version", "")
    flavour = Flavour.MARIADB if "mariadb" in version.lower() else Flavour.MYSQL
    cursor.execute("SHOW GRANTS")
    grants = tuple(str(row[0]) for row in cursor.fetchall())
    mariadb = flavour is Flavour.MARIADB
    server_id, uuid = server_of(variables)
    position: Position | None = None
    executed = variables.get("gtid_binlog_pos" if mariadb else "gtid_executed", "")
    logs: tuple[tuple[str, int], ...] = ()
    do_dbs: tuple[str, ...] = ()
    ignore_dbs: tuple[str, ...] = ()
    if variables.get("log_bin", "OFF") == "ON" and _monitors(grants):
        row = read_binlog_status(cursor)
        if row is not None:
            position = Position.of(str(row[0]), int(row[1]))
            executed = (
                executed if mariadb else str(row[4])
            )  # of one instant: a busy server commits between two questions
            do_dbs, ignore_dbs = _names(row[2]), _names(row[3])
        logs = read_binary_logs(cursor)
    cursor.execute("SELECT schema_name FROM information_schema.schemata")
    databases = tuple(sorted(str(row[0]) for row in cursor.fetchall()))
    executed = "".join(executed.split())
    replications, hidden = read_replications(cursor, mariadb=mariadb)
    purged = "" if mariadb else "".join(variables.get("gtid_purged", "").split())
    return SourceFacts(
        where=info.where,
        flavour=flavour,
        version=version,
        server_id=server_id,
        server_uuid=uuid,
        variables=variables,
        grants=grants,
        position=position,
        gtid_executed=executed,
        gtid_purged=purged,
        binary_logs=logs,
        databases=databases,
        binlog_do_dbs=do_dbs,
        binlog_ignore_dbs=ignore_dbs,
        replications=replications,
        hides_replications=hidden,
        semi_sync_replicas=_semi_sync_replicas(cursor),
        cut_off=read_cut_off(cursor, variables),
        managed=read_managed(cursor, variables),
        utc_since=_utc_since(cursor, variables),
    )


def _utc_since(cursor: Any, variables: Mapping[str, str]) -> int | None:
    """A server reads its system's time zone once, when it starts."""
    if variables.get("system_time_zone", "").upper() != "UTC":
        return None
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
    row = cursor.fetchone()
    # TZ=UTC-3 is called UTC, too.
    cursor.execute("SELECT UNIX_TIMESTAMP(), CONVERT_TZ('2001-07-01', 'SYSTEM', '+00:00') = '2001-07-01'")
    now, is_utc = cursor.fetchone()
    return int(now) - int(row[1]) if row and is_utc else None


def _semi_sync_replicas(cursor: Any) -> int:
    """How many are connected now: of MySQL since 8.0.26, or of older ones and MariaDB."""
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%clients'")
    return max((int(row[1]) for row in cursor.fetchall()), default=0)


def _names(text: object) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(text or "").split(",") if name.strip())


def read_replications(cursor: Any, *, mariadb: bool) -> tuple[tuple[Replication, ...], bool]:
    """From SHOW REPLICA STATUS; and whether we may not look. Raises what PyMySQL does.

    MariaDB's privilege for it, REPLICA MONITOR, is not asked of our account: then only whether some run is known.
    """
    for statement in ("SHOW ALL SLAVES STATUS",) if mariadb else ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
        try:
            cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            if error.args[0] in _NOT_ALLOWED:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Slaves_running'")
                row = cursor.fetchone()
                return ((Replication("a primary", "", applies=True),) if row and int(row[1]) else ()), True
            if error.args[0] not in _SYNTAX_OR_NAME:
                raise
        else:
            names = [str(column[0]).lower().replace("master", "source") for column in cursor.description]
            return tuple(_replication(dict(zip(names, row, strict=True))) for row in cursor.fetchall()), False
    return (), True


def _replication(row: dict[str, Any]) -> Replication:
    applies = row.get("replica_sql_running") or row.get("slave_sql_running")
    return Replication(
        primary=f"{row.get('source_host')}:{row.get('source_port')}",
        received="".join(str(row.get("retrieved_gtid_set") or row.get("gtid_io_pos") or "").split()),
        applies=str(applies).upper() == "YES",
        filters=tuple((name, _names(row[name])) for name in sorted(row) if name in REPLICATION_FILTERS and row[name]),
    )


def current_position(cursor: Any) -> Position | None:
    """The end of the newest binlog file, by whichever statement this server has; None when binlog is off."""
    row = read_binlog_status(cursor)
    return Position.of(str(row[0]), int(row[1])) if row else None


def read_binlog_status(cursor: Any) -> tuple[Any, ...] | None:
    """The newest file, its end, databases logged and not; MySQL: gtid_executed at that instant. None: binlog is off."""
    try:
        cursor.execute("SHOW BINARY LOG STATUS")
    except pymysql.err.MySQLError as error:
        if error.args[0] not in _SYNTAX_OR_NAME:
            raise
        cursor.execute("SHOW MASTER STATUS")
    row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def read_binary_logs(cursor: Any) -> tuple[tuple[str, int], ...]:
    """(file, bytes) of every binlog file that the server has, oldest first."""
    cursor.execute("SHOW BINARY LOGS")
    return tuple((str(row[0]), int(row[1])) for row in cursor.fetchall())


def read_clock_ms(cursor: Any) -> int:
    """The server's own clock, milliseconds since the Unix epoch; SYSDATE ignores SET TIMESTAMP."""
    cursor.execute("SELECT CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000) AS SIGNED)")
    return int(cursor.fetchone()[0])


def _monitors(grants: tuple[str, ...]) -> bool:
    text = "\n".join(grants).upper()
    return any(name in text for name in ("REPLICATION CLIENT", "BINLOG MONITOR", "ALL PRIVILEGES", "SUPER"))
