"""A new baseline of one held table: its columns at the server, from the place where the log and we
disagree.

In:  a connection, the last known version, the place where the table stopped.
Out: the version valid from this place on, of kind `refreshed`; the table's other changes come from
     bronze.

Nothing is lost if the table stayed the same from this place until now. Therefore a DDL of the table since
then refuses the refresh, and so does a log the server no longer has. A column keeps its id by name.
If one is gone and another has come, a person must say whether this was a rename.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeAlias

import pymysql

from tidegate.binlog.rows.heal import REFRESHED
from tidegate.errors import PositionLost, SchemaMismatch, SourceUnavailable, UsageError
from tidegate.mysql.facts.server_facts import current_position
from tidegate.mysql.start.baseline import read_schema
from tidegate.mysql.start.ddl_since import ddl_since
from tidegate.position import Position
from tidegate.remedy import RECREATE
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus

Connection: TypeAlias = "pymysql.connections.Connection[Any]"
_SNAPSHOT: Final = RECREATE


@dataclass(frozen=True, slots=True)
class ColumnAnswers:
    """A person's knowledge of columns that went: renamed (old name -> new name), or dropped."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: Collection[str] = ()

    @classmethod
    def of(cls, renamed: Iterable[str], dropped: Iterable[str], where: str) -> Self:
        """renamed: texts OLD=NEW. Raises UsageError for another text, and a column named twice."""
        pairs = list[tuple[str, str]]()
        for text in renamed:
            old, _, new = (name.strip() for name in text.partition("="))
            if not old or not new or "=" in new:
                remedy = "a renamed column is its old name, =, and its new name"
                raise UsageError(f"{text} isn't OLD=NEW", where=where, remedy=remedy)
            pairs.append((old, new))
        olds, news = [old.lower() for old, _ in pairs], [new.lower() for _, new in pairs]
        gone = [name.strip() for name in dropped]
        for name, count in Counter([*olds, *map(str.lower, gone)]).items():
            if count > 1 or news.count(name) > 1:
                raise UsageError(f"column {name} is named twice", where=where, remedy="say once what became of it")
        for name, count in Counter(news).items():
            if count > 1:
                raise UsageError(f"two columns were renamed to {name}", where=where, remedy="say which one was")
        return cls(dict(pairs), tuple(gone))

    def check(self, before: Collection[str], now: Collection[str], where: str) -> None:
        """Refuse impossible answers: nobody knows the meant ones. Raises UsageError.

        before, now: the columns' names.
        """
        had, has = {name.lower() for name in before}, {name.lower() for name in now}
        became = {new.lower(): old.lower() for old, new in self.renamed.items()}
        if unknown := [name for name in (*self.renamed, *self.dropped) if name.lower() not in had]:
            what = f"the table had no column {unknown[0]}"
        elif absent := [name for name in self.renamed.values() if name.lower() not in has]:
            what = f"the server's table has no column {absent[0]}"
        elif stays := [name for name in (*self.renamed, *self.dropped) if name.lower() in has.difference(became)]:
            what = f"the server's table still has the column {stays[0]}"
        else:
            return
        raise UsageError(what, where=where, remedy="correct --renamed and --dropped")


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """Where a table stopped: binlog file, the position of an event's start there, and that event's commit_ts."""

    file: str
    pos: int
    at_ts: int


def refreshed(
    connection: Connection, last: TableVersion, stop: StoppedAt, next_id: int, answers: ColumnAnswers
) -> TableVersion:
    """The table's new version, from the server's columns. next_id: the first id for new columns.

    Raises SchemaMismatch or PositionLost if a refresh isn't possible, with what to do instead;
    UsageError for impossible answers; SourceUnavailable if it may work later.
    """
    if last.status is not VersionStatus.ACTIVE:
        raise _lost(last, "rows from before it are not known")
    if last.commit_ts >= stop.at_ts and not _asked_before(last, stop):
        raise _lost(last, f"a later DDL was followed already ({last.file}:{last.pos} {last.ddl[:80]})")

    def keeps(database: str, table: str) -> bool:
        return (database, table) == (last.database, last.table)

    with connection.cursor() as cursor:
        position = current_position(cursor)
        cursor.execute("SELECT VERSION()")
        server_version = str(cursor.fetchone()[0])
    if position is None:
        raise SourceUnavailable("has no binlog", where=last.source, remedy="switch log_bin on")
    versions = [v for v in read_schema(connection, last.source, keeps, position, first_id=next_id) if v.table]
    if not versions:
        raise _lost(last, "the server has no such table any more")
    try:
        statement = ddl_since(connection, Position.of(stop.file, stop.pos), keeps, server_version)
    except pymysql.err.MySQLError as error:
        raise PositionLost(
            f"the server can't show its log from there: {error.args[-1]}", where=_at(last, stop), remedy=_SNAPSHOT
        ) from error
    if statement:
        raise SchemaMismatch(f"it was changed since ({statement[:120]})", where=_at(last, stop), remedy=_SNAPSHOT)
    return _joined(last, versions[0], stop, answers)


def _asked_before(last: TableVersion, stop: StoppedAt) -> bool:
    """Whether a refresh made this version, and ended before the table went on."""
    return (last.kind, last.commit_ts) == (REFRESHED, stop.at_ts)


def _lost(last: TableVersion, why: str) -> SchemaMismatch:
    return SchemaMismatch(f"can't be refreshed: {why}", where=f"{last.source} {last.name}", remedy=_SNAPSHOT)


def _at(last: TableVersion, stop: StoppedAt) -> str:
    return f"{last.source} {last.name} at {stop.file}:{stop.pos}"


def _joined(last: TableVersion, now: TableVersion, stop: StoppedAt, answers: ColumnAnswers) -> TableVersion:
    """The server's columns, with the ids their names had. Raises SchemaMismatch if one may be renamed."""
    before, after = ([c.name for c in version.columns] for version in (last, now))
    if _asked_before(last, stop) and {*before} == {*after}:
        answers = ColumnAnswers()  # taken then: a second time they would swap two columns back
    answers.check(before, after, _at(last, stop))
    renamed = {new.lower(): old.lower() for old, new in answers.renamed.items()}
    known = {column.name.lower(): column.id for column in last.columns}
    ids = {c.id: known.get(renamed.get(c.name.lower(), c.name.lower()), c.id) for c in now.columns}
    dropped = {name.lower() for name in answers.dropped}
    kept = set(ids.values())
    went = [c.name for c in last.columns if c.id not in kept and c.name.lower() not in dropped]
    came = [c.name for c in now.columns if ids[c.id] == c.id]
    if went and came:
        raise SchemaMismatch(
            f"column {went[0]} disappeared and {came[0]} appeared",
            where=_at(last, stop),
            remedy=f"give --renamed {went[0]}={came[0]}, or --dropped {went[0]} if it was no rename",
        )
    by_id = {column.id: column for column in last.columns}
    columns = tuple(_as_before(replace(c, id=ids[c.id]), by_id.get(ids[c.id])) for c in now.columns)
    indexes = tuple(replace(i, parts=tuple(ids.get(part, 0) for part in i.parts)) for i in now.indexes)
    return replace(
        now,
        version=last.version + 1,
        commit_ts=stop.at_ts,
        kind=REFRESHED,
        columns=columns,
        key=tuple(ids[i] for i in now.key),
        indexes=indexes,
    )


def _as_before(column: Column, old: Column | None) -> Column:
    """The column with facts that only DDL tells, taken from its earlier version."""
    return column if old is None else replace(column, on_update=old.on_update, no_default=old.no_default)
