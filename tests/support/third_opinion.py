"""mysql-replication as a third decoder, without a server: its packet wrapper is fed from bytes.

In:  whole events of a log with FULL metadata and checksums (it takes both for granted).
Out: rows as it reads them, and a canonical value as it would show it, for a comparison.

Where it is wrong stands beside each case that is left out (cases.py); none of its answers is bent to ours.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pymysql.protocol import MysqlPacket
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import parse_type

_ROWS = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)


class _Connection:
    """What the wrapper asks a control connection for."""

    charset = "utf8mb4"

    def __init__(self, flavour: str) -> None:
        self.flavour = flavour

    def _get_dbms(self) -> str:
        return self.flavour


def rows_of(events: Sequence[bytes], *, flavour: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table, row): for inserts and deletes {"values": ...}, for updates before_values and after_values."""
    for event, row in _rows(events, flavour):
        yield event.table, row


def changes_of(
    events: Sequence[bytes], *, flavour: str
) -> Iterator[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    """(table, row before, row after)."""
    for event, row in _rows(events, flavour):
        if isinstance(event, UpdateRowsEvent):
            yield event.table, row["before_values"], row["after_values"]
        elif isinstance(event, DeleteRowsEvent):
            yield event.table, row["values"], None
        else:
            yield event.table, None, row["values"]


def _rows(events: Sequence[bytes], flavour: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    table_map: dict[int, Any] = {}
    for event in events:
        wrapper = BinLogPacketWrapper(
            MysqlPacket(b"\0" + event, "utf8mb4"),
            table_map,
            _Connection(flavour),
            mysql_version=(9, 7, 4),
            use_checksum=True,
            allowed_events=frozenset((TableMapEvent, *_ROWS)),
            only_tables=None,
            ignored_tables=None,
            only_schemas=None,
            ignored_schemas=None,
            freeze_schema=False,
            ignore_decode_errors=False,
            verify_checksum=True,
            optional_meta_data=True,
            enable_logging=False,
        )
        if isinstance(wrapper.event, TableMapEvent):
            table_map[wrapper.event.table_id] = wrapper.event.get_table()
        elif isinstance(wrapper.event, _ROWS):
            for row in wrapper.event.rows:
                yield wrapper.event, row


def _delta(text: str) -> dt.timedelta:
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    made = dt.timedelta(0, int(hours) * 3600 + int(minutes) * 60 + int(whole), int(fraction.ljust(6, "0")))
    return -made if text.startswith("-") else made


def _plain_json(value: Any) -> Any:
    """Its JSON has bytes for text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_plain_json(inner) for inner in value]
    if isinstance(value, dict):
        return {_plain_json(key): _plain_json(inner) for key, inner in value.items()}
    return value


def as_it_shows(kind: Kind, type_text: str, value: Any) -> Any:
    """A canonical value in its terms."""
    if value is None:
        return None
    if kind is Kind.TIME:
        return _delta(value)
    if kind is Kind.SET:
        return set(value.split(",")) if value else None
    if kind in (Kind.BIT, Kind.BOOLEAN):
        bits = (parse_type(type_text).numbers or (1,))[0]
        return f"{int.from_bytes(value, 'big') if kind is Kind.BIT else int(value):0{bits}b}"
    if kind is Kind.TIMESTAMP:
        return value.replace(tzinfo=None)
    if kind is Kind.DECIMAL_TEXT:
        return Decimal(value)
    return json.loads(value) if kind is Kind.JSON else value


def its_value(kind: Kind, value: Any) -> Any:
    return _plain_json(value) if kind is Kind.JSON else value
