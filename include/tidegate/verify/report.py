"""What a verification found.

In:  the comparison (comparison.py) and the cut it was made at.
Out: values, and their JSON form for `tidegate verify --json`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """Of one table."""

    EQUAL = "equal"
    DIFFERENT = "different"
    HELD = "held"  # waits for a person, with a reason; not compared
    DROPPED = "dropped"  # gone at the source and marked so; not compared


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that the two sides don't agree on; None: that side hasn't got it."""

    key: dict[str, Any]
    source: dict[str, Any] | None
    silver: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TableResult:
    """table: database.table at the source; source: its name in the pipeline file; silver: the logical table.

    Hashes: 32 hex digits over all rows, in any order.
    """

    source: str
    table: str
    silver: str
    outcome: Outcome
    reason: str = ""
    source_rows: int = 0
    silver_rows: int = 0
    source_hash: str = ""
    silver_hash: str = ""
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """positions: source -> file:position that the cut covers."""

    pipeline: str
    cut_ts: int
    positions: dict[str, str]
    tables: tuple[TableResult, ...]
    seconds: float = field(default=0.0)

    @property
    def equal(self) -> bool:
        """Nothing differs and nothing waits."""
        return all(result.outcome in (Outcome.EQUAL, Outcome.DROPPED) for result in self.tables)

    def to_json(self) -> dict[str, Any]:
        """Only what JSON has: binary values as hexadecimal text."""
        return {**_plain(asdict(self)), "equal": self.equal}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(cell) for cell in value]
    if isinstance(value, bytes):
        return value.hex()
    return value
