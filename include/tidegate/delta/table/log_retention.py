"""How long a Delta table's log keeps removed things, by the table's properties.

In:  a table's configuration, from its metadata.
Out: durations in milliseconds.

Names and defaults are those of Delta's own DeltaConfigs. The protocol leaves them to writers
("Metadata Cleanup", "Add File and Remove File").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tidegate.errors import DeltaUnsupported

_DAY_US: Final = 86_400_000_000
_UNITS_US: Final = {
    "week": 7 * _DAY_US,
    "day": _DAY_US,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_TERM: Final = re.compile(r"\s*([+-]?)\s*(\d+)(\.\d{1,9})?\s+([a-z]+?)s?(?=\s|$)")

_TOMBSTONES: Final = "delta.deletedFileRetentionDuration"
_LOG: Final = "delta.logRetentionDuration"
_TRANSACTIONS: Final = "delta.setTransactionRetentionDuration"
_CLEANED: Final = "delta.enableExpiredLogCleanup"


def tombstones_ms(configuration: Mapping[str, str]) -> int:
    """How long removed files stay in checkpoints, so that VACUUM finds them: a week by default."""
    return _duration_ms(_TOMBSTONES, configuration.get(_TOMBSTONES, "interval 1 week"))


def transactions_ms(configuration: Mapping[str, str]) -> int | None:
    """How long transaction identifiers are remembered; None, the default: for ever."""
    text = configuration.get(_TRANSACTIONS)
    return None if text is None else _duration_ms(_TRANSACTIONS, text)


def log_ms(configuration: Mapping[str, str]) -> int | None:
    """How far back the log reaches: 30 days by default; None if nothing may be removed from it."""
    if configuration.get(_CLEANED, "true").strip().lower() != "true":
        return None
    return _duration_ms(_LOG, configuration.get(_LOG, "interval 30 days"))


def _duration_ms(name: str, text: str) -> int:
    try:
        return interval_us(text) // 1000
    except ValueError as error:
        raise DeltaUnsupported(
            f"{name} is {text!r}: {error}", remedy="set it to a number of weeks, days or hours"
        ) from error


def interval_us(text: str) -> int:
    """Microseconds of an interval in Delta's form: `interval 1 week`, `30 days`, `1 day 12 hours`.

    Months and years aren't durations, nor is a negative sum. Raises ValueError.
    """
    rest = re.sub(r"^interval(?=\s|$)", "", text.strip().lower()).strip()
    total, at = 0, 0
    while at < len(rest):
        term = _TERM.match(rest, at)
        if term is None or term[4] not in _UNITS_US or (term[3] and term[4] != "second"):
            raise ValueError("it isn't an interval")
        size = int(term[2]) * _UNITS_US[term[4]]
        if term[3]:
            size += int(term[3][1:].ljust(6, "0")[:6])
        total += -size if term[1] == "-" else size
        at = term.end()
    if not rest or total < 0:
        raise ValueError("it isn't a duration")
    return total
