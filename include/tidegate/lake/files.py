"""Files of a lake by relative path, on a disk or in an object store, through pyarrow's file
systems.

In:  the lake's path or URL, and its storage options (with delta-rs's names).
Out: LakeFiles. It is small and can be pickled: it travels to Spark workers, which open the files
     themselves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

import tidegate.lone_arrow  # noqa: F401 - before the first array
from tidegate.delta.log import DeltaLog
from tidegate.delta.logs import DeltaLogs
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import REFUSED, LogStore, make_folder, sync
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.lake.format.migrations import newest_format
from tidegate.lake.format.version import check_format, tell_older
from tidegate.lake.storage.storage_options import lake_root, spark_options, spark_uri, store_of
from tidegate.tables.format_table import FORMAT

_LISTED_TIMES_MAX = 3


@dataclass(slots=True)
class LakeFiles:
    """root: an absolute local path or an s3://, gs://, abfss:// URL without a trailing slash."""

    root: str
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)  # may hold keys: never printed
    # These hold connections: each process makes its own.
    _fs: Any = field(default=None, init=False, repr=False, compare=False)
    _logs: DeltaLogs | None = field(default=None, init=False, repr=False, compare=False)
    _stores: dict[str, LogStore] = field(default_factory=dict, init=False, repr=False, compare=False)
    carried: dict[Any, Any] | None = field(default=None, init=False, repr=False, compare=False)
    _filled: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _format: int | None = field(default=None, init=False, repr=False, compare=False)  # None: not asked

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.root, self.storage_options)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.root, self.storage_options = state
        self._fs, self._logs, self._stores, self.carried, self._filled = None, None, {}, None, set()
        self._format = newest_format()  # the sender has checked the format

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    def uri(self, path: str) -> str:
        """Absolute path or URL, for delta-rs."""
        return f"{self.root}/{path}"

    def spark_uri(self, path: str) -> str:
        """The same for Spark."""
        return spark_uri(self.uri(path))

    @property
    def spark_options(self) -> dict[str, str]:
        """Spark's settings for the store; they may hold keys."""
        return spark_options(self.root, self.storage_options)

    def log(self, path: str) -> DeltaLog:
        """The Delta log of a table. Each call gives the same object: a log is read once, and then
        updated.

        Raises LakeRefused in a lake of a newer format.
        """
        if path != FORMAT.path:
            self.check_known()
        if self._logs is None:
            self._logs = DeltaLogs(self.storage_options)
        return self._logs.of(self.uri(path))

    def carry(self) -> None:
        """From now on `control.newest` reads only new files. For a process that looks every few
        seconds.
        """
        self.carried = {}

    def check_known(self) -> None:
        """Raise LakeRefused in a lake of a newer format. The format is read once."""
        if self._format is None:
            self._format = check_format(self)

    def tell_format(self) -> None:
        """Log once per process that the lake has an older format. Only for a lake with tables."""
        if self._format is not None:
            tell_older(self.root, self._format)

    def trim_logs(self) -> None:
        """Bound the memory: the least recently used logs forget what they know."""
        if self._logs is not None:
            self._logs.trim()

    def store(self, path: str) -> LogStore:
        """A folder in which each object is made at most once, durably. For small objects, which fit
        into memory.
        """
        place = self.uri(path)
        if place not in self._stores:
            self._stores[place] = log_store(place, self.storage_options)
        return self._stores[place]

    @property
    def filesystem(self) -> pafs.FileSystem:
        if self._fs is None:
            self._fs = _filesystem(self.root, self.storage_options)
        return self._fs

    def local(self, path: str) -> str:
        """The path for pyarrow's file system, without the URL's scheme."""
        if self.is_local:
            return self.uri(path)
        return "/".join(p for p in (urlsplit(self.root).path.strip("/"), path) if p)  # a file system has one bucket

    def open(self, path: str) -> pa.NativeFile:
        """A file for reading at any place. Raises FileNotFoundError; LakeUnavailable for other
        errors of a disk.
        """
        if self.is_local:
            try:
                return pa.memory_map(self.uri(path))  # no copy: row groups are slices of the page cache
            except FileNotFoundError:
                raise
            except OSError as error:  # unmounted, moved, out of reach: the place is at fault, not the file's rows
                why = os.strerror(error.errno) if error.errno else str(error)
                raise LakeUnavailable(
                    f"can't be opened: {why}", where=self.uri(path), remedy="check the disk, its owner and rights"
                ) from error
        return self.filesystem.open_input_file(self.local(path))

    def write(self, path: str, parts: Sequence[Any]) -> None:
        """Write one file from these parts, each with a buffer. It is complete when this returns."""
        with self.filesystem.open_output_stream(self.local(path)) as sink:
            for part in parts:
                sink.write(part)

    @property
    def copies(self) -> bool:
        """Whether the place copies files itself, without a byte through this process. Azure may
        answer before a copy is whole.
        """
        return store_of(self.root) in ("local", "s3", "gcs")

    def copy(self, path: str, to: str) -> None:
        """Copy a file to another name in the lake. Its bytes are durable when this returns, its name
        after settle_names. Raises FileNotFoundError, and other OSErrors of the place.
        """
        if not self.is_local:
            self.filesystem.copy_file(self.local(path), self.local(to))
            return
        shutil.copyfile(self.uri(path), self.uri(to))
        sync(self.uri(to))

    def listed(self, path: str, *, recursive: bool = False) -> list[pafs.FileInfo]:
        """The entries of a folder, with `recursive` of those below it, too; [] without the folder."""
        selector = pafs.FileSelector(self.local(path), recursive=recursive, allow_not_found=True)
        for _ in range(_LISTED_TIMES_MAX - 1):
            # Arrow looks twice. It raises if somebody makes the folder between both looks.
            with suppress(FileNotFoundError):
                return list(self.filesystem.get_file_info(selector))
        return list(self.filesystem.get_file_info(selector))

    def delete_folder(self, path: str) -> None:
        """Remove a folder with its content. A missing folder is no error."""
        local = self.local(path)
        if not self.is_local or self.filesystem.get_file_info(local).type == pafs.FileType.Directory:
            self.filesystem.delete_dir(local)

    def empty(self, path: str) -> None:
        """As delete_folder, for a folder of the lake that nobody fills but this process and its
        workers. The store isn't asked unless make_folder made a folder in it since the last call.
        """
        if path in self._filled:
            self.delete_folder(path)
            self._filled.discard(path)

    def written_ms(self, path: str) -> dict[str, int]:
        """All files in a folder and below: path within the folder -> when it was written, Unix
        milliseconds.

        Names that begin with a dot or an underscore are left out, so a Delta log is, too.
        """
        base, listed = self.local(path), self.listed(path, recursive=True)
        files = {info.path[len(base) :].strip("/"): info for info in listed if info.is_file and info.mtime is not None}
        return {
            name: int(info.mtime.timestamp() * 1000)
            for name, info in files.items()
            if not any(part.startswith((".", "_")) for part in name.split("/"))
        }

    def settle_file(self, path: str) -> None:
        """Sync a written file's bytes to the disk. Its name is synced by settle_names. An object of
        a store is durable once it is written.
        """
        if self.is_local:
            sync(self.uri(path))

    def settle_names(self, path: str, names: Iterable[str]) -> None:
        """Sync the names of files in a folder or below it, and all names in the folder itself: once
        for all files, before a commit. make_folder has synced the folders below it.
        """
        if not self.is_local:
            return
        base = self.uri(path)
        for folder in sorted({base, *(f"{base}/{name}".rpartition("/")[0] for name in names)}):
            sync(folder)

    def settle_files(self, path: str, names: Iterable[str]) -> None:
        """Sync these files in a folder or below it, with their names and the folders between."""
        if not self.is_local:
            return
        base, folders = PurePosixPath(self.uri(path)), set[PurePosixPath]()
        for place in (base / name for name in names):
            sync(str(place))
            folders.update(parent for parent in place.parents if parent.is_relative_to(base))
        for folder in sorted(folders, reverse=True):
            sync(str(folder))

    def make_folder(self, path: str) -> None:
        """Make a folder with its parents, and sync their names."""
        self._filled.add(path.partition("/")[0])
        if self.is_local:
            if not os.path.isdir(self.uri(path)):  # noqa: PTH112 - one look for each file of a partition
                make_folder(self.uri(path))
            return
        self.filesystem.create_dir(self.local(path), recursive=True)


def refused_of(error: LakeUnavailable) -> LakeUnavailable | LakeRefused:
    """A file's error as it is; LakeRefused if the file's own place forbids access: such an error
    doesn't pass by itself.
    """
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno in REFUSED:
        return LakeRefused(error.what, where=error.where, remedy="check its owner and rights, then `tidegate release`")
    return error


def _filesystem(root: str, options: Mapping[str, str]) -> pafs.FileSystem:
    if store_of(root) == "local":
        return pafs.LocalFileSystem()
    from tidegate.lake.storage.store_files import StoreFiles  # its client is heavy, and a disk needs none

    host = urlsplit(root)
    return pafs.PyFileSystem(StoreFiles(f"{host.scheme}://{host.netloc}", options))


def lake_files(path: str, home: Path, storage_options: Mapping[str, str]) -> LakeFiles:
    """LakeFiles of a pipeline's lake.path. A relative path begins at the project's root."""
    return LakeFiles(root=lake_root(path, home), storage_options=dict(storage_options))
