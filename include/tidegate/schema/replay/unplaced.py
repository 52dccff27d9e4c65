"""A table whose database neither the statement nor its source names.

In:  a statement whose `database` is that of its new table (EventSaid.of_made), not the session's;
     the history.
Out: the statement as data, with this table found by its bare name. DdlNotRead unless there is
     exactly one.

`USE db1; RENAME TABLE a TO db2.b` comes as a file of db2.b with this text. Read as db2.a, it would
move the wrong table. If both names are bare, or none is, nothing is in doubt. said_columns.py
checks afterwards whether the table found has the columns in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from tidegate.remedy import RECREATE
from tidegate.schema.ddl.reader import DdlNotRead, read
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.ddl.tree import (
    AlterTable,
    CreateLike,
    CreateTable,
    DropTables,
    RenameTables,
    RenameTo,
    Statement,
    TableName,
)
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.server import ServerVersion

_UNSAID: Final = "\0"  # no database has it in its name


class PlacedTables(Protocol):
    """The part of a SchemaHistory that counts here."""

    def last(self, name: TableName) -> TableVersion | None: ...
    def tables(self) -> tuple[TableName, ...]: ...
    def versions(self, database: str, table: str) -> tuple[TableVersion, ...]: ...


def read_placed(statement: DdlStatement, server: ServerVersion, history: PlacedTables) -> Statement:
    """Raises DdlNotRead."""
    parsed = read(statement.sql, database=statement.database, sql_mode=statement.sql_mode, server=server)
    if statement.said.failed and isinstance(parsed, CreateTable | CreateLike) and parsed.or_replace:
        return DropTables((parsed.table,), parsed.temporary)  # MariaDB drops the old table first
    pair = unplaced(statement.sql, statement.sql_mode, server) if statement.said.of_made else None
    if pair is None:
        return parsed
    bare, made = pair
    candidates = [
        name
        for name in history.tables()
        if name[1] == bare and _was_there(history.versions(*name), statement.commit_ts)
    ]
    if len(candidates) == 1:
        return _placed(parsed, candidates[0])
    names = [made] if isinstance(parsed, CreateLike) else [made, *candidates]
    late = [name for name in names if (last := history.last(name)) is None or last.commit_ts < statement.commit_ts]
    if not late:
        return parsed  # followed, or left behind by all of them
    known = ", ".join(f"`{database}.{table}`" for database, table in candidates) or "none"
    what = f"of which database `{bare}` is that {made[0]}.{made[1]} is made of nobody says; known by that name: {known}"
    raise DdlNotRead(what, remedy=RECREATE, tables=tuple(f"{database}.{table}" for database, table in late))


def unplaced(sql: str, sql_mode: int, server: ServerVersion) -> tuple[str, TableName] | None:
    """(the bare name, the table that is made of it) where the session's database counts, and isn't known.

    Raises DdlNotRead.
    """
    match read(sql, database=_UNSAID, sql_mode=sql_mode, server=server):
        case RenameTables(pairs=((old, new),)) | CreateLike(table=new, like=old):
            pass
        case AlterTable(table=old, actions=actions):
            new = next((action.to for action in actions[::-1] if isinstance(action, RenameTo)), old)
        case _:
            return None
    return (old[1], new) if old[0] == _UNSAID != new[0] else None


def _placed(parsed: Statement, name: TableName) -> Statement:
    match parsed:
        case RenameTables(pairs=((_, new),)):
            return replace(parsed, pairs=((name, new),))
        case AlterTable():
            return replace(parsed, table=name)
        case CreateLike():
            return replace(parsed, like=name)
    return parsed


def _was_there(versions: Sequence[TableVersion], commit_ts: int) -> bool:
    """Just before commit_ts, as far as is known: what another version superseded may be forgotten."""
    before = [version for version in versions if version.commit_ts < commit_ts]
    if before:
        return before[-1].status is not VersionStatus.DROPPED
    return bool(versions) and versions[0].version > 1
