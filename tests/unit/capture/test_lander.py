"""The lander lands each segment once and in order, from memory and from the value log, and holds the reader briefly."""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.captures import bronze_segments
from tests.support.segments import segment
from tidegate.capture import status_file
from tidegate.capture.lander import Backlog, Lander, LanderSettings, LoggedSegment
from tidegate.capture.source import ClockState
from tidegate.capture.status_file import StatusFile
from tidegate.capture.value_log.log import Budget, ValueLog
from tidegate.cli.main import app
from tidegate.errors import Fenced, LakeRefused
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag

SETTINGS = LanderSettings(land_bytes=3000, queue_bytes=6000, slow_seconds=0.2, hold_seconds=0.3, return_seconds=0.5)


PATIENCE_SECONDS = 120


def chain(seqs: Iterator[int] | range) -> list[Segment]:
    """Segments that touch."""
    return [
        replace(
            segment(seq, b"%04d" % seq * 250), start_pos=seq * 1000, end_pos=seq * 1000 + 1000, flags=SegmentFlag(0)
        )
        for seq in seqs
    ]


@contextmanager
def opened(folder: Path) -> Iterator[ValueLog]:
    log = ValueLog(folder, file_bytes=8000)
    try:
        yield log
    finally:
        log.close()


def lander_of(folder: Path, log: ValueLog, settings: LanderSettings = SETTINGS) -> Lander:
    return Lander(Bronze(LakeFiles(str(folder / "lake")), "one"), log, settings)


def write(lander: Lander, log: ValueLog, segments: list[Segment]) -> None:
    for one in segments:
        lander.hold()
        placed = LoggedSegment(log.append(one), one)
        log.sync()
        lander.put([placed])


def until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_stalled_lake_turns_the_chaser_on_and_a_sound_one_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "log") as log:
        lander = lander_of(tmp_path, log, replace(SETTINGS, hold_seconds=PATIENCE_SECONDS))
        real, sound = Bronze.append, threading.Event()

        def append(bronze: Bronze, batch: Any) -> int:
            assert sound.wait(PATIENCE_SECONDS), "the reader waits for the lake"
            return real(bronze, batch)

        monkeypatch.setattr(Bronze, "append", append)
        with lander:
            write(lander, log, chain(range(1, 60)))
            assert lander.chasing
            assert lander.queued_bytes <= 6000
            sound.set()
            until(lambda: not lander.chasing)
            write(lander, log, chain(range(60, 63)))
        assert lander.committed_seq == 62
        status = lander.status()
        assert (status.state, status.chases) == ("direct", 1)
        assert 0 < status.held_seconds_max < PATIENCE_SECONDS
    assert [each.seq for each in bronze_segments(tmp_path / "lake")] == list(range(1, 63))


def test_the_reader_is_held_no_longer_than_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is slow when the chaser reads what is left: the reader goes on, and the return is tried later again."""
    with opened(tmp_path / "log") as log:
        write_at = [log.append(one) for one in chain(range(1, 5))]
        log.sync()
        lander = lander_of(tmp_path, log, replace(SETTINGS, queue_bytes=20_000))
        lander.begin(Backlog(write_at[0], write_at[-1], sum(each.bytes for each in write_at)))
        real, written = ValueLog.segments_from, threading.Event()

        def segments_from(self: ValueLog, *arguments: Any) -> Iterator[Any]:
            assert written.wait(PATIENCE_SECONDS), "the reader waits for the chaser"
            return real(self, *arguments)

        monkeypatch.setattr(ValueLog, "segments_from", segments_from)
        with lander:
            until(lambda: lander.status().state == "returning")
            write(lander, log, chain(range(5, 6)))
            assert lander.status().state == "returning", "it isn't done yet"
            written.set()
            until(lambda: lander.status().returns_failed == 1)
            until(lambda: not lander.chasing)
        assert lander.committed_seq == 5
    assert [each.seq for each in bronze_segments(tmp_path / "lake")] == [1, 2, 3, 4, 5]


def test_a_value_log_that_bronze_doesnt_precede_is_fenced_before_anything_lands(tmp_path: Path) -> None:
    with opened(tmp_path / "log") as log:
        pointers = [log.append(one) for one in chain(range(7, 9))]
        log.sync()
        lander = lander_of(tmp_path, log)
        lander.begin(Backlog(None, pointers[-1], 0))
        with pytest.raises(Fenced, match=r"value log goes on with seq 7 .* bronze ends with seq 0"), lander:
            until(lambda: lander.flush() is not None)
    assert not (tmp_path / "lake").exists()


def test_status_says_how_far_behind_and_how_long_the_disk_lasts(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: p\nlake: {{path: {tmp_path / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        "tables: {include: ['*.*']}\n"
    )
    folder = tmp_path / "value_log" / "p" / "one"
    log = ValueLog(folder, budget=Budget(bytes_max=10_000_000))
    pointers = [log.append(one) for one in chain(range(1, 5))]
    log.sync()
    lander = lander_of(tmp_path, log)
    lander.begin(Backlog(pointers[0], pointers[-1], 5_000_000))
    writer = StatusFile(log, ClockState)
    time.sleep(0.1)
    found = writer.write(lander, 4, 1_000_000)
    assert found == status_file.read(folder)
    assert found.seconds_left == pytest.approx(found.room_bytes / found.bytes_per_second)
    shown = CliRunner().invoke(app, ["status", str(file), "--state-dir", str(tmp_path)], env={"COLUMNS": "200"})
    assert "behind for" in shown.stdout
    assert "5.0 MB" in shown.stdout
    assert "which lasts" in shown.stdout
    told = CliRunner().invoke(app, ["status", str(file), "--state-dir", str(tmp_path), "--json"])
    assert json.loads(told.stdout)["capture"]["one"]["behind_bytes"] == 5_000_000
    log.close()


def test_the_memory_of_what_has_landed_is_free_before_anything_else_comes(tmp_path: Path) -> None:
    with opened(tmp_path / "log") as log, lander_of(tmp_path, log) as lander:
        memory = [np.zeros(1000, np.uint8) for _ in range(3)]
        freed = [weakref.ref(array) for array in memory]
        segments = chain(range(1, 4))
        payloads = [memoryview(array.data) for array in memory]
        write(lander, log, [replace(one, payload=part) for one, part in zip(segments, payloads, strict=True)])
        del memory, payloads
        assert lander.drain()
        until(lambda: not any(array() is not None for array in freed))
    assert [one.seq for one in bronze_segments(tmp_path / "lake")] == [1, 2, 3]


def test_what_landed_without_the_lease_doesnt_count(tmp_path: Path) -> None:
    """The lake was moved away just before the commit: the value log keeps the segment, which the new place lacks."""
    looks = iter(range(2))

    def may_land() -> None:
        if next(looks) == 1:  # behind the commit
            raise LakeRefused("this lake was moved", where="", remedy="")

    with opened(tmp_path / "log") as log:
        lander = Lander(Bronze(LakeFiles(str(tmp_path / "lake")), "one"), log, SETTINGS, may_land)

        def land() -> None:
            with lander:
                write(lander, log, chain(range(1, 2)))
                lander.drain()

        with pytest.raises(LakeRefused, match="was moved"):
            land()
        assert lander.committed_seq == 0
