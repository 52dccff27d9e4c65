"""Read the few events that capture must understand beyond their header.

In:  one whole event, or a segment of them.
Out: the file a ROTATE leads to, the tables a statement or a compressed transaction names, the GTID of a tagged
     transaction.

An unreadable event stops nothing here: planners look at its segment for every table, and decoding it says what is
wrong with it.
"""

from __future__ import annotations

import logging
import re
import uuid
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.format.events import EventType, closed_file
from tidegate.binlog.format.query import parse_query
from tidegate.binlog.index.expand import expand
from tidegate.binlog.index.unpack import expand_event
from tidegate.binlog.kernel import names as N  # noqa: N812 - a page of constants
from tidegate.binlog.statements.judged import is_dml
from tidegate.errors import DDLError, DecodeError, StreamCorrupt, Terminal
from tidegate.limits import SEGMENT_TABLES_MAX
from tidegate.remedy import REPORT
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.tables import EVERY_TABLE, SegmentFlag

_HEADER: Final = 19
_WHOLE_DATABASE: Final = re.compile(r"\b(DROP|ALTER)\b.{0,200}\b(DATABASE|SCHEMA)\b", re.IGNORECASE | re.DOTALL)

DdlTables = Callable[[str, str, int], list[str]]
Event = npt.NDArray[np.uint8]

log = logging.getLogger(__name__)

# Events that stand between transactions and say nothing of rows.
FRAME: Final = {
    EventType.FORMAT_DESCRIPTION,
    EventType.PREVIOUS_GTIDS,
    EventType.MARIADB_GTID_LIST,
    EventType.MARIADB_BINLOG_CHECKPOINT,
    EventType.MARIADB_START_ENCRYPTION,
    EventType.ROTATE,
    EventType.STOP,
}
BEGINNINGS: Final = {EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID}


def described_format(event: bytes, where: str) -> tuple[bytes, int]:
    """(a FORMAT_DESCRIPTION as it stands in a closed file, bytes of the checksum after each event).

    Raises StreamCorrupt.
    """
    closed = closed_file(event)
    checked = event[-5] == 1
    if checked and zlib.crc32(closed[:-4]) != int.from_bytes(event[-4:], "little"):
        raise StreamCorrupt("wrong checksum in FORMAT_DESCRIPTION", where=where, remedy="check the server's disk")
    return bytes(closed), 4 if checked else 0


def restarted(format_description: bytes) -> bool:
    """Whether a file's FORMAT_DESCRIPTION says that the server began this file when it started."""
    created = _HEADER + 2 + 50  # after two versions
    return format_description[created : created + 4] != bytes(4)


def rotate_target(event: bytes) -> tuple[str, int]:
    """(file, offset) of a ROTATE: u64 offset, then the name up to the end.

    Before the first FORMAT_DESCRIPTION it isn't known whether a checksum follows the name. If the last
    four bytes are the event's checksum, one does.
    """
    body = event[_HEADER:]
    if len(body) > 12 and zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little"):
        body = body[:-4]
    return body[8:].decode("utf-8", "surrogateescape"), int.from_bytes(body[:8], "little")


def query_names(event: bytes, checksum: int, ddl_tables: DdlTables) -> tuple[int, list[str]]:
    """(Q_* of transaction_scan, names of the tables it touches or EVERY_TABLE) of a QUERY event."""
    said = int(scan.classify_query(np.frombuffer(event, np.uint8), 0, len(event), len(event), checksum))
    if said != scan.Q_STATEMENT:  # the tables of an XA COMMIT are its prewrite's, which apply knows
        return said, []
    try:
        query = parse_query(event, checksum)
        if is_dml(query.sql):  # which tables it changes is for decode to judge, which knows those asked for
            return said, [EVERY_TABLE]
        names = ddl_tables(query.sql, query.database, query.sql_mode)
        names += [] if query.legible else [EVERY_TABLE]
    except DdlNotRead as error:
        if not error.tables:
            log.warning("the tables of a statement can't be read: %s", error)
        return said, [*error.tables, EVERY_TABLE]  # there may be more than those it came to
    except (DDLError, DecodeError) as error:
        log.warning("the tables of a statement can't be read: %s", error)
        return said, [EVERY_TABLE]
    # Its tables are known to schema_history alone.
    return said, names or ([EVERY_TABLE] if _WHOLE_DATABASE.search(query.sql) else [])


def compressed_query_names(event: Event, checksum: int, ddl_tables: DdlTables) -> tuple[int, list[str]]:
    """query_names of a QUERY_COMPRESSED event; what it says is a statement when it can't be read."""
    try:
        plain = expand_event(event, checksum)
    except Terminal as error:
        log.warning("a compressed statement can't be read: %s", error)
        return scan.Q_STATEMENT, [EVERY_TABLE]
    return query_names(plain.tobytes(), checksum, ddl_tables)


def payload_names(data: Event, checksum: int, ddl_tables: DdlTables) -> tuple[SegmentFlag, set[str]]:
    """(flags, names of tables) of whole events, with those inside of TRANSACTION_PAYLOADs."""
    flags, names = SegmentFlag(0), set[str]()
    try:
        for piece in expand(data, checksum, "payload + {}".format):
            flags |= _note_part(piece.data, checksum, ddl_tables, names)
    except Terminal as error:
        log.warning("a compressed transaction can't be read: %s", error)
        names.add(EVERY_TABLE)
    return flags, {EVERY_TABLE} if len(names) > SEGMENT_TABLES_MAX else names


def _note_part(part: Event, checksum: int, ddl_tables: DdlTables, names: set[str]) -> SegmentFlag:
    state = np.zeros(N.NOTE_WORDS, np.int64)
    noted = int(N.note_inner(part.ctypes.data, len(part), checksum, state.ctypes.data))
    flags = SegmentFlag.HAS_PREWRITE if noted & N.NOTE_PREWRITE else SegmentFlag(0)
    if noted & N.NOTE_ODD:
        names.add(EVERY_TABLE)
    names.update(name_at(part, at) for at in state[N.NAMES : N.NAMES + int(state[N.TABLES])].tolist())
    for at in state[N.QUERIES : N.QUERIES + int(state[N.STATEMENTS])].tolist():
        size = int.from_bytes(part[at + 9 : at + 13].tobytes(), "little")
        said, named = query_names(part[at : at + size].tobytes(), checksum, ddl_tables)
        flags |= flag_of(said)
        names.update(named)
    return flags


def flag_of(said: int) -> SegmentFlag:
    """A planner's facts of a segment from a QUERY event (Q_* of transaction_scan)."""
    if said == scan.Q_XA_ANSWER:
        return SegmentFlag.HAS_ANSWER
    return SegmentFlag.HAS_DDL if said == scan.Q_STATEMENT else SegmentFlag(0)


def name_at(data: Any, at: int) -> str:
    """database.table from a TABLE_MAP's names: length, database, NUL, length, table."""
    size = int(data[at])
    database = bytes(data[at + 1 : at + 1 + size]).decode("utf-8", "surrogateescape")
    at += size + 2
    table = bytes(data[at + 1 : at + 1 + int(data[at])]).decode("utf-8", "surrogateescape")
    return f"{database}.{table}"


def event_at(payload: np.ndarray[Any, np.dtype[np.uint8]], at: int) -> bytes:
    """The event that begins at this offset of payload."""
    size = int.from_bytes(payload[at + 9 : at + 13].tobytes(), "little")
    return payload[at : at + size].tobytes()


def map_name(event: bytes) -> str:
    """`database.table` of a TABLE_MAP."""
    return name_at(event, 19 + 8)


def tagged_gtid(event: bytes) -> tuple[str, int]:
    """(uuid:tag or uuid, number) of a GTID_TAGGED event (mysql-server libs/mysql/serialization; Gtid_event).

    Integers: the run of low 1 bits of the first byte counts the bytes that follow. After version, size and last
    non-ignorable field come (field id, value) pairs: 0 flags, 1 the uuid's 16 bytes each as an integer, 2 number
    (zigzag), 3 the tag as length and bytes.
    """
    at = _HEADER
    sid, tag, number = b"", "", 0

    def integer() -> int:
        nonlocal at
        more = (~event[at] & (event[at] + 1)).bit_length() - 1
        raw = int.from_bytes(event[at : at + 1 + more], "little")
        at += 1 + more
        return raw >> (more + 1) if more < 8 else raw >> 8

    try:
        for _ in range(3):
            integer()
        while not (sid and number) or event[at] >> 1 <= 3:
            field = integer()
            if field == 1:
                sid = bytes(integer() for _ in range(16))
            elif field == 2:
                value = integer()
                number = value >> 1 ^ -(value & 1)
            elif field == 3:
                size = integer()
                tag = event[at : at + size].decode()
                at += size
            else:
                integer()
        name = str(uuid.UUID(bytes=sid))
    except (IndexError, ValueError) as error:
        raise StreamCorrupt("GTID_TAGGED can't be read", remedy=REPORT) from error
    return (f"{name}:{tag}" if tag else name), number
