"""Rows as of a time before the kept cuts: of tables with history, by the versions that were valid then.

In:  a lake, a commit_ts older than its kept cuts.
Out: a Cut: the newest one, with those tables alone whose history reaches back so far, and why the others don't; and
     these tables as they were then, their ended versions included: as a cut of then has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate import tables
from tidegate.commit_ts import time_text
from tidegate.errors import CutForgotten, DeltaUnsupported, LakeRefused
from tidegate.lake.cuts.published import Cut, CutTable, cut_at
from tidegate.lake.files import LakeFiles
from tidegate.merge.past import past_of
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    import polars as pl


def histories_at(lake: LakeFiles, pipeline: str, at: int, forgotten: CutForgotten) -> Cut:
    """forgotten: the error for this time, raised where no table's history reaches back so far, with the reasons.

    Raises CutForgotten, LakeUnavailable.
    """
    newest = cut_at(lake, pipeline)
    reasons = {name: why for name, table in newest.tables.items() if (why := _why_not(lake, table, at))}
    reached = {name: table for name, table in newest.tables.items() if name not in reasons}
    if not reached:
        late = [f"{name}: {why}" for name, why in reasons.items() if why != _NONE]
        remedy = "; ".join([*late, str(forgotten.remedy)])
        raise CutForgotten(forgotten.what, where=forgotten.where, remedy=remedy) from forgotten
    gone = dict.fromkeys(newest.dropped, "the source has it no more")
    missing: Mapping[str, str] = dict(sorted({**newest.missing, **gone, **reasons}.items()))
    return replace(newest, tables=reached, missing=missing, dropped=frozenset[str]())


_NONE = "no cut so old is kept, and it keeps no history"


def _why_not(lake: LakeFiles, table: CutTable, at: int) -> str:
    """Why its history doesn't tell the rows at a commit_ts; "" where it does."""
    if table.history_ts is not None:
        if table.history_ts <= at:
            return ""
        since = f"{table.history_ts} ({time_text(table.history_ts)})"
        return f"its history is complete from {since} on, and no older cut is kept"
    try:
        fields = lake.log(table.path).state().schema["fields"]
    except (LakeRefused, DeltaUnsupported):
        return _NONE
    if not past_of([field["name"] for field in fields]).versions:
        return _NONE
    return (
        "nothing says yet from when on its history is complete: its next change, or `tidegate rebuild --swap`, records"
        " that"
    )


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
