"""Count the rows that one state of a table has and another one lacks: by DuckDB, for a hundredth of Spark's CPU.

In:  two tables on a local disk, versions of them; columns that don't count.
Out: the rows that only the first one has, and those that only the second one has; equal rows are counted.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HostLacks
from tidegate.limits import QUERY_MEMORY_BYTES
from tidegate.query import duck

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class TableAt:
    """version: None for the newest one."""

    uri: str
    version: int | None = None

    @property
    def scan(self) -> str:
        """It as an item of FROM."""
        return duck.scan(self.uri, self.version)


def rows_apart(new: TableAt, old: TableAt, *, left_out: AbstractSet[str], where: str = "true") -> tuple[int, int]:
    """Count all rows where the tables have other columns, left out or not. A column of two types is compared by its
    text, since DuckDB would round a decimal. where: SQL of the rows that count. Raises HostLacks where DuckDB can't.
    """
    import duckdb

    try:
        return _apart(new, old, left_out, where)
    except duckdb.Error as error:
        what = f"DuckDB can't compare them: {str(error).splitlines()[0]}"
        raise HostLacks(what, where=new.uri, remedy="compare them by Spark") from error


def _apart(new: TableAt, old: TableAt, left_out: AbstractSet[str], where: str) -> tuple[int, int]:
    with duck.connect(QUERY_MEMORY_BYTES) as database:
        types, others = _types(database, new), _types(database, old)
        if types.keys() != others.keys():
            ours, theirs = (f"FROM {table.scan} WHERE {where}" for table in (new, old))
            return _count(database, ours), _count(database, theirs)
        same = {name: types[name] == others[name] for name in types if name not in left_out}
        columns = ", ".join(_compared(name, as_it_is=is_same) for name, is_same in same.items())
        ours, theirs = (f"SELECT {columns} FROM {table.scan} WHERE {where}" for table in (new, old))
        only_ours = _count(database, f"{ours} EXCEPT ALL {theirs}")
        return only_ours, _count(database, f"{theirs} EXCEPT ALL {ours}")


def _compared(name: str, *, as_it_is: bool) -> str:
    return duck.identifier(name) if as_it_is else f"CAST({duck.identifier(name)} AS VARCHAR)"


def _types(database: duckdb.DuckDBPyConnection, table: TableAt) -> dict[str, str]:
    rows = database.sql(f"FROM {table.scan}")
    return dict(zip(rows.columns, map(str, rows.types), strict=True))


def _count(database: duckdb.DuckDBPyConnection, rows: str) -> int:
    return int(database.sql(f"SELECT count(*) FROM ({rows})").fetchall()[0][0])
