"""Tables that keep their history, and the states that the server's own SELECT showed: one against the other.

In:  a server, a road whose pipeline keeps `tick`; work as SQL.
Out: Past.done(): runs a transaction, or a statement, and remembers what the tables hold then; Past.check(): silver's
     versions give each of these states, and no version is empty or overlaps another one of its row.

Each transaction counts up `tick`, whose silver therefore says the commit_ts of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.kit.road import Road
from tests.support.readers import READERS
from tidegate import tables
from tidegate.local.server import Server

Row = dict[str, Any]


@dataclass(slots=True)
class Past:
    """states: per moment, the rows of each table that was there. names: new names of columns renamed since. unknown:
    per table, the states that silver isn't to tell: while it lacks rows of it.
    """

    server: Server
    database: str
    names: Sequence[str]
    states: list[dict[str, list[Row]]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, set[int]] = field(default_factory=dict)

    def begin(self) -> None:
        self.server.query(f"CREATE TABLE {self.database}.tick (id INT PRIMARY KEY, n INT)")
        self.server.query(f"INSERT INTO {self.database}.tick VALUES (1, -1)")

    def done(self, *statements: str) -> None:
        """One transaction; a DDL among them commits what was before it."""
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            cursor.execute(f"UPDATE tick SET n = {len(self.states)} WHERE id = 1")
            connection.commit()
            self.states.append(self._seen(cursor))

    def undone(self, *statements: str) -> None:
        """A transaction that is rolled back."""
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.rollback()

    def _seen(self, cursor: Any) -> dict[str, list[Row]]:
        seen = {}
        cursor.execute("SHOW TABLES")
        present = {str(row[0]) for row in cursor.fetchall()}
        for name in present.intersection(self.names):
            cursor.execute(f"SELECT * FROM {name}")
            columns = [str(column[0]) for column in cursor.description]
            seen[name] = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return seen

    def moments(self, road: Road) -> dict[int, int]:
        """Number of a state -> its commit_ts."""
        path = road.lake.uri(tables.silver_path(self.database, "tick"))
        return {row["n"]: row[tables.VALID_FROM] for row in READERS["DuckDB"](path).to_pylist()}

    def check(self, road: Road, *, since: int = 0) -> int:
        """Compare every state from one on; the number of versions."""
        moments, versions = self.moments(road), dict[str, list[Row]]()
        for name in self.names:
            if (of_table := self.versions_of(road, name)) is not None:
                versions[name] = of_table
                check_spans(of_table)
        for number in range(since, len(self.states)):
            at = moments[number]
            for name, of_name in versions.items():
                if number in self.unknown.get(name, ()):
                    continue
                wanted = [self._renamed(row) for row in self.states[number].get(name, [])]
                valid = [row for row in of_name if is_valid(row, at)]
                shared = {column for row in wanted[:1] for column in row}.intersection(of_name[0] if of_name else ())
                assert shown(valid, shared) == shown(wanted, shared), f"state {number} of {name} at {at}"
        return sum(map(len, versions.values()))

    def silver_of(self, name: str) -> str:
        """The table in silver that has a table's rows."""
        return f"{self.database}.{name}"

    def own(self, rows: list[Row], name: str) -> list[Row]:
        """Of rows of silver, the table's."""
        del name
        return rows

    def versions_of(self, road: Road, name: str) -> list[Row] | None:
        """Silver's versions of a table's rows; None without silver."""
        path = tables.silver_path(self.database, name)
        if not road.lake.log(path).state().created:
            return None
        return list(READERS["DuckDB"](road.lake.uri(path)).to_pylist())

    def _renamed(self, row: Row) -> Row:
        return {self.renamed.get(column, column): value for column, value in row.items()}


def is_valid(row: Row, at: int) -> bool:
    return row[tables.VALID_FROM] <= at and (row[tables.VALID_TO] is None or at < row[tables.VALID_TO])


def shown(rows: Sequence[Row], columns: set[str]) -> list[str]:
    return sorted(repr([(name, str(row[name])) for name in sorted(columns)]) for row in rows)


def check_spans(rows: Sequence[Row]) -> None:
    """Versions of a row are half-open, not empty, and don't overlap; only the last one is current."""
    of_key = defaultdict[Any, list[tuple[int, int]]](list)
    for row in rows:
        begin, end = row[tables.VALID_FROM], row[tables.VALID_TO]
        assert row[tables.IS_CURRENT] == (end is None), row
        assert end is None or begin < end, row
        of_key[row["id"]].append((begin, end if end is not None else 1 << 63))
    for spans in of_key.values():
        spans.sort()
        assert all(left[1] <= right[0] for left, right in pairwise(spans)), spans
