"""Whether bronze certainly has the rows that silver lacks: then the table catches up without its
source.

In:  the facts of bronze and control tables about a logical table with one physical table.
Out: FromBronze: whether the table may go on from a commit_ts; from where it can be made anew; where
     it goes on after an Answer.

Only the plain case is certain: one physical table, and since then neither rows of a snapshot nor
rows of another table. Everything else is read from the source again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tidegate.commit_ts import FOREVER
from tidegate.config import Ddl, Policy, Tables
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.schema.follow.renames import RENAME, renamed_here
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.standing.silver import Answer, Unlike
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State


@dataclass(frozen=True, slots=True)
class FromBronze:
    """versions: all versions of the physical table, the oldest first. begin_ts: bronze begins after
    it. gap_ts: of an accepted gap that may have had DDL. keeps: whether silver keeps rows from
    before a CREATE or TRUNCATE. touched: for a commit_ts, whether the table's snapshot isn't
    over, or read rows with a larger commit_ts.
    """

    cut_ts: int
    versions: Sequence[TableVersion]
    begin_ts: int
    gap_ts: int
    keeps: bool
    touched: Callable[[int], bool]

    def way(self, verdict: Answer, standing: Standing | None) -> int | None:
        """The commit_ts from which the table catches up if silver contradicts control/; None: it
        waits for rows.
        """
        if verdict.applied_ts and self.reaches(verdict.applied_ts):
            return min(verdict.applied_ts, self.cut_ts)
        return self.beginning(standing) if verdict.unlike is Unlike.GONE else None

    def reaches(self, at_ts: int) -> bool:
        """Whether the log since at_ts alone makes the table whole, if silver has everything up to
        at_ts.
        """
        since = [version for version in self.versions if at_ts < version.commit_ts <= self.cut_ts]
        plain = not any(
            version.status.waits
            or version.kind in (SNAPSHOT, RENAME)
            or version.moved is not None
            or renamed_here(version)
            for version in since
        )
        return at_ts >= max(self.begin_ts, self.gap_ts) and plain and not self.touched(at_ts)

    def beginning(self, standing: Standing | None) -> int | None:
        """The commit_ts before the CREATE or TRUNCATE all its rows come after; None if it isn't
        certain.
        """
        # A released table goes on from its own applied_ts: up to a TRUNCATE above that, the log would fill it in part.
        is_below = standing is not None and standing.state is State.RELEASED
        mark_ts = standing.applied_ts if standing is not None and is_below else self.cut_ts
        known = [version for version in self.versions if version.commit_ts <= mark_ts]
        anew = [at for at, version in enumerate(known) if _anew(version) and (not self.keeps or at == 0)]
        begin_ts = max(0, known[anew[-1]].commit_ts - 1) if anew else 0
        return begin_ts if begin_ts and self.reaches(begin_ts) else None


def all_versions(lake: LakeFiles, wanted: Collection[Physical]) -> dict[Physical, list[TableVersion]]:
    """The versions of each of these physical tables, oldest first. Raises LakeUnavailable."""
    of_physical: dict[Physical, list[TableVersion]] = {physical: [] for physical in wanted}
    if not of_physical:
        return of_physical
    sources = {physical.source for physical in of_physical}
    rows = needed_rows(lake, sources, lambda *name: -1 if Physical(*name) in of_physical else FOREVER)
    for row in (row for of in rows.values() for row in of.rows):
        of_table = of_physical.get(Physical(row["source"], row["database"], row["table"]))
        if of_table is not None:
            of_table.append(TableVersion.from_row(row))
    for versions in of_physical.values():
        versions.sort(key=lambda version: (version.commit_ts, version.version))
    return of_physical


def keeps_rows(tables: Tables, ddl: Ddl, database: str, table: str) -> bool:
    """Whether a silver table keeps rows from before a CREATE or TRUNCATE."""
    return tables.keeps_past(database, table) or Policy.IGNORE in (ddl.truncate, ddl.drop_table)


def _anew(version: TableVersion) -> bool:
    return version.kind in ("create", "truncate") and version.status is VersionStatus.ACTIVE
