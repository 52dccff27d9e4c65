"""FORMAT_DESCRIPTION: the layout of the events after it.

In:  the event, whole, as the server sent it.
Out: the server's version and the length of checksums. StreamCorrupt if it isn't such an event;
     UnknownEvent if this decoder doesn't read its format.

Layout (MySQL source docs "Format_description_event"; MariaDB Knowledge Base
"FORMAT_DESCRIPTION_EVENT"): binlog version u16, server version 50 bytes NUL-padded, created u32,
header length u8, one post-header length per event type, checksum algorithm u8, checksum u32 (always
there, even with algorithm 0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tidegate.binlog.format.events import CHECKSUM_BYTES, HEADER_BYTES, EventType, read_header
from tidegate.errors import StreamCorrupt, UnknownEvent
from tidegate.remedy import REPORT

_FIXED_BYTES: Final = 2 + 50 + 4 + 1
_ALGORITHM_CRC32: Final = 1
_BINLOG_VERSION: Final = 4  # since MySQL 5.0
_COPY: Final = f"copy the file again from its server; if it comes from capture, {REPORT}"
_MARIADB: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)-mariadb", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """server_version: text, e.g. "11.4.5-MariaDB-log". checksum_bytes: 0 or 4, at the end of every event.
    created: when the server made the file at its start, in seconds since the epoch; else 0.
    """

    server_version: str
    checksum_bytes: int
    created: int

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.server_version.lower()

    @property
    def mariadb_version(self) -> tuple[int, ...]:
        """(11, 4, 5); () if it isn't MariaDB. Some of its versions have 5.5.5- in front."""
        match = _MARIADB.search(self.server_version)
        return tuple(map(int, match.groups())) if match else ()


def parse_format_description(event: bytes | memoryview, where: str = "") -> FormatDescription:
    """Read one whole event. Raises StreamCorrupt or UnknownEvent."""
    event = bytes(event)
    if len(event) < HEADER_BYTES + _FIXED_BYTES + 1 + CHECKSUM_BYTES:
        raise StreamCorrupt("FORMAT_DESCRIPTION event is cut short", where=where, remedy=_COPY)
    header = read_header(event)
    if header.type != EventType.FORMAT_DESCRIPTION or header.size != len(event):
        raise StreamCorrupt("not a FORMAT_DESCRIPTION event", where=where, remedy=_COPY)
    body = event[HEADER_BYTES:]
    version = int.from_bytes(body[:2], "little")
    header_bytes = body[56]
    algorithm = body[-CHECKSUM_BYTES - 1]
    if version != _BINLOG_VERSION or header_bytes != HEADER_BYTES or algorithm > _ALGORITHM_CRC32:
        raise UnknownEvent(
            f"binlog version {version} with headers of {header_bytes} bytes and checksum algorithm {algorithm}",
            where=where,
            remedy="only version 4 with no checksum or CRC32 is read",
        )
    return FormatDescription(
        server_version=body[2:52].split(b"\0", 1)[0].decode("latin-1"),
        checksum_bytes=CHECKSUM_BYTES if algorithm == _ALGORITHM_CRC32 else 0,
        created=int.from_bytes(body[52:56], "little"),
    )
