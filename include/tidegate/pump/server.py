"""The gRPC server for the writes of TiDB's pump client and the pulls of drainers.

In:  addresses to listen at; WriteBinlog requests, each on a thread of its own that waits for its
     answer; PullBinlogs requests, each on a thread for as long as it lasts.
Out: writes in order of arrival, for one taker, which answers each. Streams of committed
     transactions.

The door decides about writers (door.py). With an empty payload TiDB asks whether a failed Pump is
back: it is answered, and nothing is stored. A payload other than a binlog is refused and not
stored. While too much waits, a new request waits before it joins: TiDB tries again by itself, on
another Pump when there is one. While waiting requests hold too many bytes, a new one gets an error,
and TiDB tries it again for 15 seconds and more. It mustn't be gRPC's RESOURCE_EXHAUSTED, after
which TiDB fails the transaction at once.
"""

from __future__ import annotations

import fcntl
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

import grpc

from tidegate.errors import HostRefused, LakeRefused, TidegateError
from tidegate.limits import (
    PUMP_HELD_BYTES_MAX,
    PUMP_PULL_THREADS,
    PUMP_THREADS,
    PUMP_WAIT_SECONDS_MAX,
    PUMP_WAITING_BYTES_MAX,
)
from tidegate.pump.door import Door
from tidegate.pump.pulled import Pulled
from tidegate.tidb.records.payload import (
    Binlog,
    BinlogType,
    binlog_of,
    pull_answer,
    pull_request,
    write_answer,
    write_request,
)

_SERVICE: Final = "binlog.Pump"
_UNIX: Final = "unix:"


class Drained(Protocol):
    """The commits after a commit_ts, until stopped() says so."""

    def after(self, after_ts: int, stopped: Callable[[], bool]) -> Iterator[Pulled]: ...


@dataclass(slots=True)
class Write:
    """A request that waits. error: "" when it is stored."""

    payload: bytes
    binlog: Binlog
    error: str = ""
    _done: threading.Event = field(default_factory=threading.Event)

    def answer(self, error: str = "") -> None:
        self.error = error
        self._done.set()

    def wait(self, seconds: float) -> bool:
        return self._done.wait(seconds)


@dataclass(frozen=True, slots=True)
class PumpServerSettings:
    """listen: "unix:/path" or "host:port". key, certificate, ca: PEM files of TLS, for TCP
    addresses; ca: clients must show a certificate that it signed. cluster_id: TiDB's, when it is
    known.
    """

    listen: Sequence[str]
    payload_bytes_max: int
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    cluster_id: int | None = None


class PumpServer:
    """Serves until close(), which answers waiting requests with an error."""

    def __init__(self, settings: PumpServerSettings, drained: Drained | None = None) -> None:
        """drained: what drainers get; None: nothing is to be pulled."""
        self._settings, self._drained = settings, drained
        self.door = Door(settings.cluster_id)
        self._drainers = threading.BoundedSemaphore(PUMP_PULL_THREADS)
        self._waiting: deque[Write] = deque()
        self._bytes = 0
        self._held_bytes = 0  # of all requests that aren't answered
        self._changed = threading.Condition()
        self._closed = ""
        self._refused = ""  # why prewrites aren't taken
        self._server = grpc.server(
            futures.ThreadPoolExecutor(PUMP_THREADS, thread_name_prefix="pump"),
            options=[
                ("grpc.max_receive_message_length", settings.payload_bytes_max),
                ("grpc.so_reuseport", 0),  # a second Pump at this address must fail, not get half of the requests
            ],
        )
        handlers = {
            "WriteBinlog": grpc.unary_unary_rpc_method_handler(self._write),
            "PullBinlogs": grpc.unary_stream_rpc_method_handler(self._pull),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        self._locks: list[IO[bytes]] = []
        try:
            self.addresses = [self._bind(address) for address in settings.listen]
        except HostRefused:
            self._unlock()
            raise

    def _bind(self, address: str) -> str:
        """Raises HostRefused."""
        settings = self._settings
        try:
            if address.startswith(_UNIX):
                self._locks.append(_locked(address))
            if address.startswith(_UNIX) or settings.certificate is None:
                port = self._server.add_insecure_port(address)
            else:
                assert settings.key is not None, "the pipeline file has both or none"
                credentials = grpc.ssl_server_credentials(
                    [(settings.key.read_bytes(), settings.certificate.read_bytes())],
                    settings.ca.read_bytes() if settings.ca else None,
                    require_client_auth=settings.ca is not None,
                )
                port = self._server.add_secure_port(address, credentials)
        except (RuntimeError, OSError) as error:
            port, why = 0, str(error)
        else:
            why = "it is taken, or isn't this machine's"
        if not port:
            raise HostRefused(
                f"can't listen at {address}: {why}", where=address, remedy="give another address"
            ) from None
        host, _, asked = address.rpartition(":")
        return f"{host}:{port}" if asked == "0" else address

    def start(self) -> None:
        self._server.start()

    def take(self, timeout_seconds: float, bytes_max: int) -> list[Write]:
        """All that waits, in order of arrival, up to about so many bytes; [] after the time."""
        with self._changed:
            if not self._waiting:
                self._changed.wait(timeout_seconds)
            writes, size = list[Write](), 0
            while self._waiting and size < bytes_max:
                write = self._waiting.popleft()
                size += len(write.payload)
                writes.append(write)
            self._bytes -= size
            self._changed.notify_all()
        return writes

    def refuse_prewrites(self, why: str) -> None:
        """From now on take answers only: TiDB gives its prewrites to another Pump."""
        with self._changed:
            self._refused = why

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be taken."""
        return not self._waiting

    def close(self, why: str) -> None:
        """Stop serving; waiting requests are answered with the reason."""
        with self._changed:
            self._closed = why
            waiting, self._waiting = list(self._waiting), deque()
            self._bytes = 0
            self._changed.notify_all()
        for write in waiting:
            write.answer(why)
        self._server.stop(1.0).wait()
        self._unlock()

    def _unlock(self) -> None:
        for lock in self._locks:
            lock.close()
        self._locks.clear()

    def _write(self, request: bytes, context: Any) -> bytes:
        try:
            cluster, payload = write_request(request)
        except TidegateError as error:
            return write_answer(str(error))
        if why := self.door.refuses_cluster(cluster):
            return write_answer(why)
        if not payload:
            return write_answer(self._closed)
        with self._changed:
            if self._held_bytes > PUMP_HELD_BYTES_MAX:
                return write_answer("too much waits to be stored")
            self._held_bytes += len(payload)
        try:
            return self._stored(cluster, payload, context)
        finally:
            with self._changed:
                self._held_bytes -= len(payload)

    def _stored(self, cluster: int, payload: bytes, context: Any) -> bytes:
        try:
            write = Write(payload, binlog_of(payload))
            if why := self.door.refuses(write.binlog) or self.door.enters(cluster):
                return write_answer(why)
        except TidegateError as error:
            return write_answer(str(error))
        left = min(context.time_remaining() or PUMP_WAIT_SECONDS_MAX, PUMP_WAIT_SECONDS_MAX)
        if why := self._join(write, left):
            return write_answer(why)
        # It may still be stored, though TiDB isn't told: TiDB then sends it once more, and pairing recognises it.
        return write_answer(write.error if write.wait(left) else "not stored in time")

    def _pull(self, request: bytes, context: Any) -> Iterator[bytes]:
        """Stream commits to a drainer. However the stream ends, the drainer comes again and names
        its place.
        """
        try:
            cluster, after_ts = pull_request(request)
        except TidegateError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if why := self.door.refuses_cluster(cluster):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, why)
        if self._drained is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "this Pump keeps nothing for drainers")
        if not self._drainers.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{PUMP_PULL_THREADS} drainers pull already")
        assert self._drained is not None, "abort raises"
        try:
            for pulled in self._drained.after(after_ts, lambda: bool(self._closed) or not context.is_active()):
                yield pull_answer(pulled.start_ts, pulled.commit_ts, pulled.payload)
        except LakeRefused as error:
            context.abort(grpc.StatusCode.OUT_OF_RANGE, str(error))
        except TidegateError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        finally:
            self._drainers.release()

    def _join(self, write: Write, seconds: float) -> str:
        """Why not; "" when it waits to be taken."""
        size = len(write.payload)
        with self._changed:
            room = self._changed.wait_for(
                lambda: self._closed or not self._bytes or self._bytes + size <= PUMP_WAITING_BYTES_MAX, seconds
            )
            if self._closed or not room:
                return self._closed or "too much waits to be stored"
            if self._refused and write.binlog.tp is BinlogType.PREWRITE:
                return self._refused
            self._waiting.append(write)
            self._bytes += size
            self._changed.notify_all()
        return ""


def _locked(address: str) -> IO[bytes]:
    """Take the lock of a unix socket, a file beside it: a second server that binds the path would take it away from the
    first.

    Raises HostRefused where another one has it, or it can't be had.
    """
    path = Path(address.removeprefix(_UNIX) + ".lock")
    try:
        handle = path.open("ab")
    except OSError as error:
        raise HostRefused(
            f"can't listen at {address}: its lock, {path}, can't be written: {error.strerror}",
            where=address,
            remedy="let this account write that file, or its folder, or give another address",
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        why = "another Pump does" if isinstance(error, BlockingIOError) else f"{path} has no lock: {error.strerror}"
        raise HostRefused(
            f"can't listen at {address}: {why}",
            where=address,
            remedy="end that one, or give this one another address",
        ) from None
    return handle
