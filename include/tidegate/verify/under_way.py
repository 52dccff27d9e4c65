"""A table's known facts while it is compared, and the options of a verification.

In:  nothing; these are values.
Out: Options, Work, Round, Differing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, Self

from tidegate.computed.row_expressions import ComputedColumn
from tidegate.config import Verify
from tidegate.errors import TidegateError
from tidegate.lake.bronze.captured_places import Visible
from tidegate.limits import (
    VERIFY_CHUNK_ROWS_DEFAULT,
    VERIFY_MEMORY_BYTES_DEFAULT,
    VERIFY_SETTLE_ATTEMPTS_MAX,
    VERIFY_TABLE_ATTEMPTS_MAX,
)
from tidegate.table_names import Physical
from tidegate.tables import State
from tidegate.verify.report import Difference, Outcome, TableResult
from tidegate.verify.settle import Key, Row
from tidegate.verify.silver_side import FirstPass, Silver, SilverSide
from tidegate.verify.source_side import SourceSide
from tidegate.verify.source_table import Prints, SourceTable

DIFFERENCES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Differing:
    """A table with the keys of its rows that differ. unnamed: rows that silver alone has, with a NULL in the key, or
    that are neither live nor of the past.
    """

    source: str
    table: SourceTable
    silver: Silver
    keys: tuple[Key, ...]
    unnamed: int = 0


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """tables: only these `database.table`; timeout_seconds: how long to wait for a cut, each time.

    rows_per_second: 0 for no bound. rounds_max: the most readings of a suspicious key. record: whether
    control/verification gets the findings. on_different: called with a different table. report: told of waits.
    """

    tables: Collection[str] | None = None
    timeout_seconds: float = 60.0
    differences_max: int = DIFFERENCES_MAX
    chunk_rows: int = VERIFY_CHUNK_ROWS_DEFAULT
    rows_per_second: int = 0
    memory_bytes: int = VERIFY_MEMORY_BYTES_DEFAULT
    rounds_max: int = VERIFY_SETTLE_ATTEMPTS_MAX
    record: bool = False
    on_different: Callable[[Differing, SilverSide], None] | None = None
    report: Callable[[str], None] = lambda _: None

    @classmethod
    def of(cls, section: Verify, *, tables: Collection[str] | None = None, timeout_seconds: float = 60.0) -> Self:
        """As a pipeline file says; what is found is recorded."""
        return cls(
            tables,
            timeout_seconds,
            chunk_rows=section.chunk_rows,
            rows_per_second=section.rows_per_second,
            memory_bytes=section.memory_bytes,
            rounds_max=section.rounds,
            record=True,
        )


@dataclass(slots=True)
class TableUnderWay:
    """One physical table under way. place: where its first read began. prints: its chunks, without their text. owners:
    columns of silver that aren't the source's. masked: columns whose values it has masked. Neither are compared.
    computed: columns beside the source's, by the pipeline file; computed_rows: how many rows have others.
    """

    source: str
    database: str
    name: str
    logical: str
    only: tuple[tuple[str, str], ...]
    attempts: int = 0
    refused: str = ""  # why our account can't read it
    table: SourceTable | None = None
    place: Visible | None = None
    prints: list[Prints] = field(default_factory=list)
    first: FirstPass | None = None
    silver: Silver | None = None
    verified_ts: int = 0
    reason: str = ""
    owners: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    computed_rows: int = 0
    waiting: list[Key] = field(default_factory=list)
    tries: Counter[Key] = field(default_factory=Counter)
    unsettled: int = 0
    unnamed: int = 0
    different: dict[Key, None] = field(default_factory=dict)
    rows_different: int = 0
    shown: list[Difference] = field(default_factory=list)

    def again(self) -> Self | None:
        """The same, from its beginning; None where that was often enough."""
        if self.attempts + 1 >= VERIFY_TABLE_ATTEMPTS_MAX:
            return None
        begun = (self.source, self.database, self.name, self.logical, self.only)
        return type(self)(*begun, attempts=self.attempts + 1)

    @property
    def physical(self) -> Physical:
        return Physical(self.source, self.database, self.name)

    @property
    def name_there(self) -> str:
        """As at the source."""
        return f"{self.database}.{self.name}"

    def result(self, outcome: Outcome, reason: str = "", **more: Any) -> TableResult:
        more["database"] = self.database
        return TableResult(self.source, self.name_there, self.logical, outcome, reason, **more)


class Again(Exception):  # noqa: N818 - what to do, not what happened
    """The table was changed after it was read."""


@dataclass(slots=True)
class Round:
    """Some keys of a table, read again."""

    work: TableUnderWay
    keys: list[Key]
    place: Visible | None = None
    source: dict[Key, Counter[Row]] = field(default_factory=dict)
    busy: set[Key] = field(default_factory=set)
    failed: bool = False

    def read(self, side: SourceSide, place: Visible) -> None:
        table = self.work.table
        assert table is not None, "it was compared"
        self.place = place
        try:
            self.source, self.busy = side.rows(table, self.keys)
        except TidegateError:
            if side.describe(table.database, table.table) == table:
                raise
            self.failed = True


def hex_of(number: int) -> str:
    return f"{number:016x}"


def difference(table: SourceTable, ours: Row | None, theirs: Row | None) -> Difference:
    """Values as people read them."""
    source, silver = _named(table, ours), _named(table, theirs)
    row = source or silver or {}
    shown = table.key or range(len(table.cells))
    return Difference({table.cells[n].name: row.get(table.cells[n].name) for n in shown}, source, silver)


def _named(table: SourceTable, row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        cell.name: value if value is None or cell.shown is None else cell.shown(value)
        for cell, value in zip(table.cells, row, strict=True)
    }


def waiting(state: str, reason: str) -> tuple[Outcome, str]:
    """The outcome of a table not compared, and its reason. state, reason: of control/table_states."""
    if state == State.RELEASED:
        then = "apply's next windows bring it up to date; verify it again then"
    elif state == State.SNAPSHOT:
        then = "it lacks rows until its snapshot has ended; verify it again then"
    else:
        return Outcome.HELD, reason
    return Outcome.WAITS, "; ".join(part for part in (reason, then) if part)
