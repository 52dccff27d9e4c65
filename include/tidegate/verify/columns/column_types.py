"""The due types of silver's columns, by the server's own description. Apply's table of types isn't
used.

In:  a column's data_type and column_type (information_schema); the types that DuckDB sees in silver.
Out: Spark SQL's name of the due type; ColumnDifference for each column that has another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tidegate import tables
from tidegate.limits import DECIMAL_DIGITS_MAX
from tidegate.merge.past import PASTS
from tidegate.merge.widening import wider
from tidegate.verify.report import ColumnDifference

# Signed, and unsigned.
_INTEGERS: Final = {
    "tinyint": ("tinyint", "smallint"),
    "smallint": ("smallint", "int"),
    "mediumint": ("int", "int"),
    "int": ("int", "bigint"),
    "bigint": ("bigint", "decimal(20,0)"),
}
_OTHERS: Final = {
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "smallint",
    "vector": "array<float>",
}
_BINARIES: Final = frozenset(
    {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
    | {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geomcollection", "geometrycollection"}
)
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_SYSTEM: Final[Mapping[str, str]] = MappingProxyType(
    {
        tables.COMMIT_TS: "bigint",
        tables.ROW_HASH: "string",
        tables.OCCURRENCE: "bigint",
        **dict.fromkeys(tables.SHARDS, "string"),
        **{column.name: column.type for past in PASTS.values() for column in past.columns},
    }
)
_DUCKDB: Final = {
    "integer": "int",
    "varchar": "string",
    "blob": "binary",
    "timestamp": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}


def due_type(data_type: str, column_type: str) -> str:
    """The type of a column in silver, as Spark SQL names it."""
    kind, declared = data_type.lower(), column_type.lower()
    if kind in _INTEGERS:
        signed, unsigned = _INTEGERS[kind]
        return unsigned if "unsigned" in declared or "zerofill" in declared else signed
    if kind == "decimal" and (match := _DECIMAL.match(declared)) is not None:
        return f"decimal({match[1]},{match[2]})" if int(match[1]) <= DECIMAL_DIGITS_MAX else "string"
    if kind == "bit":
        return "boolean" if declared in ("bit", "bit(1)") else "binary"
    return "binary" if kind in _BINARIES else _OTHERS.get(kind, "string")


def of_duckdb(name: str) -> str:
    """Spark SQL's name of a type of DuckDB's."""
    lower = name.lower()
    return f"array<{of_duckdb(lower[:-2])}>" if lower.endswith("[]") else _DUCKDB.get(lower, lower)


def other_types(due: Mapping[str, str], held: Mapping[str, str], *, routed: bool) -> Iterator[ColumnDifference]:
    """Columns whose type in silver is another one than the due one; a system column also where each table has it.

    due: of the source's columns. routed: silver has the widest type of all shards.
    """
    if tables.COMMIT_TS not in held:
        yield ColumnDifference(tables.COMMIT_TS, _SYSTEM[tables.COMMIT_TS], "")
    for name, wanted in {**due, **_SYSTEM}.items():
        known = held.get(name)
        if known is not None and known != wanted and not (routed and wider(known, wanted) == known):
            yield ColumnDifference(name, wanted, known)
