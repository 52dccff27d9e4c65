"""A source falls behind, or brings a new shard while it is behind, and a table that it feeds waits or catches up then:
the table goes on with all that the source has, or waits for rows by name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.life.following import leave_behind
from spark_jobs.window.standing.standings import note, send_below
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import publish, to_decode
from tidegate import tables
from tidegate.lake import control
from tidegate.schema.model.columns import TableVersion
from tidegate.standing.causes import Cause
from tidegate.standing.events import Event, NotWritten, SentBelow
from tidegate.tables import State

SHARD = "(id INT NOT NULL PRIMARY KEY)"


class KilledError(Exception):
    """The process ends here."""


def _routed(folder: Path, *more: str) -> Log:
    """Tables named t_1 of each source flow into shop.all. more: sources beside one and two."""
    log = Log(folder)
    head, _, tail = log.file.read_text().partition("tables: {include: [")
    sources = ["two: {conn_id: d, flavour: mariadb}"]
    sources += [f"{name}: {{conn_id: {name}, flavour: mariadb}}" for name in more]
    head = head.replace(sources[0], ", ".join(sources))
    names = "".join(f"'{name}.*', " for name in more)
    route = f"tables: {{routes: [{{match: '({'|'.join(('shop', 'two', *more))}).t_1', to: shop.all}}], include: ["
    log.file.write_text(f"{head}{route}{names}{tail}")
    for name in more:
        log._ends[name] = (0, 4, 0)
        defaults = TableVersion(name, "", "", 1, 0, "b.000001", 4, "defaults", "", (), (), "utf8mb4")
        control.append(log.lake, tables.SCHEMA_HISTORY, [defaults.to_row()])
    return log


def _below(app: Application, behind: str | None) -> Window:
    """The next window below the cut: of this source, or of tables."""
    app.index.refresh(app.cut_ts)
    for turn in range(3):
        window = next_catch_up(app, turn)
        assert window is not None
        if window.behind == behind:
            return window
    raise AssertionError(behind)


def _main(log: Log) -> Application:
    app, window = log.first_window()
    publish(app, to_decode(app, window))
    return app


def test_a_table_whose_source_falls_behind_while_it_catches_up_is_not_at_the_cut(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.level()
    log.apply()
    log.level()
    app, window = log.first_window()
    window = to_decode(app, window)
    send_below(app, window, "two.d", "its writer gave it back")
    publish(app, window)
    leave_behind(app, "two", "its capture stands")
    at_ts = app.cut_ts
    publish(app, to_decode(app, _below(app, None)))
    log.send("one", "FLUSH STATUS", ())
    app = _main(log)
    standing = app.states["two.d"]
    assert app.cut_ts > at_ts
    assert (standing.state, standing.applied_ts) == (State.RELEASED, at_ts)
    log.level()
    app = log.apply()
    log.level()
    app = log.apply()
    assert (app.states["two.d"].state, app.followed.behind) == (State.ACTIVE, {})


@pytest.mark.parametrize("event", [NotWritten("no"), SentBelow("it was given back")])
@pytest.mark.parametrize("killed", [False, True])
def test_a_new_shard_of_a_source_that_is_behind_is_not_passed_by_a_table_that_waits(
    event: Event, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _routed(tmp_path)
    log.send("one", f"CREATE TABLE shop.t_1 {SHARD}")
    log.level()
    app = log.apply()
    leave_behind(app, "two", "its capture stands")
    log.send("two", f"CREATE TABLE two.t_1 {SHARD}", ("two.t_1",))
    log.send("one", "FLUSH STATUS", ())
    app = _main(log)
    note(app, "shop.all", event)
    app.record_states({})
    assert app.states["shop.all"].applied_ts > app.followed.behind["two"]
    app = log.started()
    if killed:
        monkeypatch.setattr("spark_jobs.apply_steps.replay_schema_history.failpoint", _die_behind_the_versions)
        with pytest.raises(KilledError):
            to_decode(app, _below(app, "two"))
        monkeypatch.undo()
        app = log.started()
        assert app.histories["two"].versions("two", "t_1")
    publish(app, to_decode(app, _below(app, "two")))
    standing = app.states["shop.all"]
    assert (standing.state, standing.cause, standing.lacks_rows) == (State.HELD, Cause.NEEDS_ROWS, True)


def _die_behind_the_versions(name: str) -> None:
    if name == "apply_after_schema_history":
        raise KilledError


def test_a_table_of_two_sources_that_join_at_once_is_not_at_the_cut_with_the_first(tmp_path: Path) -> None:
    log = _routed(tmp_path, "three")
    log.level()
    log.level()
    app = log.apply()
    leave_behind(app, "two", "its capture stands")
    leave_behind(app, "three", "its capture stands")
    log.send("two", f"CREATE TABLE two.t_1 {SHARD}", ("two.t_1",))
    log.send("three", f"CREATE TABLE three.t_1 {SHARD}", ("three.t_1",))
    log.send("one", "FLUSH STATUS", ())
    app = _main(log)
    publish(app, to_decode(app, _below(app, "two")))
    assert app.states["shop.all"].source == "two"
    publish(app, to_decode(app, _below(app, "three")))
    standing = app.states["shop.all"]
    assert not standing.source
    assert standing.state is State.HELD or standing.applied_ts <= app.followed.behind["three"]
    log.send("two", "FLUSH STATUS", ())
    publish(app, to_decode(app, _below(app, "two")))
    assert "two" not in app.followed.behind
    assert app.states["shop.all"].state in (State.HELD, State.RELEASED), "three.t_1 is behind the cut"
