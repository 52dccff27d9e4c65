"""What is recorded last of a table counts, whatever the clock of an earlier apply's machine said. Its history is
forgotten before.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.window.positions import Positions
from tidegate import tables
from tidegate.config import Tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import commit_name, commit_version
from tidegate.delta.table.actions import commit_info, lines, protocol
from tidegate.delta.table.state import Action
from tidegate.errors import DeltaUnsupported
from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import EMPTIED, ddl_id
from tidegate.lake.silver.known_history import history_name, known_history, recorded
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.lake.standing.held import last_states, to_row
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

AHEAD = timedelta(hours=1)


def positions(lake: LakeFiles, *, history: tuple[str, ...] = ()) -> Positions:
    """Those of a process that begins. history: as the pipeline file has it."""
    pipeline = SimpleNamespace(pipeline="p", tables=Tables(include=("*.*",), history=history))
    pool = ThreadPoolExecutor(2, "table")
    handles: Any = SimpleNamespace(lake=lake, control=ControlTables(lake), pipeline=pipeline, pool=pool)
    plain = SimpleNamespace(routed=False)
    names: Any = SimpleNamespace(pair=lambda name: tuple(name.split(".")), logical=lambda *_: plain)
    begun = Positions(handles, names)
    begun.read_states()
    return begun


def test_a_hold_counts_that_a_machine_records_whose_clock_is_behind(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    follows, waits = Standing(State.ACTIVE, applied_ts=5), Standing(State.HELD, "", Cause.NEEDS_ROWS, 5)
    control.append(lake, tables.TABLE_STATES, [to_row(follows, "p", "d.a", datetime.now(UTC) + AHEAD)])
    first = positions(lake)
    first.record({"d.a": waits, "d.b": waits})
    assert last_states(lake) == {"d.a": waits, "d.b": waits}
    first.note({"d.a": Standing(State.RELEASED, applied_ts=5)})
    first.record({})
    positions(lake).record({"d.a": waits})
    assert last_states(lake)["d.a"] == waits
    at = {row["recorded_at"] for row in control.read(lake, tables.TABLE_STATES).to_pylist() if row["table"] == "d.b"}
    assert max(at) < datetime.now(UTC), "the other tables keep the time"


def test_a_window_below_a_statement_that_was_followed_already_does_not_hide_it(tmp_path: Path) -> None:
    """A killed window followed it alone: silver is of a time above the window that is written now."""
    lake = LakeFiles(str(tmp_path))
    log = lake.log(tables.silver_path("d", "t"))
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    app_id = tables.app_id("p", "d.t")
    log.commit(log.state(), Change([], "UPSERT", {app_id: 20}))
    log.commit(log.state(), Change([], "UPDATE", {ddl_id(app_id, "s", "d.t", "marks"): 40}))
    begun = positions(lake)
    begun.note_applied("d.t", 30)
    assert (begun.written("d.t"), begun.reached("d.t")) == (30, 40)
    begun.note_applied("d.t", 50)
    assert (begun.written("d.t"), begun.reached("d.t")) == (50, 50)


def test_no_row_is_wanted_from_below_a_truncate_that_an_older_release_followed(tmp_path: Path) -> None:
    """Its commit said nothing of rows. A kill, or rows that were refused, kept those after it out."""
    lake = LakeFiles(str(tmp_path))
    log = lake.log(tables.silver_path("d", "t"))
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    app_id = tables.app_id("p", "d.t")
    log.commit(log.state(), Change([], "UPSERT", {app_id: 20}))
    log.commit(log.state(), Change([], "DELETE", {ddl_id(app_id, "s", "d.t", EMPTIED): 40}))
    assert positions(lake).applied("d.t") == 39


NAME = history_name("p", "d.t")


def remembering(lake: LakeFiles) -> DeltaLog:
    """Silver of d.t, whose history is known from 50 on."""
    log = lake.log(tables.silver_path("d", "t"))
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",)))
    log.commit(log.state(), Change([], "UPSERT", recorded(log.state(), NAME, 50)))
    return log


def since(log: DeltaLog) -> int:
    known = known_history(log, log.state(), NAME)
    assert known is not None
    return known.since_ts


def demand(log: DeltaLog, action: Action) -> None:
    """Another writer's commit: tidegate can't read the one before, or what follows."""
    newest = max(commit_version(entry.name) or 0 for entry in log.store.names())
    assert log.store.create(commit_name(newest + 1), lines([commit_info("UPGRADE PROTOCOL", "theirs"), action]))


LEFT = Standing(State.LEFT, applied_ts=100)
LACKS = Standing(State.HELD, "", Cause.NEEDS_ROWS, 100)


@pytest.mark.parametrize(
    ("history", "standing", "wanted"),
    [
        (("d.t",), LEFT, 0),
        ((), LEFT, 0),  # one edit left the table out, and ended its history
        (("d.t",), LACKS, 0),
        (("d.t",), Standing(State.HELD, "", Cause.DDL_ASKS, 100), 50),
    ],
)
def test_a_table_that_may_miss_a_part_of_its_log_has_no_known_history(
    history: tuple[str, ...], standing: Standing, wanted: int, tmp_path: Path
) -> None:
    lake = LakeFiles(str(tmp_path))
    log = remembering(lake)
    positions(lake, history=history).record({"d.t": standing})
    assert since(log) == wanted
    assert last_states(lake)["d.t"].state is standing.state


def test_a_log_that_cant_forget_says_why_where_the_table_keeps_its_past(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    log = remembering(lake)
    whole = log.state().protocol
    demand(log, protocol({"ofLaterTimes"}))
    assert isinstance(positions(lake, history=("d.t",)).forget_history("d.t"), DeltaUnsupported)
    assert positions(lake).forget_history("d.t") is None
    positions(lake, history=("d.t",)).record({"d.t": LEFT})
    assert last_states(lake)["d.t"].state is State.LEFT
    demand(log, {"protocol": whole})
    assert since(log) == 50, "nobody could record that it left: who takes it in again forgets"


def test_tables_that_leave_by_one_edit_forget_their_histories_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_ask = threading.Barrier(2, timeout=60)
    monkeypatch.setattr("spark_jobs.window.positions.forget_history", lambda log, name: both_ask.wait())
    left = dict.fromkeys(("d.t", "d.u"), Standing(State.LEFT, applied_ts=60))
    assert positions(LakeFiles(str(tmp_path))).record(left), "no barrier is broken"
