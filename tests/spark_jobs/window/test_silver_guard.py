"""What a window believes of silver, and what its cut says of tables that it didn't ask: no Spark, only the logs."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import leave_behind
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.standing import silver_guard
from spark_jobs.window.standing.standings import hold_for_error
from spark_jobs.window.window import Taking, Window
from tests.spark_jobs.apply_steps.test_publish_cut import application
from tests.support.steps import publish
from tidegate import tables
from tidegate.delta.checkpoints.write import write as write_checkpoint
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import add, lines
from tidegate.errors import SilverForeign, SilverUnlike
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import FloorOf, SourceRows, needed_rows
from tidegate.lake.silver.as_published import said_of_all
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import Needs
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.standing.causes import Cause
from tidegate.standing.silver import NO_SILVER
from tidegate.standing.standing import Standing
from tidegate.tables import State

APP = tables.app_id("shop", "d.t")
PATH = tables.silver_path("d", "t")


def _filled(log: DeltaLog, *stamps: int) -> DeltaLog:
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    for at_ts in stamps:
        log.commit(log.state(), Change([], "UPSERT", {APP: at_ts}))
    return log


def _foreign(app: Application) -> DeltaLog:
    """A table with rows that nobody of us wrote."""
    log = _filled(DeltaLog(app.lake.uri(PATH)))
    file = {"path": "f", "partitionValues": {}, "size": 1, "modificationTime": 1}
    log.commit(log.state(), Change([add(file, data_change=True)], "WRITE"))
    return log


def begun(folder: Path) -> tuple[Application, DeltaLog]:
    """Silver of d.t has all up to 100, and that was published."""
    app = application(folder)
    app.claim()
    log = _filled(app.lake.log(PATH), 50, 100)
    publish(app, Window(0, 100, []), versions={"d.t": log.state().version})
    return app, log


def test_others_commits_dont_make_up_for_ours_that_are_lost(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    silver_guard.check(app, "d.t", log.state())
    (tmp_path / PATH / "_delta_log" / commit_name(log.known.version)).unlink()
    app.lake.log(PATH).forget()
    other = DeltaLog(app.lake.uri(PATH))
    other.commit(other.state(), Change([], "OPTIMIZE"))
    with pytest.raises(SilverUnlike, match="older than what was published"):
        silver_guard.check(app, "d.t", log.state())


ASKS = Standing(State.HELD, "asks", Cause.DDL_ASKS, 100)


def _restored(log: DeltaLog) -> None:
    log.commit(log.state(), Change([], "RESTORE"))


def _rewritten(log: DeltaLog, *, size: int, **stats: str) -> None:
    """Another writer brings a file, and says that it changed no row."""
    file = {"path": "f", "partitionValues": {}, "size": size, "modificationTime": 1, **stats}
    info = {"commitInfo": {"operation": "OPTIMIZE", "engineInfo": "Theirs/1.0"}}
    log.store.create(commit_name(log.state().version + 1), lines([info, add(file, data_change=False)]))


def test_a_rewrite_with_other_rows_is_held_once(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    _rewritten(log, size=1, stats='{"numRecords":7}')
    with pytest.raises(SilverUnlike, match=r"\(OPTIMIZE by Theirs/1.0\).* 7 rows in the place of files with 0"):
        silver_guard.check(app, "d.t", log.state())
    silver_guard.ask_all(app)
    standing = app.states["d.t"]
    assert (standing.state, standing.lacks_rows) == (State.HELD, True)
    assert "7 rows" in standing.reason
    silver_guard.check(app, "d.t", log.state())  # a snapshot of it fills what is there now


def test_a_rewrite_of_which_nobody_knows_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app, log = begun(tmp_path)
    _rewritten(log, size=1)
    for _ in range(2):
        silver_guard.ask_all(app)
    assert app.states.get("d.t") is None
    told = [record.getMessage() for record in caplog.records if "nobody could count" in record.getMessage()]
    assert len(told) == 1
    assert "OPTIMIZE, version" in told[0]


def test_a_log_that_was_cleaned_up_behind_a_restore_tells_nobody_that_all_is_well(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    named = log.known.version
    _restored(log)
    for _ in range(3):
        log.commit(log.state(), Change([], "OPTIMIZE"))
    write_checkpoint(log.store, log.known.version, now_ms=0, files=0)
    for version in range(log.known.version):
        (tmp_path / PATH / "_delta_log" / commit_name(version)).unlink()
    log.forget()
    with pytest.raises(SilverUnlike, match=f"lacks commits after the published version {named}"):
        silver_guard.check(app, "d.t", log.state())
    silver_guard.ask_all(app)
    assert (app.states["d.t"].state, app.states["d.t"].lacks_rows) == (State.HELD, True)
    silver_guard.check(app, "d.t", log.state())  # a snapshot of it fills what is there now


def test_a_table_that_leaves_before_it_is_asked_stays_known_as_it_was_published(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    _restored(log)
    publish(app, Window(100, 110, [], taking=Taking(held={"d.t": ASKS})))
    assert said_of_all(app.lake)["d.t"].version == log.known.version - 1
    with pytest.raises(SilverUnlike, match="RESTORE"):
        silver_guard.check(app, "d.t", log.state())


def test_one_that_leaves_and_has_what_was_published_is_named_as_it_is(tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    log.commit(log.state(), Change([], "OPTIMIZE"))
    publish(app, Window(100, 110, [], taking=Taking(held={"d.t": ASKS})))
    assert said_of_all(app.lake)["d.t"].version == log.known.version


@pytest.mark.parametrize("way", ["whole", "back"])
def test_one_that_is_to_be_active_and_wasnt_asked_is_held(way: str, tmp_path: Path) -> None:
    app, log = begun(tmp_path)
    window, waves = Window(100, 110, []), TakenWaves()
    if way == "whole":
        waves.states["d.t"] = Standing(State.ACTIVE, applied_ts=110)
    else:
        app.positions.cut_ts = window.cut_ts
        app.record_states({"d.t": Standing(State.RELEASED, "behind", applied_ts=100, source="s")})
        window = Window(100, 110, [], behind="s")
    _restored(log)
    publish(app, window, waves)
    standing = app.states["d.t"]
    assert (standing.state, standing.lacks_rows) == (State.HELD, True)
    assert "RESTORE" in standing.reason
    silver_guard.check(app, "d.t", log.state())  # a snapshot of it fills what is there now


@pytest.mark.parametrize("cause", [Cause.DDL_ASKS, Cause.NEEDS_ROWS])
def test_a_foreign_table_isnt_taken_for_ours_by_a_row(cause: Cause, tmp_path: Path) -> None:
    """Also where a snapshot is to fill the table: its rows would take the place of somebody else's."""
    app = application(tmp_path)
    app.claim()
    _foreign(app)
    publish(app, Window(100, 110, [], taking=Taking(held={"d.t": replace(ASKS, cause=cause)})))
    with pytest.raises(SilverForeign, match="didn't write"):
        silver_guard.check(app, "d.t", app.lake.log(PATH).state())


def test_a_dropped_table_whose_source_is_behind_may_have_lost_its_folder(tmp_path: Path) -> None:
    app, _ = begun(tmp_path)
    for at_ts, sql in ((10, "CREATE TABLE t (id INT PRIMARY KEY)"), (90, "DROP TABLE t")):
        app.histories["s"].replay(DdlStatement(sql, "d", 0, at_ts, "b.000001", at_ts, 0, "utf8mb4", "11.4.5-MariaDB"))
    app.record_states({"d.t": Standing(State.DROPPED, applied_ts=100)})
    leave_behind(app, "s", "it stalls")
    assert app.states["d.t"].state is State.RELEASED
    shutil.rmtree(tmp_path / PATH)
    silver_guard.ask_released(app)
    assert app.states["d.t"].state is State.RELEASED
    silver_guard.check(app, "d.t", app.lake.log(PATH).state())  # it is made again while its source is behind


def _held_for_a_foreign_table(folder: Path) -> tuple[Application, DeltaLog, Window]:
    """The table that was met, and the window that met it."""
    app = application(folder)
    app.claim()
    log = _foreign(app)
    window = Window(100, 110, [])
    error = silver_guard.met_unwritten(app, "d.t", log.state())
    assert error is not None
    hold_for_error(app, window, "d.t", error)
    return app, log, window


def test_a_create_in_the_window_that_met_a_foreign_table_doesnt_end_the_wait(tmp_path: Path) -> None:
    """The table's own CREATE empties nothing of what lies there."""
    *_, window = _held_for_a_foreign_table(tmp_path)
    assert not window.held["d.t"].ends_by_emptying(105, first=True, rows_stay=False)


def test_a_foreign_table_stays_somebody_elses_whatever_is_published_of_the_one_that_waits(tmp_path: Path) -> None:
    """Neither a snapshot nor a TRUNCATE at the source takes it away: a person moves it."""
    app, log, window = _held_for_a_foreign_table(tmp_path)
    publish(app, window)
    standing = app.states["d.t"]
    assert (standing.state, standing.lacks_rows) == (State.HELD, False), "bronze has its rows"
    for _ in range(2):
        with pytest.raises(SilverForeign, match="didn't write"):
            silver_guard.check(app, "d.t", log.state())
        silver_guard.ask_all(app)
    shutil.rmtree(tmp_path / PATH)
    app.lake.log(PATH).forget()
    silver_guard.check(app, "d.t", log.state())


def test_a_foreign_table_in_the_place_of_one_that_had_no_rows_yet_isnt_ours(tmp_path: Path) -> None:
    app = application(tmp_path)
    app.claim()
    publish(app, Window(0, 100, []), versions={"d.t": _filled(app.lake.log(PATH)).state().version})
    shutil.rmtree(tmp_path / PATH)
    app.lake.log(PATH).forget()
    log = _foreign(app)
    silver_guard.ask_all(app)
    standing = app.states["d.t"]
    assert (standing.state, standing.applied_ts, standing.lacks_rows) == (State.HELD, 100, False)
    with pytest.raises(SilverForeign, match="didn't write"):
        silver_guard.check(app, "d.t", log.state())


def test_a_foreign_table_in_the_place_of_a_filled_one_keeps_its_rows(tmp_path: Path) -> None:
    app, _ = begun(tmp_path)
    shutil.rmtree(tmp_path / PATH)
    app.lake.log(PATH).forget()
    _foreign(app)
    silver_guard.ask_all(app)
    standing = app.states["d.t"]
    assert (standing.state, standing.lacks_rows) == (State.HELD, False), "no snapshot takes them away"
    assert "move that table away" in standing.reason


def test_a_folder_that_is_removed_while_its_table_waits_for_rows_is_known_at_the_next_start(tmp_path: Path) -> None:
    app, _ = begun(tmp_path)
    waits = Standing(State.HELD, "its rows are lost", Cause.NEEDS_ROWS, 100, needs=Needs.ROWS)
    app.record_states({"d.t": waits})
    shutil.rmtree(tmp_path / PATH)
    silver_guard.ask_all(app)
    assert app.states["d.t"] == waits
    assert said_of_all(app.lake)["d.t"].version == NO_SILVER
    silver_guard.check(app, "d.t", app.lake.log(PATH).state())  # a snapshot makes it


def test_however_many_tables_are_unlike_their_versions_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(tmp_path)
    app.claim()
    versions = {f"d.{table}": _filled(app.lake.log(tables.silver_path("d", table))).known.version for table in "tuv"}
    for name in versions:
        log, app_id = app.lake.log(tables.silver_path(*app.names.pair(name))), tables.app_id("shop", name)
        versions[name] = log.commit(log.state(), Change([], "UPSERT", {app_id: 100})).version
        sql = f"CREATE TABLE {name} (id INT PRIMARY KEY)"
        app.histories["s"].replay(DdlStatement(sql, "d", 0, 10, "b.000001", 10, 0, "utf8mb4", "11.4.5-MariaDB"))
    publish(app, Window(0, 100, []), versions=versions)
    rows = [version.to_row() for table in "tuv" for version in app.histories["s"].versions("d", table)]
    control.append(app.lake, tables.SCHEMA_HISTORY, rows)
    app.lake.delete_folder("silver")
    reads = []

    def read(lake: LakeFiles, sources: Collection[str], floor_of: FloorOf) -> dict[str, SourceRows]:
        reads.append(sources)
        return needed_rows(lake, sources, floor_of)

    monkeypatch.setattr("tidegate.lake.standing.from_bronze.needed_rows", read)
    silver_guard.ask_all(app)
    assert [(name, app.states[name].state, app.states[name].applied_ts) for name in versions] == [
        (name, State.RELEASED, 9) for name in versions
    ], "made anew from bronze"
    assert reads == [{"s"}]
