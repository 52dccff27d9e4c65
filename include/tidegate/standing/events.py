"""The events of a table that may change its standing.

In:  nothing; these are values.
Out: Event, one class per kind; each says who causes it. reason: for people alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidegate.remedy import Needs
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place
from tidegate.tables import State


@dataclass(frozen=True, slots=True)
class Refused:
    """A step can't take it on. at_ts: up to where silver has it; None: as far as it is applied."""

    cause: Cause
    reason: str
    place: Place | None = None
    needs: Needs = Needs.NOTHING
    fault: str = ""
    partner: str = ""
    at_ts: int | None = None


@dataclass(frozen=True, slots=True)
class NotWritten:
    """It couldn't be written in any try, and that doesn't pass by itself. reason: of the last try."""

    reason: str


@dataclass(frozen=True, slots=True)
class SentBelow:
    """A step sends it to windows of its own: it catches up. unread: a statement about it isn't followed yet."""

    reason: str
    unread: bool = False


@dataclass(frozen=True, slots=True)
class SilverOlder:
    """Silver has less than control tables said, and bronze has the rest: it has all up to at_ts, by its own log."""

    at_ts: int
    reason: str


@dataclass(frozen=True, slots=True)
class Emptied:
    """Nothing from before at_ts counts any more: the table was emptied after it. source: in a window of a source that
    is behind: that source.
    """

    at_ts: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class PartnerGoesOn:
    """The table that it waits with isn't held any more."""


@dataclass(frozen=True, slots=True)
class PauseOver:
    """Time has passed. now: with a time zone."""

    now: datetime


@dataclass(frozen=True, slots=True)
class Released:
    """A person lets it go on (`tidegate release`, `schema judge`, `schema refresh`, Airflow)."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """The prepared transactions that it was held for are answered."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The pipeline file takes it in, or leaves it out. state: released, held or left; source: with which it goes on."""

    state: State
    at_ts: int
    reason: str
    needs: Needs = Needs.NOTHING
    source: str = ""


@dataclass(frozen=True, slots=True)
class SourceStalls:
    """A source that feeds it doesn't go on, and the cut does."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class SourceMeets:
    """A window of a source that is behind has changes of it."""

    source: str


@dataclass(frozen=True, slots=True)
class SourceBack:
    """A source is no longer behind."""

    source: str


@dataclass(frozen=True, slots=True)
class FlowsIn:
    """The main window has changes of a physical table of this source that flow into it. what: the table, in words."""

    source: str
    what: str


@dataclass(frozen=True, slots=True)
class WaveBegins:
    """A snapshot's first wave is taken: silver is emptied at low_ts, and filled from there."""

    snapshot: str
    low_ts: int


@dataclass(frozen=True, slots=True)
class ShardBegins:
    """A shard of it is read anew; the others' rows stay."""


@dataclass(frozen=True, slots=True)
class SnapshotLost:
    """The snapshot that fills it is over without having ended well."""

    reason: str


@dataclass(frozen=True, slots=True)
class Whole:
    """It has all rows again: its snapshot ended, or a statement emptied it."""

    at_ts: int


@dataclass(frozen=True, slots=True)
class ShardsLack:
    """Some of its shards lack rows. what: which, in words."""

    what: str
    at_ts: int


@dataclass(frozen=True, slots=True)
class CutReached:
    """A main window (low_ts, upto_ts] is to be published."""

    low_ts: int
    upto_ts: int


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """A window below the cut, of released tables, is to be published; it ended here."""

    upto_ts: int


@dataclass(frozen=True, slots=True)
class RowsGone:
    """Rows that it was to get from another table's silver are gone there. place: where it takes them."""

    reason: str
    place: Place


@dataclass(frozen=True, slots=True)
class LoggedAgain:
    """The cause of changes without row events is gone: only its rows are missing now."""

    reason: str


Event = (
    Refused
    | NotWritten
    | SentBelow
    | SilverOlder
    | Emptied
    | PartnerGoesOn
    | PauseOver
    | Released
    | Answered
    | Selected
    | SourceStalls
    | SourceMeets
    | SourceBack
    | FlowsIn
    | WaveBegins
    | ShardBegins
    | SnapshotLost
    | Whole
    | ShardsLack
    | CutReached
    | CaughtUp
    | RowsGone
    | LoggedAgain
)
