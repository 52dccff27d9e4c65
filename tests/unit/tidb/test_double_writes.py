"""What TiDB tells twice while a job divides a table anew is taken once; the sequences are those of a TiDB 7.5."""

from __future__ import annotations

import pytest

from tests.kit.tidb import encode
from tidegate.tidb.records.payload import Mutation
from tidegate.tidb.rows.double_writes import told_once

INSERT, UPDATE, DELETE = Mutation.INSERT, Mutation.UPDATE, Mutation.DELETE
ID, V, ROWID = 1, 3, -1


def row(id_: int, v: bytes, rowid: int | None = None) -> dict[int, int | bytes]:
    return {ID: id_, V: v} | ({ROWID: rowid} if rowid is not None else {})


def insert(cells: dict[int, int | bytes]) -> tuple[Mutation, bytes]:
    told = {id_: cell for id_, cell in cells.items() if id_ != ROWID}
    return INSERT, encode.datum(cells.get(ROWID, cells[ID])) + encode.pairs(told)


def update(old: dict[int, int | bytes], new: dict[int, int | bytes]) -> tuple[Mutation, bytes]:
    return UPDATE, encode.pairs(old) + encode.pairs(new)


def delete(cells: dict[int, int | bytes]) -> tuple[Mutation, bytes]:
    return DELETE, encode.pairs(cells)


A, B, OTHER = row(7, b"a"), row(7, b"b"), row(8, b"a")
LOOSE_A, LOOSE_B = row(7, b"a", 50), row(7, b"b", 50)
WITH_VIRTUAL = A | {9: 5}  # a DELETE's image has columns that an UPDATE's hasn't


@pytest.mark.parametrize(
    ("told", "once"),
    [
        ([insert(A), insert(A)], [insert(A)]),
        ([update(A, B), update(A, B)], [update(A, B)]),
        ([delete(A), delete(A), delete(OTHER), delete(OTHER)], [delete(A), delete(OTHER)]),
        ([update(A, B), delete(A)], [update(A, B)]),
        ([update(A, B), delete(WITH_VIRTUAL)], [update(A, B)]),
        ([update(LOOSE_A, LOOSE_B), insert(LOOSE_B | {ROWID: 99}), delete(LOOSE_A)], [update(LOOSE_A, LOOSE_B)]),
        ([update(LOOSE_A, LOOSE_B), delete(LOOSE_A), insert(LOOSE_B | {ROWID: 99})], [update(LOOSE_A, LOOSE_B)]),
        (
            [insert(LOOSE_B | {ROWID: 99}), delete(LOOSE_A), update(LOOSE_A, LOOSE_B), update(OTHER, B)],
            [insert(LOOSE_B | {ROWID: 99}), delete(LOOSE_A), update(OTHER, B)],
        ),
    ],
)
def test_the_second_writing_is_left_out(told: list[tuple[Mutation, bytes]], once: list[tuple[Mutation, bytes]]) -> None:
    assert told_once(told) == once


@pytest.mark.parametrize(
    "told",
    [
        [update(A, B), delete(B)],
        [update(A, B), delete(OTHER)],
        [update(A, A), delete(A)],
        [delete(A), insert(A), delete(A), insert(A)],
        [insert(A), update(A, B), insert(OTHER), delete(B), insert(A)],
        [insert(LOOSE_A), insert(LOOSE_A | {ROWID: 51})],  # nobody can tell it from two rows
        [insert(LOOSE_B | {ROWID: 99}), delete(LOOSE_A), delete(LOOSE_A | {ROWID: 51})],
        [update(A, B), insert(OTHER), delete(A)],
        [delete(A), update(A, B)],  # UPDATE IGNORE left the DELETE of a row that stayed
        [insert(OTHER), delete(LOOSE_A), update(LOOSE_A, LOOSE_B)],
        [(UPDATE, b"\x08\x02\x7f"), (DELETE, b"\x08\x02\x7f")],  # who asks for the table says what is wrong
    ],
)
def test_what_a_transaction_did_is_all_there(told: list[tuple[Mutation, bytes]]) -> None:
    assert told_once(told) == told
