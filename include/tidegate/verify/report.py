"""The findings of a verification.

In:  the comparison (check.py) and the cut it was made at.
Out: values, and their JSON form for `tidegate verify --json`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """The findings for one table."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"  # nothing differs for certain, but keys changed between each two reads of them
    HELD = "held"  # waits for a person, with a reason; not compared
    WAITS = "waits"  # released and catching up, or lacks rows until its snapshot ends; not compared
    DROPPED = "dropped"  # gone at the source and marked so; not compared
    UNVERIFIED = "unverified"  # nobody can read its source by SQL, or its silver; not compared

    @property
    def is_verdict(self) -> bool:
        """Whether rows were compared."""
        return self in (Outcome.EQUAL, Outcome.DIFFERENT, Outcome.UNSETTLED)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row in dispute between the two sides; None: that side hasn't got it."""

    key: dict[str, Any]
    source: dict[str, Any] | None
    silver: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column with other types on both sides. source: the type that silver should have; "": no such column there, or
    in silver.
    """

    name: str
    source: str
    silver: str


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The first comparison's findings for a range of the key. after, upto: as literals; None at the table's ends."""

    after: tuple[str, ...] | None
    upto: tuple[str, ...] | None
    source_rows: int
    silver_rows: int
    source_hash: str
    silver_hash: str


@dataclass(frozen=True, slots=True)
class TableResult:
    """table: database.table at the source, database: its first part; source: its name in the pipeline file; silver: the
    logical table.

    Rows and hashes (16 hex digits, in any order) are of the first comparison: under load they differ by the changes
    between the two reads. seemed: its suspicious keys; different: really different rows; unsettled: keys without a
    verdict. differences: some of the rows. columns: those that differ; then no rows are compared. verified_through: no
    fault from at or below this commit_ts is left in the rest.
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
    seemed: int = 0
    different: int = 0
    unsettled: int = 0
    verified_through: int = 0
    differences: tuple[Difference, ...] = ()
    ranges: tuple[RangeResult, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()
    database: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """Database and table."""
        database = self.database or self.table.partition(".")[0]
        return database, self.table[len(database) + 1 :]


@dataclass(frozen=True, slots=True)
class Report:
    """cut_ts: the last compared cut. positions: source -> its covered file:position."""

    pipeline: str
    cut_ts: int
    positions: dict[str, str]
    tables: tuple[TableResult, ...]
    seconds: float = field(default=0.0)

    @property
    def equal(self) -> bool:
        """All that was compared is equal for certain. See `complete` for the tables that weren't."""
        return not self.count(Outcome.DIFFERENT) and not self.count(Outcome.UNSETTLED)

    @property
    def passed(self) -> bool:
        """Equal, and no table was left out since its source can't be read. `tidegate status` has held tables."""
        return self.equal and not self.count(Outcome.UNVERIFIED)

    @property
    def complete(self) -> bool:
        """Every table that the source has was compared."""
        return not any(map(self.count, (Outcome.HELD, Outcome.WAITS, Outcome.UNVERIFIED)))

    def count(self, outcome: Outcome) -> int:
        """How many tables came out so."""
        return sum(result.outcome is outcome for result in self.tables)

    @property
    def verdict(self) -> str:
        """In one line; what differs stands last, also when it is none."""
        parts = [f"{self.count(Outcome.EQUAL)} equal"]
        for outcome in (Outcome.UNSETTLED, Outcome.UNVERIFIED, Outcome.HELD, Outcome.WAITS, Outcome.DROPPED):
            count = self.count(outcome)
            words = "wait" if outcome is Outcome.WAITS and count > 1 else outcome
            parts += [f"{count} {words}"] if count else []
        differ = self.count(Outcome.DIFFERENT)
        return f"{', '.join(parts)}; {differ} {'differs' if differ == 1 else 'differ'}"

    def to_json(self) -> dict[str, Any]:
        """Only what JSON has: binary values as hexadecimal text."""
        return {**_plain(asdict(self)), "equal": self.equal, "complete": self.complete, "passed": self.passed}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(cell) for cell in value]
    if isinstance(value, bytes):
        return value.hex()
    return value
