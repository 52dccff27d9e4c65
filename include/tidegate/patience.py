"""Questions without a sure answer, such as those to a mount: it may hang.

In:  a question, a name for it, seconds.
Out: its answer, or NoAnswer (a TimeoutError, so an OSError): the asker goes on.

A hanging system call can't be ended from within its process. Each question has a thread of its own, and the thread
keeps no process alive. Asked again meanwhile, a question gets the same answer, or NoAnswer once its seconds are
over: no second thread begins. Late answers are forgotten after a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class NoAnswer(TimeoutError):  # noqa: N818 - as the answer is still to come
    """The question may still be answered: it goes on."""


class NotAsked(NoAnswer):
    """Too many other questions wait for their answers: this one wasn't asked."""


class _Asked(threading.Thread, Generic[T]):
    def __init__(self, name: str, question: Callable[[], T]) -> None:
        super().__init__(name=f"tidegate-{name}", daemon=True)
        self._question = question
        self.began = time.monotonic()
        self.ended = 0.0
        self.keeps = 0.0
        self.answer: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self._question()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked
            self.error = error
        finally:
            self.ended = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether its answer is of no use any more: nobody asked for so many seconds since."""
        return not self.is_alive() and time.monotonic() - self.ended > self.keeps


class Patience:
    """Asks each question by its name, one thread at a time. Any thread may use it.

    most: hanging questions at the same time; None: as many as there are names.
    """

    def __init__(self, seconds: float, most: int | None = None) -> None:
        self._seconds, self._most = seconds, most
        self._lock = threading.Lock()
        self._hangs: dict[str, _Asked[Any]] = {}

    def __len__(self) -> int:
        """The questions in memory: hanging ones, and late answers."""
        return len(self._hangs)

    def ask(self, name: str, question: Callable[[], T], seconds: float | None = None, keeps: float = 0.0) -> T:
        """seconds: in place of the others. keeps: a late answer is of use for so long.

        Raises NoAnswer, NotAsked, and the question's own errors.
        """
        with self._lock:
            if (asked := self._hangs.get(name)) is not None:
                asked.keeps = keeps
            self._hangs = {each: known for each, known in self._hangs.items() if not known.is_over}
            if (asked := self._hangs.get(name)) is None:
                asked = self._begin(name, question, keeps)
        seconds = self._seconds if seconds is None else seconds
        asked.join(max(0.0, asked.began + seconds - time.monotonic()))
        if asked.is_alive():
            raise NoAnswer(f"{name}: no answer within {seconds:g} s")
        with self._lock:
            if self._hangs.get(name) is asked:
                del self._hangs[name]
        if asked.error is not None:
            raise asked.error
        return asked.answer  # type: ignore[return-value]

    def _begin(self, name: str, question: Callable[[], T], keeps: float) -> _Asked[T]:
        if self._most is not None and sum(each.is_alive() for each in self._hangs.values()) >= self._most:
            raise NotAsked(f"{name}: not asked, as {self._most} other questions wait for their answers")
        asked = self._hangs[name] = _Asked(name, question)
        asked.keeps = keeps
        asked.start()
        return asked
