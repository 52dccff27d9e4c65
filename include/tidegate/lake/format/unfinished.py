"""The paper of a folder only like a lake: a backup, a restore under way, a lake moved away.

In:  a lake's folder.
Out: Paper, in control/copy.json; LakeRefused for whoever takes such a folder for a lake.
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
    from tidegate.lake.files import LakeFiles

FOLDER: Final = "control"
NAME: Final = "copy.json"


class FolderKind(StrEnum):
    """The kind of the folder."""

    BACKUP = "backup"
    RESTORE = "restore"  # a lake on its way
    MOVE = "move"  # a lake on its way
    MOVED = "moved"  # a lake that is elsewhere now


@dataclass(frozen=True, slots=True)
class Paper:
    """other: where the rows came from; of MOVED where they went. whole: of an ended backup, its
    manifest (copies/manifest.py); of a restore {"id": of the backup}.
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
        """In the place of another."""
        document = {"kind": self.kind, "pipeline": self.pipeline, "other": self.other, "whole": self.whole}
        store.replace(NAME, json.dumps(document, ensure_ascii=False).encode())


def check_is_lake(lake: LakeFiles) -> None:
    """Raises LakeRefused for a folder with such a paper. One look."""
    refusal = why_no_lake(lake)
    if refusal is not None:
        raise refusal


def why_no_lake(lake: LakeFiles) -> LakeRefused | None:
    """The refusal, in the paper's words, for anybody about to use the folder as a lake; None
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
