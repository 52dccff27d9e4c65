"""An S3 on this machine: moto's server in a process of its own, with a bucket.

In:  nothing.
Out: `s3`, a fixture of the whole session; S3: storage options by delta-rs' names, empty folders of the bucket.

Run as a module it is that process: it prints its port, and ends with its stdin. Its argument says what becomes of a
condition of a PUT (If-None-Match): kept, ignored, or refused with 501, as stores do that know none. Requests are
answered one at a time: moto itself looks whether a name is taken and then takes it, and two threads may do so at once,
which S3 never does. It counts them, by the client's name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.servers import ROOT

BUCKET = "lake"
_COUNTS = "/-/counts"
_UNKNOWN_HEADER = (
    b"<Error><Code>NotImplemented</Code>"
    b"<Message>A header you provided implies functionality that is not implemented</Message></Error>"
)
KEYS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "known-to-the-test-only"}


@dataclass(frozen=True)
class S3:
    """A server that runs. pid: none when it isn't ours."""

    endpoint: str
    pid: int | None = None

    @property
    def options(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            **{name: os.environ.get(name, value) if self.pid is None else value for name, value in KEYS.items()},
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }

    def folder(self) -> str:
        """The URL of a folder that nothing is in."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def options_of(self, who: str) -> dict[str, str]:
        """Options of a client that calls itself so."""
        return {**self.options, "user_agent": who}

    def asked(self, who: str) -> Counter[str]:
        """The requests of a client since the last call: GET, HEAD, PUT, LIST, DELETE."""
        with urlopen(f"{self.endpoint}{_COUNTS}?{who}", timeout=30) as answer:
            return Counter(json.load(answer))

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections and answers nothing."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """Moto's S3; or that of TIDEGATE_TEST_S3, an endpoint that may be written to with the environment's keys."""
    given = os.environ.get("TIDEGATE_TEST_S3")
    if given:
        yield _with_bucket(S3(given))
        return
    with moto() as found:
        yield found


@contextmanager
def moto(conditions: str = "kept") -> Iterator[S3]:
    """A server for one test alone. conditions: as in the head of this module."""
    argv = [sys.executable, "-m", "tests.kit.s3", conditions]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield _with_bucket(S3(f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid))
        finally:
            process.kill()


def _with_bucket(found: S3) -> S3:
    try:
        with urlopen(Request(f"{found.endpoint}/{BUCKET}", method="PUT"), timeout=30):
            pass
    except HTTPError as error:
        if error.code != 409:
            raise
    return found


def _serve(conditions: str) -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            pass

    lock, answered = threading.Lock(), DomainDispatcherApplication(create_backend_app)
    counts: dict[str, Counter[str]] = defaultdict(Counter)

    def one_at_a_time(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environment["PATH_INFO"] == _COUNTS:
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(counts.pop(environment["QUERY_STRING"], {})).encode()]
        counts[environment.get("HTTP_USER_AGENT", "")][_kind(environment)] += 1
        if conditions != "kept" and environment.pop("HTTP_IF_NONE_MATCH", None) and conditions == "refused":
            start("501 Not Implemented", [("Content-Type", "application/xml")])
            return [_UNKNOWN_HEADER]
        with lock:
            return [b"".join(answered(environment, start))]

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Quiet)
    print(server.port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


def _kind(environment: dict[str, Any]) -> str:
    method, query = environment["REQUEST_METHOD"], environment["QUERY_STRING"]
    if method == "GET" and "list-type=" in query:
        return "LIST"
    return "DELETE" if method == "POST" and query.startswith("delete") else str(method)


if __name__ == "__main__":
    _serve(sys.argv[1])
