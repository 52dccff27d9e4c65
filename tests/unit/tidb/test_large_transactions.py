"""A transaction that is larger than a piece is read in several: what they say together is what one would."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.kit.tidb import encode
from tests.kit.tidb.described import NAME, TABLE, Col, Rows, segment, table, versions
from tidegate.columnar.decoded import IMAGE_BEFORE
from tidegate.segments.result import CommitSpan, DecodedSegment, Known
from tidegate.tables import OP
from tidegate.tidb.jobs import Tp
from tidegate.tidb.kernel import layout as T  # noqa: N812
from tidegate.tidb.records.payload import BinlogType, Mutation
from tidegate.tidb.rows import decode
from tidegate.tidb.rows.by_row import decode_by_row
from tidegate.tidb.rows.decode import decode_in_pieces
from tidegate.tidb.rows.row_images import row_images
from tidegate.tidb.rows.walk import walk_of

INFO = table([Col(Tp.LONGLONG), Col(Tp.VARCHAR, length=40, charset="utf8mb4"), Col(Tp.LONG)], [0], Rows.BY_NUMBER)
ANSWERS = Known(answers={100: 200, 101: 201})
SPANS = {NAME: CommitSpan(20, 2000)}


def changes(draw: random.Random, count: int) -> Iterable[tuple[Mutation, bytes]]:
    """Of few keys, so that most rows come several times."""
    for _ in range(count):
        key, word = draw.randrange(8), None if draw.random() < 0.3 else f"w{draw.random()}"[: draw.randint(1, 40)]
        cells: dict[int, Any] = {1: key, 2: word and word.encode(), 3: draw.randrange(99)}
        match draw.choice(list(Mutation)):
            case Mutation.INSERT:
                del cells[1]
                yield Mutation.INSERT, encode.datum(key) + encode.pairs(cells)
            case Mutation.UPDATE:
                before = {**cells, 3: 1}
                yield Mutation.UPDATE, encode.pairs(before) + encode.pairs(cells)
            case _:
                yield Mutation.DELETE, encode.pairs(cells)


def rows_of(parts: Iterable[DecodedSegment]) -> tuple[list[list[dict[str, Any]]], list[int]]:
    """The rows of each batch, and the bytes of all ledgers."""
    batches, sums = [], [0, 0, 0, 0]
    for part in parts:
        assert not part.problems
        batches += [change.batch.to_pylist() for change in part.changes]
        one = part.ledger
        told = (one.payload_bytes, one.decoded_bytes, one.quarantined_bytes, one.rows)
        sums = [have + more for have, more in zip(sums, told, strict=True)]
    return batches, sums


def joined(batches: Iterable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch]


@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_a_transaction_say_what_it_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    payloads = []
    for start_ts, count in ((100, 300), (101, 5)):
        value = encode.mutations(TABLE, *changes(draw, count))
        payloads.append(encode.binlog(BinlogType.PREWRITE, start_ts, value=value, key=b"k"))
    one, mine = segment(*payloads), {NAME: versions(INFO)}
    whole, ledger = rows_of(decode_in_pieces(one, mine, SPANS, known=ANSWERS))
    images = [image.batch.to_pylist() for image in row_images(one, mine, SPANS, known=ANSWERS)]
    monkeypatch.setattr(decode, "TIDB_PIECE_BYTES", draw.choice((1, 200, 1000)))
    monkeypatch.setattr(decode, "TIDB_PIECE_CELLS_BYTES", draw.choice((1, 8 * 3 * 20)))
    pieces, again = rows_of(decode_in_pieces(one, mine, SPANS, known=ANSWERS))
    assert len(pieces) > 10
    assert max(len(rows) for rows in pieces) <= 2 * 20
    assert (again, joined(pieces)) == (ledger, joined(whole))
    assert joined(rows_of(decode_by_row(one, mine, SPANS, known=ANSWERS))[0]) == joined(whole)
    logged = list(row_images(one, mine, SPANS, known=ANSWERS))
    assert joined(image.batch.to_pylist() for image in logged) == joined(images)
    assert len(logged) > 10
    assert any(row[OP] == IMAGE_BEFORE for image in logged for row in image.batch.to_pylist())
    walk = walk_of(one.payload)
    assert walk is not None
    assert {place for image in logged for place in image.positions.tolist()} == {
        one.start_pos + int(at) for at in walk.payloads[:, T.AT]
    }
