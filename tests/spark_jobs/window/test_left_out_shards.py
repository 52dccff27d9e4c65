"""A shard that is left out while its snapshot is under way is read from the start: the next wave would empty it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import leave_behind
from spark_jobs.window.waves.news import news
from spark_jobs.window.waves.shards import UNREAD_SHARDS, leave_out
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate import tables
from tidegate.lake import control
from tidegate.schema.model.columns import LEFT_OUT
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.progress.automatic import waiting
from tidegate.table_names import Physical
from tidegate.tables import State

SHARD = Physical("one", "shop", "t_1")
HALVES = (Span(None, ("9",)), Span(("9",), None))


def _routed(folder: Path) -> Log:
    log = Log(folder)
    routes = "tables: {routes: [{match: 'shop.t_.*', to: shop.all}], "
    log.file.write_text(log.file.read_text().replace("tables: {", routes))
    log.send("one", "CREATE TABLE shop.t_2 (id INT NOT NULL PRIMARY KEY)")
    return log


def _window(log: Log) -> tuple[Application, Window]:
    log.level()
    app, window = log.first_window()
    window, taken = to_waves(app, window)
    publish(app, window, taken)
    return app, window


@pytest.mark.parametrize("killed", [False, True])
def test_waves_behind_the_leaving_out_do_not_pass_for_the_whole_shard(killed: bool, tmp_path: Path) -> None:
    log = _routed(tmp_path)
    version = baseline(log, *SHARD[1:])
    app, _ = _window(log)
    waves = Waves(log, version)
    early = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1, HALVES[0])
    app, window = _window(log)
    assert [one.ref.chunk.low_token for one in window.tables["shop.all"].chunks] == [early]
    if killed:  # by an application that knew no better, or before it said so
        last = app.histories["one"].versions(*SHARD[1:])[-1]
        told = replace(last, version=9, commit_ts=app.cut_ts, kind=LEFT_OUT, status=last.status.without_rows)
        control.append(log.lake, tables.SCHEMA_HISTORY, [told.to_row()])
    else:
        leave_out(app, [SHARD])
        assert waves.state == "failed"
    late = waves.read([10], app.cut_ts + 1, app.cut_ts + 1, HALVES[1])
    app, window = _window(log)
    assert waves.answers() == {early: "applied", late: "refused"}
    assert waves.state == "failed"
    assert not any(entry.chunks for entry in window.tables.values())
    assert app.states["shop.all"].state is State.SNAPSHOT, "it still lacks rows"
    again = Waves(log, waves.version, "s2")
    token = again.read([1, 2, 10], app.cut_ts + 1, app.cut_ts + 1)
    app, window = _window(log)
    assert again.answers() == {token: "applied"}


def test_a_wave_that_a_killed_window_passed_without_taking_it_is_read_again(tmp_path: Path) -> None:
    """Another shard's beginning refused it there, perhaps; silver at the window's end doesn't show its rows."""
    log = _routed(tmp_path)
    version = baseline(log, *SHARD[1:])
    app, _ = _window(log)
    waves = Waves(log, version)
    token = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1)
    log.level()
    app, window = log.first_window()
    assert list(news(app, window)), "the wave has its place now"
    app, window = log.first_window()
    app.positions.note_applied("shop.all", window.cut_ts)
    window, taken = to_waves(app, window)
    publish(app, window, taken)
    assert waves.answers() == {token: "refused"}
    assert app.states["shop.all"].state is State.SNAPSHOT


def test_a_shard_of_a_source_that_is_behind_is_left_out_where_that_one_is(tmp_path: Path) -> None:
    log = _routed(tmp_path)
    app, _ = _window(log)
    leave_behind(app, "one", "its capture stands")
    behind_ts = app.cut_ts
    app, _ = _window(log)
    assert app.cut_ts > behind_ts
    assert leave_out(app, [Physical("one", "shop", "t_2")]) == []
    last = app.histories["one"].last(("shop", "t_2"))
    assert last is not None
    assert (last.kind, last.commit_ts) == (LEFT_OUT, behind_ts)


def test_a_shard_that_no_snapshot_reads_has_another_way_out(tmp_path: Path) -> None:
    log = _routed(tmp_path)
    baseline(log, *SHARD[1:])
    app, _ = _window(log)
    assert app.states["shop.all"].reason.endswith("until they are read by a snapshot")
    ticdc = "one: {flavour: ticdc, path: /feed, protocol: csv, time_zone: UTC}"
    log.file.write_text(log.file.read_text().replace("one: {conn_id: c, flavour: mariadb}", ticdc))
    app, _ = _window(log)
    assert app.states["shop.all"].state is State.SNAPSHOT
    assert f"none reads one: {UNREAD_SHARDS}" in app.states["shop.all"].reason


def test_no_cut_counts_a_table_as_complete_while_a_new_source_of_its_shards_is_behind(tmp_path: Path) -> None:
    log = Log(tmp_path)
    head, _, tail = log.file.read_text().partition("tables: {")
    with_two = f"{head}tables: {{routes: [{{match: '(shop|two).t_.*', to: shop.all}}], {tail}"
    log.file.write_text(with_two.replace(", two: {conn_id: d, flavour: mariadb}", ""))
    log.send("one", "CREATE TABLE shop.t_2 (id INT NOT NULL PRIMARY KEY)")
    log.level()
    assert "shop.all" not in log.apply().states
    baseline(log, "two", "t_1", source="two")
    log.file.write_text(with_two)
    log.level()
    app, _ = _window(log)
    assert app.followed.behind == {"two": 0}
    assert app.states["shop.all"].reason.startswith("shop.all lacks rows of two.t_1 of two until")
    log.send("two", "ALTER TABLE two.t_1 ADD v INT", ("two.t_1",))
    log.level()
    log.send("two", "FLUSH STATUS", ())
    app = log.apply()
    assert not app.followed.behind
    assert app.states["shop.all"].state is State.SNAPSHOT, "it isn't held"
    assert waiting(app.pipeline, log.lake) == {"shop.all": (("two", "two", "t_1"),)}


def test_shards_of_a_source_that_is_put_back_are_left_out_from_where_it_was_left(tmp_path: Path) -> None:
    """The others go on, no cut says that all is there, and what its log says of them meanwhile is followed."""
    log = Log(tmp_path)
    head, _, tail = log.file.read_text().partition("tables: {")
    with_two = f"{head}tables: {{routes: [{{match: '(shop|two).t_.*', to: shop.all}}], {tail}"
    log.file.write_text(with_two)
    for source, name in (("one", "shop.t_1"), ("two", "two.t_1"), ("two", "two.t_2")):
        log.send(source, f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY)")
    log.level()
    assert "shop.all" not in log.apply().states
    log.file.write_text(with_two.replace(", two: {conn_id: d, flavour: mariadb}", ""))
    log.level()
    left_ts = log.apply().followed.sources_left["two"]
    log.send("two", "ALTER TABLE two.t_1 ADD v INT")
    log.level()
    assert log.apply().cut_ts > left_ts
    log.file.write_text(with_two)
    app = log.started()
    assert app.followed.behind == {"two": left_ts}
    last = app.histories["two"].last(("two", "t_1"))
    assert last is not None
    assert (last.kind, last.commit_ts) == (LEFT_OUT, left_ts)
    log.level()
    app, window = log.first_window()
    window, taken = to_waves(app, window)
    publish(app, window, taken)
    assert app.states["shop.all"].reason == (
        "shop.all lacks rows of two.t_1 of two, two.t_2 of two until they are read by a snapshot"
    )
    log.send("two", "FLUSH STATUS", ())  # it has come as far as the cut
    app = log.apply()
    assert not app.followed.behind
    assert app.states["shop.all"].state is State.SNAPSHOT, "it isn't held: the shards of `one` are whole"
    names = [column.name for column in app.histories["two"].versions("two", "t_1")[-1].columns]
    assert names == ["id", "v"]
    waits = waiting(app.pipeline, log.lake)
    assert waits == {"shop.all": (("two", "two", "t_1"), ("two", "two", "t_2"))}
