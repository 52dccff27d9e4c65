"""A table whose columns the log itself corrects is released in the very window, and its next one decodes with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import decoded, publish, to_decode
from tests.unit.binlog.encoding import events as e
from tidegate import tables
from tidegate.binlog.format.events import EventType
from tidegate.lake import control
from tidegate.tables import State

_LONGLONG = b"\x08"
# Metadata that binlog_row_metadata=FULL adds: signedness, the columns' names, the primary key's columns.
_TOLD = b"\x01\x01\x00" + b"\x04\x03\x02id" + b"\x08\x01\x00"


def _row(table: str, *, told: bool) -> bytes:
    """A row of a table whose `id` is a BIGINT by now, without its statement in the log."""
    mapped = e.table_map(7, table, _LONGLONG, b"")
    body = mapped[19:-4] + (_TOLD if told else b"")
    return e.event(EventType.TABLE_MAP, body) + e.rows(EventType.WRITE_ROWS_V1, 7, 1, b"\0" + (5).to_bytes(8, "little"))


def _through(app: Application, window: Window) -> None:
    publish(app, to_decode(app, window))


def test_a_healed_table_catches_up_in_a_window_of_its_own_and_no_other_table_waits(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for name, told in (("a", True), ("b", False)):
        log.send("one", b"", (f"shop.{name}",), event=_row(name, told=told))
    log.level()
    app, first = log.first_window()
    _through(app, first)
    assert {name: state.state for name, state in first.held.items()} == {
        "shop.a": State.RELEASED,
        "shop.b": State.HELD,
    }
    assert "healed from the log; it catches up" in first.held["shop.a"].reason
    assert "not healed from the log: the event doesn't name its columns" in first.held["shop.b"].reason
    assert app.cut_ts == first.cut_ts, "the cut doesn't wait"

    again = log.application()  # whoever starts now finds the same
    again.load()
    again.index.refresh(again.cut_ts)
    second = next_catch_up(again, 0)
    assert second is not None
    assert (second.low_ts, second.cut_ts) == (first.held["shop.a"].applied_ts, first.cut_ts)
    _through(again, second)
    assert second.held == {}
    assert again.states["shop.a"].state is State.ACTIVE
    kinds = [row["kind"] for row in control.read(log.lake, tables.SCHEMA_HISTORY).to_pylist() if row["table"] == "a"]
    assert sorted(kinds) == ["create", "healed"]


def test_killed_behind_the_healed_version_the_same_window_decodes_with_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", b"", ("shop.a",), event=_row("a", told=True))
    log.level()
    app, window = log.first_window()
    window = to_decode(app, window)
    assert window.held["shop.a"].state is State.RELEASED
    again, same = log.first_window()  # nothing was published
    same, made = decoded(again, same)
    assert (same.held, same.cut_ts) == ({}, window.cut_ts)
    assert "shop.a" in same.tables
    assert sum(entry.ledger.quarantined_bytes for entry in made.ledger) == 0
    kinds = [row["kind"] for row in control.read(log.lake, tables.SCHEMA_HISTORY).to_pylist() if row["table"] == "a"]
    assert sorted(kinds) == ["create", "healed"]


@pytest.mark.parametrize(("rule", "state"), [("columns: [b]", State.RELEASED), ("comment: pii", State.HELD)])
def test_a_column_whose_comment_nobody_knows_is_not_healed_where_masks_go_by_comments(
    tmp_path: Path, rule: str, state: State
) -> None:
    log = Log(tmp_path)
    masks = f"'two.*'], masks: [{{match: 'shop.*', {rule}, how: null}}]}}"
    text = log.file.read_text().replace("'two.*']}", masks)
    log.file.write_text(text.replace("apply: {", "apply: {unlogged_columns: null, "))
    told = b"\x01\x01\x00" + b"\x04\x05\x02id\x01b" + b"\x08\x01\x00"
    mapped = e.event(EventType.TABLE_MAP, e.table_map(7, "a", b"\x03\x03", b"")[19:-4] + told)
    row = e.rows(EventType.WRITE_ROWS_V1, 7, 2, e.image(b"\x05\0\0\0", b"\x06\0\0\0"))
    log.send("one", b"", ("shop.a",), event=mapped + row)
    log.level()
    app, window = log.first_window()
    _through(app, window)
    assert window.held["shop.a"].state is state
    assert ("whose comment nobody knows" in window.held["shop.a"].reason) is (state is State.HELD)
