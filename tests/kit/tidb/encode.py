"""Bytes as TiDB writes them: the inverse of tidegate.tidb, for tests.

In:  Python values.
Out: datums, rows, mutations and binlogs.
"""

from __future__ import annotations

import struct
from decimal import Decimal

from tidegate.tidb.codec.datum import Json
from tidegate.tidb.codec.protobuf import bytes_field, number_field, written_varint
from tidegate.tidb.records.payload import BinlogType, Mutation

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def datum(value: float | Decimal | bytes | Json | None) -> bytes:
    """As rows have it; an int at or above 2^63 is written without a sign."""
    if value is None:
        return b"\x00"
    if isinstance(value, Json):
        return b"\x0a" + value
    if isinstance(value, bytes):
        return b"\x02" + written_varint(len(value) << 1) + value
    if isinstance(value, float):
        bits = int.from_bytes(struct.pack(">d", value), "big")
        return b"\x05" + (bits ^ ((1 << 64) - 1) if bits >> 63 else bits | 1 << 63).to_bytes(8, "big")
    if isinstance(value, Decimal):
        return b"\x06" + decimal(value)
    if value >> 63 > 0:
        return b"\x09" + written_varint(value)
    return b"\x08" + written_varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


def handle(value: int | bytes) -> bytes:
    """As a key has it: bytes that order as the values do."""
    if isinstance(value, int):
        return b"\x03" + (value + (1 << 63)).to_bytes(8, "big")
    out = b"\x01"
    for at in range(0, len(value) + 1, 8):
        group = value[at : at + 8]
        out += group.ljust(8, b"\0") + bytes([255 - (8 - len(group))])
    return out


def decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    assert exponent <= 0
    text = "".join(map(str, digits)).rjust(-exponent + 1, "0")
    whole, fraction = text[: len(text) + exponent], text[len(text) + exponent :]
    whole = whole.lstrip("0") if fraction else whole.lstrip("0") or "0"
    body = b""
    lead = len(whole) % 9
    for part in [whole[:lead]] * bool(lead) + [whole[at : at + 9] for at in range(lead, len(whole), 9)]:
        body += int(part).to_bytes(_DIGIT_BYTES[len(part)], "big")
    for part in [fraction[at : at + 9] for at in range(0, len(fraction), 9)]:
        body += int(part).to_bytes(_DIGIT_BYTES[len(part)], "big")
    bits = bytearray(body)
    bits[0] ^= 0x80
    if sign:
        bits = bytearray(byte ^ 0xFF for byte in bits)
    return bytes([len(whole) + len(fraction), len(fraction)]) + bytes(bits)


def pairs(cells: dict[int, int | float | Decimal | bytes | None]) -> bytes:
    return b"".join(datum(id_) + datum(value) for id_, value in cells.items()) or b"\x00"


def mutations(table_id: int, *changes: tuple[Mutation, bytes]) -> bytes:
    """A PrewriteValue of one table."""
    fields = {Mutation.INSERT: 2, Mutation.UPDATE: 3, Mutation.DELETE: 6}
    body = number_field(1, table_id)
    body += b"".join(bytes_field(fields[kind], row) for kind, row in changes)
    body += b"".join(number_field(7, kind) for kind, _ in changes)
    return number_field(1, 1) + bytes_field(2, body)


def binlog(tp: BinlogType, start_ts: int, commit_ts: int = 0, value: bytes = b"", key: bytes = b"") -> bytes:
    out = number_field(1, tp) + number_field(2, start_ts) + number_field(3, commit_ts)
    return out + (bytes_field(4, key) if key else b"") + (bytes_field(5, value) if value else b"") + number_field(7, 0)


def ddl(tp: BinlogType, start_ts: int, commit_ts: int, job_id: int, query: bytes = b"") -> bytes:
    """The binlog of a DDL job."""
    out = number_field(1, tp) + number_field(2, start_ts) + number_field(3, commit_ts)
    return out + bytes_field(6, query) + number_field(7, job_id)


def json_value(tree: object) -> Json:
    """TiDB's binary JSON."""
    kind, body = _json(tree)
    return Json(bytes([kind]) + body)


def _json(tree: object) -> tuple[int, bytes]:
    if tree is None or isinstance(tree, bool):
        return 4, bytes([0 if tree is None else 1 if tree else 2])
    if isinstance(tree, int):
        return (9, struct.pack("<q", tree)) if tree < 1 << 63 else (10, struct.pack("<Q", tree))
    if isinstance(tree, float):
        return 11, struct.pack("<d", tree)
    if isinstance(tree, str):
        return 12, written_varint(len(tree.encode())) + tree.encode()
    if isinstance(tree, list):
        return 3, _container([], [_json(one) for one in tree])
    assert isinstance(tree, dict)
    members = sorted((key.encode(), value) for key, value in tree.items())
    return 1, _container([key for key, _ in members], [_json(value) for _, value in members])


def _container(keys: list[bytes], values: list[tuple[int, bytes]]) -> bytes:
    at = 8 + 6 * len(keys) + 5 * len(values)
    entries, tail = b"", b""
    for key in keys:
        entries += struct.pack("<IH", at + len(tail), len(key))
        tail += key
    for kind, body in values:
        if kind == 4:
            entries += bytes([kind]) + body.ljust(4, b"\0")
        else:
            entries += struct.pack("<BI", kind, at + len(tail))
            tail += body
    return struct.pack("<II", len(values), at + len(tail)) + entries + tail
