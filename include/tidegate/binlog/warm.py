"""Load every kernel before work comes: in Spark's worker daemon before it forks, and once after
installation.

In:  nothing.
Out: all kernels compiled: from the cache on disk, if it has them (0.7 s), else anew (about 10 s of
     CPU). `python -m tidegate.binlog.warm` fills the cache, and prints where it is.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from struct import Struct
from typing import Final

_EVENT: Final = Struct("<IBIIIH")


def warm() -> None:
    """Load all kernels, and decode an empty segment with them."""
    from tidegate.binlog.rows.decode import decode_segment
    from tidegate.compiled import load_all
    from tidegate.segments.segment import Segment
    from tidegate.tables import SegmentFlag, SegmentKind

    body = b"\x04\x00" + b"warm".ljust(50, b"\0") + bytes(4) + b"\x13" + bytes(40) + b"\x00" + bytes(4)
    event = _EVENT.pack(0, 15, 1, 19 + len(body), 0, 0) + body
    segment = Segment(
        source="warm",
        seq=1,
        kind=SegmentKind.BINLOG,
        server_id=1,
        server_uuid="",
        file="warm.000001",
        start_pos=4,
        end_pos=4 + len(event),
        gtid_executed="",
        prev_commit_ts=0,
        min_commit_ts=0,
        max_commit_ts=0,
        resolved_ts=0,
        tables=(),
        flags=SegmentFlag(0),
        event_count=1,
        txn_count=0,
        context=event,
        payload=event,
        payload_crc32c=0,
        captured_at=datetime.fromtimestamp(0, tz=UTC),
    )
    decode_segment(segment, {}, {})
    load_all()


if __name__ == "__main__":
    started = time.process_time()
    warm()
    import numba

    sys.stdout.write(
        f"tidegate: the decoder is compiled ({time.process_time() - started:.1f} CPU-s), in {numba.config.CACHE_DIR}\n"
    )
