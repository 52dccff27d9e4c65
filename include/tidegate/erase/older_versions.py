"""Remove a Delta table's older versions, and the values in its log.

In:  a table of silver or a changelog, while nobody else writes it.
Out: one version that can be read; commits of earlier ones without values.

Readers of older versions lose them. Commits of earlier versions keep their names, so a writer that is based on an old
version can't take one of these names. They lose the smallest and largest values of files, and the texts of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.exchange import exchange
from tidegate.delta.leases.lease import Lease
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LOG, SIDECARS, commit_version, expires_at
from tidegate.delta.table.actions import lines, now_ms, parsed
from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.upsert.deletions.deletion_vector import stored_path

_TOUCH: Final = "TOUCH"
_FILES: Final = ("add", "remove", "cdc")


@dataclass(slots=True)
class OlderVersions:
    """path: the table's, within the lake. deleted: files. commits: those without values now. version: the last one."""

    lake: LakeFiles
    path: str
    deleted: int = 0
    commits: int = 0
    version: int = -1

    @property
    def line(self) -> str:
        """Counts of what was done."""
        gone = f"{self.deleted} files deleted, {self.commits} entries of its log without values"
        return f"at version {self.version}, {gone}"

    def begin(self) -> int:
        """A new version that changes nothing, with a checkpoint: nothing before it is needed to read the table."""
        log = self.lake.log(self.path)
        state = exchange(log, [], [], operation=_TOUCH)
        self.version = state.version
        checkpoint_write.write(log.store, state.version, now_ms=now_ms(), files=len(state.files))
        return self.version

    def forget(self, leases: Sequence[Lease]) -> None:
        """Call it after begin(). leases: those of all other writers of the table. Raises Overtaken if one is lost."""
        log = self.lake.log(self.path)
        self._delete_files(log, leases)
        self._redact(log)

    def _delete_files(self, log: DeltaLog, leases: Iterable[Lease]) -> None:
        """Whatever lies in its folder and isn't of its newest version, nor its log."""
        base = self.lake.local(self.path)
        listed = self.lake.filesystem.get_file_info(pafs.FileSelector(base, recursive=True))
        live = set[str]()
        for file in log.state().files:  # after the listing: what is committed meanwhile is in the state
            live.update(_paths(self.lake, self.path, file))
        whole = [path for path in live if path.startswith("/") or urlsplit(path).scheme]
        for lease in leases:
            lease.check()
        for info in listed:
            path = info.path[len(base) :].lstrip("/")
            is_live = path in live or any(place.endswith(f"/{path}") for place in whole)
            if info.is_file and not is_live and path.split("/", 1)[0] != LOG:
                self.lake.filesystem.delete_file(info.path)
                self.deleted += 1

    def _redact(self, log: DeltaLog) -> None:
        """No entry of the log before the version has values; its checkpoints go."""
        store = log.store
        gone = []
        for entry in store.names():
            number = commit_version(entry.name)
            if number is not None and number < self.version:
                self.commits += _redacted(log, entry.name)
            elif number is None and (at := expires_at(entry.name)) is not None and at <= self.version:
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
    """Other writers' lines, too: one may name several kinds, most of them null, or have a text as its commitInfo."""
    kept = dict[str, Any]()
    for kind, body in action.items():
        kept[kind] = body
        gone = ("stats", "stats_parsed") if kind in _FILES else ("userMetadata", "operationMetrics")
        if isinstance(body, Mapping) and kind in (*_FILES, "commitInfo"):
            kept[kind] = {name: value for name, value in body.items() if name not in gone}
        if kind == "commitInfo":
            kept[kind] = (kept[kind] if isinstance(body, Mapping) else {}) | {"operationParameters": {}}
    return kept


def _paths(lake: LakeFiles, table: str, file: LiveFile) -> set[str]:
    """A live file's path and its deletion vector's, within the table's folder."""
    paths = {_inside(lake, table, unquote(file.path))}
    vector = file.deletion_vector
    if vector is not None and vector.storage_type != "i":
        paths.add(stored_path(lake, table, vector).removeprefix(f"{table}/"))
    return paths


def _inside(lake: LakeFiles, table: str, path: str) -> str:
    """A file's path within the table's folder, also of one that the log names by its whole place. A place by another
    name (a link, a mount, a store's other scheme) stays as it is.
    """
    root = lake.uri(table)
    for begin in (root, f"file://{root}", f"file:{root}", root.replace("s3://", "s3a://")):
        if path.startswith(f"{begin}/"):
            return path.removeprefix(f"{begin}/")
    return path
