"""Statements in QUERY events: DDL goes through schema_history, DML has no rows in the log and must not pass unseen.

In:  QUERY events that aren't a transaction's frame.
Out: for each, the rule that ignores it, or the wanted tables it changes behind the log's back. UnknownEvent when it
     changes something and no wanted table can be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tidegate.binlog.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.query import Query, parse_query
from tidegate.binlog.result import Window
from tidegate.errors import DecodeError, Terminal, UnknownEvent, UnsupportedValue

_COMMENT: Final = re.compile(r"\s+|/\*(?!!|M!).*?\*/|--[ \t][^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*M?!\d*|\(|\*/", re.DOTALL)
_DML: Final = re.compile(
    r"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|DO|WITH|SELECT|MERGE|HANDLER|EXECUTE)\b", re.IGNORECASE
)
_NAME: Final = r"(?:`(?:[^`]|``)+`|[0-9A-Za-z_$\x80-\U0010ffff]+)"
_QUALIFIED: Final = re.compile(rf"({_NAME})\s*\.\s*({_NAME})|({_NAME})")
_STRING: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
# The server's own tables are no one's data; statements on them (GRANT's old form, mysql_tzinfo) may pass.
_SERVER_DATABASES: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})


@dataclass(frozen=True, slots=True)
class Judged:
    """event: its number. rule: why it may be ignored, when tables is empty. tables: wanted tables that it changes."""

    event: int
    rule: str
    tables: tuple[tuple[str, str], ...]
    error: Terminal


def is_dml(sql: str) -> bool:
    """Whether a statement changes rows without row events. Comments, versioned ones too, may stand in front."""
    at = 0
    while found := _COMMENT.match(sql, at):
        at = found.end()
    return _DML.match(sql, at) is not None


def query_at(index: EventIndex, event: int) -> Query:
    """The QUERY event with this number."""
    checksum = int(index.events[event, K.OFFSET] + index.events[event, K.SIZE] - index.events[event, K.END])
    return parse_query(index.event(event), checksum)


def judge_statements(
    index: EventIndex, numbers: list[int], windows: Mapping[tuple[str, str], Window]
) -> Iterator[Judged]:
    """numbers: of QUERY events with the STATEMENT bit."""
    for number in numbers:
        try:
            query = query_at(index, number)
        except DecodeError as unread:
            where = f"{index.segment.source} at {index.segment.file}:{index.position(number)}"
            raise UnknownEvent(f"QUERY event: {unread.what}", where=where, remedy=unread.remedy) from None
        commit_ts = int(index.events[number, K.COMMIT_TS])
        error = UnsupportedValue(
            f"statement instead of rows: {query.sql[:80]!r}",
            remedy="set binlog_format=ROW in every session, then snapshot the table",
        )
        if not is_dml(query.sql):
            yield Judged(number, "ddl", (), error)
            continue
        touched = named_tables(query)
        if touched and all(database in _SERVER_DATABASES for database, _ in touched):
            yield Judged(number, "table not asked for", (), error)
            continue
        open_windows = [name for name, window in windows.items() if commit_ts in window]
        if not open_windows:
            yield Judged(number, "outside the window", (), error)
            continue
        held = tuple(name for name in open_windows if name in touched)
        if not held:
            raise UnknownEvent(
                error.what,
                where=f"{index.segment.source} at {index.segment.file}:{index.position(number)}",
                remedy=error.remedy,
            )
        yield Judged(number, "", held, error)


def named_tables(query: Query) -> frozenset[tuple[str, str]]:
    """Every (database, table) that an identifier in the statement could mean; too many is safe, too few is not."""
    found = set()
    for match in _QUALIFIED.finditer(_STRING.sub("''", query.sql)):
        database, table, alone = match.groups()
        if alone is not None:
            found.add((query.database, _unquoted(alone)))
        else:
            found.add((_unquoted(database), _unquoted(table)))
    return frozenset(found)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
