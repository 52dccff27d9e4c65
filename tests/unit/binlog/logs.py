"""Whole logs made by hand: tables, their TABLE_MAPs, rows events in every dress, transactions.

In:  column types (type_cells.py or encoding/types.py), rows of cells.
Out: events, segments, and the table versions that describe them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tests.kit.decoding import segment, version
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.encoding.types import WireType, optional_metadata
from tidegate.binlog.format.events import EventType
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.segments.segment import Segment

WRITE, UPDATE, DELETE = 0, 1, 2
_CODES = {
    1: (EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1),
    2: (EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2),
}
METADATA = ("", "MINIMAL", "FULL")


@dataclass(frozen=True)
class Dress:
    """How a log is written, whatever it says. extra: extra data of version 2 events. metadata: one of METADATA.
    spare_bits: whether null bits that stand for no column are set.
    """

    checksum: bool = True
    version: int = 1
    extra: bytes = b""
    metadata: str = "FULL"
    default_charset: bool = True
    mysql: bool = False
    spare_bits: bool = True


@dataclass(frozen=True)
class Table:
    """key: numbers of its columns."""

    name: str
    types: tuple[WireType, ...]
    key: tuple[int, ...] = ()
    database: str = "shop"

    @property
    def names(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.types))]

    @property
    def version(self) -> TableVersion:
        columns = [
            Column(i, name, wire.type, nullable=i - 1 not in self.key, charset=wire.charset)
            for i, (name, wire) in enumerate(zip(self.names, self.types, strict=True), 1)
        ]
        return version(self.database, self.name, columns, [self.names[i] for i in self.key])

    def map_event(self, table_id: int, dress: Dress) -> bytes:
        names = b"".join(bytes([len(name)]) + name + b"\0" for name in (self.database.encode(), self.name.encode()))
        metadata = b"".join(wire.metadata for wire in self.types)
        nullable = sum(1 << i for i in range(len(self.types)) if i not in self.key)
        body = table_id.to_bytes(6, "little") + b"\x01\x00" + names + e.packed(len(self.types))
        body += bytes(wire.code for wire in self.types) + e.packed(len(metadata)) + metadata
        body += nullable.to_bytes((len(self.types) + 7) // 8, "little")
        if dress.metadata:
            full = dress.metadata == "FULL"
            charsets = {"default": dress.default_charset, "mysql": dress.mysql}
            body += optional_metadata(self.types, self.names, self.key, full=full, **charsets)
        return e.event(EventType.TABLE_MAP, body, checksum=dress.checksum)


def rows_event(op: int, table_id: int, columns: int, images: bytes, dress: Dress, *, end: bool) -> bytes:
    """images: row images one after the other (before and after for an update), with all columns."""
    present = ((1 << columns) - 1).to_bytes((columns + 7) // 8, "little")
    body = table_id.to_bytes(6, "little") + struct.pack("<H", end)
    if dress.version == 2:
        body += struct.pack("<H", 2 + len(dress.extra)) + dress.extra
    body += e.packed(columns) + present * (2 if op == UPDATE else 1) + images
    return e.event(_CODES[dress.version][op], body, checksum=dress.checksum)


def transaction(number: int, events: Sequence[bytes], dress: Dress) -> list[bytes]:
    """With its GTID, BEGIN and XID, as its server would write them."""
    if dress.mysql:
        gtid = e.mysql_gtid(number, e.SECONDS * 1_000_000, checksum=dress.checksum)
        opened = [gtid, e.query("BEGIN", checksum=dress.checksum)]
    else:
        opened = [e.mariadb_gtid(number, checksum=dress.checksum)]
    return [*opened, *events, e.xid(number, checksum=dress.checksum)]


def described(dress: Dress) -> bytes:
    return e.format_description(checksum=dress.checksum, version="9.7.4" if dress.mysql else "11.4.5-MariaDB-log")


def segment_of(events: Sequence[bytes], dress: Dress) -> Segment:
    return segment(described(dress), b"".join(events))
