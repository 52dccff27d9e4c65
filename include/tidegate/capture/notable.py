"""Read the few events that capture must understand beyond their header.

In:  one whole event (a QUERY of many MB: its first MiB).
Out: the file a ROTATE leads to, the tables a statement names, the GTID of a tagged transaction.
"""

from __future__ import annotations

import logging
import re
import uuid
import zlib
from collections.abc import Callable
from typing import Final

import numpy as np

from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.query import parse_query
from tidegate.errors import DDLError, DecodeError, StreamCorrupt

_HEADER: Final = 19
EVERY_TABLE: Final = "*"  # a name nobody can give: planners look at the segment for every table
_WHOLE_DATABASE: Final = re.compile(r"\b(DROP|ALTER)\b.{0,200}\b(DATABASE|SCHEMA)\b", re.IGNORECASE | re.DOTALL)

DdlTables = Callable[[str, str, int], list[str]]

log = logging.getLogger(__name__)


def rotate_target(event: bytes) -> tuple[str, int]:
    """(file, offset) of a ROTATE: u64 offset, then the name up to the end.

    Before the first FORMAT_DESCRIPTION nobody says whether a checksum follows the name: it does when it fits.
    """
    body = event[_HEADER:]
    if len(body) > 12 and zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little"):
        body = body[:-4]
    return body[8:].decode("utf-8", "surrogateescape"), int.from_bytes(body[:8], "little")


def query_names(event: bytes, checksum: int, ddl_tables: DdlTables) -> tuple[int, list[str]]:
    """(Q_* of transaction_scan, names of the tables it touches or EVERY_TABLE) of a QUERY event."""
    said = int(scan.classify_query(np.frombuffer(event, np.uint8), 0, len(event), len(event), checksum))
    if said == scan.Q_XA_ANSWER:
        return said, [EVERY_TABLE]  # counts for the tables of its prewrite
    if said != scan.Q_STATEMENT:
        return said, []
    try:
        query = parse_query(event, checksum)
        names = ddl_tables(query.sql, query.database, query.sql_mode)
    except (DDLError, DecodeError) as error:
        log.warning("a statement names no table that we can read: %s", error)
        return said, [EVERY_TABLE]
    # Its tables are known to schema_history alone.
    return said, names or ([EVERY_TABLE] if _WHOLE_DATABASE.search(query.sql) else [])


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
        raise StreamCorrupt("GTID_TAGGED can't be read", remedy="report this event") from error
    return (f"{name}:{tag}" if tag else name), number
