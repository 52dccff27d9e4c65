"""Rows taken out of a segment: what is left decodes to the other rows, at the places where they were.

In:  logs made by hand in every dress, compressed or not; any choice of their rows.
Out: the same rows without the chosen ones, by our decoder and by mysql-replication; the same places; no byte of a
     chosen row's marker; a second time nothing changes.

Logs of real servers, XA and images without some columns: the golden logs below.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.decoding import ALL_TIME, segment
from tests.support import third_opinion
from tests.support.seeds import many
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.encoding.types import wire_type
from tests.unit.binlog.logs import DELETE, UPDATE, WRITE, Dress, Table, described, rows_event, transaction
from tidegate import tables
from tidegate.binlog.format.events import CHECKSUM_BYTES, EventType
from tidegate.binlog.index.event_index import EventIndex, index_pieces
from tidegate.binlog.kernel import index as K  # noqa: N812
from tidegate.binlog.rows.decode import decode_segment
from tidegate.binlog.rows.logged_rows import Span, logged_rows
from tidegate.binlog.rows.row_images import row_images
from tidegate.binlog.rows.without_rows import without_rows
from tidegate.errors import UnsupportedValue
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment

NAME = ("shop", "t")
WIDE = Table("t", (wire_type("int"), wire_type("varchar(60)", "utf8mb4")), (0,))
DRESSES = {
    "v1": Dress(),
    "v2": Dress(version=2, mysql=True),
    "v2 with extra data": Dress(version=2, extra=b"\x01\x00\x07", mysql=True),
    "no checksum": Dress(checksum=False),
}


def cell(number: int, text: str) -> bytes:
    raw = text.encode()
    return b"\0" + struct.pack("<i", number) + bytes([len(raw)]) + raw


def log_of(rows: Sequence[tuple[int, list[tuple[int, str]]]], dress: Dress, packing: str) -> Segment:
    """rows: per event its operation and its (key, text); an update's after image has the text in capitals."""
    events = [WIDE.map_event(9, dress)]
    for at, (op, cells) in enumerate(rows):
        images = b"".join(cell(key, text) + (cell(key, text.upper()) if op == UPDATE else b"") for key, text in cells)
        event = rows_event(op, 9, 2, images, dress, end=at + 1 == len(rows))
        if packing == "rows":
            front = len(event) - CHECKSUM_BYTES - len(images)
            code = event[4] + (143 if event[4] < EventType.WRITE_ROWS_V2 else 139)
            event = e.event(code, event[19:front] + e.deflated(images))
        events.append(event)
    whole = transaction(1, events, dress)
    if packing == "transaction":
        whole = [whole[0], e.payload(*whole[1:])]
    return segment(described(dress), b"".join(whole))


def marked(index: EventIndex, keys: set[int]) -> dict[int, list[Span]]:
    spans: dict[int, list[Span]] = {}
    for rows in logged_rows(index, NAME, [WIDE.version]):
        goes = np.isin(rows.images.rows.column("c0").to_numpy(), list(keys))
        spans |= rows.spans(goes)
    return spans


def images(of: Segment) -> list[tuple[int, int, str]]:
    """(kind, key, text) of every image, in the order of the log."""
    found: list[tuple[int, int, int, str]] = []
    for part in row_images(of, {NAME: [WIDE.version]}, {NAME: ALL_TIME}):
        for at, row in zip(part.ordinals.tolist(), part.images.rows.to_pylist(), strict=True):
            found.append((at, row[tables.OP], row["c0"], row["c1"]))
    return [row[1:] for row in sorted(found)]


def events_of(of: Segment) -> Iterator[bytes]:
    at = 0
    while at < len(of.payload):
        size = int.from_bytes(of.payload[at + 9 : at + 13], "little")
        yield bytes(of.payload[at : at + size])
        at += size


TEXT_MIN = 8  # characters; a shorter row may leave too few bytes free for the segment's CRC-32C
TEXTS = st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=40)
ROWS = st.lists(
    st.tuples(
        st.sampled_from([WRITE, UPDATE, DELETE]), st.lists(st.tuples(st.integers(1, 6), TEXTS), min_size=1, max_size=6)
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=many(80, 3000), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, keys=st.sets(st.integers(1, 6), max_size=4), dress=st.sampled_from(sorted(DRESSES)))
def test_plain_events_lose_the_chosen_rows_and_nothing_else(
    rows: list[tuple[int, list[tuple[int, str]]]], keys: set[int], dress: str
) -> None:
    before = log_of(rows, DRESSES[dress], "")
    try:
        after = without_rows(before, lambda index: marked(index, keys))
    except UnsupportedValue:
        shortest = min(len(text) for _, cells in rows for key, text in cells if key in keys)
        assert shortest < TEXT_MIN
        return
    assert len(after.payload) == len(before.payload)
    assert images(after) == [row for row in images(before) if row[1] not in keys]
    decoded = decode_segment(after, {NAME: [WIDE.version]}, {NAME: ALL_TIME})
    assert not decoded.problems
    assert without_rows(after, lambda index: marked(index, keys)) is after
    after.verify()
    if DRESSES[dress].checksum and not DRESSES[dress].extra:  # mysql-replication reads one tag of extra data at most
        assert all(zlib.crc32(one[:-4]) == int.from_bytes(one[-4:], "little") for one in events_of(after))
        flavour = "mysql" if DRESSES[dress].mysql else "mariadb"
        left = [row for _, row in third_opinion.rows_of(list(events_of(after)), flavour=flavour)]
        assert [row.get("values", row.get("before_values"))["c0"] for row in left] == [
            key for _, cells in rows for key, _ in cells if key not in keys
        ]


@settings(max_examples=many(60, 2000), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, keys=st.sets(st.integers(1, 6), max_size=4), packing=st.sampled_from(["rows", "transaction"]))
def test_compressed_events_lose_the_chosen_rows_or_are_refused(
    rows: list[tuple[int, list[tuple[int, str]]]], keys: set[int], packing: str
) -> None:
    dress = Dress(version=2, mysql=True) if packing == "transaction" else Dress()
    before = log_of(rows, dress, packing)
    try:
        after = without_rows(before, lambda index: marked(index, keys))
    except UnsupportedValue:
        return
    assert len(after.payload) == len(before.payload)
    assert images(after) == [row for row in images(before) if row[1] not in keys]
    assert without_rows(after, lambda index: marked(index, keys)) is after
    after.verify()


@pytest.mark.parametrize("packing", ["rows", "transaction"])
def test_a_large_compressed_event_has_room(packing: str) -> None:
    dress = Dress(version=2, mysql=True) if packing == "transaction" else Dress()
    rows = [(WRITE, [(key, f"row {key} of many {key * 7919 % 1009}") for key in range(1, 400)])]
    before = log_of(rows, dress, packing)
    for key in (1, 200, 399):
        after = without_rows(before, lambda index, key=key: marked(index, {key}))
        after.verify()
        assert after.payload_crc32c == before.payload_crc32c
        assert images(after) == [row for row in images(before) if row[1] != key]


def test_places_of_what_stands_behind_stay() -> None:
    dress = Dress()
    first = log_of([(WRITE, [(1, "ada of some street"), (2, "bob")])], dress, "")
    second = transaction(2, [WIDE.map_event(9, dress), rows_event(WRITE, 9, 2, cell(3, "cy"), dress, end=True)], dress)
    whole = bytes(first.payload) + b"".join(second)
    before = replace(first, payload=whole, payload_crc32c=crc32c(whole))
    after = without_rows(before, lambda index: marked(index, {1}))
    last = [int(index.events[-1, K.OFFSET]) for one in (before, after) for index in index_pieces(one)]
    assert last[0] == last[1]
    assert after.payload_crc32c == before.payload_crc32c == crc32c(after.payload)  # capture compares it with the server
    assert b"ada" not in bytes(after.payload)


@pytest.mark.parametrize("kind", [EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS])
def test_the_text_of_the_statement_becomes_blanks(kind: EventType) -> None:
    dress = Dress()
    text = b"INSERT INTO t VALUES (1, 'ada')"
    body = bytes([len(text)]) + text if kind == EventType.ROWS_QUERY else text
    rows = [WIDE.map_event(9, dress), rows_event(WRITE, 9, 2, cell(1, "ada"), dress, end=True)]
    before = segment(described(dress), b"".join(transaction(1, [e.event(kind, body), *rows], dress)))
    after = without_rows(before, lambda index: marked(index, {1}))
    assert b"ada" not in bytes(after.payload)
    assert images(after) == []
