"""The source's side: its tables, their columns and keys, and their rows by its own SELECT.

In:  a connection to the source.
Out: SourceTable values; prints of rows (key and hash, made by the server's own SQL) in chunks of
     the key; rows by key; up to where in its log everything is visible to a read.

It writes nothing at the source, and no transaction lasts longer than a statement, or a round of
settling. A TiDB has a side of its own (tidb_side.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa
import pymysql
from pymysql.constants import ER

from tidegate.conditions.matching import check_literals
from tidegate.conditions.model import leaves
from tidegate.config import OWN_DATABASES, KeptColumns
from tidegate.errors import SourceRefused, SourceUnavailable, VerifyError
from tidegate.lake.bronze.captured_places import Visible
from tidegate.limits import VERIFY_LOCK_SECONDS, VERIFY_STATEMENT_ROWS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.demands.paste import account_of
from tidegate.mysql.facts.server_facts import SERVER_IDS, server_of
from tidegate.mysql.facts.visible import visible_place
from tidegate.mysql.sql_text.catalog import BASE_TABLES, NAMES, names_of, names_there, rows_of
from tidegate.mysql.sql_text.condition import ConditionSql
from tidegate.mysql.sql_text.sql import above, key_order, quote_name, upto
from tidegate.segments.segment import Server
from tidegate.verify.columns.cells import cell
from tidegate.verify.columns.forms import FormKind, form
from tidegate.verify.settle import Key, Row
from tidegate.verify.source_table import Prints, SourceTable

_POSITION: Final = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
_KEY_SQL: Final = """
    SELECT s.index_name, s.column_name, s.sub_part, c.is_nullable
    FROM information_schema.statistics s LEFT JOIN information_schema.columns c
      ON c.table_schema = s.table_schema AND c.table_name = s.table_name AND c.column_name = s.column_name
    WHERE s.table_schema = %s AND s.table_name = %s AND s.non_unique = 0 ORDER BY s.index_name, s.seq_in_index
"""
_COLUMNS_SQL: Final = (
    "SELECT column_name, data_type, column_type, character_set_name, column_comment FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)
# A chunk's prints are one value, which must fit max_allowed_packet: the server cuts it off there.
SESSION: Final = "SET SESSION sql_mode = '', group_concat_max_len = 1073741824"
_DATES: Final = {"date": pa.date32(), "datetime": pa.timestamp("us"), "timestamp": pa.timestamp("us")}
_HASH_ROWS: Final = 10_000  # of a table without a key, at a time
_BUSY: Final = frozenset({ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK})


class SourceSide:
    """One source during its verification: UTC, utf8mb4, a sql_mode without influence on SELECT.

    reads_at_cuts: its reads see what was committed at or below the cut of the last `see`, and
    nothing else.
    """

    reads_at_cuts: ClassVar[bool] = False

    def __init__(self, info: ConnectionInfo, kept: Callable[[str, str], KeptColumns]) -> None:
        """kept: the columns that silver has of a physical table, by its database and name."""
        self.info = info
        self._kept = kept
        self._session = SESSION
        self._connection = connect(info, read_timeout=600)
        try:
            self._begin(str(self.ask("SELECT VERSION()")[0][0]).lower())
            self.ask(self._session)
        except BaseException:
            self._connection.close()
            raise

    def _begin(self, version: str) -> None:
        """Raises VerifyError for a server of another kind."""
        if "tidb" in version:
            raise VerifyError(
                "this server is a TiDB: its log has no positions for a comparison with a cut",
                where=self.info.where,
                remedy="a source of `flavour: tidb` is compared at a cut's timestamp: docs/tidb.md",
            )
        self.mariadb = "mariadb" in version
        gtids = not self.mariadb and _text(self.ask("SELECT @@global.gtid_mode")[0][0]) == "ON"
        self._places = self.mariadb or gtids

    def close(self) -> None:
        self._connection.close()

    def ask(self, sql: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a statement. Raises SourceRefused or SourceUnavailable."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, values)
                return list(cursor.fetchall())
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error

    def server(self) -> Server:
        variables = {str(name).lower(): value for name, value in self.ask(SERVER_IDS)}
        return server_of(variables)

    def see(self, cut_ts: int) -> None:
        """A new cut for the comparison: nothing to a server whose reads see the present."""

    # --- places in its log ----------------------------------------------------------------------------

    def position(self) -> tuple[str, int]:
        """(file, offset) of the end of its binlog, by whichever statement this server has."""
        try:
            with self._connection.cursor() as cursor:
                for sql in _POSITION if not self.mariadb else _POSITION[::-1]:
                    try:
                        cursor.execute(sql)
                    except pymysql.err.ProgrammingError:
                        continue
                    row = cursor.fetchone()
                    return (str(row[0]), int(row[1])) if row else ("", 0)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error
        return "", 0

    def look(self) -> Visible:
        """Begin a round of reads by key; `looked` ends it.

        On MariaDB the reads are of one view.
        """
        try:
            with self._connection.cursor() as cursor:
                place = visible_place(cursor, mariadb=self.mariadb, gtids=self._places)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error
        if not self._places:
            self.ask("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")  # so that a locking read locks no gaps
            self.ask(f"SET SESSION innodb_lock_wait_timeout = {VERIFY_LOCK_SECONDS}")
        return place or Visible("", 0)

    def looked(self) -> None:
        """The round's reads have ended."""
        if self.mariadb:
            self.ask("COMMIT")

    # --- tables ---------------------------------------------------------------------------------------

    def tables(self, keeps: Callable[[str, str], bool]) -> list[tuple[str, str]]:
        """(database, table) of every table that is kept."""
        names = [name for name in names_there(self.ask) if name[0].lower() not in OWN_DATABASES and keeps(*name)]
        return sorted(names_of(rows_of(self.ask, NAMES, names, where=BASE_TABLES)))

    def refusal(self, database: str, table: str, *, whole: bool = False) -> str:
        """Why our account can't read a table, with the missing grant; "" if it can, or the table is gone.

        whole: all of its columns. The server hides unreadable ones.
        """
        place = f"{quote_name(database)}.{quote_name(table)}"
        try:
            self.ask(f"SELECT {'*' if whole else 1} FROM {place} LIMIT 0")
        except SourceRefused:
            account = account_of(str(self.ask("SELECT CURRENT_USER()")[0][0]))
            part = "all of its columns" if whole else "it"
            return (
                f"our account can't read {part} at {self.info.where}; run there: GRANT SELECT ON {place} TO {account}"
            )
        except SourceUnavailable as error:
            if not isinstance(error.__cause__, pymysql.err.ProgrammingError):  # not: no such table
                raise
        return ""

    def describe(self, database: str, table: str) -> SourceTable:
        """Its columns, each with its way of comparing, and the key that names a row to people."""
        columns = self.ask(_COLUMNS_SQL, self._shown(database, table))
        described = [
            (str(name), _text(kind), _text(declared), self._charset(_text(charset or "")))
            for name, kind, declared, charset, _ in columns
        ]
        kept = self._kept(database, table)
        own = [kept.names.get(name.lower(), "") for name, *_ in described]
        cells = tuple(cell(*column[:3], silver) for column, silver in zip(described, own, strict=True))
        forms = tuple(form(*column, silver) for column, silver in zip(described, own, strict=True))
        index, key = self._key(database, table, [named_cell.name for named_cell in cells])
        where = unasked = ""
        if kept:
            unasked = _unasked(kept, described)
            where = "" if unasked else _where(kept, described)
            comments = (_text(comment or "") for *_, comment in columns)
            stay = [
                n
                for n, (own, comment) in enumerate(zip(cells, comments, strict=True))
                if kept.has_plain(own.name, comment, of_key=n in key)
            ]
            cells, forms = tuple(map(cells.__getitem__, stay)), tuple(map(forms.__getitem__, stay))
            key = tuple(map(stay.index, key))
        return SourceTable(database, table, cells, forms, key, index, where, unasked)

    def _key(self, database: str, table: str, names: list[str]) -> tuple[str, tuple[int, ...]]:
        """PRIMARY, else the first unique index without NULLs and prefixes; its name, too."""
        indexes: dict[str, list[tuple[Any, ...]]] = {}
        for index, *part in self.ask(_KEY_SQL, self._shown(database, table)):
            indexes.setdefault(str(index), []).append(tuple(part))
        for name, parts in sorted(indexes.items(), key=lambda item: item[0] != "PRIMARY"):
            if all(column is not None and prefix is None and nullable == "NO" for column, prefix, nullable in parts):
                return name, tuple(names.index(str(column)) for column, _, _ in parts)
        return "", ()

    def _shown(self, database: str, table: str) -> tuple[str, str]:
        """A table's names as information_schema has them."""
        return database, table

    def _charset(self, declared: str) -> str:
        """The charset of a column's values in literals, by what information_schema has; "" where there is none."""
        return declared

    def count(self, table: SourceTable) -> int:
        """How many rows it has now."""
        return int(self.ask(f"SELECT COUNT(*) FROM {table.place} WHERE {table.where or 'true'}")[0][0])

    # --- reading --------------------------------------------------------------------------------------

    def prints(self, table: SourceTable, chunk_rows: int) -> Iterator[Prints]:
        """The prints of all rows, a chunk of the key after the other; each row that stays is in one
        of them.
        """
        if not table.key:
            yield from self._prints_at_once(table)
            return
        names = tuple(column.name for column in table.key_forms)
        bounds = ", ".join(column.bound for column in table.key_forms)
        source = f"{table.place} FORCE INDEX ({quote_name(table.index)})"
        numbers = [f"IFNULL({column.source}, '')" for column in table.numbers]
        line = ", ".join([*(f"IFNULL({key}, '')" for key in table.source_keys), table.source_hash, *numbers])
        select = f"SELECT COUNT(*), GROUP_CONCAT(CONCAT(CONCAT_WS(',', {line}), '\n') SEPARATOR '') FROM {source}"
        after: tuple[str, ...] | None = None
        while True:
            here = [above(names, after)] if after is not None else []
            ends = self.ask(
                f"SELECT {bounds} FROM {source} WHERE {_all(here)} ORDER BY {key_order(names)}"
                f" LIMIT 1 OFFSET {chunk_rows - 1}"
            )
            end = tuple(
                column.bound_literal(_text(value))
                for row in ends
                for column, value in zip(table.key_forms, row, strict=True)
            )
            within = [*here, upto(names, end)] if ends else here
            # A chunk is so many rows of the table, however few of them silver has: no statement looks for more.
            wanted = [*within, table.where] if table.where else within
            rows, text = self.ask(f"{select} WHERE {_all(wanted)}")[0]
            lines = _bytes(text or "")
            if not lines.endswith(b"\n" * bool(rows)) or lines.count(b"\n") != rows:
                if chunk_rows == 1:
                    raise VerifyError(
                        "a key is longer than max_allowed_packet",
                        where=f"{self.info.where} {table.name}",
                        remedy="raise max_allowed_packet at the source",
                    )
                chunk_rows = max(1, chunk_rows // 4)
                continue
            yield Prints(after, end if ends else None, int(rows), lines)
            if not ends:
                return
            after = end

    def _prints_at_once(self, table: SourceTable) -> Iterator[Prints]:
        """The prints of a table without a key. Its rows have no order, so one statement reads them
        all, and streams them.
        """
        numbers = [f"IFNULL({column.source}, '')" for column in table.numbers]
        line = ", ".join([table.source_hash, *numbers])
        lines: list[bytes] = []
        for (text,) in self._stream(f"SELECT CONCAT_WS(',', {line}) FROM {table.place} WHERE {table.where or 'true'}"):
            lines.append(_bytes(text))
            if len(lines) == _HASH_ROWS:
                yield Prints(None, None, len(lines), b"\n".join([*lines, b""]))
                lines.clear()
        yield Prints(None, None, len(lines), b"\n".join([*lines, b""]))

    def _stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Over a connection of its own: an unbuffered cursor blocks the one it is on."""
        connection = connect(self.info, cursorclass=pymysql.cursors.SSCursor, read_timeout=600)
        try:
            with connection.cursor() as cursor:
                cursor.execute(self._session)
                cursor.execute(sql)
                yield from cursor
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error
        finally:
            connection.close()

    def rows(self, table: SourceTable, keys: Sequence[Key]) -> tuple[dict[Key, Counter[Row]], set[Key]]:
        """Rows with these keys as they are now, between look() and looked(); keys that somebody
        holds a lock on.
        """
        counted: dict[Key, Counter[Row]] = {}
        busy: set[Key] = set()
        for at in range(0, len(keys), VERIFY_STATEMENT_ROWS):
            some = keys[at : at + VERIFY_STATEMENT_ROWS]
            try:
                rows = self.ask(self._by_keys(table, some))
            except SourceUnavailable as error:
                cause = error.__cause__
                if not isinstance(cause, pymysql.err.MySQLError) or not cause.args or cause.args[0] not in _BUSY:
                    raise
                busy |= set(some)
                continue
            for row in rows:
                key, cells = self._converted(table, row)
                counted.setdefault(key, Counter())[cells] += 1
        return counted, busy

    def _by_keys(self, table: SourceTable, keys: Sequence[Key]) -> str:
        select = ", ".join([*table.source_keys, *(column.source_sql for column in table.cells)])
        # Without GTIDs MySQL doesn't tell which part of its log is visible already. A shared lock waits for
        # transactions that are committing.
        lock = " FOR SHARE" if table.key and not self._places else ""
        condition = f"({keys_condition(table, keys)}) AND {table.where or 'true'}"
        return f"SELECT {select} FROM {table.place} WHERE {condition}{lock}"

    def _converted(self, table: SourceTable, row: tuple[Any, ...]) -> tuple[Key, Row]:
        count = len(table.source_keys)
        forms = table.key_forms
        key = tuple(
            float(value) if forms and forms[n].kind is FormKind.NUMBER else None if value is None else _text(value)
            for n, value in enumerate(row[:count])
        )
        cells = tuple(
            value if value is None or column.from_source is None else column.from_source(value)
            for column, value in zip(table.cells, row[count:], strict=True)
        )
        return key, cells


def keys_condition(table: SourceTable, keys: Sequence[Key]) -> str:
    """SQL that is true of the rows with these keys, and by a collation perhaps of others; no key
    may have a NULL.
    """
    if not table.key:
        return f"{table.source_hash} IN ({', '.join(repr(str(key[0])) for key in keys)})"
    forms = table.key_forms
    if len(forms) == 1:
        literals = (forms[0].literal(key[0]) for key in keys)
        return f"{quote_name(forms[0].name)} IN ({', '.join(literal for literal in literals if literal is not None)})"
    return " OR ".join(
        "("
        + " AND ".join(
            f"{quote_name(column.name)} = {column.literal(text)}" for column, text in zip(forms, key, strict=True)
        )
        + ")"
        for key in keys
    )


def _unasked(kept: KeptColumns, columns: Sequence[tuple[str, str, str, str]]) -> str:
    """Why a server can't be asked for the rows that a condition is true of. columns: as _where has them."""
    kinds = {name.lower(): kind.lower() for name, kind, *_ in columns}
    for leaf in leaves(kept.condition) if kept.condition is not None else ():
        if (kind := kinds.get(leaf.column.lower())) is None:
            return f"tables.rows names column {leaf.column}, which the table doesn't have"
        try:
            if kind in _DATES:  # a server refuses a comparison with what is no date
                check_literals(leaf, _DATES[kind])
        except ValueError as error:
            return f"tables.rows compares column {leaf.column} of type {kind}: {error}"
    return ""


def _where(kept: KeptColumns, columns: Sequence[tuple[str, str, str, str]]) -> str:
    """columns: name, data type, declared type and charset of each."""
    if kept.condition is None:
        return ""
    texts = {name.lower() for name, _, _, charset in columns if charset}
    dates = {name.lower() for name, kind, _, _ in columns if kind.lower() in _DATES}
    years = {name.lower() for name, kind, _, _ in columns if kind.lower() == "year"}
    return f"({ConditionSql(texts, dates, years).of(kept.condition)})"


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(f"({condition})" for condition in conditions) or "true"


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("ascii")
