"""Where tables stand: rows of control/table_states as values, and a person's release of a held
table.

In:  a lake.
Out: the last Standing per table; questions for a person; a `released` row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow.compute as pc

from tidegate import tables
from tidegate.delta.table.state import TableState
from tidegate.errors import HoldChangedError, LakeRefused, UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.remedy import Needs
from tidegate.standing.causes import Cause
from tidegate.standing.events import Released
from tidegate.standing.shown import LacksSnapshots, way_to_rows
from tidegate.standing.standing import Place, Standing
from tidegate.standing.step import release as released
from tidegate.tables import State

# A row written by hand may lack a cause.
_UNSAID: Final = {State.HELD.value: Cause.FAULT}
_TICK: Final = timedelta(microseconds=1)
_TEXTS: Final = ("fault", "partner", "source", "snapshot")


def from_row(row: Mapping[str, Any]) -> Standing:
    """The standing in a row of control/table_states. Raises LakeRefused for a row tidegate never
    writes.
    """
    try:
        return _standing(row)
    except (ValueError, AssertionError) as error:
        raise LakeRefused(
            f"control/table_states has an impossible row of {row['table']}, of {row['recorded_at']}: {error}",
            where=row["pipeline"],
            remedy="take back what was written there by hand: control tables are tidegate's own",
        ) from error


def _standing(row: Mapping[str, Any]) -> Standing:
    cells = {item.name: row[f"place_{item.name}"] for item in fields(Place)}
    return Standing(
        State(row["state"]),
        row["reason"],
        Cause(row["cause"]) if row["cause"] else _UNSAID.get(row["state"]),
        row["commit_ts"],
        None if cells["source"] is None else Place(**cells),
        needs=Needs(row["needs"] or Needs.NOTHING),
        times=row["times"] or 0,
        approved_ts=row["approved_ts"] or 0,
        unread=bool(row["unread"]),
        since=row["recorded_at"],
        pipeline=row["pipeline"],
        table=row["table"],
        **{name: row[name] or "" for name in _TEXTS},
    )


def to_row(standing: Standing, pipeline: str, table: str, recorded_at: datetime) -> dict[str, Any]:
    """The row of control/table_states that records this standing."""
    place = {f"place_{name}": value for name, value in asdict(standing.place).items()} if standing.place else {}
    return {
        "pipeline": pipeline,
        "table": table,
        "state": standing.state,
        "reason": standing.reason,
        "commit_ts": standing.applied_ts,
        "recorded_at": recorded_at,
        "cause": standing.cause,
        "needs": standing.needs if standing.needs.rows else None,
        "times": standing.times or None,
        "approved_ts": standing.approved_ts or None,
        "unread": standing.unread or None,
        **{name: getattr(standing, name) or None for name in _TEXTS},
        **place,
    }


def behind(since: datetime | None, now: datetime | None = None) -> datetime:
    """The recorded_at for a new row of a table: now, but always later than `since`, that of its
    last row.

    A table's latest row counts, and the clock of the last writer may be ahead of ours.
    """
    now = now or datetime.now(UTC)
    return now if since is None else max(now, since + _TICK)


def last_states(lake: LakeFiles) -> dict[str, Standing]:
    """The last standing of each logical table, by its name."""
    rows = control.newest(lake, tables.TABLE_STATES, by=["table"], order=["recorded_at"])
    read_from, standings = (lake.carried or {}).get(last_states, (None, {}))
    if read_from is not rows:
        standings = {row["table"]: from_row(row) for row in rows.to_pylist()}
    if lake.carried is not None:
        lake.carried[last_states] = (rows, standings)
    return dict(standings)


def state_of(lake: LakeFiles, table: str) -> Standing | None:
    """The last standing of one logical table; None before its first row."""
    rows = control.newest(lake, tables.TABLE_STATES, by=["table"], order=["recorded_at"])
    of_table = rows.filter(pc.equal(rows["table"], table)).to_pylist()
    return from_row(of_table[0]) if of_table else None


def held_tables(lake: LakeFiles) -> dict[str, Standing]:
    """The last standing of each table held now, by its name."""
    return {table: state for table, state in last_states(lake).items() if state.state is State.HELD}


def questions(lake: LakeFiles) -> dict[str, Standing]:
    """The held tables that wait for a person's word, by name.

    A table waits for approval of its DDL (`ddl: {...: ask}` in the pipeline file), or at an unanswered XA transaction.
    """
    return {table: state for table, state in held_tables(lake).items() if state.asks}


def release(
    lake: LakeFiles, held: Standing, *, reason: str = "", lacks_snapshots: LacksSnapshots = lambda _: False
) -> Standing:
    """Let a held table go on with the next window. If its DDL waits for approval, this approves it.
    Returns its standing.

    held: as it was read. reason: who did it, for status and the table's history. Raises UsageError
    if no release helps: the table would lack rows.
    """
    standing = released(held, Released(reason))
    if standing.state is State.HELD and standing.cause is held.cause:
        raise UsageError(
            f"{held.table} needs rows that bronze does not have ({held.reason})",
            where=held.pipeline,
            remedy=way_to_rows(held, lacks_snapshots),
        )
    row = to_row(standing, held.pipeline, held.table, behind(held.since))
    if not control.append_if(lake, tables.TABLE_STATES, row, lambda state: _stands(lake, state, held)):
        what = f"{held.table} isn't held for that any more"
        raise HoldChangedError(what, where=held.pipeline, remedy=f"see `tidegate status {held.pipeline}`")
    return standing


def _stands(lake: LakeFiles, state: TableState, held: Standing) -> bool:
    """Whether this is still the table's last row in a state of control/table_states."""
    rows = control.rows_of(lake, tables.TABLE_STATES, state, filters=[("table", "=", held.table)])
    last = control.last_of(rows, ["table"], ["recorded_at"])["recorded_at"].to_pylist()
    return bool(last == [held.since])
