"""Tables that are held: what control/table_states says of them, and the event that lets one go on.

In:  a lake.
Out: the last state per table; what waits for a person's answer; a `released` event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Final

from tidegate import tables
from tidegate.errors import REREAD, StreamCorrupt, UnknownEvent
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.prewrites_table import XA_PARKED
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.model.columns import TableVersion
from tidegate.tables import State

JUDGE: Final = "tidegate schema judge"
_ASKED: Final = (tables.DDL_ASKS, XA_PARKED)
# table_states.error of a table whose DDL could not be followed: what comes later must not be replayed onto it.
DDL_NOT_READ: Final = DdlNotRead.__name__
# ... of one that an earlier version held since a shard with a past joined it.
SHARD_JOINED: Final = "ShardJoined"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source's log a table's trouble is.

    database, table: the physical table's. pos: of a DDL its end, else the start of an event; ddl: "" when it is none.
    source, file: "" where it isn't one event's, but somewhere at or below at_ts; the names are then the silver one's.
    """

    source: str
    database: str
    table: str
    file: str
    pos: int
    at_ts: int
    ddl: str = ""

    @classmethod
    def of(cls, version: TableVersion) -> Place:
        """Where a version begins."""
        name = (version.source, version.database, version.table)
        return cls(*name, version.file, version.pos, version.commit_ts, version.ddl)


@dataclass(frozen=True, slots=True)
class TableState:
    """What is known of a logical table beside its rows. applied_ts: all changes up to it are in silver.

    since: when this was recorded. pipeline, table: of a state that was read from control/table_states.
    """

    state: State
    reason: str = ""
    error: str = ""
    applied_ts: int = 0
    place: Place | None = None
    since: datetime | None = field(default=None, compare=False)
    pipeline: str = field(default="", compare=False, kw_only=True)
    table: str = field(default="", compare=False, kw_only=True)

    @property
    def behind_source(self) -> str:
        """The source that a released table goes on with; "" when it catches up by itself."""
        word, _, source = self.error.partition(" ")
        return source if self.state is State.RELEASED and word == tables.BEHIND_SOURCE else ""

    @property
    def lacks_rows(self) -> bool:
        """Whether it is held for rows that bronze doesn't have: they are read anew, or the table begins anew."""
        return self.state is State.HELD and (
            self.error in (tables.NEEDS_SNAPSHOT, SHARD_JOINED) or REREAD in self.reason
        )

    @property
    def judgeable(self) -> bool:
        """Whether what stands at a held table's place is for a person to judge: a statement, or an event, that nobody
        could follow; no lack of columns or rows.
        """
        unfollowed = self.error in (UnknownEvent.__name__, StreamCorrupt.__name__, DDL_NOT_READ)
        return self.event is not None and (unfollowed or JUDGE in self.reason)

    @property
    def event(self) -> Place | None:
        """The place, where the trouble is one event's."""
        return self.place if self.place is not None and self.place.file else None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> TableState:
        """From a row of control/table_states."""
        cells = {item.name: row[f"place_{item.name}"] for item in fields(Place)}
        place = None if cells["source"] is None else Place(**cells)
        told = (State(row["state"]), row["reason"], row["error"], row["commit_ts"], place, row["recorded_at"])
        return cls(*told, pipeline=row["pipeline"], table=row["table"])

    def to_row(self, pipeline: str, table: str, recorded_at: datetime) -> dict[str, Any]:
        """The row that records it."""
        place = {f"place_{name}": value for name, value in asdict(self.place).items()} if self.place else {}
        return {
            "pipeline": pipeline,
            "table": table,
            "state": self.state,
            "reason": self.reason,
            "error": self.error,
            "commit_ts": self.applied_ts,
            "recorded_at": recorded_at,
            **place,
        }


def last_states(lake: LakeFiles) -> dict[str, TableState]:
    """Logical table -> what its newest row of control/table_states says."""
    rows = control.newest(lake, tables.TABLE_STATES, by=["table"], order=["recorded_at"])
    return {row["table"]: TableState.from_row(row) for row in rows.to_pylist()}


def held_tables(lake: LakeFiles) -> dict[str, TableState]:
    """The same of the tables that are held now."""
    return {table: state for table, state in last_states(lake).items() if state.state is State.HELD}


def questions(lake: LakeFiles) -> dict[str, TableState]:
    """The same of the tables whose DDL waits for approval (`ddl: {...: ask}` in the pipeline file), and of those that
    wait for a person's word on an XA transaction that nobody answered.
    """
    return {table: state for table, state in held_tables(lake).items() if state.error in _ASKED}


def release(lake: LakeFiles, held: TableState, *, reason: str = "") -> TableState:
    """Let a held table go on with the next window; where its DDL waits for approval, that is it. Returns its state.

    held: as it was read. reason: who said so, for status and the table's history.
    """
    # What comes after a statement that wasn't followed must not be replayed before it is.
    goes_on = {tables.DDL_ASKS: tables.DDL_APPROVED, DDL_NOT_READ: DDL_NOT_READ}
    now = datetime.now(UTC)
    found = replace(held, state=State.RELEASED, reason=reason, error=goes_on.get(held.error, ""), since=now)
    control.append(lake, tables.TABLE_STATES, [found.to_row(held.pipeline, held.table, now)])
    return found
