"""A network that fails on demand: a TCP proxy on loopback between a client and a server.

In:  where the server listens.
Out: a port, and faults that can be switched on and off while connections are open: cut (the k-th byte from now is the
     last, then RST or FIN), half-open (nothing is forwarded any more, nobody is told), trickle (a few bytes per tick).

Each connection has two threads, one per direction. What a half-open direction has taken in is delivered when it is
mended, as a network would that was only slow.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

_CHUNK_BYTES: Final = 64 << 10
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close sends RST


class Way(StrEnum):
    TO_CLIENT = "to_client"
    TO_SERVER = "to_server"


class Mode(StrEnum):
    PASS = "pass"
    HALF_OPEN = "half_open"
    TRICKLE = "trickle"


@dataclass(slots=True)
class _Rule:
    """What happens to bytes of one direction."""

    mode: Mode = Mode.PASS
    trickle_bytes: int = 3
    tick_seconds: float = 0.02
    cut_after: int | None = None  # bytes that still pass before the connection is cut
    reset: bool = True


@dataclass(slots=True)
class _Pair:
    client: socket.socket
    server: socket.socket
    closed: threading.Event = field(default_factory=threading.Event)


class FaultProxy:
    """A context manager. host, port: for the client; cuts: connections that were cut; accepted: all there were."""

    def __init__(self, host: str, port: int) -> None:
        self.host = "127.0.0.1"
        self.cuts = 0
        self.accepted = 0
        self._target = (host, port)
        self._rules = {way: _Rule() for way in Way}
        self._changed = threading.Condition()
        self._pairs: list[_Pair] = []
        self._closing = False
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    # --- faults -------------------------------------------------------------------------------------------

    def half_open(self, *ways: Way) -> None:
        """Forward nothing more these ways (both when none is named), and keep every socket open."""
        self._set(*ways, mode=Mode.HALF_OPEN)

    def trickle(self, size: int, tick_seconds: float) -> None:
        """Forward `size` bytes per tick, both ways."""
        with self._changed:
            for rule in self._rules.values():
                rule.trickle_bytes, rule.tick_seconds = size, tick_seconds
        self._set(mode=Mode.TRICKLE)

    def cut(self, after_bytes: int, way: Way = Way.TO_CLIENT, *, reset: bool = True) -> None:
        """Cut the connection that carries the last of the next `after_bytes` bytes of this way."""
        with self._changed:
            self._rules[way].cut_after, self._rules[way].reset = after_bytes, reset

    def cut_all(self, *, reset: bool = True) -> None:
        """Cut every open connection now."""
        for pair in list(self._pairs):
            self._cut(pair, reset=reset)

    def lead_to(self, host: str, port: int) -> None:
        """Where new connections go from now on; open ones stay where they are."""
        self._target = (host, port)

    def mend(self) -> None:
        """From now on everything passes; what was held back is delivered."""
        with self._changed:
            for rule in self._rules.values():
                rule.cut_after = None
        self._set(mode=Mode.PASS)

    def _set(self, *ways: Way, mode: Mode) -> None:
        with self._changed:
            for way in ways or tuple(Way):
                self._rules[way].mode = mode
            self._changed.notify_all()

    # --- life ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for pair in list(self._pairs):
            self._end(pair, reset=True)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                server = socket.create_connection(self._target, 10)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = _Pair(client, server)
            with self._changed:
                self._pairs.append(pair)
            for way in Way:
                threading.Thread(target=self._pump, args=(pair, way), daemon=True).start()

    # --- bytes --------------------------------------------------------------------------------------------

    def _pump(self, pair: _Pair, way: Way) -> None:
        come, go = (pair.server, pair.client) if way is Way.TO_CLIENT else (pair.client, pair.server)
        try:
            while data := come.recv(_CHUNK_BYTES):
                while data:
                    data = self._forward(pair, way, go, data)
        except OSError:
            pass
        if not pair.closed.is_set() and self._passes(pair, way):  # a farewell, too, is lost in a half-open network
            self._end(pair, reset=False)

    def _passes(self, pair: _Pair, way: Way) -> bool:
        """Wait while the way is half-open; False when the connection is over."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing or pair.closed.is_set() or self._rules[way].mode is not Mode.HALF_OPEN
            )
            return not (self._closing or pair.closed.is_set())

    def _forward(self, pair: _Pair, way: Way, go: socket.socket, data: bytes) -> bytes:
        """Send what may be sent now; what is left. Raises OSError when the connection is over."""
        if not self._passes(pair, way):
            raise ConnectionResetError
        with self._changed:
            rule = self._rules[way]
            size, tick = len(data), 0.0
            if rule.mode is Mode.TRICKLE:
                size, tick = min(size, rule.trickle_bytes), rule.tick_seconds
            last = rule.cut_after is not None and rule.cut_after <= size
            if rule.cut_after is not None:
                size = min(size, rule.cut_after)
                rule.cut_after = None if last else rule.cut_after - size
            reset = rule.reset
        go.sendall(data[:size])
        if last:
            self._cut(pair, reset=reset)
            raise ConnectionResetError
        if tick:
            pair.closed.wait(tick)
        return data[size:]

    def _cut(self, pair: _Pair, *, reset: bool) -> None:
        if self._end(pair, reset=reset):
            self.cuts += 1

    def _end(self, pair: _Pair, *, reset: bool) -> bool:
        with self._changed:
            if pair.closed.is_set():
                return False
            pair.closed.set()
            self._pairs.remove(pair)
            self._changed.notify_all()
        for end in (pair.client, pair.server):
            with contextlib.suppress(OSError):
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)  # wakes the thread that reads from it
            end.close()
        return True
