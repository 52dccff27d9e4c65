"""Rows without values, filled with what the source computes for them.

In:  Lacking rows of a table, a connection to its source.
Out: TableChanges right after those of the log. Raises Unanswered.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pymysql

from spark_jobs.asked.lacking import Lacking, Unanswered
from tidegate import tables
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.start.ddl_since import ddl_since
from tidegate.position import Position
from tidegate.schema.follow.computed import computes_the_same, hangs_on, reads_default
from tidegate.schema.follow.session_values import of_each_session
from tidegate.schema.follow.silver_change import same_default
from tidegate.schema.follow.steady_values import computed_alike
from tidegate.schema.model.columns import Column, Generated, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import ZeroDates, canonical
from tidegate.segments.result import TableChanges
from tidegate.snapshot.reading.by_key import ReadByKey, read_by_key
from tidegate.snapshot.reading.computed_rows import NotComputed, computed_rows
from tidegate.snapshot.reading.connection import WorkerConnection

_DATED: Final = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)
_WHOLE: Final = (Kind.INT, Kind.UNSIGNED_BIGINT, Kind.YEAR, Kind.BOOLEAN)
_CHANGED: Final = "rows of it have changed again at the source since"


class ShownColumns(dict[tuple[str, int], tuple[object, ...]]):
    """The columns by which a version's values are computed, as the source shows them: by
    TableVersion.name and its number.
    """


@dataclass(frozen=True, slots=True)
class AskedSource:
    """A source that a window asks. end: the window's end in the source's log; None if no segment
    has it.
    """

    connection: WorkerConnection
    source: str
    zero_dates: ZeroDates
    end: Position | None
    shown: ShownColumns


def answered(asked: AskedSource, lacking: Lacking, newest: TableVersion) -> TableChanges:
    """newest: the table's version at the window's end.

    Raises Unanswered, SourceRefused, SourceUnavailable, UnsupportedValue.
    """
    version = lacking.version
    if column := of_each_session(version, lacking.computed):
        what = f"virtual column {column.name} ({column.generation_expression[:80]})"
        raise Unanswered(f"{what} has another value in each session's time zone or language; leave it out of silver")
    is_newest = version is newest  # a later window has no other rows of an earlier version
    read = read_by_key(asked.connection, asked.source, version, lacking.keys, asked.zero_dates)
    if read.version is None:
        raise Unanswered("the table has another key now at the source, or isn't there", passes=is_newest)
    read = _renamed(read, version)
    hung = hangs_on(version, lacking.computed)
    names = [column.name for column in version.columns if column.generated is not Generated.NO or column in hung]
    if not is_newest and not _same(_named(version, names), _named(newest, names)):
        raise Unanswered("a statement in the window changed how its values are computed")
    assert read.version is not None, "it was read"
    _check_shown(asked, newest, read.version, names)
    rows, places = read.rows, _alike(lacking, hung, read, doubted=lacking.null_dates or read.null_dates > 0)
    if changed := [row for row, place in enumerate(places) if place is None]:
        computed = _computed(asked, read.version, lacking.part(changed), hung, passes=is_newest)
        for at, row in enumerate(changed, rows.num_rows):
            places[row] = at
        rows = pa.concat_tables([rows, computed])
    now_rows = rows.take(pa.array(places, pa.int64()))
    return TableChanges(version.database, version.table, version.version, _filled(lacking, now_rows))


def _renamed(read: ReadByKey, version: TableVersion) -> ReadByKey:
    """The read rows, under silver's names as the version has them."""
    names = [version.aliases.get(name, name) for name in read.rows.column_names]
    return replace(read, rows=read.rows.rename_columns(names))


def _alike(lacking: Lacking, hung: Sequence[Column], read: ReadByKey, *, doubted: bool) -> list[int | None]:
    """Per lacking row its index among the read rows; None if it isn't there or its stored columns differ. doubted: a
    NULL may stand for one of several impossible dates.
    """
    keys = read.rows.select(lacking.version.silver_key).to_pylist()
    by_key = {tuple(key.values()): place for place, key in enumerate(keys)}
    places = [*map(by_key.get, lacking.keys)]
    for column in hung:
        logged = _exact(column, lacking.rows.column(column.silver).to_pylist())
        now = _exact(column, read.rows.column(column.silver).to_pylist())
        unsure = doubted and canonical(column).kind in _DATED
        for row, place in enumerate(places):
            if place is not None and (logged[row] != now[place] or (unsure and logged[row] is None)):
                places[row] = None
    return places


def _computed(
    asked: AskedSource, shown: TableVersion, lacking: Lacking, hung: Sequence[Column], *, passes: bool
) -> pa.Table:
    """Rows that the source has otherwise by now, as it computes them. shown: their table there. Raises Unanswered,
    SourceRefused, SourceUnavailable.
    """
    version = lacking.version
    given = [column for column in version.columns if column in hung or column.id in version.key]
    if not computed_alike(version, lacking.computed):
        raise Unanswered(_CHANGED, passes=passes)
    try:
        read = _renamed(computed_rows(asked.connection, shown, given, lacking.rows), version)
    except NotComputed as error:
        raise Unanswered(f"{_CHANGED}, and it computes none for the log's: {error}", passes=passes) from error
    places = _alike(lacking, hung, read, doubted=lacking.null_dates)
    if None in places:
        raise Unanswered(_CHANGED, passes=passes)
    return read.rows.take(pa.array(places, pa.int64()))


def _check_shown(asked: AskedSource, version: TableVersion, now: TableVersion, names: Sequence[str]) -> None:
    """The source computes the values as the version does. Raises Unanswered."""
    columns, others = _named(version, names), _named(now, names)
    if _same(columns, others):
        return
    place, shown = (version.name, version.version), tuple(map(_shown, others))
    if asked.shown.get(place) == shown:
        return
    if asked.end is None:
        raise Unanswered("the end of the window isn't known in the source's log", passes=True)
    if statement := _statement_since(asked.connection.info, version, asked.end):
        raise Unanswered(f"the table has been changed since at the source ({statement[:80]})", passes=True)
    asked.shown[place] = shown


def _statement_since(info: ConnectionInfo, version: TableVersion, end: Position) -> str:
    """The first DDL of the table after the window; "" without one. Raises SourceRefused,
    SourceUnavailable.
    """
    try:
        with connect(info) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT VERSION()")
                server_version = str(cursor.fetchone()[0])
            return ddl_since(
                connection,
                end,
                lambda *name: name == (version.database, version.table),
                server_version,
            )
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(error, info) from error


def _named(version: TableVersion, names: Sequence[str]) -> list[Column | None]:
    by_name = {column.name.lower(): column for column in version.columns}
    return [by_name.get(name.lower()) for name in names]


def _same(some: Sequence[Column | None], others: Sequence[Column | None]) -> bool:
    """Whether columns have the same types, and are computed in the same way."""
    defaults = any(column is not None and reads_default(column.generation_expression) for column in some)
    return all(
        was is not None
        and now is not None
        and _form(was) == _form(now)
        and computes_the_same(was, now, {})
        and (same_default(was, now) or not defaults)
        for was, now in zip(some, others, strict=True)
    )


def _form(column: Column) -> tuple[object, ...]:
    """All facts of a type that show in a computed text: 1.5 in a DECIMAL(9,2) is '1.50'. The width of an integer shows
    only with ZEROFILL.
    """
    kind = canonical(column)
    has_width = kind.kind not in _WHOLE or "zerofill" in column.type
    return (
        *(kind.kind, kind.arrow, kind.text.base, kind.text.numbers if has_width else (), kind.text.members),
        *(column.charset, column.collation, has_width),
    )


def _shown(column: Column | None) -> object:
    if column is None:
        return None
    return _form(column), column.generated, column.generation_expression, column.default, column.default_is_expression


def _exact(column: Column, values: Sequence[Any]) -> list[Any]:
    """Values in a form in which only identical ones are equal: -0 differs from 0."""
    if canonical(column).kind in (Kind.FLOAT, Kind.DOUBLE):
        return [None if value is None else struct.pack("<d", value) for value in values]
    return list(values)


def _filled(lacking: Lacking, now_rows: pa.Table) -> pa.RecordBatch:
    """As upserts, each after its change in the log: an image is longer than a byte, so no other
    one has this place.
    """
    rows = lacking.rows
    at = rows.schema.get_field_index(tables.OP)
    ops = pa.array([tables.OP_UPSERT] * rows.num_rows, pa.int8())
    rows = rows.set_column(at, rows.schema.field(at), ops)
    at = rows.schema.get_field_index(tables.ORDINAL)
    rows = rows.set_column(at, rows.schema.field(at), pc.add(rows.column(at), 1))
    for column in lacking.computed:
        at = rows.schema.get_field_index(column.silver)
        rows = rows.set_column(
            at,
            rows.schema.field(at),
            now_rows.column(column.silver).cast(rows.schema.field(at).type),
        )
    in_order = rows.sort_by([(tables.COMMIT_TS, "ascending"), (tables.SEQ, "ascending"), (tables.ORDINAL, "ascending")])
    return in_order.combine_chunks().to_batches()[0]
