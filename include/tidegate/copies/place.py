"""A folder on a disk or in an object store, whose files are copied as streams.

In:  a folder's path or URL, and the store's options by delta-rs's names.
Out: CopyPlace: its files, each read in parts, written whole or not at all.

A file on a disk gets its name when all of it is on the disk. An object exists when all of it was
sent. A file with the original's size is a whole copy, also after a kill: no copied file is ever
changed under its name.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final, NamedTuple, NoReturn, Protocol

import obstore

from tidegate.delta.stores.object_store import ObjectStore
from tidegate.delta.stores.store import REFUSED, disk_remedy, make_folder, sync
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.limits import COPY_PART_BYTES, COPY_UPLOAD_THREADS_MAX

_LISTED_AT_ONCE: Final = 1000


class GoneMeanwhileError(Exception):
    """A file went, or became another, while it was to be copied. The message is its path."""


class File(NamedTuple):
    """path: within the listed folder."""

    path: str
    size: int


class CopyPlace(Protocol):
    """For any number of threads. Paths are relative to the place. Raises LakeUnavailable, LakeRefused."""

    where: str

    def files(self, path: str) -> Iterator[File]:
        """All files in a folder and below it, but for hidden ones; none without such a folder."""

    def folders(self, path: str) -> list[str]:
        """Names of the folders in a folder, in order; none without such a folder."""

    def read(self, path: str) -> Iterator[bytes]:
        """A file in parts. Raises GoneMeanwhileError when there is none."""

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        """A file with its folders; another one of its name is replaced. Durable when it returns."""

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when there is none."""


def place_of(root: str, options: Mapping[str, str]) -> CopyPlace:
    """root: an absolute local path or an s3://, gs:// or abfss:// URL."""
    return BucketPlace(root, options) if "://" in root else DiskPlace(root)


def copy_file(source: CopyPlace, target: CopyPlace, path: str, size: int) -> None:
    """Raises GoneMeanwhileError when the file isn't as listed any more."""
    target.write(path, _counted(source.read(path), path, size))


def _counted(parts: Iterable[bytes], path: str, size: int) -> Iterator[bytes]:
    """The parts; GoneMeanwhileError instead of an end at another size."""
    done = 0
    for part in parts:
        done += len(part)
        yield part
    if done != size:
        raise GoneMeanwhileError(path)


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


class DiskPlace:
    """A folder on a disk."""

    def __init__(self, root: str) -> None:
        self.where = root.rstrip("/") or "/"
        self._attempt = itertools.count()

    def files(self, path: str) -> Iterator[File]:
        base = self._at(path)
        for folder, folders, names in os.walk(base, onerror=self._listing_failed):
            folders[:] = sorted(name for name in folders if not _is_hidden(name))
            for name in sorted(name for name in names if not _is_hidden(name)):
                full = f"{folder}/{name}"
                with suppress(FileNotFoundError):  # removed since it was listed
                    yield File(full[len(base) + 1 :], os.stat(full).st_size)  # noqa: PTH116

    def folders(self, path: str) -> list[str]:
        try:
            with os.scandir(self._at(path)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir() and not _is_hidden(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            self._raise("listed", path, error)

    def read(self, path: str) -> Iterator[bytes]:
        try:
            with open(self._at(path), "rb", buffering=0) as file:  # noqa: PTH123 - a string is at hand
                while part := file.read(COPY_PART_BYTES):
                    yield part
        except FileNotFoundError as error:
            raise GoneMeanwhileError(path) from error
        except OSError as error:
            self._raise("read", path, error)

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        full = self._at(path)
        folder, _, name = full.rpartition("/")
        temporary = f"{folder}/.{name}.{os.getpid()}.{next(self._attempt)}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            make_folder(folder) if not os.path.isdir(folder) else None  # noqa: PTH112
            try:
                with open(temporary, "wb", buffering=0) as file:  # noqa: PTH123
                    for part in parts:
                        view = memoryview(part)
                        while view:
                            view = view[file.write(view) :]
                    os.fsync(file.fileno())
                os.replace(temporary, full)  # noqa: PTH105
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)  # noqa: PTH108
            sync(folder)
        except OSError as error:
            self._raise("written", path, error)

    def remove(self, path: str) -> None:
        try:
            os.unlink(self._at(path))  # noqa: PTH108
        except FileNotFoundError:
            return
        except OSError as error:
            self._raise("removed", path, error)

    def _at(self, path: str) -> str:
        return f"{self.where}/{path}".rstrip("/")

    def _listing_failed(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            self._raise("listed", str(error.filename or ""), error)

    def _raise(self, done: str, path: str, error: OSError) -> NoReturn:
        kind = LakeRefused if error.errno in REFUSED else LakeUnavailable
        what = f"{path or 'it'} can't be {done}: {error.strerror or error}"
        raise kind(what, where=self.where, remedy=disk_remedy(error)) from error


class BucketPlace(ObjectStore):
    """A folder of a bucket."""

    def files(self, path: str) -> Iterator[File]:
        base = f"{self._path}{path}".rstrip("/") + "/"
        with self._asked("listed", path, expected=False):
            for page in self._client.list(base if base != "/" else None, chunk_size=_LISTED_AT_ONCE):
                for item in page:
                    within = str(item["path"]).removeprefix(base)
                    if not any(_is_hidden(part) for part in within.split("/")):
                        yield File(within, int(item["size"]))

    def folders(self, path: str) -> list[str]:
        base = f"{self._path}{path}".rstrip("/") + "/"
        with self._asked("listed", path, expected=False):
            prefixes = self._client.list_with_delimiter(base if base != "/" else None)["common_prefixes"]
        names = sorted(PurePosixPath(prefix).name for prefix in prefixes)
        return [name for name in names if not _is_hidden(name)]

    def read(self, path: str) -> Iterator[bytes]:
        try:
            with self._asked("read", path):
                for part in self._client.get(self._path + path).stream(min_chunk_size=COPY_PART_BYTES):
                    yield bytes(part)
        except FileNotFoundError as error:
            raise GoneMeanwhileError(path) from error

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        rest = iter(parts)
        first = list(itertools.islice(rest, 2))
        with self._asked("written", path, expected=False):
            if len(first) < 2:
                self._client.put(self._path + path, b"".join(first), use_multipart=False)
                return
            # put() with an iterator doesn't work: it would read the other place from within the store's own runtime.
            sink = obstore.open_writer(
                self._client, self._path + path, buffer_size=COPY_PART_BYTES, max_concurrency=COPY_UPLOAD_THREADS_MAX
            )
            for part in itertools.chain(first, rest):
                sink.write(part)
            sink.close()  # only this makes the object

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError), self._asked("removed", path):
            self._client.delete(self._path + path)
