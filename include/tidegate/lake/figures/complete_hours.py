"""The hours up to which silver is complete, and verified: per table, and for all tables together.

In:  a lake: the newest cut, the tables' states, the sources behind it, the verdicts of verify.
Out: hours since 1970 (UTC); nothing is written.

An hour is complete if none of its commits is missing, and none can come any more. A cut says so of
commit_ts, by the sources' clocks. A complete hour stays complete. A table held, catches up or lacks
rows gets no newer hour until it follows again, and all tables together get none either. Its
applied_ts doesn't count: while a snapshot fills a held table, applied_ts is its place in the log,
and says nothing about its rows. A source behind the cut may still bring an unknown table or shard,
so all tables together wait for it, and so do tables of tables.routes. An hour that still runs by
this machine's clock isn't complete: a source's clock, or a changefeed, may be ahead.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tidegate.commit_ts import physical_ms
from tidegate.limits import HOUR_SECONDS

if TYPE_CHECKING:
    from tidegate.delta.tail import LogTail
    from tidegate.lake.figures.status import TableStatus
    from tidegate.lake.files import LakeFiles

# The name of all tables together.
ALL_TABLES: Final = ""
_HOUR_MS: Final = HOUR_SECONDS * 1000


def hours_before(commit_ts: int) -> int:
    """How many hours since 1970 are complete at commit_ts: 2 means that 00:00 and 01:00 are."""
    return physical_ms(commit_ts + 1) // _HOUR_MS


def partition_key(hour: int) -> str:
    """The beginning of the hour in UTC, in the form that Airflow's partition mappers read."""
    return time.strftime("%Y-%m-%dT%H:00:00", time.gmtime(hour * HOUR_SECONDS))


def hour_of(key: str) -> int:
    """The hour of a partition_key. Raises ValueError."""
    return int(datetime.strptime(key, "%Y-%m-%dT%H:00:00").replace(tzinfo=UTC).timestamp()) // HOUR_SECONDS


def complete_hours(tables: Sequence[TableStatus], wanted: Sequence[str], cut_ts: int) -> dict[str, int]:
    """The complete hours (hours_before) of each wanted table and of ALL_TABLES. 0 for a table that
    gets no newer hour: it waits, lacks rows, or isn't in silver.

    tables: all of silver's. cut_ts: the newest cut; 0 before the first.
    """
    from tidegate.tables import State  # imports pyarrow

    through = {table.table: _through(table, cut_ts) for table in tables}
    every = min((through[table.table] for table in tables if table.state is not State.LEFT), default=cut_ts)
    return {name: hours_before(through.get(name, 0)) for name in wanted} | {ALL_TABLES: hours_before(every)}


def _through(table: TableStatus, cut_ts: int) -> int:
    from tidegate.tables import State

    return cut_ts if table.state in (State.ACTIVE, State.DROPPED) else 0


def read_complete_hours(lake: LakeFiles, wanted: Sequence[str], include: Sequence[str] = ()) -> dict[str, int]:
    """As complete_hours, of a lake. include: patterns of further wanted tables. Raises LakeUnavailable, LakeRefused."""
    from tidegate.lake.figures import status
    from tidegate.lake.standing import followed

    # The cut comes first: a table held meanwhile is then held at or above it, and so is a source left behind.
    cut_ts = status.cut_ts(lake)
    tables = status.table_statuses(lake)
    hours = complete_hours(tables, [*wanted, *matching(include, (table.table for table in tables))], cut_ts)
    known = followed.load(lake)
    if known.behind:
        may_grow = known.selection.tables.is_target if known.selection is not None else lambda _: True
        hours |= {name: 0 for name in hours if name == ALL_TABLES or may_grow(name)}
    return {name: min(hour, this_hour()) for name, hour in hours.items()}


def matching(include: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names of silver's tables that match a pattern of `completeness.include`."""
    from tidegate.config import matches
    from tidegate.table_names import splits

    return [name for name in names if include and any(matches(include, *pair) for pair in splits(name))]


def read_verified_hours(lake: LakeFiles, wanted: Sequence[str], include: Sequence[str] = ()) -> dict[str, int]:
    """The verified hours of each wanted table; 0 if it was never verified, or differed, or waits now: silver may be
    older than what was equal. include: as above.
    """
    from tidegate.lake.figures.verified import verified

    known = verified(lake)
    wanted = [*wanted, *matching(include, known)]
    equal = {name: known[name].through_ts for name in wanted if name in known and known[name].outcome == "equal"}
    complete = read_complete_hours(lake, wanted)  # after the verdicts: no table may begin to wait in between
    return {name: min(hours_before(equal.get(name, 0)), complete[name]) for name in wanted}


def this_hour() -> int:
    """The present hour, by this machine's clock."""
    return int(time.time()) // HOUR_SECONDS


class NewHours:
    """Whether a table, or all tables, have reached another complete hour. tables, include, verified:
    as in the pipeline file.

    kept: the hours at the last look.
    """

    def __init__(
        self,
        tables: Sequence[str],
        *,
        verified: bool,
        include: Sequence[str] = (),
        kept: Mapping[str, int] | None = None,
    ) -> None:
        self._tables, self._include, self._verified = tuple(tables), tuple(include), verified
        self._hours: dict[str, int] = dict(kept or {})
        self._lake: LakeFiles | None = None
        self._cuts: LogTail | None = None
        self._others: list[LogTail] = []
        self._cuts_version = -1
        self._versions: tuple[int, ...] = ()
        self._cut_hours = 0

    @property
    def kept(self) -> dict[str, int]:
        """The hours of the last look, for JSON."""
        return self._hours

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Open the logs that `look` reads. Blocks."""
        from tidegate.delta.log import DeltaLog
        from tidegate.delta.tail import LogTail
        from tidegate.lake.files import LakeFiles
        from tidegate.tables import CUTS, FOLLOWED, TABLE_STATES
        from tidegate.tables.snapshot_tables import VERIFICATION

        self._lake = LakeFiles(lake.rstrip("/"), options)
        watched = (CUTS, TABLE_STATES, FOLLOWED, *((VERIFICATION,) if self._verified else ()))
        self._cuts, *self._others = (LogTail(DeltaLog(self._lake.uri(table.path), options)) for table in watched)
        self._cuts_version, self._versions, self._cut_hours = -1, (), 0

    def look(self) -> dict[str, Any] | None:
        """{"hours": by table, verified ones under `verified <table>`}; None without news. Blocks.

        Rows are read only when they can say something new: the cut has come to a new hour, a table
        has another state or was verified, a source is back. A cut is looked for only while none has
        come to the clock's hour.
        """
        assert self._lake is not None
        if not self._may_have_changed():
            return None
        hours = read_complete_hours(self._lake, self._tables, self._include)
        if self._verified:
            checked = read_verified_hours(self._lake, self._tables, self._include)
            hours |= {f"verified {name}": hour for name, hour in checked.items()}
        is_news = any(hour > self._hours.get(name, 0) for name, hour in hours.items())
        # Hours of waiting tables are forgotten: such a table may have begun to wait before the run looked that was to
        # add its hours.
        self._hours = hours
        return {"hours": hours} if is_news else None

    def _may_have_changed(self) -> bool:
        versions = tuple(tail.version() for tail in self._others)
        changed, self._versions = versions != self._versions, versions
        return self._cut_has_come_to_an_hour() or changed

    def _cut_has_come_to_an_hour(self) -> bool:
        from tidegate.lake.figures.status import cut_ts

        assert self._lake is not None
        assert self._cuts is not None
        clock = this_hour()
        if self._cut_hours >= clock:
            return False
        version = self._cuts.version()
        if version == self._cuts_version:
            return False
        hours, before = hours_before(cut_ts(self._lake)), self._cut_hours
        self._cut_hours = min(hours, clock)
        # A cut ahead of this clock is news again in the next hour.
        self._cuts_version = version if hours <= clock else -1
        return self._cut_hours != before
