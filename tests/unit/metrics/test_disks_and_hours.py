"""Disks that run low and hours that don't come: what is measured, and what is told, once each."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.pipeline_views import CUT, NOW, pipeline, table, view
from tidegate import config
from tidegate.capture import status_file
from tidegate.cli.check import disk_lines
from tidegate.commit_ts import compose
from tidegate.config import Alert, Completeness, Pipeline, Verify
from tidegate.limits import ALERT_OVER_SECONDS
from tidegate.metrics.disks import DISKS, Disk, disks, folders
from tidegate.metrics.hours import ALL, overdue, overdue_words
from tidegate.metrics.measured import samples
from tidegate.metrics.notices import Notices
from tidegate.metrics.rules import RULES, says
from tidegate.mysql.checking.examination import SourceVerdict
from tidegate.patience import Patience
from tidegate.pipelines import PipelineView
from tidegate.tables import State

HOUR = 3600.0
GB = 10**9


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
    assert all(disk is not None and 0 <= disk.free <= disk.total for disk in real.values())
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


def _look(look: PipelineView, notices: Notices, room: dict[str, Disk | None]) -> list[str]:
    return [change.line for change in notices.take_in(says(look, samples(look, None, room)), look.at)]


def test_a_disk_that_runs_low_is_told_once_and_its_end_once() -> None:
    look, notices = view(held=False), Notices(pipeline())
    low: dict[str, Disk | None] = {
        "lake": Disk(Path("/l"), 100 * 10**9, 4 * 10**9),
        "spark": Disk(Path("/t"), 100 * GB, 50 * GB),
    }
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


@pytest.mark.parametrize(
    ("total", "free", "is_low"),
    [(100 * GB, 9 * GB, True), (100 * GB, 11 * GB, False), (4 * GB, GB, True), (4 * GB, 2 * GB, False), (GB, GB, True)],
)
def test_a_disk_is_low_by_its_share_and_by_its_bytes(total: int, free: int, is_low: bool, tmp_path: Path) -> None:
    """A tenth of a tiny disk is less than capture leaves free: it would stop before anybody is told."""
    look = view(held=False)
    said = says(look, samples(look, None, {"spark": Disk(Path("/t"), total, free)}))[Alert.DISK_LOW]
    assert bool(said.so) is is_low
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: Usage(total, total - free, free))
        lines = disk_lines(_pipeline("s3://b/l"), tmp_path)
    assert {line.verdict for line in lines} == {SourceVerdict.CAUTION if is_low else SourceVerdict.NOTE}


def test_a_mount_that_hangs_holds_nobody_up_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statvfs of a dead server's mount never comes back, and no signal ends it."""
    back, asked = threading.Event(), list[Path]()

    def usage(folder: Path) -> Usage:
        asked.append(folder)
        if folder == tmp_path:
            back.wait(60)
        return Usage(100 * GB, 50 * GB, 50 * GB)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr("tidegate.metrics.disks._PATIENCE", Patience(0.2))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/")
    own = _pipeline(str(tmp_path))
    began = time.monotonic()
    rooms = [disks(own, tmp_path / "state") for _ in range(3)]
    assert time.monotonic() - began < 5
    assert rooms == [{"lake": None, "spark": Disk(Path("/"), 100 * GB, 50 * GB)}] * 3
    assert asked.count(tmp_path) == 1, "one thread hangs, not one a look"
    lines = disk_lines(own, tmp_path / "state")
    assert [line.verdict for line in lines if line.of == "disk of lake"] == [SourceVerdict.UNKNOWN]
    look, notices, told = view(held=False), Notices(pipeline()), list[str]()
    for step in range(10):
        told += _look(replace(look, at=NOW + 30 * step), notices, rooms[0])
    rule = RULES[Alert.DISK_SILENT]
    assert told == [f"the disk of lake doesn't answer, and nobody knows its room. {rule.do}"]
    back.set()
    for _ in range(50):
        if (room := disks(own, tmp_path / "state"))["lake"] is not None:
            break
        time.sleep(0.1)
    told = []
    for step in range(10):
        told += _look(replace(look, at=NOW + 600 + 30 * step), notices, room)
    assert told == ["Over: Disks don't answer: lake."]


def test_a_stale_mount_is_one_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(_: Path) -> Usage:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(shutil, "disk_usage", stale)
    assert disks(_pipeline("s3://b/l"), tmp_path) == {"spark": None}


def test_the_status_of_a_capture_whose_disk_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = threading.Event()
    monkeypatch.setattr(status_file, "read", lambda _: back.wait(60) or None)
    monkeypatch.setattr(status_file, "_PATIENCE", Patience(0.2))
    began = time.monotonic()
    assert status_file.read_all(_pipeline("s3://b/l"), tmp_path) == {}
    assert time.monotonic() - began < 5
    back.set()


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
    assert hours[0].startswith("Hours are overdue (2): all tables (shop.orders_00001 waits), shop.orders_00001. DAGs")
    end, told = NOW + 6100, []
    fresh = replace(look.standing, cut_ts=compose(int((end + 1000) * 1000)))
    for step in range(20):
        told += _look(replace(look, standing=fresh, at=end + 30 * step), notices, {})
    assert [line for line in told if "ours" in line] == ["Over: Hours are overdue (2): all tables, shop.orders_00001."]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "shop.orders_00000 waits"),
        (3, "shop.orders_00000, shop.orders_00001, shop.orders_00002 wait"),
        (1207, f"{', '.join(f'shop.orders_0000{number}' for number in range(5))} and 1,202 more wait"),
    ],
)
def test_an_hour_of_all_tables_names_those_that_wait_and_counts_the_others(count: int, words: str) -> None:
    look = _hourly(view(2000, held=False))
    assert look.standing is not None
    names = [each.table for each in look.standing.tables]
    held = [replace(table(name, State.HELD), since="2026-09-21T11:30:00+00:00") for name in names[:count]]
    stands = replace(look.standing, tables=(*held, *look.standing.tables[count:]))
    waits = replace(look, standing=stands)
    assert says(waits, samples(waits))[Alert.HOUR_OVERDUE].so == {
        ALL: f"an hour of all tables is over for 2.2 h and isn't complete: {words}"
    }
    named = [each.labels[1] for each in samples(waits) if each.metric == "tidegate_waiting_table_overdue_seconds"]
    assert named == names[: min(count, 5)]


def test_an_hour_of_all_tables_says_what_else_it_waits_for() -> None:
    look = _hourly(view(held=False))
    assert look.standing is not None
    old = compose(int((NOW - 7300) * 1000))
    late = replace(look, standing=replace(look.standing, cut_ts=old))
    assert overdue_words(late) == {ALL: "silver itself is behind"}
    eu, us = look.standing.sources
    behind = replace(look, standing=replace(look.standing, sources=(eu, replace(us, behind_ts=old))))
    assert overdue_words(behind) == {ALL: "the cut goes on without us"}
    assert overdue_words(look) == {}


@pytest.mark.parametrize(
    ("hours", "days", "is_told"), [(None, 3, True), (24, 3, True), (168, 7, False), (0, 99, False)]
)
def test_never_verified_is_told_unless_the_pipeline_file_says_by_hand(
    hours: int | None, days: int, is_told: bool
) -> None:
    look = view(held=False)
    assert look.standing is not None
    own = look.pipeline.model_copy(update={"verify": Verify(each_table_hours=hours)})
    stands = replace(look.standing, first_cut_at=NOW - days * 24 * HOUR)
    never = replace(look, pipeline=own, standing=stands, verified={})
    said = says(never, samples(never))[Alert.VERIFICATION_OLD].so
    assert said == ({"": f"not verified for {days} days"} if is_told else {})
