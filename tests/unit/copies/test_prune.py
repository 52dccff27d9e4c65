"""A pruned backup has what its own version and the lake need, whenever prune dies and whoever else writes there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.s3 import S3
from tests.unit.copies.lakes import FakeLake, restore
from tidegate.copies import prune
from tidegate.copies.backup import Backup
from tidegate.copies.manifest import CopyManifest
from tidegate.copies.prune import Prune
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.object_names import commit_name
from tidegate.errors import LakeUnavailable, Overtaken

TABLE = "silver/d/a"


@pytest.fixture
def target(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "backup")


@pytest.fixture
def again(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "again")


def copied(lake: FakeLake, target: FakeLake) -> CopyManifest:
    return Backup("shop", lake.files, target.files, [].append).run()


def pruned(
    lake: FakeLake, target: FakeLake, made: CopyManifest, held: Callable[[], None] = lambda: None, *, dry: bool = False
) -> Prune:
    work = Prune(lake.files, target.files, [].append, held, dry)
    work.run(made)
    return work


def files(lake: FakeLake) -> dict[str, int]:
    return {file.path: file.size for file in lake.place.files("") if not file.path.startswith("control/")}


def checkpointed(lake: FakeLake, path: str) -> int:
    log = lake.log(path)
    version = log.state().version
    checkpoint_write.write(log.store, version, now_ms=time.time_ns() // 1_000_000)
    return version


def grown(lake: FakeLake, target: FakeLake) -> CopyManifest:
    """The lake has lost a data file that it replaced and the log before a checkpoint; the backup has them."""
    copied(lake, target)
    lake.drop(TABLE, next(iter(lake.versions()[TABLE][1])))
    version = checkpointed(lake, TABLE)
    lake.log(TABLE).store.delete([commit_name(number) for number in range(version)])
    return copied(lake, target)


def test_what_neither_needs_goes(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    made = grown(lake, target)
    before = files(target)
    would = pruned(lake, target, made, dry=True)
    assert files(target) == before
    work = pruned(lake, target, made)
    gone = before.keys() - files(target).keys()
    assert (work.files, work.bytes) == (would.files, would.bytes) == (len(gone), sum(before[path] for path in gone))
    assert sorted(path.rpartition(".")[2] for path in gone) == ["json", "json", "parquet"]
    ours = {path: size for path, size in files(lake).items() if not path.startswith("staging/")}
    assert files(target) == ours
    restore(target, again)
    assert again.versions() == lake.versions()
    assert pruned(lake, target, made).files == 0
    assert copied(lake, target).tables == made.tables


def test_what_older_versions_in_the_lake_need_stays(lake: FakeLake, target: FakeLake) -> None:
    """Older cuts are read in a restored lake as in the lake itself."""
    copied(lake, target)
    log, first = lake.log(TABLE), next(iter(lake.versions()[TABLE][1]))
    kept = b"".join(lake.place.read(f"{TABLE}/{first}"))
    lake.drop(TABLE, first)
    lake.place.write(f"{TABLE}/{first}", [kept])  # VACUUM keeps it for a week
    made, before = copied(lake, target), files(target)
    assert pruned(lake, target, made).files == 0
    assert files(target) == before
    assert log.state_at(0) == FakeLake(lake.files.root).log(TABLE).state_at(0)


def test_the_last_copy_of_what_the_lake_lost_stays(lake: FakeLake, target: FakeLake) -> None:
    copied(lake, target)
    for file in list(lake.place.files(TABLE)):
        lake.place.remove(f"{TABLE}/{file.path}")
    lake.place.remove(f"silver/d/b/{next(iter(lake.versions()['silver/d/b'][1]))}")
    made, before = copied(lake, target), files(target)
    assert not made.lacks, "the backup still has the file"
    work = pruned(lake, target, made)
    assert work.files == 0
    assert work.strange == [TABLE]
    assert files(target) == before


def test_the_lake_loses_all_behind_the_backup(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    made, then = grown(lake, target), lake.versions()
    for file in list(lake.place.files("")):
        lake.place.remove(file.path)
    before = files(target)
    pruned(lake, target, made)
    assert files(target) == before
    restore(target, again)
    assert again.versions() == then


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_killed_anywhere(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    made, reached = grown(lake, target), iter(range(1, 10))

    def killed(_: str) -> None:
        if next(reached) == nth:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prune, "failpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            pruned(lake, target, made)
    assert target.log(TABLE).state_at(made.tables[TABLE].version) is not None
    restore(target, again)
    assert again.versions() == lake.versions()
    pruned(lake, target, made)
    assert {path for path in files(target) if path.startswith(TABLE)} == {
        path for path in files(lake) if path.startswith(TABLE)
    }


def test_another_backup_in_the_same_folder(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    made = grown(lake, target)

    def lost() -> None:
        raise Overtaken("the lease is lost", where="", remedy="")

    before = files(target)
    with pytest.raises(Overtaken):
        pruned(lake, target, made, lost)
    lake.write(TABLE)
    copied(lake, target)  # it ended, and this prune is still of the one before
    with pytest.raises(LakeUnavailable, match="another backup ended"):
        pruned(lake, target, made)
    assert before.keys() <= files(target).keys()
    restore(target, again)
    assert again.versions() == lake.versions()


def test_a_backup_that_lost_its_lease_doesnt_end(lake: FakeLake, target: FakeLake, again: FakeLake) -> None:
    copied(lake, target)
    then = lake.versions()
    lake.write(TABLE)
    checks: Iterator[bool] = iter([True])

    def held() -> None:
        if next(checks, None) is not None:
            raise Overtaken("the lease is lost", where="", remedy="")

    with pytest.raises(Overtaken):
        Backup("shop", lake.files, target.files, [].append, held=held).run()
    restore(target, again)
    assert again.versions() == then


def test_in_an_object_store(s3: S3, tmp_path: Path) -> None:
    lake, target = FakeLake(s3.folder(), s3.options), FakeLake(s3.folder(), s3.options)
    lake.fill()
    made = grown(lake, target)
    assert pruned(lake, target, made).files == 3
    back = FakeLake(tmp_path / "back")
    restore(target, back)
    assert back.versions() == lake.versions()
