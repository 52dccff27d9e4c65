"""QUERY: a statement, and the session state its meaning depends on.

In:  the event, whole.
Out: a Query: text, database, sql_mode, character set, microseconds.

Layout (MySQL source docs "Query_event"; mysql-server libs/mysql/binlog/event/statement_events.h):
thread id u32, seconds u32, database length u8, error code u16, length of status variables u16,
status variables (code u8, value), database, NUL, statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.binlog.format.events import HEADER_BYTES, EventFlag, read_header
from tidegate.binlog.format.statement_text import statement_text
from tidegate.columnar.cursor import ByteCursor
from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.statement import EventSaid
from tidegate.schema.model.charset_text import charset_of_collation

_FLAGS2: Final = 0
_EXPLICIT_TIMESTAMPS_BIT: Final = 1 << 24  # OPTION_EXPLICIT_DEF_TIMESTAMP, MariaDB's alone
_SQL_MODE: Final = 1
_CHARSET: Final = 4
_TIME_ZONE: Final = 5
_MICROSECONDS_MYSQL: Final = 13
_EXPLICIT_TIMESTAMPS: Final = 16
_DDL_XID: Final = 17
_MARIADB_DDL_XID: Final = 129
_MARIADB_MICROSECONDS: Final = 128  # Q_HRNOW
_DB_NAMES: Final = 12
_DB_NAMES_MAX: Final = 16  # of more names the server writes only the number
_MARIADB_GTID_FLAGS: Final = 130
_MARIADB_ENDS_ALTER: Final = 4 | 8  # FL_COMMIT_ALTER_E1, FL_ROLLBACK_ALTER_E1: the number of the start event follows
_MARIADB_UNFINISHED_ALTER: Final = 2 | 8  # FL_START_ALTER_E1, FL_ROLLBACK_ALTER_E1
_MARIADB_COLLATIONS: Final = 131  # defaults per character set; it comes before _CHARSET
# Status variables of fixed length -> their bytes. Codes from 128 on are MariaDB's (sql/log_event.h).
_FIXED: Final = {
    0: 4,  # flags2
    1: 8,  # sql_mode
    3: 4,  # auto_increment
    4: 6,  # character sets
    7: 2,  # lc_time_names
    8: 2,  # collation of the database
    9: 8,  # table map for update
    10: 4,  # master data written
    13: 3,  # microseconds
    16: 1,  # explicit_defaults_for_timestamp
    17: 8,  # xid of an atomic DDL
    18: 2,  # default collation of utf8mb4
    19: 1,  # sql_require_primary_key
    20: 1,  # default_table_encryption
    21: 1,  # enable_cascade_triggers
    128: 3,  # microseconds, MariaDB
    129: 8,  # xid, MariaDB
}


@dataclass(frozen=True, slots=True)
class Query:
    """sql: text from statement_text.py. sql_mode: bits; 0 if the event doesn't say it. charset:
    character_set_client by name; "utf8mb4" if the event doesn't say it, "" if it isn't known.
    timestamp_us: microseconds since the epoch. time_zone: the session's, "" if the event doesn't
    say it. legible: whether sql is exact except for comments; else U+FFFD stands for bytes
    without a text in their character set. databases: those a MySQL statement reads or writes,
    also by triggers and functions; None if the event doesn't say it, or says that there may be
    more (a parent of foreign keys). unfinished: the start of an ALTER TABLE that MariaDB logs in
    two phases, or the end of one that failed: nothing has changed.
    """

    sql: str
    database: str
    sql_mode: int
    charset: str
    time_zone: str
    timestamp_us: int
    legible: bool = True
    said: EventSaid = field(default_factory=EventSaid)
    unfinished: bool = False
    databases: tuple[str, ...] | None = None


def parse_query(
    event: bytes | memoryview,
    checksum_bytes: int,
    extra_bytes: int = 0,
    *,
    mariadb: bool = False,
    has_rows: bool = False,
) -> Query:
    """Read one whole event. Raises DecodeError if it is cut short.

    extra_bytes: of the post-header, beyond QUERY's. mariadb: whether MariaDB's parser has read the
    statement. has_rows: as in statement_text.py.
    """
    event = bytes(event)
    header = read_header(event)
    cursor = ByteCursor(event, HEADER_BYTES, header.size - checksum_bytes)
    cursor.take(8)
    database_bytes = cursor.unsigned(1)
    failed = cursor.unsigned(2) != 0  # the error's number
    status_bytes = cursor.unsigned(2)
    cursor.take(extra_bytes)
    status = _status(cursor.take(status_bytes))
    database = cursor.text(database_bytes)
    cursor.take(1)
    charset, connection = _charsets(status.get(_CHARSET))
    sql_mode = int.from_bytes(status.get(_SQL_MODE, b""), "little")
    sql, legible = statement_text(cursor.rest(), charset, connection, sql_mode, mariadb=mariadb, has_rows=has_rows)
    micros = status.get(_MICROSECONDS_MYSQL) or status.get(_MARIADB_MICROSECONDS) or b""
    return Query(
        sql=sql,
        database=database,
        sql_mode=sql_mode,
        charset=charset,
        time_zone=status.get(_TIME_ZONE, b"").decode("latin-1"),
        timestamp_us=header.timestamp * 1_000_000 + int.from_bytes(micros, "little"),
        legible=legible,
        said=replace(_said(status, header.flags), failed=failed),
        databases=_databases(status.get(_DB_NAMES)),
        unfinished=bool(status.get(_MARIADB_GTID_FLAGS, b"\0")[0] & _MARIADB_UNFINISHED_ALTER),
    )


def _charsets(collations: bytes | None) -> tuple[str, str]:
    """(client, connection) by name; "" for an unknown collation."""
    if collations is None:
        return "utf8mb4", "utf8mb4"
    names = []
    for at in (0, 2):
        try:
            names.append(charset_of_collation(int.from_bytes(collations[at : at + 2], "little")))
        except UnsupportedValue:
            names.append("")
    return names[0], names[1]


def _said(status: dict[int, bytes], flags: int) -> EventSaid:
    explicit, flags2 = status.get(_EXPLICIT_TIMESTAMPS), status.get(_FLAGS2)
    bit = _EXPLICIT_TIMESTAMPS_BIT
    return EventSaid(
        explicit_timestamps=None if explicit is None else explicit != b"\0",
        mariadb_explicit=None if flags2 is None else bool(int.from_bytes(flags2, "little") & bit),
        database_charset=_server_charset(status.get(_CHARSET)),
        atomic=_DDL_XID in status or _MARIADB_DDL_XID in status,
        thread_specific=bool(flags & EventFlag.THREAD_SPECIFIC),
    )


def _server_charset(charsets: bytes | None) -> str:
    """The character set of collation_server, the last of three numbers: a database without a set of
    its own gets it.
    """
    try:
        return "" if charsets is None else charset_of_collation(int.from_bytes(charsets[4:6], "little"))
    except UnsupportedValue:
        return ""


def _status(data: bytes) -> dict[int, bytes]:
    cursor, variables = ByteCursor(data), {}
    while cursor:
        code = cursor.unsigned(1)
        if code in _FIXED:
            variables[code] = cursor.take(_FIXED[code])
        elif code == 2:  # catalog with NUL, before 5.0.4
            variables[code] = cursor.take(cursor.unsigned(1) + 1)
        elif code in (_TIME_ZONE, 6):  # 6: catalog
            variables[code] = cursor.take(cursor.unsigned(1))
        elif code == 11:  # invoker: user and host
            variables[code] = cursor.take(cursor.unsigned(1)) + b"@" + cursor.take(cursor.unsigned(1))
        elif code == _DB_NAMES:
            variables[code] = _names(cursor)
        elif code == _MARIADB_GTID_FLAGS:
            variables[code] = cursor.take(1)
            cursor.take(8 if variables[code][0] & _MARIADB_ENDS_ALTER else 0)
        elif code == _MARIADB_COLLATIONS:
            cursor.take(4 * cursor.unsigned(1))
        else:
            # Both servers' own readers stop here, too. Variables come in ascending order of their codes (except
            # MariaDB's 131), so everything needed comes before codes of newer versions.
            break
    return variables


def _names(cursor: ByteCursor) -> bytes:
    """The names, each with its NUL at the end; b"" if there are too many."""
    count, names = cursor.unsigned(1), bytearray()
    while 0 < count <= _DB_NAMES_MAX:
        names += cursor.take(1)
        count -= names[-1] == 0
    return bytes(names)


def _databases(names: bytes | None) -> tuple[str, ...] | None:
    """From Q_UPDATED_DB_NAMES (MySQL's THD::decide_logging_format). An empty name means that the
    names aren't all known.
    """
    parts = (names or b"").split(b"\0")[:-1]
    return tuple(name.decode("utf-8", "surrogateescape") for name in parts) if parts and all(parts) else None
