"""Somebody takes silver back by RESTORE, between a window's plan and its cut: the table waits, since nobody would see
that behind a commit of ours, or a version that the cut names.

In:  tables of two windows, of which control/cuts says the newest version. No Spark.
Out: each commit that a statement of the source makes without Spark finds it out; so does whoever names a version.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spark_jobs.apply_steps import merge_into_silver, publish_cut
from spark_jobs.merge import linked
from spark_jobs.window.window import TableWindow, Window
from tests.spark_jobs.merge import test_silver_writer as by_windows
from tests.spark_jobs.merge.test_silver_writer import UP, Shop
from tests.support.steps import publish
from tidegate import tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import moved
from tidegate.delta.table.state import TableState, file_key
from tidegate.lake.silver.as_published import own_ts, said_of_all
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State

pytestmark = pytest.mark.small_files("apart")

VALUES = "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7"


def restore(place: str, version: int) -> None:
    """As Delta's own: what it says of our transactions stays."""
    log = DeltaLog(place)
    now, then = log.state(), log.state_at(version)
    assert then is not None
    wanted, live = ({file_key(file.action): file for file in state.files} for state in (then, now))
    gone = [file for key, file in live.items() if key not in wanted]
    back = [file.action for key, file in wanted.items() if key not in live]
    log.commit(now, Change(moved(gone, back, data_change=True), "RESTORE"))


def begun(folder: Path, table: str, *physical: str, **given: str) -> tuple[Shop, int]:
    """Rows of two windows; the version of the first."""
    it = Shop(None, folder, "positional", **given)
    it.app.claim()
    for number, name in enumerate(physical):
        it.ddl(10 + number, f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT)")
    it.apply(0, 13, {physical[0]: [(12, UP, {"id": number, "a": number}) for number in range(4)]})
    log = it.app.lake.log(tables.silver_path("d", table))
    first = log.state().version
    it.apply(13, 15, {physical[-1]: [(14, UP, {"id": 1, "a": 99}), (14, UP, {"id": 9, "a": 9})]})
    publish(it.app, Window(0, 15, []), versions={f"d.{table}": log.state().version})
    return it, first


def waits(it: Shop, table: str) -> None:
    """For its rows, and nothing is written to it."""
    standing = it.apply(15, 30, {}).held[f"d.{table}"]
    assert (standing.cause, standing.fault) == (Cause.NEEDS_ROWS, "SilverUnlike")
    assert "RESTORE" in standing.reason


@pytest.mark.parametrize(("statement", "held"), [(VALUES, "t"), ("RENAME TABLE t TO u", "u")])
def test_it_is_taken_back_while_the_window_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, held: str
) -> None:
    it, first = begun(tmp_path, "t", "t")
    it.ddl(20, statement)
    prepare = by_windows.prepare_silver

    def prepared(*given: Any) -> None:
        restore(it.app.lake.uri(tables.silver_path("d", "t")), first)
        prepare(*given)

    monkeypatch.setattr(by_windows, "prepare_silver", prepared)
    waits(it, held)
    assert not it.app.lake.log(tables.silver_path("d", "u")).state().files, "rows from before don't go on as another's"


@pytest.mark.parametrize(
    ("table", "physical", "statement", "operation"),
    [("t", ["t"], VALUES, "REPLACE COLUMNS"), ("s", ["s_1", "s_2"], "TRUNCATE TABLE s_1", "DELETE")],
)
def test_it_is_taken_back_while_files_are_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    physical: list[str],
    statement: str,
    operation: str,
) -> None:
    it, first = begun(tmp_path, table, *physical, routes="[{match: 'd.s_.*', to: d.s}]")
    it.ddl(20, statement)
    log = it.app.lake.log(tables.silver_path("d", table))
    commit: Callable[..., TableState] = log.commit
    left = [first]

    def committed(read: TableState, change: Change, **named: Any) -> TableState:
        if change.operation == operation and left:
            restore(log.place, left.pop())
        return commit(read, change, **named)

    monkeypatch.setattr(log, "commit", committed)
    waits(it, table)
    assert not left


SWAP = "RENAME TABLE t TO x, u TO t, x TO u"


@pytest.mark.parametrize(
    ("statement", "module", "point"),
    [(VALUES, merge_into_silver, "apply_in_merge"), (SWAP, linked, "apply_in_move"), ("", None, "")],
)
def test_it_is_taken_back_behind_our_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, module: ModuleType | None, point: str
) -> None:
    """While other tables are written; or between two tries of a window."""
    it, first = begun(tmp_path, "t", "t")
    place, left = it.app.lake.uri(tables.silver_path("d", "t")), [first]
    it.ddl(16, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")
    it.apply(15, 17, {"u": [(17, UP, {"id": 5, "a": 5})]})
    publish(it.app, Window(15, 17, []), versions={"d.u": it.app.lake.log("silver/d/u").state().version})
    log = it.app.lake.log(tables.silver_path("d", "t"))

    def passed(name: str) -> None:
        if name == point and left and own_ts(log.state(), tables.app_id("shop", "d.t")) >= 20:
            restore(place, left.pop())

    if module is None:
        it.apply(17, 30, {"t": [(20, UP, {"id": 1, "a": 7})]})
        passed(point)
    else:
        it.ddl(20, statement)
        monkeypatch.setattr(module, "failpoint", passed)
    waits(it, "t")
    assert not left


def test_it_is_taken_back_as_the_cut_is_about_to_name_what_no_window_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, first = begun(tmp_path, "t", "t")
    place, left = it.app.lake.uri(tables.silver_path("d", "t")), [first]
    ours = it.app.lake.log(tables.silver_path("d", "t")).state()
    it.app.record_states({"d.t": Standing(State.RELEASED, applied_ts=14)})
    window = Window(14, 15, [], catches_up={"d.t": {Physical("s", "d", "t")}})
    window.taking.tables["d.t"] = TableWindow("d.t", "d", "t", routed=False, after_ts=14)

    def passed(name: str) -> None:
        if name == "apply_before_publish":
            restore(place, left.pop())

    monkeypatch.setattr(publish_cut, "failpoint", passed)
    publish(it.app, window)
    assert not left
    assert it.app.states["d.t"].state is State.ACTIVE
    assert said_of_all(it.app.lake)["d.t"].version == ours.version
