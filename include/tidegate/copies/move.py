"""Move a lake to another place: first a copy while everything runs, then the later changes while
everything rests.

In:  a lake, a folder for it, the leases of its pipeline.
Out: the lake there; the old one stays as it is, and says where it went (lake/format/unfinished.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from tidegate.copies.backup import Backup, Report, check_source
from tidegate.copies.manifest import CopyManifest
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.unfinished import FOLDER, NAME, FolderKind, Paper
from tidegate.limits import COPY_ATTEMPTS_MAX


class Held(Protocol):
    """The held leases."""

    def check(self) -> None:
        """Raises Overtaken when one of them isn't held any more."""


def check_target(pipeline: str, lake: LakeFiles, target: LakeFiles) -> None:
    """Writes nothing. Raises UsageError where the lake can't go there, and as check_source."""
    if not _has_moved(lake, target):
        check_source(lake, pipeline)
        Backup(pipeline, lake, target, lambda _: None, kind=FolderKind.MOVE).check()


def move(
    pipeline: str,
    lake: LakeFiles,
    target: LakeFiles,
    alone: Callable[[], AbstractContextManager[Held]],
    report: Report,
) -> CopyManifest | None:
    """None when an earlier call had done all but its last step. alone: holds the pipeline's leases.

    Raises LeaseHeld when somebody still works on the lake: everything copyable by then is copied.
    LakeRefused where a table can't be copied: nothing is left behind in silence. LakeUnavailable
    while control changes all the time. Overtaken where the leases were lost meanwhile, as when the
    machine slept: others may have written since, so the lake stays where it is.
    """
    if _has_moved(lake, target):
        ours = Paper.read(target.store(FOLDER))
        # Otherwise the lake may have gone on from there, or the folder may be a backup by now.
        if ours is not None and ours.kind is FolderKind.MOVE:
            target.store(FOLDER).delete([NAME])
        return None

    def work() -> Backup:
        return Backup(pipeline, lake, target, report, kind=FolderKind.MOVE)

    work().run()
    with alone() as held:
        report("nobody works on the lake: what has changed meanwhile is copied")
        made = None
        for _ in range(COPY_ATTEMPTS_MAX):
            made = _moved(lake, target, work(), held)
            if made is not None:
                break
            report("somebody wrote to control meanwhile: what has changed is copied again")
        if made is None:
            raise LakeUnavailable(
                "control tables changed each time that they were copied",
                where=lake.root,
                remedy="pause all DAGs of the pipeline, verify's and snapshots' too, and run this again",
            )
        failpoint("move_before_end")
        target.store(FOLDER).delete([NAME])
    return made


def _moved(lake: LakeFiles, target: LakeFiles, work: Backup, held: Held) -> CopyManifest | None:
    """Copy the rest, and note at the old place where the lake is. None if somebody wrote to control
    meanwhile without a lease: a person's answer, a verification.
    """
    made = work.run()
    if made.lacks:
        raise LakeRefused(
            f"{', '.join(sorted(made.lacks))} can't be copied",
            where=lake.root,
            remedy="remove the fault that is named for it, or move its folder away; then move the lake again",
        )
    failpoint("move_before_check")
    held.check()
    Paper(FolderKind.MOVED, work.pipeline, target.root).write(lake.store(FOLDER))
    is_whole = False
    try:
        held.check()  # nobody began between the first check and the paper, which refuses whoever begins now
        is_whole = work.has_control(made)
    finally:
        if not is_whole:
            lake.store(FOLDER).delete([NAME])
    return made if is_whole else None


def _has_moved(lake: LakeFiles, target: LakeFiles) -> bool:
    paper = Paper.read(lake.store(FOLDER))
    return paper is not None and paper.kind is FolderKind.MOVED and paper.other == target.root
