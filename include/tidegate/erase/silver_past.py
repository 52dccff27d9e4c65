"""A silver table without anything but its live rows: no dead row in a file, no older version, no old statistics.

In:  the table, while no apply, maintain or rebuild of the pipeline is at work.
Out: files without deletion vectors; one version, named by the newest cut; commits of earlier ones without values.

It takes no keys: everything but a live row goes, whosever it was. A reader of an older version of the table loses it.
Commits of earlier versions stay under their names, so no writer with an old version in mind can take one. They lose the
smallest and largest values of files, and the texts of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.fs as pafs

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.delta.actions import lines, now_ms, parsed
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.exchange import exchange
from tidegate.delta.lease import Lease
from tidegate.delta.live_file import LiveFile
from tidegate.delta.log import DeltaLog
from tidegate.delta.names import LOG, SIDECARS, commit_version, expires_at
from tidegate.errors import LakeRefused
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite as rewrite_rows
from tidegate.lake.files import LakeFiles
from tidegate.lake.kept_cuts import kept_rows, needed
from tidegate.upsert.deletion_vector import stored_path
from tidegate.upsert.file_layout import FileLayout
from tidegate.upsert.rewrite import rewrite

_TOUCH: Final = "TOUCH"
_FILES: Final = ("add", "remove", "cdc")


@dataclass(slots=True)
class SilverPast:
    """path: the table's, within the lake. name: logical. deleted: files. commits: that lost values."""

    lake: LakeFiles
    pipeline: Pipeline
    name: str
    path: str
    rewritten: int = 0
    deleted: int = 0
    commits: int = 0
    cuts: int = 0
    version: int = field(default=-1)

    def forget(self, leases: Sequence[Lease]) -> None:
        """All of it, in this order: what a kill leaves is done by the next run. leases: of who else writes the table.
        Raises Overtaken where one of them is lost.
        """
        log = self.lake.log(self.path)
        self._purge(log)
        failpoint("erase_after_purge")
        state = exchange(log, [], [], operation=_TOUCH)
        self.version = state.version
        checkpoint_write.write(log.store, state.version, now_ms=now_ms(), files=len(state.files))
        self._name_version()
        failpoint("erase_before_files")
        self._delete_files(log, leases)
        self._redact(log, state.version)

    def _purge(self, log: DeltaLog) -> None:
        """Files with dead rows are written anew without them."""
        state = log.state()
        layout = FileLayout.of(state, state.clustering_columns)
        for file in state.files:
            if file.deletion_vector is not None:
                exchange(log, [file], rewrite(self.lake, self.path, [file], layout), operation="PURGE")
                self.rewritten += 1

    def _name_version(self) -> None:
        """The newest cut names this version, and no older cut is kept: its version of the table is gone."""
        now = datetime.now(UTC)
        newest = needed(control.read(self.lake, tables.CUTS))[self.name].newest
        if newest is None:
            raise LakeRefused("no cut names it", where=self.name)
        control.append(
            self.lake, tables.CUTS, [{**newest, "delta_version": self.version, "published_at": datetime.now(UTC)}]
        )
        thin = self.pipeline.maintain.thin_cuts_seconds
        counts = rewrite_rows(self.lake, tables.CUTS, lambda rows: kept_rows(rows, now, timedelta(0), thin))
        self.cuts = counts[0] - counts[1] if counts is not None else 0

    def _delete_files(self, log: DeltaLog, leases: Iterable[Lease]) -> None:
        """Whatever lies in its folder and isn't of its newest version, nor its log."""
        base = self.lake.local(self.path)
        listed = self.lake.filesystem.get_file_info(pafs.FileSelector(base, recursive=True))
        live = set[str]()
        for file in log.state().files:  # after the listing: what is committed meanwhile is in the state
            live.update(_paths(self.lake, self.path, file))
        for lease in leases:
            lease.check()
        for info in listed:
            path = info.path[len(base) :].lstrip("/")
            if info.is_file and path not in live and path.split("/", 1)[0] != LOG:
                self.lake.filesystem.delete_file(info.path)
                self.deleted += 1

    def _redact(self, log: DeltaLog, version: int) -> None:
        """No entry of the log before a version has values; its checkpoints go."""
        store = log.store
        gone = []
        for entry in store.names():
            number = commit_version(entry.name)
            if number is not None and number < version:
                self.commits += _redacted(log, entry.name)
            elif number is None and (at := expires_at(entry.name)) is not None and at <= version:
                gone.append(entry.name)
        store.delete(gone)
        sidecars = store.folder(SIDECARS)
        sidecars.delete([entry.name for entry in sidecars.names()])  # of the checkpoints that are gone


def _redacted(log: DeltaLog, name: str) -> bool:
    """Whether a commit had something to lose."""
    data = log.store.get(name)
    if data is None:
        return False
    made = lines([_without_values(action) for action in parsed(data)])
    if made == lines(parsed(data)):
        return False
    log.store.replace(name, made)
    return True


def _without_values(action: Mapping[str, Any]) -> dict[str, Any]:
    (kind, body), *_ = action.items()
    if kind in _FILES:
        return {kind: {name: value for name, value in body.items() if name not in ("stats", "stats_parsed")}}
    if kind == "commitInfo":
        kept = {name: value for name, value in body.items() if name not in ("userMetadata", "operationMetrics")}
        return {kind: kept | {"operationParameters": {}}}
    return dict(action)


def _paths(lake: LakeFiles, table: str, file: LiveFile) -> set[str]:
    """A live file's path and its deletion vector's, within the table's folder."""
    paths = {unquote(file.path)}
    vector = file.deletion_vector
    if vector is not None and vector.storage_type != "i":
        paths.add(stored_path(lake, table, vector).removeprefix(f"{table}/"))
    return paths
