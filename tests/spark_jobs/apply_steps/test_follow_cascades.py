"""Which tables a play of foreign keys concerns, and which wait where it isn't certain."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.apply_steps.follow_cascades import Children, _concerned, _Given, _hold, _Played
from spark_jobs.cascades.logged import Looked
from spark_jobs.cascades.unsure import read_meanwhile, unsure_upto
from spark_jobs.window.application import Application
from spark_jobs.window.window import WaveChunk, Window
from tests.support.event_log import Log
from tests.support.steps import to_ddl
from tidegate.cascades.follow import Logged, Row
from tidegate.cascades.rules import Rule
from tidegate.cascades.values import Doubt, Likeness
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
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


def _chunk(low_ts: int, *, exact: bool = False) -> WaveChunk:
    ref: Any = None
    return WaveChunk(ref, 1, low_ts, exact)


def test_of_tables_that_snapshots_read_rows_may_be_later_ones(tmp_path: Path) -> None:
    app, window, children = _planned(tmp_path)
    children[_name("b")].chunks.append(_chunk(5))
    app.states["shop.e"] = Standing(State.SNAPSHOT, snapshot="s1", applied_ts=1)
    children[_name("g")].again_ts = 7
    ever = (1 << 63) - 1
    nothing: Any = None
    given = _Given((), {}, nothing)
    assert _Played(app, window, given, "one", children)._unsure() == {_name("b"): ever, _name("e"): ever, _name("g"): 7}


def test_an_exact_wave_leaves_nothing_unsure_from_its_place_on(tmp_path: Path) -> None:
    app, window, children = _planned(tmp_path)
    physical, entry, ever = Physical("one", *_name("b")), children[_name("b")], (1 << 63) - 1
    entry.chunks += [_chunk(5, exact=True), _chunk(5, exact=True)]
    entry.again_ts = 9
    assert unsure_upto(app, entry, physical) == 4, "silver is at 9, and rows are the view's"
    assert read_meanwhile(app, entry, physical) == ever
    nothing: Any = None
    played = _Played(app, window, _Given((), {}, nothing), "one", children)
    assert [(at.commit_ts, at.emptied) for at in played._rules() if at.commit_ts == 5] == [(5, [_name("b")])]
    entry.chunks.append(_chunk(3))
    assert unsure_upto(app, entry, physical) == ever


def test_a_table_that_a_snapshot_has_read_is_known_before_its_end_mark(tmp_path: Path) -> None:
    app, _, children = _planned(tmp_path)
    physical, entry, ever = Physical("one", *_name("b")), children[_name("b")], (1 << 63) - 1
    app.states["shop.b"] = Standing(State.SNAPSHOT, snapshot="s1", applied_ts=1)

    def told(kind: EventKind, **cells: Any) -> int:
        event = SnapshotEvent("s1", "p", "one", kind, datetime.now(UTC), *physical.pair, **cells)
        app.snapshots.take_in([event])
        return unsure_upto(app, entry, physical)

    assert told(EventKind.REQUESTED) == told(EventKind.RANGES, spans=(WHOLE,)) == ever
    assert told(EventKind.WAVE, wave=1, token="t", spans=(WHOLE,)) == ever
    assert told(EventKind.APPLIED, wave=1, token="t", low_ts=5, high_ts=8) == 8, "silver may be put back below it"


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
