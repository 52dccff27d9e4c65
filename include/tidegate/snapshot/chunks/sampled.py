"""The beginnings of the regions of a TiDB's table, as keys.

In:  a table version from a TiDB, a way to ask it.
Out: keys of rows, one for each region, in the key's order; whether rows are read by _tidb_rowid.

A region is a run of rows kept together by TiKV, 96 MB by default. TABLESAMPLE REGIONS() gives
the first row of each and reads no others, so it costs as many rows as there are regions, whatever
the table's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pymysql.constants import ER

from tidegate.errors import SourceUnavailable
from tidegate.mysql.sql_text.sql import key_order, quote_name
from tidegate.schema.model.columns import TableVersion
from tidegate.snapshot.chunks.key_columns import key_of, literal_sql
from tidegate.snapshot.chunks.spans import Key
from tidegate.tidb.jobs import ROWID_NAME
from tidegate.tidb.tables.definitions import info_of

_REGIONS_MAX: Final = 1 << 20  # of one table: 100 TB
_NOT_SAMPLED: Final = frozenset({ER.PARSE_ERROR, 8128})  # a TiDB below 5.0; what can't be sampled (tidb/pkg/errno)


def has_rowids(version: TableVersion) -> bool:
    """Whether it is a table without a key, with rows found by its TiDB by _tidb_rowid."""
    info = info_of(version)
    return not version.key and info is not None and not info.handle


def region_starts(version: TableVersion, ask: Callable[[str], Sequence[Sequence[Any]]]) -> list[Key]:
    """Keys, perhaps of the first columns alone; none where they can't be told.

    Raises SourceRefused, SourceUnavailable.
    """
    columns = _columns(version)
    if not columns:
        return []
    place = quote_name(version.database, version.table)
    shown, names = ", ".join(shown for _, shown in columns), tuple(name for name, _ in columns)
    # Without the LIMIT in the subquery TiDB would use an index for the order, and it can't sample an index.
    sample = f"SELECT {key_order(names)} FROM {place} TABLESAMPLE REGIONS() LIMIT {_REGIONS_MAX}"
    try:
        rows = ask(f"SELECT {shown} FROM ({sample}) AS sampled ORDER BY {key_order(names)}")
    except SourceUnavailable as error:
        cause = error.__cause__
        if cause is not None and cause.args and cause.args[0] in _NOT_SAMPLED:
            return []
        raise
    return [tuple(str(cell) for cell in row) for row in rows]


def _columns(version: TableVersion) -> list[tuple[str, str]]:
    """The key's columns up to one of which no literal is made: (name, its literal in SQL)."""
    if has_rowids(version):
        return [(ROWID_NAME, f"CAST({quote_name(ROWID_NAME)} AS CHAR)")]
    literals = []
    for column in key_of(version):
        shown = literal_sql(column, "utf8mb4")  # a TiDB has text in UTF-8, and says it as the column is declared
        if not shown:
            break
        literals.append((column.name, shown))
    return literals
