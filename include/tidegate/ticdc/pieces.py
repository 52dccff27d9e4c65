"""A segment's payload: runs of whole lines of data files, and whole schema files, one after the other.

In:  pieces and how their files are written; or a segment.
Out: the segment's context (JSON) with the facts of each piece; or the pieces with their bytes.

A piece's bytes are those of the file from `offset` on. Every segment has the changefeed's settings
for its files, so captured bytes are still read correctly after a change of the pipeline file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from tidegate.config import BinaryEncoding, Csv, Protocol, TicdcSource
from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.segments.segment import Segment


@dataclass(frozen=True, slots=True)
class Form:
    """How a changefeed writes; the fields are those of TicdcSource."""

    protocol: Protocol
    time_zone: str
    all_rows: bool
    csv: Csv

    @classmethod
    def of(cls, source: TicdcSource) -> Self:
        return cls(source.protocol, source.time_zone, source.all_rows, source.csv)


@dataclass(frozen=True, slots=True)
class Piece:
    """path: of the file, below the changefeed's. schema: whether it is a schema file. found: a
    schema file without a DDL: the table is older than the changefeed.
    """

    path: str
    offset: int
    length: int
    database: str
    table: str
    schema: bool = False
    found: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return self.database, self.table


@dataclass(frozen=True, slots=True)
class Placed:
    """A piece and its bytes; at: where it begins in the payload."""

    piece: Piece
    data: bytes
    at: int


def context_of(form: Form, pieces: Sequence[Piece]) -> bytes:
    said = {
        "protocol": str(form.protocol),
        "time_zone": form.time_zone,
        "all_rows": form.all_rows,
        "csv": form.csv.model_dump(mode="json"),
        "pieces": [asdict(piece) for piece in pieces],
    }
    return json.dumps(said, ensure_ascii=False).encode()


def form_of(segment: Segment) -> Form:
    """Raises StreamCorrupt."""
    said = _said(segment)
    csv = dict(said["csv"])
    csv["binary_encoding"] = BinaryEncoding(csv["binary_encoding"])
    return Form(Protocol(said["protocol"]), said["time_zone"], said["all_rows"], Csv(**csv))


def pieces_of(segment: Segment) -> Iterator[Placed]:
    """Raises StreamCorrupt."""
    payload, at = memoryview(segment.payload), 0
    for cells in _said(segment)["pieces"]:
        piece = Piece(**cells)
        if not 0 < piece.length <= len(payload) - at:
            raise StreamCorrupt(f"piece {piece.path} is cut off", where=segment.where, remedy=REPORT)
        yield Placed(piece, bytes(payload[at : at + piece.length]), at)
        at += piece.length
    if at != len(payload):
        raise StreamCorrupt("bytes of no file stand at its end", where=segment.where, remedy=REPORT)


def _said(segment: Segment) -> dict[str, Any]:
    try:
        context: dict[str, Any] = json.loads(bytes(segment.context))
    except ValueError as error:
        raise StreamCorrupt("its context can't be read", where=segment.where, remedy=REPORT) from error
    return context
