"""Where many tables are written by every window they take turns in being packed: no window waits for all of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.apply_steps import compact_silver as step
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.window import TableWindow, Window
from tests.kit.spark import no_spark
from tidegate import config
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.limits import UPKEEP_SECONDS_MIN
from tidegate.upsert.target import StagePhase, UpsertTarget

TEXT = """
pipeline: p
lake: {path: unused}
sources: {s: {conn_id: c, flavour: mysql}}
tables: {include: ['d.*']}
apply: {parallel_tables: 1}
"""


class Clock:
    """Time passes by packing alone."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


def compacted(app: Application, names: list[str]) -> None:
    window = Window(0, 10, [])
    layout: Any = None
    plans = {}
    for name in names:
        target = UpsertTarget(name, f"silver/d/{name}", (StagePhase(0, 10, layout),))
        window.taking.tables[name] = TableWindow(name, "d", name, routed=False, after_ts=0)
        plans[name] = TablePlan(target=target)
    step.compact_silver(app, window, plans, names)


def test_who_waited_longest_is_packed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path))
    app = Application(BackgroundSession(no_spark), config.parse(TEXT, where="p.yaml"), lake, BronzeIndex(lake))
    packed: list[str] = []
    clock = Clock()

    def compact(_app: Application, path: str, *_: object) -> None:
        packed.append(path[-1])
        clock.now += UPKEEP_SECONDS_MIN * 0.6

    monkeypatch.setattr(step, "compact", compact)
    monkeypatch.setattr(step, "time", clock)
    names = list("abcde")
    compacted(app, names)
    assert packed == ["a", "b"]
    compacted(app, names)
    compacted(app, names)
    assert packed == ["a", "b", "c", "d", "e"]
