"""Silver's lag after a quiet time counts from the first change that waits, not from the old cut."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kit.decoding import segment
from tests.kit.pipeline_views import NOW, table, view
from tidegate import config, tables
from tidegate.capture.standing import SourceAnswer, standing
from tidegate.commit_ts import compose
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.tables import State


def test_a_change_after_a_quiet_time_is_as_late_as_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut was of 500 s ago: `status` said that silver is 8 min behind."""
    lake, now = LakeFiles(str(tmp_path / "lake")), time.time()

    def at(seconds_ago: float) -> int:
        return compose(int((now - seconds_ago) * 1000))

    cut = {"cut_ts": at(500), "table": "", "delta_version": 1, "applied_ts": at(500), "state": "active"}
    control.append(lake, tables.CUTS, [cut | {"published_at": datetime.fromtimestamp(now - 499, UTC)}])
    first = replace(
        segment(b"", b""), source="main", seq=1, min_commit_ts=at(600), max_commit_ts=at(600), resolved_ts=at(500)
    )
    last = replace(first, seq=2, prev_commit_ts=at(500), min_commit_ts=at(3), max_commit_ts=at(3), resolved_ts=at(3))
    bronze = Bronze(lake, "main")
    bronze.append([first])
    bronze.append([last])
    text = (
        f"pipeline: p\nlake: {{path: {lake.root}}}\nsources: {{main: {{conn_id: m, flavour: mariadb}}}}\n"
        "tables: {include: ['a.*']}\n"
    )
    monkeypatch.setattr("time.time", lambda: now)  # a busy machine may have taken long up to here
    answer = SourceAnswer(last.server_id, f"{last.file}:{last.end_pos}")
    known = standing(config.parse(text, where="p.yaml"), lake, lambda _: answer)
    assert known.lag_seconds == pytest.approx(3, abs=0.1)
    assert not known.nothing_missing


def test_a_held_table_whose_rows_are_asked_for_is_behind_since_it_stands() -> None:
    """It is shown as being filled, and was shown as little behind as the pipeline."""
    since = compose(int((NOW - 3600) * 1000))
    asked, filled = table("shop.a", State.SNAPSHOT, since), table("shop.b", State.SNAPSHOT)
    of = view(held=False).standing
    assert of is not None
    assert of.seconds_behind(filled) == of.lag_seconds
    assert (of.seconds_behind(asked) or 0.0) > 3600
