"""What an upgrade may meet: chains, old copies, lakes that say nothing of their format, stores."""

from __future__ import annotations

import dataclasses
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.kit.s3 import S3
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.stores import object_store
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.control.lake_upgrade import plan, upgrade
from tidegate.lake.control.upkeep import compact, drop_files
from tidegate.lake.files import LakeFiles
from tidegate.lake.format import migrations, version
from tidegate.lake.format.migrations import Migration
from tidegate.tables.format_table import FORMAT

NUMBER = pa.int64()
K, A, C = (pa.field(name, NUMBER, nullable=False, metadata={"comment": name}) for name in "kac")
B = pa.field("b", NUMBER, metadata={"comment": "b"})


def of(*fields: pa.Field) -> tables.Table:
    return dataclasses.replace(tables.LATENCY, schema=pa.schema(fields))


# What one table was, release by release: b came, then a became c, with the other sign.
FIRST, SECOND, THIRD = of(K, A), of(K, A, B), of(K, C, B)


def negated(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index("a"), C, pc.negate(rows["a"]))


NEXT = max(migration.number for migration in migrations.MIGRATIONS) + 1  # a format that this release doesn't know
CHAIN = (
    Migration(1, FIRST.path, "b came"),
    Migration(NEXT, FIRST.path, "a is c, positive", frozenset({"k", "a", "b"}), negated, later=(B,)),
)


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.server)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> LakeFiles:
    if request.param == "local":
        return LakeFiles(str(tmp_path))
    store: S3 = request.getfixturevalue("s3")
    return LakeFiles(store.folder(), store.options)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Before its `setattr` the code is the release that has the first of the chain, behind it one that has all."""
    monkeypatch.setattr(tables, "ALL", (THIRD,))
    monkeypatch.setattr(migrations, "MIGRATIONS", CHAIN[:1])
    monkeypatch.setattr(version, "_said", set())
    return monkeypatch


def again(lake: LakeFiles) -> LakeFiles:
    return LakeFiles(lake.root, lake.storage_options)


def test_a_table_from_before_a_column_came_goes_through_the_change_behind_it(
    lake: LakeFiles, newer: pytest.MonkeyPatch
) -> None:
    control.append(lake, FIRST, [{"k": 1, "a": -10}], ("app", 7))
    newer.setattr(migrations, "MIGRATIONS", CHAIN)
    lake = again(lake)
    assert control.read(lake, THIRD).to_pylist() == [{"k": 1, "c": 10, "b": None}]
    control.append(lake, THIRD, [{"k": 2, "c": 20, "b": 5}])
    assert sorted(control.read(again(lake), THIRD)["c"].to_pylist()) == [10, 20]
    assert control.application_version(lake, THIRD, "app") == 7


def test_filters_and_statistics_of_an_older_table_are_about_the_columns_that_a_change_makes(
    lake: LakeFiles, newer: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        control.append(lake, SECOND, [{"k": number, "a": -number, "b": number}])
    newer.setattr(migrations, "MIGRATIONS", CHAIN)
    lake = again(lake)
    large = control.read(lake, THIRD, columns=["k"], filters=[("c", ">=", 3)])
    assert sorted(large["k"].to_pylist()) == [3, 4]
    assert control.newest(lake, THIRD, by=["k"], order=["c"], columns=["c"]).num_rows == 5
    assert drop_files(lake, THIRD, "c", 2) in (None, (5, 3))  # by what the new files say: one file may hold all
    assert sorted(control.read(lake, THIRD)["c"].to_pylist())[-3:] == [2, 3, 4]
    assert compact(lake, THIRD, files_min=1) is not None
    assert sorted(control.read(again(lake), THIRD)["c"].to_pylist())[-3:] == [2, 3, 4]


def test_several_upgraders_beside_a_reader_upgrade_once(lake: LakeFiles, newer: pytest.MonkeyPatch) -> None:
    control.append(lake, SECOND, [{"k": number, "a": -number, "b": number} for number in range(30)])
    newer.setattr(migrations, "MIGRATIONS", CHAIN)
    is_over, wrong, errors = threading.Event(), [], []

    def reads() -> None:
        mine = again(lake)
        while not is_over.is_set():
            rows = sorted(control.read(mine, THIRD)["c"].to_pylist())
            if rows != list(range(30)):
                wrong.append(rows)

    def upgrades() -> None:
        try:
            upgrade(again(lake))
        except BaseException as error:  # noqa: BLE001 - of a thread
            errors.append(error)

    reader, upgraders = threading.Thread(target=reads), [threading.Thread(target=upgrades) for _ in range(3)]
    for thread in (reader, *upgraders):
        thread.start()
    for thread in upgraders:
        thread.join()
    is_over.set()
    reader.join()
    assert (wrong, errors) == ([], [])
    commits = [lake.log(THIRD.path).actions(number) or [] for number in range(lake.log(THIRD.path).state().version + 1)]
    made = [action["commitInfo"]["operation"] for actions in commits for action in actions if "commitInfo" in action]
    assert made.count("UPGRADE") == 1
    events = control.read(again(lake), FORMAT).sort_by("recorded_at")["event"].to_pylist()
    assert events == ["made", "begun", "done"]


def test_a_lake_from_before_there_were_formats_is_told_of_once(
    lake: LakeFiles, newer: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", version.__name__)
    control.append(lake, SECOND, [{"k": 1, "a": -1, "b": 1}])
    lake.delete_folder(FORMAT.path)
    newer.setattr(migrations, "MIGRATIONS", CHAIN)
    assert caplog.messages == []
    for _ in range(2):
        control.read(again(lake), THIRD)
    assert len([text for text in caplog.messages if "has format 0" in text]) == 1
    assert upgrade(again(lake))
    assert control.read(again(lake), FORMAT).sort_by("recorded_at")["event"].to_pylist() == ["begun", "done"]


def test_a_table_out_of_an_old_copy_is_upgraded_when_a_person_asks(tmp_path: Path, newer: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(str(tmp_path))
    control.append(lake, SECOND, [{"k": 1, "a": -1, "b": 1}])
    shutil.copytree(tmp_path / SECOND.path, tmp_path / "copy")
    newer.setattr(migrations, "MIGRATIONS", CHAIN)
    assert upgrade(again(lake))
    shutil.rmtree(tmp_path / SECOND.path)
    shutil.copytree(tmp_path / "copy", tmp_path / SECOND.path)
    lake = again(lake)
    assert control.read(lake, THIRD)["c"].to_pylist() == [1]
    assert [item.what for item in plan(lake)] == [f"migration {NEXT}: a is c, positive"]
    assert not upgrade(lake)  # apply's start doesn't look at each table
    assert upgrade(lake, every=True)
    assert not upgrade(again(lake), every=True)


def test_a_newer_lake_is_refused_by_name_by_capture_too(lake: LakeFiles) -> None:
    control.append(lake, SECOND, [{"k": 1, "a": -1, "b": 1}])
    lake.log(FORMAT.path).update(lambda _: Change([], "WRITE", {version.BEGUN_ID: 99}))
    for use in (
        lambda of: Bronze(of, "s").last_segments(),
        lambda of: control.read(of, SECOND),
        lambda of: control.append(of, SECOND, [{"k": 1, "a": 1, "b": 1}]),
        lambda of: of.log("silver/a/b"),
        upgrade,
    ):
        with pytest.raises(LakeRefused, match=r"format 99, written by a newer tidegate.*knows formats up to"):
            use(again(lake))


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that doesn't answer isn't asked again and again."""
    monkeypatch.setattr(object_store, "STORE_RETRY_SECONDS_MAX", 0.5)


@pytest.mark.server
@pytest.mark.usefixtures("_impatient")
def test_a_store_that_is_away_is_no_lake_of_an_unknown_format(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options | {"timeout": "1s", "connect_timeout": "1s", "max_retries": "0"})
    with s3.silent(), pytest.raises(LakeUnavailable):
        Bronze(lake, "s").last_segments()
    assert Bronze(lake, "s").last_segments() == []


@pytest.mark.server
@pytest.mark.usefixtures("_impatient")
def test_capture_of_this_machine_goes_on_from_its_value_log_while_the_lake_is_away(s3: S3, tmp_path: Path) -> None:
    lake = LakeFiles(s3.folder(), s3.options | {"timeout": "1s", "connect_timeout": "1s", "max_retries": "0"})
    with s3.silent():
        bronze = Bronze(lake, "s")  # before anything says whether the lake can be done without
        with pytest.raises(LakeUnavailable):
            bronze.last_segments()
