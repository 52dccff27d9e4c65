"""Backups are whole: whatever goes, comes or dies while they are made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.kit.s3 import S3
from tests.unit.copies.lakes import CUTS_ID, FakeLake, backup, restore
from tidegate import tables
from tidegate.capture.owing import Owing
from tidegate.capture.value_log.log import ValueLog
from tidegate.copies import copied_table as table
from tidegate.copies import place
from tidegate.copies.backup import Backup
from tidegate.copies.restore import Restore
from tidegate.delta.log import Change
from tidegate.delta.object_names import LAST_CHECKPOINT, checkpoint_name
from tidegate.delta.table.actions import add
from tidegate.errors import LakeRefused, StrayValueLog, UsageError
from tidegate.lake.format.unfinished import FOLDER, NAME


@pytest.fixture
def target(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "backup")


@pytest.fixture
def again(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "again")


def test_what_is_put_back_is_what_was_there(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    made = backup(lake, target)
    restore(target, again)
    assert again.versions() == lake.versions()
    assert b"".join(again.place.read("control/value_logs/one/log.json")) == b"{}"
    names = {file.path.split("/")[0] for file in again.place.files("")}
    assert names == {"bronze", "control", "silver", "changelog"}
    assert not list(again.place.files("control/leases"))
    assert made.brought_files > 0
    again.files.check_known()


def test_what_is_there_is_not_copied_again(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    backup(lake, target)
    assert backup(lake, target).brought_files == 0
    lake.write("silver/d/a")
    lines: list[str] = []
    assert backup(lake, target, lines).brought_files == 2, "a file and a commit"
    assert [line.split(":")[0] for line in lines] == ["silver/d/a", "silver/d/a"]
    restore(target, again)
    assert again.versions() == lake.versions()


def test_an_earlier_backup_counts_until_the_next_one_has_ended(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(lake, target)
    then = lake.versions()
    lake.write("silver/d/a")
    lake.write(tables.SEGMENTS.path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Backup, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            backup(lake, target)
    restore(target, again)
    assert again.versions() == then


def test_files_that_go_meanwhile(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM takes what the version needed that was chosen: a newer one is."""
    old, *_ = (file for file in lake.versions()["silver/d/b"][1])
    copy_file, gone = place.copy_file, list[str]()

    def meanwhile(source: Any, to: Any, path: str, size: int) -> None:
        if path == f"silver/d/b/{old}" and not gone:
            gone.append(path)
            lake.write("silver/d/b")
            lake.drop("silver/d/b", old)
        copy_file(source, to, path, size)

    monkeypatch.setattr(table, "copy_file", meanwhile)
    monkeypatch.setattr(Backup, "_fill", lambda _: None)
    backup(lake, target)
    assert gone
    restore(target, again)
    assert again.versions() == lake.versions()


def test_a_table_that_lacks_a_file_is_named(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    then = lake.versions()
    name = next(iter(then.pop("silver/d/b")[1]))
    lake.place.remove(f"silver/d/b/{name}")
    work = Backup("shop", lake.files, target.files, [].append)
    made = work.run()
    assert made.lacks.keys() == {"silver/d/b"}
    assert name in made.lacks["silver/d/b"]
    restore(target, again)
    assert again.versions() == then


@pytest.mark.parametrize(("kind", "where"), [("p", "file:///elsewhere/vector.bin"), ("u", "abc"), ("x", "abc")])
def test_a_table_whose_deletion_vector_lies_elsewhere_is_named(
    lake: FakeLake, target: FakeLake, kind: str, where: str
) -> None:
    """As of a shallow clone, or of a damaged log; all others are copied."""
    log = lake.log("silver/d/b")
    vector = {"storageType": kind, "pathOrInlineDv": where, "offset": 1, "sizeInBytes": 9, "cardinality": 1}
    body = {"path": lake.write("silver/d/b"), "size": 10, "partitionValues": {}, "modificationTime": 1}
    change = Change([add(body | {"deletionVector": vector}, data_change=True)], "WRITE", {})
    log.commit(log.state(), change)
    made = Backup("shop", lake.files, target.files, [].append).run()
    assert made.lacks.keys() == {"silver/d/b"}
    assert "deletion vector" in made.lacks["silver/d/b"]


def test_a_table_that_was_made_anew(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    backup(lake, target)
    for file in list(lake.place.files("silver/d/a")):
        lake.place.remove(f"silver/d/a/{file.path}")
    for _ in range(2):
        lake.write("silver/d/a")
    lines: list[str] = []
    backup(lake, target, lines)
    assert any("was made anew" in line for line in lines)
    restore(target, again)
    assert again.versions() == lake.versions()


def test_a_table_that_was_put_back_to_an_older_version(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    backup(lake, target)
    lake.place.remove("silver/d/a/_delta_log/00000000000000000001.json")
    backup(lake, target)
    lake.write("silver/d/a")
    backup(lake, target)
    restore(target, again)
    assert again.versions() == lake.versions()


def test_control_is_as_it_was_at_one_moment(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that ends while control is read: the copy has all of it or nothing, and what came later isn't there."""
    looks = Backup._versions
    writes = iter(range(3))

    def meanwhile(work: Backup) -> dict[str, int]:
        found = looks(work)
        if next(writes, None) is not None:
            lake.write(tables.SCHEMA_HISTORY.path)
            lake.write(tables.CUTS.path, app=(CUTS_ID, 8))
        return found

    monkeypatch.setattr(Backup, "_versions", meanwhile)
    backup(lake, target)
    lake.write(tables.CUTS.path, app=(CUTS_ID, 9))
    restore(target, again)
    found = again.versions()
    assert found[tables.CUTS.path][0] == found[tables.SCHEMA_HISTORY.path][0] == 3


def test_a_new_source_meanwhile_has_its_columns_in_the_copy(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal, once = Backup._large, list[int]()

    def meanwhile(work: Backup) -> list[str]:
        if len(once) == 1:  # behind control
            lake.write(tables.SCHEMA_HISTORY.path)
            lake.write(tables.SEGMENTS.path, app=(tables.capture_app_id("two"), 1))
        once.append(1)
        return seal(work)

    monkeypatch.setattr(Backup, "_large", meanwhile)
    backup(lake, target)
    restore(target, again)
    assert again.versions() == lake.versions()


def test_a_value_log_that_owes_is_remembered_whenever_it_began(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = Backup._newest

    def meanwhile(work: Backup, paths: Any) -> Any:
        lake.place.write("control/value_logs/one/late.json", [b"{}"])
        lake.place.remove("control/value_logs/one/log.json")
        return newest(work, paths)

    with monkeypatch.context() as patch:
        patch.setattr(Backup, "_newest", meanwhile)
        backup(lake, target)
    restore(target, again)
    assert [file.path for file in again.place.files("control/value_logs")] == ["one/late.json", "one/log.json"]
    backup(lake, target)
    assert [file.path for file in target.place.files("control/value_logs")] == ["one/late.json"]


def test_a_source_that_cannot_send_again_waits_for_a_person_once_its_lake_is_put_back(
    lake: FakeLake, target: FakeLake, again: FakeLake, tmp_path: Path
) -> None:
    """What a Pump got between the backup and the loss of the lake was acknowledged, and landed there alone."""
    backup(lake, target)
    work = Restore("shop", target.files, again.files, [].append, ["pump"])
    work.check()
    work.run()
    owing, log = Owing(again.files, "pump"), ValueLog(tmp_path / "log")
    with pytest.raises(StrayValueLog, match=f"backup {target.files.root} replaced") as raised:
        owing.begin(log)
    (debt,) = owing.debts()
    assert f"--source pump --forget {debt.log}`" in raised.value.remedy
    owing.forget(debt.log)
    assert owing.begin(log)
    log.close()


def test_without_silver(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    backup(lake, target, silver=False)
    restore(target, again)
    assert {path.split("/")[0] for path in again.versions()} == {"bronze", "control"}


def test_who_is_refused(lake: FakeLake, target: FakeLake, again: FakeLake, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no backup"):
        restore(target, again)
    with pytest.raises(UsageError, match="is inside the other"):
        backup(lake, FakeLake(tmp_path / "lake" / "backup"))
    with pytest.raises(UsageError, match="isn't a backup"):
        backup(FakeLake(tmp_path / "other"), lake)
    backup(lake, target)
    with pytest.raises(UsageError, match="a backup of pipeline shop"):
        Backup("other", lake.files, target.files, [].append).run()
    with pytest.raises(LakeRefused, match="this is a backup of"):
        FakeLake(target.files.root).files.check_known()
    with pytest.raises(UsageError, match="isn't empty: it has bronze/"):
        restore(target, lake)


def test_a_restore_that_was_killed_is_no_lake_and_goes_on(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(lake, target)

    def killed(name: str) -> None:
        if name == "copy_before_log":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(table, "failpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            restore(target, again)
    with pytest.raises(LakeRefused, match=r"a restore of it from .* hasn't ended"):
        FakeLake(again.files.root).files.check_known()
    restore(target, again)
    FakeLake(again.files.root).files.check_known()
    assert again.versions() == lake.versions()


def test_a_checkpoint_that_is_made_meanwhile_is_not_named_by_the_copy(
    lake: FakeLake, target: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs opens no table whose `_last_checkpoint` names one that isn't there."""
    path = "silver/d/a"
    version = lake.log(path).state().version

    def checkpointed(name: str) -> None:
        if name == "copy_before_log":
            log = f"{path}/_delta_log"
            lake.place.write(f"{log}/{checkpoint_name(version)}", [b"PAR1"])
            lake.place.write(f"{log}/{LAST_CHECKPOINT}", [json.dumps({"version": version, "size": 4}).encode()])

    with monkeypatch.context() as patch:
        patch.setattr(table, "failpoint", checkpointed)
        between = table.copying(lake.files, target.files, lambda _: None)
        assert table.TableCopy(between, path).run() is not None
        between.pool.shutdown()
    assert DeltaTable(target.files.uri(path)).version() == version
    assert LAST_CHECKPOINT not in {file.path for file in target.place.files(f"{path}/_delta_log")}


@pytest.mark.parametrize("lost", ["", "control", "control/schema_history", "bronze"])
@pytest.mark.parametrize(("recheck", "anew"), [(False, False), (True, False), (False, True)])
def test_a_lake_that_lost_its_control_takes_no_backups_place(
    lake: FakeLake, target: FakeLake, again: FakeLake, lost: str, recheck: bool, anew: bool
) -> None:
    """Its disk isn't there, or somebody removed a folder: just then the backup is needed."""
    backup(lake, target)
    then = lake.versions()
    for file in list(lake.place.files(lost)):
        lake.place.remove(f"{lost}/{file.path}")
    now = FakeLake(lake.files.root)
    if anew:
        for _ in range(3):
            now.fill()
    with pytest.raises(LakeRefused, match="isn't the lake of the earlier backup any more"):
        Backup("shop", now.files, target.files, [].append, recheck=recheck).run()
    restore(target, again)
    assert again.versions() == then


def test_a_table_that_the_lake_lost_is_named(lake: FakeLake, target: FakeLake) -> None:
    backup(lake, target)
    for file in list(lake.place.files("silver/d/a")):
        lake.place.remove(f"silver/d/a/{file.path}")
    lines: list[str] = []
    backup(lake, target, lines)
    assert any("silver/d/a was in the earlier backup" in line for line in lines)


def test_a_backup_that_lost_a_file_of_a_quiet_table_has_it_again(
    lake: FakeLake, target: FakeLake, again: FakeLake
) -> None:
    backup(lake, target)
    name = next(iter(lake.versions()["silver/d/a"][1]))
    target.place.remove(f"silver/d/a/{name}")
    target.place.remove(f"silver/d/b/_delta_log/{0:020}.json")
    work = Backup("shop", lake.files, target.files, [].append, recheck=True)
    work.run()
    assert work.brought_files == 2
    restore(target, again)
    assert again.versions() == lake.versions()


def test_a_backup_that_lost_a_file_is_refused_by_its_name(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    backup(lake, target)
    name = next(iter(target.versions()["silver/d/b"][1]))
    target.place.remove(f"silver/d/b/{name}")
    with pytest.raises(LakeRefused, match=name):
        restore(target, again)


@pytest.mark.parametrize("path", ["../elsewhere/file", "/etc/file", "control/value_logs/../../../file"])
def test_a_paper_that_names_files_outside_of_the_lake(
    lake: FakeLake, target: FakeLake, again: FakeLake, path: str
) -> None:
    backup(lake, target)
    store = target.files.store(FOLDER)
    document = json.loads(store.get(NAME) or b"")
    document["whole"]["small"][path] = 2
    store.replace(NAME, json.dumps(document).encode())
    with pytest.raises(LakeRefused, match="can't be read"):
        restore(target, again)


def test_in_an_object_store(s3: S3, lake: FakeLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "COPY_PART_BYTES", 5 << 20)
    lake.write("silver/d/b", size=12 << 20)
    target, again = FakeLake(s3.folder(), s3.options), FakeLake(s3.folder(), s3.options)
    backup(lake, target)
    lake.write("silver/d/a")
    backup(lake, target)
    assert backup(lake, target).brought_files == 0
    restore(target, again)
    assert again.versions() == lake.versions()
    back = FakeLake(tmp_path / "back")
    restore(target, back)
    assert back.versions() == lake.versions()
    sizes = {file.path: file.size for file in lake.place.files("silver")}
    assert {file.path: file.size for file in back.place.files("silver")} == sizes


def test_half_a_file_is_none(s3: S3, tmp_path: Path) -> None:
    def torn() -> Iterator[bytes]:
        for _ in range(3):
            yield b"x" * (8 << 20)
        raise place.GoneMeanwhileError("f")

    for target in (place.place_of(str(tmp_path), {}), place.place_of(s3.folder(), s3.options)):
        with pytest.raises(place.GoneMeanwhileError):
            target.write("d/f", torn())
        assert list(target.files("")) == []
