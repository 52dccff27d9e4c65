"""SIGTERM and Ctrl-C, as an event that the work looks at.

In:  an event.
Out: it is set soon after either signal came, however often they come.

A handler runs in the main thread, between any two of its steps. There it must not set the event: the main thread may
hold the event's lock, or a first signal's handler may, and the process would wait for itself for ever. A terminal and a
parent may both tell the same process.
"""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def set_by_signals(stop: threading.Event) -> None:
    """Call it in the main thread. It starts a thread."""
    came = SimpleQueue[None]()  # its put() may be interrupted by itself

    def wait() -> None:
        came.get()
        stop.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in SIGNALS:
        signal.signal(number, lambda *_: came.put(None))
