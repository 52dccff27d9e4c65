"""A large payload goes to the value log past the page cache, and nothing else differs by it."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.segments import segment
from tidegate.capture.payload_memory import PayloadMemory
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import ValueLogError
from tidegate.limits import VALUE_LOG_DIRECT_BYTES_MIN
from tidegate.segments.memory_pages import PAGE_BYTES
from tidegate.segments.segment import Segment

LARGE = VALUE_LOG_DIRECT_BYTES_MIN
_MEMORY = PayloadMemory(4 * LARGE, 0)  # nothing is lent twice: segments are compared in the end


def large(seq: int, count: int = LARGE + 1234) -> Segment:
    """Its payload lies where capture's payloads lie."""
    array = _MEMORY.take(count)
    array[:count] = np.random.default_rng(seq).integers(1, 256, count, np.uint8)
    return segment(seq, memoryview(array.data)[:count].toreadonly())


def direct_writes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[tuple[int, int]]:
    """(offset, bytes) of each direct write from now on. Skips where this file system has none."""
    log = ValueLog(folder / "tried")
    if not log._current.goes_direct(large(1).payload):
        pytest.skip("no O_DIRECT here")
    log.close()
    made, really = [], os.pwrite

    def noted(descriptor: int, data: memoryview, offset: int) -> int:
        written = really(descriptor, data, offset)
        made.append((offset, written))
        return written

    monkeypatch.setattr(os, "pwrite", noted)
    return made


def written(folder: Path, segments: Sequence[Segment], **options: int) -> None:
    log = ValueLog(folder, **options)
    for each in segments:
        log.append(each)
    log.sync()
    log.close()


def assert_same(log: ValueLog, segments: Sequence[Segment]) -> None:
    back = list(log.read())
    assert [each.seq for each in back] == [each.seq for each in segments]
    for one, other in zip(back, segments, strict=True):
        assert bytes(one.payload) == bytes(other.payload)


def test_large_and_small_payloads_are_read_back_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = direct_writes(monkeypatch, tmp_path)
    sizes = (LARGE, LARGE - 1, LARGE + 1, 3 * LARGE, 7, LARGE + PAGE_BYTES, LARGE + PAGE_BYTES - 1)
    segments = [large(seq, size) for seq, size in enumerate(sizes, 1)]
    written(tmp_path, segments, file_bytes=4 * LARGE)
    assert len(made) == 5
    assert all(offset % PAGE_BYTES == count % PAGE_BYTES == 0 for offset, count in made)
    log = ValueLog(tmp_path, file_bytes=4 * LARGE)
    assert_same(log, segments)
    assert len({record.pointer.file for record in log.heads()}) > 1
    log.close()


def test_a_reader_beside_the_writer_sees_large_payloads_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    direct_writes(monkeypatch, tmp_path)
    log = ValueLog(tmp_path)
    segments = [large(seq, LARGE + seq * 997) for seq in range(1, 20)]
    first = log.append(segments[0])
    over = threading.Event()

    def write() -> None:
        for each in segments[1:]:
            log.append(each)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen, at = [1], first
    while seen[-1] < len(segments):
        for pointer, each in log.segments_from(at):
            assert bytes(each.payload) == bytes(segments[each.seq - 1].payload)
            if each.seq > seen[-1]:
                seen.append(each.seq)
            at = pointer
    writer.join()
    assert over.is_set()
    assert seen == list(range(1, 20))
    log.close()


def test_a_crash_that_took_a_head_and_left_its_payload_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The payload is on the disk before its head, which is in the cache until the sync."""
    made = direct_writes(monkeypatch, tmp_path)
    for size in range(0, 600, 37):  # the head begins anywhere in a sector
        folder = tmp_path / str(size)
        made.clear()
        kept = [large(1), segment(2, b"x" * size)]
        log = ValueLog(folder)
        for each in kept:
            log.append(each)
        torn = log.append(large(3))
        log.close()
        path = folder / "000001.vlog"
        with path.open("r+b") as file:
            file.seek(torn.offset)
            file.write(bytes(made[-1][0] - torn.offset))
        again = ValueLog(folder)
        assert_same(again, kept)
        again.append(large(3))
        again.close()
        written_last = ValueLog(folder)
        assert_same(written_last, [*kept, large(3)])
        written_last.close()


@pytest.mark.parametrize("taken", [0, PAGE_BYTES, 8 * PAGE_BYTES + 512])
def test_a_short_direct_write_goes_on_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    direct_writes(monkeypatch, tmp_path)
    noted = os.pwrite

    def short(descriptor: int, data: memoryview, offset: int) -> int:
        return noted(descriptor, data[:taken], offset) if taken else 0

    monkeypatch.setattr(os, "pwrite", short)
    segments = [large(1), segment(2), large(3)]
    written(tmp_path, segments)
    log = ValueLog(tmp_path)
    assert_same(log, segments)
    log.close()


def test_a_file_system_that_takes_no_direct_write_gets_all_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    direct_writes(monkeypatch, tmp_path)
    tries: list[Any] = []

    def refused(*arguments: object) -> int:
        tries.append(arguments)
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "pwrite", refused)
    segments = [large(seq) for seq in range(1, 4)]
    written(tmp_path, segments)
    assert len(tries) == 1
    assert "through the page cache from here on: Invalid argument" in caplog.text
    log = ValueLog(tmp_path)
    assert_same(log, segments)
    log.close()


def test_a_flipped_bit_of_a_large_record_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = direct_writes(monkeypatch, tmp_path)
    written(tmp_path, [large(1), large(2)])
    path = tmp_path / "000001.vlog"
    whole = path.read_bytes()
    for at in (made[0][0] - 1, made[0][0] - 300, made[0][0] + 5, made[0][0] + LARGE + 100):
        data = bytearray(whole)
        data[at] ^= 4
        path.write_bytes(data)
        with pytest.raises(ValueLogError, match=r"checksum is wrong|header is damaged"):
            ValueLog(tmp_path)
