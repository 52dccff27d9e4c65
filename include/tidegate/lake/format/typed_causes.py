"""Migration 1: a value decides about a table, and no longer words in `error` or `reason`.

In:  rows of control/table_states and control/followed of format 0.
Out: the same rows in the next format. table_states lacks `error`, and has cause, fault, needs,
     times, partner, source and snapshot. followed has a positive commit_ts, and `whole`: its sign
     meant that rows lack.

The words of format 0 are only here: lakes of that format still have them. In a reason of format 0 a
remedy says what the table needs. A table that waits with another quotes the other's reason, and
needs the same. Reasons of gates aren't searched, since they quote the user's statement.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_REREAD: Final = "a snapshot reads it anew, by itself unless snapshot.mode is manual (tidegate snapshot start)"
_RECREATE: Final = f"{_REREAD}; or DROP and CREATE it"
_JUDGE: Final = "tidegate schema judge"
_OF_HELD: Final = {
    "NeedsSnapshot": "needs_rows",
    "ShardJoined": "needs_rows",
    "UnloggedChanges": "unlogged",
    "DdlStops": "ddl_stops",
    "DdlAsks": "ddl_asks",
    "DdlNotRead": "ddl_not_read",
    "XaParked": "parked",
    "SameName": "same_name",
    "SchemaMismatch": "mismatch",
    "UnknownEvent": "event_not_read",
    "StreamCorrupt": "event_not_read",
    "RenamedWithHeld": "waits_with",
    "TableWriteError": "write_failed",
}
_OF_RELEASED: Final = {"DdlApproved": "ddl_asks", "DdlNotRead": "ddl_not_read", "TableWriteError": "write_failed"}
_NEED_NOTHING: Final = ("ddl_stops", "ddl_asks", "unlogged", "parked", "write_failed")
_CLASSES: Final = ("mismatch", "event_not_read", "ddl_not_read", "fault")
STATES_ADDED: Final = {
    "cause": pa.string(),
    "fault": pa.string(),
    "needs": pa.string(),
    "times": pa.int64(),
    "partner": pa.string(),
    "source": pa.string(),
    "snapshot": pa.string(),
}

STATES_BEFORE: Final = frozenset(
    {
        *("pipeline", "table", "state", "reason", "error", "commit_ts", "recorded_at"),
        *("place_source", "place_database", "place_table", "place_file", "place_pos", "place_at_ts", "place_ddl"),
    }
)
FOLLOWED_BEFORE: Final = frozenset(
    {
        *("number", "pipeline", "kind", "selection", "source", "database", "table", "logical", "state", "commit_ts"),
        *("reason", "recorded_at"),
    }
)


def states(rows: pa.Table) -> pa.Table:
    """Rows of control/table_states."""
    said = zip(*(rows[name].to_pylist() for name in ("state", "error", "reason")), strict=True)
    cells_of = [typed(*of) for of in said]
    made = rows.drop_columns(["error"])
    for name, kind in STATES_ADDED.items():
        made = made.append_column(name, pa.array([cells.get(name) for cells in cells_of], kind))
    return made


def typed(state: str, error: str, reason: str) -> dict[str, Any]:
    """The new columns of a row of table_states."""
    word, _, rest = error.partition(" ")
    if state == "snapshot":
        return {"snapshot": error or None}
    if state == "released":
        cause = _OF_RELEASED.get(word)
        times = _times(rest) if cause == "write_failed" else None
        return {"cause": cause, "times": times, "source": rest if word == "BehindSource" else None}
    if state != "held":
        return {}
    cause = _OF_HELD.get(word, "fault")
    return {
        "cause": cause,
        "fault": error if cause in _CLASSES and error else None,
        "needs": None if cause in _NEED_NOTHING else _needs(cause, reason),
        "times": _times(rest) if cause == "write_failed" else None,
        "partner": rest if cause == "waits_with" else None,
    }


def _needs(cause: str, reason: str) -> str | None:
    if _RECREATE in reason:
        return "columns"
    if _REREAD in reason:
        return "judgement" if _JUDGE in reason else "rows"
    return "rows" if cause == "needs_rows" else None


def _times(text: str) -> int:
    """How often it failed; the first releases don't say."""
    return int(text) if text.isdigit() else 1


def followed(rows: pa.Table) -> pa.Table:
    """Rows of control/followed."""
    at = rows["commit_ts"].combine_chunks()
    short = pc.less(at, 0)
    place = rows.schema.get_field_index("commit_ts")
    made = rows.set_column(place, rows.schema.field(place), pc.abs(at))
    whole = pc.if_else(short, pa.scalar(False), pa.scalar(None, pa.bool_()))
    held = pc.equal(rows["state"].combine_chunks(), "held")
    needs = [_needs("needs_rows", reason) if is_held else None for is_held, reason in zip(
        held.to_pylist(), rows["reason"].to_pylist(), strict=True)]  # fmt: skip
    return made.append_column("whole", whole).append_column("needs", pa.array(needs, pa.string()))
