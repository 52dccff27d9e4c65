"""Questions without a sure answer, such as those to a mount: it may hang.

In:  a question, a name for it, seconds.
Out: its answer, or TimeoutError (an OSError): the asker goes on.

A hanging system call can't be ended from within its process. Each question has a thread of its own, and the thread
keeps no process alive. Asked again meanwhile, a question gets TimeoutError at once: no second thread begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Asked(threading.Thread, Generic[T]):
    def __init__(self, name: str, question: Callable[[], T]) -> None:
        super().__init__(name=f"tidegate-{name}", daemon=True)
        self._question = question
        self.answer: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self._question()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked
            self.error = error


class Patience:
    """Asks each question by its name, one thread at a time. Any thread may use it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._hangs: dict[str, _Asked[Any]] = {}

    def ask(self, name: str, question: Callable[[], T]) -> T:
        """Raises TimeoutError, and the question's own errors."""
        with self._lock:
            before = self._hangs.get(name)
            if before is not None and before.is_alive():
                raise TimeoutError(f"{name}: no answer yet")
            asked = self._hangs[name] = _Asked(name, question)
            asked.start()
        asked.join(self._seconds)
        if asked.is_alive():
            raise TimeoutError(f"{name}: no answer within {self._seconds:g} s")
        with self._lock:
            if self._hangs.get(name) is asked:
                del self._hangs[name]
        if asked.error is not None:
            raise asked.error
        return asked.answer  # type: ignore[return-value]
