"""Types of a Delta schema's JSON (PROTOCOL.md, "Schema Serialization Format") as Arrow types.

In:  the `schemaString` of a table's metadata, parsed.
Out: (name, Arrow type) per column, in table order: what its Parquet files hold, partition columns included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from tidegate.errors import UnsupportedValue

_PLAIN: Final = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")

# Spark SQL's names of types, where the schema's JSON has others.
_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_ARRAY: Final = re.compile(r"array<(.+)>")


def delta_json(sql: str) -> str | dict[str, Any]:
    """A type's form in the schema's JSON. sql: as Spark SQL writes it. Raises UnsupportedValue as arrow_type does."""
    array = _ARRAY.fullmatch(sql)
    if array is not None:
        return {"type": "array", "elementType": delta_json(array[1]), "containsNull": True}
    name = _JSON_NAMES.get(sql, sql)
    arrow_type(name)
    return name


def arrow_type(delta: str | Mapping[str, Any]) -> pa.DataType:
    """The Arrow type of a Delta type. Raises UnsupportedValue for one that silver never has."""
    if isinstance(delta, str):
        return _arrow_plain(delta)
    if delta.get("type") == "array":
        element = pa.field("element", arrow_type(delta["elementType"]), nullable=bool(delta["containsNull"]))
        return pa.list_(element)
    raise UnsupportedValue(
        f"Delta type {delta.get('type')} is not written by position", remedy="use apply.writer: merge"
    )


@lru_cache(maxsize=256)
def _arrow_plain(delta: str) -> pa.DataType:
    if delta in _PLAIN:
        return _PLAIN[delta]
    found = _DECIMAL.fullmatch(delta)
    if found is None:
        raise UnsupportedValue(f"Delta type {delta} is not written by position", remedy="use apply.writer: merge")
    return pa.decimal128(int(found[1]), int(found[2]))


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """Arrow schema of a Delta table, in table order, nullability as declared."""
    fields = [pa.field(f["name"], arrow_type(f["type"]), nullable=bool(f["nullable"])) for f in schema["fields"]]
    return pa.schema(fields)
