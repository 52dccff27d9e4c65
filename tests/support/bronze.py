"""Bronze without a server: segments that hold no events, appended by capture's own writer.

In:  per segment its source, seq, and the commit_ts of its changes (none: a heartbeat) and its resolved_ts.
Out: commits of bronze/segments as a capture makes them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.bronze.upkeep import Limits, choose_runs, compact_run
from tidegate.lake.files import LakeFiles
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind


def pack(lake: LakeFiles) -> None:
    """What maintain does with files that aren't young any more."""
    log = BronzeLog.load(lake)
    assert log is not None
    for run in choose_runs(log.files(), Limits(1 << 30, 1 << 40, 1 << 60)):
        compact_run(log, run)


class QuietBronze:
    """Appends to a lake's bronze, one commit per call. at: when what comes next was captured; when this was made, if
    None: all is of one day, at midnight too.
    """

    def __init__(self, lake: Path | LakeFiles) -> None:
        self._lake = lake if isinstance(lake, LakeFiles) else LakeFiles(str(lake))
        self.landed: list[Segment] = []
        self.at: datetime | None = None
        self._made_at = datetime.now(UTC)
        self._ends: dict[str, tuple[int, int, int]] = {}  # per source: seq, position, resolved_ts

    def land(self, source: str, *rows: tuple[int, ...]) -> int:
        """Each row is (resolved_ts,): a heartbeat, or (min_commit_ts, max_commit_ts, resolved_ts). The new version."""
        segments = [self._segment(source, *row) for row in rows]
        version = Bronze(self._lake, source).append(segments)
        self.landed += segments
        return version

    def _segment(self, source: str, *stamps: int) -> Segment:
        seq, position, before = self._ends.get(source, (0, 4, 0))
        low, high, resolved = stamps if len(stamps) == 3 else (0, 0, *stamps)
        payload = f"changes {low} to {high}".encode() if high else b""
        self._ends[source] = (seq + 1, position + len(payload), resolved)
        return Segment(
            source=source,
            seq=seq + 1,
            kind=SegmentKind.BINLOG if high else SegmentKind.HEARTBEAT,
            server_id=1,
            server_uuid="",
            file="binlog.000001",
            start_pos=position,
            end_pos=position + len(payload),
            gtid_executed="",
            prev_commit_ts=before,
            min_commit_ts=low,
            max_commit_ts=high,
            resolved_ts=resolved,
            tables=("shop.orders",) if high else (),
            flags=SegmentFlag(0),
            event_count=1 if high else 0,
            txn_count=1 if high else 0,
            context=b"",
            payload=payload,
            payload_crc32c=crc32c(payload),
            captured_at=self.at or self._made_at,
        )
