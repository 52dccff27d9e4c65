"""Kinds of events, for tests that read a log event by event."""

from __future__ import annotations

from typing import Final

from tidegate.binlog.format.events import EventType

ROWS_TYPES: Final = frozenset(
    {
        EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2,
        EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS_V2, EventType.PARTIAL_UPDATE_ROWS,
    }
)  # fmt: skip
