"""Compressed events: what they hold is decoded as if it stood in the log, and what is broken in them is named."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np
import pytest

from tests.kit.decoding import ALL_TIME, changed_rows, decode_both, segment, version
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.decode import decode_in_pieces, decode_segment
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.errors import StreamCorrupt, Terminal, UnknownEvent
from tidegate.schema.model.columns import Column
from tidegate.segments.result import DecodedSegment, Known
from tidegate.segments.segment import Segment
from tidegate.tables import COMMIT_TS, OP, ORDINAL

ORDERS, ITEMS = ("shop", "orders"), ("shop", "items")
NAMES = {ORDERS: 5, ITEMS: 6}
TYPES, METADATA = b"\x03\x0f", b"\x50\x00"
COLUMNS = [Column(1, "id", "int", nullable=False), Column(2, "name", "varchar(20)", charset="utf8mb4")]
VERSIONS = {name: [version(*name, COLUMNS, ["id"])] for name in NAMES}
WINDOWS = dict.fromkeys(NAMES, ALL_TIME)
WRITE, UPDATE = EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2


def row(number: int, name: str = "x") -> bytes:
    return e.image(e.integer(number), e.short_text(name))


def write(*images: bytes, name: tuple[str, str] = ORDERS, kind: int = WRITE) -> list[bytes]:
    return [e.table_map(NAMES[name], name[1], TYPES, METADATA), e.rows(kind, NAMES[name], 2, b"".join(images))]


def transaction(*events: bytes) -> list[bytes]:
    return [e.query("BEGIN"), *events, e.xid()]


def made(*parts: bytes) -> Segment:
    return segment(e.format_description(version="9.7.4"), b"".join(parts))


def decoded(given: Segment) -> DecodedSegment:
    return decode_both(given, VERSIONS, WINDOWS)


def without_ordinals(found: DecodedSegment) -> list[dict[str, Any]]:
    return [{k: v for k, v in changed.items() if k != ORDINAL} for changed in changed_rows(found)]


@pytest.mark.parametrize("compression", [0, 255])
def test_a_compressed_transaction_gives_what_it_would_give_uncompressed(compression: int) -> None:
    inner = transaction(*write(row(1), row(2)), *write(row(1), row(7), kind=UPDATE), *write(row(3), name=ITEMS))
    plain = decoded(made(e.mysql_gtid(1, 10**15), *inner))
    packed = decoded(made(e.mysql_gtid(1, 10**15), e.payload(*inner, compression=compression)))
    assert without_ordinals(packed) == without_ordinals(plain)
    assert [(r[OP], r["id"]) for r in changed_rows(packed)] == [(1, 3), (1, 1), (1, 2), (3, 1), (1, 7)]


def test_mariadbs_compressed_rows_and_statements_are_the_plain_ones() -> None:
    for kind in (EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1, WRITE, UPDATE):
        images = row(1) + row(2)
        parts = [e.mariadb_gtid(1), e.table_map(5, "orders", TYPES, METADATA)]
        plain = decoded(made(*parts, e.rows(kind, 5, 2, images), e.xid()))
        packed = decoded(made(*parts, e.compressed_rows(kind, 5, 2, images), e.xid()))
        assert without_ordinals(packed) == without_ordinals(plain) != []


def test_ledger_counts_a_compressed_event_once_by_the_worst_of_what_it_holds() -> None:
    one, other = e.mysql_gtid(1, 10**15), e.mysql_gtid(2, 10**15)
    wanted = e.payload(*transaction(*write(row(1)), *write(row(1), name=ITEMS)))
    unwanted = e.payload(*transaction(*write(row(1), name=ITEMS)))
    given = made(one, wanted, other, unwanted)
    found = decode_both(given, VERSIONS, {ORDERS: ALL_TIME})
    assert found.ledger.decoded_bytes == len(wanted)
    assert found.ledger.ignored == {"transaction frame": len(one + other), "table not asked for": len(unwanted)}
    held = decode_segment(given, VERSIONS, {ORDERS: ALL_TIME}, known=Known(held=[ITEMS]))
    assert held.ledger.quarantined_bytes == len(wanted + unwanted)
    assert held.ledger.rows == 1


def test_positions_are_those_of_the_compressed_event() -> None:
    first, second = e.mysql_gtid(1, 10**15), e.payload(*transaction(*write(row(1))))
    given = made(first, second)
    (problem,) = decode_segment(given, {}, {ORDERS: ALL_TIME}).problems
    assert problem.pos == 4 + len(first)
    (index,) = index_pieces(given)
    assert [(index.position(n), index.end_position(n)) for n in range(1, 5)] == [
        (4 + len(first), 4 + len(first + second))
    ] * 4
    assert index.events[:, K.ORIGIN].tolist() == [0] + [len(first)] * 4


def large() -> tuple[Segment, int]:
    """A transaction of 300 statements, between two small ones, compressed to one event."""
    inner: list[bytes] = []
    for number in range(300):
        inner += write(row(number, f"n{number}"), name=ORDERS if number % 3 else ITEMS)
    parts = [e.mysql_gtid(1, 10**15), *transaction(*write(row(1001)))]
    parts += [e.mysql_gtid(2, 10**15), e.payload(*transaction(*inner))]
    parts += [e.mysql_gtid(3, 10**15), e.payload(*transaction(*write(row(1002)))), e.mysql_gtid(4, 10**15)]
    return made(*parts, *transaction(*write(row(1003)))), 303


@pytest.mark.parametrize("piece_bytes", [1, 300, 5000, 1 << 20])
def test_a_large_transaction_comes_in_pieces_that_give_the_same(piece_bytes: int) -> None:
    given, count = large()
    (whole,) = index_pieces(given)
    pieces = list(index_pieces(given, piece_bytes=piece_bytes))
    assert (len(pieces) > 3) == (piece_bytes < 1 << 20)
    assert max(len(piece.data) for piece in pieces) < piece_bytes + 1000 or len(pieces) == 1
    assert b"".join(piece.data.tobytes() for piece in pieces) == whole.data.tobytes()
    for word in (K.ORIGIN, K.COMMIT_TS, K.BITS, K.TYPE, K.SIZE):
        assert [n for piece in pieces for n in piece.events[:, word].tolist()] == whole.events[:, word].tolist()
    assert len(changed_rows(decoded(given))) == count


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_pieces(given: Segment, **keywords: Any) -> Any:
        return index_pieces(given, **{"piece_bytes": 2000, **keywords})

    for module in ("tidegate.binlog.rows.decode", "tests.reference.decode"):
        monkeypatch.setattr(f"{module}.index_pieces", in_pieces)


@pytest.mark.usefixtures("small_pieces")
def test_ordinals_grow_over_pieces_and_ledgers_add_up() -> None:
    given, count = large()
    parts = list(decode_in_pieces(given, VERSIONS, WINDOWS))
    assert len(parts) > 3
    ordinals = [sorted(r[ORDINAL] for r in changed_rows(part)) for part in parts]
    in_order = [ordinal for part in ordinals for ordinal in part]
    assert in_order == sorted(set(in_order))
    assert sum(part.ledger.payload_bytes for part in parts) == len(given.payload)
    joined = decoded(given)
    assert joined.ledger.rows == count
    assert joined.ledger.payload_bytes == len(given.payload)
    assert [(c.table, c.version) for c in joined.changes] == [("items", 1), ("orders", 1)]
    assert sorted((r[COMMIT_TS], r["id"]) for r in changed_rows(joined)) == sorted(
        (r[COMMIT_TS], r["id"]) for part in parts for r in changed_rows(part)
    )


@pytest.mark.usefixtures("small_pieces")
def test_a_problem_in_a_late_piece_leaves_none_of_the_tables_changes_and_quarantines_its_event() -> None:
    inner = [event for number in range(100) for event in write(row(number), name=(ORDERS, ITEMS)[number % 2])]
    broken = e.rows(WRITE, 5, 2, row(1)[:-1])
    outer = e.payload(*transaction(*inner, e.table_map(5, "orders", TYPES, METADATA), broken))
    found = decoded(made(e.mysql_gtid(1, 10**15), outer))
    assert [(p.table, p.error) for p in found.problems] == [("orders", "DecodeError")]
    assert {c.table for c in found.changes} == {"items"}
    assert found.ledger.rows == 50
    assert found.ledger.quarantined_bytes == len(outer)


GTID = e.mysql_gtid(1, 10**15)
INNER = transaction(*write(row(1)))
UNPACKED = b"".join(map(e.bare, INNER))
PACKED = e.pa.Codec("zstd").compress(UNPACKED, asbytes=True)
SIZE = len(UNPACKED)
Refused = dict[str, tuple[type[Terminal], str, list[bytes]]]


def bad(body: bytes) -> list[bytes]:
    return [GTID, e.event(EventType.TRANSACTION_PAYLOAD, body)]


def sized(unpacked: int, packed: bytes) -> list[bytes]:
    return bad(e.fields(compression=0, unpacked=unpacked, size=len(packed)) + packed)


def bad_payloads() -> Refused:
    good = e.fields(compression=0, unpacked=SIZE, size=len(PACKED))
    endless = UNPACKED[:9] + struct.pack("<I", 1 << 31) + UNPACKED[13:]
    return {
        "no fields": (StreamCorrupt, "needs", bad(b"")),
        "an unknown field": (StreamCorrupt, "unknown field", bad(b"\x09\x01\x00" + good + PACKED)),
        "a field twice": (StreamCorrupt, "twice", bad(b"\x02\x01\x00" + good + PACKED)),
        "a field of a wrong length": (StreamCorrupt, "as long", bad(b"\x02\x02" + good[2:] + PACKED)),
        "fewer bytes than it says": (StreamCorrupt, "says it holds", bad(good + PACKED[:-1])),
        "more bytes than it says": (StreamCorrupt, "says it holds", bad(good + PACKED + b"x")),
        "a cut frame": (StreamCorrupt, "unpacked", sized(SIZE, PACKED[:-1])),
        "garbage behind the frame": (StreamCorrupt, "unpacked", sized(SIZE, PACKED + b"x")),
        "more unpacked than it says": (StreamCorrupt, "unpacked", sized(SIZE - 1, PACKED)),
        "much less unpacked than it says": (StreamCorrupt, "unpack", sized(SIZE + (1 << 40), PACKED)),
        "an event that never ends": (StreamCorrupt, "length", bad(e.fields(compression=255, size=SIZE) + endless)),
        "an unknown compression": (UnknownEvent, "compression type 7", [GTID, e.payload(*INNER, compression=7)]),
    }


def bad_contents() -> Refused:
    nested = {
        "a transaction": e.mysql_gtid(2, 10**15),
        "a payload": e.payload(*INNER),
        "a format": e.format_description(),
        "another server's event": e.mariadb_gtid(1),
    }
    found: Refused = {
        f"{name} in a payload": (StreamCorrupt, "can't be nested", [GTID, e.payload(e.query("BEGIN"), one, *INNER)])
        for name, one in nested.items()
    }
    return found | {
        "half an event": (StreamCorrupt, "inside an event", [GTID, e.payload(*INNER, b"x" * 14)]),
        "no event": (StreamCorrupt, "holds no event", [GTID, e.payload()]),
        "no end": (StreamCorrupt, "one transaction's end", [GTID, e.payload(*INNER[:-1])]),
        "two ends": (StreamCorrupt, "transaction", [GTID, e.payload(*INNER, *INNER)]),
        "no GTID": (StreamCorrupt, "begins a transaction", [e.payload(*INNER)]),
    }


def bad_rows() -> Refused:
    rows = e.compressed_rows(WRITE, 5, 2, row(1))
    front = len(e.rows(WRITE, 5, 2, b"")) - 19 - 4

    def variant(at: int, byte: int) -> list[bytes]:
        """Another byte in place of the one that says how the rows are packed, of their length, or of their stream."""
        body = bytearray(rows[19:-4])
        body[front + at] = byte
        mapped = e.table_map(5, "orders", TYPES, METADATA)
        return [e.mariadb_gtid(1), mapped, e.event(rows[4], bytes(body)), e.xid()]

    return {
        "an unknown algorithm": (UnknownEvent, "algorithm 3", variant(0, 0xB1)),
        "no compression": (StreamCorrupt, "which is no compression", variant(0, 0x01)),
        "a length of no bytes": (StreamCorrupt, "which is no compression", variant(0, 0x80)),
        "a length that zlib can't reach": (StreamCorrupt, "says that", variant(0, 0x84)),
        "a wrong length": (StreamCorrupt, "doesn't unpack", variant(1, 3)),
        "a broken stream": (StreamCorrupt, "can't be unpacked", variant(2, 0)),
    }


REFUSED = bad_payloads() | bad_contents() | bad_rows()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_broken_in_a_compressed_event_is_told_with_its_position(case: str) -> None:
    error, told, parts = REFUSED[case]
    payload = b"".join(parts)
    at = 0
    while payload[at + 4] not in (40, 169):
        at += int.from_bytes(payload[at + 9 : at + 13], "little")
    with pytest.raises(error, match=told) as caught:
        decode_segment(made(payload), VERSIONS, WINDOWS)
    assert f"binlog.000042:{4 + at}: " in str(caught.value)


def test_a_compressed_xa_start_in_the_context_is_read() -> None:
    begin = [e.mariadb_gtid(1), e.compressed_query("XA START X'01',X'',1")]
    given = segment(
        e.format_description() + b"".join(begin), b"".join([*write(row(1)), e.compressed_query("XA END X'01'")])
    )
    found = decode_both(given, VERSIONS, WINDOWS)
    assert not found.changes
    assert found.ledger.ignored["prewrite"] > 0


def test_an_ordinary_segment_is_not_copied() -> None:
    given = made(e.mysql_gtid(1, 10**15), *transaction(*write(row(1))))
    (index,) = index_pieces(given)
    assert isinstance(index, EventIndex)
    assert not index.expanded
    assert index.data.ctypes.data == bytes_address(given.payload)


def bytes_address(data: Any) -> int:
    return int(e.pa.py_buffer(data).address)


def test_checksums_of_captured_events_are_verified_when_asked() -> None:
    given = made(e.mysql_gtid(1, 10**15), e.payload(*transaction(*write(row(1)))))
    assert decode_segment(given, VERSIONS, WINDOWS, verify_checksums=True).ledger.rows == 1
    broken = bytes(given.payload[:-1]) + bytes([given.payload[-1] ^ 1])
    with pytest.raises(StreamCorrupt, match="checksum"):
        decode_segment(dataclasses.replace(given, payload=broken), VERSIONS, WINDOWS, verify_checksums=True)


def many() -> list[bytes]:
    """Small compressed events as both servers write them, with plain ones between."""
    parts: list[bytes] = []
    for n in range(40):
        inner = transaction(*write(row(n), name=(ORDERS, ITEMS)[n % 2]))
        parts += [e.mysql_gtid(n, 10**15 + n), e.payload(*inner) if n % 3 else e.payload(*inner, compression=255)]
        mapped, begin = e.table_map(5, "orders", TYPES, METADATA), e.mariadb_gtid(n)
        kind = (EventType.WRITE_ROWS_V1, WRITE)[n % 2]
        parts += [begin, e.compressed_query("SAVEPOINT `x`"), mapped, e.compressed_rows(kind, 5, 2, row(n)), e.xid()]
    return parts


@pytest.mark.parametrize("piece_bytes", [3000, 10000, 1 << 24])
def test_many_at_once_and_one_by_one_come_to_the_same(monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    given = made(*many())
    fast = list(index_pieces(given, piece_bytes=piece_bytes))
    monkeypatch.setattr("tidegate.binlog.index.expand._expand_batch", lambda *_: False)
    slow = list(index_pieces(given, piece_bytes=piece_bytes))
    assert (len(fast) > 1) == (len(slow) > 1) == (piece_bytes < 1 << 24)
    joined = [np.concatenate([piece.data for piece in pieces]).tobytes() for pieces in (fast, slow)]
    assert joined[0] == joined[1]
    for word in (K.ORIGIN, K.COMMIT_TS, K.BITS, K.TYPE, K.SIZE):
        both = [[n for piece in pieces for n in piece.events[:, word].tolist()] for pieces in (fast, slow)]
        assert both[0] == both[1]


def test_a_broken_event_among_many_is_the_one_that_is_named() -> None:
    good = many()
    broken = [GTID, e.payload(*INNER, *INNER)]
    with pytest.raises(StreamCorrupt, match="transaction") as caught:
        decode_segment(made(*good, *broken, *good), VERSIONS, WINDOWS)
    assert f"binlog.000042:{4 + sum(map(len, good)) + len(GTID)}: " in str(caught.value)
    packed = bytearray(e.payload(*INNER))
    packed[-8] ^= 0xFF
    with pytest.raises(StreamCorrupt) as caught:
        decode_segment(made(*good, GTID, bytes(packed), *good), VERSIONS, WINDOWS)
    assert f"binlog.000042:{4 + sum(map(len, good)) + len(GTID)}: " in str(caught.value)


def test_a_format_without_checksums_needs_none_inside() -> None:
    def plain(whole: bytes) -> bytes:
        return e.bare(whole)

    inner = transaction(*write(row(1), row(2)))
    body = b"".join(map(plain, inner))
    packed = e.pa.Codec("zstd").compress(body, asbytes=True)
    fields = e.fields(compression=0, unpacked=len(body), size=len(packed))
    parts = [
        plain(e.mysql_gtid(1, 10**15)),
        e.event(EventType.TRANSACTION_PAYLOAD, fields + packed, checksum=False),
        plain(e.mariadb_gtid(1)),
        plain(e.table_map(5, "orders", TYPES, METADATA)),
        plain(e.compressed_rows(WRITE, 5, 2, row(3))),
        plain(e.xid()),
    ]
    given = segment(e.format_description(checksum=False), b"".join(parts))
    assert [r["id"] for r in changed_rows(decoded(given))] == [1, 2, 3]


def test_compressed_ddl_is_replayed_like_any_other() -> None:
    create, alter = "CREATE TABLE made (id INT PRIMARY KEY)", "ALTER TABLE made ADD COLUMN a INT"
    parts = [e.mariadb_gtid(1, standalone=True), e.compressed_query(create)]
    parts += [e.mysql_gtid(2, 10**15), e.payload(e.query("BEGIN"), e.query(alter), e.xid())]
    found = ddl_statements(made(*parts))
    ends = [4 + sum(map(len, parts[:2])), 4 + sum(map(len, parts))]
    assert [(one.sql, one.database, one.pos) for one in found] == [(create, "shop", ends[0]), (alter, "shop", ends[1])]


def test_an_unknown_event_in_a_compressed_transaction_stops_unless_it_may_be_ignored() -> None:
    def holding(odd: bytes) -> Segment:
        return made(GTID, e.payload(e.query("BEGIN"), odd, *INNER[1:]))

    assert decoded(holding(e.event(77, b"x", flags=0x80))).ledger.rows == 1
    for odd, said in (
        (e.event(77, b"x"), "event unknown (77)"),
        (e.event(EventType.INCIDENT, b"\x01\x00\x00"), "INCIDENT"),
    ):
        found = decode_segment(holding(odd), VERSIONS, WINDOWS)
        assert {(p.database, p.table) for p in found.problems} == set(WINDOWS)
        assert {(p.error, p.pos, said in p.message) for p in found.problems} == {("UnknownEvent", 4 + len(GTID), True)}
        assert found.changes == ()
        assert found.ledger.quarantined_bytes == len(holding(odd).payload) - len(GTID)
