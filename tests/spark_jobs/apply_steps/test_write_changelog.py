"""Rows of a window's changelogs that wait in memory for their files: one by one and together they have a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps import write_changelog as step
from tidegate.changelog.changelog_table import Appending, as_rows, changelog, told
from tidegate.lake import control
from tidegate.lake.files import LakeFiles

ROW_BYTES = 1000


def rows_of(count: int) -> list[dict[str, object]]:
    return [told("insert", ("one", "d", "t"), number, after="x" * ROW_BYTES) for number in range(count)]


def test_the_largest_become_files_when_one_is_large_or_all_are_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "CHANGELOG_FILE_BYTES", 20 * ROW_BYTES)
    monkeypatch.setattr(step, "CHANGELOG_PENDING_BYTES", 30 * ROW_BYTES)
    lake, names = LakeFiles(str(tmp_path)), ["a", "b", "c", "d", "e"]
    made = [Appending(lake, changelog("d", name), name) for name in names]
    for number, one in enumerate(made):
        one.add(as_rows(rows_of(5 + number)))
        step._write_large(made)
        assert sum(other.pending_bytes for other in made) < 30 * ROW_BYTES
    assert [bool(one.pending_bytes) for one in made] == [True, True, True, True, False]
    made[0].add(as_rows(rows_of(16)))
    step._write_large(made)
    assert made[0].pending_bytes == 0
    for one in made:
        one.commit(1 << 20)
    counts = [control.read(lake, changelog("d", name)).num_rows for name in names]
    assert counts == [21, 6, 7, 8, 9], "what became a file early is in the window's commit"
