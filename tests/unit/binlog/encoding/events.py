"""Binlog events made by hand, for tests that need bytes no server would write on demand.

In:  names, numbers and row images. Out: whole events, checksums included, each a bytes object.
"""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa

from tidegate.binlog.format.events import EventType

SECONDS = 1_795_000_000


_STANDALONE = 0x01  # of a MariaDB GTID event: no COMMIT or XID follows, the group is one statement


def event(kind: int, body: bytes, *, seconds: int = SECONDS, flags: int = 0, checksum: bool = True) -> bytes:
    size = 19 + len(body) + (4 if checksum else 0)
    whole = struct.pack("<IBIIIH", seconds, kind, 1, size, 0, flags) + body
    return whole + struct.pack("<I", zlib.crc32(whole)) if checksum else whole


def format_description(*, checksum: bool = True, version: str = "11.4.5-MariaDB-log") -> bytes:
    body = b"\x04\x00" + version.encode().ljust(50, b"\0") + bytes(4) + b"\x13" + bytes(171) + bytes([checksum])
    return event(EventType.FORMAT_DESCRIPTION, body)


def mariadb_gtid(sequence: int, *, standalone: bool = False, seconds: int = SECONDS, checksum: bool = True) -> bytes:
    flags = _STANDALONE if standalone else 0
    body = struct.pack("<QIB", sequence, 0, flags) + bytes(6)
    return event(EventType.MARIADB_GTID, body, seconds=seconds, checksum=checksum)


def mysql_gtid(number: int, microseconds: int, *, checksum: bool = True) -> bytes:
    body = b"\x01" + bytes(16) + struct.pack("<Q", number) + b"\x02" + bytes(16)
    body += microseconds.to_bytes(7, "little") + b"\xfc\x00\x01" + bytes(4)
    return event(EventType.GTID, body, checksum=checksum)


def query(
    sql: str | bytes,
    database: str = "shop",
    *,
    seconds: int = SECONDS,
    checksum: bool = True,
    sql_mode: int = 0,
    collation: int = 45,
) -> bytes:
    status = b"\x01" + sql_mode.to_bytes(8, "little") + b"\x04" + 3 * collation.to_bytes(2, "little")
    head = struct.pack("<IIBHH", 1, 0, len(database), 0, len(status))
    text = sql.encode() if isinstance(sql, str) else sql
    return event(EventType.QUERY, head + status + database.encode() + b"\0" + text, seconds=seconds, checksum=checksum)


def bare(whole: bytes) -> bytes:
    """An event without its checksum, as it stands in a compressed transaction."""
    return whole[:9] + struct.pack("<I", len(whole) - 4) + whole[13:-4]


def fields(**values: int) -> bytes:
    """The fields of a TRANSACTION_PAYLOAD, in this order, and their end."""
    codes = {"size": 1, "compression": 2, "unpacked": 3}
    return b"".join(bytes([codes[name]]) + packed(len(packed(v))) + packed(v) for name, v in values.items()) + b"\0"


def payload(*inner: bytes, compression: int = 0, flags: int = 0) -> bytes:
    """A TRANSACTION_PAYLOAD of events that have checksums here."""
    plain = b"".join(bare(one) for one in inner)
    body = plain if compression == 255 else pa.Codec("zstd").compress(plain, asbytes=True)
    head = fields(compression=compression, unpacked=len(plain), size=len(body))
    return event(EventType.TRANSACTION_PAYLOAD, head + body, flags=flags)


def deflated(text: bytes) -> bytes:
    """As MariaDB packs a statement or rows."""
    size = len(text).to_bytes(max((len(text).bit_length() + 7) // 8, 1), "big")
    return bytes([0x80 | len(size)]) + size + zlib.compress(text)


def compressed_query(sql: str, database: str = "shop") -> bytes:
    whole = query(sql, database)
    front = whole[19 : -4 - len(sql.encode())]
    return event(EventType.MARIADB_QUERY_COMPRESSED, front + deflated(sql.encode()))


def compressed_rows(kind: int, table_id: int, columns: int, images: bytes, *, end: bool = True) -> bytes:
    whole = rows(kind, table_id, columns, images, end=end)
    front = whole[19 : len(whole) - 4 - len(images)]
    code = kind + (143 if kind < EventType.WRITE_ROWS_V2 else 139)
    return event(code, front + deflated(images))


def load_data(sql: str, database: str = "shop") -> bytes:
    status = b"\x01" + bytes(8)
    head = struct.pack("<IIBHH", 1, 0, len(database), 0, len(status)) + struct.pack("<IIIB", 1, 10, 20, 0)
    return event(EventType.EXECUTE_LOAD_QUERY, head + status + database.encode() + b"\0" + sql.encode())


def xid(number: int = 1, *, checksum: bool = True) -> bytes:
    return event(EventType.XID, struct.pack("<Q", number), checksum=checksum)


def table_map(table_id: int, table: str, types: bytes, metadata: bytes, *, database: str = "shop") -> bytes:
    count = len(types)
    names = b"".join(bytes([len(name)]) + name + b"\0" for name in (database.encode(), table.encode()))
    body = table_id.to_bytes(6, "little") + b"\x01\x00" + names + packed(count) + types
    body += packed(len(metadata)) + metadata + b"\xff" * ((count + 7) // 8)
    return event(EventType.TABLE_MAP, body)


def rows(kind: int, table_id: int, columns: int, images: bytes, *, end: bool = True) -> bytes:
    present = ((1 << columns) - 1).to_bytes((columns + 7) // 8, "little")
    two = kind in (EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2)
    head = table_id.to_bytes(6, "little") + (b"\x01\x00" if end else b"\x00\x00")
    if kind >= EventType.WRITE_ROWS_V2:
        head += b"\x02\x00"
    return event(kind, head + packed(columns) + present * (2 if two else 1) + images)


def image(*values: bytes | None) -> bytes:
    nulls = sum(1 << i for i, value in enumerate(values) if value is None)
    return nulls.to_bytes((len(values) + 7) // 8, "little") + b"".join(value or b"" for value in values)


def packed(number: int) -> bytes:
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + struct.pack("<H", number)
    return b"\xfd" + struct.pack("<I", number)[:3] if number < 1 << 24 else b"\xfe" + struct.pack("<Q", number)


def short_text(text: str) -> bytes:
    return bytes([len(text.encode())]) + text.encode()


def integer(number: int) -> bytes:
    return struct.pack("<i", number)
