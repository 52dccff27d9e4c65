"""Ranges of a table's key, and the rest of them.

In:  the ranges of a table, the waves' readings, the refused waves.
Out: the unread part.

A key is a tuple of SQL literals, one per key column, in the server's own form. Keys are only
compared for equal text here, because only the server's collations know their order. That is enough,
since a reader always reads a range from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Keys above `after` up to and including `upto`; None: the first and the last of all."""

    after: Key | None = None
    upto: Key | None = None


WHOLE = Span()


def key_to_text(key: Key | None) -> str | None:
    """JSON."""
    return None if key is None else json.dumps(list(key), ensure_ascii=False)


def key_from_text(text: str | None) -> Key | None:
    return None if text is None else tuple(json.loads(text))


def spans_to_text(spans: Sequence[Span]) -> str:
    """JSON."""
    return json.dumps([[span.after, span.upto] for span in spans], ensure_ascii=False)


def spans_from_text(text: str | None) -> tuple[Span, ...]:
    cells = json.loads(text) if text else []
    return tuple(Span(*(None if key is None else tuple(key) for key in cell)) for cell in cells)


def is_whole(spans: Collection[Span]) -> bool:
    """Whether spans lead from the first key to the last, each from where another one ends. Several
    of one span count as one: a statement's rows may come in several chunks.
    """
    upto = {span.after: span.upto for span in set(spans)}
    if len(upto) != len(set(spans)):
        return False
    at: Key | None = None
    while at in upto:
        at = upto.pop(at)
        if at is None:
            return not upto
    return False


@dataclass(frozen=True, slots=True)
class ReadSpans:
    """The part of a table read by a wave: each span begins where a former one began. refused: it
    doesn't count.
    """

    spans: tuple[Span, ...]
    refused: bool = False


def left_of(ranges: Iterable[Span], waves: Iterable[ReadSpans]) -> tuple[Span, ...]:
    """The spans that are still to be read, in the order in which they arose. waves: in the order of
    their reading.

    If a wave has read a span that isn't left any more (it was read twice), nothing changes.
    """
    left = list(ranges)
    for wave in waves:
        for read in wave.spans:
            at = next((i for i, span in enumerate(left) if span.after == read.after), None)
            if at is None:
                continue
            rest = [] if left[at].upto == read.upto else [Span(read.upto, left[at].upto)]
            left[at : at + 1] = rest
            if wave.refused:
                left.append(read)
    return tuple(left)
