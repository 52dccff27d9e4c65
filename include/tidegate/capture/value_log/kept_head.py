"""The head of the newest segment with bytes. It is kept when the log's last file with such a
segment is deleted.

In:  a log's folder, a segment's head.
Out: the same after a crash: a file with one record, without the segment's context and payload.

A quiet source's file is deleted with all its rows, and only heartbeats stay. A start without the
lake still compares the server's bytes with this segment's place and checksum: did the server lose
its newest log?
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
    """It is on disk when this returns. Raises OSError."""
    new = folder / f"{TAIL}.new"
    new.write_bytes(b"".join(encode(replace(segment, context=b"", payload=b""))))
    sync(str(new))
    new.rename(folder / TAIL)
    sync(str(folder))


def kept_tail(folder: Path) -> Segment | None:
    """None if none is kept, or if it is damaged: then nothing is compared."""
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
