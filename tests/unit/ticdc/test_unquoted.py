"""What stands in a changefeed's CSV without quotes: looked at in blocks of any size, as byte by byte."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tidegate.config import Csv, Protocol
from tidegate.errors import StreamCorrupt
from tidegate.ticdc import rows
from tidegate.ticdc.pieces import Form

WANTED = rows.WantedColumns(Form(Protocol.CSV, "UTC", True, Csv()), ["a", "b"], ["a"], False)
GOOD = ('"x"', '"a""b"', '"1,\n2"', '""', "\\N", "true", "false", "-1.5", "+7", ".5", "2024")
BAD = ("", "NULL", "null", "\\M", "fals", "x", "tru")


def cells(text: str) -> Iterator[str]:
    cell, quoted = "", False
    for character in text:
        quoted ^= character == '"'
        if not quoted and character in ",\n":
            yield cell
            cell = ""
        else:
            cell += character


def is_good(cell: str) -> bool:
    return cell[:1] in {*'"+-.0123456789'} - {""} or cell in ("\\N", "true", "false")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 18])
def test_only_numbers_nulls_and_truths_stand_without_quotes(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_BLOCK_BYTES", size)
    draw, outcomes = random.Random(size), set[bool]()
    for _ in range(300):
        lines = [['"I"', *(draw.choice(GOOD) for _ in range(3))] for _ in range(draw.randrange(1, 6))]
        if draw.random() < 0.5:
            draw.choice(lines)[draw.randrange(1, 4)] = draw.choice(BAD)
        text = "".join(",".join(line) + "\n" for line in lines)
        good = all(map(is_good, cells(text)))
        outcomes.add(good)
        if good:
            rows._check_unquoted(text.encode(), WANTED)
        else:
            with pytest.raises(StreamCorrupt, match="without quotes"):
                rows._check_unquoted(text.encode(), WANTED)
    assert outcomes == {True, False}
