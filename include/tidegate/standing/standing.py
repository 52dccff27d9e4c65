"""The standing of a table: one frozen value.

In:  nothing; these are values.
Out: Standing, Place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tidegate.errors import PastDamaged, PastUnlike, RuleChanged
from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion
from tidegate.standing.causes import ASK_A_PERSON, ENDS, Cause, Emptying, Word
from tidegate.tables import State

_LACKS_PAST: Final = (PastUnlike.__name__, PastDamaged.__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source's log a table's trouble is.

    database, table: the physical table's. pos: of a DDL its end, else the start of an event; ddl:
    "" when it is none. source, file: "" where it isn't one event's, but somewhere at or below
    at_ts; the names are then the silver one's.
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
        name = version.physical
        return cls(*name, version.file, version.pos, version.commit_ts, version.ddl)


@dataclass(frozen=True, slots=True)
class Standing:
    """The known facts of a logical table beside its rows. applied_ts: all changes up to it are in
    silver.

    | state | means | beside it |
    |---|---|---|
    | active | follows: it takes every window | |
    | held | waits | cause, place; fault, needs, times, partner |
    | released | catches up from applied_ts | source: which it goes on with |
    | snapshot | fills: it takes every window, and lacks rows | snapshot: which; "" of a table whose shards lack some |
    | dropped | is gone at the source | |
    | left | the pipeline file no longer keeps it | fault, of one that had lost its past |

    A table keeps these while it waits or catches up, whatever else happens, until it follows again:
    approved_ts: a person has approved its DDL up to here, 0: none. unread: a statement about it
    isn't followed yet. times: how often in a row it couldn't be written, if it is held for that or
    was released from it.

    reason: for people alone. since: when it was recorded. pipeline, table: of one that was read
    from the lake.
    """

    state: State
    reason: str = ""
    cause: Cause | None = None
    applied_ts: int = 0
    place: Place | None = None
    fault: str = field(default="", kw_only=True)
    needs: Needs = field(default=Needs.NOTHING, kw_only=True)
    times: int = field(default=0, kw_only=True)
    approved_ts: int = field(default=0, kw_only=True)
    unread: bool = field(default=False, kw_only=True)
    partner: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    snapshot: str = field(default="", kw_only=True)
    since: datetime | None = field(default=None, compare=False, kw_only=True)
    pipeline: str = field(default="", compare=False, kw_only=True)
    table: str = field(default="", compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check that the fields agree: a contradiction is a defect of the caller."""
        is_released = self.state is State.RELEASED
        assert (self.cause is None) == (self.state is not State.HELD), "held for a cause"
        assert bool(self.partner) == (self.cause is Cause.WAITS_WITH), "a partner is whom it waits with"
        assert is_released or bool(self.times) == (self.cause is Cause.WRITE_FAILED), "how often it wasn't written"
        assert is_released or self.cause is not None or not (self.approved_ts or self.unread), "it follows"
        assert not self.source or self.state is State.RELEASED, "one that goes on with a source is released"
        assert not self.snapshot or self.state is State.SNAPSHOT, "one that a snapshot fills"

    @property
    def lacks_rows(self) -> bool:
        """Whether it is held for rows that bronze doesn't have: they are read anew, or the table
        begins anew. False at a gate: an automatic snapshot would take the table past the gate.
        """
        return self._needs_rows and self.cause is not None and not ENDS[self.cause].is_gate

    @property
    def parts_from_log(self) -> bool:
        """Whether it may go on without some of its log: from a snapshot, or from where it is emptied or taken in."""
        return self.state in (State.SNAPSHOT, State.LEFT) or self._needs_rows or self.cause is Cause.UNLOGGED

    @property
    def _needs_rows(self) -> bool:
        return self.cause is not None and self.state is State.HELD and (ENDS[self.cause].snapshot or self.needs.rows)

    @property
    def lacks_past(self) -> bool:
        """Whether it needs more than its rows: versions or deleted rows that only bronze has. A person gives
        them up by asking for a snapshot.
        """
        return self.lacks_rows and self.fault in _LACKS_PAST

    @property
    def past_lost(self) -> str:
        """The fault of a table that lacks its past, also while the pipeline file leaves it out; "" for others. Only two
        things let it go on: the past comes back, or a person gives it up.
        """
        return self.fault if self.state in (State.HELD, State.LEFT) and self.fault in _LACKS_PAST else ""

    @property
    def by_other_rules(self) -> bool:
        """Whether it is held because silver was made by other rules than the pipeline file has."""
        return self.state is State.HELD and self.fault == RuleChanged.__name__

    @property
    def is_blocked(self) -> bool:
        """Whether it lacks rows, or changes without row events: then no snapshot under way can end well."""
        return self._needs_rows or (self.state is State.HELD and self.cause is Cause.UNLOGGED)

    @property
    def releasable(self) -> bool:
        """Whether a person may let it go on: not while it lacks rows that are in no log."""
        return self.state is State.HELD and self.cause is not None and ENDS[self.cause].word is not Word.NONE

    @property
    def judgeable(self) -> bool:
        """Whether a person may judge the place of the hold: it is a statement or an event that
        can't be followed, and not a lack of columns or rows.
        """
        by_cause = self.cause is not None and ENDS[self.cause].word is Word.JUDGE
        return self.state is State.HELD and self.event is not None and (by_cause or self.needs is Needs.JUDGEMENT)

    @property
    def asks(self) -> bool:
        """Whether it waits for a person's answer."""
        return self.state is State.HELD and self.cause in ASK_A_PERSON

    @property
    def is_unread(self) -> bool:
        """Whether a statement about it isn't followed yet: then later ones must not be replayed."""
        return self.unread or self.cause is Cause.DDL_NOT_READ

    @property
    def columns_doubted(self) -> bool:
        """Whether the log's columns may be wrong: an ALTER may have been lost, or not followed."""
        return self.is_unread or self.cause is Cause.MISMATCH or self.needs is Needs.COLUMNS

    @property
    def event(self) -> Place | None:
        """The place, where the trouble is one event's."""
        return self.place if self.place is not None and self.place.file else None

    def ends_by_emptying(self, emptied_ts: int, *, first: bool, rows_stay: bool, gone: bool = False) -> bool:
        """Whether a held table goes on after a version that empties it. first: whether the hold is
        its own, and not its partner's. rows_stay: whether rows of the past are in silver, by the
        pipeline file of now. gone: whether the source has had no table of this name from there on up to the place.
        """
        how = ENDS[self.cause].emptied if self.cause is not None else Emptying.NEVER
        if how is Emptying.NEVER or (self.lacks_past and rows_stay):
            return False
        # The place may be the end of the window. If the table was gone by then, its trouble lies before that. This
        # counts only once: the statement that removed the table may be the one that can't be followed.
        came_before = gone and self.needs.rows and self.applied_ts < emptied_ts - 1
        if first and self.place is not None and self.place.at_ts >= emptied_ts and not came_before:
            return False
        return how is Emptying.ENDS or (not rows_stay and (not first or self.place is not None))
