"""A reader and the server that capture reads: which is which, and which waves no mark will ever end.

In:  bronze of two servers, one after the other; waves that wait; cuts.
Out: an error where the two aren't one server; waves that are lost, once apply is past where they could be.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.segments import segment
from tidegate import tables
from tidegate.errors import SourceUnavailable
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Server
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress import captured_reading
from tidegate.snapshot.progress.captured_reading import CapturedReading, lost_ends
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate.tables import SegmentFlag

A, B = (1, "a"), (2, "b")


def capture(lake: LakeFiles, seq: int, server: Server) -> None:
    """Segment n is resolved up to 10n + 5."""
    one = replace(segment(seq), server_id=server[0], server_uuid=server[1], flags=SegmentFlag(0))
    Bronze(lake, "one").append([replace(one, start_pos=100 * seq - 100, end_pos=100 * seq)])


def publish(lake: LakeFiles, cut_ts: int) -> None:
    row = {"cut_ts": cut_ts, "table": "", "delta_version": -1, "applied_ts": cut_ts, "state": "active"}
    control.append(lake, tables.CUTS, [row | {"published_at": datetime.now(UTC)}])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeFiles:
    monkeypatch.setattr(captured_reading, "SNAPSHOT_WAITING_SECONDS", 0)
    return LakeFiles(str(tmp_path))


def test_a_reader_ends_once_capture_reads_another_server(lake: LakeFiles) -> None:
    reading = CapturedReading(lake, "one", A, "u@a:1")
    assert reading.lost([]) == [], "nothing is captured yet"
    capture(lake, 1, A)
    assert reading.lost([]) == []
    for other in (B, (1, "a clone"), (3, "a")):
        capture(lake, 2 if other is B else (3 if other[0] == 1 else 4), other)
        with pytest.raises(SourceUnavailable, match="capture reads server"):
            reading.lost([])


def test_a_wave_of_a_server_that_died_is_lost_once_apply_is_past_it(lake: LakeFiles) -> None:
    both = {"dead": A, "alive": B}
    table = TableProgress("s", "one", "d", "t", SnapshotState.RUNNING, (WHOLE,), tuple(both), waiting_at=both)
    capture(lake, 1, A)
    capture(lake, 2, B)
    publish(lake, 15)
    reading = CapturedReading(lake, "one", B, "u@b:1")
    assert reading.lost([table]) == [], "the mark may lie between the cut and where capture is"
    capture(lake, 3, B)
    assert reading.lost([table]) == []
    publish(lake, 25)
    assert reading.lost([table]) == [(table, "dead")]


def test_an_end_mark_is_lost_once_capture_reads_another_server(lake: LakeFiles) -> None:
    ended = TableProgress("s", "one", "d", "t", SnapshotState.ENDED, (), ended_at=A)
    over = replace(ended, state=SnapshotState.DONE)
    assert lost_ends(lake, [ended]) == []
    capture(lake, 1, A)
    assert lost_ends(lake, [ended]) == [], "apply may still come to it"
    capture(lake, 2, B)
    assert lost_ends(lake, [ended, over, replace(ended, ended_at=None), replace(ended, ended_at=B)]) == [ended]
