"""The GTIDs that a binlog file begins with: MySQL's PREVIOUS_GTIDS and MariaDB's GTID_LIST, as text.

In:  the event, whole.
Out: "uuid:1-5,uuid:tag:3" or "0-1-17,1-2-3"; DecodeError when the bytes don't fit.

Layouts: mysql-server sql/rpl_gtid_set.cc (Gtid_set::encode), little-endian. Old: count of uuids
u64, then per uuid 16 bytes, count of intervals u64, each start u64 and end u64 (exclusive). Tagged
(since 8.3): the u64 holds the format (1) in its first and last byte and the count between them;
after each uuid stands its tag, as a length in mysql::serialization's form and the characters.
MariaDB: sql/log_event.cc (Gtid_list_log_event): count u32 whose four high bits are flags, then per
domain u32, server id u32, sequence u64.
"""

from __future__ import annotations

import uuid
from typing import Final

from tidegate.binlog.format.events import HEADER_BYTES, EventType, read_header
from tidegate.columnar.cursor import ByteCursor
from tidegate.errors import DecodeError
from tidegate.position import MariadbGtidPosition, MysqlGtidSet
from tidegate.remedy import REPORT

_TAGGED: Final = 1
_COUNT_MASK: Final = (1 << 28) - 1
_TAG_BYTES_MAX: Final = 32


def gtids_before(event: bytes, checksum_bytes: int) -> str:
    """Text of a PREVIOUS_GTIDS or GTID_LIST event."""
    header = read_header(event)
    cursor = ByteCursor(event, HEADER_BYTES, header.size - checksum_bytes)
    if header.type == EventType.MARIADB_GTID_LIST:
        return _mariadb(cursor)
    return _mysql(cursor)


def _mysql(cursor: ByteCursor) -> str:
    head = cursor.take(8)
    tagged = head[7] == _TAGGED
    if head[7] not in (0, _TAGGED) or (tagged and head[0] != _TAGGED):
        raise DecodeError(f"PREVIOUS_GTIDS in format {head[7]}", remedy=f"{REPORT}, and the server's version")
    count = int.from_bytes(head[1:7] if tagged else head[:7], "little")
    gtids = MysqlGtidSet()
    for _ in range(count):
        name = str(uuid.UUID(bytes=cursor.take(16)))
        tag = _tag(cursor) if tagged else ""
        for _ in range(cursor.unsigned(8)):
            first, behind = cursor.unsigned(8), cursor.unsigned(8)
            gtids.add(f"{name}:{tag}" if tag else name, first, behind - 1)
    if cursor:
        raise DecodeError("PREVIOUS_GTIDS has bytes left over", remedy=f"{REPORT}, and the server's version")
    return str(gtids)


def _tag(cursor: ByteCursor) -> str:
    """Its length takes one byte, shifted left by one: 32 characters at most."""
    size = cursor.unsigned(1)
    if size & 1 or size >> 1 > _TAG_BYTES_MAX:
        raise DecodeError("a GTID's tag is longer than 32 characters", remedy=f"{REPORT}, and the server's version")
    return cursor.text(size >> 1)


def _mariadb(cursor: ByteCursor) -> str:
    position = MariadbGtidPosition()
    for _ in range(cursor.unsigned(4) & _COUNT_MASK):
        domain, server, sequence = cursor.unsigned(4), cursor.unsigned(4), cursor.unsigned(8)
        position.domains[domain] = (server, sequence)
    return str(position)
