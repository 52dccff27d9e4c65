"""Whose keys a condition means: in any image, under any name of a column, along with the keys they were changed to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.kit.decoding import segment
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.logs import DELETE, UPDATE, WRITE, Dress, described, rows_event, transaction
from tests.unit.binlog.test_without_rows import NAME, WIDE, cell
from tidegate.binlog.format.events import EventType
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.rows.logged_rows import LoggedRows, logged_rows
from tidegate.conditions.condition_text import read_condition
from tidegate.erase.chunk_rows import forging
from tidegate.erase.named_keys import means
from tidegate.erase.subject import Subject
from tidegate.errors import UsageError
from tidegate.segments.crc32c import crc32c

Event = tuple[int, bytes]


def logged(*events: Event) -> list[LoggedRows]:
    dress = Dress()
    rows = [rows_event(op, 9, 2, images, dress, end=True) for op, images in events]
    mapped = [part for row in rows for part in (WIDE.map_event(9, dress), row)]
    whole = segment(described(dress), b"".join(transaction(1, mapped, dress)))
    return [rows for index in index_pieces(whole) for rows in logged_rows(index, NAME, [WIDE.version])]


def keys(where: str, rows: Sequence[LoggedRows]) -> set[tuple[int, ...]]:
    subject = Subject(read_condition(where), WIDE.version)
    for part in rows:
        subject.look(part)
    subject.close()
    return subject.keys


def test_a_key_belongs_to_it_if_any_image_matches() -> None:
    rows = logged(
        (WRITE, cell(1, "bob") + cell(2, "ada")),
        (UPDATE, cell(1, "bob") + cell(1, "ada")),
        (UPDATE, cell(3, "ada") + cell(3, "cy")),
        (DELETE, cell(4, "ada") + cell(5, "dan")),
    )
    assert keys("c1 = 'ada'", rows) == {(1,), (2,), (3,), (4,)}


def test_keys_follow_their_changes_in_both_directions() -> None:
    rows = logged(
        (UPDATE, cell(7, "x") + cell(8, "x")),
        (UPDATE, cell(1, "ada") + cell(7, "x")),
        (UPDATE, cell(20, "y") + cell(21, "y")),
    )
    assert keys("c0 = 1", rows) == keys("c0 = 8", rows) == {(1,), (7,), (8,)}


def test_both_images_of_an_update_go_together() -> None:
    (rows,) = logged((UPDATE, cell(1, "a") + cell(2, "a") + cell(3, "b") + cell(3, "c")))
    subject = Subject(read_condition("c0 = 2"), WIDE.version)
    subject.look(rows)
    spans = rows.spans(subject.is_of(rows))
    assert [len(gone) for gone in spans.values()] == [1]


@pytest.mark.parametrize("where", ["c9 = 1", "c0 = 'a'", "c1 = 1"])
def test_a_condition_that_is_not_about_the_table_is_refused(where: str) -> None:
    with pytest.raises(UsageError):
        Subject(read_condition(where), WIDE.version)


def test_an_image_without_its_key_has_that_of_the_image_before_it() -> None:
    """binlog_row_image = MINIMAL: the before image has the key alone, the one after it what was changed."""
    head = (9).to_bytes(6, "little") + b"\x01\x00" + b"\x02\x00" + e.packed(2) + b"\x01" + b"\x02"
    before, after = b"\0" + (7).to_bytes(4, "little"), b"\0" + b"\x03ada"
    mapped = [WIDE.map_event(9, Dress()), e.event(EventType.UPDATE_ROWS_V2, head + before + after)]
    whole = segment(described(Dress()), b"".join(transaction(1, mapped, Dress())))
    (rows,) = [rows for index in index_pieces(whole) for rows in logged_rows(index, NAME, [WIDE.version])]
    assert keys("c1 = 'ada'", [rows]) == {(7,)}


def test_four_bytes_make_any_checksum() -> None:
    for data in (b"", b"a", bytes(range(256))):
        for wanted in (0, 1, 0xDEADBEEF, 0xFFFFFFFF):
            assert crc32c(data + forging(data, wanted)) == wanted


def test_a_bound_names_a_key_in_each_way_of_writing_it() -> None:
    assert means("4711", 4711)
    assert not means("14711", 4711)
    assert means(f"_utf8mb4 x'{b'ada'.hex()}'", "ada")
    assert not means(f"_utf8mb4 x'{b'bob'.hex()}'", "ada")


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("c0 = 4711", {(4711,)}),
        ("C0 IN (1, 2) OR c0 = 3", {(1,), (2,), (3,)}),
        ("c0 IN (1, 2) AND c0 = 2", {(2,)}),
        ("c0 = 1 AND c0 = 2", set()),
        ("c0 = 1.5", set()),
        ("c0 > 1", None),
        ("c0 = 1 AND c1 = 'ada'", None),
        ("c0 = 1 OR c1 = 'ada'", None),
        ("NOT (c0 = 1)", None),
    ],
)
def test_a_condition_may_say_the_keys_itself(where: str, named: set[tuple[int, ...]] | None) -> None:
    assert Subject(read_condition(where), WIDE.version).named == named
