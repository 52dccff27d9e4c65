"""What a window needs of schema_history: the part that is read answers as the whole does."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidegate.lake import control
from tidegate.lake.control import upkeep as control_upkeep
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.replay.bounds import Bounds
from tidegate.schema.replay.history import SchemaHistory
from tidegate.tables import SCHEMA_HISTORY

NAMES = [
    ("one", "d", "a"),
    ("one", "d", "b"),
    ("one", "d", ""),
    ("two", "d", "a"),
    ("two", "e", "x.y"),
    ("old", "d", "a"),
]


def _versions(seed: int) -> list[TableVersion]:
    """Versions of tables of three sources in commit order; each drops an id now and then, for good."""
    rng = random.Random(seed)
    last: dict[tuple[str, str, str], TableVersion] = {}
    found, next_id = [], {"one": 1, "two": 1, "old": 1}
    for commit_ts in range(1, 200):
        name = rng.choice(NAMES)
        before = last.get(name)
        columns = list(before.columns) if before else []
        if columns and rng.random() < 0.4:
            columns.pop(rng.randrange(len(columns)))
        else:
            number, next_id[name[0]] = next_id[name[0]], next_id[name[0]] + 1
            columns.append(
                Column(number, f'c{number} {{"id": 9', "int", nullable=rng.random() < 0.5, comment='{"id": 9')
            )
        status = rng.choice([VersionStatus.ACTIVE, VersionStatus.ACTIVE, VersionStatus.DROPPED])
        version = TableVersion(
            *name,
            before.version + 1 if before else 1,
            commit_ts,
            "f",
            commit_ts,
            "alter",
            "",
            tuple(columns),
            (),
            "ascii",
            status,
        )
        last[name] = version
        found.append(version)
    return found


def _floor(source: str, database: str, table: str) -> int:
    return {("one", "d", "b"): 40, ("two", "d", "a"): 150}.get((source, database, table), 100)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rows_that_are_read_answer_every_question_above_the_floor(tmp_path: Path, seed: int) -> None:
    versions = _versions(seed)
    rows = [version.to_row() for version in versions]
    lake = LakeFiles(str(tmp_path))
    for start in range(0, len(rows), 37):
        control.append(lake, SCHEMA_HISTORY, rows[start : start + 37])
    if seed == 3:
        control_upkeep.compact(lake, SCHEMA_HISTORY, files_min=2)
    found = needed_rows(lake, ["one", "two", "new"], _floor)
    assert found.keys() == {"one", "two", "new"}
    assert (found["new"].rows, found["new"].next_id) == ([], 1)
    for source in ("one", "two"):
        whole = SchemaHistory(source, rows)
        part_of = SchemaHistory(
            source,
            found[source].rows,
            bounds=Bounds(found[source].next_id, found[source].floor, found[source].standing),
        )
        assert found[source].next_id == max(c.id for v in versions if v.source == source for c in v.columns) + 1
        assert set(part_of.tables()) == set(whole.tables())
        for name in {(v.database, v.table) for v in versions if v.source == source}:
            for commit_ts in range(_floor(source, *name), 201):
                assert part_of.version_at(*name, commit_ts) == whole.version_at(*name, commit_ts)
            assert len(part_of.versions(*name)) < len(whole.versions(*name))


def test_an_older_baselines_position_counts_though_its_row_is_not_needed(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    base = TableVersion("s", "d", "t", 1, 7, "f", 4, "baseline", "", (Column(5, "a", "int"),), (), "ascii")
    later = replace(base, version=2, commit_ts=9, kind="alter", columns=())
    control.append(lake, SCHEMA_HISTORY, [base.to_row(), later.to_row()])
    found = needed_rows(lake, ["s"], lambda *_: 9)["s"]
    assert ([row["version"] for row in found.rows], found.next_id, found.floor) == ([2], 6, 7)


def test_a_row_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    base = TableVersion("s", "d", "t", 1, 7, "f", 4, "baseline", "", (Column(5, "a", "int"),), (), "ascii")
    later = replace(base, version=2, commit_ts=9, kind="rename")
    for _ in range(2):
        control.append(lake, SCHEMA_HISTORY, [later.to_row(), base.to_row()])
    found = needed_rows(lake, ["s"], lambda *_: 0)["s"]
    assert sorted(row["version"] for row in found.rows) == [1, 2]


def test_a_history_that_forgets_answers_for_what_is_still_asked() -> None:
    rows: list[dict[str, Any]] = [version.to_row() for version in _versions(4)]
    whole, history = SchemaHistory("one", rows), SchemaHistory("one", rows[:60])
    history.add(TableVersion.from_row(row) for row in rows[60:] if row["source"] == "one")
    history.forget(lambda database, table: _floor("one", database, table))
    for name in (("d", "a"), ("d", "b"), ("d", "")):
        for commit_ts in range(_floor("one", *name), 201):
            assert history.version_at(*name, commit_ts) == whole.version_at(*name, commit_ts)
        assert len(history.versions(*name)) < len(whole.versions(*name))
    history.forget(lambda *_: 1 << 60)
    assert [len(history.versions(*name)) for name in (("d", "a"), ("d", "b"), ("d", ""))] == [1, 1, 1]
