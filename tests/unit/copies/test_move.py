"""A lake is at one place at any moment, whatever happens while it moves, and has all that anybody wrote."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any, Self

import pytest

from tests.kit.s3 import S3
from tests.unit.copies.lakes import FakeLake
from tidegate import tables
from tidegate.copies.move import move
from tidegate.errors import LakeRefused, LakeUnavailable, LeaseHeld, Overtaken
from tidegate.lake.format.unfinished import FOLDER, NAME
from tidegate.lake.jobs.leases import take_lease


@pytest.fixture
def target(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "moved")


def test_a_lake_that_moves(lake: FakeLake, target: FakeLake) -> None:
    def alone() -> Any:
        return take_lease(lake.files, "shop", "apply", report=[].append)

    with alone(), pytest.raises(LeaseHeld):
        move("shop", lake.files, target.files, alone, [].append)
    with pytest.raises(LakeRefused, match=r"a move of .* hasn't ended"):
        FakeLake(target.files.root).files.check_known()
    lake.write("silver/d/a")
    then = lake.versions()
    move("shop", FakeLake(lake.files.root).files, target.files, alone, [].append)
    there = FakeLake(target.files.root)
    there.files.check_known()
    assert there.versions() == then
    old = FakeLake(lake.files.root)
    with pytest.raises(LakeRefused, match="was moved to"):
        old.files.check_known()
    # A kill before the last step.
    target.files.store(FOLDER).replace(NAME, b'{"kind": "move", "pipeline": "shop", "other": "", "whole": null}')
    assert move("shop", old.files, target.files, alone, [].append) is None
    FakeLake(target.files.root).files.check_known()
    # The lake has gone on to a third place since.
    target.files.store(FOLDER).replace(NAME, b'{"kind": "moved", "pipeline": "shop", "other": "/third", "whole": null}')
    assert move("shop", old.files, target.files, alone, [].append) is None
    with pytest.raises(LakeRefused, match="was moved to /third"):
        FakeLake(target.files.root).files.check_known()


class _Lost:
    """Leases that are lost at the n-th check, from 1."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def check(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Overtaken("the lease is lost", where="", remedy="")


@pytest.mark.parametrize("at", [1, 2])
def test_a_move_that_lost_its_leases_leaves_the_lake_where_it_is(lake: FakeLake, target: FakeLake, at: int) -> None:
    """Somebody may have written to the lake since its copy."""
    with pytest.raises(Overtaken):
        move("shop", lake.files, target.files, lambda: _Lost(at), [].append)
    FakeLake(lake.files.root).files.check_known()
    with pytest.raises(LakeRefused, match=r"a move of .* hasn't ended"):
        FakeLake(target.files.root).files.check_known()
    lake.write("silver/d/a")
    move("shop", lake.files, target.files, lambda: _Lost(3), [].append)
    assert FakeLake(target.files.root).versions() == lake.versions()


class _Meanwhile(_Lost):
    """Somebody without a lease writes at these checks, counted from 1."""

    def __init__(self, lake: FakeLake, path: str, at: Container[int]) -> None:
        super().__init__(-1)
        self._lake, self._path, self._at = lake, path, at

    def check(self) -> None:
        super().check()
        if -1 - self.left in self._at:
            self._lake.write(self._path)


@pytest.mark.parametrize("path", ["control/table_states", tables.CUTS.path])
@pytest.mark.parametrize("at", [(1,), (2,), (1, 4)])
def test_what_a_person_says_while_a_lake_moves_moves_with_it(
    lake: FakeLake, target: FakeLake, path: str, at: tuple[int, ...]
) -> None:
    """An answer, or a verification, is written without a lease."""
    move("shop", lake.files, target.files, lambda: _Meanwhile(lake, path, at), [].append)
    there = FakeLake(target.files.root)
    there.files.check_known()
    assert there.versions() == lake.versions()


def test_a_lake_does_not_move_while_somebody_writes_all_the_time(lake: FakeLake, target: FakeLake) -> None:
    with pytest.raises(LakeUnavailable, match="changed each time"):
        move("shop", lake.files, target.files, lambda: _Meanwhile(lake, tables.CUTS.path, range(99)), [].append)
    FakeLake(lake.files.root).files.check_known()
    with pytest.raises(LakeRefused, match=r"a move of .* hasn't ended"):
        FakeLake(target.files.root).files.check_known()


def test_a_lake_that_moves_in_an_object_store(s3: S3) -> None:
    old, new = FakeLake(s3.folder(), s3.options), FakeLake(s3.folder(), s3.options)
    old.fill()
    old.write("silver/d/a")
    then = old.versions()
    move("shop", old.files, new.files, lambda: take_lease(old.files, "shop", "apply", report=[].append), [].append)
    FakeLake(new.files.root, s3.options).files.check_known()
    assert new.versions() == then
    with pytest.raises(LakeRefused, match="was moved to"):
        FakeLake(old.files.root, s3.options).files.check_known()
