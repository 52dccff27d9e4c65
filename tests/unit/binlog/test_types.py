"""Values that no server writes on demand: refused dates, impossible clocks, compressed values that lie."""

from __future__ import annotations

import struct
import zlib

import pytest

from tests.kit.decoding import ALL_TIME, changed_rows, decode_both, segment, version
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.binlog.rows.decode_plan import make_plan
from tidegate.columnar.column_compression import inflate
from tidegate.errors import DecodeError, SchemaMismatch
from tidegate.schema.model.columns import Column
from tidegate.schema.model.types import COMPRESSED, ZeroDates, parse_type
from tidegate.segments.result import CommitSpan, DecodedSegment

NAME = ("shop", "t")


def decoded(
    kind: str, code: bytes, metadata: bytes, *values: bytes | None, key: bool = False, window: CommitSpan = ALL_TIME
) -> DecodedSegment:
    """Rows of one column."""
    columns = [Column(1, "c", kind, charset="latin1" if "char" in kind else "")]
    images = b"".join(e.image(value) for value in values)
    events = e.table_map(5, "t", code, metadata) + e.rows(EventType.WRITE_ROWS_V1, 5, 1, images)
    made = segment(e.format_description(), e.mariadb_gtid(1) + events + e.xid(1))
    return decode_both(made, {NAME: [version(*NAME, columns, ["c"] if key else ())]}, {NAME: window})


def datetime2(months: int, day: int, clock: int = 0) -> bytes:
    return ((1 << 39) + (months << 22) + (day << 17) + clock).to_bytes(5, "big")


DATES = [
    ("date", b"\x0a", b"", (0).to_bytes(3, "little"), "0000-00-00"),
    ("date", b"\x0a", b"", (2024 << 9 | 2 << 5 | 31).to_bytes(3, "little"), "2024-02-31"),
    ("datetime", b"\x12", b"\x00", datetime2(2024 * 13 + 2, 0), "2024-02-00"),
    ("datetime", b"\x0c", b"", struct.pack("<q", 20240231112233), "2024-02-31"),
    ("timestamp", b"\x11", b"\x00", bytes(4), "0000-00-00"),
    ("timestamp", b"\x07", b"", bytes(4), "0000-00-00"),
    ("datetime(3)", b"\x0c", b"", bytes(7), "0000-00-00"),
]


@pytest.mark.parametrize(("kind", "code", "metadata", "value", "text"), DATES)
def test_a_date_that_no_calendar_has_is_null_and_counted_but_an_error_in_a_key(
    kind: str, code: bytes, metadata: bytes, value: bytes, text: str
) -> None:
    found = decoded(kind, code, metadata, value, None)
    assert [row["c"] for row in changed_rows(found)] == [None, None]
    assert found.ledger.null_dates == 1
    found = decoded(kind, code, metadata, value, window=CommitSpan(0, 1 << 62, ZeroDates.ERROR))
    assert "column c holds a date that no calendar has (zero_dates: error)" in found.problems[0].message
    assert text not in found.problems[0].message, "it may be nobody's to see"
    assert (found.ledger.null_dates, found.changes) == (0, ())
    found = decoded(kind, code, metadata, value, key=True)
    assert f"column c of the key holds {text}" in found.problems[0].message


def test_zero_dates_error_is_planned_for_every_column() -> None:
    body = e.table_map(5, "t", b"\x0a", b"")[19 + 8 : -4]
    columns = version(*NAME, [Column(1, "c", "date")])
    assert make_plan(body, columns).words[-1] == 0
    assert make_plan(body, columns, ZeroDates.ERROR).words[-1] == 1


CLOCKS = [
    ("datetime", b"\x12", b"\x00", datetime2(2024 * 13 + 2, 1, 24 << 12)),
    ("datetime", b"\x12", b"\x00", datetime2(2024 * 13 + 2, 1, 60 << 6)),
    ("datetime", b"\x12", b"\x00", datetime2(2024 * 13 + 2, 1, 60)),
    ("datetime", b"\x12", b"\x00", bytes(5)),
    ("datetime", b"\x12", b"\x00", b"\xff" * 5),
    ("datetime(6)", b"\x12", b"\x06", datetime2(2024 * 13 + 2, 1) + (1_000_000).to_bytes(3, "big")),
    ("datetime", b"\x0c", b"", struct.pack("<q", 20240228240000)),
    ("datetime", b"\x0c", b"", struct.pack("<q", -1)),
    ("datetime(6)", b"\x0c", b"", b"\xff" * 8),
    ("datetime(1)", b"\x0c", b"", b"\xff" * 6),
    ("date", b"\x0a", b"", b"\xff\xff\xff"),
    ("timestamp(6)", b"\x11", b"\x06", b"\x01\x02\x03\x04\xff\xff\xff"),
    ("time", b"\x13", b"\x00", (0x800000 + (839 << 12)).to_bytes(3, "big")),
    ("time", b"\x0b", b"", (8390000).to_bytes(3, "little")),
    ("time", b"\x0b", b"", (126000).to_bytes(3, "little")),
    ("time(2)", b"\x0b", b"", b"\xff" * 4),
    ("geometry", b"\xff", b"\x04", b"\x08\0\0\0" + bytes(8)),
    ("geometry", b"\xff", b"\x04", b"\x09\0\0\0" + bytes(9)),
]


@pytest.mark.parametrize(("kind", "code", "metadata", "value"), CLOCKS)
def test_bytes_that_no_server_writes_stop_the_table(kind: str, code: bytes, metadata: bytes, value: bytes) -> None:
    (problem,) = decoded(kind, code, metadata, value).problems
    assert problem.error == "DecodeError"
    assert "column c holds bytes that no server writes" in problem.message


def squeezed(value: bytes, *, raw: bool = True, announced: int | None = None) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15 if raw else 15)
    length = len(value) if announced is None else announced
    return bytes([0x82 | (8 if raw else 0)]) + length.to_bytes(2, "big") + stream.compress(value) + stream.flush()


def test_a_compressed_value_is_what_its_header_says() -> None:
    assert inflate(b"", 10) == b""
    assert inflate(b"\x00", 10) == b""
    assert inflate(b"\x00abc", 10) == b"abc"
    assert inflate(squeezed(b"a" * 300), 300) == b"a" * 300
    assert inflate(squeezed(b"a" * 300, raw=False), 300) == b"a" * 300


LIES = [
    (squeezed(b"a" * 300), 299, "300 bytes of 299"),
    (squeezed(b"a" * 300, announced=299), 300, "doesn't hold the 299"),
    (squeezed(b"a" * 300, announced=301), 301, "doesn't hold the 301"),
    (squeezed(b"a" * 300)[:-2], 300, "doesn't hold the 300"),
    (squeezed(b"a" * 300, raw=False)[:1] + b"\x00\x05\xff\xff", 300, "can't be opened"),
    (b"\x70abc", 300, "method 7"),
    (b"\x87\x00", 300, "bytes of 300"),
]


@pytest.mark.parametrize(("value", "most", "told"), LIES)
def test_a_compressed_value_that_lies_is_refused(value: bytes, most: int, told: str) -> None:
    with pytest.raises(DecodeError, match=told):
        inflate(value, most)


def test_a_compressed_column_is_known_by_its_wire_type() -> None:
    found = decoded("varchar(10)" + COMPRESSED, b"\x8d", b"\x0b\x00", b"\x03\x00ab", b"\x00", None)
    assert [row["c"] for row in changed_rows(found)] == ["ab", "", None]
    for kind, code, metadata in (
        ("varchar(10)", b"\x8d", b"\x0b\x00"),
        ("varchar(10)" + COMPRESSED, b"\x0f", b"\x0a\x00"),
    ):
        assert decoded(kind, code, metadata, b"\x00").problems[0].error == SchemaMismatch.__name__


def test_the_attribute_is_read_as_the_server_shows_it() -> None:
    assert parse_type("varchar(10) /*M!100301 COMPRESSED*/").compressed
    assert not parse_type("varchar(10)").compressed


def full(columns: list[Column], code: bytes, metadata: bytes, *fields: tuple[int, bytes]) -> None:
    """Plan a TABLE_MAP with optional metadata."""
    optional = b"".join(bytes([kind, len(value)]) + value for kind, value in fields)
    body = e.table_map(5, "t", code, metadata)[19 + 8 : -4] + optional
    make_plan(body, version(*NAME, columns))


VECTOR, POINT = [Column(1, "v", "vector(3)")], [Column(1, "g", "point")]


def test_subtypes_and_dimensions_are_compared_with_schema_history() -> None:
    full(VECTOR, b"\xf2", b"\x04", (13, b"\x03"))
    full(POINT, b"\xff", b"\x04", (7, b"\x01"))
    with pytest.raises(SchemaMismatch, match="v has 4 dimensions"):
        full(VECTOR, b"\xf2", b"\x04", (13, b"\x04"))
    with pytest.raises(SchemaMismatch, match="g is geometry type 3"):
        full(POINT, b"\xff", b"\x04", (7, b"\x03"))


def test_a_field_that_is_not_known_is_stepped_over_by_its_length() -> None:
    full(VECTOR, b"\xf2", b"\x04", (99, b"whatever"), (13, b"\x03"))


MISREAD = [(13, b"\x03\x04"), (7, b"\x01"), (4, b"\x01v\x01w"), (1, b"\x80"), (12, b"\x80\x80"), (3, b"\x3f\x3f")]


@pytest.mark.parametrize("field", MISREAD)
def test_a_field_that_speaks_of_more_columns_than_there_are_is_refused(field: tuple[int, bytes]) -> None:
    with pytest.raises(DecodeError, match="TABLE_MAP"):
        full(VECTOR, b"\xf2", b"\x04", field)
