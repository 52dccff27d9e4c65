"""Copies while apply works: how far apart what belongs together lies, and what a quiet table costs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.copies.lakes import CUTS_ID, ONE, FakeLake, backup, restore
from tidegate import tables
from tidegate.copies import copied_table as table
from tidegate.copies import place
from tidegate.copies.backup import Backup
from tidegate.copies.copied_table import TableCopy
from tidegate.delta.stores.store import LocalStore

TABLES = [f"silver/d/t{number}" for number in range(12)]
WINDOW_BYTES = 1000


class Load:
    """An apply whose every window has WINDOW_BYTES of bronze and writes to all tables, then its cut."""

    def __init__(self, lake: FakeLake) -> None:
        self.lake, self.at = lake, 0
        self.lock = threading.Lock()

    def window(self) -> None:
        with self.lock:
            self.at += 1
            self.lake.write(tables.SEGMENTS.path, size=WINDOW_BYTES, app=(ONE, self.at))
            for path in TABLES:
                self.lake.write(path, app=("applied", self.at))
            self.lake.write(tables.CUTS.path, app=(CUTS_ID, self.at))


@pytest.fixture
def lake(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "lake")


@pytest.fixture
def target(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "backup")


@pytest.fixture
def again(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path / "again")


def first_window_bytes(lake: FakeLake) -> int:
    """Of bronze that the first window takes: from the cut to where silver is furthest."""
    cut = lake.log(tables.CUTS.path).state().transaction(CUTS_ID)
    furthest = [lake.log(path).state().transaction("applied") for path in TABLES]
    assert min(furthest) >= cut, "control says what silver hasn't"
    assert lake.log(tables.SEGMENTS.path).state().transaction(ONE) >= max(furthest)
    return WINDOW_BYTES * (max(furthest) - cut)


def loaded(load: Load, patch: pytest.MonkeyPatch) -> None:
    """A window ends before each table's copy."""
    run = TableCopy.run

    def meanwhile(copy: TableCopy, *asked: Any) -> Any:
        load.window()
        return run(copy, *asked)

    patch.setattr(TableCopy, "run", meanwhile)


def test_the_first_window_after_a_restore_is_one_of_apply(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Load(lake)
    load.window()
    with monkeypatch.context() as patch:
        loaded(load, patch)
        backup(lake, target)
    restore(target, again)
    assert load.at > len(TABLES)
    assert first_window_bytes(again) <= WINDOW_BYTES


def test_a_window_that_is_under_way_is_ahead_by_itself_alone(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends between the look at control and that at silver."""
    load, large = Load(lake), Backup._large
    load.window()

    def meanwhile(work: Backup) -> list[str]:
        load.window()
        return large(work)

    with monkeypatch.context() as patch:
        loaded(load, patch)
        patch.setattr(Backup, "_large", meanwhile)
        backup(lake, target)
    restore(target, again)
    assert first_window_bytes(again) == WINDOW_BYTES


def test_a_version_that_vacuum_took_has_all_looked_at_again(
    lake: FakeLake, target: FakeLake, again: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, copy_file, gone = Load(lake), place.copy_file, list[str]()
    load.window()
    old = next(iter(lake.versions()[TABLES[3]][1]))

    def meanwhile(source: Any, to: Any, path: str, size: int) -> None:
        if path == f"{TABLES[3]}/{old}" and not gone:
            gone.append(path)
            for _ in range(3):
                load.window()
            lake.drop(TABLES[3], old)
        copy_file(source, to, path, size)

    with monkeypatch.context() as patch:
        patch.setattr(table, "copy_file", meanwhile)
        patch.setattr(Backup, "_fill", lambda _: None)
        lines: list[str] = []
        backup(lake, target, lines)
    assert any("VACUUM took files meanwhile" in line for line in lines)
    restore(target, again)
    assert first_window_bytes(again) == 0


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What a store would be asked, by (LIST, GET, PUT) and folder."""
    asked = Counter[str]()

    def counted(owner: type, name: str, kind: str) -> None:
        plain: Callable[..., Any] = getattr(owner, name)

        def noted(self: Any, *arguments: Any, **more: Any) -> Any:
            where = f"{self.where}/{arguments[0] if owner is place.DiskPlace else ''}"
            asked[f"{kind} {'silver' if '/silver' in where else 'other'}"] += 1
            return plain(self, *arguments, **more)

        monkeypatch.setattr(owner, name, noted)

    for name, kind in (("files", "LIST"), ("folders", "LIST"), ("read", "GET"), ("write", "PUT")):
        counted(place.DiskPlace, name, kind)
    for name, kind in (("names", "LIST"), ("get", "GET"), ("stat", "GET"), ("create", "PUT"), ("replace", "PUT")):
        counted(LocalStore, name, kind)
    return asked


def numbered(lake: FakeLake, count: int) -> Iterator[str]:
    for number in range(count):
        path = f"silver/d/t{number}"
        lake.write(path)
        yield path


def test_what_a_quiet_table_costs(lake: FakeLake, target: FakeLake, requests: Counter[str]) -> None:
    """The second backup of a lake at rest asks the store two lists and a commit for each table, and writes nothing of
    it; all the rest doesn't grow with them.
    """
    lake.fill()
    paths = list(numbered(lake, 100))
    backup(lake, target)
    requests.clear()
    assert backup(lake, target).brought_files == 0
    few = 20
    assert requests["LIST silver"] <= 2 * len(paths) + few
    assert requests["GET silver"] <= len(paths) + few
    assert requests["PUT silver"] == 0
    assert requests.total() <= 3 * len(paths) + 4 * few
