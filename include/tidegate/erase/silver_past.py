"""Leave a silver table only the rows that it should have: no dead row in a file, no older version.

In:  the table, while no apply, maintain or rebuild of the pipeline is at work; rows of the past that go, too.
Out: files without deletion vectors; one version, named by the newest cut (older_versions.py).

All dead rows go, of any person. Only a table with a past (tables.history, tables.soft_delete) may have rows of the
person that aren't dead in a file: ended ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.delta.exchange import exchange
from tidegate.delta.leases.lease import Lease
from tidegate.delta.log import DeltaLog
from tidegate.erase.in_silver import SubjectInSilver
from tidegate.erase.older_versions import OlderVersions
from tidegate.errors import LakeRefused, SilverUnlike
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite as rewrite_rows
from tidegate.lake.cuts.kept_cuts import kept_rows, needed
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import compared, said_by
from tidegate.lake.silver.sizes import size_cells
from tidegate.lake.standing.held import behind
from tidegate.standing.silver import told
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import rewrite


@dataclass(slots=True)
class SilverPast:
    """name: logical. purged: files. ended: rows of the past that went. cuts: rows of control/cuts that went."""

    lake: LakeFiles
    pipeline: Pipeline
    name: str
    rows: SubjectInSilver
    older: OlderVersions
    purged: int = 0
    ended: int = 0
    cuts: int = 0

    def forget(self, leases: Sequence[Lease]) -> None:
        """Run all steps in this order. After a kill the next run does what is left. leases: those of all other writers
        of the table. Raises Overtaken if one is lost, and as check_published.
        """
        self.check_published()
        self._purge(self.lake.log(self.rows.path))
        failpoint("erase_after_purge")
        version = self.older.begin()
        self.check_published()  # behind the new name nobody would see what another writer did since
        self._name_version(version)
        failpoint("erase_before_files")
        self.older.forget(leases)

    def check_published(self) -> None:
        """Raises SilverUnlike if another writer took rows back, or lost some: the new version would
        count as published, and no apply would see it any more.
        """
        said, app_id = said_by(self._newest()), tables.app_id(self.pipeline.pipeline, self.name)
        verdict = compared(self.lake, self.lake.log(self.rows.path), app_id, said)
        if verdict.unlike is not None:
            what = f"{told(self.name, verdict, said)}; its silver isn't erased from"
            remedy = "run apply: the table waits then, and says what ends that; then run this again"
            raise SilverUnlike(what, where=self.rows.path, remedy=remedy)

    @property
    def line(self) -> str:
        """Counts of what was done."""
        ended = f"{self.ended} rows of its past, " if self.ended else ""
        return f"{self.older.line}: {ended}{self.purged} files purged, {self.cuts} rows of older cuts"

    def _purge(self, log: DeltaLog) -> None:
        """Files with dead rows, or with the person's, are written anew without them."""
        state = log.state()
        layout = FileLayout.of(state, state.clustering_columns)
        for file in state.files:
            gone = self.rows.count(file, state)
            if file.deletion_vector is None and not gone:
                continue
            adds = rewrite(self.lake, self.rows.path, [file], layout, stays=self.rows.without, data_change=bool(gone))
            exchange(log, [file], adds, operation="DELETE" if gone else "PURGE", data_change=bool(gone))
            self.purged += 1
            self.ended += gone

    def _name_version(self, version: int) -> None:
        """The newest cut names this version, and no older cut is kept: its version of the table is gone."""
        now, newest = datetime.now(UTC), self._newest()
        sizes = size_cells(self.lake.log(self.rows.path).state())
        row = {**newest, "delta_version": version, "published_at": behind(newest["published_at"]), **sizes}
        control.append(self.lake, tables.CUTS, [row])
        thin = self.pipeline.maintain.thin_cuts_seconds
        counts = rewrite_rows(self.lake, tables.CUTS, lambda rows: kept_rows(rows, now, timedelta(0), thin))
        self.cuts = counts[0] - counts[1] if counts is not None else 0

    def _newest(self) -> dict[str, Any]:
        """Its row of control/cuts that the newest cut resolves to."""
        newest = needed(control.read(self.lake, tables.CUTS))[self.name].newest
        if newest is None:
            raise LakeRefused("no cut names it", where=self.name)
        return newest
