"""An S3 server on this machine that writes down each request: VersityGW over a folder.

In:  a scratch folder; versitygw on PATH.
Out: Gateway: storage options for a lake in its bucket, and the requests since the last look, by who made them and by
     kind. Raises Missing without versitygw.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple, Self

from benchmarks.figures import Missing
from tests.kit.services import BUCKET, store
from tidegate.errors import HostLacks

KINDS: Final = ("GET", "HEAD", "PUT", "LIST", "DELETE")
# Dollars for a thousand, S3 Standard in us-east-1. A DELETE is free.
PRICES: Final = {"GET": 0.0004, "HEAD": 0.0004, "PUT": 0.005, "LIST": 0.005, "DELETE": 0.0}
_OPERATIONS: Final = {
    "s3_GetObject": "GET",
    "s3_HeadObject": "HEAD",
    "s3_PutObject": "PUT",
    "s3_CopyObject": "PUT",
    "s3_CreateMultipartUpload": "PUT",
    "s3_UploadPart": "PUT",
    "s3_CompleteMultipartUpload": "PUT",
    "s3_AbortMultipartUpload": "DELETE",
    "s3_ListObjectsV2": "LIST",
    "s3_ListMultipartUploads": "LIST",
    "s3_DeleteObject": "DELETE",
    "s3_DeleteObjects": "DELETE",
}
# S3's server access log: the operation, the key, the URL, status, error, sizes and times, referrer, the client's name.
_LINE: Final = re.compile(r"\S+ \S+ \[[^]]*\] \S+ \S+ \S+ (\S+) (\S+) (\S+) (\d{3}) \S+ .*? - (.+) - \S+ SigV4")
_LOGGED_SECONDS: Final = 0.2  # a line comes right after its answer


class Request(NamedTuple):
    """path: within the bucket, of a LIST its prefix. who: the `user_agent` of the storage options."""

    kind: str
    path: str
    status: int
    who: str


class Gateway:
    """A context manager; it runs meanwhile."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log = folder / "requests.log"
        try:
            self._part, self._options = store(folder, secrets.token_hex(12), access_log=self.log)
        except HostLacks as lacks:
            raise Missing(f"{lacks.what}: {lacks.remedy}") from lacks
        self._read = 0

    def __enter__(self) -> Self:
        self._part.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._part.stop()

    @property
    def pid(self) -> int:
        return self._part.pid

    @property
    def objects(self) -> Path:
        """The bucket's objects, each a file."""
        return self.folder / "objects" / BUCKET

    def options(self, who: str) -> dict[str, str]:
        """Storage options of a client that calls itself so."""
        return {**self._options, "user_agent": who}

    def taken(self) -> list[Request]:
        """All requests since the last call."""
        time.sleep(_LOGGED_SECONDS)
        with self.log.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        return [request for line in data.decode().splitlines() if (request := _request(line)) is not None]


def _request(line: str) -> Request | None:
    matched = _LINE.match(line)
    if matched is None:
        return None
    operation, key, url, status, who = matched.groups()
    prefix = re.search(r"[?&]prefix=([^&]*)", url)
    path = key if key != "-" else prefix.group(1).replace("%2F", "/") if prefix else url
    return Request(_OPERATIONS.get(operation, operation), path, int(status), who)


def by_kind(requests: list[Request]) -> Counter[str]:
    """How many of each kind."""
    return Counter(request.kind for request in requests)


def dollars(kinds: Counter[str]) -> float:
    """What they cost."""
    return sum(PRICES[kind] / 1000 * count for kind, count in kinds.items())


def told(kinds: Counter[str]) -> str:
    """In words."""
    return ", ".join(f"{kinds[kind]} {kind}" for kind in (*KINDS, *sorted(kinds.keys() - set(KINDS))) if kinds[kind])
