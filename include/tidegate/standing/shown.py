"""The words that people read about a table's standing: reasons, and the way out. Nothing is decided by these
sentences.

A reason is the fault and its place. The way out depends on the table's source, and is made where it is shown.

In:  a Standing, names.
Out: one line each, for status, the page, alerts and a job's log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate.remedy import Needs
from tidegate.standing.causes import Cause
from tidegate.standing.events import NotWritten
from tidegate.standing.standing import Standing
from tidegate.tables import State

# A source's name -> whether no snapshot reads its tables.
LacksSnapshots = Callable[[str], bool]

# The way out of a hold that a snapshot ends; and the other ways.
_BY_ITSELF: Final = "by itself, unless the pipeline file says snapshot: {mode: manual}, or at once by"
_NEEDS_ROWS: Final = (
    "a snapshot reads its rows: {by_itself} tidegate snapshot start {pipeline} {table}; or leave it out by"
    " tables.exclude, or empty it at the source if its rows may go"
)
_NEEDS_COLUMNS: Final = (
    "its older rows and columns aren't in the log that was read; a snapshot reads them: {by_itself} tidegate snapshot"
    " start {pipeline} {table}; or DROP and CREATE it at the source if its rows may go, or leave it out by"
    " tables.exclude"
)
# Of a table with history or soft delete: its past is in bronze alone.
_NEEDS_PAST: Final = (
    "tidegate rebuild {pipeline} {table} --swap makes it anew with its past; where bronze has lost its beginning, or"
    " its past may go, tidegate snapshot start {pipeline} {table} reads its rows alone"
)
_UNREAD_PAST: Final = (
    "tidegate rebuild {pipeline} {table} --swap makes it anew with its past; where bronze has lost its beginning, or"
    " its past may go, end its mode in the pipeline file, and TRUNCATE it, or DROP and CREATE it, at the source, if its"
    " rows may go (or to fill it again there): no snapshot reads this source"
)
# The same for sources that no snapshot reads. Bronze has such a table's log as it was captured.
_UNREAD: Final = (
    "no snapshot reads this source: TRUNCATE {table}, or DROP and CREATE it, at the source if its rows may go (or to"
    " fill it again there); or leave it out by tables.exclude"
)


def line_of(standing: Standing, lacks_snapshots: LacksSnapshots = lambda _: False) -> str:
    """Its reason, and the way out of a held one, for a place that shows one line."""
    way = way_out(standing, lacks_snapshots) if standing.state is State.HELD else ""
    return "; ".join(part for part in (standing.reason, way) if part)


def not_written(name: str, event: NotWritten, times: int, minutes: int) -> str:
    """The reason of a table that couldn't be written in any try, so often in a row."""
    again = f"{times} times in a row now; " if times > 1 else ""
    return f"{name}: it could not be written: {event.reason}; {again}it is tried again by itself in {minutes} minutes"


def of_another_time(name: str, what: str, source: str) -> str:
    """The reason of a left table, if another table flows into it now."""
    return (
        f"{name}: {what} of {source} flows into it now, and silver has rows of another time; route it to a table of its"
        " own"
    )


def met_behind(name: str, source: str) -> str:
    """The reason of a table that a source brings while the source is behind."""
    return (
        f"{name}: {source} was behind the cut when it brought this table, and silver has rows of it from elsewhere;"
        " route it to a table of its own"
    )


def waits_for_the_cut(name: str, at_ts: int) -> str:
    """The reason of a table that silver has beyond the cut."""
    return f"{name}: an apply that was killed wrote all up to {at_ts}; it continues when the cut has reached that"


def waits_with(name: str, partner: str, why: str) -> str:
    """The reason of a table that waits because its partner does."""
    what = f"a rename or a partition moves rows between it and {partner}"
    return f"{name}: {what}, which is held ({why})"


def way_out(standing: Standing, lacks_snapshots: LacksSnapshots = lambda _: False) -> str:
    """The remedy for a held table, as one command where there is one."""
    pipeline, table = standing.pipeline, standing.table
    if standing.lacks_rows:
        judge = f"; or {_judge(standing)}, which may spare it that" if standing.judgeable else ""
        return f"{way_to_rows(standing, lacks_snapshots)}{judge}"
    if standing.event is not None and standing.cause in (Cause.MISMATCH, Cause.DDL_NOT_READ):
        judge = f"; or {_judge(standing)}" if standing.judgeable else ""
        return f"tidegate schema refresh {pipeline} {table}{judge}"
    if standing.judgeable:
        return f"{_judge(standing)}; when it changed {table}: TRUNCATE it, or DROP and CREATE it"
    match standing.cause:
        case Cause.UNLOGGED:
            return (
                "remove the cause at the source: a snapshot then reads it anew, by itself unless snapshot.mode is"
                " manual"
            )
        case Cause.WAITS_WITH:
            partner = standing.partner
            return (
                f"do what `tidegate status {pipeline}` says of {partner}: this table continues with it. If you empty"
                f" {partner} at the source, empty {table}, too"
            )
        case Cause.DDL_ASKS:
            return (
                f"approve the statement in Airflow under Required Actions, or by: tidegate release {pipeline} {table}"
            )
        case Cause.DDL_STOPS:
            return (
                "change the policy under ddl in the pipeline file (or leave the table out by tables.exclude), then:"
                f" tidegate release {pipeline} {table}"
            )
        case Cause.PARKED:
            return (
                f"list the transactions: tidegate prewrites {pipeline}; then again with --commit ID or --rollback ID."
                " If xa.orphans is ask in the pipeline file, you can answer in Airflow under Required Actions, too"
            )
        case Cause.WRITE_FAILED:
            return f"wait, or remove the cause and have it tried at once: tidegate release {pipeline} {table}"
        case _:
            return f"remove the cause, then: tidegate release {pipeline} {table}"


def comes_without_past(name: str) -> str:
    """The reason of a table that the pipeline file names again."""
    return f"{name}: is kept since the pipeline file changed, but its past was lost before it was left out"


def goes_on(standing: Standing) -> str:
    """The end of a released table's wait."""
    if standing.source:
        return f"it goes on by itself once capture of {standing.source} has come to the cut"
    return "apply's next window brings it up to date, by itself"


def way_to_rows(standing: Standing, lacks_snapshots: LacksSnapshots = lambda _: False) -> str:
    """The way out for a table whose rows bronze doesn't have."""
    source = standing.place.source if standing.place else ""
    text = _NEEDS_COLUMNS if standing.needs is Needs.COLUMNS else _NEEDS_ROWS
    text = _UNREAD if lacks_snapshots(source) else text
    if standing.lacks_past:
        text = _UNREAD_PAST if lacks_snapshots(source) else _NEEDS_PAST
    names = {"pipeline": standing.pipeline or "PIPELINE", "table": standing.table or "TABLE"}
    return text.format(by_itself=_BY_ITSELF, **names)


def only_asked_for(way: str) -> str:
    """The way out of a table whose snapshot begins when a person asks for it, and not by itself."""
    return way.replace(_BY_ITSELF, "by")


def _judge(standing: Standing) -> str:
    """The command for a person's word on a statement or an event."""
    assert standing.event is not None, "a judgeable one has an event"
    place = f"{standing.event.source} {standing.event.file}:{standing.event.pos}"
    return f"tidegate schema judge {standing.pipeline} {place} --nothing, or --holds DB.T for what it changes"
