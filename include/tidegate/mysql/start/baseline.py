"""The schema of a source at the position where capture starts, without a lock.

In:  a connection, the position where the stream starts, the tables the pipeline keeps.
Out: one TableVersion per kept table (kind "baseline"), and rows of defaults per database and for
     the server. They are written to control/schema_history, with the place where capture starts,
     and the names of views.

Why it is the schema at this position: it is read after the position, and then the binlog from the
position on is searched. If no DDL about a kept table is there, nothing changed in between; else the
start is tried again. A table with a row is needs_snapshot, since events before the stream aren't in
the log. A row that came after the position counts, too: a snapshot is then right, only not
necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pymysql
from pymysql.constants import ER

from tidegate.config import OWN_DATABASES, Pipeline, Start, Tables
from tidegate.errors import SourceUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.limits import BASELINE_ATTEMPTS_MAX, SCHEMA_NAMED_TABLES_MAX
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.facts.server_facts import SourceFacts, check_is
from tidegate.mysql.sql_text.catalog import Name, asked_by, names_there
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.mysql.start.ddl_since import ddl_since
from tidegate.mysql.start.information_schema import InformationSchema
from tidegate.mysql.start.recorded import Began, earlier_versions, record_baseline, without_columns
from tidegate.mysql.start.shown_tables import ShownTable, server_settings, shown_tables
from tidegate.mysql.start.uncommitted import may_hide_rows, written_to
from tidegate.mysql.start.views_there import views_there
from tidegate.position import Position
from tidegate.schema.ddl.expressions import spelled
from tidegate.schema.model.columns import Column, Generated, Index, IndexKind, TableVersion, VersionStatus
from tidegate.schema.model.partitions import Partitioning
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.types import COMPRESSED, default_as_known, type_as_known
from tidegate.schema.model.unlogged import SEQUENCE
from tidegate.schema.replay.history import BASELINE, DEFAULTS
from tidegate.schema.replay.indexes import key_of

_BASE: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
# As MariaDB before 10.11 shows COMPRESSED.
_OLD_COMPRESSED: Final = " /*!100301 COMPRESSED*/"
# One statement asks this many tables whether they hold a row.
_TABLES_PER_QUERY: Final = 200
_UNSHOWN: Final = Partitioning(unknown="SHOW CREATE TABLE doesn't show its partitions")
_GONE: Final = {ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR}

Keeps = Callable[[str, str], bool]
Connection: TypeAlias = "pymysql.connections.Connection[Any]"


def baseline_writer(
    pipeline: Pipeline, source: str, info: ConnectionInfo, lake: LakeFiles
) -> Callable[[SourceFacts, Position], None]:
    """The call of CaptureRun on the first start of a source: read the baseline at its position, and record it.

    start: earliest begins with an empty server: only the server's defaults are recorded.
    """

    def record(facts: SourceFacts, position: Position) -> None:
        began = Began.of(facts, pipeline.server(source))
        earlier = earlier_versions(lake, source)
        first_id = 1 + max((column.id for version in earlier for column in version.columns), default=0)
        keeps = pipeline.tables.keeps
        with connect(info) as connection:
            try:
                with connection.cursor() as cursor:
                    check_is(facts.server, cursor, info)
                if pipeline.server(source).start is Start.EARLIEST:
                    versions = read_defaults(connection, source, position, databases=())
                else:
                    with connection.cursor() as cursor:
                        hides = may_hide_rows(cursor, facts)
                    versions = read_baseline(connection, source, keeps, position, first_id=first_id, hides=hides)
                    versions = [_with_patterns(version, pipeline.tables) for version in versions]
                    versions += views_there(connection, source, keeps, position)
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, info) from error
        record_baseline(lake, source, versions, began, earlier)

    return record


def _with_patterns(version: TableVersion, wanted: Tables) -> TableVersion:
    """The row of the server's settings, with the scope of the baseline: anything not found there wasn't there."""
    if version.settings is None:
        return version
    return replace(version, settings=replace(version.settings, kept=wanted.include, left_out=wanted.exclude))


def read_baseline(
    connection: Connection,
    source: str,
    keeps: Keeps,
    position: Position,
    *,
    first_id: int = 1,
    hides: bool = False,
) -> list[TableVersion]:
    """The kept tables at position. commit_ts is 0, so they are valid for the whole stream.

    hides: something before the position may not be committed. Then rows are looked for behind
    locks, and columns are read again: a SELECT behind an ALTER doesn't show that it waited. Raises
    SourceUnavailable if a DDL has run since: start again from a new position.
    """
    for _ in range(BASELINE_ATTEMPTS_MAX):
        try:
            read = read_schema(connection, source, keeps, position, first_id=first_id)
            versions = _with_status(connection, read, hides=hides)
            if not hides or read == read_schema(connection, source, keeps, position, first_id=first_id):
                break
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _GONE:
                raise
    else:
        raise _changing(source, position, "tables come and go")
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        server_version = str(cursor.fetchone()[0])
    statement = ddl_since(connection, position, keeps, server_version)
    if statement:
        raise _changing(source, position, statement)
    return versions


def _changing(source: str, position: Position, what: str) -> SourceUnavailable:
    return SourceUnavailable(
        f"the schema changed while it was read ({what[:120]})",
        where=f"{source} at {position}",
        remedy="start again; it works as soon as no DDL runs at that moment",
    )


def read_schema(
    connection: Connection,
    source: str,
    keeps: Keeps,
    position: Position,
    *,
    first_id: int = 1,
    only: Collection[Name] = (),
) -> list[TableVersion]:
    """All kept tables and the defaults of databases, as information_schema has them now; status active.

    only: the kept ones, where the caller knows their names; (): any. For few tables the server then opens no others.
    """
    few = 0 < len(only) <= SCHEMA_NAMED_TABLES_MAX
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        mariadb = "mariadb" in str(cursor.fetchone()[0]).lower()
        ask = asked_by(cursor)
        seen = names_there(ask, only if few else None)
        kept = {name for name in seen if name[0].lower() not in OWN_DATABASES and keeps(*name)}
        databases = tuple(sorted({database for database, _ in kept}))
        catalog = InformationSchema(ask)
        listed = catalog.listed_tables(kept)
        names = sorted(listed)
        columns, indexes = catalog.columns_of(names), catalog.indexes_of(names)
        tables = [name for name in names if listed[name].engine != SEQUENCE]
        shown = shown_tables(cursor, tables, server_settings(cursor))
    merged = {under: name for name, said in shown.items() for under in said.union}
    versions, next_id = read_defaults(connection, source, position, databases if only else None), first_id
    for name in names:
        made = tuple(_column(cell, next_id + n, mariadb=mariadb) for n, cell in enumerate(columns.get(name, ())))
        next_id += len(made)
        collation = listed[name].collation
        said = shown.get(name, ShownTable(None))
        by_name = {column.name.lower(): column.id for column in made}
        table_indexes = tuple(_index(index, parts, by_name) for index, parts in sorted(indexes.get(name, {}).items()))
        versions.append(
            TableVersion(
                source=source,
                database=name[0],
                table=name[1],
                version=1,
                commit_ts=0,
                file=position.file,
                pos=position.offset,
                kind=BASELINE,
                ddl="",
                columns=made,
                key=key_of(made, table_indexes),
                charset=_charset_of(collation),
                collation=collation,
                indexes=table_indexes,
                partitioning=(said.partitioning or _UNSHOWN) if listed[name].partitioned else None,
                engine=listed[name].engine,
                foreign_keys=said.foreign_keys,
                merged_by=merged.get(name, ()),
                comment=listed[name].comment,
            )
        )
    return versions


def read_defaults(
    connection: Connection, source: str, position: Position, databases: Collection[str] | None
) -> list[TableVersion]:
    """Rows with table "": default charset of each of these databases, and of the server (database "").

    databases: None for all: a table may come to one that has none yet.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT '', @@GLOBAL.character_set_server, @@GLOBAL.collation_server")
        rows = list(cursor.fetchall())
        settings = server_settings(cursor)
        cursor.execute(
            "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata"
        )
        others = [row for row in cursor.fetchall() if str(row[0]).lower() not in OWN_DATABASES]
        rows += [row for row in others if databases is None or row[0] in databases]
    return [
        replace(
            without_columns(source, str(database), "", position, DEFAULTS),
            charset=str(charset),
            collation=str(collation),
            settings=None if database else settings,
        )
        for database, charset, collation in rows
    ]


def _charset_of(collation: str) -> str:
    """Every collation's name starts with its character set's ("binary" is both)."""
    return collation.partition("_")[0]


def _column(cell: Mapping[str, Any], column_id: int, *, mariadb: bool) -> Column:
    extra = str(cell["extra"] or "").upper()
    expression = str(cell["generation_expression"] or "")
    if not mariadb:  # which shows it as a string without its quotes
        expression = re.sub(r"\\(.)", r"\1", expression)
    expression = spelled(expression, 0, _SHOWS)
    generated = Generated.NO
    if expression.upper() not in ("", "ROW START", "ROW END"):
        generated = Generated.VIRTUAL if "VIRTUAL" in extra else Generated.STORED
    if mariadb:
        default, is_expression = _mariadb_default(cell["column_default"])
    else:
        default, is_expression = _mysql_default(cell["column_default"], marked="DEFAULT_GENERATED" in extra)
    charset, kind = str(cell["character_set_name"] or ""), str(cell["column_type"])
    if default is not None and not is_expression:
        default = default_as_known(default, kind, charset, mariadb=mariadb)
    return Column(
        id=column_id,
        name=str(cell["column_name"]),
        type=type_as_known(kind.replace(_OLD_COMPRESSED, COMPRESSED), charset),
        nullable=str(cell["is_nullable"]).upper() == "YES",
        charset=charset,
        collation=str(cell["collation_name"] or ""),
        default=default,
        default_is_expression=is_expression,
        generated=generated,
        # of a system-versioned table's period too: decoding tells current rows from history by it
        generation_expression=expression,
        auto_increment="AUTO_INCREMENT" in extra,
        invisible="INVISIBLE" in extra,
        comment=str(cell["column_comment"] or ""),
    )


_SHOWS: Final = ServerVersion(mariadb=False, number=0)  # what a server shows needs none of its versions


def _mysql_default(text: str | None, *, marked: bool) -> tuple[str | None, bool]:
    """(default, whether it is an expression): rows logged without the column have it. Literals come as they are."""
    return text, text is not None and (marked or text.lower().startswith("current_timestamp"))


def _mariadb_default(text: str | None) -> tuple[str | None, bool]:
    """As _mysql_default; MariaDB quotes literals here, and writes NULL (sql/sql_show.cc, get_field_default_value)."""
    if text is None or text.upper() == "NULL":
        return None, False
    if len(text) > 1 and text[0] == text[-1] == "'":
        return _ESCAPED.sub(lambda escape: _UNESCAPED.get(escape[0], escape[0][-1]), text[1:-1]), False
    return text, _BARE_LITERAL.fullmatch(text) is None


_ESCAPED: Final = re.compile(r"\\.|''", re.DOTALL)
_UNESCAPED: Final = {"\\0": "\0", "\\n": "\n", "\\r": "\r"}
_BARE_LITERAL: Final = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?|0x[0-9a-f]+|[bx]'[0-9a-f]*'", re.IGNORECASE)


def _index(name: str, parts: list[tuple[Any, ...]], by_name: Mapping[str, int]) -> Index:
    kind = IndexKind.PLAIN if int(parts[0][0]) else IndexKind.PRIMARY if name == "PRIMARY" else IndexKind.UNIQUE
    ids = tuple(by_name.get(str(column or "").lower(), 0) for _, column, _ in parts)
    return Index(name, kind, ids, whole=0 not in ids and all(prefix is None for *_, prefix in parts))


def _with_status(connection: Connection, versions: list[TableVersion], *, hides: bool) -> list[TableVersion]:
    """needs_snapshot for every table with a row now; hides: an uncommitted one, too."""
    names = [(v.database, v.table) for v in versions if v.table and v.engine != SEQUENCE]
    full: set[Name] = set()
    with connection.cursor() as cursor:
        for start in range(0, len(names), _TABLES_PER_QUERY):
            some = names[start : start + _TABLES_PER_QUERY]
            asks = (f"SELECT {n}, EXISTS (SELECT 1 FROM {quote_name(*name)})" for n, name in enumerate(some))
            cursor.execute(" UNION ALL ".join(asks))
            full |= {some[int(n)] for n, holds in cursor.fetchall() if holds}
    if hides:
        innodb = {(v.database, v.table) for v in versions if v.table and not v.engine}
        full |= written_to(connection, innodb - full)
    return [replace(v, status=VersionStatus.NEEDS_SNAPSHOT) if (v.database, v.table) in full else v for v in versions]
