"""A value log has one place, however many sources its pipeline has; one at its old place is brought there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.segments import segment
from tidegate.capture.value_log import folder as folder_module
from tidegate.capture.value_log.folder import aside, remove_left, settled_folder, value_log_folder
from tidegate.capture.value_log.log import ValueLog
from tidegate.config import Pipeline, parse
from tidegate.errors import Fenced, ValueLogError
from tidegate.segments.segment import Segment


def pipeline(shared: Path, *sources: str) -> Pipeline:
    given = ", ".join(f"{name}: {{conn_id: {name}, flavour: mysql}}" for name in sources)
    text = f"""
pipeline: p
lake: {{path: {shared.parent / "lake"}}}
sources: {{{given}}}
tables: {{include: ['*.*']}}
capture: {{value_log_path: {shared}}}
"""
    return parse(text, where="test")


def written(folder: Path, count: int = 9) -> list[Segment]:
    """Over several files."""
    log = ValueLog(folder, file_bytes=1500)
    segments = [segment(seq) for seq in range(1, count + 1)]
    for one in segments:
        log.append(one)
    log.sync()
    log.close()
    return segments


def in_log(folder: Path) -> list[Segment]:
    log = ValueLog(folder)
    try:
        return list(log.read())
    finally:
        log.close()


def test_another_source_in_the_pipeline_file_moves_no_log(tmp_path: Path) -> None:
    alone, both = pipeline(tmp_path / "v", "one"), pipeline(tmp_path / "v", "one", "two")
    segments = written(settled_folder(alone, "one", tmp_path))
    assert in_log(settled_folder(both, "one", tmp_path)) == segments
    assert in_log(settled_folder(alone, "one", tmp_path)) == segments
    assert not in_log(settled_folder(both, "two", tmp_path))


def test_a_log_right_in_the_shared_folder_is_brought_to_its_sources(tmp_path: Path) -> None:
    both = pipeline(tmp_path / "v", "one", "two")
    segments = written(tmp_path / "v")
    (tmp_path / "v" / "status.json").write_text("{}")
    assert settled_folder(both, "two", tmp_path) == tmp_path / "v" / "two"
    assert len(list((tmp_path / "v").glob("*.vlog"))) > 2, "it is the other one's"
    ValueLog(tmp_path / "v" / "one").close()  # one without a segment may be there
    folder = settled_folder(both, "one", tmp_path)
    assert folder == value_log_folder(both, "one", tmp_path) == tmp_path / "v" / "one"
    assert in_log(folder) == segments
    assert (folder / "status.json").exists()
    assert not list((tmp_path / "v").glob("*.vlog"))
    assert in_log(settled_folder(both, "one", tmp_path)) == segments


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_move_that_was_killed_is_ended_by_the_next_start(tmp_path: Path, at: int) -> None:
    alone, segments = pipeline(tmp_path / "v", "one"), written(tmp_path / "v", 12)
    script = f"""
from pathlib import Path
from tests.unit.capture.test_value_log_folder import pipeline
from tidegate.capture.value_log.folder import settled_folder
settled_folder(pipeline(Path({str(tmp_path / "v")!r}), "one"), "one", Path("unused"))
"""
    killed = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ
        | {"TIDEGATE_FAILPOINT": f"capture_log_half_moved:{at}", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert in_log(settled_folder(alone, "one", tmp_path)) == segments


def test_two_logs_are_refused_by_name(tmp_path: Path) -> None:
    alone = pipeline(tmp_path / "v", "one")
    written(tmp_path / "v")
    written(tmp_path / "v" / "one")
    with pytest.raises(ValueLogError, match=rf"{tmp_path}/v/one: source one has two value logs.*{tmp_path}/v;"):
        settled_folder(alone, "one", tmp_path)


@pytest.mark.parametrize("landed", ["old", "new", "both"])
def test_of_two_logs_the_one_that_bronze_has_all_of_is_moved_aside(tmp_path: Path, landed: str) -> None:
    """As after a downgrade: each release went on where it looked, behind what bronze had."""
    alone, place = pipeline(tmp_path / "v", "one"), tmp_path / "v" / "one"
    old, new = written(tmp_path / "v", 5), written(place, 9)
    has = {"old": {5}, "new": {9}, "both": {5, 9}}[landed]
    stays, goes = (old, new) if landed == "new" else (new, old)
    settled_folder(alone, "one", tmp_path, lambda one: one.seq in has)
    (left,) = (tmp_path / "v").glob("one.left-*")
    assert in_log(place) == stays
    assert in_log(left) == goes
    assert not list((tmp_path / "v").glob("*.vlog"))
    assert settled_folder(alone, "one", tmp_path) == place


def test_a_move_aside_that_was_killed_is_ended_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, place = pipeline(tmp_path / "v", "one"), tmp_path / "v" / "one"
    _, new = written(tmp_path / "v", 12), written(place, 14)
    moved: list[str] = []

    def killed(name: str) -> None:
        moved.append(name)
        if len(moved) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folder_module, "failpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            settled_folder(alone, "one", tmp_path, lambda one: one.seq <= 12)
    assert list((tmp_path / "v").glob("*.vlog"))
    assert in_log(settled_folder(alone, "one", tmp_path, lambda one: one.seq <= 12)) == new
    assert not list((tmp_path / "v").glob("*.vlog"))


def test_a_log_that_is_open_is_left_where_it_is(tmp_path: Path) -> None:
    alone, segments = pipeline(tmp_path / "v", "one"), written(tmp_path / "v")
    log = ValueLog(tmp_path / "v")
    with pytest.raises(Fenced, match="another process captures"):
        settled_folder(alone, "one", tmp_path)
    assert list(log.read()) == segments
    log.close()


def test_what_a_killed_process_wrote_is_on_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    written(tmp_path / "a" / "b" / "log", 1)

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", fsync)
    ValueLog(tmp_path / "a" / "b" / "log").close()
    assert tmp_path / "a" / "b" / "log" / "000001.vlog" in synced
    assert tmp_path / "a" / "b" in synced, "the name of the folder itself"
    synced.clear()
    ValueLog(tmp_path / "c" / "d" / "log").close()
    assert {tmp_path, tmp_path / "c", tmp_path / "c" / "d", tmp_path / "c" / "d" / "log"} <= set(synced)


def test_a_log_that_was_moved_aside_goes_after_some_weeks(tmp_path: Path) -> None:
    folder = tmp_path / "main"
    now = datetime.now(UTC)
    names = {days: f"main.left-{now - timedelta(days=days):%Y%m%dT%H%M%S%f}" for days in (1, 13, 15, 400)}
    others = ["main", "main.left-mine", "other.left-20200101T000000000000"]
    for name in (*names.values(), *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "000001.vlog").write_bytes(b"x")
    assert aside(folder).name.startswith("main.left-2")
    remove_left(folder)
    assert {path.name for path in tmp_path.iterdir()} == {names[1], names[13], *others}
