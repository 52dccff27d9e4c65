"""The value log gives back what was synced, and only that."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidegate.binlog.segment import Segment
from tidegate.capture.value_log import FOOTER_MAGIC, ValueLog
from tidegate.errors import Fenced, ValueLogError
from tidegate.tables import SegmentFlag, SegmentKind


def segment(seq: int, payload: bytes = b"payload") -> Segment:
    return Segment(
        source="one",
        seq=seq,
        kind=SegmentKind.BINLOG,
        server_id=1,
        server_uuid="uuid",
        file="binlog.000001",
        start_pos=4,
        end_pos=11,
        gtid_executed="0-1-5",
        prev_commit_ts=seq * 10,
        min_commit_ts=seq * 10 + 1,
        max_commit_ts=seq * 10 + 5,
        resolved_ts=seq * 10 + 5,
        tables=("a.b", "ü.名"),
        flags=SegmentFlag.HAS_DDL | SegmentFlag.OPEN_AT_END,
        event_count=3,
        txn_count=1,
        context=b"context",
        payload=payload,
        payload_crc32c=77,
        captured_at=datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC),
    )


def written(folder: Path, count: int, **options: int) -> list[Segment]:
    log = ValueLog(folder, **options)
    segments = [segment(seq) for seq in range(1, count + 1)]
    for each in segments:
        log.append(each)
    log.sync()
    log.close()
    return segments


def test_what_was_written_is_read_back_equal(tmp_path: Path) -> None:
    segments = written(tmp_path, 5)
    log = ValueLog(tmp_path)
    assert list(log.read()) == segments
    assert list(log.read(after_seq=3)) == segments[3:]
    assert log.max_commit_ts == 55
    log.close()


@pytest.mark.parametrize("lost", [1, 5, 15, 16, 40])
def test_a_torn_tail_is_cut_off_and_writing_goes_on(tmp_path: Path, lost: int) -> None:
    segments = written(tmp_path, 3)
    file = tmp_path / "000001.vlog"
    file.write_bytes(file.read_bytes()[:-lost])
    log = ValueLog(tmp_path)
    assert list(log.read()) == segments[:2]
    log.append(segment(3, b"again"))
    log.sync()
    assert [each.payload for each in log.read()] == [b"payload", b"payload", b"again"]
    log.close()


def test_a_damaged_record_behind_the_open_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, 3)
    log = ValueLog(tmp_path)
    file = tmp_path / "000001.vlog"
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueLogError, match="damaged"):
        list(log.read())
    log.close()


def test_a_full_file_ends_with_its_largest_commit_ts_and_gc_deletes_what_bronze_has(tmp_path: Path) -> None:
    segments = written(tmp_path, 6, file_bytes=1)
    files = sorted(tmp_path.glob("*.vlog"))
    assert len(files) == 6
    footer = files[0].read_bytes()[-12:]
    assert int.from_bytes(footer[:8], "little") == 15
    assert int.from_bytes(footer[8:], "little") == FOOTER_MAGIC
    log = ValueLog(tmp_path, file_bytes=1)
    assert log.gc(committed_seq=3) > 0
    assert list(log.read()) == segments[3:]
    log.close()


def test_only_one_process_has_it_open(tmp_path: Path) -> None:
    log = ValueLog(tmp_path)
    with pytest.raises(Fenced, match="another process"):
        ValueLog(tmp_path)
    log.close()
    ValueLog(tmp_path).close()
