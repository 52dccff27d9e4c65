"""A person's word that ends the wait of held tables: release, approve, refresh, judge.

In:  a Desk; a held table, or a place in a source's log with held tables.
Out: `released` events, a version in control/schema_history, a row of control/judgements; a line for the person.

seen: the time of the hold that the person saw. If the table is now held for something else, or not at all, nothing is
done. None: the person means the table as it is now.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from tidegate import pipelines, tables
from tidegate.actions.desk import Desk
from tidegate.commit_ts import time_text
from tidegate.delta.table.state import TableState
from tidegate.errors import HoldChangedError, UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.people import judgements
from tidegate.lake.schema_history.schema_rows import needed_rows, table_rows
from tidegate.lake.standing import held
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.start.refresh import ColumnAnswers, StoppedAt, refreshed
from tidegate.remedy import RECREATE
from tidegate.schema.model.columns import TableVersion
from tidegate.standing.causes import Cause
from tidegate.standing.shown import way_out
from tidegate.standing.standing import Place, Standing
from tidegate.table_names import splits
from tidegate.tables import State
from tidegate.tables.actions_table import Act


def held_table(desk: Desk, table: str, seen: datetime | None = None) -> Standing:
    """Its standing. Raises UsageError when it isn't held, or not as it was seen."""
    waiting = held.held_tables(desk.lake)
    if table not in waiting:
        known = ", ".join(sorted(waiting)) or "none"
        raise HoldChangedError(f"{table} is not held", where=desk.name, remedy=f"held tables: {known}")
    if seen is not None and waiting[table].since != seen:
        what = f"{table} is held for something else now: {waiting[table].reason}"
        raise HoldChangedError(what, where=desk.name, remedy=f"see `tidegate status {desk.name}`")
    return waiting[table]


def release(desk: Desk, table: str, seen: datetime | None = None) -> str:
    """Let it go on, or approve its statement. Raises UsageError where bronze lacks its rows."""
    standing = held_table(desk, table, seen)
    asks = standing.cause is Cause.DDL_ASKS
    subject = standing.place.ddl if standing.place else ""
    with desk.recorded(Act.APPROVE if asks else Act.RELEASE, (table,), subject) as result:
        reason = f"{'approved' if asks else 'released'} {desk.author.words}"
        after = held.release(desk.lake, standing, reason=reason, lacks_snapshots=desk.pipeline.lacks_snapshots)
        if after.state is State.HELD:
            result.line = f"{table} is approved, and waits for its rows now: {after.reason}"
        else:
            since = f"{time_text(after.applied_ts)} (commit_ts {after.applied_ts})"
            result.line = f"{table} goes on from {since} with apply's next window"
        return result.line


def refreshable(standing: Standing) -> bool:
    """Whether the server's columns may end the hold."""
    return standing.event is not None and standing.cause not in (Cause.NEEDS_ROWS, Cause.UNLOGGED)


def refresh(desk: Desk, table: str, answers: ColumnAnswers, seen: datetime | None = None) -> str:
    """Ask the server for its columns, and let it go on. Raises UsageError, and the errors of `refreshed`."""
    standing = held_table(desk, table, seen)
    place = standing.event
    if place is None or not refreshable(standing):
        what = f"{table} isn't held for its columns ({standing.reason})"
        raise UsageError(what, where=desk.name, remedy=way_out(standing, desk.pipeline.lacks_snapshots))
    source, physical = place.source, (place.database, place.table)
    rows = [row for row in table_rows(desk.lake, *physical) if row["source"] == source]
    if not rows:
        what = f"schema_history has no version of {'.'.join(physical)} of {source}"
        raise UsageError(what, where=desk.name, remedy=RECREATE)
    with desk.recorded(Act.REFRESH, (table,), f"{source} {place.file}:{place.pos}") as result:
        next_id = needed_rows(desk.lake, [source], lambda *_: 1 << 62)[source].next_id
        stop = StoppedAt(place.file, place.pos, place.at_ts)
        with connect(pipelines.source_info(desk.pipeline, source, desk.connections, desk.lake)) as connection:
            version = refreshed(connection, TableVersion.from_row(rows[-1]), stop, next_id, answers)
        _record(desk.lake, version, len(rows), standing)
        held.release(desk.lake, standing, reason=f"its columns were asked for {desk.author.words}")
        result.line = (
            f"{table} has the columns of {version.file}:{version.pos} from commit_ts {version.commit_ts} on,"
            " and goes on with the next window"
        )
        return result.line


def _record(lake: LakeFiles, version: TableVersion, before: int, standing: Standing) -> None:
    """A new version, after so many. The server took its time to answer: another person may have acted meanwhile."""
    table, names = tables.SCHEMA_HISTORY, ("source", "database", "table")
    of_table = [(name, "=", getattr(version, name)) for name in names]

    def is_next(state: TableState) -> bool:
        rows = control.rows_of(lake, table, state, pa.schema([table.schema.field("version")]), of_table)
        now = held.state_of(lake, standing.table)
        return rows.num_rows == before and now is not None and now.since == standing.since

    if not control.append_if(lake, table, version.to_row(), is_next):
        what = f"{standing.table} isn't held for that any more"
        raise HoldChangedError(what, where=standing.pipeline, remedy=f"see `tidegate status {standing.pipeline}`")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A person's word on a place, FILE:POS. tables: at the source, database.table, of all that it changes; none: ().
    by: the person's name; "" for the author's.
    """

    source: str
    place: str
    tables: Collection[str] = ()
    by: str = ""


def judge(desk: Desk, word: Judgement) -> str:
    """Tables that the place doesn't change go on. Raises UsageError where no table is held for a person to judge."""
    here = held_at(desk, word.source, word.place)
    named = _known(desk, word.source, word.tables)
    stay = [state.table for at, state in here if (at.database, at.table) in named]
    go_on = [state for _, state in here if state.table not in stay]
    with desk.recorded(Act.JUDGE, tuple(state.table for _, state in here), f"{word.source} {word.place}") as result:
        places = {at: state.reason for at, state in here}
        who = judgements.record(desk.lake, places, word.tables, word.by or desk.author.user)
        for state in go_on:
            with suppress(HoldChangedError):  # somebody let it go on before
                held.release(desk.lake, state, reason=f"{who} judged {word.source} {word.place}")
        kept = f", {', '.join(stay)} held" if stay else ""
        result.line = f"{len(go_on)} tables go on with the next window{kept}: judged by {who}"
        return result.line


def held_at(desk: Desk, source: str, place: str) -> list[tuple[Place, Standing]]:
    """The judgeable tables that are held at FILE:POS of a source. Raises UsageError when there are none."""
    placed = [(at, state) for state in held.held_tables(desk.lake).values() if (at := state.place) and at.file]
    placed_here = [(at, state) for at, state in placed if (at.source, f"{at.file}:{at.pos}") == (source, place)]
    known, here = ([(at, state) for at, state in of if state.judgeable] for of in (placed, placed_here))
    if placed_here and not here:
        other = placed_here[0][1]
        what = f"{other.table} isn't held for what stands at {place} ({other.reason})"
        raise UsageError(what, where=desk.name, remedy=way_out(other, desk.pipeline.lacks_snapshots))
    if not here:
        places = sorted({f"{at.source} {at.file}:{at.pos}" for at, _ in known})
        remedy = f"tables are held at: {', '.join(places)}" if places else "see `tidegate status`"
        raise UsageError(f"no table is held at {source} {place}", where=desk.name, remedy=remedy)
    return here


def _known(desk: Desk, source: str, texts: Collection[str]) -> set[tuple[str, str]]:
    """Refuse unknown names: a typing error would release the meant table without the change."""
    known = set[tuple[str, str]]()
    for text in sorted(texts):
        pairs = [pair for pair in splits(text) if any(row["source"] == source for row in table_rows(desk.lake, *pair))]
        if not pairs:
            what = f"schema_history has no table {text} of {source}"
            raise UsageError(what, where=desk.name, remedy="name tables that are captured; --nothing for others")
        known.update(pairs)
    return known
