"""Capture's loop over a source that is no server, into a real value log and real bronze: nothing in it knows MySQL."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.captures import Background, bronze_segments, wait_for_bronze
from tests.support.file_capture import SEGMENT_BYTES, file_run, killed_capture
from tests.support.file_source import FileReader, FileSource
from tests.support.seeds import share
from tests.support.segments import segment as one_segment
from tidegate.capture import status_file
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import LakeRefused, PositionLost, SourceUnavailable, StreamCorrupt
from tidegate.lake.bronze import file as bronze_file
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.control import append
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import FollowedChange, pipeline_of, rows_of
from tidegate.segments.segment import Segment
from tidegate.tables import FOLLOWED, SegmentKind

ROOT = Path(__file__).resolve().parents[3]
POINTS = (
    "capture_after_first_start",
    "capture_before_value_log:2",
    "capture_after_value_log_sync:3",
    "capture_before_bronze_commit",
    "capture_after_bronze_file",
    "capture_after_bronze_commit",
    "capture_after_heartbeat",
)


def wrote(folder: Path, first: int, count: int) -> FileSource:
    source = FileSource(folder / "lines", SEGMENT_BYTES)
    source.write(*(f"transaction {number}" for number in range(first, first + count)))
    return source


def assert_has_every_line(folder: Path) -> None:
    """Each once, in order, under one seq after the other, and resolved_ts never falls."""
    segments = bronze_segments(folder / "lake")
    assert b"".join(bytes(segment.payload) for segment in segments) == (folder / "lines").read_bytes()
    assert [segment.seq for segment in segments] == list(range(1, len(segments) + 1))
    resolved = [segment.resolved_ts for segment in segments]
    assert resolved == sorted(resolved)
    for segment in segments:
        segment.verify()


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    wrote(tmp_path, 0, 50)
    first = file_run(tmp_path).run(300, idle_seconds=1.2)
    assert (first.reason, first.position) == ("idle", f"lines:{(tmp_path / 'lines').stat().st_size}")
    wrote(tmp_path, 50, 50)
    second = file_run(tmp_path).run(300, idle_seconds=0.5)
    assert second.bytes < first.bytes * 2
    assert_has_every_line(tmp_path)
    assert len(bronze_segments(tmp_path / "lake")) > 10
    assert any(one.kind is SegmentKind.HEARTBEAT for one in bronze_segments(tmp_path / "lake"))


@pytest.mark.parametrize("harm", ["gone", "damaged", "its log"])
def test_capture_goes_on_where_the_owner_of_its_lake_cannot_be_read(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The source may purge its log while a person mends control/followed. It goes on in no other pipeline's lake."""
    lake = LakeFiles(str(tmp_path / "lake"))
    append(lake, FOLLOWED, rows_of(1, "test", [FollowedChange("one", "followed", 0)], None, 0))
    folder = tmp_path / "lake" / FOLLOWED.path
    (file,) = folder.glob("*.parquet")
    if harm == "gone":
        file.unlink()
    elif harm == "damaged":
        file.write_bytes(b"damaged")
    else:
        (folder / "_delta_log" / f"{0:020}.json").write_bytes(b"{")
    wrote(tmp_path, 0, 20)
    file_run(tmp_path).run(300, idle_seconds=0.5)
    assert_has_every_line(tmp_path)
    assert "whose lake" in caplog.text


def test_killed_at_each_point_in_turn_it_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    for number, point in enumerate((*share(POINTS), None)):
        wrote(tmp_path, 40 * number, 40)
        assert killed_capture(tmp_path, point) == (-signal.SIGKILL if point else 0), point
    assert_has_every_line(tmp_path)


class Unbroken(FileReader):
    """Its lines come without a pause: whenever capture looks, it is inside the newest."""

    asked = False

    def receive(self, timeout_seconds: float) -> list[Segment]:
        time.sleep(0.004)
        line = self._file.readline()
        whole, self.in_transaction = self._taken, bool(line)
        if not line:
            return self.cut_now() or super().receive(timeout_seconds)
        given = self.cut_now() if whole and self.asked else []
        self._taken.append(line)
        self.resolved_ts = int(line.split()[0])
        self.asked = self.asked and not given
        return given

    def cut_soon(self) -> list[Segment]:
        self.asked = self.in_transaction
        return [] if self.in_transaction else self.cut_now()


def test_a_stream_without_a_pause_is_cut_as_often_as_it_lands(tmp_path: Path) -> None:
    """And not at each transaction, each of which would be synced alone."""

    class Busy(FileSource):
        def connect(self) -> FileReader:
            return Unbroken(self)

    wrote(tmp_path, 0, 400)
    begun, land_seconds = time.monotonic(), 0.4
    run = file_run(tmp_path, lambda: Busy(tmp_path / "lines", 1 << 20), land_seconds=land_seconds)
    result = run.run(300, idle_seconds=0.5)
    assert result.segments <= 4 + 2 * (time.monotonic() - begun) / land_seconds, "with heartbeats at the end"
    assert result.segments > 3, "what is read lands while more comes"
    assert_has_every_line(tmp_path)


def test_a_source_that_goes_away_is_connected_to_again(tmp_path: Path) -> None:
    class Shaky(FileSource):
        connections = 0

        def connect(self):  # type: ignore[no-untyped-def]
            type(self).connections += 1
            if self.connections in (2, 3):
                raise SourceUnavailable("no answer", where="lines")
            reader = super().connect()
            if self.connections == 1:
                real, taken = reader.receive, []

                def receive(seconds: float) -> list[object]:
                    taken.append(seconds)
                    if len(taken) > 20:  # in mid-stream, with lines that were read and not given
                        raise SourceUnavailable("lost", where="lines")
                    return list(real(seconds))

                reader.receive = receive
            return reader

    wrote(tmp_path, 0, 60)
    assert file_run(tmp_path, lambda: Shaky(tmp_path / "lines", SEGMENT_BYTES)).run(300, idle_seconds=0.5).segments > 10
    assert Shaky.connections == 4
    assert_has_every_line(tmp_path)


def test_what_waits_for_a_reply_is_durable_before_the_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply says an offset: the value log was synced up to there by then."""
    synced, replied = [0], []
    append, sync = ValueLog.append, ValueLog.sync
    pending: list[int] = []
    monkeypatch.setattr(ValueLog, "append", lambda log, one: (pending.append(one.end_pos), append(log, one))[1])
    monkeypatch.setattr(ValueLog, "sync", lambda log: (sync(log), synced.extend(pending), pending.clear())[0])

    class Asking(FileSource):
        def connect(self):  # type: ignore[no-untyped-def]
            reader = super().connect()
            real = reader.acknowledge

            def acknowledge() -> None:
                replied.append((reader.checkpoint.place.offset, max(synced)))
                real()

            reader.acknowledge = acknowledge
            return reader

    source = wrote(tmp_path, 0, 1)
    run = file_run(tmp_path, lambda: Asking(tmp_path / "lines", 1 << 20, promises=True))
    with Background(run):
        for number in range(1, 4):
            source.write(f"!waits {number}")
            until(lambda: told(tmp_path) == (tmp_path / "lines").stat().st_size)
    assert len(replied) == 3
    assert all(offset <= durable for offset, durable in replied)
    assert_has_every_line(tmp_path)


def test_a_value_log_that_promises_were_made_on_is_never_moved_aside(tmp_path: Path) -> None:
    """Another capture goes on in bronze; a log that doesn't follow is kept, and said, only where it was a promise."""
    wrote(tmp_path, 0, 30)
    file_run(tmp_path).run(300, idle_seconds=0.5)
    run = file_run(tmp_path, lambda: FileSource(tmp_path / "lines", SEGMENT_BYTES, promises=True))
    folder = value_log_folder(run.pipeline, "one", run.state_dir)
    newest = bronze_segments(tmp_path / "lake")[-1]
    log = ValueLog(folder)
    log.append(replace(newest, seq=newest.seq + 1, prev_commit_ts=newest.resolved_ts + 1))
    log.sync()
    log.close()
    with pytest.raises(Exception, match="the value log goes on with seq"):
        run.run(300)
    wrote(tmp_path, 30, 5)
    file_run(tmp_path).run(300, idle_seconds=0.5)
    assert list(folder.parent.glob("one.left-*"))
    assert_has_every_line(tmp_path)


def test_a_lake_that_stalls_is_followed_from_the_value_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, real = threading.Event(), bronze_file.write_file

    def write_file(*arguments: object) -> None:
        assert gate.wait(300)
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(bronze_file, "write_file", write_file)
    settings = {"slow_seconds": 0.2, "hold_seconds": 0.5, "return_seconds": 0.3}
    sizes = {"land_bytes": 1 << 19, "queue_bytes": 1 << 20}
    run = file_run(tmp_path, lambda: FileSource(tmp_path / "lines", 1 << 16), **settings, **sizes)
    folder = value_log_folder(run.pipeline, "one", run.state_dir)
    source = wrote(tmp_path, 0, 5)

    def state() -> str:
        found = status_file.read(folder) if folder.exists() else None
        return found.state if found else ""

    with Background(run):
        try:
            until(lambda: source.write(*["x" * 50_000] * 4) or state() == "chasing")
        finally:
            gate.set()
        source.write("last")
        size = (tmp_path / "lines").stat().st_size
        wait_for_bronze(tmp_path / "lake", lambda segments: segments[-1].end_pos == size)
        until(lambda: state() == "direct")
    assert_has_every_line(tmp_path)


def test_an_empty_lake_is_of_the_pipeline_that_captures_into_it_first(tmp_path: Path) -> None:
    """Two began in it, and each took the lake for its own until one of them applied."""
    wrote(tmp_path, 0, 10)
    file_run(tmp_path).run(300, idle_seconds=0.5)
    assert pipeline_of(LakeFiles(str(tmp_path / "lake"))) == "test"
    file_run(tmp_path).run(300, idle_seconds=0.5)
    run = file_run(tmp_path)
    other = replace(run, pipeline=run.pipeline.model_copy(update={"pipeline": "other"}), state_dir=tmp_path / "other")
    with pytest.raises(LakeRefused, match="this lake belongs to pipeline test"):
        other.run(300, idle_seconds=0.5)
    assert not (tmp_path / "other").exists()


def test_of_two_pipelines_that_begin_in_an_empty_lake_at_once_one_lands(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    first, second = (Bronze(lake, name, owner=f"pipeline_{name}") for name in ("a", "b"))
    assert first.last_segments() == second.last_segments() == []
    first.append([replace(one_segment(1), source="a")])
    with pytest.raises(LakeRefused, match="this lake belongs to pipeline pipeline_a"):
        second.append([replace(one_segment(1), source="b")])
    first.append([replace(one_segment(2), source="a")])


def test_a_lake_of_an_older_release_is_not_claimed_by_who_could_not_ask_whose_it_is(tmp_path: Path) -> None:
    """Its bronze names no owner. Capture goes on where that can't be read, and the lake answers a moment later."""
    lake = LakeFiles(str(tmp_path))
    Bronze(lake, "a").append([replace(one_segment(1), source="a")])
    append(lake, FOLLOWED, rows_of(1, "first", [FollowedChange("a", "followed", 1)], None, 0))
    with pytest.raises(LakeRefused, match="this lake belongs to pipeline first"):
        Bronze(lake, "b", owner="second").append([replace(one_segment(1), source="b")])
    again = Bronze(lake, "a", owner="first")
    again.last_segments()
    again.append([replace(one_segment(2), source="a")])


def test_a_source_that_forgot_what_comes_next_stops_capture(tmp_path: Path) -> None:
    wrote(tmp_path, 0, 10)
    file_run(tmp_path).run(300, idle_seconds=0.5)
    wrote(tmp_path, 10, 10)
    size = (tmp_path / "lines").stat().st_size
    with pytest.raises(PositionLost, match="forgotten"):
        file_run(tmp_path, lambda: FileSource(tmp_path / "lines", SEGMENT_BYTES, begins=size)).run(300)


def test_how_long_the_source_keeps_things_stands_in_the_status_file(tmp_path: Path) -> None:
    wrote(tmp_path, 0, 10)
    run = file_run(tmp_path)
    folder = value_log_folder(run.pipeline, "one", run.state_dir)

    def oldest_file() -> str:
        found = status_file.read(folder) if folder.exists() else None
        return found.retention.oldest_file if found and found.retention else ""

    with Background(run):
        until(lambda: oldest_file() == "lines")


def test_what_bronze_is_given_must_follow_as_the_source_has_it(tmp_path: Path) -> None:
    wrote(tmp_path, 0, 30)
    file_run(tmp_path).run(300, idle_seconds=0.5)
    source, lake = FileSource(tmp_path / "lines", SEGMENT_BYTES), LakeFiles(str(tmp_path / "lake"))
    bronze = Bronze(lake, "one", continues=source.check_continues)
    newest = bronze.last_segments()[-1]
    leap = replace(
        newest, seq=newest.seq + 1, prev_commit_ts=newest.resolved_ts, start_pos=newest.end_pos + 1, payload=b"x"
    )
    with pytest.raises(StreamCorrupt, match="expected lines:"):
        bronze.append([leap])


def test_importing_capture_brings_no_kind_of_source() -> None:
    """Not PyMySQL, no room of MySQL's, no kernel of its binlog."""
    program = (
        "import sys, tidegate.capture.run, tidegate.capture.standing\n"
        "print([name for name in sys.modules if name.startswith(('pymysql', 'tidegate.mysql', 'tidegate.binlog'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def told(folder: Path) -> int:
    file = folder / "acknowledged"
    return int(file.read_text() or 0) if file.exists() else 0
