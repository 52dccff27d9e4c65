"""One table on a real server, written and read back two ways: by SELECT, and from the binlog.

In:  a server, an empty database, column definitions, rows of SQL expressions.
Out: for each row's id what the log says and what the server says; the caller compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.decoding import ALL_TIME, changed_rows, current_binlog, decode_both, segment_of_file, version_on
from tidegate.local.server import Server
from tidegate.segments.result import DecodedSegment

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A column: its definition, and the expression that shows its value as the canonical type has it."""

    definition: str
    shown: str = "{}"


def log_of(server: Server, database: str, statements: Sequence[str], *, table: str = "t") -> DecodedSegment:
    """What statements leave in the binlog about a table, decoded by kernel and reference alike."""
    server.query("FLUSH BINARY LOGS")
    path = current_binlog(server)
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for statement in statements:
            cursor.execute(statement)
    name = (database, table)
    return decode_both(
        segment_of_file(path.read_bytes()), {name: [version_on(server, database, table)]}, {name: ALL_TIME}
    )


def written(
    server: Server, database: str, kinds: Sequence[Kind], rows: Sequence[Sequence[str]], *, sql_mode: str = ""
) -> tuple[dict[int, Row], dict[int, Row]]:
    """(what the log says, what SELECT says), per id: rows are numbered from 0, values are SQL expressions."""
    columns = ", ".join(f"c{i} {kind.definition}" for i, kind in enumerate(kinds))
    inserts = [f"INSERT INTO t VALUES ({n}, {', '.join(row)})" for n, row in enumerate(rows)]
    create = f"CREATE TABLE t (id INT PRIMARY KEY, {columns})"
    decoded = log_of(server, database, [f"SET sql_mode = '{sql_mode}'", create, *inserts])
    assert decoded.problems == ()
    found = {row["id"]: tuple(row[f"c{i}"] for i in range(len(kinds))) for row in changed_rows(decoded)}
    shown = ", ".join(kind.shown.format(f"c{i}") for i, kind in enumerate(kinds))
    with server.connect(database).cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT id, {shown} FROM t")
        truth = {row[0]: tuple(row[1:]) for row in cursor.fetchall()}
    return found, truth


def assert_same(
    server: Server, database: str, kinds: Sequence[Kind], rows: Sequence[Sequence[str]], **more: str
) -> None:
    found, truth = written(server, database, kinds, rows, **more)
    assert len(truth) == len(rows)
    for number, row in enumerate(rows):
        for i, kind in enumerate(kinds):
            assert found[number][i] == truth[number][i], f"{kind.definition}: {row[i]}"
