"""What is recorded last of a table counts, whatever the clock of an earlier apply's machine said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from spark_jobs.window.positions import Positions
from tidegate import tables
from tidegate.config import Tables
from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import last_states, to_row
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

AHEAD = timedelta(hours=1)


def positions(lake: LakeFiles) -> Positions:
    """Those of a process that begins."""
    pipeline = SimpleNamespace(pipeline="p", tables=Tables(include=("*.*",)))
    handles: Any = SimpleNamespace(lake=lake, control=ControlTables(lake), pipeline=pipeline)
    names: Any = SimpleNamespace(pair=lambda name: tuple(name.split(".")))
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
