"""A folder of a bucket as LogStore: put-if-absent is a conditional PUT (If-None-Match: *).

In:  an s3://, gs:// or abfss:// URL, storage options with delta-rs's names.
Out: ObjectStore, through obstore (the crate object_store, which delta-rs uses too).

All folders of a bucket share one client: making one costs 20 ms of CPU, and each would have its own
connections.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store

from tidegate.delta.stores.store import CONDITIONS_REMEDY, Entry, checked
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.limits import (
    STORE_AGAIN_SECONDS,
    STORE_CREATE_ATTEMPTS_MAX,
    STORE_PAGE_FILES,
    STORE_PAUSE_SECONDS_MAX,
    STORE_RETRY_SECONDS_MAX,
)

_KINDS: Final[dict[str, Any]] = {
    "s3": S3Store,
    "s3a": S3Store,
    "gs": GCSStore,
    "abfss": AzureStore,
    "abfs": AzureStore,
}
# Options of the HTTP client. delta-rs takes them among the store's own options, also with the store's prefix.
_CLIENT_OPTIONS: Final = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "read_timeout", "user_agent"),
    *("default_content_type", "http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout"),
    *("http2_keep_alive_while_idle", "pool_idle_timeout", "pool_max_idle_per_host", "randomize_addresses"),
    *("proxy_url", "proxy_ca_certificate", "proxy_excludes", "root_certificate"),
}
# Azure lists from the beginning, and its client leaves out the names before the wanted one.
_LIST_FROM_A_NAME: Final = ("s3://", "s3a://", "gs://")
_PREFIX: Final = re.compile(r"^(?:aws|azure|google)_")
_QUERY: Final = re.compile(r"\?\S+")  # the query of an address in an error's text: Azure's signature is in it
_MADE: Final = "made"
_NO_CONDITIONS: Final = re.compile(r"NotImplemented|not (?:yet )?implemented|501 Not Implemented")
_NO_BUCKET: Final = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")

# A client without keys asks the machine's cloud for some, at these addresses.
_CLOUD: Final = re.compile(r"/latest/api/token|/latest/meta-data/|/computeMetadata/|/metadata/identity/")
_KEYS: Final = {"s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "gs": "google_service_account"}
_AZURE_KEYS: Final = "azure_storage_account_name and azure_storage_account_key"


def keys_wanted(url: str, error: Exception) -> str:
    """The options that a store's client lacks, for people; "" if it failed for another reason."""
    is_why = _CLOUD.search(str(error)) is not None
    return _KEYS.get(urlsplit(url).scheme.replace("s3a", "s3"), _AZURE_KEYS) if is_why else ""


class ObjectStore:
    """One folder. Thread-safe."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self.where = url.rstrip("/")
        self._options = dict(options)
        parts = urlsplit(self.where)
        root = f"{parts.scheme.replace('s3a', 's3')}://{parts.netloc}"
        self._client = bucket(root, self._options)
        folder = unquote(parts.path).strip("/")  # as delta-rs reads a URL
        self._path = f"{folder}/" if folder else ""

    def folder(self, name: str) -> ObjectStore:
        return ObjectStore(f"{self.where}/{checked(name)}", self._options)

    def get(self, name: str) -> bytes | None:
        try:
            with self._asked("read", name):
                return bytes(self._client.get(self._path + checked(name)).bytes())
        except FileNotFoundError:
            return None

    def stat(self, name: str) -> Entry | None:
        try:
            with self._asked("looked at", name):
                return self._entry(self._client.head(self._path + checked(name)))
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes) -> bool:
        return self.make(name, data)[0]

    def make(self, name: str, data: bytes) -> tuple[bool, str]:
        for attempt in range(STORE_CREATE_ATTEMPTS_MAX):
            try:
                with self._asked(_MADE, name, expected=False):
                    made = self._client.put(self._path + checked(name), data, mode="create", use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                # S3's 409 (another PUT or a DELETE of the name is under way) also comes as "already exists", and then
                # there may be nothing. Azure answers with a failed precondition if the name is taken.
                if self.stat(name) is not None:
                    return False, ""
                time.sleep(STORE_AGAIN_SECONDS * 2**attempt)
            else:
                return True, made["e_tag"] or ""
        raise LakeUnavailable(
            f"{name} could neither be made nor found", where=self.where, remedy="check what else writes there"
        )

    def replace(self, name: str, data: bytes) -> None:
        with self._asked("written", name, expected=False):
            self._client.put(self._path + checked(name), data, use_multipart=False)

    def names(self, start: str = "") -> list[Entry]:
        with self._asked("listed", "", expected=False):
            if len(start) < 2:
                listed = list(self._client.list_with_delimiter(self._path or None)["objects"])
            else:
                # A store lists the names after a given one: without its last character, `start` itself is included.
                # It can't list one folder alone, so names in subfolders are left out here.
                pages = self._client.list(self._path or None, offset=self._path + start[:-1], chunk_size=1000)
                listed = [meta for page in pages for meta in page]
        entries = (self._entry(meta) for meta in listed)
        return sorted(
            entry for entry in entries if "/" not in entry.name and entry.name >= start and entry.name[:1] != "."
        )

    def below(self, behind: str) -> list[Entry] | None:
        if not self.where.startswith(_LIST_FROM_A_NAME):
            return None
        with self._asked("listed", "", expected=False):
            pages = self._client.list(self._path or None, offset=self._path + behind, chunk_size=STORE_PAGE_FILES)
            return [self._entry(meta) for meta in next(iter(pages), ())]

    def delete(self, names: Sequence[str]) -> None:
        if not names:
            return
        paths = [self._path + checked(name) for name in names]
        with suppress(FileNotFoundError), self._asked("removed", names[0]):
            self._client.delete(paths if len(paths) > 1 else paths[0])  # S3's request for many is larger than one

    def _entry(self, meta: Any) -> Entry:
        modified_ms = int(meta["last_modified"].timestamp() * 1000)
        return Entry(meta["path"].removeprefix(self._path), meta["size"], modified_ms, meta["e_tag"] or "")

    @contextmanager
    def _asked(self, done: str, name: str, *, expected: bool = True) -> Iterator[None]:
        """Turns the store's errors into ours. expected: an object that isn't found raises
        FileNotFoundError.
        """
        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise self._refused(done, name, error) from error
        except FileNotFoundError as error:
            if expected:
                raise
            raise self._refused(done, name, error) from error
        except (exceptions.BaseError, OSError, ValueError, NotImplementedError) as error:
            if done == _MADE and _NO_CONDITIONS.search(str(error)):
                raise LakeRefused(
                    f"it makes no object on condition that it isn't there ({_line(error)})",
                    where=self.where,
                    remedy=CONDITIONS_REMEDY,
                ) from error
            if keys := keys_wanted(self.where, error):
                raise LakeUnavailable(
                    "no keys are given for this store, and this machine's cloud gives none",
                    where=self.where,
                    remedy=f"name a connection (lake.conn_id) whose extra has {keys}: docs/object-stores.md",
                ) from error
            if _NO_BUCKET.search(str(error)):
                raise self._refused(done, name, error) from error
            raise LakeUnavailable(
                f"{name or 'it'} can't be {done}: {_line(error)}", where=self.where, remedy="check the lake's store"
            ) from error

    def _refused(self, done: str, name: str, error: Exception) -> LakeRefused:
        return LakeRefused(
            f"{name or 'it'} can't be {done}: {_line(error)}",
            where=self.where,
            remedy="check that its bucket exists, and the rights of the lake's connection there",
        )


def bucket(root: str, options: Mapping[str, str], retry_seconds: float | None = None) -> Any:
    """A client of a bucket, one per process and options. Raises LakeRefused.

    retry_seconds: how long it repeats a request; None for STORE_RETRY_SECONDS_MAX. The client's own
    bound is three minutes, but the holder of a lease must learn earlier that it can't be renewed.
    """
    seconds = STORE_RETRY_SECONDS_MAX if retry_seconds is None else retry_seconds
    return _client(root, tuple(sorted(options.items())), seconds, os.getpid())


@functools.lru_cache(maxsize=16)
def _client(root: str, options: tuple[tuple[str, str], ...], retry_seconds: float, process: int) -> Any:
    """A client of a bucket, for this process only: a fork lacks its threads. Raises LakeRefused."""
    del process
    kind = _KINDS.get(urlsplit(root).scheme)
    if kind is None:
        raise LakeRefused("this kind of store isn't known", where=root, remedy="use s3://, abfss:// or gs://")

    def known(name: str, value: str) -> bool:
        try:
            kind("b", config={name: value})
        except exceptions.UnknownConfigurationKeyError:
            return False  # an option only of delta-rs: locks, its own retries, its runtime
        except exceptions.BaseError:
            return True  # a wrong option is reported when all of them are used together
        return True

    lowered = {name.lower(): value for name, value in options}
    client = {_PREFIX.sub("", name): value for name, value in lowered.items()}
    client = {name: value for name, value in client.items() if name in _CLIENT_OPTIONS}
    own = {name: value for name, value in lowered.items() if _PREFIX.sub("", name) not in _CLIENT_OPTIONS}
    try:
        return kind.from_url(
            root,
            config={name: value for name, value in own.items() if known(name, value)},
            client_options=client,
            retry_config={
                "retry_timeout": timedelta(seconds=retry_seconds),
                "backoff": {"max_backoff": timedelta(seconds=STORE_PAUSE_SECONDS_MAX)},
            },
        )
    except (exceptions.BaseError, ValueError) as error:
        raise LakeRefused(_line(error), where=root, remedy="check the lake's storage options") from error


def _line(error: Exception) -> str:
    """The store's message, in one line, and without the signature in an address."""
    text = str(error).strip().splitlines() or [type(error).__name__]
    return _QUERY.sub("", text[0])
