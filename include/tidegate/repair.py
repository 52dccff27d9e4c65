"""Verify a pipeline, and copy what differs again.

In:  a pipeline, its lake, how to reach its sources; which tables, and whether to mend them.
Out: a Report of the last comparison; rows in control/verification; for repairs waves that apply takes.

Only different keys are copied: missing and changed rows are written, rows unknown to the source are deleted, by the
road of every snapshot (snapshot/repair_wave.py). Then the mended tables are compared again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate.config import Pipeline
from tidegate.errors import VerifyError
from tidegate.lake import control
from tidegate.lake.figures.verified import VERIFIED_ORDER
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.standing.followed import check_owner
from tidegate.limits import REPAIR_ATTEMPTS_MAX, REPAIR_ROWS_MAX, VERIFY_POLL_SECONDS, VERIFY_STATEMENT_ROWS
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.schema.model.types import ZeroDates
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.events import EventKind
from tidegate.snapshot.repair_wave import RepairKeys, repair_wave
from tidegate.table_names import Physical
from tidegate.tables.snapshot_tables import VERIFICATION
from tidegate.text_layout import counted
from tidegate.verify.cut import newest_cut
from tidegate.verify.report import Outcome, Report, TableResult
from tidegate.verify.silver_side import SilverSide
from tidegate.verify.source_side import keys_condition
from tidegate.verify.under_way import Differing, VerifyOptions
from tidegate.verify.verification import verify

_CLOCKS: Final = timedelta(hours=1)  # what was seen later than this was seen by a clock that was wrong
_COPY: Final = "tidegate snapshot start {pipeline} {table} copies it again"


@dataclass(slots=True)
class Repairs:
    """The keys to copy again, by physical table; and why some aren't."""

    pipeline: Pipeline
    lake: LakeFiles
    connections: Mapping[str, ConnectionInfo]
    report: Callable[[str], None]
    timeout_seconds: float
    wanted: dict[Physical, RepairKeys] = field(default_factory=dict)
    counts: dict[Physical, int] = field(default_factory=dict)  # of keys

    def note(self, difference: Differing, silver: SilverSide) -> None:
        """Take a table in that differs."""
        name = difference.table.name
        copy = _COPY.format(pipeline=self.pipeline.pipeline, table=name)
        if difference.unnamed:
            rows = counted(difference.unnamed, "row has", "rows have")
            self.report(f"{name}: {rows} a NULL in the key or the mark, and can't be mended one by one: {copy}")
        if not difference.table.key:
            self.report(f"{name} has no key, so no row of it can be mended by itself: {copy}")
        elif len(difference.keys) > REPAIR_ROWS_MAX:
            self.report(f"{name} differs in {len(difference.keys):,} keys, more than are mended one by one: {copy}")
        elif difference.keys:
            some = (
                difference.keys[at : at + VERIFY_STATEMENT_ROWS]
                for at in range(0, len(difference.keys), VERIFY_STATEMENT_ROWS)
            )
            conditions = tuple(keys_condition(difference.table, keys) for keys in some)
            whole = silver.whole_rows(difference.table, difference.silver, difference.keys)
            place = Physical(difference.source, difference.table.database, difference.table.table)
            self.counts[place] = len(difference.keys)
            zero_dates = ZeroDates(self.pipeline.apply.zero_dates)
            changefeed = self.pipeline.sources[difference.source].traits.changefeed
            marks = self.pipeline.snapshot.marks
            self.wanted[place] = RepairKeys(*place.pair, conditions, whole, zero_dates, marks, changefeed)

    def run(self) -> dict[Physical, str]:
        """Copy them all, and wait until apply has taken them: why it didn't, of each table that it doesn't take."""
        untaken: dict[Physical, str] = {}
        for source in dict.fromkeys(place.source for place in self.wanted):
            places = [place for place in self.wanted if place.source == source]
            with take_lease(self.lake, source, "snapshot", report=self.report):
                untaken |= self._mend(source, places)
        for place in self.wanted.keys() - untaken.keys():
            self.report(f"{place.shown}: {self.counts[place]:,} keys differed; their rows are copied again")
        for line in untaken.values():
            self.report(line)
        return untaken

    def _mend(self, source: str, places: Sequence[Physical]) -> dict[Physical, str]:
        """Mend tables of one source side by side: a table that waits long, or for ever, doesn't delay the others."""
        untaken: dict[Physical, str] = {}
        for attempt in range(1, REPAIR_ATTEMPTS_MAX + 1):
            tokens: dict[str, Physical] = {}
            for place in places:
                try:
                    tokens[self._copied(source, place)] = place
                except VerifyError as error:  # this table's alone
                    untaken[place] = str(error)
            refused, late = self._answers(tokens)
            untaken |= {place: str(self._too_late(place)) for place in late}
            if not refused or attempt == REPAIR_ATTEMPTS_MAX:
                break
            for place, reason in refused.items():
                self.report(f"{place.shown}: read again, since {reason}")
            places = list(refused)
        return untaken | {place: str(_refused(place, reason)) for place, reason in refused.items()}

    def _copied(self, source: str, place: Physical) -> str:
        """The token of a wave of its rows."""
        wanted = self.wanted[place]
        return repair_wave(self.pipeline, source, self.connections[source], self.lake, wanted)

    def _answers(self, tokens: Mapping[str, Physical]) -> tuple[dict[Physical, str], list[Physical]]:
        """Why apply refused waves, and the tables whose waves it hasn't answered in time."""
        until = time.monotonic() + self.timeout_seconds
        log, refused, waiting = EventLog(self.lake), dict[Physical, str](), dict(tokens)
        while waiting:
            for event in log.look()[1]:
                place = waiting.get(event.token)
                if place is None or event.name != place.pair:
                    continue
                if event.event in (EventKind.APPLIED, EventKind.REFUSED):
                    del waiting[event.token]
                if event.event is EventKind.REFUSED:
                    refused[place] = event.reason
            if not waiting or time.monotonic() > until:
                break
            time.sleep(VERIFY_POLL_SECONDS)
        return refused, list(waiting.values())

    def _too_late(self, place: Physical) -> VerifyError:
        return VerifyError(
            f"apply hasn't taken its rows after {self.timeout_seconds:g} s",
            where=place.shown,
            remedy="are capture and apply running? they take them when they do; give a larger --timeout",
        )


def _refused(place: Physical, reason: str) -> VerifyError:
    return VerifyError(
        f"apply doesn't take its rows: {reason}",
        where=place.shown,
        remedy="remove that cause, then verify again",
    )


def verify_and_repair(
    pipeline: Pipeline,
    lake: LakeFiles,
    connections: Mapping[str, ConnectionInfo],
    options: VerifyOptions,
    *,
    repair: bool,
    report: Callable[[str], None],
) -> Report:
    """A table that can't be mended stays different, and says why; the others are mended.

    Raises VerifyError, and what capture's and the snapshots' road raise.
    """
    check_owner(lake, pipeline.pipeline)
    repairs = Repairs(pipeline, lake, connections, report, options.timeout_seconds)
    options = replace(options, report=report)
    asked = replace(options, on_different=repairs.note) if repair else options
    first = verify(pipeline, connections, lake.root, lake.storage_options, asked)
    if repair:
        for table in first.tables:
            if table.outcome is Outcome.DIFFERENT and not table.different:
                report(f"{table.table} isn't mended, since it isn't rows that differ: {table.reason}")
    if not repairs.wanted:
        return first
    untaken = {(place.source, place.shown): reason for place, reason in repairs.run().items()}
    first = replace(first, tables=tuple(_with_reason(table, untaken) for table in first.tables))
    mended = frozenset(place.shown for place in repairs.wanted if (place.source, place.shown) not in untaken)
    if not mended:
        return first
    again = verify(pipeline, connections, lake.root, lake.storage_options, replace(options, tables=mended))
    fresh = {name: table for table in again.tables if (name := (table.source, table.table)) not in untaken}
    tables = tuple(fresh.get((earlier.source, earlier.table), earlier) for earlier in first.tables)
    return replace(
        again, tables=tables, positions=first.positions | again.positions, seconds=first.seconds + again.seconds
    )


def _with_reason(table: TableResult, untaken: Mapping[tuple[str, str], str]) -> TableResult:
    """It stays different, with the reason why it couldn't be mended."""
    reason = untaken.get((table.source, table.table))
    return table if reason is None else replace(table, reason=reason)


def due_tables(lake: LakeFiles, pipeline: Pipeline) -> list[str]:
    """Logical tables of the newest cut that weren't seen equal within `verify.each_table_hours`, by name.

    A table that differs is due each time: otherwise a run that skips it would end well.
    """
    cut = newest_cut(lake, pipeline.pipeline)
    now = datetime.now(UTC)
    since = now - timedelta(hours=pipeline.verify.each_table_hours or 0)
    of = ["source", "database", "table", "silver"]
    filters = [("chunk", "=", 0), ("recorded_at", ">=", since), ("recorded_at", "<=", now + _CLOCKS)]
    rows = control.newest(lake, VERIFICATION, by=of, order=VERIFIED_ORDER, columns=[*of, "outcome"], filters=filters)
    said: dict[str, set[str]] = {}
    for row in rows.to_pylist():
        said.setdefault(row["silver"], set()).add(row["outcome"])
    fresh = {name for name, outcomes in said.items() if outcomes <= {Outcome.EQUAL, Outcome.DROPPED}}
    return sorted(set(cut.states) - fresh) if cut else []
