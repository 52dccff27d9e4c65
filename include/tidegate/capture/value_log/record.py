"""The bytes of the value log: records and footers, as pure functions.

In:  a segment, or the bytes of one.
Out: the other.

record = u32 magic, u64 length, u32 CRC-32C of payload, payload. footer = u64 largest commit_ts, u64
last seq, u32 CRC-32C of these, u32 end magic. All are little-endian (after TiDB Binlog,
pump/storage/vlog.go and log.go). A record's payload = u32 length of a JSON header, the header (a
segment's fields, perhaps with spaces at its end), the segment's context, its payload.

The header has the lengths of context and payload, so a record has its length twice. A length with
flipped bits may point anywhere, also past the file's end. It must not look like a record that a
crash cut short.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, NamedTuple

from tidegate.segments.crc32c import crc32c
from tidegate.segments.memory_pages import PAGE_BYTES
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

RECORD_MAGIC: Final = 0x823A56E8
FOOTER_MAGIC: Final = 0x123AB923
RECORD: Final = struct.Struct("<IQI")
_FOOTER: Final = struct.Struct("<QQII")
_FOOTER_CHECKED: Final = struct.Struct("<QQ")
FOOTER_BYTES: Final = _FOOTER.size
_LENGTH: Final = struct.Struct("<I")
_BYTES_FIELDS: Final = ("context", "payload")
_NAMES: Final = [field.name for field in fields(Segment) if field.name not in _BYTES_FIELDS]


class Head(NamedTuple):
    """A record without its bulk. segment: with empty context and payload. bytes: the size of the
    record's payload.
    """

    segment: Segment
    bytes: int


@dataclass(frozen=True, slots=True)
class Footer:
    """The end of a full file."""

    max_commit_ts: int
    last_seq: int


def commit_ts_of(segment: Segment) -> int:
    """The largest commit_ts a segment names."""
    return max(segment.max_commit_ts, segment.resolved_ts)


def encode(segment: Segment, offset: int | None = None) -> list[bytes | memoryview]:
    """The parts of a record, in order, the payload last. Context and payload aren't copied.

    offset: where the record will be in its file. If given, spaces at the header's end put the
    payload at a page boundary.
    """
    header: dict[str, Any] = {name: getattr(segment, name) for name in _NAMES}
    header |= {
        "captured_at": segment.captured_at.isoformat(),
        "flags": int(segment.flags),
        "context_bytes": len(segment.context),
        "payload_bytes": len(segment.payload),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    if offset is not None:
        begins = offset + RECORD.size + _LENGTH.size + len(text) + len(segment.context)
        text += b" " * (-begins % PAGE_BYTES)
    parts = [_LENGTH.pack(len(text)), text, segment.context, segment.payload]
    crc = 0
    for part in parts:
        crc = crc32c(part, crc)
    return [RECORD.pack(RECORD_MAGIC, sum(len(part) for part in parts), crc), *parts]


def decode(payload: bytes) -> Segment:
    """The segment in a record's payload with the right checksum. Raises ValueError if it isn't one."""
    segment, cells, at = _decode_header(payload)
    end = at + cells[0]
    if end + cells[1] != len(payload):
        raise ValueError("its lengths contradict each other")
    return Segment(**segment | {"context": payload[at:end], "payload": memoryview(payload)[end:]})


def decode_head(start: bytes) -> Head | None:
    """The head in the first bytes of a record's payload; None if they are too few. Raises
    ValueError.
    """
    if len(start) < _LENGTH.size or len(start) < head_bytes(start):
        return None
    segment, (context_bytes, payload_bytes), at = _decode_header(start)
    return Head(Segment(**segment | {"context": b"", "payload": b""}), at + context_bytes + payload_bytes)


def head_bytes(start: bytes) -> int:
    """How many bytes decode_head needs, by the first four bytes."""
    return int(_LENGTH.unpack_from(start)[0]) + _LENGTH.size


def _decode_header(data: bytes) -> tuple[dict[str, Any], tuple[int, int], int]:
    """(a segment's fields, the lengths of its context and payload, where these begin). Raises
    ValueError.
    """
    try:
        at = head_bytes(data)
        header = json.loads(data[_LENGTH.size : at])
        sizes = (int(header.pop("context_bytes")), int(header.pop("payload_bytes")))
        if set(header) != set(_NAMES) or min(sizes) < 0:
            raise ValueError("its fields aren't a segment's")
        header |= {
            "kind": SegmentKind(header["kind"]),
            "tables": tuple(header["tables"]),
            "flags": SegmentFlag(header["flags"]),
            "captured_at": datetime.fromisoformat(header["captured_at"]),
        }
    except (struct.error, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"its header isn't a segment's: {error}") from error
    return header, sizes, at


def encode_footer(footer: Footer) -> bytes:
    """24 bytes."""
    checked = _FOOTER_CHECKED.pack(footer.max_commit_ts, footer.last_seq)
    return _FOOTER.pack(footer.max_commit_ts, footer.last_seq, crc32c(checked), FOOTER_MAGIC)


def decode_footer(data: bytes) -> Footer | None:
    """None if these bytes are no footer, or a damaged one."""
    if len(data) != FOOTER_BYTES:
        return None
    max_commit_ts, last_seq, crc, magic = _FOOTER.unpack(data)
    if magic != FOOTER_MAGIC or crc != crc32c(data[: _FOOTER_CHECKED.size]):
        return None
    return Footer(max_commit_ts, last_seq)
