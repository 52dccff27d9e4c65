"""Many tables in one wave: what apply writes down of them is a few commits, not some for each."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.window.states import States
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import ManyWaves, baseline
from tidegate import tables
from tidegate.lake import control
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State


def _versions(log: Log) -> list[int]:
    return [
        control.version(log.lake, table) for table in (tables.SNAPSHOTS, tables.SCHEMA_HISTORY, tables.TABLE_STATES)
    ]


def test_the_tables_of_a_wave_begin_in_one_commit_of_each_control_table(tmp_path: Path) -> None:
    log = Log(tmp_path)
    names = [f"t{number}" for number in range(40)]
    versions = [baseline(log, "shop", name) for name in names]
    log.level()
    app, window = log.first_window()
    publish(app, *to_waves(app, window))
    ManyWaves(log, versions).read([1, 2], app.cut_ts + 1, app.cut_ts + 1)
    log.level()
    app, window = log.first_window()
    before = _versions(log)
    window, taken = to_waves(app, window)
    # control/snapshots: where the mark stands, and that the tables are opened.
    assert [after - at for after, at in zip(_versions(log), before, strict=True)] == [2, 1, 1]
    publish(app, window, taken)
    assert {app.states[f"shop.{name}"].state for name in names} == {State.SNAPSHOT}
    again = log.started()
    assert {again.states[f"shop.{name}"].state for name in names} == {State.SNAPSHOT}
    assert len(again.snapshots.began_empty) == len(names)


def test_states_are_found_by_what_they_are() -> None:
    states = States({"a": Standing(State.HELD, cause=Cause.FAULT), "b": Standing(State.ACTIVE)})
    stamp = states.stamp
    assert [name for name, _ in states.of(State.HELD, State.ACTIVE)] == ["a", "b"]
    states |= {"a": Standing(State.ACTIVE, "why"), "c": Standing(State.RELEASED)}
    assert stamp not in (states.stamp, States().stamp)
    assert [name for name, _ in states.of(State.ACTIVE)] == ["b", "a"]
    assert (states.any(State.HELD), states.any(State.RELEASED)) == (False, True)
