"""Every version of a row stays, with the commit_ts of its beginning and end.

In:  a table's versions, SQL and rows of its silver.
Out: HISTORY; SchemaMismatch for a table whose versions couldn't be right. version_sql.py has its MERGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from tidegate import tables
from tidegate.errors import SchemaMismatch
from tidegate.merge.column import SilverColumn
from tidegate.merge.past.form import Past
from tidegate.schema.model.columns import TableVersion

_REMEDY: Final = "leave it out of tables.history"


class _History(Past):
    def ended(self, commit_ts: int | str) -> dict[str, str]:
        return {tables.VALID_TO: str(commit_ts), tables.IS_CURRENT: "false"}

    def staged(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        return changes

    def live_rows(self, rows: pa.Table) -> pa.Table:
        return rows.filter(rows.column(tables.IS_CURRENT))

    def check(self, versions: Sequence[TableVersion]) -> None:
        for version in versions:
            if why := _unfit(version):
                raise SchemaMismatch(why, where=version.where, remedy=_REMEDY)


def _unfit(version: TableVersion) -> str:
    """Why the versions of its rows can't be told."""
    if not version.key:
        return "the history of a table without a key isn't kept: nothing says which rows are one"
    if any(key.acts_unseen for key in version.foreign_keys):
        return "foreign keys change its rows below the log, and its history would lack these changes"
    return ""


HISTORY: Final = _History(
    word="history",
    title="its history",
    kept="old versions",
    columns=(
        SilverColumn(tables.VALID_FROM, "bigint", "commit_ts from which the source had this version of the row"),
        SilverColumn(tables.VALID_TO, "bigint", "commit_ts from which it had it no more; null: it has it"),
        SilverColumn(tables.IS_CURRENT, "boolean", "whether the source has this version"),
        SilverColumn(tables.FROM_KNOWN, "boolean", "false: the version was seen first then, and may be older"),
    ),
    mark=tables.IS_CURRENT,
    begun={
        tables.VALID_FROM: tables.COMMIT_TS,
        tables.VALID_TO: "CAST(NULL AS BIGINT)",
        tables.IS_CURRENT: "true",
        tables.FROM_KNOWN: "false",
    },
    taken={tables.VALID_FROM: "{commit_ts}", tables.FROM_KNOWN: "true"},  # they are another name's from there on
    live=tables.IS_CURRENT,
    was_live=f"{tables.VALID_FROM} < {{commit_ts}} AND coalesce({tables.VALID_TO} > {{commit_ts}}, true)",
    came_since=f"{tables.VALID_FROM} >= {{commit_ts}}",
    open=f"({tables.IS_CURRENT} IS NOT FALSE OR {tables.VALID_TO} IS NULL)",
    stamp=tables.VALID_FROM,
    ended_in=tables.VALID_TO,
    rows_stay=True,
    versions=True,
    whole_deletes=False,
    moves_along=False,
    takes_rows=True,
)
