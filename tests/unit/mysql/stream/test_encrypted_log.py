"""A MariaDB server with encrypt_binlog=ON: the stream is decrypted, and has one event more at the beginning of a file.

Real events of a plain log, moved to where an encrypted one has them, behind a START_ENCRYPTION as the server sends it
(MariaDB sql/sql_repl.cc, send_format_descriptor_event): flagged as ignorable, at its place; or without a place when the
stream begins further on in the file.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from tests.unit.mysql.stream.test_beyond_4_gib import FILE, events, moved, received
from tidegate.binlog.format.events import EventFlag, EventType
from tidegate.binlog.rows.decode import decode_segment
from tidegate.config import DumpMode, Flavour
from tidegate.mysql.history.continuity import _crcs_of
from tidegate.mysql.stream.cutter import Cutter
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.mysql.stream.place import beginning
from tidegate.segments.crc32c import crc32c

KEY = bytes(range(1 + 4 + 12))  # scheme, key version, nonce


def start_encryption(end: int) -> bytes:
    body = struct.pack("<IBIIIH", 0, EventType.MARIADB_START_ENCRYPTION, 1, 19 + len(KEY) + 4, end, EventFlag.IGNORABLE)
    return body + KEY + zlib.crc32(body + KEY).to_bytes(4, "little")


def file_events() -> list[bytes]:
    """As they lie in the file, from offset 4."""
    first, *rest = events()
    found, at = [moved(first, 4 + len(first))], 4 + len(first)
    key = start_encryption(at + 19 + len(KEY) + 4)
    found.append(key)
    at += len(key)
    for event in rest:
        if event[4] in (EventType.ROTATE, EventType.STOP):
            break
        at += len(event)
        found.append(moved(event, at))
    return found


def rotate(offset: int) -> bytes:
    body = struct.pack("<IBIIIH", 0, EventType.ROTATE, 1, 19 + 8 + len(FILE) + 4, 0, EventFlag.ARTIFICIAL)
    body += struct.pack("<Q", offset) + FILE.encode()
    return body + zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize("dump", list(DumpMode))
def test_an_encrypted_log_is_captured(dump: DumpMode) -> None:
    settings = CutterSettings("one", Flavour.MARIADB, dump, 1 << 20, lambda *_: [])
    sent = file_events()
    # from the file's beginning
    begin = beginning(file=FILE) if dump is DumpMode.POSITION else beginning()
    cutter = Cutter(settings, begin, 1, "")
    stream, cutter.state["have"] = received([rotate(4), *sent])
    (segment,) = [*cutter.advance(stream), *cutter.cut_now()]
    # By GTID what frames transactions is left out until the first of them comes.
    first = 0 if dump is DumpMode.POSITION else next(n for n, e in enumerate(sent) if e[4] == EventType.MARIADB_GTID)
    assert bytes(segment.payload) == b"".join(sent[first:])
    assert "*" not in segment.tables
    decode_segment(segment, {}, {})
    # and further on
    if dump is DumpMode.POSITION:
        at = 4 + sum(map(len, sent[:2]))
        cutter = Cutter(settings, beginning(file=FILE, offset=at), 1, "")
        repeated = [rotate(at), moved(sent[0], 0), start_encryption(0)]
        stream, cutter.state["have"] = received([*repeated, *sent[2:]])
        (segment,) = [*cutter.advance(stream), *cutter.cut_now()]
        assert bytes(segment.payload) == b"".join(sent[2:])
        assert segment.start_pos == at


def test_what_is_compared_with_the_server_leaves_the_repeated_beginning_out() -> None:
    sent = file_events()
    at = 4 + sum(map(len, sent[:2]))
    repeated = [rotate(at), moved(sent[0], 0), start_encryption(0)]
    stream, have = received([*repeated, *sent[2:]])

    class Once:
        """The stream, all of which is here."""

        def __init__(self) -> None:
            self.received: np.ndarray[Any, np.dtype[np.uint8]] = stream.received

        def receive(self, state: Any, _: float) -> None:
            state["have"] = have

    payload = b"".join(sent[2:])
    assert crc32c(payload) in _crcs_of(Once(), at, at + len(payload))  # type: ignore[arg-type]
