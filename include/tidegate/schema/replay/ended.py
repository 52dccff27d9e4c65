"""Names that were tables for a time: a statement before a DROP means the table of then, whatever
has the name since.

In:  a SchemaHistory.
Out: per name, for each time, from and before which commit_ts it was a table.
"""

from __future__ import annotations

from tidegate.commit_ts import FOREVER
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import UNFOLLOWED, SchemaHistory


def ended_in(history: SchemaHistory, after_ts: int) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Times of tables that were dropped above after_ts, as far as the history in memory reaches: see
    lake/schema_history/schema_rows.py, ended.
    """
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    names = {(version.database, version.table) for version in history.made_in(after_ts, FOREVER)}
    for name in sorted(names):
        since: int | None = None
        for version in history.versions(*name):
            if version.status is not VersionStatus.DROPPED and version.kind != UNFOLLOWED:
                since = version.commit_ts if since is None else since
                continue
            if since is not None and version.commit_ts > after_ts:
                spans.setdefault(name, []).append((since, version.commit_ts))
            since = None
    return spans
