"""Files of a lake by relative path, local or on an object store, through pyarrow's file systems.

In:  the lake's path or URL and its storage options (the names delta-rs uses).
Out: LakeFiles, small and picklable: it travels to Spark workers, which open files for themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from tidegate.errors import ConfigError


@dataclass(slots=True)
class LakeFiles:
    """root: an absolute local path or an s3://, gs://, abfss:// URL without a trailing slash."""

    root: str
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)  # may hold keys: never printed
    _fs: Any = field(default=None, init=False, repr=False, compare=False)

    def __getstate__(self) -> tuple[str, dict[str, str]]:
        return (self.root, self.storage_options)  # a file system holds connections: each process makes its own

    def __setstate__(self, state: tuple[str, dict[str, str]]) -> None:
        self.root, self.storage_options = state
        self._fs = None

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    def uri(self, path: str) -> str:
        """Absolute path or URL, for delta-rs and Spark."""
        return f"{self.root}/{path}"

    @property
    def filesystem(self) -> pafs.FileSystem:
        if self._fs is None:
            self._fs = _filesystem(self.root, self.storage_options)
        return self._fs

    def local(self, path: str) -> str:
        """The path as the file system wants it (without the URL's scheme)."""
        if self.is_local:
            return self.uri(path)
        parts = urlsplit(self.root)
        host = parts.netloc.split("@")[0]
        return "/".join(p for p in (host, parts.path.strip("/"), path) if p)

    def open(self, path: str) -> pa.NativeFile:
        """A random-access file for reading."""
        if self.is_local:
            return pa.memory_map(self.uri(path))  # no copy: row groups are slices of the page cache
        return self.filesystem.open_input_file(self.local(path))

    def delete_folder(self, path: str) -> None:
        """Remove a folder with all in it; nothing happens when there is none."""
        info = self.filesystem.get_file_info(self.local(path))
        if info.type == pafs.FileType.Directory:
            self.filesystem.delete_dir(self.local(path))

    def make_folder(self, path: str) -> None:
        self.filesystem.create_dir(self.local(path), recursive=True)


def _filesystem(root: str, options: Mapping[str, str]) -> pafs.FileSystem:
    scheme = urlsplit(root).scheme if "://" in root else ""
    given = {key.lower(): value for key, value in options.items()}

    def option(*names: str) -> str | None:
        return next((given[name] for name in names if name in given), None)

    if scheme == "":
        return pafs.LocalFileSystem()
    if scheme in ("s3", "s3a"):
        endpoint = option("aws_endpoint_url", "endpoint_url")
        return pafs.S3FileSystem(
            access_key=option("aws_access_key_id"),
            secret_key=option("aws_secret_access_key"),
            session_token=option("aws_session_token"),
            region=option("aws_region", "region"),
            endpoint_override=urlsplit(endpoint).netloc if endpoint else None,
            scheme=(urlsplit(endpoint).scheme if endpoint else None) or "https",
        )
    if scheme == "gs":
        return pafs.GcsFileSystem()
    if scheme in ("abfs", "abfss"):
        account = (
            option("azure_storage_account_name", "account_name") or urlsplit(root).netloc.split("@")[-1].split(".")[0]
        )
        return pafs.AzureFileSystem(
            account_name=account, account_key=option("azure_storage_account_key", "account_key")
        )
    raise ConfigError(
        f"lake path has an unknown scheme {scheme!r}", where=root, remedy="use a local path, s3://, gs:// or abfss://"
    )


def lake_files(path: str, home: Path, storage_options: Mapping[str, str]) -> LakeFiles:
    """LakeFiles of a pipeline's lake.path; a relative path is taken from the project's root."""
    root = path.rstrip("/") if "://" in path else str((home / path).resolve())
    return LakeFiles(root=root, storage_options=dict(storage_options))
