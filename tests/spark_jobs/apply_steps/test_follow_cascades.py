"""Which tables a play of foreign keys concerns, and which wait where it isn't certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.apply_steps.follow_cascades import Children, _concerned, _Given, _hold, _Played
from spark_jobs.cascades.logged import Looked
from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import to_ddl
from tidegate.cascades.follow import Logged, Row
from tidegate.cascades.rules import Rule
from tidegate.cascades.values import Doubt, Likeness
from tidegate.standing.standing import Standing
from tidegate.tables import State

KEYS = {"b": "a", "e": "b", "g": "f"}  # child -> parent, in shop


def _name(table: str) -> tuple[str, str]:
    return ("shop", table)


def _planned(folder: Path) -> tuple[Application, Window, Children]:
    log = Log(folder)
    log.send("one", "CREATE TABLE f (id INT PRIMARY KEY)")
    for child, parent in KEYS.items():
        if child != "b":
            log.send("one", f"CREATE TABLE {child} (id INT PRIMARY KEY)")
        key = f"FOREIGN KEY (id) REFERENCES {parent} (id) ON DELETE CASCADE"
        log.send("one", f"ALTER TABLE {child} ADD CONSTRAINT fk_{child} {key}")
    log.level()
    app, window = log.first_window()
    window = to_ddl(app, window)
    return app, window, {_name(child): window.tables[f"shop.{child}"] for child in KEYS}


@pytest.mark.parametrize(
    ("doubt", "waits"),
    [
        (Doubt("why", _name("b")), {"b"}),
        (Doubt("why", parent=_name("a")), {"b", "e"}),
        (Doubt("why", parent=_name("b")), {"e"}),
        (Doubt("why", _name("f")), {"g"}),
        (Doubt("why", ("crm", "c")), {"b", "e", "g"}),
        (Doubt("why"), {"b", "e", "g"}),
    ],
)
def test_a_doubt_holds_those_whom_it_is_about(doubt: Doubt, waits: set[str], tmp_path: Path) -> None:
    app, window, children = _planned(tmp_path)
    _hold(app, window, "one", children, doubt)
    assert window.held.keys() == {f"shop.{name}" for name in waits}
    assert {name for _, name in children} == KEYS.keys() - waits


def test_a_doubt_about_a_table_that_is_gone_ends_where_it_went(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "CREATE TABLE b (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES a (id) ON DELETE CASCADE)")
    log.send("one", "RENAME TABLE b TO e")
    log.level()
    app, window = log.first_window()
    window = to_ddl(app, window)
    went = app.histories["one"].last(_name("b"))
    assert went is not None
    _hold(app, window, "one", {_name("b"): window.tables["shop.b"]}, Doubt("why", _name("b")))
    place = window.held["shop.b"].place
    assert place is not None
    assert place.at_ts == went.commit_ts - 1 < window.cut_ts


def test_of_tables_that_snapshots_read_rows_may_be_later_ones(tmp_path: Path) -> None:
    app, window, children = _planned(tmp_path)
    chunk: Any = object()
    children[_name("b")].chunks.append(chunk)
    app.states["shop.e"] = Standing(State.SNAPSHOT, snapshot="s1", applied_ts=1)
    children[_name("g")].again_ts = 7
    ever = (1 << 63) - 1
    nothing: Any = None
    given = _Given((), {}, nothing)
    assert _Played(app, window, given, "one", children)._unsure() == {_name("b"): ever, _name("e"): ever, _name("g"): 7}


def test_rows_are_followed_below_tables_that_act_alone() -> None:
    rules = [
        Rule(child, _name(child), _name(parent), ("id",), ("id",), "CASCADE", "", (Likeness.EXACT,))
        for child, parent in KEYS.items()
    ]
    looked = {
        _name(table): Looked(1, ("id",), ("id",) if table in KEYS else None) for table in ("a", "b", "e", "f", "g")
    }

    def concerned(table: str) -> dict[str, bool]:
        act = Logged((2, 1, 1), _name(table), Row((), {"id": 1}, None), None)
        return {name: one.key is not None for (_, name), one in _concerned(rules, looked, [act]).items()}

    assert concerned("a") == {"a": False, "b": True, "e": True}
    assert concerned("b") == {"b": False, "e": True}
    assert concerned("f") == {"f": False, "g": True}
