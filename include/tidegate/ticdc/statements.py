"""The DDL of a segment, in order of commit_ts, for schema_history to replay.

In:  a segment of kind ticdc.
Out: DdlStatements.

A table older than the changefeed comes as a CREATE TABLE IF NOT EXISTS at the segment's beginning.
It changes nothing if the table is known already, so it may come again. The pipeline file says
whether such a table may have had rows (all_rows). If so, it waits for a snapshot, read from its
TiDB if one is named.

A table that RECOVER or FLASHBACK TABLE brought back waits in the same way.

TiDB's own statements that change no rows and no columns are left out by their number. If a
statement's text can't be read, the file still names its table: only that one is held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from enum import IntEnum
from itertools import groupby
from typing import Final, TypeAlias

from tidegate.schema.ddl.reader import DdlNotRead, read, touched_tables
from tidegate.schema.ddl.statement import DdlStatement, EventSaid
from tidegate.schema.ddl.tree import DropDatabase, RenameTables
from tidegate.schema.model.server import TIDB, ServerVersion
from tidegate.schema.replay.unplaced import unplaced
from tidegate.segments.segment import Segment
from tidegate.ticdc.pieces import Placed, form_of, pieces_of
from tidegate.ticdc.schema_file import SchemaFile, quoted, schema_file


class QuietAction(IntEnum):
    """A schema file's Type, the number of TiDB's job (ActionType): those that change no row and no column."""

    NONE = 0
    REBASE_AUTO_ID = 13
    SHARD_ROW_ID = 16
    LOCK_TABLE = 27
    UNLOCK_TABLE = 28
    SET_TIFLASH_REPLICA = 30
    UPDATE_TIFLASH_REPLICA = 31
    MODIFY_AUTO_ID_CACHE = 39
    REBASE_AUTO_RANDOM = 40
    ALTER_INDEX_VISIBILITY = 41
    ALTER_ATTRIBUTES = 49
    ALTER_PARTITION_ATTRIBUTES = 50
    CREATE_PLACEMENT_POLICY = 51
    ALTER_PLACEMENT_POLICY = 52
    DROP_PLACEMENT_POLICY = 53
    ALTER_PARTITION_PLACEMENT = 54
    ALTER_SCHEMA_PLACEMENT = 55
    ALTER_TABLE_PLACEMENT = 56
    ALTER_CACHE = 57
    ALTER_STATS_OPTIONS = 58
    ALTER_NO_CACHE = 59
    ALTER_TTL = 65
    REMOVE_TTL = 67
    CREATE_RESOURCE_GROUP = 68
    ALTER_RESOURCE_GROUP = 69
    DROP_RESOURCE_GROUP = 70


_QUIET: Final = frozenset(QuietAction)
EXCHANGE_PARTITION: Final = 42
RECOVER_TABLE: Final = 25  # FLASHBACK TABLE too: a table is back, with its rows
Pair: TypeAlias = tuple[tuple[str, str], tuple[str, str]]


def ddl_statements(segment: Segment) -> list[DdlStatement]:
    """Raises StreamCorrupt."""
    form = form_of(segment)
    statements: list[DdlStatement] = []
    for placed in pieces_of(segment):
        if not placed.piece.schema:
            continue
        file = schema_file(placed.data, f"{segment.file}/{placed.piece.path}")
        if placed.piece.found:
            said = EventSaid(atomic=True, with_rows=not form.all_rows)
            statements.append(_statement(segment, placed, segment.prev_commit_ts + 1, file.created, file, said))
        elif file.action == RECOVER_TABLE:
            said = EventSaid(atomic=True, with_rows=True)
            statements.append(_statement(segment, placed, file.version, file.created, file, said))
        elif file.query and file.action not in _QUIET:
            said = EventSaid(atomic=True, of=(file.database, file.table), columns=file.said, of_made=True)
            # TiCDC writes it anew, and not every version says whether it was WITHOUT VALIDATION.
            sql = f"{file.query} WITHOUT VALIDATION" if file.action == EXCHANGE_PARTITION else file.query
            statements.append(_statement(segment, placed, file.version, sql, file, said))
    return list(_merged(sorted(statements, key=lambda statement: statement.commit_ts)))


def _statement(
    segment: Segment, placed: Placed, commit_ts: int, sql: str, file: SchemaFile, said: EventSaid
) -> DdlStatement:
    return DdlStatement(
        sql=_legible(sql, file),
        database=file.database,
        sql_mode=0,
        commit_ts=commit_ts,
        file=segment.file,
        pos=segment.start_pos + placed.at + len(placed.data),
        timestamp_us=(commit_ts >> 18) * 1000,
        charset="utf8mb4",
        server_version=TIDB,
        said=said,
    )


def _legible(sql: str, file: SchemaFile) -> str:
    """The statement; if it can't be read, another unreadable one that names the file's table."""
    try:
        read(sql, database=file.database, sql_mode=0, server=ServerVersion.of(TIDB))
    except DdlNotRead as error:
        if not error.tables and file.table:
            return f"CREATE TABLE {quoted(file.database)}.{quoted(file.table)} {sql}"
    return sql


def _merged(statements: list[DdlStatement]) -> Iterator[DdlStatement]:
    """Put a RENAME TABLE of several tables together again: it comes as a file for each, with one commit_ts."""
    for _, same in groupby(statements, key=lambda statement: statement.commit_ts):
        group = list(same)
        renames = [statement for statement in group if statement.sql.lstrip()[:6].upper() == "RENAME"]
        if len(renames) < 2:
            yield from group
            continue
        yield from (statement for statement in group if statement not in renames)
        yield from _renamed(renames)


def _renamed(renames: list[DdlStatement]) -> list[DdlStatement]:
    """Renames in order: one into a name goes after the one that frees it. The order of renames in a
    circle isn't known: each of their tables gets a statement that can't be read.
    """
    server = ServerVersion.of(TIDB)
    pairs: list[Pair] = []
    for rename in renames:
        parsed = read(rename.sql, database=rename.database, sql_mode=0, server=server)
        assert isinstance(parsed, RenameTables), "its text begins with RENAME"
        pairs += parsed.pairs
    ordered: list[Pair] = []
    while pairs:
        left = {old for old, _ in pairs}
        free = [pair for pair in pairs if pair[1] not in left]
        if not free:
            break
        ordered += free
        pairs = [pair for pair in pairs if pair not in free]
    sql = "RENAME TABLE " + ", ".join(f"{_whole(old)} TO {_whole(new)}" for old, new in [*ordered, *pairs])
    last = max(renames, key=lambda statement: statement.pos)
    if not pairs:
        return [replace(last, sql=sql)]
    names = dict.fromkeys(name for pair in [*ordered, *pairs] for name in pair)
    return [replace(last, sql=f"CREATE TABLE {_whole(name)} {sql}") for name in names]


def _whole(name: tuple[str, str]) -> str:
    return f"{quoted(name[0])}.{quoted(name[1])}"


def tables_named(file: SchemaFile) -> Collection[tuple[str, str]] | None:
    """The tables that a schema file's statement may change; None when nobody can say."""
    of_file = {(file.database, file.table)} if file.table else set()
    if not file.query or file.action in _QUIET:
        return of_file
    server, sql = ServerVersion.of(TIDB), _legible(file.query, file)
    try:
        parsed = read(sql, database=file.database, sql_mode=0, server=server)
        if unplaced(sql, 0, server):
            return None
    except DdlNotRead:
        return of_file or None
    if isinstance(parsed, DropDatabase):
        return None
    return {name for name in {*touched_tables(parsed), *of_file} if name[1]}
