"""The last run of maintain as the page has it: its own rows, whatever older runs left in the same file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.figures.maintained import LeftStep, MaintainStep, last_maintain
from tidegate.lake.files import LakeFiles

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


def row(
    minute: int, table: str, step: str, outcome: str = "done", files: tuple[int, int] = (4, 1)
) -> dict[str, object]:
    cells = {"at": NOON + timedelta(minutes=minute), "table": table, "step": step, "outcome": outcome}
    sizes = {"files_before": files[0], "files_after": files[1], "bytes_before": 100, "bytes_after": 80}
    return {**cells, **sizes, "seconds": 1.5, "detail": f"{step} of {table}"}


def test_a_run_is_its_own_rows(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    assert last_maintain(lake) is None
    control.append(lake, tables.MAINTENANCE, [row(0, "s.a", "cluster"), row(1, "s.b", "cluster")])
    done = [row(60, "s.a", "cluster"), row(61, "s.a", "vacuum"), row(62, "s.c", "cluster", files=(9, 2))]
    undone = [row(63, "s.c", "vacuum", "left"), row(64, "s.d", "cluster", "gave way")]
    control.append(lake, tables.MAINTENANCE, done + undone)
    last = last_maintain(lake)
    assert last is not None
    assert last.ended_at == (NOON + timedelta(minutes=64)).timestamp()
    assert last.steps == (
        MaintainStep("cluster", 2, 13, 3, 200, 160, 3.0),
        MaintainStep("vacuum", 1, 4, 1, 100, 80, 1.5),
    )
    assert last.left == (
        LeftStep("s.c", "vacuum", "left", "vacuum of s.c"),
        LeftStep("s.d", "cluster", "gave way", "cluster of s.d"),
    )


def test_of_two_runs_in_one_file_the_newer_counts(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    runs = [row(minute, f"s.t{number}", "cluster") for minute in (0, 60) for number in range(30)]
    control.append(lake, tables.MAINTENANCE, runs)
    last = last_maintain(lake)
    assert last is not None
    assert [(step.step, step.tables) for step in last.steps] == [("cluster", 30)]


def test_many_failures_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, tables.MAINTENANCE, [row(0, f"s.t{number}", "cluster", "left") for number in range(500)])
    last = last_maintain(lake)
    assert last is not None
    assert (last.steps, len(last.left), last.left_count) == ((), 20, 500)
