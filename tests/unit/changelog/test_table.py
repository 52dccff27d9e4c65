"""A changelog's window is one commit or none, and what is old leaves it as whole files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.maintain_steps.keep_changelogs import keep_changelogs
from spark_jobs.maintenance import Maintenance
from tests.kit.spark import no_spark
from tidegate import config, tables
from tidegate.changelog.changelog_table import PLACE, Appending, app_id, as_rows, changelog, changelogs, told
from tidegate.changelog.reading import ChangePlace, changes_after
from tidegate.commit_ts import compose
from tidegate.delta.log import Change
from tidegate.errors import Overtaken
from tidegate.lake import control
from tidegate.lake.control import pack
from tidegate.lake.files import LakeFiles
from tidegate.limits import CONTROL_PACKED_FILES_MIN

ORDERS = changelog("shop", "Orders 2")
ID = app_id("p", "shop.Orders 2")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def stamp(days: float) -> int:
    return compose(int(NOW.timestamp() * 1000 - days * 86_400_000))


def append(lake: LakeFiles, upto_ts: int, *stamps: int) -> None:
    appending = Appending(lake, ORDERS, ID)
    for at in stamps:
        appending.add(as_rows([told("insert", ("one", "shop", "Orders 2"), at)]))
    appending.commit(upto_ts)


def publish(lake: LakeFiles) -> None:
    row = {"cut_ts": stamp(0), "table": "", "delta_version": -1, "applied_ts": stamp(0), "state": "active"}
    control.append(lake, tables.CUTS, [row | {"published_at": NOW}])


def stamps_of(lake: LakeFiles) -> list[int]:
    rows = control.read(lake, ORDERS).sort_by([(name, "ascending") for name in PLACE])
    return [int(at) for at in rows["commit_ts"].to_pylist()]


def test_a_window_without_changes_makes_no_table_and_no_commit(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    append(lake, 5)
    assert not control.exists(lake, ORDERS)
    assert changelogs(lake) == []


def test_of_two_that_append_the_same_window_one_is_overtaken(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    append(lake, 5, 3, 1)
    first, second = (Appending(LakeFiles(str(tmp_path)), ORDERS, ID) for _ in range(2))
    for one in (first, second):
        assert one.from_ts == 5
        one.add(as_rows([told("insert", ("one", "shop", "Orders 2"), 7)]))
    first.commit(8)
    with pytest.raises(Overtaken, match="has appended to this changelog meanwhile"):
        second.commit(9)
    assert stamps_of(lake) == [1, 3, 7]
    assert Appending(lake, ORDERS, ID).from_ts == 8


def test_a_changelog_taken_back_while_a_window_is_written_gets_its_gap_by_the_next_try(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    append(lake, 5, 3, 1)
    appending = Appending(lake, ORDERS, ID)
    appending.add(as_rows([told("insert", ("one", "shop", "Orders 2"), 7)]))
    other = LakeFiles(str(tmp_path)).log(ORDERS.path)
    other.commit(other.state(), Change([], "OPTIMIZE"))
    other.commit(other.state(), Change([], "RESTORE"))
    with pytest.raises(Overtaken, match="RESTORE"):
        appending.commit(8)
    assert stamps_of(lake) == [1, 3]
    assert Appending(lake, ORDERS, ID).was_restored


def maintenance(lake: LakeFiles) -> Maintenance:
    text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['d.*']}\n"
    return Maintenance(no_spark, config.parse(text, where="p.yaml"), lake, lambda _: None, NOW)  # type: ignore[arg-type]


def test_old_changes_go_small_files_are_packed_and_what_is_recorded_stays(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    for days in (50, 40, 31):
        append(lake, stamp(days), stamp(days))
    ages = [29 - number / 10 for number in range(CONTROL_PACKED_FILES_MIN)]
    for days in ages:
        append(lake, stamp(days), stamp(days))
    publish(lake)
    job = maintenance(lake)
    keep_changelogs(job)
    assert stamps_of(lake) == sorted(map(stamp, [31, *ages]))
    assert [found.path for found in changelogs(lake)] == [ORDERS.path]
    state = lake.log(ORDERS.path).state()
    assert len(state.files) == 1
    assert state.transactions[ID] == stamp(ages[-1])
    assert [row["outcome"] for row in job.rows] == ["done", "done"]


def test_a_large_old_file_among_packed_ones_stays_as_long_as_they_do(tmp_path: Path) -> None:
    """A reader in the packed file, which begins before the large one, would miss it and not be told."""
    lake = LakeFiles(str(tmp_path))
    append(lake, stamp(50), stamp(50))
    append(lake, stamp(41), *(stamp(45) + number for number in range(2000)))
    for days in (40, 39):
        append(lake, stamp(days), stamp(days))
    found = control.load(lake, ORDERS)
    assert found is not None
    pack(lake, ORDERS, found, smaller_bytes=max(file.size for file in found.files))
    append(lake, stamp(10), stamp(10))
    publish(lake)
    reader = ChangePlace(stamp(50), "one", -1, 0)
    before = sum(rows.num_rows for rows in changes_after(lake, ORDERS, reader, stamp(0)))
    assert before == 2003
    keep_changelogs(maintenance(lake))
    left = sum(rows.num_rows for rows in changes_after(lake, ORDERS, reader, stamp(0)))
    assert left == before
