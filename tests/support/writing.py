"""A source that is written to while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tidegate.local.server import Server

PACKET_BYTES = 64 << 20


@contextmanager
def writing(
    server: Server, database: str, step: Callable[[Any, int], object], *, pause_seconds: float = 0.02
) -> Iterator[None]:
    """A session calls step(cursor, 1), step(cursor, 2), ... until the block ends; what it raises, the block raises."""
    over = threading.Event()

    def work() -> None:
        with server.connect(database, max_allowed_packet=PACKET_BYTES) as connection, connection.cursor() as cursor:
            number = 0
            while not over.wait(pause_seconds):
                number += 1
                step(cursor, number)

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(work)
        try:
            yield
        finally:
            over.set()
        written.result()
