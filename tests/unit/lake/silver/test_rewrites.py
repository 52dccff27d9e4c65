"""Other writers' rewrites of silver: those that kept all rows go on, those that lost some or brought more are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tidegate.delta.checkpoints.write import write as write_checkpoint
from tidegate.delta.log import Change
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import add, commit_info, lines, remove
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import own_ts, shown_by
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.limits import REWRITE_FILES_MAX
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.standing.silver import GOES_ON, Repacked, Said, Unlike, answer, told

APP = "tidegate/shop/d.t"
ENGINE = "their optimizer 1.0"


def _file(path: str, rows: int | None, dead: int = 0) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    vector = {"storageType": "i", "pathOrInlineDv": f"v{dead}", "sizeInBytes": 4, "cardinality": dead}
    body: dict[str, Any] = {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 1, **stats}
    return {**body, "deletionVector": vector} if dead else body


class Silver:
    """A table with rows of ours, as it was published, and what others commit after that."""

    def __init__(self, folder: Path, *files: dict[str, Any]) -> None:
        self.lake = LakeFiles(str(folder))
        self.log = self.lake.log("t")
        create_silver(self.log, SilverShape((SilverColumn("id", "int"),), ("id",)))
        state = self.log.commit(
            self.log.state(), Change([add(file, data_change=True) for file in files], "UPSERT", {APP: 100})
        )
        self.said = Said(state.version, state.table_id, own_ts(state, APP))
        self.files = {file["path"]: live for file in files for live in state.files if live.path == file["path"]}

    def theirs(self, removes: str, *adds: dict[str, Any], data_change: bool = False) -> None:
        """A commit that anybody could have written: nobody checks it."""
        gone = [remove(self.files[path], data_change=data_change) for path in removes]
        info = commit_info("OPTIMIZE", "")
        info["commitInfo"]["engineInfo"] = ENGINE
        data = lines([info, *gone, *(add(body, data_change=data_change) for body in adds)])
        assert self.log.store.create(commit_name(self.log.state().version + 1), data)

    @property
    def rewrite(self) -> Repacked | None:
        return shown_by(self.lake, self.log, self.log.state(), APP, self.said).rewrite


@pytest.fixture
def silver(tmp_path: Path) -> Silver:
    """Three files with 10, 20 - 5 and 30 rows."""
    return Silver(tmp_path, _file("a", 10), _file("b", 20, dead=5), _file("c", 30))


@pytest.mark.parametrize(
    "right",
    [
        lambda silver: silver.theirs("ab", _file("x", 25)),  # the dead rows are purged
        lambda silver: silver.theirs("ab", _file("x", 5), _file("y", 20)),
        lambda silver: silver.theirs("b", _file("b", 40, dead=25)),  # an odd writer's way: as many rows are alive
        lambda silver: silver.theirs("", {**_file("a", 10), "tags": {"zcube": "1"}}),  # ANALYZE, row ids
        lambda silver: silver.theirs("ab", _file("x", 3), data_change=True),  # it says that it changed rows
        lambda silver: silver.theirs("", _file("x", 3), data_change=True),
        lambda silver: (silver.theirs("ab", _file("x", 25)), silver.theirs("c", _file("y", 30))),
    ],
)
def test_a_rewrite_with_as_many_rows_goes_on(silver: Silver, right: Callable[[Silver], object]) -> None:
    right(silver)
    assert silver.rewrite is None


@pytest.mark.parametrize(
    ("broken", "before", "after"),
    [
        (lambda silver: silver.theirs("ab", _file("x", 24)), 25, 24),
        (lambda silver: silver.theirs("ab", _file("x", 30)), 25, 30),  # it brought the dead rows back
        (lambda silver: silver.theirs("c"), 30, 0),
        (lambda silver: silver.theirs("", _file("x", 7)), 0, 7),
        (lambda silver: silver.theirs("", _file("a", 8)), 10, 8),  # another file under the old name
        (lambda silver: (silver.theirs("ab", _file("x", 25)), silver.theirs("c", _file("y", 29))), 30, 29),
        (lambda silver: (silver.theirs("c", _file("y", 29)), silver.theirs("", _file("z", 1))), 30, 29),
        (lambda silver: (silver.theirs("", _file("z", 1), data_change=True), silver.theirs("c")), 30, 0),
    ],
)
def test_a_rewrite_with_other_rows_is_named(
    silver: Silver, broken: Callable[[Silver], object], before: int, after: int
) -> None:
    broken(silver)
    rewrite = silver.rewrite
    assert rewrite is not None
    assert (rewrite.engine, rewrite.before, rewrite.after) == (ENGINE, before, after)
    verdict = answer(silver.said, shown_by(silver.lake, silver.log, silver.log.state(), APP, silver.said))
    assert verdict.unlike is Unlike.UNEVEN
    line = told("d.t", verdict, silver.said)
    assert f"version {rewrite.version} (OPTIMIZE by {ENGINE})" in line
    assert f"{after} rows in the place of files with {before}" in line


def test_our_own_word_about_a_removed_file_counts(silver: Silver) -> None:
    """A broken writer's remove may say anything."""
    silver.files["c"] = type(silver.files["c"])(_file("c", 29))
    silver.theirs("c", _file("y", 29))
    assert silver.rewrite is not None


def test_what_came_before_a_commit_of_ours_was_looked_at_then(silver: Silver) -> None:
    silver.theirs("c")
    silver.log.commit(silver.log.state(), Change([], "UPSERT", {APP: 110}))
    assert silver.rewrite is None


def test_a_loss_is_seen_behind_a_checkpoint_and_before_more_commits(silver: Silver) -> None:
    silver.theirs("c")
    write_checkpoint(silver.log.store, silver.log.state().version, now_ms=0, files=2)
    silver.theirs("ab", _file("x", 25))
    silver.log.forget()
    rewrite = silver.rewrite
    assert rewrite is not None
    assert (rewrite.before, rewrite.after) == (30, 0)


def test_files_without_statistics_are_counted_by_their_footers(tmp_path: Path) -> None:
    silver = Silver(tmp_path, _file("a", None, dead=2), _file("b", 20))
    for name, rows in (("a", 10), ("x y", 28), ("z", 27)):
        pq.write_table(pa.table({"id": pa.array(range(rows), pa.int32())}), tmp_path / "t" / name)
    silver.theirs("ab", _file("x%20y", None))
    assert silver.rewrite is None
    silver.files |= {"x": next(live for live in silver.log.state().files if live.path == "x%20y")}
    silver.theirs("x", _file("z", None))
    rewrite = silver.rewrite
    assert rewrite is not None
    assert (rewrite.before, rewrite.after) == (28, 27)


@pytest.mark.parametrize("why", ["gone", "too many"])
def test_rows_that_nobody_can_count_dont_hold_a_table(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silver = Silver(tmp_path, _file("a", None), _file("b", 20))
    if why == "too many":
        assert REWRITE_FILES_MAX > 0
        monkeypatch.setattr("tidegate.lake.silver.rewrites.REWRITE_FILES_MAX", 0)
        pq.write_table(pa.table({"id": pa.array(range(10), pa.int32())}), tmp_path / "t" / "a")
    silver.theirs("ab", _file("x", 25))
    rewrite = silver.rewrite
    assert rewrite is not None
    assert not rewrite.is_known
    assert answer(silver.said, shown_by(silver.lake, silver.log, silver.log.state(), APP, silver.said)) == GOES_ON


@pytest.mark.parametrize("way", ["compact", "z_order"])
def test_delta_rs_optimizes_a_table(way: str, tmp_path: Path) -> None:
    place = tmp_path / "t"
    for part in range(3):
        rows = pa.table({"id": pa.array(range(10 * part, 10 * part + 10), pa.int32())})
        write_deltalake(place, rows, mode="append")
    lake = LakeFiles(str(tmp_path))
    log = lake.log("t")
    log.commit(log.state(), Change([], "UPSERT", {APP: 100}))
    said = Said(log.known.version, log.known.table_id, 100)
    table = DeltaTable(place)
    _ = table.optimize.compact() if way == "compact" else table.optimize.z_order(["id"])
    assert log.state().version > said.version
    assert shown_by(lake, log, log.state(), APP, said).rewrite is None
