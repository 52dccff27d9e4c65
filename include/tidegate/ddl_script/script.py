"""A DDL script as a session runs it: statements, `USE`, `SET sql_mode`, `SET NAMES`, temporary tables.

In:  the statements of a script (text.py), as a person wrote it or a dump tool did.
Out: one Step per statement: what it changed, or why it wasn't understood; a SchemaHistory at the end.

Temporary tables matter only here: row-based binlogs leave them out. Statements about rows are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.ddl_script.query import Columns, query_columns
from tidegate.ddl_script.settings import Settings, database_of_use
from tidegate.errors import DDLError
from tidegate.schema.ddl.reader import DdlNotRead, read
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.ddl.tokens import NO_BACKSLASH_ESCAPES, Cursor
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
    Ignored,
    RenameTables,
    RenameTo,
    Statement,
    TableName,
    Truncate,
)
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.replay.history import SchemaHistory
from tidegate.table_names import splits

# The first word of a statement, after comments and at the front of versioned ones. Atomic: see text.py.
_FIRST: Final = re.compile(r"(?>(?:[\s(]++|/\*M?!\d*+|/\*(?!M?!)(?s:.*?)\*/|\#[^\n]*+|--\s[^\n]*+)*)([A-Za-z]++)")
_DDL: Final = frozenset({"CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME"})
# Statements whose effect stands elsewhere.
_DYNAMIC: Final = frozenset({"EXECUTE", "CALL"})


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """A statement of a script. line: where it starts, from 1. error: "" when understood.

    kind: "table.create", "table.create_select", "table.create_like", "table.alter", "table.drop", "table.rename",
    "table.truncate", "table.temp", "index.create", "index.drop", "database", "set", "use", "other" or "unparsed".
    versions: the tables after it. before: the same tables before it, as far as they existed. forgotten: held tables
    that are gone now.
    """

    line: int
    sql: str
    kind: str
    versions: tuple[TableVersion, ...] = ()
    before: tuple[TableVersion | None, ...] = ()
    forgotten: tuple[str, ...] = ()
    error: str = ""


class Script:
    """A session that runs DDL on a server that was empty but for one database."""

    def __init__(self, database: str, server_version: str, charset: str = "") -> None:
        self.history = SchemaHistory("script", columns_of_query=self._columns_of_query)
        self.database = database
        self.server_version = server_version
        self.settings = Settings()
        self._temporary: set[TableName] = set()
        self._ts = 0
        if database:
            created = f"CREATE DATABASE `{database}`" + (f" CHARACTER SET {charset}" if charset else "")
            self._follow(read(created, server=ServerVersion.of(server_version)), created)

    def is_plain(self) -> bool:
        """Whether a backslash is now an ordinary character."""
        return bool(self.settings.sql_mode & NO_BACKSLASH_ESCAPES)

    def run(self, line: int, sql: str) -> ScriptStep:
        """Follow one statement; what isn't understood is in the step's error."""
        first = _FIRST.match(sql)
        verb = first[1].upper() if first else ""
        try:
            if verb == "SET":
                cursor = self._cursor(sql)
                if not cursor.take("SET", "STATEMENT"):
                    cursor.take("SET")
                    self.settings.follow(cursor)
                    return ScriptStep(line, sql, "set")
            elif verb == "USE":
                cursor = self._cursor(sql)
                cursor.take("USE")
                self.database = database_of_use(cursor) or self.database
                return ScriptStep(line, sql, "use")
            elif verb in _DYNAMIC:
                what = f"{verb} runs statements that stand elsewhere; write them into the script"
                return ScriptStep(line, sql, "unparsed", error=what)
            elif verb not in _DDL:
                return ScriptStep(line, sql, "other")
            return self._ddl(line, sql)
        except DDLError as error:
            return ScriptStep(line, sql, "unparsed", error=str(error))

    def _cursor(self, sql: str) -> Cursor:
        return Cursor(sql, self.settings.sql_mode, ServerVersion.of(self.server_version))

    def _ddl(self, line: int, sql: str) -> ScriptStep:
        server = ServerVersion.of(self.server_version)
        try:
            parsed = read(sql, database=self.database, sql_mode=self.settings.sql_mode, server=server)
        except DdlNotRead as error:
            self.history.hold([pair for name in error.tables for pair in splits(name)], error)
            raise
        kind = _kind(parsed, sql)
        rest = self._without_temporary(parsed)
        if rest is None:
            return ScriptStep(line, sql, "table.temp" if kind.startswith("table") else kind)
        held = self.history.held.keys() & set(rest.tables) if isinstance(rest, DropTables) else set()
        try:
            versions = [version for version in self._follow(rest, sql) if version.table]
        except DDLError as error:
            return ScriptStep(line, sql, kind, error=str(error))
        before = tuple(self._before(version) for version in versions)
        forgotten = {f"{d}.{t}" for d, t in held} - {version.name for version in versions}
        return ScriptStep(line, sql, kind, tuple(versions), before, tuple(sorted(forgotten)))

    def _before(self, version: TableVersion) -> TableVersion | None:
        last = self.history.version_at(version.database, version.table, version.commit_ts - 1)
        return None if last is None or last.status is VersionStatus.DROPPED else last

    def tables(self) -> dict[str, TableVersion]:
        """The tables that are there now, by database.table; those held are left out."""
        live = {}
        for database, table in self.history.tables():
            version = self.history.versions(database, table)[-1]
            if version.status is not VersionStatus.DROPPED and (database, table) not in self.history.held:
                live[version.name] = version
        return live

    def _follow(self, parsed: Statement, sql: str) -> list[TableVersion]:
        self._ts += 1
        return self.history.follow(
            parsed,
            DdlStatement(
                sql=sql,
                database=self.database,
                sql_mode=self.settings.sql_mode,
                commit_ts=self._ts,
                file="script",
                pos=self._ts,
                timestamp_us=0,
                charset="utf8mb4",
                server_version=self.server_version,
            ),
        )

    def _without_temporary(self, statement: Statement) -> Statement | None:
        """A statement without its temporary tables; None if nothing is left. A temporary table hides a table of its
        name.
        """
        match statement:
            case CreateTable(table=table, temporary=True) | CreateLike(table=table, temporary=True):
                self._temporary.add(table)
                return None
            case DropTables(tables, temporary=True):
                self._temporary -= set(tables)
                return None
        if not self._temporary:
            return statement
        match statement:
            case CreateLike(table, like) if like in self._temporary:
                raise self._from_temporary(table, like)
            case DropTables(tables) if self._temporary & set(tables):
                kept = tuple(table for table in tables if table not in self._temporary)
                self._temporary -= set(tables)
                return replace(statement, tables=kept) if kept else None
            case AlterTable(table, actions) if table in self._temporary:
                for action in actions:
                    if isinstance(action, RenameTo):
                        self._temporary = self._temporary - {table} | {action.to}
                return None
            # MySQL renames only what is not temporary, even behind a temporary table of its name.
            case RenameTables() if "mariadb" in self.server_version.lower():
                return self._rename_temporary(statement)
            case Truncate(table) if table in self._temporary:
                return None
        return statement

    def _columns_of_query(self, cursor: Cursor, database: str, columns: Columns) -> list[Column]:
        def lasting(table: TableName) -> Sequence[Column]:
            if table in self._temporary:
                raise DDLError("it takes columns from a temporary table", remedy="write them into the statement")
            return columns(table)

        return query_columns(cursor, database, lasting)

    def _from_temporary(self, table: TableName, source: TableName) -> DdlNotRead:
        named = f"`{source[0]}.{source[1]}`"
        error = DdlNotRead(
            f"{table[0]}.{table[1]} takes columns from a temporary table ({named})", remedy="write them into it"
        )
        self.history.hold([table], error)
        return error

    def _rename_temporary(self, statement: RenameTables) -> Statement | None:
        left = []
        for old, new in statement.pairs:
            if old in self._temporary:
                self._temporary = self._temporary - {old} | {new}
            else:
                left.append((old, new))
        return replace(statement, pairs=tuple(left)) if left else None


def _kind(parsed: Statement, sql: str) -> str:
    match parsed:
        case CreateTable(temporary=True) | CreateLike(temporary=True) | DropTables(temporary=True):
            return "table.temp"
        case CreateTable(query_at=query_at):
            return "table.create" if query_at is None else "table.create_select"
        case CreateLike():
            return "table.create_like"
        case AlterTable():
            first = _FIRST.match(sql)
            return {"CREATE": "index.create", "DROP": "index.drop"}.get(
                first[1].upper() if first else "", "table.alter"
            )
        case DropTables():
            return "table.drop"
        case RenameTables():
            return "table.rename"
        case Truncate():
            return "table.truncate"
        case DefineDatabase() | DropDatabase():
            return "database"
        case Ignored() | CreateSequence() | CreateView() | DropViews():
            return "other"
