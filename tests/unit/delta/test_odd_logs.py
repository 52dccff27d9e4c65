"""Logs that other writers wrote oddly, or cleaned up while they were read: no other error than a lake's, and no gap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.memory_store import MemoryStore
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.stores.store import LocalStore
from tidegate.delta.table.actions import info_of, made_by_us
from tidegate.errors import LakeRefused
from tidegate.lake.silver.as_published import was_restored
from tidegate.lake.silver.others_changes import changes_by_others

APP = "tidegate/p/apply/d.t"
ODD: list[Any] = [None, [], ["RESTORE"], "RESTORE", 7, {}, {"operation": None, "engineInfo": {"a": 1}}]
ROWS = pa.table({"id": pa.array([7], pa.int32())})


def written(folder: Path, versions: int) -> DeltaLog:
    for _ in range(versions):
        write_deltalake(folder, ROWS, mode="append")
    return DeltaLog(str(folder))


def rewritten(folder: Path, version: int, **bodies: Any) -> None:
    path = folder / "_delta_log" / commit_name(version)
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [action for action in actions if not action.keys() & bodies.keys()]
    path.write_text("".join(json.dumps(action) + "\n" for action in [*kept, bodies]))


@pytest.mark.parametrize("info", ODD, ids=str)
def test_a_commits_provenance_of_any_form_stops_nothing(info: Any, tmp_path: Path) -> None:
    log = written(tmp_path, 2)
    rewritten(tmp_path, 1, commitInfo=info)
    state = log.state()
    assert state.version == 1
    assert not made_by_us(log.actions(1) or ())
    assert not was_restored(log, APP, 1, 0)
    (change,) = changes_by_others(log, APP, 0, 1)
    assert (change.operation, change.engine) == ("", "")
    assert log.commit(state, Change([], "UPSERT", {APP: 100})).version == 2


def test_a_commit_of_a_writer_with_a_very_long_name_is_told_shortly(tmp_path: Path) -> None:
    log = written(tmp_path, 2)
    rewritten(tmp_path, 1, commitInfo={"operation": "x" * 1_000_000, "engineInfo": "y" * 1_000_000})
    (change,) = changes_by_others(log, APP, 0, 1)
    assert len(change.operation) + len(change.engine) < 1000


@pytest.mark.parametrize("line", ["null", "[1]", "7", '"add"', '{"txn": {"appId": "a"}}', '{"add": {"size": 1}}'])
def test_a_line_of_another_form_is_a_refused_lake_with_its_version(line: str, tmp_path: Path) -> None:
    written(tmp_path, 2)
    with (tmp_path / "_delta_log" / commit_name(1)).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(LakeRefused, match="version 1 of its log"):
        DeltaLog(str(tmp_path)).state()


def test_the_provenance_is_the_first_that_is_one() -> None:
    assert info_of([{"commitInfo": None}, {"add": {}}, {"commitInfo": {"operation": "WRITE"}}]) == {
        "operation": "WRITE"
    }


class Cleaned(LocalStore):
    """Before its n-th commit is read, another process makes a checkpoint and removes all commits before it."""

    def __init__(self, folder: Path, reads: int) -> None:
        super().__init__(str(folder / "_delta_log"))
        self.table, self.left = folder, reads

    def get(self, name: str) -> bytes | None:
        if name.endswith(".json"):
            self.left -= 1
            if self.left == 0:
                table = DeltaTable(self.table)
                table.create_checkpoint()
                for version in range(table.version()):
                    (self.table / "_delta_log" / commit_name(version)).unlink(missing_ok=True)
        return super().get(name)


@pytest.mark.parametrize("reads", range(1, 12))
def test_a_log_cleaned_up_while_it_is_read_is_read_again_behind_its_new_checkpoint(reads: int, tmp_path: Path) -> None:
    written(tmp_path, 5)
    DeltaTable(tmp_path).create_checkpoint()
    written(tmp_path, 6)
    log = DeltaLog(str(tmp_path), store=Cleaned(tmp_path, reads))
    state = log.state()
    assert state.version == 10
    assert len(state.files) == 11
    assert log.commit(state, Change([], "UPSERT", {APP: 100})).version == 11
    later = DeltaLog(str(tmp_path), store=Cleaned(tmp_path, reads)).state_at(11)
    assert later is not None
    assert later.transaction(APP) == 100


def test_a_log_with_a_gap_is_refused_after_a_second_look() -> None:
    store = MemoryStore()
    store.create(commit_name(1), b"{}\n")
    with pytest.raises(LakeRefused):
        DeltaLog("t", store=store).state()
