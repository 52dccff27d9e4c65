"""A verification of large tables says what it does: its log was silent for minutes.

In:  steps as SilverSide takes them, with a pause that ends soon.
Out: the lines.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.kit.pipeline_views import pipeline
from tidegate.lake.files import LakeFiles
from tidegate.verify.step_lines import StepLines, VerifyStep
from tidegate.verify.verification import _rows_of


def test_lines_come_by_themselves_until_the_end() -> None:
    lines: list[str] = []
    third = threading.Event()

    def report(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            third.set()

    with StepLines(report, seconds=0.01) as progress:
        progress.tables = 4
        assert third.wait(60)
    count = len(lines)
    assert set(lines) == {"0 of 4 tables done"}
    assert not threading.Event().wait(0.1)
    assert len(lines) == count, "nothing is said after the end"


def test_a_line_says_what_is_compared_how_far_and_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 130.0, 200.0, 290.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = StepLines(rows_of={"shop.orders": 12_000_000}.get)
    progress.tables, progress.done = 5, 3
    progress.begin("shop.orders", VerifyStep.READS)
    progress.add(1_000_000)
    progress.add(2_000_000)
    assert (
        progress.line
        == "shop.orders: 3,000,000 of about 12,000,000 rows read at the source, 100,000 rows/s; 3 of 5 tables done"
    )
    progress.begin("shop.orders", VerifyStep.COMPARES, 3_000_000)
    assert progress.line == "shop.orders: 3,000,000 rows are compared with silver since 90.0 s; 3 of 5 tables done"


def test_without_a_cut_nobody_knows_how_many_rows_silver_has(tmp_path: Path) -> None:
    assert _rows_of(pipeline(), LakeFiles(str(tmp_path)), "shop.orders") is None
