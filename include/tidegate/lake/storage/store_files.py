"""Files of an object store in the form of pyarrow's file systems: read by ranges, written in parts.

In:  a bucket's URL, the store's options; paths within the bucket.
Out: a FileSystemHandler over obstore, the client that Delta's log uses too (delta/stores). Errors
     are OSErrors, like those of a disk's files.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import obstore
import pyarrow as pa
import pyarrow.fs as pafs
from obstore import exceptions

from tidegate.delta.stores.object_store import bucket
from tidegate.lake.storage.store_error import StoreDeniedError, StoreError, StoreNameError
from tidegate.limits import STORE_FILE_RETRY_SECONDS_MAX, STORE_TAIL_BYTES

_FILE: Final = pafs.FileType.File
_FOLDER: Final = pafs.FileType.Directory


class StoreFiles(pafs.FileSystemHandler):  # type: ignore[misc]
    """One bucket. Thread-safe; a forked process makes its own clients."""

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        self._root, self._options = root, dict(options)

    @property
    def client(self) -> Any:
        """The store's client in this process."""
        return bucket(self._root, self._options, STORE_FILE_RETRY_SECONDS_MAX)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreFiles) and (self._root, self._options) == (other._root, other._options)

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "store"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """A store has folders only in the names of its objects: an empty folder doesn't exist."""
        base = f"{selector.base_dir.strip('/')}/".lstrip("/")
        with _asked():
            if selector.recursive:
                files = [meta for page in self.client.list(base or None) for meta in page]
                folders = sorted({folder for meta in files for folder in _folders(meta["path"], base)})
            else:
                listed = self.client.list_with_delimiter(base or None)
                files, folders = listed["objects"], listed["common_prefixes"]
        if base and not files and not folders and not selector.allow_not_found:
            raise FileNotFoundError(f"there is nothing in {base}")
        # Spark and storage consoles make an empty object `folder/`. It comes here without its last character.
        known = {base.rstrip("/"), *folders}
        files = [meta for meta in files if meta["size"] or meta["path"] not in known]
        return [*(pafs.FileInfo(folder, _FOLDER) for folder in folders), *map(_file, files)]

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Its end comes with its size, by one request: a Parquet file is read from there, and most
        files are no longer.
        """
        try:
            with _asked():
                end = self.client.get(path, options={"range": {"suffix": STORE_TAIL_BYTES}})
                size, tail = end.meta["size"], bytes(end.bytes())
        except StoreDeniedError:
            raise
        except StoreError:
            # S3 has no range of an empty object, and Azure none from the end. A store that is down
            # is asked once more.
            with _asked():
                size, tail = bucket(self._root, self._options, 0.0).head(path)["size"], b""
        return pa.PythonFile(_Ranges(self.client, path, size, tail), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.PythonFile:
        del metadata
        with _asked():
            return pa.PythonFile(_Parts(obstore.open_writer(self.client, path)), mode="w")

    def delete_file(self, path: str) -> None:
        """A missing object is no error, as in the stores themselves."""
        with suppress(FileNotFoundError), _asked():
            self.client.delete(path)

    def delete_dir(self, path: str) -> None:
        with suppress(FileNotFoundError), _asked():
            for page in self.client.list(f"{path.strip('/')}/"):
                if names := [meta["path"] for meta in page]:
                    self.client.delete(names)

    def delete_dir_contents(self, path: str, *, missing_dir_ok: bool = False) -> None:
        del missing_dir_ok
        self.delete_dir(path)

    def create_dir(self, path: str, recursive: bool) -> None:
        """A store needs none."""

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("a bucket is never emptied")

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("a store's objects aren't moved")

    def copy_file(self, src: str, dest: str) -> None:
        """The store copies the object itself."""
        with _asked():
            self.client.copy(src, dest)

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.PythonFile:
        raise NotImplementedError("a store's objects don't grow")

    def _info(self, path: str) -> pafs.FileInfo:
        with _asked():
            listed = self.client.list_with_delimiter(f"{path.strip('/')}/")
            if listed["objects"] or listed["common_prefixes"]:
                return pafs.FileInfo(path, _FOLDER)
        with suppress(FileNotFoundError), _asked():
            return _file(self.client.head(path))
        return pafs.FileInfo(path, pafs.FileType.NotFound)


class _Ranges:
    """An object, read by ranges: each read is one request for exactly these bytes, or none within
    the tail.
    """

    closed = False

    def __init__(self, client: Any, path: str, size: int, tail: bytes) -> None:
        self._client, self._path, self._size = client, path, size
        self._tail, self._tail_at = tail, size - len(tail)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        upto = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if upto <= self._at:
            return b""
        if self._at >= self._tail_at:
            data = self._tail[self._at - self._tail_at : upto - self._tail_at]
        else:
            with _asked():
                data = bytes(self._client.get_range(self._path, start=self._at, end=upto).to_bytes())
        self._at += len(data)
        return data


class _Parts:
    """A new object. It exists once it is closed, and not before. Full parts are sent while it is
    written.
    """

    def __init__(self, writer: Any) -> None:
        self._writer, self._bytes = writer, 0
        self.closed = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        """Does nothing: a part is sent when it is full."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        with _asked():
            self._writer.write(view)
        self._bytes += view.nbytes
        return view.nbytes

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with _asked():
                self._writer.close()


def _file(meta: Mapping[str, Any]) -> pafs.FileInfo:
    return pafs.FileInfo(meta["path"], _FILE, size=meta["size"], mtime=meta["last_modified"])


def _folders(path: str, base: str) -> Iterator[str]:
    """The folders between a base and a file in it."""
    parts = path[len(base) :].split("/")[:-1]
    for count in range(1, len(parts) + 1):
        yield base + "/".join(parts[:count])


@contextmanager
def _asked() -> Iterator[None]:
    """Turns the store's errors into a disk's. FileNotFoundError is one already."""
    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise StoreDeniedError(str(error)) from error
    except exceptions.InvalidPathError as error:
        what = "somebody's object has a name with an empty part, which can't be listed; delete it in the bucket"
        raise StoreNameError(f"{what}: {str(error).splitlines()[0]}") from error
    except exceptions.BaseError as error:
        raise StoreError(str(error)) from error
