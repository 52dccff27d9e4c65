"""The vocabulary of a binlog: event types, header, flags, and which events may be ignored, with the
reason.

In:  bytes of events, as a server sends them.
Out: names for their numbers; EventHeader; IGNORE_RULES, the only reasons not to decode bytes.

Header (19 bytes, little-endian; MySQL source docs "Binlog Event Header", mysql-server
libs/mysql/binlog/event/binlog_event.h; MariaDB Knowledge Base "2-Binlog Event Header"): timestamp
u32, type u8, server_id u32, event size u32, next position u32, flags u16. If a checksum algorithm
is in force, the event ends with 4 bytes of CRC-32, and its size includes them.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

HEADER_BYTES: Final = 19
_FLAGS_AT: Final = 17  # of the flags in an event's header
CHECKSUM_BYTES: Final = 4
BINLOG_MAGIC: Final = b"\xfebin"


class EventType(IntEnum):
    """Type codes of MySQL (to 42) and MariaDB (from 160)."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    APPEND_BLOCK = 9
    DELETE_FILE = 11
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V0 = 20
    UPDATE_ROWS_V0 = 21
    DELETE_ROWS_V0 = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS_V2 = 30
    UPDATE_ROWS_V2 = 31
    DELETE_ROWS_V2 = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED = 169
    MARIADB_UPDATE_ROWS_COMPRESSED = 170
    MARIADB_DELETE_ROWS_COMPRESSED = 171
    MARIADB_PARTIAL_ROW_DATA = 172


class EventFlag(IntFlag):
    """Header flags that matter here."""

    IN_USE = 0x01  # of a FORMAT_DESCRIPTION: the file wasn't closed
    THREAD_SPECIFIC = 0x04  # of a statement that used a temporary table; DROP TABLE always has it
    ARTIFICIAL = 0x20  # made for this connection, not in the file
    IGNORABLE = 0x80  # a reader that doesn't know the type may ignore the event


HEARTBEATS: Final = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
# Events of a file's beginning. A server that starts to send further on repeats them first, with next_pos 0.
_REPEATED: Final = frozenset({EventType.FORMAT_DESCRIPTION, EventType.MARIADB_START_ENCRYPTION})


class EventHeader(NamedTuple):
    """The fixed header. size includes header and checksum. next_pos is the low half of the end
    position.
    """

    timestamp: int
    type: int
    server_id: int
    size: int
    next_pos: int
    flags: int


def is_made_up(header: EventHeader) -> bool:
    """Whether the event isn't at this place of the file: the server made or repeated it for the
    connection.
    """
    return bool(header.flags & EventFlag.ARTIFICIAL) or (header.next_pos == 0 and header.type in _REPEATED)


_HEADER: Final = Struct("<IBIIIH")


def read_header(data: bytes | memoryview, offset: int = 0) -> EventHeader:
    """The header at offset. Raises struct.error if fewer than 19 bytes are there."""
    return EventHeader._make(_HEADER.unpack_from(data, offset))


def closed_file(description: bytes | memoryview | npt.NDArray[np.uint8]) -> bytearray:
    """A FORMAT_DESCRIPTION event as its checksum covers it: from before the server marked the file
    as in use.
    """
    event = bytearray(description)
    event[_FLAGS_AT] &= 0xFF ^ EventFlag.IN_USE
    return event


def type_name(code: int) -> str:
    """Name and number for messages: "TABLE_MAP (19)"."""
    try:
        return f"{EventType(code).name} ({code})"
    except ValueError:
        return f"unknown ({code})"


def unread_event(code: int) -> str:
    """For messages: an event that can't be decoded, in words, with the remedy if there is one."""
    more = ""
    if code == EventType.MARIADB_PARTIAL_ROW_DATA:
        more = ": rows beyond binlog_row_event_fragment_threshold are logged in fragments; SET GLOBAL it = DEFAULT"
    return f"event {type_name(code)} can't be decoded{more}"


# Rows that this version can't read: their table is held. Their post-header also starts with the table id, so the
# table can be named.
UNREAD_ROWS_TYPES: Final = frozenset({EventType.WRITE_ROWS_V0, EventType.UPDATE_ROWS_V0, EventType.DELETE_ROWS_V0})

# rule -> why bytes under it may stay undecoded. The ledger counts bytes per rule. Nothing is ignored without a rule.
IGNORE_RULES: Final[dict[str, str]] = {
    "format description": "says how to read the others, and was read for that",
    "file frame": "STOP and ROTATE name where the file ends; the position stands in the segment",
    "transaction frame": "GTID, BEGIN, XID, COMMIT: their content is each change's commit_ts",
    "table map": "read to decode the rows after it; holds no row itself",
    "gtid list": "GTIDs before this file; the segment's gtid_executed has them",
    "annotation": "the text of a statement whose rows follow it",
    "heartbeat": "moves resolved_ts, which stands in the segment",
    "checkpoint": "the server's own crash recovery",
    "encryption": "how the file is encrypted at rest; the server sends events decrypted",
    "group replication": "certification data and membership; rows come in their own events",
    "statement context": "INTVAR, RAND, USER_VAR, LOAD DATA's blocks only precede a statement, which is judged",
    "savepoint": "SAVEPOINT, RELEASE, ROLLBACK TO: what they take back is marked (outcome.py)",
    "rolled back": "rows that the server logged and then took back",
    "ddl": "replayed through schema_history, not through rows",
    "unfinished alter": "START and ROLLBACK ALTER change nothing; COMMIT ALTER is the statement",
    "xa answer": "the rows of its prewrite come in its place (segments/prewrites.py)",
    "judged": "a person looked, and said that it changes no table (tidegate schema judge)",
    "ignorable": "flagged by the server as of no meaning to a reader that doesn't know it",
    "prewrite": "rows of a transaction that is answered later: they come in the answer's place",
    "table not asked for": "the window holds no such table",
    "outside the window": "applied before, or due in a later window",
}

_RULE_TYPES: Final[dict[str, tuple[EventType, ...]]] = {
    "format description": (EventType.FORMAT_DESCRIPTION,),
    "file frame": (EventType.STOP, EventType.ROTATE),
    "transaction frame": (
        EventType.GTID,
        EventType.ANONYMOUS_GTID,
        EventType.GTID_TAGGED,
        EventType.MARIADB_GTID,
        EventType.XID,
        EventType.XA_PREPARE,
    ),
    "table map": (EventType.TABLE_MAP,),
    "gtid list": (EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST),
    "annotation": (EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS),
    "heartbeat": (EventType.HEARTBEAT, EventType.HEARTBEAT_V2),
    "checkpoint": (EventType.MARIADB_BINLOG_CHECKPOINT,),
    "encryption": (EventType.MARIADB_START_ENCRYPTION,),
    "group replication": (EventType.TRANSACTION_CONTEXT, EventType.VIEW_CHANGE),
    "statement context": (
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.APPEND_BLOCK,
        EventType.DELETE_FILE,
        EventType.BEGIN_LOAD_QUERY,
    ),
    "ignorable": (EventType.IGNORABLE,),
}
RULE_OF_TYPE: Final[dict[int, str]] = {int(code): rule for rule, codes in _RULE_TYPES.items() for code in codes}
