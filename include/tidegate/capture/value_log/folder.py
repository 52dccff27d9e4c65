"""The folder of a source's value log. It doesn't depend on the pipeline's other sources.

In:  a pipeline, a source in it, the folder for logs without a path of their own.
Out: value_log_folder(): the log's folder. settled_folder(): the same, after a log at an old place
     was moved there.

Once, a log was directly in capture.value_log_path if the pipeline had one source, and in a
subfolder if it had several. Therefore a second source made the first one's log vanish, with its
acknowledged commits. Such a log is moved to its present place: its files go one by one into a
folder beside it, which is renamed in the end. A start killed in between leaves both parts, and the
next start continues with them.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tidegate.capture.value_log.file import file_number, opened
from tidegate.capture.value_log.kept_head import TAIL
from tidegate.config import Pipeline
from tidegate.delta.stores.store import sync
from tidegate.errors import Fenced, ValueLogError
from tidegate.failpoint import failpoint
from tidegate.limits import VALUE_LOG_LEFT_DAYS
from tidegate.segments.segment import Segment

log = logging.getLogger(__name__)

LOCK: Final = "lock"
_ID: Final = "id"
_BESIDE: Final = ("status.json", TAIL)
_LEFT: Final = ".left-"
_STAMP: Final = "%Y%m%dT%H%M%S%f"


def value_log_folder(pipeline: Pipeline, source: str, state_dir: Path) -> Path:
    """A source's value log. capture.value_log_path has a folder for each source."""
    if pipeline.capture.value_log_path is None:
        return state_dir / "value_log" / pipeline.pipeline / source
    return Path(pipeline.capture.value_log_path) / source


def settled_folder(
    pipeline: Pipeline, source: str, state_dir: Path, landed: Callable[[Segment], bool] = lambda _: False
) -> Path:
    """Where to open the value log, after a log at its old place was moved there. landed: whether
    bronze has a segment. If there are two logs, the one whose newest segment bronze has is
    useless. Raises Fenced, ValueLogError.
    """
    folder = value_log_folder(pipeline, source, state_dir)
    if pipeline.capture.value_log_path is not None:
        try:
            _bring(folder, source, landed)
        except OSError as error:
            raise ValueLogError(
                f"the value log of {source} can't be brought from its old place: {error.strerror}",
                where=str(folder),
                remedy=f"move the .vlog files of {folder.parent} into it, while no capture runs",
            ) from error
    return folder


def aside(folder: Path) -> Path:
    """A place for a log that is no longer used, for a person to look at."""
    return folder.with_name(f"{folder.name}{_LEFT}{datetime.now(UTC):{_STAMP}}")


def remove_left(folder: Path) -> None:
    """Remove logs moved aside long ago: each may be as large as the log's budget."""
    oldest = datetime.now(UTC) - timedelta(days=VALUE_LOG_LEFT_DAYS)
    for path in folder.parent.glob(f"{folder.name}{_LEFT}*"):
        try:
            at = datetime.strptime(path.name.removeprefix(f"{folder.name}{_LEFT}"), _STAMP).replace(tzinfo=UTC)
        except ValueError:  # not one of our names
            continue
        if at < oldest and path.is_dir():
            log.warning("removing %s, which was moved aside %d days ago or more", path, VALUE_LOG_LEFT_DAYS)
            shutil.rmtree(path, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """Make a folder, and sync its name, and those of new folders above it.
    Raises OSError.
    """
    made = [folder]
    while not made[-1].parent.exists():
        made.append(made[-1].parent)
    folder.mkdir(parents=True, exist_ok=True)
    for new_folder in made:
        sync(str(new_folder.parent))


def log_id(folder: Path) -> str:
    """The id of the log in a folder, for the lake. It stays when the folder is moved. The first
    call makes it. Raises OSError.
    """
    path = folder / _ID
    if not path.exists():
        new = folder / f"{_ID}.new"
        new.write_text(uuid.uuid4().hex)
        sync(str(new))
        new.rename(path)
        sync(str(folder))
    return path.read_text().strip()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Raises Fenced if a process has the log there open."""
    with (folder / LOCK).open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise fenced(folder) from error
        yield


def fenced(folder: Path) -> Fenced:
    return Fenced(
        "another process captures this source on this machine",
        where=str(folder),
        remedy="stop it first; if it captures for another pipeline, give each a capture.value_log_path of its own",
    )


def _bring(folder: Path, source: str, landed: Callable[[Segment], bool]) -> None:
    old, halfway = folder.parent, folder.with_name(f".{folder.name}.moving")
    if not halfway.exists() and _owner(old) != source:
        return
    with ExitStack() as held:
        held.enter_context(locked(old))
        if not halfway.exists() and _owner(old) != source:  # another process was faster
            return
        if folder.exists():
            held.enter_context(locked(folder))
            ours, theirs = _newest(folder), _newest(old)
            if ours is not None and not halfway.exists() and theirs is not None and landed(theirs):
                left = aside(folder)
                _move(old, left)
                log.warning("bronze has all of the value log in %s; it was moved aside to %s", old, left)
                return
            if ours is not None and not landed(ours):
                raise ValueLogError(
                    f"source {source} has two value logs, here and in {halfway if halfway.exists() else old}; it isn't"
                    " known which one has segments beyond bronze",
                    where=str(folder),
                    remedy="`tidegate vlog ls FOLDER` lists the segments of each. Move the one of the other lake away",
                )
            folder.rename(aside(folder))
        _move(old, halfway)
        halfway.rename(folder)
        sync(str(old))
    log.warning("the value log of %s was moved from %s to %s", source, old, folder)


def _move(old: Path, folder: Path) -> None:
    """Move a log's files and those beside them, the oldest first. A kill leaves a log in both
    places.
    """
    make_folder(folder)
    for path in [*_files(old), *(old / name for name in _BESIDE if (old / name).exists())]:
        path.rename(folder / path.name)
        failpoint("capture_log_half_moved")
    sync(str(folder))
    sync(str(old))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.vlog"), key=file_number)


def _owner(folder: Path) -> str:
    """The source of a log's segments; "" if there are none, or no log."""
    for path in _files(folder):
        if path.stat().st_size:
            with opened(path) as file:
                for record in file.heads():
                    return record.segment.source
    return ""


def _newest(folder: Path) -> Segment | None:
    for path in reversed(_files(folder)):
        if path.stat().st_size:
            with opened(path) as file:
                newest = None
                for record in file.heads():
                    newest = record.segment
                if newest is not None:
                    return newest
    return None
