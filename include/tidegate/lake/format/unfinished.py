"""The note in a folder that only looks like a lake: a backup, an unfinished restore, a lake moved
away.

In:  a lake's folder.
Out: Paper, the content of control/copy.json; LakeRefused if somebody uses such a folder as a lake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from tidegate.errors import LakeRefused

if TYPE_CHECKING:
    from tidegate.delta.stores.store import LogStore
    from tidegate.lake.format.folder import LakeFolder

FOLDER: Final = "control"
NAME: Final = "copy.json"


class FolderKind(StrEnum):
    """The kind of the folder."""

    BACKUP = "backup"
    RESTORE = "restore"  # will be a lake
    MOVE = "move"  # will be a lake
    MOVED = "moved"  # was a lake, which is elsewhere now


@dataclass(frozen=True, slots=True)
class Paper:
    """other: where the rows came from; of MOVED where they went. whole: of a complete backup, its
    manifest (copies/manifest.py); of a restore, {"id": of the backup}.
    """

    kind: FolderKind
    pipeline: str
    other: str
    whole: Mapping[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, store: LogStore) -> Self | None:
        """store: of the folder control. Raises LakeUnavailable, LakeRefused."""
        data = store.get(NAME)
        if data is None:
            return None
        try:
            document = json.loads(data)
            return cls(
                FolderKind(document["kind"]), str(document["pipeline"]), str(document["other"]), document["whole"]
            )
        except (ValueError, KeyError, TypeError) as error:
            raise LakeRefused(
                f"{NAME} says what this folder is a copy of, and can't be read", where=store.where, remedy="remove it"
            ) from error

    def write(self, store: LogStore) -> None:
        """Replaces another paper."""
        document = {"kind": self.kind, "pipeline": self.pipeline, "other": self.other, "whole": self.whole}
        store.replace(NAME, json.dumps(document, ensure_ascii=False).encode())


def check_is_lake(lake: LakeFolder) -> None:
    """Raises LakeRefused for a folder with a paper. Reads one object."""
    refusal = why_no_lake(lake)
    if refusal is not None:
        raise refusal


def why_no_lake(lake: LakeFolder) -> LakeRefused | None:
    """The error for everybody who would use the folder as a lake, in the paper's words; None
    without a paper. Raises LakeUnavailable.
    """
    store = lake.store(FOLDER)
    if store.stat(NAME) is None:
        return None
    paper = Paper.read(store)
    if paper is None:
        return None
    again = f"tidegate lake {paper.kind} {paper.pipeline}"
    what, remedy = {
        FolderKind.BACKUP: (
            f"this is a backup of {paper.other}, no lake",
            f"give the pipeline another lake.path, then `tidegate lake restore {paper.pipeline} {lake.root}`",
        ),
        FolderKind.RESTORE: (f"a restore of it from {paper.other} hasn't ended", f"run `{again} {paper.other}` again"),
        FolderKind.MOVE: (
            f"a move of {paper.other} to here hasn't ended",
            f"run `{again} {lake.root}` again, by the old path",
        ),
        FolderKind.MOVED: (
            f"this lake was moved to {paper.other}",
            f"set lake.path to {paper.other} in the pipeline file",
        ),
    }[paper.kind]
    return LakeRefused(what, where=lake.root, remedy=remedy)
