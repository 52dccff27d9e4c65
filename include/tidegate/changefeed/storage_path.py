"""The path that a changefeed writes to: lists and reads, nothing else.

In:  a local folder, or an s3://, gs:// or abfss:// prefix with its options.
Out: names and bytes. SourceRefused for a lasting fault, SourceUnavailable for a passing one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from obstore import exceptions
from obstore.store import LocalStore

from tidegate.delta.stores.object_store import bucket, keys_wanted
from tidegate.errors import LakeRefused, SourceRefused, SourceUnavailable
from tidegate.limits import TICDC_LIST_FILES_MAX


@dataclass(frozen=True, slots=True)
class Listed:
    """folders: their names. files: name -> bytes."""

    folders: list[str]
    files: dict[str, int]


class Storage:
    """One path. For any number of threads."""

    def __init__(self, where: str, options: Mapping[str, str]) -> None:
        self.where = where.removeprefix("file://").rstrip("/")
        if "://" not in where or where.startswith("file://"):
            if not Path(self.where).is_dir():
                raise SourceUnavailable(
                    "this folder isn't there",
                    where=self.where,
                    remedy="start the changefeed, or correct the source's path in the pipeline file",
                )
            self._client: Any = LocalStore(self.where)
            self._prefix, self.is_local = "", True
            return
        parts = urlsplit(self.where)
        try:
            self._client = bucket(f"{parts.scheme}://{parts.netloc}", options)
        except LakeRefused as error:
            raise SourceRefused(error.what, where=self.where, remedy="check the source's storage_options") from error
        folder = unquote(parts.path).strip("/")
        self.is_local = False
        self._prefix = f"{folder}/" if folder else ""

    def listed(self, folder: str) -> Listed:
        """The entries of a folder itself; nothing for one that isn't there."""
        prefix = self._prefix + (f"{folder}/" if folder else "")
        with self._asked("listed", folder):
            entries = self._client.list_with_delimiter(prefix or None)
            return Listed(
                sorted(name.rstrip("/").rpartition("/")[2] for name in entries["common_prefixes"]),
                {entry["path"].rpartition("/")[2]: entry["size"] for entry in entries["objects"]},
            )

    def after(self, folder: str, name: str) -> dict[str, int]:
        """Files of a folder whose names come after this one in the order of their bytes."""
        prefix = f"{self._prefix}{folder}/"
        with self._asked("listed", folder):
            pages = self._client.list(prefix, offset=prefix + name)
            files = ((entry["path"].removeprefix(prefix), entry["size"]) for page in pages for entry in page)
            return {path: size for path, size in files if "/" not in path and path > name}

    def pages(self, begin: str) -> Iterator[list[tuple[str, int]]]:
        """All names and sizes after a name, of any depth, in the order of their bytes: a list of the store's each.

        A folder of this machine has no such order: there each folder is listed.
        """
        with self._asked("listed", ""):
            offset = self._prefix + begin if begin else None
            for page in self._client.list(self._prefix or None, offset=offset, chunk_size=TICDC_LIST_FILES_MAX):
                yield [(entry["path"].removeprefix(self._prefix), entry["size"]) for entry in page]

    def read(self, path: str) -> bytes | None:
        """The whole file; None when it isn't there."""
        try:
            with self._asked("read", path):
                return bytes(self._client.get(self._prefix + path).bytes())
        except FileNotFoundError:
            return None

    def part(self, path: str, start: int, end: int) -> bytes:
        """Bytes of a file that was listed."""
        try:
            with self._asked("read", path):
                return bytes(self._client.get_range(self._prefix + path, start=start, end=end))
        except FileNotFoundError:
            raise SourceRefused(
                "a file that was listed is gone",
                where=f"{self.where}/{path}",
                remedy="nobody but TiCDC may remove files that aren't captured: give it a new path and a new lake",
            ) from None

    @contextmanager
    def _asked(self, done: str, path: str) -> Iterator[None]:
        where = f"{self.where}/{path}".rstrip("/")
        try:
            yield
        except FileNotFoundError:
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError) as error:
            raise SourceRefused(
                f"the store doesn't let it be {done}: {_line(error)}",
                where=where,
                remedy="check what the source's connection may do",
            ) from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            if keys := keys_wanted(self.where, error):
                raise SourceUnavailable(
                    "no keys are given for this store, and this machine's cloud gives none",
                    where=where,
                    remedy=f"name a connection (the source's conn_id) whose extra has {keys}: docs/object-stores.md",
                ) from error
            raise SourceUnavailable(
                f"it can't be {done}: {_line(error)}", where=where, remedy="check the source's store"
            ) from error


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].partition("?")[0]
