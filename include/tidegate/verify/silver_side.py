"""Silver's side: rows as DuckDB's Delta reader gives them, at one Delta version.

In:  the address of a silver table and the version that a cut names.
Out: its column names; rows in the same form as the source's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tidegate import tables
from tidegate.errors import VerifyError
from tidegate.query import duck
from tidegate.query.duck import literal, scan
from tidegate.verify.cells import Cell
from tidegate.verify.comparison import Row

_BATCH_ROWS: Final = 20_000
_MEMORY_BYTES: Final = 1 << 30  # comparing streams


class SilverSide:
    """A DuckDB database in memory, with the Delta extension."""

    def __init__(self) -> None:
        import duckdb

        self._database = duck.connect(_MEMORY_BYTES)
        self._error: type[Exception] = duckdb.Error
        self._database.execute("SET preserve_insertion_order = false")

    def close(self) -> None:
        self._database.close()

    def columns(self, address: str, version: int) -> list[str]:
        """Names of the source's columns in silver, the system columns left out."""
        return [name for name in self._names(address, version) if not name.startswith(tables.SYSTEM_PREFIX)]

    def _names(self, address: str, version: int) -> list[str]:
        return [str(row[0]) for row in self._run(f"DESCRIBE SELECT * FROM {scan(address, version)}", address)]

    def _live(self, address: str, version: int) -> str:
        """A condition: the source has the row."""
        return f"NOT {tables.DELETED}" if tables.DELETED in self._names(address, version) else "true"

    def count(self, address: str, version: int) -> int:
        """Rows of a silver table, deleted ones that it keeps left out."""
        sql = f"SELECT count(*) FROM {scan(address, version)} WHERE {self._live(address, version)}"
        return int(next(self._run(sql, address))[0])

    def rows(
        self, address: str, version: int, cells: Sequence[Cell], only: Mapping[str, str] | None = None
    ) -> Iterator[Row]:
        """All live rows; only: column -> value that a row must have (the shard of a routed table)."""
        tests = [f'"{name}" = {literal(value)}' for name, value in (only or {}).items()]
        where = " AND ".join([*tests, self._live(address, version)])
        sql = f"SELECT {', '.join(cell.silver_sql for cell in cells)} FROM {scan(address, version)} WHERE {where}"
        converts = [(n, cell.from_silver) for n, cell in enumerate(cells) if cell.from_silver is not None]
        for found in self._run(sql, address):
            row = list(found)
            for n, convert in converts:
                if row[n] is not None:
                    row[n] = convert(row[n])
            yield tuple(row)

    def _run(self, sql: str, address: str) -> Iterator[tuple[Any, ...]]:
        try:
            with self._database.cursor() as cursor:
                cursor.execute(sql)
                while batch := cursor.fetchmany(_BATCH_ROWS):
                    yield from batch
        except self._error as error:
            raise VerifyError(
                f"DuckDB can't read silver: {str(error).splitlines()[0]}",
                where=address,
                remedy="check the lake's path and keys",
            ) from error
