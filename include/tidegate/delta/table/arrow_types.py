"""Types of a Delta schema's JSON (PROTOCOL.md, "Schema Serialization Format") as Arrow types, and
back.

In:  the parsed `schemaString` of a table's metadata; or an Arrow schema.
Out: (name, Arrow type) per column in table order, partition columns included, as its Parquet files
     have them; or the schema's JSON.
"""

from __future__ import annotations

import json
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
_LARGE: Final = {pa.large_binary(): pa.binary(), pa.large_string(): pa.string()}  # only Arrow tells these apart
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")

TYPE_CHANGES: Final = "delta.typeChanges"  # in a column's metadata, after it was widened

# Types whose name in the schema's JSON differs from Spark SQL's.
_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_SQL_NAMES: Final = {name: sql for sql, name in _JSON_NAMES.items()}
_ARRAY: Final = re.compile(r"array<(.+)>")


def delta_json(sql: str) -> str | dict[str, Any]:
    """A type's form in the schema's JSON. sql: Spark SQL's form. Raises UnsupportedValue as
    arrow_type does.
    """
    array = _ARRAY.fullmatch(sql)
    if array is not None:
        return {"type": "array", "elementType": delta_json(array[1]), "containsNull": True}
    name = _JSON_NAMES.get(sql, sql)
    arrow_type(name)
    return name


def sql_type(delta: str | Mapping[str, Any]) -> str:
    """A type in Spark SQL's form (DataType.simpleString). Raises UnsupportedValue as arrow_type
    does.
    """
    arrow_type(delta)
    if isinstance(delta, str):
        return _SQL_NAMES.get(delta, delta)
    return f"array<{sql_type(delta['elementType'])}>"


def type_changes(column: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The widenings of a column of the schema's JSON, oldest first (PROTOCOL.md, "Type Widening")."""
    return list((column.get("metadata") or {}).get(TYPE_CHANGES) or ())


def arrow_type(delta: str | Mapping[str, Any]) -> pa.DataType:
    """The Arrow type of a Delta type. Raises UnsupportedValue for one that silver never has."""
    if isinstance(delta, str):
        return _arrow_plain(delta)
    if delta.get("type") == "array":
        element = pa.field("element", arrow_type(delta["elementType"]), nullable=bool(delta["containsNull"]))
        return pa.list_(element)
    raise UnsupportedValue(
        f"Delta type {delta.get('type')} is not written by position",
        remedy="set apply.writer: merge in the pipeline file",
    )


@lru_cache(maxsize=256)
def _arrow_plain(delta: str) -> pa.DataType:
    if delta in _PLAIN:
        return _PLAIN[delta]
    match = _DECIMAL.fullmatch(delta)
    if match is None:
        raise UnsupportedValue(
            f"Delta type {delta} is not written by position", remedy="set apply.writer: merge in the pipeline file"
        )
    return pa.decimal128(int(match[1]), int(match[2]))


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """Arrow schema of a Delta table, in table order, nullability as declared."""
    fields = [pa.field(f["name"], arrow_type(f["type"]), nullable=bool(f["nullable"])) for f in schema["fields"]]
    return pa.schema(fields)


@lru_cache(maxsize=1024)
def logged_schema(text: str) -> pa.Schema:
    """arrow_schema of a metadata's schemaString. It is cached: every window asks, and the text
    hardly ever changes.
    """
    return arrow_schema(json.loads(text))


def delta_schema(schema: pa.Schema) -> dict[str, Any]:
    """The schema's JSON of an Arrow schema. A field's metadata `comment` is kept.

    Raises UnsupportedValue for a type without a name in Delta.
    """
    return {"type": "struct", "fields": [_delta_field(field) for field in schema]}


def _delta_field(field: pa.Field) -> dict[str, Any]:
    comment = (field.metadata or {}).get(b"comment")
    metadata = {} if comment is None else {"comment": comment.decode()}
    return {"name": field.name, "type": _delta_type(field.type), "nullable": field.nullable, "metadata": metadata}


def _delta_type(arrow: pa.DataType) -> str | dict[str, Any]:
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        element = arrow.value_field
        return {"type": "array", "elementType": _delta_type(element.type), "containsNull": element.nullable}
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    delta_name = next((name for name, known in _PLAIN.items() if known == _LARGE.get(arrow, arrow)), None)
    if delta_name is None:
        raise UnsupportedValue(f"Delta has no name for Arrow's type {arrow}", remedy="cast it first")
    return delta_name
