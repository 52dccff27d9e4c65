"""What a source says of itself, and whether capture may start on it.

In:  an open connection.
Out: SourceFacts; or one line of refusal, before anything is written anywhere.

Statements differ by age: MySQL 8.4 dropped SHOW MASTER STATUS for SHOW BINARY LOG STATUS; MariaDB and
older MySQL know only the first. MariaDB has no server_uuid; 10.11.12, 11.4 and later have server_uid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate.config import DumpMode, Flavour
from tidegate.errors import SourceRefused
from tidegate.position import Position
from tidegate.wire.connection import ConnectionInfo, named

# Whether commits wait for a replica's reply, in MySQL since 8.0.26, and before and in MariaDB.
_SEMI_SYNC: Final = ("rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled")
_SYNTAX_OR_NAME: Final = {ER.PARSE_ERROR, ER.UNKNOWN_SYSTEM_VARIABLE}


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Settings, grants and position of a server at one instant; variables as SHOW GLOBAL VARIABLES gives them."""

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

    @property
    def version_number(self) -> tuple[int, ...]:
        found = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)", self.version)
        return tuple(int(part) for part in found.groups()) if found else ()

    def holds(self, privilege: str) -> bool:
        """Whether a global grant gives it; MariaDB's SHOW GRANTS and MySQL's differ only in quoting."""
        return any(
            re.search(rf"(\b{privilege}\b|\bALL PRIVILEGES\b).* ON \*\.\* TO ", grant, re.IGNORECASE)
            for grant in self.grants
        )


def read_facts(connection: pymysql.connections.Connection[Any], info: ConnectionInfo) -> SourceFacts:
    """Ask the server. Raises SourceRefused when a statement needs a privilege that we lack, SourceUnavailable."""
    try:
        with connection.cursor() as cursor:
            return _read(cursor, info)
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(error, info) from error


def _read(cursor: Any, info: ConnectionInfo) -> SourceFacts:
    cursor.execute("SHOW GLOBAL VARIABLES")
    variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    version = variables.get("version", "")
    flavour = Flavour.MARIADB if "mariadb" in version.lower() else Flavour.MYSQL
    cursor.execute("SHOW GRANTS")
    grants = tuple(str(row[0]) for row in cursor.fetchall())
    mariadb = flavour is Flavour.MARIADB
    position: Position | None = None
    executed = variables.get("gtid_binlog_pos" if mariadb else "gtid_executed", "")
    logs: tuple[tuple[str, int], ...] = ()
    if variables.get("log_bin", "OFF") == "ON" and _monitors(grants):
        position, executed = _end_of_binlog(cursor, executed, mariadb=mariadb)
        logs = read_binary_logs(cursor)
    executed = "".join(executed.split())
    purged = "" if mariadb else "".join(variables.get("gtid_purged", "").split())
    return SourceFacts(
        where=info.where,
        flavour=flavour,
        version=version,
        server_id=int(variables.get("server_id", "0")),
        server_uuid=variables.get("server_uuid") or variables.get("server_uid", ""),
        variables=variables,
        grants=grants,
        position=position,
        gtid_executed=executed,
        gtid_purged=purged,
        binary_logs=logs,
    )


def current_position(cursor: Any) -> Position | None:
    """The end of the newest binlog file, by whichever statement this server has; None when binlog is off."""
    row = _binlog_status(cursor)
    return Position.of(str(row[0]), int(row[1])) if row else None


def _binlog_status(cursor: Any) -> tuple[Any, ...] | None:
    try:
        cursor.execute("SHOW BINARY LOG STATUS")
    except pymysql.err.MySQLError as error:
        if error.args[0] not in _SYNTAX_OR_NAME:
            raise
        cursor.execute("SHOW MASTER STATUS")
    found: tuple[Any, ...] | None = cursor.fetchone()
    return found


def _end_of_binlog(cursor: Any, executed: str, *, mariadb: bool) -> tuple[Position | None, str]:
    """The binlog's end and the GTIDs before it, of one instant: a busy server commits between two questions.

    executed: what the server's variable said a moment ago, for one that can't tell better.
    """
    row = _binlog_status(cursor)
    if row is None:
        return None, executed
    position = Position.of(str(row[0]), int(row[1]))
    if not mariadb:
        return position, str(row[4])
    cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", (position.file, position.offset))
    found = cursor.fetchone()[0]
    return position, executed if found is None else str(found)


def read_binary_logs(cursor: Any) -> tuple[tuple[str, int], ...]:
    """(file, bytes) of every binlog file that the server has, oldest first."""
    cursor.execute("SHOW BINARY LOGS")
    return tuple((str(row[0]), int(row[1])) for row in cursor.fetchall())


def read_clock_ms(cursor: Any) -> int:
    """The server's own clock, milliseconds since the Unix epoch; SYSDATE ignores SET TIMESTAMP."""
    cursor.execute("SELECT CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000) AS SIGNED)")
    return int(cursor.fetchone()[0])


def preflight(facts: SourceFacts, flavour: Flavour, dump: DumpMode, *, semi_sync: bool = False) -> None:
    """Refuse what capture can't do right. Raises SourceRefused, one line: what, where, what to do."""
    for wrong, remedy in _objections(facts, flavour, dump):
        raise SourceRefused(wrong, where=facts.where, remedy=remedy)
    if semi_sync and not any(name in facts.variables for name in _SEMI_SYNC):
        raise SourceRefused(
            "semi_sync is set, but the server doesn't have it",
            where=facts.where,
            remedy="INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so' there, or take semi_sync out",
        )


def cautions(facts: SourceFacts, *, semi_sync: bool = False) -> list[str]:
    """What works, but not for every table or commit: one line each."""
    found = _row_image_cautions(facts)
    if semi_sync and not any(facts.variables.get(name) == "ON" for name in _SEMI_SYNC):
        found.append(
            f"semi_sync is set, but {facts.where} waits for nobody; SET GLOBAL rpl_semi_sync_source_enabled = 1"
            " (rpl_semi_sync_master_enabled in MariaDB)"
        )
    return found


def _row_image_cautions(facts: SourceFacts) -> list[str]:
    image = facts.variables.get("binlog_row_image", "FULL").upper()
    if image in ("FULL", "FULL_NODUP"):
        return []
    why = "an update that doesn't log all it leaves in a row stops its table"
    remedy = "SET GLOBAL binlog_row_image = FULL, and end sessions older than that"
    return [f"binlog_row_image is {image} at {facts.where}: {why}; {remedy}"]


def _monitors(grants: tuple[str, ...]) -> bool:
    text = "\n".join(grants).upper()
    return any(name in text for name in ("REPLICATION CLIENT", "BINLOG MONITOR", "ALL PRIVILEGES", "SUPER"))


def _objections(facts: SourceFacts, flavour: Flavour, dump: DumpMode) -> list[tuple[str, str]]:
    """(what is wrong, what to do), worst first."""
    found: list[tuple[str, str]] = []
    mariadb = facts.flavour is Flavour.MARIADB

    def need(variable: str, wanted: str, remedy: str, *, missing: str) -> None:
        value = facts.variables.get(variable, missing)
        if value.upper() != wanted:
            found.append((f"{variable} is {value}, not {wanted}", remedy))

    if facts.flavour is not flavour:
        found.append(
            (f"the server is {facts.flavour}, the pipeline file says {flavour}", f"set flavour: {facts.flavour}")
        )
    need("log_bin", "ON", "start the server with --log-bin", missing="OFF")
    need("binlog_format", "ROW", "SET GLOBAL binlog_format = ROW, and end sessions older than that", missing="ROW")
    if not mariadb and dump is DumpMode.GTID:
        need("gtid_mode", "ON", "turn it on, or set dump: position in the pipeline file", missing="OFF")
    monitor = "BINLOG MONITOR" if mariadb and facts.version_number >= (10, 5) else "REPLICATION CLIENT"
    found.extend(
        (f"privilege {privilege} is missing", f"GRANT {privilege} ON *.* TO this account")
        for privilege in ("REPLICATION SLAVE", monitor)
        if not facts.holds(privilege)
    )
    if not any(re.search(r"\bSELECT\b|\bALL PRIVILEGES\b", grant, re.IGNORECASE) for grant in facts.grants):
        found.append(("privilege SELECT is missing", "GRANT SELECT ON the databases to keep TO this account"))
    return found
