"""Tables that are held: what control/table_states says of them, and the event that lets one go on.

In:  a lake.
Out: the last event per table; DDL that waits for a person's approval; a `released` event.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tidegate import tables
from tidegate.errors import StreamCorrupt, UnknownEvent
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.schema.ddl.reader import DdlNotRead

JUDGE: Final = "tidegate schema judge"


def last_events(lake: LakeFiles) -> dict[str, dict[str, Any]]:
    """Logical table -> its newest row of control/table_states."""
    events = control.newest(lake, tables.TABLE_STATES, by=["table"], order=["recorded_at"])
    return {event["table"]: event for event in events.to_pylist()}


def waits(event: Mapping[str, Any]) -> bool:
    """Whether its table stands where the event says: held, or released and not yet caught up."""
    return event["state"] in ("held", "released")


def held_events(lake: LakeFiles) -> dict[str, dict[str, Any]]:
    """The same of the tables that are held now."""
    return {table: event for table, event in last_events(lake).items() if event["state"] == "held"}


def questions(lake: LakeFiles) -> dict[str, dict[str, Any]]:
    """The same of the tables whose DDL waits for approval (`ddl: {...: ask}` in the pipeline file)."""
    return {table: event for table, event in held_events(lake).items() if event["error"] == tables.DDL_ASKS}


def judgeable(event: Mapping[str, Any]) -> bool:
    """Whether what stands at a held table's place is for a person to judge: a statement, or an event, that nobody could
    follow; no lack of columns or rows.
    """
    unfollowed = event["error"] in (UnknownEvent.__name__, StreamCorrupt.__name__, DdlNotRead.__name__)
    return event["place_file"] is not None and (unfollowed or JUDGE in event["reason"])


def release(lake: LakeFiles, held: Mapping[str, Any], *, reason: str = "") -> dict[str, Any]:
    """Let a held table go on with the next window; where its DDL waits for approval, that is it. Returns the event.

    held: the table's last event. reason: who said so, for status and the table's history.
    """
    # What comes after a statement that wasn't followed must not be replayed before it is.
    goes_on = {tables.DDL_ASKS: tables.DDL_APPROVED, DdlNotRead.__name__: DdlNotRead.__name__}
    error = goes_on.get(held["error"], "")
    event = {**held, "state": "released", "reason": reason, "error": error, "recorded_at": datetime.now(UTC)}
    control.append(lake, tables.TABLE_STATES, [event])
    return event
