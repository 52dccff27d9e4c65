"""Schema history of one source: every version of every table, and the replay of DDL onto it.

In:  rows of control/schema_history (a baseline and what was replayed before), then DDL statements in commit_ts order.
Out: new TableVersions to append; the version of a table at a commit_ts.

Why replaying again is safe: a statement at or below the baseline, or at or below the last version of a table it
touches, changes nothing; and ids of new columns follow from the rows alone. Why nothing is guessed: a statement that
can't be read, or that doesn't fit what is known of its tables, holds those tables (`held`) from there on; versions
before it stay true, and others go on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tidegate.errors import DDLError
from tidegate.schema.charsets import server_default
from tidegate.schema.columns import Column, TableVersion, VersionStatus
from tidegate.schema.ddl_reader import DdlNotRead, read, touched_tables
from tidegate.schema.ddl_statement import DdlStatement
from tidegate.schema.ddl_statements import (
    AlterTable,
    CreateLike,
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropTables,
    Ignored,
    RenameTables,
    RenameTo,
    Statement,
    TableName,
    Truncate,
    starts_anew,
)
from tidegate.schema.ddl_tokens import Server
from tidegate.schema.partition_moves import PartitionMoves
from tidegate.schema.select_collations import Session
from tidegate.schema.table_charsets import resolve_charset
from tidegate.schema.table_query import query_columns
from tidegate.schema.table_shape import Context, Shape, alter, copy, create
from tidegate.schema.types import UNKNOWN
from tidegate.schema.work import Work
from tidegate.tables import splits

BASELINE: Final = "baseline"
DEFAULTS: Final = "defaults"


class SchemaHistory:
    """Versions of the tables of one source, in memory.

    held: tables that a statement holds, with the error that says why; it is not stored, since the statement is read
    again with the next window of that table.
    """

    def __init__(
        self,
        source: str,
        rows: Iterable[Mapping[str, Any]] = (),
        keeps: Callable[[str, str], bool] = lambda _database, _table: True,
        *,
        derives: bool = False,
        next_id: int = 1,
        floor: int = 0,
    ) -> None:
        """Take in rows of control/schema_history, in any order; other sources' are left out.

        Rows may be those alone that are still needed (lake/schema_rows.py): next_id and floor then come from all of
        them. A table's rows are parsed when it is first asked for.

        keeps: Tables.keeps of the pipeline: an unknown table that it doesn't want is nobody's error. derives: work out
        the columns of CREATE TABLE ... SELECT, for a script; from a log rows would be missing.
        """
        self.source = source
        self.held: dict[TableName, DdlNotRead] = {}
        self._keeps = keeps
        self._derives = derives
        self._versions: dict[TableName, list[TableVersion]] = {}
        self._unread: dict[TableName, list[Mapping[str, Any]]] = {}
        self._next_id = next_id
        self._floor = floor
        mine = [row for row in rows if row["source"] == source]
        for row in sorted(mine, key=lambda row: (row["commit_ts"], row["version"])):
            name = (row["database"], row["table"])
            self._versions.setdefault(name, [])
            self._unread.setdefault(name, []).append(row)
            self._next_id = max(self._next_id, (row.get("last_column_id") or 0) + 1)
            if row["kind"] == BASELINE:
                self._floor = max(self._floor, row["commit_ts"])
        self._grown = {name for name, rows_of in self._unread.items() if len(rows_of) > 1}

    def add(self, versions: Iterable[TableVersion]) -> None:
        """Take in versions that are already numbered, such as a baseline, in commit_ts order."""
        for version in versions:
            name = (version.database, version.table)
            self._of(name)
            self._versions.setdefault(name, []).append(version)
            self._grown.add(name)
            self._next_id = max([self._next_id, *(column.id + 1 for column in version.columns)])
            if version.kind == BASELINE:
                self._floor = max(self._floor, version.commit_ts)

    def _of(self, name: TableName) -> list[TableVersion]:
        """A table's versions, oldest first."""
        rows = self._unread.pop(name, None)
        if rows is not None:
            self._versions[name] = [TableVersion.from_row(row) for row in rows]
        return self._versions.get(name, [])

    def forget(self, floor_of: Callable[[str, str], int]) -> None:
        """Let go of versions that another one superseded at or below floor_of(database, table): nobody asks for them.

        Replay needs no more than the last one, so an application's memory stays the same however many DDLs it reads.
        """
        for name in self._grown:
            versions, floor = self._of(name), floor_of(*name)
            keep = bisect_right(versions, floor, key=lambda version: version.commit_ts)
            self._versions[name] = versions[max(keep - 1, 0) :]
        self._grown = {name for name in self._grown if len(self._versions[name]) > 1}

    def ever(self, status: VersionStatus) -> list[TableName]:
        """Tables with a version of this status, without parsing what isn't parsed yet."""
        return [
            name
            for name, versions in self._versions.items()
            if any(version.status is status for version in versions)
            or any(row["status"] == status for row in self._unread.get(name, ()))
        ]

    def versions(self, database: str, table: str) -> tuple[TableVersion, ...]:
        """All versions of a table that are in memory, oldest first."""
        return tuple(self._of((database, table)))

    def version_at(self, database: str, table: str, commit_ts: int) -> TableVersion | None:
        """The version that holds for rows with this commit_ts; it may be one with status dropped.

        None when the table wasn't known then.
        """
        versions = self._of((database, table))
        at = bisect_right(versions, commit_ts, key=lambda version: version.commit_ts)
        return versions[at - 1] if at else None

    def made_in(self, after_ts: int, upto_ts: int) -> list[TableVersion]:
        """Versions of tables that begin in (after_ts, upto_ts], oldest first."""
        late = [name for name in self._versions if name[1] and self._newest(name) > after_ts]
        made = [version for name in late for version in self._of(name) if after_ts < version.commit_ts <= upto_ts]
        return sorted(made, key=lambda version: version.commit_ts)

    def _newest(self, name: TableName) -> int:
        """commit_ts of a known table's last version, without parsing it."""
        unread = self._unread.get(name)
        return int(unread[-1]["commit_ts"]) if unread else self._versions[name][-1].commit_ts

    def standing(self) -> dict[TableName, int]:
        """Tables that were never dropped as far as is in memory: from which commit_ts on, without parsing any."""
        gone = set(self.ever(VersionStatus.DROPPED))
        unread, versions = self._unread, self._versions
        return {
            name: int(unread[name][0]["commit_ts"]) if name in unread else versions[name][0].commit_ts
            for name in self.tables()
            if name not in gone
        }

    def tables(self) -> tuple[TableName, ...]:
        """(database, table) of every table that ever was."""
        return tuple(name for name in self._versions if name[1])

    def replay(self, statement: DdlStatement) -> list[TableVersion]:
        """Follow one statement. Returns the versions it made, at most one per table; [] when it changes nothing that
        a version says, or was replayed before.

        Raises DdlNotRead (a DDLError) whose `tables` are held from here on; () means that no table can be named, and
        the source has to stop.
        """
        if statement.commit_ts <= self._floor:
            return []
        server = Server.of(statement.server_version)
        try:
            parsed = read(statement.sql, database=statement.database, sql_mode=statement.sql_mode, server=server)
        except DdlNotRead as error:
            names = [pair for name in error.tables for pair in splits(name)]
            if not statement.legible:
                return self._illegible(names, statement)
            if names and all(not self._keeps(*name) or self._seen(name, statement.commit_ts) for name in names):
                return []
            raise self._hold(names, error.what, statement, error.remedy) from error
        if not statement.legible and not isinstance(parsed, Ignored):
            touched = touched_tables(parsed)
            harmless = not touched and not isinstance(parsed, DefineDatabase | DropDatabase)  # temporary tables
            return [] if harmless else self._illegible(touched, statement)
        return self.follow(parsed, statement)

    def _illegible(self, names: Iterable[TableName], statement: DdlStatement) -> list[TableVersion]:
        """Hold what a statement with unreadable bytes names: those tables; or all of their databases that are known; or
        all there are, when not even a database has a name.
        """
        databases = {database for database, _ in names}
        if not databases or any(UNKNOWN in database for database in databases):
            names = self.tables()
        elif any(UNKNOWN in table for _, table in names):
            names = [name for name in self.tables() if name[0] in databases]
        names = [name for name in names if self._keeps(*name) and not self._seen(name, statement.commit_ts)]
        if names:
            what = f"statement {statement.sql[:80]!r} holds bytes that are no text in its character set"
            raise self._hold(names, what, statement, "run `tidegate schema refresh`, which asks the server")
        return []

    def follow(self, parsed: Statement, statement: DdlStatement) -> list[TableVersion]:
        """The same for a statement that is read already."""
        touched = touched_tables(parsed)
        if isinstance(parsed, Ignored) or any(self._seen(name, statement.commit_ts) for name in touched):
            return []
        before = next((self.held[name] for name in touched if name in self.held), None)
        if before is not None and not starts_anew(parsed):
            raise self._hold(touched, f"an earlier statement wasn't followed: {before}", statement, "mend that first")
        server = Server.of(statement.server_version)
        work = Work(self._last)
        try:
            self._follow(parsed, work, self._context(statement, server, parsed))
        except DDLError as error:
            if touched and not any(self._keeps(*name) for name in touched):
                return []
            raise self._hold(touched, error.what, statement, error.remedy) from error
        return self._record(work, statement, touched)

    def _seen(self, name: TableName, commit_ts: int) -> bool:
        last = self._last(name)
        return last is not None and last.commit_ts >= commit_ts

    def _last(self, name: TableName) -> TableVersion | None:
        versions = self._of(name)
        return versions[-1] if versions else None

    def hold(self, names: Iterable[TableName], error: DdlNotRead) -> None:
        """Hold tables for a reason from outside."""
        for name in names:
            self.held.setdefault(name, error)

    def _hold(self, names: Iterable[TableName], what: str, statement: DdlStatement, remedy: str) -> DdlNotRead:
        names = tuple(dict.fromkeys(names))
        where = f"{self.source} at {statement.where}"
        error = DdlNotRead(what, where=where, remedy=remedy, tables=tuple(f"{d}.{t}" for d, t in names))
        self.hold(names, error)
        return error

    def _context(self, statement: DdlStatement, server: Server, parsed: Statement) -> Context:
        touched = touched_tables(parsed)
        database = touched[0][0] if touched else statement.database
        defaults = self._defaults(database, server)
        return Context(server, defaults, self.new_id, statement.told)

    def _defaults(self, database: str, server: Server) -> tuple[str, str]:
        """(charset, collation) that a table of this database has by default."""
        for name in ((database, ""), ("", "")):
            last = self._last(name)
            if last is not None and last.status is VersionStatus.ACTIVE:
                return last.charset, last.collation
        return server_default(server)

    def new_id(self) -> int:
        """A column id that no column of this source ever had."""
        self._next_id += 1
        return self._next_id - 1

    def _follow(self, statement: Statement, work: Work, context: Context) -> None:
        match statement:
            case CreateTable():
                self._create(statement, work, context)
            case CreateLike():
                self._like(statement, work, context)
            case AlterTable():
                self._alter(statement, work, context)
            case DropTables(tables, temporary=False):
                for table in tables:
                    work.drop(table, "drop")
            case RenameTables(pairs):
                for old, new in pairs:
                    self._rename(old, new, work)
            case Truncate(table):
                if self._known(table, work):
                    work.put(table, work.shape(table), "truncate", VersionStatus.ACTIVE)
            case DefineDatabase():
                self._database(statement, work, context)
            case DropDatabase(database):
                for name in [name for name in self._versions if name[0] == database]:
                    work.drop(name, "drop" if name[1] else DEFAULTS)

    def _known(self, table: TableName, work: Work) -> bool:
        """Whether a table's columns are known. Raises DDLError when they are not but should be."""
        if work.lives(table):
            return True
        if self._keeps(*table):
            raise DDLError(
                f"`{table[0]}.{table[1]}` is not known: its CREATE TABLE came before the first event",
                remedy="snapshot the table",
            )
        return False

    def _create(self, statement: CreateTable, work: Work, context: Context) -> None:
        if statement.temporary or (statement.if_not_exists and work.lives(statement.table)):
            return
        taken: list[Column] = []
        if statement.select:
            if statement.query is None or not self._derives:
                raise DDLError(
                    "CREATE TABLE ... SELECT takes columns and rows from a query that the log doesn't hold",
                    remedy="set binlog_format=ROW for every session, then snapshot the table",
                )
            defined = {column.name.lower() for column in statement.columns}
            session = Session(context.server, context.told)
            taken = query_columns(statement.query, lambda table: self._source(table, work).columns, session, defined)
        work.put(statement.table, create(statement, context, taken), "create", VersionStatus.ACTIVE)

    def _source(self, table: TableName, work: Work) -> Shape:
        """A table that another one takes columns from."""
        if not work.lives(table) or table in self.held:
            raise DDLError(f"`{table[0]}.{table[1]}` is not known", remedy="snapshot the table")
        return work.shape(table)

    def _like(self, statement: CreateLike, work: Work, context: Context) -> None:
        if statement.temporary or (statement.if_not_exists and work.lives(statement.table)):
            return
        shape = copy(self._source(statement.like, work), context.new_id)
        work.put(statement.table, shape, "create", VersionStatus.ACTIVE)

    def _alter(self, statement: AlterTable, work: Work, context: Context) -> None:
        table = statement.table
        renamed = next((action.to for action in statement.actions[::-1] if isinstance(action, RenameTo)), None)
        if not statement.actions or (statement.if_exists and not work.lives(table)):
            return
        moves = PartitionMoves(work, lambda other: self._known(other, work), self._keeps, context.new_id)
        if not self._known(table, work):
            if renamed is not None:
                self._known(renamed, work)
            moves.follow_unknown(table, statement.actions)
            return
        before = work.shape(table)
        work.put(table, alter(before, statement.actions, context), "alter", work.status(table))
        moves.follow(table, before, statement.actions)
        if renamed not in (None, table):
            self._rename(table, renamed, work)

    def _rename(self, old: TableName, new: TableName, work: Work) -> None:
        if not work.lives(old):
            for name in (old, new):
                if self._keeps(*name):
                    raise DDLError(f"`{old[0]}.{old[1]}` is renamed but not known", remedy="snapshot the table")
            return
        shape, status = work.shape(old), work.status(old)
        if self._keeps(*new) and not self._keeps(*old):
            status = VersionStatus.NEEDS_SNAPSHOT  # nobody followed its rows
        work.drop(old, "rename")
        work.put(new, shape, "rename", status)

    def _database(self, statement: DefineDatabase, work: Work, context: Context) -> None:
        name = (statement.database, "")
        if statement.create:
            if statement.if_not_exists and work.lives(name):
                return
            last = self._last(("", ""))
            base = (last.charset, last.collation) if last else server_default(context.server)
        else:
            base = self._defaults(statement.database, context.server)
        if statement.or_replace:
            for table in [table for table in self._versions if table[0] == statement.database and table[1]]:
                work.drop(table, "drop")
        shape = Shape((), (), *resolve_charset(statement.charset, base, context.server))
        work.put(name, shape, DEFAULTS, VersionStatus.ACTIVE)

    def _record(self, work: Work, statement: DdlStatement, touched: Iterable[TableName]) -> list[TableVersion]:
        made: list[TableVersion] = []
        for name in touched:
            self.held.pop(name, None)
        for (database, table), after in work.changed():
            last = self._last((database, table))
            version = TableVersion(
                source=self.source,
                database=database,
                table=table,
                version=last.version + 1 if last else 1,
                commit_ts=statement.commit_ts,
                file=statement.file,
                pos=statement.pos,
                kind=after.kind,
                ddl=statement.shown,
                columns=after.shape.columns,
                key=after.shape.key,
                charset=after.shape.charset,
                status=after.status,
                collation=after.shape.collation,
                indexes=after.shape.indexes,
                partitioning=after.shape.partitioning,
                moved=after.moved,
            )
            made.append(version)
        self.add(made)
        return made
