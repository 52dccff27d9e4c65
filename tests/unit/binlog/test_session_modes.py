"""Rows of a session whose mode changed virtual columns, wherever the transaction's beginning stands."""

from __future__ import annotations

import dataclasses

import pytest

from tests.kit.decoding import ALL_TIME, decode_both, segment, version
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.rows.batch import decode_batch
from tidegate.binlog.rows.decode import decode_indexes
from tidegate.binlog.rows.session_modes import _dates_of_texts
from tidegate.schema.ddl.tokens import PAD_CHAR_TO_FULL_LENGTH
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.segments.result import DecodedSegment
from tidegate.segments.segment import Segment

NAME = ("shop", "t")
FLAGS = b"\x00" + bytes(4)  # MySQL writes them before the mode
CHAR = Column(2, "c", "char(5)", charset="latin1")
TEXT = "varchar(20)"
SHOWN = Column(3, "v", TEXT, charset="latin1", generated=Generated.VIRTUAL, generation_expression="concat(`c`)")


def begin(sql_mode: int) -> bytes:
    """As MySQL logs it."""
    plain = e.query("BEGIN", sql_mode=sql_mode)
    size = int.from_bytes(plain[30:32], "little") + len(FLAGS)
    return e.event(EventType.QUERY, plain[19:30] + size.to_bytes(2, "little") + FLAGS + plain[32:-4])


def rows(number: int) -> list[bytes]:
    image = e.image(e.integer(number), e.short_text("a"), e.short_text("a"))
    mapped = e.table_map(5, "t", b"\x03\xfe\x0f", b"\xfe\x05\x14\x00")
    return [mapped, e.rows(EventType.WRITE_ROWS_V2, 5, 3, image)]


def transaction(number: int, sql_mode: int) -> list[bytes]:
    return [e.mysql_gtid(number, 10**15 + 10**6 * number), begin(sql_mode), *rows(number), e.xid()]


def versions(shown: Column = SHOWN) -> dict[tuple[str, str], list[TableVersion]]:
    return {NAME: [version(*NAME, [Column(1, "id", "int", nullable=False), CHAR, shown], ["id"])]}


def made(*events: bytes, context: bytes = b"", server: str = "9.7.4") -> Segment:
    return segment(e.format_description(version=server) + context, b"".join(events))


def decoded(given: Segment, shown: Column = SHOWN, left_out: frozenset[str] = frozenset()) -> DecodedSegment:
    return decode_both(given, versions(shown), {NAME: dataclasses.replace(ALL_TIME, left_out=left_out)})


PADDED = PAD_CHAR_TO_FULL_LENGTH | 1


@pytest.mark.parametrize(
    ("modes", "held"), [((0, 1, 1 << 30), False), ((0, PADDED, 0), True), ((PADDED,), True), ((0, PADDED), True)]
)
def test_one_transaction_of_such_a_session_holds_the_table(modes: tuple[int, ...], *, held: bool) -> None:
    events = [event for number, mode in enumerate(modes, 1) for event in transaction(number, mode)]
    found = decoded(made(*events))
    assert ["virtual column v reads a CHAR column" in problem.message for problem in found.problems] == [True] * held
    assert found.ledger.rows == (0 if held else len(modes))


CUT = 1 << 32 | 1


@pytest.mark.parametrize(("mode", "held"), [(CUT, True), (PADDED, False), (0, False)])
def test_a_virtual_moment_that_was_cut_holds_the_table(mode: int, *, held: bool) -> None:
    made_of = dataclasses.replace(SHOWN, generation_expression="cast(`id` as datetime)")
    found = decoded(made(*transaction(1, mode)), made_of)
    assert ["virtual column v makes a moment" in problem.message for problem in found.problems] == [True] * held
    assert len(decoded(made(*transaction(1, mode))).problems) == (mode == PADDED)


INVALID_DATES, NO_ZERO, STRICT, NO_BACKSLASH = 1 << 25, 3 << 23, 1 << 21, 1 << 20


@pytest.mark.parametrize(
    ("mode", "expression", "held"),
    [
        (INVALID_DATES, "year(`c`)", True),
        (INVALID_DATES | STRICT, "cast(`c` as date)", True),
        (NO_ZERO, "to_days(`c`)", True),
        (NO_ZERO | STRICT, "to_days(`c`)", False),
        (NO_ZERO | INVALID_DATES, "concat(`c`,'-')", False),
        (NO_BACKSLASH, "(`c` like 'a\\\\_b')", True),
        (NO_BACKSLASH, "year(`c`)", False),
    ],
)
def test_dates_and_patterns_of_a_session(mode: int, expression: str, *, held: bool) -> None:
    shown = dataclasses.replace(SHOWN, generation_expression=expression)
    assert len(decoded(made(*transaction(1, mode)), shown).problems) == held


def test_a_date_of_a_column_of_dates_is_as_logged() -> None:
    dates = dataclasses.replace(CHAR, type="date", charset="")
    shown = dataclasses.replace(SHOWN, generation_expression="year(`c`)")
    assert not _dates_of_texts((dates, shown))
    assert _dates_of_texts((CHAR, shown))


def test_a_column_that_reads_no_char_or_is_stored_or_left_out_is_as_logged() -> None:
    given = made(*transaction(1, PADDED))
    for shown in (
        dataclasses.replace(SHOWN, generation_expression="concat(`id`)"),
        dataclasses.replace(SHOWN, generated=Generated.STORED),
    ):
        assert decoded(given, shown).ledger.rows == 1
    assert decoded(given, left_out=frozenset({"v"})).ledger.rows == 1


@pytest.mark.parametrize("mode", [0, PADDED])
def test_a_transaction_that_began_in_an_earlier_segment(mode: int) -> None:
    opened = b"".join(transaction(1, mode)[:2])
    assert len(decoded(made(*rows(1), e.xid(), context=opened)).problems) == bool(mode)
    # What came before says nothing of a transaction that begins here.
    later = decoded(made(e.xid(), *transaction(2, 0), context=opened))
    assert (len(later.problems), later.ledger.rows) == (0, 1)


@pytest.mark.parametrize("mode", [0, PADDED])
def test_a_compressed_transaction_in_several_pieces(mode: int) -> None:
    gtid, *inner = transaction(1, mode)
    many = [event for number in range(2, 200) for event in rows(number)]
    indexes = list(index_pieces(made(gtid, e.payload(*inner[:-1], *many, inner[-1])), piece_bytes=3000))
    assert len(indexes) > 3
    for late in indexes[1:]:  # each alone: it knows from the index how its transaction began
        (found,) = decode_indexes([late], versions(), {NAME: ALL_TIME}, decode_batch)
        assert len(found.problems) == bool(mode)
        assert (found.ledger.rows == 0) == bool(mode)
