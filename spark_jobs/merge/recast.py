"""The new values of a column that the server rewrote without row events, if silver's rows leave no
doubt.

In:  silver's rows of one physical table before the statement, and what the statement asks of silver.
Out: SQL text of each rewritten column's new value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.errors import SchemaMismatch
from tidegate.remedy import REFILL
from tidegate.schema.follow.recast import VALUE, Recast
from tidegate.schema.follow.silver_change import SilverAction, ValuesRewritten
from tidegate.schema.model.columns import TableVersion
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recast_values(rows: DataFrame | None, actions: Sequence[SilverAction], new: TableVersion) -> dict[str, str]:
    """SQL text by the column's new name. rows: None when there are none.

    Raises SchemaMismatch unless the new value of every row is certain.
    """
    rewritten = [action for action in actions if isinstance(action, ValuesRewritten)]
    if not rewritten or rows is None:
        return {}
    known: list[tuple[ValuesRewritten, Recast]] = []
    for action in rewritten:
        if action.recast is None:
            raise _unknown(new, action.reason)
        known.append((action, action.recast))
    doubts = [f"coalesce(bool_or({_of(action, recast.doubt)}), false)" for action, recast in known]
    (answers,) = rows.selectExpr(*(f"{doubt} AS doubt_{at}" for at, doubt in enumerate(doubts))).collect()
    for (action, _), doubted in zip(known, answers, strict=True):
        if doubted:
            raise _unknown(new, f"{action.reason}, and not every value fits")
    return {action.column.silver: _of(action, recast.value) for action, recast in known}


def _of(action: ValuesRewritten, text: str) -> str:
    return text.replace(VALUE, quote(action.old_name))


def _unknown(new: TableVersion, reason: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"{new.ddl[:120]}: the server rewrote rows and the binlog doesn't show it: {reason}",
        where=new.where,
        remedy=REFILL,
    )
