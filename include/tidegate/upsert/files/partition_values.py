"""Values of partition columns as the log and the folders' names have them.

In:  values, or the log's text. Out: text (PROTOCOL.md, "Partition Value Serialization"), folders as
     Hive names them, and values of an Arrow type again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from tidegate.errors import UnsupportedValue

_NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^") | {chr(c) for c in range(0x20)}


def partition_text(value: Any) -> str | None:
    """None for NULL; an empty text is NULL too, as everywhere in Delta."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value)


def _instant(value: datetime) -> str:
    if value.tzinfo:
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value.strftime("%Y-%m-%d %H:%M:%S.%f")


def folder(values: Mapping[str, str | None]) -> str:
    """`a=1/b=x/` with special characters as %XX; "" without partitions."""
    return "".join(
        f"{_escape(name)}={_NULL_FOLDER if text is None else _escape(text)}/" for name, text in values.items()
    )


def _escape(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """The value that a partition's text stands for. Raises UnsupportedValue for text that isn't one."""
    if text is None or text == "":
        return pa.scalar(None, kind)
    try:
        if pa.types.is_binary(kind):
            return pa.scalar(text.encode("latin-1"), kind)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(text), kind)
        if pa.types.is_timestamp(kind):
            return pa.scalar(datetime.fromisoformat(text), kind)
        return pa.scalar(text).cast(kind)
    except (ValueError, ArithmeticError, pa.ArrowInvalid) as error:
        raise UnsupportedValue(
            f"partition value {text!r} is no {kind}: {error}", remedy="set apply.writer: merge in the pipeline file"
        ) from None
