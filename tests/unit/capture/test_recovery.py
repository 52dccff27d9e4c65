"""Where a run goes on: the value log must continue bronze's own last segment, not just its number."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.segments import segment
from tidegate.capture.lander import Backlog, Lander, LanderSettings
from tidegate.capture.recovery import check_reaches, open_and_recover, recover
from tidegate.capture.value_log.log import Budget, ValueLog
from tidegate.config import Pipeline, parse
from tidegate.errors import Fenced, LakeLost, StreamCorrupt
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import CATCHING_UP, FollowedChange, Selection, rows_of
from tidegate.mysql.stream.place import NOTHING
from tidegate.segments.segment import Segment
from tidegate.tables import CUTS, FOLLOWED, LEDGER, SegmentFlag

SETTINGS = LanderSettings(land_bytes=3000, queue_bytes=6000, slow_seconds=0.2, hold_seconds=0.3, return_seconds=0.5)


def cut(seq: int, start: int, end: int) -> Segment:
    """Of a source with a transaction in each byte: its commit_ts is its position."""
    return replace(
        segment(seq, b"x" * (end - start)),
        start_pos=start,
        end_pos=end,
        prev_commit_ts=start,
        min_commit_ts=start + 1,
        max_commit_ts=end,
        resolved_ts=end,
        flags=SegmentFlag(0),
    )


OURS = [cut(1, 4, 100), cut(2, 100, 200), cut(3, 200, 300), cut(4, 300, 400), cut(5, 400, 500)]
# Another capture of the same source, with a value log of its own, landed smaller segments under the same numbers.
THEIRS = [OURS[0], cut(2, 100, 150), cut(3, 150, 250)]


@pytest.fixture
def bronze(tmp_path: Path) -> Bronze:
    return Bronze(LakeFiles(str(tmp_path / "lake")), "one")


def written(folder: Path, segments: Sequence[Segment]) -> ValueLog:
    log = ValueLog(folder / "log")
    for one in segments:
        log.append(one)
    log.sync()
    return log


def flush_for(lander: Lander, seconds: float) -> None:
    """Raises what the lander's thread failed with."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        lander.flush()


def test_a_value_log_that_leaps_over_what_another_capture_landed_is_refused(bronze: Bronze, tmp_path: Path) -> None:
    bronze.append(THEIRS)
    log = written(tmp_path, OURS)
    try:
        with pytest.raises(Fenced, match=r"binlog.000001:300.*move it away"):
            recover(bronze, log, NOTHING)
    finally:
        log.close()


@pytest.mark.parametrize("promised", [False, True])
def test_it_is_moved_aside_unless_commits_were_acknowledged_on_its_strength(
    bronze: Bronze, tmp_path: Path, *, promised: bool
) -> None:
    """A worker that capture comes back to, after it had gone on at another one."""
    bronze.append(THEIRS)
    written(tmp_path, OURS).close()
    if promised:
        with pytest.raises(Fenced, match="move it away"):
            open_and_recover(bronze, tmp_path / "log", Budget(None, 0), NOTHING, promised=True)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("log")] == ["log"]
        return
    log, recovered = open_and_recover(bronze, tmp_path / "log", Budget(None, 0), NOTHING, promised=False)
    log.close()
    assert (recovered.checkpoint.seq, recovered.checkpoint.place.offset, recovered.backlog) == (3, 250, None)
    (aside,) = (path for path in tmp_path.iterdir() if path.name.startswith("log."))
    kept = ValueLog(aside)
    assert [record.segment.seq for record in kept.heads()] == [1, 2, 3, 4, 5]
    kept.close()


@pytest.mark.parametrize("ends", [3, 5])
def test_the_same_when_the_lake_could_be_asked_only_later(bronze: Bronze, tmp_path: Path, ends: int) -> None:
    """ends: the log's last seq; 3 is bronze's, too, of another segment."""
    bronze.append(THEIRS)
    log = written(tmp_path, OURS[:ends])
    try:
        lander = Lander(bronze, log, SETTINGS)
        lander.begin(Backlog(None, list(log.heads())[-1].pointer, 0))
        with pytest.raises(Fenced, match=r"binlog.000001:300.*move it away"), lander:
            flush_for(lander, 10)
    finally:
        log.close()
    assert bronze.last_segments()[-1].seq == 3


def test_segments_that_dont_continue_bronzes_commit_ts_are_never_appended(bronze: Bronze) -> None:
    bronze.append(THEIRS)
    with pytest.raises(StreamCorrupt, match="bronze ends at 250"):
        bronze.append(OURS[3:])
    assert bronze.last_segments()[-1].seq == 3


def test_a_lake_that_goes_while_it_is_read_is_away_not_broken(bronze: Bronze, tmp_path: Path) -> None:
    bronze.append(OURS[:3])
    log = written(tmp_path, OURS)
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()
    try:
        recovered = recover(bronze, log, NOTHING)
    finally:
        log.close()
    assert recovered.newest is None, "bronze couldn't be asked"
    assert recovered.checkpoint.seq == 5


def test_a_value_log_that_continues_bronze_lands(bronze: Bronze, tmp_path: Path) -> None:
    bronze.append(OURS[:3])
    log = written(tmp_path, OURS)
    try:
        recovered = recover(bronze, log, NOTHING)
    finally:
        log.close()
    assert recovered.backlog is not None
    assert recovered.backlog.first is not None
    assert (recovered.checkpoint.seq, recovered.checkpoint.place.offset) == (5, 500)


def followed(lake: LakeFiles, kind: str, cut_ts: int, *changes: FollowedChange) -> Pipeline:
    """A pipeline of a source, and another one, that apply follows up to a cut. kind: the source's part of the file."""
    text = (
        f"pipeline: p\nlake: {{path: {lake.root}}}\nsources: {{one: {{{kind}}}, two: {{conn_id: b, flavour: mysql}}}}\n"
    )
    pipeline = parse(f"{text}tables: {{include: ['*.*']}}\n", where="test")
    control.append(lake, FOLLOWED, rows_of(1, "p", changes, Selection.of(pipeline), 0))
    row = {"cut_ts": cut_ts, "table": "", "delta_version": -1, "applied_ts": cut_ts, "state": "active"}
    control.append(lake, CUTS, [row | {"published_at": datetime.now(UTC)}], ("tidegate/p/cuts", cut_ts))
    return pipeline


@pytest.mark.parametrize(
    ("landed", "logged", "ends"), [(5, 0, ""), (2, 5, ""), (2, 0, "ends at"), (0, 0, "has nothing")]
)
def test_a_bronze_that_ends_before_silvers_position_is_refused(
    bronze: Bronze, tmp_path: Path, landed: int, logged: int, ends: str
) -> None:
    """It was lost, or an older copy was put back. The value log may have what it lacks."""
    lake = LakeFiles(str(tmp_path / "lake"))
    pipeline = followed(lake, "conn_id: a, flavour: mariadb", 500)
    if landed:
        bronze.append(OURS[:landed])
    log = written(tmp_path, OURS[:logged])
    try:
        recovered = recover(bronze, log, NOTHING)
    finally:
        log.close()
    if not ends:
        check_reaches(recovered, lake, pipeline, "one")
        return
    with pytest.raises(LakeLost, match=rf"silver has one up to .*, and bronze {ends}.*or begin a new lake"):
        check_reaches(recovered, lake, pipeline, "one")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("conn_id: a, flavour: mariadb", [FollowedChange("one", CATCHING_UP, 200)]),
        ("conn_id: a, flavour: tidb, listen: ['unix:/x']", []),
    ],
    ids=["a source behind the cut", "a Pump that joined at the cut"],
)
def test_what_apply_hasnt_taken_yet_needs_no_bronze(
    bronze: Bronze, tmp_path: Path, kind: str, changes: list[FollowedChange]
) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    pipeline = followed(lake, kind, 500, *changes)
    bronze.append(OURS[:2])
    log = written(tmp_path, [])
    try:
        check_reaches(recover(bronze, log, NOTHING), lake, pipeline, "one")
    finally:
        log.close()


@pytest.mark.parametrize("applied", [False, True])
def test_a_pump_begins_unless_its_writes_were_applied(bronze: Bronze, tmp_path: Path, *, applied: bool) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    pipeline = followed(lake, "conn_id: a, flavour: tidb, listen: ['unix:/x']", 500)
    counts = dict.fromkeys(("payload_bytes", "decoded_bytes", "ignored_bytes", "quarantined_bytes", "rows"), 0)
    row = counts | {"source": "one" if applied else "two", "seq": 1, "cut_ts": 500, "ignored_by_rule": "{}"}
    control.append(lake, LEDGER, [row])
    log = written(tmp_path, [])
    try:
        recovered = recover(bronze, log, NOTHING)
    finally:
        log.close()
    if not applied:
        check_reaches(recovered, lake, pipeline, "one")
        return
    with pytest.raises(LakeLost, match=r"silver has one up to .*, and bronze has nothing of it"):
        check_reaches(recovered, lake, pipeline, "one")
