"""The effects of one statement on the known tables.

In:  a statement as data, its Context, the history before it.
Out: the states of its tables in a Work. Nothing is recorded here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from tidegate.errors import DDLError
from tidegate.remedy import RECREATE
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.ddl.tokens import PAD_CHAR_TO_FULL_LENGTH, Cursor
from tidegate.schema.ddl.tree import (
    AlterTable,
    CreateLike,
    CreateSequence,
    CreateTable,
    CreateView,
    DefineDatabase,
    DropDatabase,
    DropTables,
    DropViews,
    RenameTables,
    RenameTo,
    Statement,
    TableComment,
    TableName,
    Truncate,
)
from tidegate.schema.model.charsets import default_collation, server_default, shown_charset
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.unlogged import MERGES, SEQUENCE, EngineOptions, logged_as, renamed_keys, repointed_keys
from tidegate.schema.replay.context import Context
from tidegate.schema.replay.indexes import check_periods
from tidegate.schema.replay.logged_effects import makes_database, surely_new
from tidegate.schema.replay.partition_moves import PartitionMoves
from tidegate.schema.replay.said_columns import check_said
from tidegate.schema.replay.shape import Shape, alter, copy, create
from tidegate.schema.replay.storage import new_names
from tidegate.schema.replay.table_charsets import resolve_charset
from tidegate.schema.replay.views import drop_view, is_view, make_view, rename_view
from tidegate.schema.replay.work import Work

DEFAULTS: Final = "defaults"

# (a cursor at a query, the session's database, the columns of a table that it names) -> the columns that it gives.
QueryColumns = Callable[[Cursor, str, Callable[[TableName], Sequence[Column]]], list[Column]]


class EarlierTables(Protocol):
    """The part of a SchemaHistory used here."""

    @property
    def columns_of_query(self) -> QueryColumns | None: ...
    @property
    def held(self) -> Collection[TableName]: ...
    @property
    def unusual(self) -> Collection[TableName]: ...
    def keeps(self, database: str, table: str) -> bool: ...
    def last(self, name: TableName) -> TableVersion | None: ...
    def defaults(self, database: str, server: ServerVersion) -> tuple[str, str]: ...
    def names_of(self, database: str) -> list[TableName]: ...


class TableEffects:
    """The effects of one statement."""

    def __init__(self, history: EarlierTables, work: Work, context: Context, logged: DdlStatement) -> None:
        self._history = history
        self._work = work
        self._context = context
        self._logged = logged

    def follow(self, statement: Statement) -> None:
        """Raises DDLError if the statement doesn't fit the known tables."""
        match statement:
            case CreateTable():
                self._create(statement, self._status_of_new(statement))
            case CreateLike():
                self._like(statement, self._status_of_new(statement))
            case CreateSequence(table):
                if not (statement.if_not_exists and self._work.lives(table)):
                    shape = Shape((), (), *self._context.defaults, engine=SEQUENCE)
                    self._work.put(table, shape, "create", VersionStatus.ACTIVE)
            case CreateView(view):
                make_view(self._work, view)
            case DropViews(views):
                for view in views:
                    drop_view(self._work, view)
            case AlterTable():
                self._alter(statement)
            case DropTables(tables, temporary=False):
                for table in tables:
                    self._work.drop(table, "drop")
            case RenameTables(pairs, if_exists):
                for old, new in pairs:
                    # A kept table that nobody knows isn't there, or its first row event tells; one left out may be.
                    known = self._work.lives(old) or is_view(self._work, old)
                    if known or not (if_exists and self._history.keeps(*old)):
                        self._rename(old, new)
            case Truncate(table):
                if self._known(table):
                    shape = _emptied(self._work.shape(table), self._context, self._work.lives)
                    self._work.put(table, shape, "truncate", self._work.status(table).emptied)
            case DefineDatabase():
                self._database(statement)
            case DropDatabase(database):
                for name in self._history.names_of(database):
                    self._work.drop(name, "drop" if name[1] else DEFAULTS)
                    drop_view(self._work, name)
        check_said(statement, self._work, self._logged.said)

    def _known(self, table: TableName) -> bool:
        """Whether a table's columns are known. Raises DDLError if they should be, and aren't."""
        if self._work.lives(table):
            return True
        if self._history.keeps(*table):
            raise DDLError(
                f"`{table[0]}.{table[1]}` is not known: its CREATE TABLE came before the first event",
                remedy=RECREATE,
            )
        return False

    def _status_of_new(self, statement: CreateTable | CreateLike) -> VersionStatus:
        """IF NOT EXISTS makes no table if there is one, perhaps an unknown one with other columns."""
        if self._logged.said.with_rows:
            return VersionStatus.NEEDS_SNAPSHOT
        name = statement.table
        known, database = self._history.last(name), self._history.last((name[0], ""))
        gap_ts = self._context.settings.gap_ts
        proven = (
            not statement.if_not_exists
            or self._history.columns_of_query is not None
            or (known is not None and bool(known.columns) and known.commit_ts >= gap_ts)
            or (database is not None and database.commit_ts >= gap_ts and makes_database(database.ddl))
            or surely_new(name, self._logged, self._context.server, self._context.settings)
        )
        return VersionStatus.ACTIVE if proven else VersionStatus.UNPROVEN

    def _create(self, statement: CreateTable, status: VersionStatus) -> None:
        if statement.temporary or (statement.if_not_exists and self._work.lives(statement.table)):
            return
        taken: list[Column] = []
        if statement.query_at is not None:
            if self._history.columns_of_query is None:
                raise DDLError(
                    "CREATE TABLE ... SELECT takes columns and rows from a query that the log doesn't hold",
                    remedy=RECREATE.after("set binlog_format=ROW for every session"),
                )
            cursor = Cursor(self._logged.sql, self._logged.sql_mode, self._context.server)
            cursor.at = statement.query_at
            columns = self._history.columns_of_query
            taken = columns(cursor, self._logged.database, lambda table: self._source(table).columns)
        shape = create(statement, self._context, taken)
        if under := self._merged(statement.table):
            shape = _emptied(replace(shape, merged_by=under), self._context, self._work.lives)
        self._work.put(statement.table, shape, "create", status)
        self._mark_merged(statement.table, shape, [statement.storage])

    def _merged(self, name: TableName) -> tuple[str, ...]:
        """The MERGE table over a new table; () without one."""
        last = self._history.last(name)
        if last is None or not last.merged_by or not self._work.lives((last.merged_by[0], last.merged_by[1])):
            return ()
        return last.merged_by

    def _mark_merged(self, table: TableName, shape: Shape, actions: Iterable[object]) -> None:
        """Rows come to the tables under a MERGE table through it, too, also to tables made later."""
        for action in actions:
            if isinstance(action, EngineOptions) and action.union and shape.engine in MERGES:
                for under in action.union:
                    if self._work.lives(under):
                        was, status = self._work.shape(under), self._work.status(under)
                        self._work.put(under, replace(was, merged_by=table), "alter", status)
                    elif self._history.keeps(*under):
                        awaited = Shape((), (), *self._context.defaults, merged_by=table)
                        self._work.put(under, awaited, "drop", VersionStatus.DROPPED)

    def _source(self, table: TableName) -> Shape:
        """A table that another one takes columns from."""
        if not self._work.lives(table) or table in self._history.held:
            raise DDLError(f"`{table[0]}.{table[1]}` is not known", remedy=RECREATE)
        return self._work.shape(table)

    def _like(self, statement: CreateLike, status: VersionStatus) -> None:
        if statement.temporary or (statement.if_not_exists and self._work.lives(statement.table)):
            return
        shape = copy(self._source(statement.like), self._context.new_id)
        shape = replace(shape, merged_by=self._merged(statement.table))
        if self._work.status(statement.like) is VersionStatus.UNPROVEN:
            status = VersionStatus.UNPROVEN
        self._work.put(statement.table, shape, "create", status)

    def _alter(self, statement: AlterTable) -> None:
        table = statement.table
        renamed = next((action.to for action in statement.actions[::-1] if isinstance(action, RenameTo)), None)
        if not statement.actions or (statement.if_exists and not self._work.lives(table)):
            return
        if renamed is not None and is_view(self._work, table):
            rename_view(self._work, table, renamed)
            return
        moves = PartitionMoves(self._work, self._known, self._history.keeps, self._context.new_id)
        if not self._work.lives(table) and all(isinstance(action, TableComment) for action in statement.actions):
            return  # of a table that nobody knows
        if not self._known(table):
            if renamed is not None:
                self._known(renamed)
            moves.follow_unknown(table, statement.actions)
            return
        if self._history.columns_of_query is not None:
            check_periods(statement.actions)
        before = self._work.shape(table)
        after = alter(before, statement.actions, self._context)
        status = self._work.status(table)
        if self._logged.sql_mode & PAD_CHAR_TO_FULL_LENGTH and _pads(before, after):
            status = status.without_rows
        self._work.put(table, after, "alter", status)
        self._mark_merged(table, after, statement.actions)
        if columns := new_names(statement.actions):
            self._repoint(table, table, columns)
        moves.follow(table, before, statement.actions)
        if renamed not in (None, table):
            self._rename(table, renamed)

    def _rename(self, old: TableName, new: TableName) -> None:
        if is_view(self._work, old):
            rename_view(self._work, old, new)
            return
        if not self._work.lives(old):
            for name in (old, new):
                if self._history.keeps(*name):
                    raise DDLError(f"`{old[0]}.{old[1]}` is renamed but not known", remedy=RECREATE)
            return
        shape, status = self._work.shape(old), self._work.status(old)
        if self._history.keeps(*new) and not self._history.keeps(*old):
            status = status.without_rows  # nobody followed them
        self._work.drop(old, "rename")
        under = self._merged(new) or shape.merged_by
        shape = replace(shape, foreign_keys=renamed_keys(shape.foreign_keys, old, new), merged_by=under)
        self._work.put(new, shape, "rename", status)
        self._repoint(old, new, {})

    def _repoint(self, old: TableName, new: TableName, columns: Mapping[str, str]) -> None:
        """Foreign keys of other tables follow their parent's new names."""
        for name in sorted(self._history.unusual):
            if (name in (old, new) and old != new) or not self._work.lives(name):
                continue
            shape = self._work.shape(name)
            keys = repointed_keys(shape.foreign_keys, old, new, columns)
            if keys != shape.foreign_keys:
                self._work.put(name, replace(shape, foreign_keys=keys), "alter", self._work.status(name))

    def _database(self, statement: DefineDatabase) -> None:
        name = (statement.database, "")
        if statement.create:
            if statement.if_not_exists and self._work.lives(name):
                return
            base = self._server_charset()
        else:
            base = self._history.defaults(statement.database, self._context.server)
        if statement.or_replace:
            for table in [name for name in self._history.names_of(statement.database) if name[1]]:
                self._work.drop(table, "drop")
                drop_view(self._work, table)
        shape = Shape((), (), *resolve_charset(statement.charset, base, self._context.server))
        self._work.put(name, shape, DEFAULTS, VersionStatus.ACTIVE)

    def _server_charset(self) -> tuple[str, str]:
        """(charset, collation) of a database without its own: the session's, as its event says."""
        last = self._history.last(("", ""))
        base = (last.charset, last.collation) if last else server_default(self._context.server)
        said = self._context.said.database_charset
        charset = shown_charset(said, self._context.server) if said else base[0]
        return base if charset == base[0] else (charset, default_collation(charset, self._context.server))


def _emptied(shape: Shape, context: Context, lives: Callable[[tuple[str, str]], bool]) -> Shape:
    """After TRUNCATE: the server's unlogged changes, and a vanished MERGE table, count from here on."""
    keys = logged_as(shape.foreign_keys, logged=context.logs_cascades)
    under = bool(shape.merged_by) and lives((shape.merged_by[0], shape.merged_by[1]))
    return replace(shape, foreign_keys=keys, merged_by=shape.merged_by if under else ())


def _pads(before: Shape, after: Shape) -> bool:
    """Whether values of CHAR columns, read with all their spaces, may have gone into other types: those of a converted
    column, or of a computed one.
    """
    types = {column.id: column.type for column in after.columns}
    chars = [column for column in before.columns if column.type.startswith("char(")]
    computed = any(column.generation_expression for column in after.columns)
    return any(column.id in types and (computed or not types[column.id].startswith("char(")) for column in chars)
