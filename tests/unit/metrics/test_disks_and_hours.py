"""Disks that run low and hours that don't come: what is measured, and what is told, once each."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.pipeline_views import CUT, NOW, pipeline, table, view
from tidegate import config
from tidegate.cli.check import disk_lines
from tidegate.commit_ts import compose
from tidegate.config import Alert, Completeness, Pipeline
from tidegate.limits import ALERT_OVER_SECONDS
from tidegate.metrics.disks import DISKS, Disk, disks, folders
from tidegate.metrics.hours import ALL, overdue
from tidegate.metrics.measured import samples
from tidegate.metrics.notices import Notices
from tidegate.metrics.rules import RULES, says
from tidegate.mysql.checking.examination import SourceVerdict
from tidegate.pipelines import PipelineView
from tidegate.tables import State

HOUR = 3600.0


class Usage(NamedTuple):
    """As shutil's."""

    total: int
    used: int
    free: int


TEXT = (
    "pipeline: shop\nlake: {path: %s}\ntables: {include: ['*.*']}\nsources: {eu: {conn_id: eu, flavour: mariadb}}\n%s"
)


def _pipeline(lake: str, more: str = "") -> Pipeline:
    return config.parse(TEXT % (lake, more), where="shop.yaml")


def test_the_disks_are_those_of_the_lake_of_capture_and_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'fast'},/other")
    own = _pipeline(str(tmp_path / "lake"))
    assert set(folders(own, tmp_path)) == {"lake", "spark"}, "capture isn't here"
    (tmp_path / "value_log" / "shop" / "eu").mkdir(parents=True)
    assert tuple(folders(own, tmp_path)) == DISKS
    assert folders(own, tmp_path)["spark"] == tmp_path / "fast"
    assert "lake" not in folders(_pipeline("s3://bucket/lake"), tmp_path)
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    conf = _pipeline("s3://b/l", f"apply: {{spark_conf: {{spark.local.dir: {tmp_path}}}}}\n")
    assert folders(conf, tmp_path)["spark"] == tmp_path
    real = disks(own, tmp_path)
    assert all(0 <= disk.free <= disk.total for disk in real.values())
    assert set(real) == set(DISKS), "a folder that isn't made yet is measured where it will be"


def test_check_says_how_much_room_there_is_and_warns_of_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _pipeline(str(tmp_path / "lake"), "alerts: {bounds: {disk_low: 0.2}}\n")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 * 10**9, 85 * 10**9, 15 * 10**9))
    lines = disk_lines(own, tmp_path)
    assert [line.of for line in lines] == ["disk of lake", "disk of value log", "disk of spark"]
    assert {line.verdict for line in lines} == {SourceVerdict.CAUTION}
    assert "15.0 GB of 100.0 GB are free where " in lines[0].text
    by_itself = disk_lines(_pipeline(str(tmp_path)), tmp_path)
    assert {line.verdict for line in by_itself} == {SourceVerdict.NOTE}


def _look(look: PipelineView, notices: Notices, room: dict[str, Disk]) -> list[str]:
    return [change.line for change in notices.take_in(says(look, samples(look, None, room)), look.at)]


def test_a_disk_that_runs_low_is_told_once_and_its_end_once() -> None:
    look, notices = view(held=False), Notices(pipeline())
    low = {"lake": Disk(Path("/l"), 100 * 10**9, 4 * 10**9), "spark": Disk(Path("/t"), 100, 50)}
    fine = low | {"lake": Disk(Path("/l"), 100 * 10**9, 60 * 10**9)}
    told = list[str]()
    for step in range(60):
        told += _look(replace(look, at=NOW + 30 * step), notices, low)
    assert told == ["the disk of lake has 4.0 GB left. " + RULES[Alert.DISK_LOW].do]
    assert _look(replace(look, at=NOW + 3000), notices, {}) == [], "a disk that doesn't answer isn't well"
    told = []
    for step in range(int(ALERT_OVER_SECONDS / 30) + 20):
        told += _look(replace(look, at=NOW + 3100 + 30 * step), notices, fine)
    assert told == ["Over: Disks are nearly full: lake."]


def _hourly(look: PipelineView, *tables: str) -> PipelineView:
    part = Completeness(hourly=True, tables=tables)
    return replace(look, pipeline=look.pipeline.model_copy(update={"completeness": part}))


def test_hours_are_overdue_by_what_waits() -> None:
    over = NOW % HOUR  # since the last whole hour
    look = _hourly(view(held=False), "shop.orders_00001", "shop.orders_00002", "shop.none")
    assert dict(overdue(look)) == {"shop.orders_00001": 0, "shop.orders_00002": 0, "shop.none": None, ALL: 0}
    assert dict(overdue(replace(look, pipeline=pipeline()))) == {}, "nobody asked for hours"
    stands = look.standing
    assert stands is not None
    held = replace(table("shop.orders_00001", State.HELD), since="2026-09-21T11:30:00+00:00")
    at_hold = 1_790_000_000 - 1_789_990_200  # 11:30 to NOW
    waits = replace(look, standing=replace(stands, tables=(held, *stands.tables[2:])))
    figures = dict(overdue(waits))
    assert figures["shop.orders_00001"] == figures[ALL] == at_hold - HOUR / 2, "the hour of 11:00 was over at 12:00"
    assert figures["shop.orders_00002"] == 0
    reads = replace(look, standing=replace(stands, tables=(table("shop.orders_00001", State.SNAPSHOT),)))
    assert dict(overdue(reads))["shop.orders_00001"] is None
    old = compose(int((NOW - over - 2 * HOUR - 60) * 1000))
    late = replace(look, standing=replace(stands, cut_ts=old))
    assert dict(overdue(late))["shop.orders_00002"] == pytest.approx(over + 2 * HOUR, abs=0.1)
    gone = replace(stands.sources[0], behind_ts=old)
    behind = replace(look, standing=replace(stands, sources=(gone, *stands.sources[1:])))
    assert dict(overdue(behind))["shop.orders_00002"] == 0
    assert dict(overdue(behind))[ALL] == pytest.approx(over + 2 * HOUR, abs=0.1)
    assert CUT


def test_an_overdue_hour_is_told_once_with_its_table_and_its_end_once() -> None:
    look = _hourly(view(held=False), "shop.orders_00001")
    assert look.standing is not None
    held = replace(table("shop.orders_00001", State.HELD), since="2026-09-21T11:30:00+00:00")
    waits = replace(look, standing=replace(look.standing, tables=(held, table("shop.b"))))
    notices, told = Notices(look.pipeline), list[str]()
    for step in range(200):
        told += _look(replace(waits, at=NOW + 30 * step), notices, {})
    hours = [line for line in told if "hour" in line.lower()]
    assert len(hours) == 1
    assert hours[0].startswith("Hours are overdue (2): *, shop.orders_00001. `tidegate status shop`")
    end, told = NOW + 6100, []
    fresh = replace(look.standing, cut_ts=compose(int((end + 1000) * 1000)))
    for step in range(20):
        told += _look(replace(look, standing=fresh, at=end + 30 * step), notices, {})
    assert [line for line in told if "ours" in line] == ["Over: Hours are overdue (2): *, shop.orders_00001."]
