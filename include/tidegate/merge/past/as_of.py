"""A table with history as it was at a commit_ts, its ended versions included: as a cut of then has it.

In:  the table as it is now, by three readers; a commit_ts from which on its history is complete.
Out: the versions that had begun, with their ends as they were then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate import tables
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    import polars as pl


def as_of(rows: str, at: int) -> str:
    """DuckDB's SQL for the table as it was at a commit_ts. rows: an item of FROM."""
    ended = f"CASE WHEN {tables.VALID_TO} <= {at:d} THEN {tables.VALID_TO} END AS {tables.VALID_TO}"
    current = f"({tables.VALID_TO} IS NULL OR {tables.VALID_TO} > {at:d}) AS {tables.IS_CURRENT}"
    return f"SELECT * REPLACE ({ended}, {current}) FROM {rows} WHERE {tables.VALID_FROM} <= {at:d}"


def polars_as_of(frame: pl.LazyFrame, at: int) -> pl.LazyFrame:
    """The same for Polars."""
    import polars as pl

    end = pl.col(tables.VALID_TO)
    is_open = end.is_null() | (end > at)
    columns = [pl.when(is_open).then(None).otherwise(end).alias(tables.VALID_TO), is_open.alias(tables.IS_CURRENT)]
    return frame.filter(pl.col(tables.VALID_FROM) <= at).with_columns(columns)


def spark_as_of(rows: Any, at: int) -> Any:
    """The same for a DataFrame of Spark."""
    end = tables.VALID_TO
    own = {end: f"IF({end} <= {at:d}, {end}, NULL)", tables.IS_CURRENT: f"{end} IS NULL OR {end} > {at:d}"}
    selected = [f"{own.get(name, quote(name))} AS {quote(name)}" for name in rows.columns]
    return rows.where(f"{tables.VALID_FROM} <= {at:d}").selectExpr(*selected)
