"""A quiet source's rows leave the value log by age, and a start without the lake still knows where it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.segments import segment
from tidegate.capture.recovery import recover
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import LakeUnavailable
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.limits import VALUE_LOG_FILE_SECONDS
from tidegate.mysql.stream.place import NOTHING
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

PLAIN = b"secret-4711"


def at(seq: int, seconds: float, payload: bytes = b"") -> Segment:
    """Cut so many seconds after the first; a heartbeat where it has no payload."""
    first = segment(seq, payload)
    return replace(
        first,
        flags=SegmentFlag(0),
        kind=SegmentKind.BINLOG if payload else SegmentKind.HEARTBEAT,
        start_pos=4,
        end_pos=11 if payload else 4,
        captured_at=first.captured_at + timedelta(seconds=seconds),
    )


QUIET = [at(1, 0, PLAIN), at(2, 300), at(3, VALUE_LOG_FILE_SECONDS), at(4, VALUE_LOG_FILE_SECONDS + 2)]


def captured(folder: Path, segments: Sequence[Segment]) -> ValueLog:
    """Each is in bronze when the next one comes."""
    log = ValueLog(folder)
    for each in segments:
        log.append(each)
        log.sync()
        log.gc(each.seq - 1)
    return log


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_a_quiet_sources_rows_leave_soon_after_they_landed(tmp_path: Path) -> None:
    captured(tmp_path, QUIET[:3]).close()
    assert PLAIN in bytes_of(tmp_path)  # a start without the lake needs bronze's newest segment
    log = captured(tmp_path, QUIET[3:])
    assert PLAIN not in bytes_of(tmp_path)
    assert [each.seq for each in log.read()] == [3, 4]
    log.close()


def test_the_age_of_a_file_goes_on_over_a_start(tmp_path: Path) -> None:
    for each in QUIET:
        captured(tmp_path, [each]).close()
    assert PLAIN not in bytes_of(tmp_path)


def test_a_clock_that_was_put_back_ends_a_file_too(tmp_path: Path) -> None:
    log = captured(tmp_path, [at(1, 0, PLAIN), at(2, -VALUE_LOG_FILE_SECONDS), at(3, -VALUE_LOG_FILE_SECONDS)])
    assert PLAIN not in bytes_of(tmp_path)
    log.close()


def without_lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Segment | None]:
    bronze, log = Bronze(LakeFiles(str(folder / "lake")), "one"), ValueLog(folder)

    def fails(_: Bronze) -> list[Segment]:
        raise LakeUnavailable("down", where="lake", remedy="wait")

    monkeypatch.setattr(Bronze, "last_segments", fails)
    try:
        recovered = recover(bronze, log, NOTHING)
    finally:
        log.close()
    return recovered.checkpoint.seq, recovered.tail


def test_a_start_without_the_lake_compares_the_servers_newest_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats alone are left. A server that lost its newest log would be believed otherwise."""
    captured(tmp_path, QUIET).close()
    head = replace(QUIET[0], context=b"", payload=b"")
    assert without_lake(tmp_path, monkeypatch) == (4, head)
    (tmp_path / "tail").write_bytes(b"damaged")
    assert without_lake(tmp_path, monkeypatch) == (4, None)


@pytest.mark.parametrize("point", ["capture_before_log_file_goes", "capture_before_log_file_goes:2"])
def test_killed_while_files_go_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Three files of ten minutes, whole in bronze: the first two go, at once."""
    later = [replace(at(1, 0, b"old")), at(2, 700, PLAIN), at(3, 1400), at(4, 1401)]
    log = ValueLog(tmp_path)
    for each in later:
        log.append(each)
    log.sync()
    log.close()
    program = "\n".join(
        [
            "from pathlib import Path",
            "from tidegate.capture.value_log.log import ValueLog",
            f"ValueLog(Path({str(tmp_path)!r})).gc(4)",
        ]
    )
    environment = os.environ | {"TIDEGATE_FAILPOINT": point, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == -9
    assert without_lake(tmp_path, monkeypatch) == (4, replace(later[1], context=b"", payload=b""))
    log = ValueLog(tmp_path)
    log.gc(4)
    assert PLAIN not in bytes_of(tmp_path)
    assert [each.seq for each in log.read()] == [3, 4]
    log.close()
    assert without_lake(tmp_path, monkeypatch) == (4, replace(later[1], context=b"", payload=b""))
