"""Tables with rows that no log has spoken of: older than capture, kept since the pipeline file changed, and quiet.

In:  a pipeline, its lake, how to reach its sources.
Out: physical tables that wait for a snapshot, though neither schema_history nor control/table_states knows them.

What capture's first start found is in the baseline, and what was made since in the log, which apply has followed up to
the cut. So a table that is older than the cut, and of which there is no version, was there before and isn't in the
baseline, which has only what was kept then. Nothing in the lake names it: the server is asked, once in a run, as who
runs has read one pipeline file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pymysql

from tidegate.commit_ts import physical_ms
from tidegate.config import MysqlSource, Pipeline
from tidegate.errors import TidegateError
from tidegate.lake.files import LakeFiles
from tidegate.lake.status import cut_ts
from tidegate.limits import SNAPSHOT_UNHEARD_SECONDS
from tidegate.mysql.connection import ConnectionInfo, connect
from tidegate.mysql.start.recorded import newest_statuses
from tidegate.snapshot.requests import Physical

# Of a table without a time of creation nobody knows whether it is older than the cut.
_MADE: Final = (
    "SELECT table_schema, table_name, UNIX_TIMESTAMP(create_time) FROM information_schema.tables"
    " WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND create_time IS NOT NULL"
)


@dataclass(slots=True)
class Unheard:
    """One run's knowledge of them."""

    pipeline: Pipeline
    lake: LakeFiles
    info_of: Callable[[str], ConnectionInfo]
    _made: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)  # by source: Unix time, in seconds

    def tables(self) -> list[Physical]:
        """A source that can't be asked now is asked with the next call. Raises LakeUnavailable."""
        found: list[Physical] = []
        cut_seconds: float | None = None
        for source, of in self.pipeline.sources.items():
            if not isinstance(of, MysqlSource) or not (made := self._of(source)):
                continue
            known = newest_statuses(self.lake, source)
            if not known:  # capture has yet to begin
                continue
            for name in known.keys() & made.keys():
                del made[name]
            if made and cut_seconds is None:
                cut_seconds = physical_ms(cut_ts(self.lake)) / 1000 - SNAPSHOT_UNHEARD_SECONDS
            found += [(source, *name) for name, at in made.items() if cut_seconds is not None and at < cut_seconds]
        return sorted(found)

    def _of(self, source: str) -> dict[tuple[str, str], float]:
        if source not in self._made:
            try:
                rows = self._asked(source)
            except (TidegateError, pymysql.err.MySQLError, OSError):  # who reads the source says why it can't be asked
                return {}
            keeps = self.pipeline.tables.keeps
            self._made[source] = {(database, table): at for database, table, at in rows if keeps(database, table)}
        return self._made[source]

    def _asked(self, source: str) -> list[tuple[str, str, float]]:
        with connect(self.info_of(source)) as connection, connection.cursor() as cursor:
            cursor.execute(_MADE)
            return [(str(database), str(table), float(at)) for database, table, at in cursor.fetchall()]
