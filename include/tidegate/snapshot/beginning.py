"""The beginning of tables' snapshots: divide a table into ranges, and find the tables that can't be read.

In:  requested tables, the server.
Out: per table its ranges, with their columns; or why it can't be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from tidegate.errors import Terminal
from tidegate.mysql.facts.tables_there import ROWS_ABOUT
from tidegate.mysql.sql_text.catalog import rows_of
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.by_view import read_by_view
from tidegate.snapshot.chunks.key_columns import is_ordered_alike, ordered_as
from tidegate.snapshot.chunks.ranges import divide
from tidegate.snapshot.chunks.spans import WHOLE, Span
from tidegate.snapshot.progress.events import TableProgress
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result.plan import make_read_plan
from tidegate.snapshot.view_reading import without_views
from tidegate.ticdc.decode import check_followed
from tidegate.tidb.jobs import ROWID_NAME

Name = tuple[str, str]


class ReadAs(Enum):
    """How a table's rows are read."""

    CHUNKS = auto()  # ranges of its key
    KEYED_VIEW = auto()  # whole, from one view, though it has a key (by_view.py)
    VIEW = auto()  # whole, from one view: it has no key


@dataclass(frozen=True, slots=True)
class Beginning:
    """A table whose snapshot begins. reason: why it can't be read; "" if it can. read_by: the
    columns by which it is read. order: as ordered_as. rows: estimated number.
    """

    reason: str
    read_as: ReadAs = ReadAs.CHUNKS
    read_by: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    spans: tuple[Span, ...] = (WHOLE,)
    rows: int = 0


def beginnings(
    names: Collection[Name],
    to_divide: AbstractSet[Name],
    asked: WorkerConnection,
    source: str,
    parts: int,
    rows_min: int,
) -> dict[Name, Beginning]:
    """The beginning of each table; only some are divided, into `parts`, if they have rows_min rows.

    Raises SourceRefused, SourceUnavailable.
    """
    asked.see(0)
    versions = asked.versions(source, names)
    keyless = [name for name, version in versions.items() if not version.key]
    engines = without_views(asked.ask, keyless) if keyless else {}
    estimates = _estimates(asked, names)
    whole = read_by_view(versions, asked, estimates)
    by_name = {}
    for name in names:
        version = versions.get(name)
        if reason := why_unfit(version, engines.get(name), changefeed=asked.changefeed):
            by_name[name] = Beginning(reason)
            continue
        assert version is not None, "unfit otherwise"
        read_by = make_read_plan(version).key
        spans = divide(version, asked.ask, parts, rows_min) if read_by and name in to_divide - whole else (WHOLE,)
        read_as = ReadAs.KEYED_VIEW if name in whole else ReadAs.CHUNKS if version.key else ReadAs.VIEW
        by_name[name] = Beginning("", read_as, read_by, ordered_as(version), spans, estimates.get(name, 0))
    return by_name


def _estimates(asked: WorkerConnection, names: Iterable[Name]) -> dict[Name, int]:
    """Estimated rows of each table, by the storage engine. Tables without an estimate aren't in it."""
    select = f"SELECT table_schema, table_name, {ROWS_ABOUT} FROM information_schema.tables"
    rows = rows_of(asked.ask, select, names)
    return {(str(row[0]), str(row[1])): int(row[2]) for row in rows if row[2] is not None}


def why_unfit(version: TableVersion | None, engine: str | None = None, *, changefeed: bool = False) -> str:
    """Why a table can't be read; "" if it can. engine: for a table without a key: its engine, if
    that has no views. changefeed: the log after the snapshot is a changefeed's files.
    """
    if version is None:
        return "there is no such table at the source, or our account has no SELECT on it"
    try:
        make_read_plan(version)
        if changefeed:
            check_followed(version)
    except Terminal as error:
        return str(error)
    if engine is None:
        return ""
    return f"it has no key whose columns are all NOT NULL, and {engine} can't show it as it was at one moment"


def why_otherwise(of: TableProgress, version: TableVersion | None) -> str:
    """Why the rest of a table can't be read: the bounds of its ranges are values of other columns than it is read by
    now. "" if it can.
    """
    if of.read_by is None or of.left == (WHOLE,) or version is None:
        return ""
    if (ROWID_NAME in of.read_by) != (ROWID_NAME in make_read_plan(version).key):
        return f"it was read by {', '.join(of.read_by)}, and its key came or went since"
    if of.order is None or not version.key or is_ordered_alike(of.order, ordered_as(version)):
        return ""
    now, before = (", ".join(name.rstrip(".") for name in order) for order in (ordered_as(version), of.order))
    return f"its key is ordered as {now} now, and was as {before} when it began"
