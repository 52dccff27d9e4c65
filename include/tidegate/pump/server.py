"""The gRPC server that TiDB's pump client writes to.

In:  addresses to listen at; WriteBinlog requests, each on a thread of its own that waits for its answer.
Out: writes in order of arrival, for one taker; each is answered by whoever took it.

An empty payload is TiDB's question whether a Pump that failed is back: it is answered, and nothing is stored. A payload
that is no binlog is refused, so that nobody finds it later. While too much waits, a request waits before it joins: TiDB
tries again by itself, on another Pump when there is one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from tidegate.errors import HostRefused, TidegateError
from tidegate.limits import PUMP_THREADS, PUMP_WAIT_SECONDS_MAX, PUMP_WAITING_BYTES_MAX
from tidegate.tidb.payload import NOTES, Binlog, BinlogType, binlog_of, write_answer, write_request

_SERVICE: Final = "binlog.Pump"


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
class ServerSettings:
    """listen: "unix:/path" or "host:port". key, certificate, ca: PEM files of TLS, for TCP addresses; ca: clients must
    show a certificate that it signed. cluster_id: TiDB's, when it is known.
    """

    listen: Sequence[str]
    payload_bytes_max: int
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    cluster_id: int | None = None


class PumpServer:
    """Serves until close(); what waits then is answered with an error."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._waiting: deque[Write] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = ""
        self._refused = ""  # why prewrites aren't taken
        self._server = grpc.server(
            futures.ThreadPoolExecutor(PUMP_THREADS, thread_name_prefix="pump"),
            options=[
                ("grpc.max_receive_message_length", settings.payload_bytes_max),
                ("grpc.so_reuseport", 0),  # a second Pump at this address is an error, not half of the requests
            ],
        )
        handler = grpc.unary_unary_rpc_method_handler(self._write)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(_SERVICE, {"WriteBinlog": handler}),)
        )
        self.addresses = [self._bind(address) for address in settings.listen]

    def _bind(self, address: str) -> str:
        """Raises HostRefused."""
        settings = self._settings
        try:
            if address.startswith("unix:") or settings.certificate is None:
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
            found, size = list[Write](), 0
            while self._waiting and size < bytes_max:
                write = self._waiting.popleft()
                size += len(write.payload)
                found.append(write)
            self._bytes -= size
            self._changed.notify_all()
        return found

    def refuse_prewrites(self, why: str) -> None:
        """Take answers alone from now on: TiDB gives its prewrites to another Pump."""
        with self._changed:
            self._refused = why

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be taken."""
        return not self._waiting

    def close(self, why: str) -> None:
        """Serve no more; whoever waits hears why."""
        with self._changed:
            self._closed = why
            waiting, self._waiting = list(self._waiting), deque()
            self._bytes = 0
            self._changed.notify_all()
        for write in waiting:
            write.answer(why)
        self._server.stop(1.0).wait()

    def _write(self, request: bytes, context: Any) -> bytes:
        try:
            cluster, payload = write_request(request)
            wanted = self._settings.cluster_id
            if wanted is not None and cluster != wanted:
                return write_answer(f"this Pump is of cluster {wanted}, not of {cluster}")
            if not payload:
                return write_answer(self._closed)
            write = Write(payload, binlog_of(payload))
            if write.binlog.tp in NOTES:
                return write_answer("only a Pump writes such a binlog")
        except TidegateError as error:
            return write_answer(str(error))
        left = min(context.time_remaining() or PUMP_WAIT_SECONDS_MAX, PUMP_WAIT_SECONDS_MAX)
        if why := self._join(write, left):
            return write_answer(why)
        # It may be stored although nobody is told: TiDB then sends it once more, and pairing knows it.
        return write_answer(write.error if write.wait(left) else "not stored in time")

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
