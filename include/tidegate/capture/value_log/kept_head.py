"""The head of the newest segment with bytes, kept when the log's last file with such a segment goes.

In:  a log's folder, a segment's head.
Out: the same after a crash: a file of one record, without the segment's context and payload.

A quiet source's file goes with all its rows, and heartbeats alone stay. A start without the lake still compares the
server's bytes with this segment's place and checksum, to see whether the server lost its newest log.
"""

from __future__ import annotations

import logging
import struct
from dataclasses import replace
from pathlib import Path
from typing import Final

from tidegate.capture.value_log.record import RECORD, decode, encode
from tidegate.delta.stores.store import sync
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment

log = logging.getLogger(__name__)

TAIL: Final = "tail"


def keep_tail(folder: Path, segment: Segment) -> None:
    """On disk when this returns. Raises OSError."""
    new = folder / f"{TAIL}.new"
    new.write_bytes(b"".join(encode(replace(segment, context=b"", payload=b""))))
    sync(str(new))
    new.rename(folder / TAIL)
    sync(str(folder))


def kept_tail(folder: Path) -> Segment | None:
    """None where none is kept, or it is damaged: then it isn't compared."""
    path = folder / TAIL
    try:
        data = path.read_bytes()
        _, length, crc = RECORD.unpack_from(data)
        record = data[RECORD.size :]
        if len(record) == length and crc32c(record) == crc:
            return decode(record)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, struct.error):
        pass
    log.warning("%s is damaged, so the source's newest log isn't compared with it", path)
    return None
