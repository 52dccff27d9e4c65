"""One flat folder of small objects, on a disk or in an object store, in which a name is made at most once.

In:  a folder or URL, and storage options by the names that delta-rs takes.
Out: LogStore: put-if-absent that is durable when it returns, replace, get, stat, names, delete.

On a disk, put-if-absent is a hard link from a finished file to the name: nobody sees half an object, and link(2) fails
where the name is taken, over NFS too. In an object store it is a conditional PUT (If-None-Match: *).
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol
from urllib.parse import urlsplit

from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.failpoint import failpoint
from tidegate.limits import STORE_CREATE_ATTEMPTS_MAX, STORE_PAUSE_SECONDS_MAX, STORE_RETRY_SECONDS_MAX

if TYPE_CHECKING:
    import obstore.store

_REFUSED: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR}
_NO_HARD_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}
_AGAIN_SECONDS: Final = 0.05
# Options of the HTTP client: delta-rs takes them among the store's own, also with the store's prefix.
_CLIENT_OPTIONS: Final = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "read_timeout", "user_agent"),
    *("default_content_type", "http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout"),
    *("http2_keep_alive_while_idle", "pool_idle_timeout", "pool_max_idle_per_host", "randomize_addresses"),
    *("proxy_url", "proxy_ca_certificate", "proxy_excludes", "root_certificate"),
}
_PREFIX: Final = re.compile(r"^(?:aws|azure|google)_")
_QUERY: Final = re.compile(r"\?\S+")  # of an address in an error's text: Azure's signatures stand there
_NO_BUCKET: Final = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")


class Entry(NamedTuple):
    """One object of the folder. modified_ms: Unix time by the store's clock, for people and retention only."""

    name: str
    size: int
    modified_ms: int


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
        """Put-if-absent, durable when it returns.

        True: this call made the object. False: the name is taken, perhaps by this very call, when the store's client
        asked again after a lost answer: the caller reads it back and looks for its own mark. LakeUnavailable: unknown.
        """

    def replace(self, name: str, data: bytes) -> None:
        """Whatever the name had, it has this now: the last writer wins, and no reader sees a part."""

    def names(self, start: str = "") -> list[Entry]:
        """Objects of this folder (not of folders in it) with name >= start, in the order of their names."""

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects; one that is missing is no error."""


def log_store(place: str, options: Mapping[str, str]) -> LogStore:
    """The store of a folder: an absolute local one (file:// too), or an s3://, gs:// or abfss:// URL.

    options: as delta-rs takes them (tidegate/lake/storage.py); the environment fills in what isn't given.
    """
    if "://" not in place or place.startswith("file://"):
        return LocalStore(place.removeprefix("file://"))
    return ObjectStore(place, options)


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
            found = os.stat(self._path(name))  # noqa: PTH116
        except FileNotFoundError:
            return None
        except OSError as error:
            self._raise("looked at", name, error)
        return Entry(name, found.st_size, found.st_mtime_ns // 1_000_000)

    def create(self, name: str, data: bytes) -> bool:
        try:
            with self._written(name, data) as temporary:
                failpoint("store_before_link")
                made = self._link(temporary, name)
                failpoint("store_after_link")
            # Also for a name that is taken: what the caller reads there now must still be there after a power cut.
            sync_folder(self.where)
        except OSError as error:
            self._raise("made", name, error)
        return made

    def replace(self, name: str, data: bytes) -> None:
        try:
            with self._written(name, data) as temporary:
                self._drop_checksum(name)
                os.replace(temporary, self._path(name))  # noqa: PTH105
            sync_folder(self.where)
        except OSError as error:
            self._raise("written", name, error)

    def names(self, start: str = "") -> list[Entry]:
        found = []
        try:
            with os.scandir(self.where) as entries:
                for entry in entries:
                    if entry.name >= start and not entry.name.startswith("."):
                        with suppress(FileNotFoundError):  # removed meanwhile
                            facts = entry.stat()
                            if stat.S_ISREG(facts.st_mode):
                                found.append(Entry(entry.name, facts.st_size, facts.st_mtime_ns // 1_000_000))
        except FileNotFoundError:
            return []
        except OSError as error:
            self._raise("listed", "", error)
        return sorted(found)

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._drop_checksum(name)
                os.unlink(self._path(name))  # noqa: PTH108
            except FileNotFoundError:
                continue
            except OSError as error:
                self._raise("removed", name, error)

    def _drop_checksum(self, name: str) -> None:
        """Spark's own, of what this name had when Spark wrote it: Hadoop believes it rather than the file."""
        with suppress(FileNotFoundError):
            os.unlink(f"{self.where}/.{_checked(name)}.crc")  # noqa: PTH108

    def _path(self, name: str) -> str:
        return f"{self.where}/{_checked(name)}"

    @contextmanager
    def _written(self, name: str, data: bytes) -> Iterator[str]:
        """A temporary file with the data, on disk, gone afterwards. After a kill its dot hides it from names()."""
        temporary = f"{self.where}/.{_checked(name)}.{os.getpid()}.{next(self._attempt)}.{uuid.uuid4().hex[:8]}.tmp"
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
        kind = LakeRefused if error.errno in _REFUSED else LakeUnavailable
        remedy = "check its owner and rights" if kind is LakeRefused else "check the disk"
        raise kind(
            f"{name or 'it'} can't be {done}: {error.strerror or error}", where=self.where, remedy=remedy
        ) from error


def sync_folder(folder: str) -> None:
    """Names that were made in it are on disk when this returns."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: str) -> None:
    """With its parents; each is on disk in the one above it when this returns."""
    parent = os.path.dirname(folder)  # noqa: PTH120
    if not os.path.isdir(parent):  # noqa: PTH112
        make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(folder)  # noqa: PTH102
    sync_folder(parent)


class ObjectStore:
    """A folder of a bucket, through obstore (the object_store crate, which delta-rs uses too)."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self.where = url.rstrip("/")
        self._options = dict(options)
        self._store = _open(self.where, options)

    def folder(self, name: str) -> ObjectStore:
        return ObjectStore(f"{self.where}/{_checked(name)}", self._options)

    def get(self, name: str) -> bytes | None:
        try:
            with self._asked("read", name):
                return self._store.get(_checked(name)).bytes().to_bytes()
        except FileNotFoundError:
            return None

    def stat(self, name: str) -> Entry | None:
        try:
            with self._asked("looked at", name):
                return _entry(self._store.head(_checked(name)))
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        for attempt in range(STORE_CREATE_ATTEMPTS_MAX):
            try:
                with self._asked("made", name, there=False):
                    self._store.put(_checked(name), data, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                # S3's 409 (another PUT or a DELETE of the name was under way) comes as "already exists" as well, and
                # then there may be nothing. Azure's answer to a name that is taken is a failed precondition.
                if self.stat(name) is not None:
                    return False
                time.sleep(_AGAIN_SECONDS * 2**attempt)
            else:
                return True
        raise LakeUnavailable(
            f"{name} could neither be made nor found", where=self.where, remedy="check what else writes there"
        )

    def replace(self, name: str, data: bytes) -> None:
        with self._asked("written", name, there=False):
            self._store.put(_checked(name), data, use_multipart=False)

    def names(self, start: str = "") -> list[Entry]:
        with self._asked("listed", "", there=False):
            if len(start) < 2:
                found = [_entry(one) for one in self._store.list_with_delimiter()["objects"]]
            else:
                # A store lists what comes after a name: asked for with the last character off, so that start is in it.
                # There is no such list of one folder alone; folders in it are left out here.
                pages = self._store.list(offset=start[:-1], chunk_size=1000)
                found = [_entry(one) for page in pages for one in page if "/" not in one["path"]]
        return sorted(one for one in found if one.name >= start and not one.name.startswith("."))

    def delete(self, names: Sequence[str]) -> None:
        if not names:
            return
        with suppress(FileNotFoundError), self._asked("removed", names[0]):
            if len(names) == 1:
                self._store.delete(_checked(names[0]))  # S3's bulk request would be a larger one
            else:
                self._store.delete([_checked(name) for name in names])

    @contextmanager
    def _asked(self, done: str, name: str, *, there: bool = True) -> Iterator[None]:
        """Errors of the store as ours. there: an object that isn't found passes as FileNotFoundError."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise self._refused(done, name, error) from error
        except FileNotFoundError as error:
            if there:
                raise
            raise self._refused(done, name, error) from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            if _NO_BUCKET.search(str(error)):
                raise self._refused(done, name, error) from error
            raise LakeUnavailable(
                f"{name or 'it'} can't be {done}: {_line(error)}", where=self.where, remedy="check the lake's store"
            ) from error

    def _refused(self, done: str, name: str, error: Exception) -> LakeRefused:
        return LakeRefused(
            f"{name or 'it'} can't be {done}: {_line(error)}",
            where=self.where,
            remedy="check that its bucket exists, and what the lake's connection may do there",
        )


def _open(url: str, options: Mapping[str, str]) -> obstore.store.S3Store:
    """A client for the folder. Raises LakeRefused for options that contradict themselves."""
    from obstore.exceptions import BaseError, UnknownConfigurationKeyError
    from obstore.store import AzureStore, GCSStore, S3Store

    kinds: dict[str, Any] = {"s3": S3Store, "s3a": S3Store, "gs": GCSStore, "abfss": AzureStore, "abfs": AzureStore}
    kind = kinds.get(urlsplit(url).scheme)
    if kind is None:
        raise LakeRefused("this kind of store isn't known", where=url, remedy="use s3://, abfss:// or gs://")

    def known(name: str, value: str) -> bool:
        try:
            kind("b", config={name: value})
        except UnknownConfigurationKeyError:
            return False  # of delta-rs alone: locks, its own retries, its runtime
        except BaseError:
            return True  # what is wrong with it is said when all of them stand together
        return True

    lowered = {name.lower(): value for name, value in options.items()}
    client = {_PREFIX.sub("", name): value for name, value in lowered.items()}
    client = {name: value for name, value in client.items() if name in _CLIENT_OPTIONS}
    own = {name: value for name, value in lowered.items() if _PREFIX.sub("", name) not in _CLIENT_OPTIONS}
    try:
        opened = kind.from_url(
            "s3://" + url.removeprefix("s3a://") if url.startswith("s3a://") else url,
            config={name: value for name, value in own.items() if known(name, value)},
            client_options=client,
            # The client's own bound is three minutes: whoever holds a lease must hear earlier that it can't be renewed.
            retry_config={
                "retry_timeout": timedelta(seconds=STORE_RETRY_SECONDS_MAX),
                "backoff": {"max_backoff": timedelta(seconds=STORE_PAUSE_SECONDS_MAX)},
            },
        )
    except (BaseError, ValueError) as error:
        raise LakeRefused(_line(error), where=url, remedy="check the lake's storage options") from error
    found: obstore.store.S3Store = opened
    return found


def _checked(name: str) -> str:
    assert not name.startswith("."), name
    assert name == os.path.basename(name) != "", name  # noqa: PTH119
    return name


def _entry(found: Mapping[str, Any]) -> Entry:
    return Entry(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))


def _line(error: Exception) -> str:
    """What the store said, in one line and without an address's signature."""
    text = str(error).strip().splitlines() or [type(error).__name__]
    return _QUERY.sub("", text[0])
