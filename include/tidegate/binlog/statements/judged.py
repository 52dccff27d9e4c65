"""Statements in QUERY events. DDL goes to schema_history. DML has no rows in the log, and must not
pass unnoticed.

In:  QUERY events that aren't a transaction's frame, and EXECUTE_LOAD_QUERY (LOAD DATA).
Out: for each, the rule to ignore it, or the tables it changed without rows. These are all wanted
     tables if not even a database can be named, or if the event can't be read.

If the statement's text names one changed table, it stops this table. Otherwise (a view, a
procedure, several tables at once) it stops every wanted table in the databases it could mean: the
session's, and those of qualified names. The text alone doesn't say whether a name is a view or a
table, so only a known table counts as one.

No text names the tables that triggers, functions and a parent's foreign keys change. MySQL's events
say which databases a statement affects, with all of these. MariaDB's don't, so there it may be any
table. A pipeline file can exclude this (ddl.statement_effects).

Layout of EXECUTE_LOAD_QUERY: mysql-server libs/mysql/binlog/event/statement_events.h: QUERY's
post-header, then file id 4, begin and end of the file's name 4 + 4, duplicates 1; then as QUERY.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tidegate.binlog.format.events import HEADER_BYTES, EventType
from tidegate.binlog.format.query import Query, parse_query
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.errors import DecodeError, Terminal, UnknownEvent, UnsupportedValue
from tidegate.remedy import JUDGE
from tidegate.segments.result import CommitSpan, Known

_COMMENT: Final = re.compile(r"\s+|/\*(?!!|M!).*?\*/|--[ \t][^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*M?!\d*|\(|\*/", re.DOTALL)
# Verbs that don't change rows, or change them as schema_history knows. Any other verb may change anything.
_HARMLESS: Final = re.compile(
    r"(?:ALTER|CREATE|DROP|RENAME|TRUNCATE|GRANT|REVOKE|SET|FLUSH|ANALYZE|OPTIMIZE|REPAIR|CHECK|CHECKSUM|INSTALL"
    r"|UNINSTALL|IMPORT|RESET|START|STOP|CHANGE|PURGE|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|XA|LOCK|UNLOCK|USE|KILL"
    r"|CACHE|CLONE|BINLOG|SHUTDOWN|RESTART|PREPARE|DEALLOCATE|SHOW|DESC|DESCRIBE|EXPLAIN|HELP|BACKUP)\b",
    re.IGNORECASE,
)
# MariaDB logs these with the statement inside: SET STATEMENT ... FOR UPDATE ..., ANALYZE FORMAT=JSON DELETE ...
_WRAPPED: Final = re.compile(
    r"(?:SET\s+STATEMENT\b.*?\bFOR|ANALYZE(?:\s+FORMAT\s*=\s*\w+)?)\s+"
    r"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|DO|WITH|SELECT|EXECUTE|\()",
    re.IGNORECASE | re.DOTALL,
)
_NAME: Final = r"(?:`(?:[^`]|``)+`|[0-9A-Za-z_$\x80-\U0010ffff]+)"
_QUALIFIED: Final = re.compile(rf"({_NAME})\s*\.\s*({_NAME})|({_NAME})")
_STRING: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_VALUE: Final = re.compile(r"['\"]|(?<![\w$`])\d")
_WORDS: Final = r"(?:(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|QUICK|CONCURRENT|LOCAL|IGNORE)\s+)*"
_TARGET: Final = rf"(?:(?P<database>{_NAME})\s*\.\s*)?(?P<table>{_NAME})"
# Forms that change exactly the one table that they name. Any other form may change anything.
_ONE_TABLE: Final = tuple(
    re.compile(form, re.IGNORECASE | re.DOTALL)
    for form in (
        rf"(?:INSERT|REPLACE)\s+{_WORDS}(?:INTO\s+)?{_TARGET}",
        rf"UPDATE\s+{_WORDS}{_TARGET}\s+(?:(?:AS\s+)?(?!SET\b){_NAME}\s+)?SET\b",
        rf"DELETE\s+{_WORDS}FROM\s+{_TARGET}\s*(?:$|;|WHERE\b|ORDER\b|LIMIT\b|RETURNING\b)",
        rf"LOAD\s+(?:DATA|XML)\s+{_WORDS}INFILE\s+''\s*(?:(?:IGNORE|REPLACE)\s+)?INTO\s+TABLE\s+{_TARGET}",
    )
)
_BY_TRANSACTION: Final = (
    " (a table that is system-versioned by BIGINT needs TIMESTAMP(6) instead: MariaDB logs its statements even so)"
)
_BY_EFFECTS: Final = (
    "; tables that it doesn't name may be changed by triggers, functions or foreign keys: where there are none, set"
    " ddl.statement_effects: named"
)
_LOAD_BYTES: Final = 13
_GTID_FLAGS_AT: Final = HEADER_BYTES + 8 + 4  # after sequence 8, domain 4
_STANDALONE: Final = 1
_ODD_QUOTES: Final = 0x04 | 0x100000  # sql_mode: ANSI_QUOTES, NO_BACKSLASH_ESCAPES
# The server's own tables hold nobody's data: statements on them (GRANT's old form, mysql_tzinfo) may pass.
_SERVER_DATABASES: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """event: its number. rule: why it may be ignored; "" if it changes tables. tables: those of
    them that have it in their window; none if all of them are held already.
    """

    event: int
    rule: str
    tables: tuple[Name, ...]
    error: Terminal


def is_dml(sql: str) -> bool:
    """Whether a statement may change rows without row events. Comments, also versioned ones, may be
    in front.
    """
    beginning = _beginning(sql)
    if beginning == len(sql):  # a comment, which MariaDB writes in place of a statement that a replica can't read
        return False
    return _HARMLESS.match(sql, beginning) is None or _WRAPPED.match(sql, beginning) is not None


def _beginning(sql: str) -> int:
    at = 0
    while comment := _COMMENT.match(sql, at):
        at = comment.end()
    return at


def shown(sql: str) -> str:
    """A statement's beginning, for a reason: it ends before the first value, which may be private."""
    value = _VALUE.search(sql)
    return sql[: min(value.start(), 80)] + "..." if value else sql[:80]


def query_at(index: EventIndex, event: int) -> Query:
    """The QUERY or EXECUTE_LOAD_QUERY event with this number. Raises UnknownEvent if it can't be
    read.
    """
    extra_bytes = _LOAD_BYTES if index.events[event, K.TYPE] == EventType.EXECUTE_LOAD_QUERY else 0
    try:
        return parse_query(
            index.event(event),
            index.checksum_bytes(event),
            extra_bytes,
            mariadb=index.format.is_mariadb,
            has_rows=_opens_transaction(index, event),
        )
    except DecodeError as unread:
        raise UnknownEvent(f"QUERY event: {unread.what}", where=place(index, event), remedy=unread.remedy) from None


def _opens_transaction(index: EventIndex, event: int) -> bool:
    """Whether MariaDB's GTID event directly before it begins a transaction: that of a single DDL
    has FL_STANDALONE.
    """
    if event == 0 or index.events[event - 1, K.TYPE] != EventType.MARIADB_GTID:
        return False
    return not index.event(event - 1)[_GTID_FLAGS_AT] & _STANDALONE


def place(index: EventIndex, event: int) -> str:
    """An event's source, file and position, for errors."""
    return f"{index.segment.source} at {index.segment.file}:{index.position(event)}"


def judge_statements(
    index: EventIndex,
    numbers: list[int],
    windows: Mapping[Name, CommitSpan],
    known: Known,
    unknown: Collection[Name] = (),
) -> Iterator[Judged]:
    """numbers: of events with the STATEMENT bit. unknown: names without a table in schema_history.
    DROP TABLE IF EXISTS, or a swap in one RENAME, has names no table has. A statement changes
    such a name only if its text has it.
    """
    for number in numbers:
        try:
            query = query_at(index, number)
        except UnknownEvent as unread:
            yield judge_unfollowed(index, number, windows, known, unread)
            continue
        if not is_dml(query.sql):
            yield Judged(number, "unfinished alter" if query.unfinished else "ddl", (), UnknownEvent("a DDL"))
            continue
        by_transaction = _BY_TRANSACTION if index.format.is_mariadb else ""
        error = UnsupportedValue(
            f"statement instead of rows: {shown(query.sql)!r}",
            remedy=JUDGE.after(f"set binlog_format=ROW in every session{by_transaction}{_BY_EFFECTS * known.effects}"),
        )
        commit_ts = int(index.events[number, K.COMMIT_TS])
        names = {*windows, *known.held, *known.there_at(commit_ts)}
        touched = changed_tables(query, names)
        if known.effects and touched is not None:
            touched |= _reached(query, names)
        yield judge_unfollowed(index, number, _said_or_known(query, windows, unknown), known, error, touched)


def judge_unfollowed(
    index: EventIndex,
    number: int,
    windows: Mapping[Name, CommitSpan],
    known: Known,
    error: Terminal,
    touched: Collection[Name] | None = None,
) -> Judged:
    """The tables to hold for an event that can't be followed: those of `touched` whose window has
    it. touched: None if it may be any table.
    """
    commit_ts = int(index.events[number, K.COMMIT_TS])
    said = known.judged.get((index.segment.file, index.position(number), commit_ts))
    if said is not None:
        if not said:
            return Judged(number, "judged", (), error)
        touched, error = said, type(error)(f"a person judged that it changes this table: {error.what}", remedy=JUDGE)
    if touched is None:
        touched = windows
    elif not any(name in windows or name in known.held for name in touched):
        return Judged(number, "table not asked for", (), error)
    open_now = tuple(sorted(name for name in touched if name in windows and commit_ts in windows[name]))
    waits = any(name in known.held and name not in windows for name in touched)
    return Judged(number, "" if open_now or waits else "outside the window", open_now, error)


def changed_tables(query: Query, known: Collection[Name]) -> set[Name] | None:
    """The known tables a DML statement may change; None if not even a database can be
    named.
    """
    if not query.legible and not query.charset.startswith("utf8"):
        return set(known)
    if query.sql_mode & _ODD_QUOTES:  # strings and names can't be told apart: everything may be a name
        sql = query.sql.replace('"', "`")
    else:
        sql = _STRING.sub("''", query.sql)
        target = _one_table(sql, query.database)
        if target is not None and target in known:
            return {target}
        if target is not None and target[0] in _SERVER_DATABASES:
            return set()
    databases = {query.database} | {_unquoted(match[1]) for match in _QUALIFIED.finditer(sql) if match[1]}
    databases.discard("")
    if not databases:
        return None
    # Some servers fold names, but their log has them as they were typed.
    folded = {database.casefold() for database in databases - _SERVER_DATABASES}
    return {name for name in known if name[0].casefold() in folded}


def _said_or_known(
    query: Query, windows: Mapping[Name, CommitSpan], unknown: Collection[Name]
) -> Mapping[Name, CommitSpan]:
    """The windows without unknown names the text doesn't have, in whatever case."""
    if not unknown or (not query.legible and not query.charset.startswith("utf8")):
        return windows
    said = {(database.casefold(), table.casefold()) for database, table in named_tables(query)}
    out = {name for name in unknown if (name[0].casefold(), name[1].casefold()) not in said}
    return {name: span for name, span in windows.items() if name not in out}


def _reached(query: Query, known: Collection[Name]) -> set[Name]:
    """The known tables that triggers and functions of a statement may change, whatever its text
    names.
    """
    target = None if query.sql_mode & _ODD_QUOTES else _one_table(_STRING.sub("''", query.sql), query.database)
    if target is not None and target[0] in _SERVER_DATABASES:  # these can't have triggers
        return set()
    if query.databases is None:
        return set(known)
    folded = {database.casefold() for database in query.databases}
    return {name for name in known if name[0].casefold() in folded}


def _one_table(sql: str, database: str) -> Name | None:
    """The one name a statement of this form changes: a table, or a view."""
    beginning = _beginning(sql)
    for form in _ONE_TABLE:
        match = form.match(sql, beginning)
        if match:
            return _unquoted(match["database"] or database), _unquoted(match["table"])
    return None


def named_tables(query: Query) -> set[Name]:
    """Every (database, table) an identifier in the statement could mean: more than there are."""
    names = set()
    # With odd quotes everything may be a name.
    sql = query.sql.replace('"', "`") if query.sql_mode & _ODD_QUOTES else _STRING.sub("''", query.sql)
    for match in _QUALIFIED.finditer(sql):
        database, table, alone = match.groups()
        names.add((_unquoted(database) if database else query.database, _unquoted(table or alone)))
    return names


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
