"""A DDL statement from the binlog: the text, and everything its meaning depends on.

In:  a QUERY event (binlog/statements/ddl_events.py).
Out: the statements that schema_history replays, in commit_ts order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from tidegate.schema.ddl.secrets import masked

_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)")
_UTC: Final = frozenset({"utc", "etc/utc"})


class StatementTime(NamedTuple):
    """When a statement ran. unix_us: microseconds since the epoch, by the source's clock. offset: of
    its session's time zone from UTC; None if the log doesn't say it.
    """

    unix_us: int
    offset: timedelta | None = None


def zone_offset(time_zone: str) -> timedelta | None:
    """The offset of a session's time_zone, if it is one offset for all times.

    None for SYSTEM, which is a setting of the server's machine, and for names of zones with rules:
    the server's tables of rules may be older or newer than ours.
    """
    if time_zone.lower() in _UTC:
        return timedelta()
    match = _OFFSET.fullmatch(time_zone)
    if match is None:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return -offset if match[1] == "-" else offset


class SaidColumn(NamedTuple):
    """A column after a statement, as the source says it. type: as Column.type, "" if the source
    doesn't say all.
    """

    name: str
    type: str
    primary: bool


@dataclass(frozen=True, slots=True)
class EventSaid:
    """The facts of a QUERY event beside the statement, as far as a DDL's effect depends on it.

    explicit_timestamps: the session's explicit_defaults_for_timestamp; None if MySQL doesn't write
    it, since it doesn't count. mariadb_explicit: its bit in MariaDB's flags; None without flags.
    database_charset: the default for a new database; "" if the event doesn't say it. atomic: the
    server changed its dictionary, and logged that as one; an IF NOT EXISTS with an existing table
    changes nothing. thread_specific: a temporary table was used. with_rows: the source's log
    doesn't have the rows of the new table. failed: the server refused it, and logged it since it
    had an effect before. columns: all columns of the table `of` after the statement; () if unknown.
    of_made: `database` is that of the new table, and the session's isn't known.
    """

    explicit_timestamps: bool | None = None
    mariadb_explicit: bool | None = None
    database_charset: str = ""
    atomic: bool = False
    thread_specific: bool = False
    with_rows: bool = False
    of: tuple[str, str] = ("", "")
    columns: tuple[SaidColumn, ...] = ()
    of_made: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class DdlStatement:
    """One statement of a QUERY event that isn't part of a transaction's frame (BEGIN, COMMIT,
    SAVEPOINT, XA).

    database: the session's default database, "" without one. sql_mode: bits of the session's
    sql_mode. pos: end position of the event in file, 64-bit. timestamp_us: microseconds since the
    epoch, by the source's clock. charset: character_set_client by name, to read the bytes. legible:
    False if U+FFFD stands for invalid bytes, outside of comments. server_version: as in
    FORMAT_DESCRIPTION, e.g. "9.7.4" or "11.4.5-MariaDB-log"; versioned comments depend on it.
    time_zone: the session's, "" if the log doesn't say it.
    """

    sql: str
    database: str
    sql_mode: int
    commit_ts: int
    file: str
    pos: int
    timestamp_us: int
    charset: str
    server_version: str = ""
    legible: bool = True
    said: EventSaid = EventSaid()
    time_zone: str = ""

    @property
    def ran(self) -> StatementTime:
        return StatementTime(self.timestamp_us, zone_offset(self.time_zone))

    @property
    def flavour(self) -> str:
        """The family of the server that wrote it: mariadb or mysql."""
        return "mariadb" if "mariadb" in self.server_version.lower() else "mysql"

    @property
    def where(self) -> str:
        """The place for error messages."""
        return f"{self.file}:{self.pos}"

    @property
    def shown(self) -> str:
        """Its text for people."""
        return masked(self.sql)
