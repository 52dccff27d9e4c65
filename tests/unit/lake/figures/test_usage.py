"""Usage of capture and apply, a row a minute: old rows are sums, and a lake that is away delays nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.lake.figures.test_timeline import NOW
from tidegate.errors import LakeUnavailable
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.figures import usage
from tidegate.lake.figures.timeline import STEPS, timeline
from tidegate.lake.figures.usage import Meter, age_seconds, every_seconds, summed, tree_cpu_seconds, used_steps
from tidegate.lake.files import LakeFiles
from tidegate.tables.usage_table import USAGE, UsedBy

HOUR, DAY, WEEK = 3600.0, 86_400.0, 7 * 86_400.0


def row(
    ago: float,
    cpu: float,
    *,
    seconds: float = 60.0,
    work: UsedBy = UsedBy.APPLY,
    of: str = "p",
    lag: float | None = None,
) -> dict[str, object]:
    gap = None if lag is None else 2.0
    cells = {"work": str(work), "of": of, "ended_ms": int((NOW - ago) * 1000), "seconds": seconds}
    return cells | {"cpu_seconds": cpu, "lag_seconds": lag, "gap_seconds": gap}


def edges(seconds: float) -> list[float]:
    return [NOW - seconds + seconds / STEPS * number for number in range(STEPS + 1)]


def test_cpu_of_all_sources_is_shown_where_it_was_used(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, USAGE, [row(90, 6.0), row(600, 3.0)])
    sources = [row(30, 1.5, work=UsedBy.CAPTURE, of=name) for name in ("eu", "us")]
    control.append(lake, USAGE, sources)
    known = timeline(lake, NOW, HOUR)
    assert known.apply_cpu[-3:] == (pytest.approx(0.05), pytest.approx(0.05), None), "not yet appended is no 0"
    assert known.apply_cpu[-11] == pytest.approx(0.05)
    assert known.apply_cpu[-5] == 0.0, "nothing worked then"
    assert known.apply_cpu[0] is None
    assert known.capture_cpu[-2:] == (pytest.approx(0.025), pytest.approx(0.025))
    assert timeline(LakeFiles(str(tmp_path / "new")), NOW, HOUR).apply_cpu == (None,) * STEPS


def test_an_older_days_lag_and_pace_are_shown_though_its_cuts_are_thinned(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, USAGE, [row(6 * HOUR, 1.0, lag=2 * HOUR), row(3 * HOUR, 1.0, lag=4.0)])
    known = timeline(lake, NOW, DAY)
    step = DAY / STEPS
    at = STEPS - int(6 * HOUR / step) - 1
    assert known.lag[at] == pytest.approx(2 * HOUR)
    assert known.lag[at - 2] == pytest.approx(2 * HOUR - 2 * step, abs=step), "it grew to that"
    assert known.lag[at - 6] is None
    assert known.window_seconds[at] == 2.0
    assert known.lag[STEPS - int(3 * HOUR / step) - 1] == 4.0


def test_a_week_of_many_sources_is_a_few_thousand_rows_and_shows_the_same(tmp_path: Path) -> None:
    """Summed again they stay as they are, and the newest hours are kept by the minute."""
    lake = LakeFiles(str(tmp_path))
    every = every_seconds(50)
    assert every == 300.0
    names = [f"s{number}" for number in range(50)]
    rows = [
        row(ago, 3.0, seconds=every, work=UsedBy.CAPTURE, of=name)
        for name in names
        for ago in range(0, int(9 * DAY), int(every))
    ]
    control.append(lake, USAGE, rows)
    before = used_steps(lake, edges(WEEK))
    assert rewrite(lake, USAGE, lambda found: summed(found, NOW)) is not None
    assert rewrite(lake, USAGE, lambda found: summed(found, NOW)) is None
    left = control.read(lake, USAGE)
    assert left.num_rows < len(names) * (36 + 45 * 4 + 6 * 12 + 4)
    assert used_steps(LakeFiles(str(tmp_path)), edges(WEEK)).cpu[UsedBy.CAPTURE] == pytest.approx(
        before.cpu[UsedBy.CAPTURE], rel=0.05
    )
    assert used_steps(LakeFiles(str(tmp_path)), edges(HOUR)).cpu[UsedBy.CAPTURE][-10] == pytest.approx(0.5, rel=0.01)
    assert summed(left.slice(0, 0), NOW).num_rows == 0


def test_a_meter_appends_a_row_when_it_is_due_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, used = 1000.0, 5.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    lake = LakeFiles(str(tmp_path))
    meter = Meter(lake, UsedBy.APPLY, "p", 60.0, cpu=lambda _: used)
    meter.cut(3.0)
    clock += 4
    meter.cut(1.0)
    meter.tick()
    assert not (tmp_path / USAGE.path).exists()
    clock, used = clock + 56, used + 7
    meter.tick()
    clock, used = clock + 9, used + 1
    meter.close()  # too short to be a row
    (only,) = control.read(lake, USAGE).to_pylist()
    assert (only["seconds"], only["cpu_seconds"], only["lag_seconds"], only["gap_seconds"]) == (60.0, 7.0, 3.0, 4.0)
    clock, used = clock + 5, used + 1
    meter.close()
    assert sorted(control.read(lake, USAGE)["cpu_seconds"].to_pylist()) == [2.0, 7.0]


def test_a_lake_that_is_away_delays_nothing_and_gets_the_rows_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, away = LakeFiles(str(tmp_path)), True
    append = control.append

    def refuse(*arguments: object) -> int:
        if away:
            raise LakeUnavailable("away")
        return append(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(usage.control, "append", refuse)
    meter = Meter(lake, UsedBy.CAPTURE, "s", 0.0, cpu=lambda _: 1.0)
    for _ in range(3):
        meter.tick()
        assert meter._appending is not None
        meter._appending.join()
    away = False
    meter.tick()
    assert meter._appending is not None
    meter._appending.join()
    assert control.read(lake, USAGE).num_rows == 4


def test_many_small_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "USAGE_FILES_MAX", 8)
    lake = LakeFiles(str(tmp_path))
    meter = Meter(lake, UsedBy.CAPTURE, "s", 0.0, cpu=lambda _: 1.0)
    for _ in range(20):
        meter.tick()
        assert meter._appending is not None
        meter._appending.join()
    assert len(lake.log(USAGE.path).state().files) <= 9
    assert control.read(lake, USAGE).num_rows == 20


def test_the_work_of_children_counts_those_that_have_ended_too(tmp_path: Path) -> None:
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    before = tree_cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert tree_cpu_seconds(os.getpid()) - before >= 0.28, "to a tick"
    waits = f"{burn}\nprint('done', flush=True)\ninput()"
    child = subprocess.Popen(
        [sys.executable, "-c", waits],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        before = tree_cpu_seconds(os.getpid())
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert tree_cpu_seconds(child.pid) >= 0.3
        assert 0.3 <= age_seconds(child.pid) < time.monotonic()
        assert age_seconds(-1) == 0.0
        meter = Meter(LakeFiles(str(tmp_path)), UsedBy.APPLY, "p", 0.0, child.pid)
        meter.tick()
        assert meter._appending is not None
        meter._appending.join()
        (first,) = control.read(LakeFiles(str(tmp_path)), USAGE).to_pylist()
        assert first["seconds"] >= first["cpu_seconds"] >= 0.3, "with its start"
    finally:
        child.communicate(b"\n")


def test_a_lake_without_usage_is_an_older_one(tmp_path: Path) -> None:
    used = used_steps(LakeFiles(str(tmp_path)), edges(HOUR))
    assert used.lag == (None,) * STEPS
    assert summed(pa.Table.from_pylist([], schema=USAGE.schema), NOW).num_rows == 0
