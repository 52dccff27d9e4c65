"""How large silver is, as its published row says it: no Spark, only logs, and none of silver's is read for a page."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.window.window import TableWindow, Window
from tests.spark_jobs.window.test_silver_guard import PATH, begun
from tests.support.steps import publish
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import add
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.lake import control
from tidegate.lake.figures.status import table_statuses
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.sizes import SIZE_COLUMNS, SilverSize, size_cells, size_of
from tidegate.tables import State


def file(path: str, rows: int | None, size: int, dead: int = 0) -> dict[str, object]:
    vector = {"storageType": "i", "pathOrInlineDv": path, "sizeInBytes": 1, "cardinality": dead}
    body: dict[str, object] = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1}
    body |= {"stats": json.dumps({"numRecords": rows})} if rows is not None else {}
    return body | ({"deletionVector": vector} if dead else {})


def state_of(*files: dict[str, object]) -> TableState:
    return TableState("t", 1, {(str(each["path"]), ""): LiveFile(each) for each in files})


def test_rows_are_those_that_a_reader_counts() -> None:
    cells = size_cells(state_of(file("a", 10, 500), file("b", 7, 300, dead=2)))
    assert size_of(cells) == SilverSize(15, 2, 800)
    assert size_of(size_cells(state_of(file("a", 10, 500), file("b", None, 300)))) == SilverSize(None, 2, 800)
    assert size_of(size_cells(state_of())) == SilverSize(0, 0, 0)
    assert size_of(size_cells(TableState("t"))) is None, "there is no table"
    assert size_of({"table": "d.t"}) is None, "as an older release wrote it"


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, 0, 7]), st.integers(0, 2))), max_size=8))
def test_a_size_that_is_carried_on_is_the_one_that_is_counted(commits: list[list[tuple[int, int | None, int]]]) -> None:
    """A commit adds files, some in place of one with another deletion vector, and removes those of size 0."""
    state = TableState("t").after(0, [{"metaData": {"id": "t"}}])
    assert state.totals.files == 0
    for version, commit in enumerate(commits, 1):
        actions: list[dict[str, object]] = []
        for name, rows, dead in {name: (name, rows, dead) for name, rows, dead in commit}.values():
            gone = [body.action for body in state.files if body.path == str(name)]
            actions += [{"remove": body} for body in gone]
            if rows != 0:
                actions.append({"add": file(str(name), rows, 10 * name, dead if rows else 0)})
        state = state.after(version, actions)
        assert "totals" in state.__dict__, "it isn't counted again"
        assert state.totals == TableState("t", version, state.live).totals


def test_apply_publishes_a_tables_size_and_a_page_reads_no_silver(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    app_id = tables.app_id("shop", "d.t")
    adds = [add(file(name, 10, 500), data_change=True) for name in "ab"]
    version = log.commit(log.state(), Change(adds, "UPSERT", {app_id: 200})).version
    window = Window(app.cut_ts, 200, [])
    window.taking.tables["d.t"] = TableWindow("d.t", "d", "t", routed=False, after_ts=app.cut_ts)
    publish(app, window, versions={"d.t": version})
    (tmp_path / PATH).rename(tmp_path / "away")
    (status,) = table_statuses(LakeFiles(str(tmp_path)))
    assert status.size == SilverSize(20, 2, 1000)


def test_an_older_lakes_table_has_no_size_until_it_is_published_again(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    names = [field for field in tables.CUTS.schema if field.name not in SIZE_COLUMNS]
    older = replace(tables.CUTS, schema=pa.schema(names))
    row = {"cut_ts": 10, "table": "d.t", "delta_version": 7, "applied_ts": 10, "state": State.ACTIVE}
    row["published_at"] = datetime.now(UTC)
    control.append(lake, older, [row])
    assert [status.size for status in table_statuses(LakeFiles(str(tmp_path)))] == [None]
    sizes = dict(zip(SIZE_COLUMNS, (5, 1, 90), strict=True))
    control.append(LakeFiles(str(tmp_path)), tables.CUTS, [{**row, **sizes, "cut_ts": 20}])
    assert [status.size for status in table_statuses(LakeFiles(str(tmp_path)))] == [SilverSize(5, 1, 90)]
