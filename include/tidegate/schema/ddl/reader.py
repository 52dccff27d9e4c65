"""Read a DDL statement: only what columns, keys and rows depend on.

In:  a statement's text, the session's default database and sql_mode, the server that ran it.
Out: a Statement (tree.py). A statement that changes no table's columns and no rows is Ignored, with its kind.

The server has accepted the statement, so its grammar isn't checked. Parts that matter are read, and the rest is skipped
token by token. An unreadable statement is a DdlNotRead, with the tables it names as far as they are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.errors import DDLError
from tidegate.remedy import REFILL, REPORT, Remedy
from tidegate.schema.ddl.alter import read_actions, read_comment, read_storage
from tidegate.schema.ddl.columns import read_column, read_constraint, read_parts, starts_constraint
from tidegate.schema.ddl.partitions import read_partitioning
from tidegate.schema.ddl.query import query_in_parentheses, query_starts
from tidegate.schema.ddl.tokens import Cursor
from tidegate.schema.ddl.tree import (
    Action,
    AddIndex,
    AlterTable,
    Charset,
    ColumnDefinition,
    CreateLike,
    CreateSequence,
    CreateTable,
    DefineDatabase,
    DropDatabase,
    DropIndex,
    DropTables,
    Ignored,
    IndexDefinition,
    RenameTables,
    RenameTo,
    Statement,
    TableName,
    Truncate,
)
from tidegate.schema.ddl.types import read_charset, starts_charset
from tidegate.schema.ddl.views import read_create_view, read_drop_views
from tidegate.schema.model.columns import IndexKind
from tidegate.schema.model.partitions import ExchangePartition, Partitioning, PartitionToTable, TableToPartition
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.unlogged import EngineOptions

# Statements that affect neither columns nor rows of a table in the binlog.
_OTHER_VERBS: Final = frozenset(
    {
        "ANALYZE", "BINLOG", "CACHE", "CALL", "CHANGE", "CHECK", "CHECKSUM", "DO", "EXECUTE", "FLUSH", "GRANT",
        "HANDLER", "HELP", "INSTALL", "KILL", "LOCK", "OPTIMIZE", "PURGE", "REPAIR", "RESET", "REVOKE", "SET",
        "SHOW", "SHUTDOWN", "START", "STOP", "UNINSTALL", "UNLOCK", "USE",
    }
)  # fmt: skip
# Objects of CREATE, ALTER, DROP and RENAME beside tables, indexes and databases.
_OTHER_OBJECTS: Final = frozenset(
    {
        "EVENT", "FUNCTION", "INSTANCE", "LIBRARY", "LOGFILE", "PACKAGE", "PROCEDURE", "RESOURCE", "ROLE",
        "SEQUENCE", "SERVER", "SPATIAL", "TABLESPACE", "TRIGGER", "UNDO", "USER", "VIEW", "CATALOG", "PREPARE",
    }
)  # fmt: skip
_ROW_VERBS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "MERGE", "IMPORT"})


class DdlNotRead(DDLError):  # noqa: N818  like its siblings in errors.py, it says what happened
    """A statement that couldn't be understood. tables: its `database.table` names; () if none is known."""

    def __init__(self, what: str, *, where: str = "", remedy: str | Remedy = "", tables: tuple[str, ...] = ()) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.tables = tables

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.what, self.where, self.remedy, self.tables))


def _rebuild(what: str, where: str, remedy: str | Remedy, tables: tuple[str, ...]) -> DdlNotRead:
    return DdlNotRead(what, where=where, remedy=remedy, tables=tables)


def read(sql: str, *, database: str = "", sql_mode: int = 0, server: ServerVersion) -> Statement:
    """The statement as data. Raises DdlNotRead."""
    touched: list[TableName] = []
    try:
        cursor = Cursor(sql, sql_mode, server)
        return _statement(cursor, database, touched)
    except DDLError as error:
        names = tuple(f"{d}.{t}" for d, t in touched)
        raise DdlNotRead(f"can't read DDL {_short(sql)}: {error.what}", remedy=error.remedy, tables=names) from error


def tables_named(
    sql: str, database: str, *, sql_mode: int = 0, server_version: str = "", folds_names: bool = False
) -> list[str]:
    """Names `database.table` a statement affects, each once, in order; [] if it affects no table.

    DROP DATABASE names none: only schema_history knows its tables. Raises DdlNotRead.
    """
    server = replace(ServerVersion.of(server_version), folds_names=folds_names)
    statement = read(sql, database=database, sql_mode=sql_mode, server=server)
    return list(dict.fromkeys(f"{d}.{t}" for d, t in touched_tables(statement)))


def touched_tables(statement: Statement) -> tuple[TableName, ...]:
    """The tables whose columns or rows a statement may change, without temporary tables."""
    match statement:
        case CreateTable(temporary=True) | CreateLike(temporary=True) | DropTables(temporary=True):
            return ()
        case AlterTable(table, actions):
            return (table, *(name for action in actions if (name := _other_table(action))))
        case CreateTable() | CreateLike() | CreateSequence() | Truncate():
            return (statement.table,)
        case DropTables(tables):
            return tables
        case RenameTables(pairs):
            return tuple(name for pair in pairs for name in pair)
        case _:
            return ()


def _other_table(action: Action) -> TableName | None:
    match action:
        case RenameTo(to):
            return to
        case ExchangePartition() | PartitionToTable() | TableToPartition():
            return action.other
        case _:
            return None


def _short(sql: str) -> str:
    text = " ".join(sql.split())
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _statement(cursor: Cursor, database: str, touched: list[TableName]) -> Statement:
    if cursor.take("SET", "STATEMENT"):  # MariaDB: SET STATEMENT x = y FOR statement
        while not (cursor.ended or cursor.take("FOR")):
            cursor.skip_one()
    verb = cursor.next().upper
    if verb == "CREATE":
        return _create(cursor, database, touched)
    if verb == "ALTER":
        return _alter(cursor, database, touched)
    if verb == "DROP":
        return _drop(cursor, database, touched)
    if verb == "TRUNCATE":
        cursor.take("TABLE")
        return Truncate(_table(cursor, database, touched))
    if verb == "RENAME":
        return _rename(cursor, database, touched)
    if verb == "DELETE" and cursor.take("FROM"):  # after a restart the server empties MEMORY tables like this
        table = _table(cursor, database, touched)
        if cursor.ended:
            return Truncate(table)
    if verb in _ROW_VERBS:
        _name_rows_table(cursor, verb, database, touched)
        raise DDLError(
            f"{verb} was logged as a statement, its rows are not in the log",
            remedy=REFILL.after("set binlog_format=ROW for every session"),
        )
    if verb in _OTHER_VERBS or not verb:
        return Ignored(verb or "empty")
    raise DDLError(f"unknown statement {verb}", remedy=REPORT)


def _table(cursor: Cursor, database: str, touched: list[TableName]) -> TableName:
    table = cursor.table(database)
    touched.append(table)
    return table


def _name_rows_table(cursor: Cursor, verb: str, database: str, touched: list[TableName]) -> None:
    """Name the table of a plain INSERT, REPLACE or UPDATE. Other statements stay unnamed, and hold the whole source."""
    cursor.take_any("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY")
    cursor.take("IGNORE")
    cursor.take("INTO")
    if verb in ("INSERT", "REPLACE", "UPDATE") and not touched:
        _table(cursor, database, touched)
        if verb == "UPDATE" and cursor.now.upper != "SET":
            touched.clear()


def _create(cursor: Cursor, database: str, touched: list[TableName]) -> Statement:
    or_replace = cursor.take("OR", "REPLACE")
    temporary = False
    unique = IndexKind.PLAIN
    while not cursor.ended:
        word = cursor.now.upper
        if word == "TABLE":
            cursor.next()
            return _create_table(cursor, database, touched, or_replace=or_replace, temporary=temporary)
        if word in ("DATABASE", "SCHEMA"):
            cursor.next()
            return _database(cursor, "", create=True, or_replace=or_replace)
        if word in ("INDEX", "KEY"):
            cursor.next()
            return _create_index(cursor, database, touched, unique)
        if word == "SPATIAL" and cursor.ahead().upper == "INDEX":
            cursor.next()
            continue
        if word == "SEQUENCE" and not temporary:
            cursor.next()
            if_not_exists = cursor.take("IF", "NOT", "EXISTS")
            return CreateSequence(_table(cursor, database, touched), if_not_exists, or_replace)
        if word == "VIEW" and cursor.next():
            return read_create_view(cursor, database) or Ignored("CREATE VIEW")
        if word in _OTHER_OBJECTS:
            return Ignored(f"CREATE {word}")
        temporary = temporary or word == "TEMPORARY"
        unique = IndexKind.UNIQUE if word == "UNIQUE" else unique
        cursor.skip_one()  # DEFINER = user@host, ALGORITHM = x, SQL SECURITY x, AGGREGATE, FULLTEXT, ONLINE
    raise DDLError("CREATE of an unknown object", remedy=REPORT)


def _create_index(cursor: Cursor, database: str, touched: list[TableName], kind: IndexKind) -> AlterTable:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    if cursor.take_any("USING", "TYPE"):
        cursor.next()
    if not cursor.take("ON"):
        raise cursor.lost("ON")
    table = _table(cursor, database, touched)
    cursor.skip_wait()
    columns, prefixes, period = read_parts(cursor)
    return AlterTable(table, (AddIndex(IndexDefinition(kind, name, columns, prefixes, period), if_not_exists),))


def _create_table(
    cursor: Cursor, database: str, touched: list[TableName], *, or_replace: bool, temporary: bool
) -> CreateTable | CreateLike | DropTables:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    table = _table(cursor, database, touched)
    like = cursor.take("LIKE")
    if not like and cursor.is_mark("(") and cursor.ahead().upper == "LIKE":
        cursor.at += 2
        like = True
    if like:
        return CreateLike(table, cursor.table(database), if_not_exists, or_replace, temporary)
    columns: list[ColumnDefinition] = []
    indexes: list[IndexDefinition] = []
    period: tuple[str, ...] = ()
    if cursor.is_mark("(") and not query_in_parentheses(cursor):
        cursor.next()
        period = _table_elements(cursor, columns, indexes)
    options = _table_options(cursor, database)
    if not columns and options.query_at is None:
        if or_replace and not options.storage.engine:  # MariaDB logs a failed one: the old table is dropped by then
            return DropTables((table,), temporary)
        raise DDLError("CREATE TABLE without columns", remedy="the engine finds them: leave it out (tables.exclude)")
    return CreateTable(
        table,
        tuple(columns),
        tuple(indexes),
        options.charset,
        if_not_exists,
        or_replace,
        temporary,
        options.query_at,
        period,
        options.versioned,
        options.partitioning,
        options.storage,
        options.comment,
    )


def _table_elements(cursor: Cursor, columns: list[ColumnDefinition], indexes: list[IndexDefinition]) -> tuple[str, ...]:
    """The inside of CREATE TABLE's parentheses, with the closing one. Returns the columns of its
    periods.
    """
    period: tuple[str, ...] = ()
    while True:
        if starts_constraint(cursor):
            constraint = read_constraint(cursor)
            if isinstance(constraint, tuple):
                period += constraint
            else:
                indexes.append(constraint)
        elif not (cursor.is_mark(",") or cursor.is_mark(")")):
            columns.append(read_column(cursor))
        if cursor.take_mark(")"):
            return period
        cursor.expect_mark(",")


@dataclass(frozen=True, slots=True)
class _Options:
    """query_at: the token at which a query follows; the cursor is there."""

    charset: Charset
    query_at: int | None = None
    versioned: bool = False
    partitioning: Partitioning | None = None
    storage: EngineOptions = field(default_factory=EngineOptions)
    comment: str = ""


def _table_options(cursor: Cursor, database: str) -> _Options:
    """Options after the parentheses. START TRANSACTION: MySQL 8 logs the rows of CREATE ... SELECT itself."""
    charset, versioned, comment, storage = Charset(), False, "", EngineOptions()
    partitioning: Partitioning | None = None
    while not cursor.ended:
        word = cursor.now.upper
        if starts_charset(cursor):
            charset = read_charset(cursor, charset)
        elif cursor.take("WITH", "SYSTEM", "VERSIONING"):
            versioned = True
        elif cursor.take("PARTITION", "BY"):
            partitioning = read_partitioning(cursor)
        elif query_starts(cursor):
            return _Options(charset, cursor.at, versioned, partitioning, storage, comment)
        elif added := read_storage(cursor, database):
            storage = EngineOptions(
                added.engine or storage.engine, storage.union if added.union is None else added.union
            )
        elif (said := read_comment(cursor)) is not None:
            comment = said.text
        elif word in ("CONNECTION", "PASSWORD"):
            cursor.next()
            cursor.take_mark("=")
            cursor.next()
        else:
            cursor.skip_one()
    return _Options(charset, None, versioned, partitioning, storage, comment)


def _database(cursor: Cursor, database: str, *, create: bool, or_replace: bool = False) -> DefineDatabase:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    words = ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "READ", "ENCRYPTION", "COMMENT", "UPGRADE")
    if create or cursor.now.upper not in words:
        database = cursor.folded_name()
    charset = Charset()
    while not cursor.ended:
        if starts_charset(cursor):
            charset = read_charset(cursor, charset)
        else:
            cursor.skip_one()
    return DefineDatabase(database, charset, create, if_not_exists, or_replace)


def _alter(cursor: Cursor, database: str, touched: list[TableName]) -> Statement:
    ignore = False
    while cursor.now.upper in ("ONLINE", "OFFLINE", "IGNORE"):
        ignore = cursor.next().upper == "IGNORE" or ignore
    if cursor.take("TABLE"):
        if_exists = cursor.take("IF", "EXISTS")
        table = _table(cursor, database, touched)
        cursor.skip_wait()
        actions = read_actions(cursor, database, touched, ignore=ignore)
        return AlterTable(table, actions, if_exists)
    if cursor.take_any("DATABASE", "SCHEMA"):
        return _database(cursor, database, create=False)
    while not cursor.ended:
        word = cursor.next().upper
        if word in _OTHER_OBJECTS:
            return Ignored(f"ALTER {word}")
    raise DDLError("ALTER of an unknown object", remedy=REPORT)


def _drop(cursor: Cursor, database: str, touched: list[TableName]) -> Statement:
    temporary = cursor.take("TEMPORARY")
    if cursor.take_any("TABLE", "TABLES", "SEQUENCE"):
        cursor.take("IF", "EXISTS")
        tables = [_table(cursor, database, touched)]
        while cursor.take_mark(","):
            tables.append(_table(cursor, database, touched))
        return DropTables(tuple(tables), temporary)
    if cursor.take_any("DATABASE", "SCHEMA"):
        cursor.take("IF", "EXISTS")
        return DropDatabase(cursor.folded_name())
    if cursor.take("INDEX"):
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.name()
        if not cursor.take("ON"):
            raise cursor.lost("ON")
        return AlterTable(_table(cursor, database, touched), (DropIndex(name, if_exists),))
    if cursor.take("VIEW"):
        return read_drop_views(cursor, database) or Ignored("DROP VIEW")
    word = cursor.now.upper
    if word in _OTHER_OBJECTS:
        return Ignored(f"DROP {word}")
    raise DDLError("DROP of an unknown object", remedy=REPORT)


def _rename(cursor: Cursor, database: str, touched: list[TableName]) -> Statement:
    if not cursor.take_any("TABLE", "TABLES"):
        return Ignored(f"RENAME {cursor.now.upper}")
    if_exists = cursor.take("IF", "EXISTS")
    pairs = []
    while True:
        old = _table(cursor, database, touched)
        cursor.skip_wait()
        if not cursor.take("TO"):
            raise cursor.lost("TO")
        pairs.append((old, _table(cursor, database, touched)))
        if not cursor.take_mark(","):
            return RenameTables(tuple(pairs), if_exists)
