"""A table with history as it was at a commit_ts, its ended versions included: as a cut of then has it.

In:  the table as it is now, by three readers; a commit_ts from which on its history is complete.
Out: the versions begun by then, with their ends as they were then. Marks of rows without a later end stay as they are:
     a cut of then has them, too, also another writer's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from tidegate import tables
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    import polars as pl

_END: Final = tables.VALID_TO
_CURRENT: Final = tables.IS_CURRENT


class FileFacts(Protocol):
    """The statistics of one file of silver (LiveFile)."""

    @property
    def rows(self) -> int | None: ...
    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """The smallest and the largest value."""

    def nulls(self, column: str) -> int | None:
        """How many rows are NULL."""


def ends_by(files: Iterable[FileFacts], at: int) -> bool:
    """Whether no version begins or ends after a commit_ts, by statistics. Another writer may have put in any time."""
    for file in files:
        begins, ends = file.bounds(tables.VALID_FROM), file.bounds(_END)
        if begins is None or begins[1] > at or file.nulls(tables.VALID_FROM) != 0:
            return False
        if file.nulls(_END) != file.rows and (ends is None or ends[1] > at):
            return False
    return True


def as_of(rows: str, at: int) -> str:
    """DuckDB's SQL for the table as it was at a commit_ts. rows: an item of FROM."""
    ended = f"CASE WHEN {_END} <= {at:d} THEN {_END} END AS {_END}"
    current = f"CASE WHEN {_END} > {at:d} THEN true ELSE {_CURRENT} END AS {_CURRENT}"
    return f"SELECT * REPLACE ({ended}, {current}) FROM {rows} WHERE {tables.VALID_FROM} <= {at:d}"


def polars_as_of(frame: pl.LazyFrame, at: int) -> pl.LazyFrame:
    """The same for Polars."""
    import polars as pl

    end, current = pl.col(_END), pl.col(_CURRENT)
    columns = [
        pl.when(end <= at).then(end).otherwise(None).alias(_END),
        pl.when(end > at).then(statement=True).otherwise(current).alias(_CURRENT),
    ]
    return frame.filter(pl.col(tables.VALID_FROM) <= at).with_columns(columns)


def spark_as_of(rows: Any, at: int) -> Any:
    """The same for a DataFrame of Spark."""
    ended = f"IF({_END} <= {at:d}, {_END}, NULL)"
    own = {_END: ended, _CURRENT: f"IF({_END} > {at:d}, true, {_CURRENT})"}
    selected = [f"{own.get(name, quote(name))} AS {quote(name)}" for name in rows.columns]
    return rows.where(f"{tables.VALID_FROM} <= {at:d}").selectExpr(*selected)
