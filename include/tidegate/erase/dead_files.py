"""Delete files that bronze's tables no longer name, at once, and not after the retention for readers.

In:  a table of bronze, while no apply, rebuild or maintain of the pipeline is at work.
Out: how many are gone, and how many stay: files that no commit ever named, too young to know that none will.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from tidegate.delta.cleaning.vacuum import unneeded
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import commit_version
from tidegate.lake.files import LakeFiles


class DeadFiles(NamedTuple):
    """young: those that stay."""

    deleted: int
    young: int


def unlisted(lake: LakeFiles) -> list[str]:
    """The values that no listing of the lake shows, for people: what is left of them."""
    if lake.is_local:
        return []
    return ["parts of uploads that a kill broke off: the bucket's lifecycle rule removes them"]


def delete_dead(lake: LakeFiles, path: str) -> DeadFiles:
    """path: the table's, within the lake. Raises LakeUnavailable, LakeRefused."""
    log = lake.log(path)
    written_ms = lake.written_ms(path)  # before the state: what is committed meanwhile is in that
    state = log.state()
    if not state.created:
        return DeadFiles(0, 0)
    live = {file.local_path for file in state.files}
    removed = set(_removed(log)) | set(unneeded(log, written_ms, keep_seconds=0))
    dead = [name for name in written_ms if name not in live]
    gone = [name for name in dead if name in removed]
    for folder, names in _by_folder(gone).items():
        lake.store(f"{path}/{folder}".rstrip("/")).delete(names)
    return DeadFiles(len(gone), len(dead) - len(gone))


def _removed(log: DeltaLog) -> Iterator[str]:
    """Files that a commit in the log took out."""
    for entry in log.store.names():
        version = commit_version(entry.name)
        for action in (log.actions(version) or ()) if version is not None else ():
            if "remove" in action:
                yield unquote(action["remove"]["path"])


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    return folders
