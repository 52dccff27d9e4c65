"""A DDL script as a session runs it: statements, `USE`, `SET sql_mode`, temporary tables.

In:  the text of a script, as a person wrote it or a dump tool did.
Out: one Step per statement: what it changed, or why it wasn't understood; a SchemaHistory at the end.

Only here do temporary tables matter: row-based binlogs leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tidegate.errors import DDLError
from tidegate.schema.columns import Column, Generated, Index, IndexKind, TableVersion, VersionStatus
from tidegate.schema.ddl_reader import read
from tidegate.schema.ddl_statement import DdlStatement
from tidegate.schema.ddl_statements import (
    AlterTable,
    CreateLike,
    CreateTable,
    DropTables,
    RenameTables,
    RenameTo,
    Statement,
    TableName,
    Truncate,
)
from tidegate.schema.ddl_tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ORACLE, REAL_AS_FLOAT, STRICT, Server
from tidegate.schema.history import SchemaHistory

_MODES: Final = {
    "ANSI_QUOTES": ANSI_QUOTES,
    "ANSI": ANSI_QUOTES | REAL_AS_FLOAT,
    "ORACLE": ORACLE | ANSI_QUOTES,
    "MSSQL": ANSI_QUOTES,
    "DB2": ANSI_QUOTES,
    "MAXDB": ANSI_QUOTES,
    "POSTGRESQL": ANSI_QUOTES,
    "REAL_AS_FLOAT": REAL_AS_FLOAT,
    "NO_BACKSLASH_ESCAPES": NO_BACKSLASH_ESCAPES,
    "STRICT_TRANS_TABLES": 1 << 21,
    "STRICT_ALL_TABLES": 1 << 22,
    "TRADITIONAL": STRICT,
    "DEFAULT": 1 << 21,
}
_SET_MODE: Final = re.compile(
    r"\s*set\s+(?:session\s+|local\s+|@@(?:session\.|local\.)?)?sql_mode\s*:?=\s*(.*)", re.IGNORECASE | re.DOTALL
)
_USE: Final = re.compile(r"\s*use\s+(?:`([^`]*)`|(\S+?))\s*;?\s*", re.IGNORECASE)
_DELIMITER: Final = re.compile(r"\s*delimiter\s+(\S+)", re.IGNORECASE)
# Of a script's text: quotes and comments are whole pieces, so that a `;` in them ends nothing.
_PIECE: Final = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|/\*.*?\*/|#[^\n]*|--(?=\s|$)[^\n]*|.", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Step:
    """A statement of a script. line: where it starts, from 1. versions: what it made. error: "" when understood."""

    line: int
    sql: str
    kind: str
    versions: tuple[TableVersion, ...] = ()
    error: str = ""


def statements(text: str) -> Iterator[tuple[int, str]]:
    """(line, statement) of a script; `DELIMITER x` lines, as the mysql client has them, are followed."""
    delimiter, start, at = ";", 0, 0
    while at < len(text):
        command = _DELIMITER.match(text, at) if not text[start:at].strip() else None
        if command is not None:
            delimiter, start = command[1], command.end()
            at = start
        elif text.startswith(delimiter, at):
            yield from _trimmed(text, start, at)
            at += len(delimiter)
            start = at
        else:
            piece = _PIECE.match(text, at)
            assert piece is not None
            at = piece.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    body = text[start:end]
    if body.strip():
        line = text.count("\n", 0, start + len(body) - len(body.lstrip())) + 1
        yield line, body.strip()


class Script:
    """A session that runs DDL on a server that was empty but for one database."""

    def __init__(self, database: str, server_version: str, charset: str = "") -> None:
        self.history = SchemaHistory("script")
        self.database = database
        self.server_version = server_version
        self.sql_mode = _MODES["DEFAULT"]
        self._temporary: set[TableName] = set()
        self._ts = 0
        if database:
            self._replay(f"CREATE DATABASE `{database}`" + (f" CHARACTER SET {charset}" if charset else ""))

    def run(self, line: int, sql: str) -> Step:
        """Follow one statement; what isn't understood is in the step's error."""
        use, mode = _USE.fullmatch(sql), _SET_MODE.match(sql)
        if use:
            self.database = use[1] or use[2]
            return Step(line, sql, "USE")
        if mode:
            self.sql_mode = _mode_bits(mode[1])
            return Step(line, sql, "SET")
        try:
            server = Server.of(self.server_version)
            parsed = read(sql, database=self.database, sql_mode=self.sql_mode, server=server)
            kind = getattr(parsed, "kind", type(parsed).__name__)
            versions = [] if self._only_temporary(parsed) else self._replay(sql)
        except DDLError as error:
            return Step(line, sql, "unparsed", error=str(error))
        return Step(line, sql, kind, tuple(version for version in versions if version.table))

    def tables(self) -> dict[str, TableVersion]:
        """The tables that are there now, by database.table; those held are left out."""
        found = {}
        for database, table in self.history.tables():
            version = self.history.versions(database, table)[-1]
            if version.status is not VersionStatus.DROPPED and (database, table) not in self.history.held:
                found[version.name] = version
        return found

    def _replay(self, sql: str) -> list[TableVersion]:
        self._ts += 1
        return self.history.replay(
            DdlStatement(
                sql=sql,
                database=self.database,
                sql_mode=self.sql_mode,
                commit_ts=self._ts,
                file="script",
                pos=self._ts,
                timestamp_us=0,
                charset="utf8mb4",
                server_version=self.server_version,
            )
        )

    def _only_temporary(self, statement: Statement) -> bool:
        """Follow temporary tables; True when the statement is about nothing else. One hides a table of its name."""
        match statement:
            case CreateTable(table=table, temporary=True) | CreateLike(table=table, temporary=True):
                self._temporary.add(table)
                return True
            case DropTables(tables, temporary=True):
                self._temporary -= set(tables)
                return True
            case DropTables(tables) if self._temporary & set(tables):
                kept = [table for table in tables if table not in self._temporary]
                self._temporary -= set(tables)
                if kept:
                    self._replay("DROP TABLE " + ", ".join(f"`{d}`.`{t}`" for d, t in kept))
                return True
            case AlterTable(table, actions) if table in self._temporary:
                for action in actions:
                    if isinstance(action, RenameTo):
                        self._temporary = self._temporary - {table} | {action.to}
                return True
            case RenameTables(pairs) if any(old in self._temporary for old, _ in pairs):
                for old, new in pairs:
                    if old in self._temporary:
                        self._temporary = self._temporary - {old} | {new}
                return True
            case Truncate(table):
                return table in self._temporary
        return False


def _mode_bits(text: str) -> int:
    """Of what follows `sql_mode =`; a variable is taken for the default."""
    bits = 0
    if text.strip().startswith("@"):
        return _MODES["DEFAULT"]
    for word in re.split(r"[,'\"\s;]+", text.upper()):
        bits |= _MODES.get(word, 0)
    return bits


def shown_keys(version: TableVersion) -> dict[int, str]:
    """Column id -> PRI, UNI, MUL or "", as information_schema.columns.column_key says.

    Without a PRIMARY KEY the first unique index of NOT NULL columns shows as PRI (sql/table.cc, open_binary_frm).
    """
    nullable = {column.id: column.nullable for column in version.columns}
    primary = next((i for i in version.indexes if i.kind is IndexKind.PRIMARY), None)
    if primary is None:
        fit = [i for i in version.indexes if i.kind is IndexKind.UNIQUE and i.whole]
        primary = next((i for i in fit if not any(nullable.get(part, True) for part in i.parts)), None)
    keys: dict[int, str] = {}
    for index in version.indexes:
        for place, part in enumerate(index.parts):
            rank = _rank(index, place, index is primary)
            if part and _ORDER[rank] > _ORDER[keys.get(part, "")]:
                keys[part] = rank
    return keys


_ORDER: Final = {"": 0, "MUL": 1, "UNI": 2, "PRI": 3}


def _rank(index: Index, place: int, is_primary: bool) -> str:
    if is_primary:
        return "PRI"
    if place:
        return ""
    return "UNI" if index.kind is IndexKind.UNIQUE and len(index.parts) == 1 else "MUL"


def primary_key(version: TableVersion) -> list[str]:
    """Names of the PRIMARY KEY's columns in key order; [] when the table has none."""
    names = {column.id: column.name for column in version.columns}
    return [names[part] for i in version.indexes if i.kind is IndexKind.PRIMARY for part in i.parts]


def shown_columns(version: TableVersion) -> list[dict[str, Any]]:
    """The columns as `tidegate ddl` prints them."""
    keys = shown_keys(version)
    return [
        {
            "name": column.name,
            "type": column.type,
            "nullable": column.nullable,
            "charset": column.charset or None,
            "collation": column.collation or None,
            "key": keys.get(column.id, ""),
            "extra": _extra(column),
            "default": column.default,
            "generation_expression": column.generation_expression or None,
        }
        for column in version.columns
    ]


def _extra(column: Column) -> str:
    words = ["auto_increment"] if column.auto_increment else []
    if column.generated is not Generated.NO:
        words.append(f"{column.generated.upper()} GENERATED")
    if column.invisible:
        words.append("INVISIBLE")
    return ", ".join(words)
