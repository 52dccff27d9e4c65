"""The value log gives back what was synced, and only that."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tests.support.seeds import share
from tests.support.segments import segment
from tidegate.capture.value_log import log as value_log
from tidegate.capture.value_log.log import Budget, ValueLog
from tidegate.capture.value_log.record import FOOTER_BYTES, FOOTER_MAGIC, Footer, decode_footer
from tidegate.errors import Fenced, Transient, ValueLogError, ValueLogFull


def written(folder: Path, count: int, **options: int) -> list[value_log.Segment]:
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
    assert (log.max_commit_ts, log.last_seq) == (55, 5)
    log.close()


def test_a_pointer_gives_its_segment_and_those_behind_it_over_files(tmp_path: Path) -> None:
    log = ValueLog(tmp_path, file_bytes=1500)
    pointers = [log.append(segment(seq)) for seq in range(1, 10)]
    assert len({pointer.file for pointer in pointers}) > 2
    for seq, pointer in enumerate(pointers, 1):
        assert log.segment(pointer) == segment(seq)
        assert [each.seq for _, each in log.segments_from(pointer)] == list(range(seq, 10))
        assert [at for at, _ in log.segments_from(pointer)] == pointers[seq - 1 :]
    with pytest.raises(ValueLogError, match=r"000001.vlog:7: no record begins here"):
        log.segment(pointers[0]._replace(offset=7))
    log.close()


def test_a_reader_beside_the_writer_sees_whole_records_in_order(tmp_path: Path) -> None:
    log = ValueLog(tmp_path, file_bytes=1 << 16)
    first = log.append(segment(1))
    over = threading.Event()

    def write() -> None:
        for seq in range(2, 2000):
            log.append(segment(seq, b"x" * (seq % 300)))
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen, at = [1], first
    while seen[-1] < 1999:
        for pointer, each in log.segments_from(at):
            if each.seq > seen[-1]:
                seen.append(each.seq)
            at = pointer
    writer.join()
    assert seen == list(range(1, 2000))
    log.close()


def test_cut_at_any_byte_the_last_file_gives_what_is_whole_and_writing_goes_on(tmp_path: Path) -> None:
    written(tmp_path / "log", 3)
    whole = (tmp_path / "log" / "000001.vlog").read_bytes()
    file = tmp_path / "log" / "000001.vlog"
    log = ValueLog(tmp_path / "log")
    ends = [head.pointer.end for head in log.heads()]
    log.close()
    assert ends[-1] == len(whole)
    for size in share(range(len(whole) + 1)):
        file.write_bytes(whole[:size])
        there = sum(end <= size for end in ends)
        log = ValueLog(tmp_path / "log")
        assert [each.seq for each in log.read()] == list(range(1, there + 1)), size
        log.append(segment(there + 1, b"again"))
        log.sync()
        log.close()
        log = ValueLog(tmp_path / "log")
        assert [bytes(each.payload) for each in log.read()] == [b"payload"] * there + [b"again"], size
        log.close()


def test_cut_inside_its_footer_the_last_file_is_written_on(tmp_path: Path) -> None:
    written(tmp_path, 2)
    file = tmp_path / "000001.vlog"
    records = file.read_bytes()
    log = ValueLog(tmp_path, file_bytes=1)
    log.append(segment(3))
    log.close()
    full = file.read_bytes()
    assert full.startswith(records)
    assert len(full) == len(records) + FOOTER_BYTES
    (tmp_path / "000002.vlog").unlink()
    for size in range(len(records), len(full) + 1):
        file.write_bytes(full[:size])
        log = ValueLog(tmp_path)
        assert [each.seq for each in log.read()] == [1, 2], size
        assert log.end.file == (2 if size == len(full) else 1)
        log.close()
        (tmp_path / "000002.vlog").unlink(missing_ok=True)


def test_sectors_that_were_never_written_are_a_torn_tail(tmp_path: Path) -> None:
    log = ValueLog(tmp_path)
    log.append(segment(1))
    second = log.append(segment(2, os.urandom(5000)))
    log.close()
    file = tmp_path / "000001.vlog"
    data = bytearray(file.read_bytes())
    data[1024:1536] = bytes(512)
    file.write_bytes(data)
    log = ValueLog(tmp_path)
    assert [each.seq for each in log.read()] == [1]
    assert file.stat().st_size == second.offset
    log.close()
    file.write_bytes(bytes(data[: second.offset]) + bytes(3000))
    log = ValueLog(tmp_path)
    assert file.stat().st_size == second.offset
    log.close()


def test_a_full_file_ends_with_its_largest_commit_ts_and_gc_deletes_what_bronze_has(tmp_path: Path) -> None:
    segments = written(tmp_path, 6, file_bytes=1)
    files = sorted(tmp_path.glob("*.vlog"))
    assert len(files) == 6
    footer = files[0].read_bytes()[-FOOTER_BYTES:]
    assert decode_footer(footer) == Footer(15, 1)
    assert int.from_bytes(footer[:8], "little") == 15
    assert int.from_bytes(footer[-4:], "little") == FOOTER_MAGIC
    log = ValueLog(tmp_path, file_bytes=1)
    assert log.gc(3) > 0
    # What bronze has last stays: from there a start without the lake goes on.
    assert list(log.read()) == segments[2:]
    log.close()
    log = ValueLog(tmp_path, file_bytes=1)
    assert list(log.read()) == segments[2:]
    log.close()


def test_full_files_are_opened_by_their_footer_alone(tmp_path: Path) -> None:
    segments = written(tmp_path, 3, file_bytes=1)
    first = tmp_path / "000001.vlog"
    data = bytearray(first.read_bytes())
    data[-FOOTER_BYTES - 3] ^= 1
    first.write_bytes(data)
    log = ValueLog(tmp_path, file_bytes=1)
    assert list(log.read(after_seq=1)) == segments[1:]
    with pytest.raises(ValueLogError, match=r"000001.vlog:0: a record's checksum is wrong; .*tidegate vlog check"):
        list(log.read())
    log.close()


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    written(tmp_path, 4, file_bytes=1)
    (tmp_path / "000002.vlog").unlink()
    with pytest.raises(ValueLogError, match=r"000002.vlog: isn't there, 000003.vlog is"):
        ValueLog(tmp_path)


def test_the_budget_stops_before_a_record_is_begun_and_gc_makes_room(tmp_path: Path) -> None:
    log = ValueLog(tmp_path, budget=Budget(bytes_max=20_000))
    seq = 0
    with pytest.raises(ValueLogFull, match=r"budget is 20000; nothing that was captured is lost: bring the lake"):  # noqa: PT012
        while True:
            log.append(segment(seq + 1, b"x" * 500))
            seq += 1
    log.sync()
    assert seq > 15
    assert sum(path.stat().st_size for path in tmp_path.glob("*.vlog")) <= 20_000
    assert [each.seq for each in log.read()] == list(range(1, seq + 1))
    log.gc(seq)
    log.append(segment(seq + 1, b"x" * 500))
    log.close()
    assert issubclass(ValueLogFull, Transient)


def test_the_reserve_of_the_disk_is_left_free(tmp_path: Path) -> None:
    log = ValueLog(tmp_path, budget=Budget(reserve_bytes=1 << 60))
    with pytest.raises(ValueLogFull, match="of its disk are free"):
        log.append(segment(1))
    log.close()


def test_a_disk_that_fills_up_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk ends in the middle of a record; the log ends before it."""
    log = ValueLog(tmp_path)
    log.append(segment(1))
    log.sync()
    real = os.writev

    def half(descriptor: int, parts: list[memoryview]) -> int:
        if len(parts) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, parts[:1])

    monkeypatch.setattr(os, "writev", half)
    with pytest.raises(ValueLogFull, match="No space left"):
        log.append(segment(2))
    monkeypatch.undo()
    log.append(segment(2))
    assert [each.seq for each in log.read()] == [1, 2]
    log.close()


def test_only_one_process_has_it_open(tmp_path: Path) -> None:
    log = ValueLog(tmp_path)
    with pytest.raises(Fenced, match="another process"):
        ValueLog(tmp_path)
    log.close()
    ValueLog(tmp_path).close()
