"""One flat folder of small objects, on a disk or in an object store. A name in it is made at most
once.

In:  a folder or URL, and storage options with delta-rs's names.
Out: LogStore: a durable put-if-absent, replace, get, stat, names, delete.

On a disk, put-if-absent is a hard link from a finished file to the name. Nobody sees half an
object, and link(2) fails if the name is taken, also over NFS. In an object store (object_store.py)
it is a conditional PUT.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, NoReturn, Protocol

from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.failpoint import failpoint

# The file in which a name's data is written before the link: .<name>.<process>.<number>.<random>.tmp
_TEMPORARY: Final = re.compile(r"\..+\.\d+\.\d+\.[0-9a-f]{8}\.tmp")
REFUSED: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR}
_FULL: Final = {errno.ENOSPC, errno.EDQUOT}
_NO_HARD_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
# For a store that can't make an object on condition that it doesn't exist.
CONDITIONS_REMEDY: Final = (
    "put the lake in a store with conditional writes (If-None-Match: *), which AWS S3, Azure and GCS have, MinIO and"
    " Ceph in newer releases, and which aws_conditional_put doesn't switch off; or on a disk"
)


class Entry(NamedTuple):
    """One object of the folder. modified_ms: Unix time by the store's clock, for people and
    retention only. mark: the store's own name for the content (its ETag), "" without one: a disk
    has none.
    """

    name: str
    size: int
    modified_ms: int
    mark: str = ""

    def is_same(self, other: Entry | None) -> bool:
        """Whether both are looks at the same object: nobody has put another one in its place."""
        if other is None:
            return False
        if self.mark and other.mark:
            return (self.name, self.size, self.mark) == (other.name, other.size, other.mark)
        return self[:3] == other[:3]


class LogStore(Protocol):
    """A flat folder. Names have no slash and no dot in front; each call raises LakeUnavailable or LakeRefused."""

    where: str

    def folder(self, name: str) -> LogStore:
        """A folder in this one."""

    def get(self, name: str) -> bytes | None:
        """All of an object; None when there is none."""

    def stat(self, name: str) -> Entry | None:
        """Its size and age; None when there is none."""

    def create(self, name: str, data: bytes) -> bool:
        """Put-if-absent; durable when it returns.

        True: this call made the object. False: the name is taken, perhaps by this very call: the
        store's client may have repeated the request after a lost answer. Therefore the caller reads it
        back, and looks for its own mark. LakeUnavailable: unknown.
        """

    def make(self, name: str, data: bytes) -> tuple[bool, str]:
        """As create. With it comes the mark that `stat` gives to what this call made, "" without one.
        Then it must be read back, so that it can be told from another's later on.
        """

    def replace(self, name: str, data: bytes) -> None:
        """Write an object over any present one: the last writer wins, and no reader sees a part."""

    def names(self, start: str = "") -> list[Entry]:
        """Objects of this folder (not of folders in it) with name >= start, in the order of their names."""

    def below(self, behind: str) -> list[Entry] | None:
        """Objects of this folder and of folders in it with paths > behind, in order of paths: one
        page, by one request.

        Fewer than STORE_PAGE_FILES: there are no more. None if the store can't begin a listing at a
        name.
        """

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects. A missing one is no error."""


class LocalStore:
    """A folder on a disk or a network file system with hard links. The first create makes the folder."""

    def __init__(self, folder: str) -> None:
        assert folder.startswith("/"), folder
        self.where = folder.rstrip("/") or "/"
        self._attempt = itertools.count()

    def folder(self, name: str) -> LocalStore:
        return LocalStore(self._path(name))

    def get(self, name: str) -> bytes | None:
        try:
            with open(self._path(name), "rb") as file:  # noqa: PTH123 - a third of Path.read_bytes' time
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._raise("read", name, error)

    def stat(self, name: str) -> Entry | None:
        try:
            status = os.stat(self._path(name))  # noqa: PTH116
        except FileNotFoundError:
            return None
        except OSError as error:
            self._raise("looked at", name, error)
        return Entry(name, status.st_size, status.st_mtime_ns // 1_000_000)

    def changed_ms(self, name: str) -> int:
        """When an object was last written, linked, or got another owner or mode; 0 if it doesn't
        exist.

        No copy takes this time along (cp -a, rsync), as it does with an Entry's.
        """
        try:
            status = os.stat(self._path(name))  # noqa: PTH116
        except FileNotFoundError:
            return 0
        except OSError as error:
            self._raise("looked at", name, error)
        return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000

    def create(self, name: str, data: bytes) -> bool:
        try:
            with self._written(name, data) as temporary:
                failpoint("store_before_link")
                made = self._link(temporary, name)
                failpoint("store_after_link")
            # Also if the name is taken: what the caller reads there now must survive a power cut.
            sync(self.where)
        except OSError as error:
            self._raise("made", name, error)
        return made

    def make(self, name: str, data: bytes) -> tuple[bool, str]:
        return self.create(name, data), ""

    def replace(self, name: str, data: bytes) -> None:
        try:
            with self._written(name, data) as temporary:
                self._drop_checksum(name)
                os.replace(temporary, self._path(name))  # noqa: PTH105
            sync(self.where)
        except OSError as error:
            self._raise("written", name, error)

    def names(self, start: str = "") -> list[Entry]:
        listed = []
        try:
            with os.scandir(self.where) as entries:
                for entry in entries:
                    if entry.name >= start and not entry.name.startswith("."):
                        with suppress(FileNotFoundError):  # removed meanwhile
                            facts = entry.stat()
                            if stat.S_ISREG(facts.st_mode):
                                listed.append(Entry(entry.name, facts.st_size, facts.st_mtime_ns // 1_000_000))
        except FileNotFoundError:
            return []
        except OSError as error:
            self._raise("listed", "", error)
        return sorted(listed)

    def below(self, behind: str) -> list[Entry] | None:
        del behind  # a disk has no such order
        return None

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._drop_checksum(name)
                os.unlink(self._path(name))  # noqa: PTH108
            except FileNotFoundError:
                continue
            except OSError as error:
                self._raise("removed", name, error)

    def remove_unfinished(self, before_ms: int) -> int:
        """See the function remove_unfinished."""
        removed = 0
        try:
            with os.scandir(self.where) as entries:
                for entry in entries:
                    if _TEMPORARY.fullmatch(entry.name):
                        with suppress(FileNotFoundError):  # its writer lives, and has finished
                            if entry.stat().st_mtime_ns < before_ms * 1_000_000:
                                os.unlink(entry.path)  # noqa: PTH108
                                removed += 1
        except FileNotFoundError:
            return 0
        except OSError as error:
            self._raise("cleaned", "", error)
        return removed

    def _drop_checksum(self, name: str) -> None:
        """Remove the checksum file that Spark wrote for the old content: Hadoop trusts it more than
        the file.
        """
        with suppress(FileNotFoundError):
            os.unlink(f"{self.where}/.{checked(name)}.crc")  # noqa: PTH108

    def _path(self, name: str) -> str:
        return f"{self.where}/{checked(name)}"

    @contextmanager
    def _written(self, name: str, data: bytes) -> Iterator[str]:
        """A temporary file with the data, on disk; removed afterwards. After a kill, its dot hides
        it from names().
        """
        temporary = f"{self.where}/.{checked(name)}.{os.getpid()}.{next(self._attempt)}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            make_folder(self.where)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            yield temporary
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108

    def _link(self, temporary: str, name: str) -> bool:
        try:
            os.link(temporary, self._path(name))
        except FileExistsError:
            # NFS: the answer was lost, the client asked again, and met its own link.
            with suppress(FileNotFoundError):
                return os.path.samestat(os.stat(temporary), os.stat(self._path(name)))  # noqa: PTH116
            return False
        except OSError as error:
            if error.errno in _NO_HARD_LINKS:
                raise LakeRefused(
                    f"this file system makes no hard links ({error.strerror}), so two writers would not see each other",
                    where=self.where,
                    remedy="put the lake on one that does (ext4, xfs, NFS), or in an object store",
                ) from error
            raise
        return True

    def _raise(self, done: str, name: str, error: OSError) -> NoReturn:
        kind = LakeRefused if error.errno in REFUSED else LakeUnavailable
        raise kind(
            f"{name or 'it'} can't be {done}: {error.strerror or error}", where=self.where, remedy=disk_remedy(error)
        ) from error


def disk_remedy(error: OSError) -> str:
    """The remedy for a disk's error."""
    rights = "check its owner and rights" if error.errno in REFUSED else ""
    return room_remedy(error) or rights or "check the disk"


def room_remedy(error: BaseException) -> str:
    """The remedy for a full disk; "" for any other error."""
    is_full = isinstance(error, OSError) and error.errno in _FULL
    return "make room on its disk: docs/runbooks/disk-full.md" if is_full else ""


def remove_unfinished(store: LogStore, before_ms: int) -> int:
    """Remove files of writers that were killed before a certain time, from a folder on a disk.
    Returns how many.

    before_ms: Unix time, longer ago than any call takes. An object store has nothing unfinished.
    Raises LakeUnavailable, LakeRefused.
    """
    return store.remove_unfinished(before_ms) if isinstance(store, LocalStore) else 0


def sync(path: str) -> None:
    """Sync a file's bytes, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: str) -> None:
    """Make a folder with its parents; each is synced in the one above it when this returns."""
    parent = os.path.dirname(folder)  # noqa: PTH120
    if not os.path.isdir(parent):  # noqa: PTH112
        make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(folder)  # noqa: PTH102
    sync(parent)


def checked(name: str) -> str:
    assert not name.startswith("."), name
    assert name == os.path.basename(name) != "", name  # noqa: PTH119
    return name
