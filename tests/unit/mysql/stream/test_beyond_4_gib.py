"""A binlog file larger than 4 GiB: event headers wrap, positions don't, and a restart finds its way on.

A file grows so large when one transaction does. Real events are moved to where such a file has them.
"""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tidegate.binlog.format.events import EventFlag, EventType
from tidegate.config import DumpMode, Flavour, parse
from tidegate.errors import PositionLost, StreamCorrupt
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.start.position import dump_request
from tidegate.mysql.stream.cutter import Cutter
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.mysql.stream.dump_stream import command
from tidegate.mysql.stream.place import BinlogCheckpoint, beginning
from tidegate.position import Position

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "mariadb114_dml" / "events.binlog"
FILE, GIB_4 = "binlog.000007", 1 << 32
_WHERE = struct.Struct("<I")


def events() -> list[bytes]:
    data, found, at = GOLDEN.read_bytes(), [], 4
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        found.append(data[at : at + size])
        at += size
    return found


def moved(event: bytes, end: int, *, flags: int = 0) -> bytes:
    """The event with another end position in its header, and its checksum made right again."""
    changed = bytearray(event)
    changed[13:17] = _WHERE.pack(end & 0xFFFFFFFF)
    changed[17] |= flags
    return bytes(changed[:-4]) + _WHERE.pack(zlib.crc32(changed[:-4]))


def received(parts: list[bytes]) -> Any:
    """A stream that has these events in its buffer."""
    packets = b"".join(len(part + b"\0").to_bytes(3, "little") + b"\0\0" + part for part in parts)
    return SimpleNamespace(received=np.frombuffer(packets + bytes(1024), np.uint8).copy()), len(packets)


def cutter_at(checkpoint: BinlogCheckpoint) -> Cutter:
    settings = CutterSettings("one", Flavour.MARIADB, DumpMode.POSITION, 4096, lambda *_: [])
    return Cutter(settings, checkpoint, 1, "")


def stream_from(start: int, *, wrong_by: int = 0) -> tuple[list[bytes], int]:
    """What the server sends from a position on, and where that ends."""
    first, *rest = events()
    sent, at = [moved(first, 0, flags=EventFlag.ARTIFICIAL)], start
    for event in rest:
        if event[4] in (EventType.ROTATE, EventType.STOP):
            break
        at += len(event)
        sent.append(moved(event, at + wrong_by))
    return sent, at


def test_positions_go_on_beyond_4_gib_where_those_in_headers_begin_anew() -> None:
    for start in (GIB_4 - 1000, GIB_4 - 1, GIB_4, GIB_4 + 5, 3 * GIB_4 - 700):
        cutter = cutter_at(beginning(file=FILE, offset=start))
        sent, end = stream_from(start)
        stream, cutter.state["have"] = received(sent)
        segments = [*cutter.advance(stream), *cutter.cut_now()]
        assert segments[0].start_pos == start
        assert segments[-1].end_pos == end
        assert all(before.end_pos == after.start_pos for before, after in pairwise(segments))
        assert b"".join(bytes(segment.payload) for segment in segments) == b"".join(sent[1:])


def test_an_event_at_a_wrong_position_is_found_beyond_4_gib_too() -> None:
    cutter = cutter_at(beginning(file=FILE, offset=GIB_4 + 5))
    sent, _ = stream_from(GIB_4 + 5, wrong_by=7)
    stream, cutter.state["have"] = received(sent)
    with pytest.raises(StreamCorrupt, match=rf"{FILE}:{GIB_4 + 5}: .* expected"):
        list(cutter.advance(stream))


def facts_of(*logs: tuple[str, int]) -> SourceFacts:
    return SourceFacts("here", Flavour.MARIADB, "11.4", 1, "", {}, (), Position.of(*logs[-1]), "", "", logs)


@pytest.mark.parametrize("left", [0, 27 + 13, 27 + 13 + 4])
def test_behind_the_transaction_that_filled_it_the_next_file_is_asked_for(left: int) -> None:
    request = asked(beginning(file=FILE, offset=GIB_4 + 900), (FILE, GIB_4 + 900 + left), ("binlog.000008", 400))
    assert request == Position.of("binlog.000008", 4)


def test_where_the_file_goes_on_beyond_4_gib_capture_by_position_stops_and_says_what_to_do() -> None:
    for logs in ([(FILE, GIB_4 + 5000), ("binlog.000008", 400)], [(FILE, GIB_4 + 900)]):
        with pytest.raises(PositionLost, match=rf"{FILE}:{GIB_4 + 900}: a position beyond 4 GiB.*set dump: gtid"):
            asked(beginning(file=FILE, offset=GIB_4 + 900), *logs)
    near = beginning(file=FILE, offset=GIB_4 - 1)
    assert asked(near, (FILE, GIB_4 + 900)) == near.place.position


def asked(checkpoint: BinlogCheckpoint, *logs: tuple[str, int]) -> Position | None:
    """The position that the server is asked for; what it can't be asked for is refused before it is sent."""
    text = (
        "pipeline: p\nlake: {path: /lake}\nsources: {one: {conn_id: one, flavour: mariadb, dump: position}}\n"
        "tables: {include: ['*.*']}\n"
    )
    request = dump_request(parse(text, where="test"), "one", facts_of(*logs), checkpoint)

    assert isinstance(command(request), bytes)
    return request.position
