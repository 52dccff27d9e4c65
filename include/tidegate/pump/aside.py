"""A long question on a thread of its own: the asker goes on, and looks for the answer.

In:  a question, one at a time.
Out: its answer once it is there. Its error is raised in the asker. A bug of ours becomes one of our
     errors, too: it mustn't stop TiDB's commits.

If a Pump waited for an answer of TiDB's, TiDB's commits would wait, too: TiDB gives a write up
after 15 seconds, and a dead network is noticed after thirty.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tidegate.errors import TidegateError, Unexpected
from tidegate.remedy import REPORT

Answer = TypeVar("Answer")


class Aside(Generic[Answer]):
    """For one thread that asks. If nobody fetches the answer, it ends with its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._answers: queue.SimpleQueue[Callable[[], Answer]] = queue.SimpleQueue()
        self.waits = False

    def ask(self, question: Callable[[], Answer]) -> None:
        """Begin to answer a question. Only while no other one waits."""
        assert not self.waits, "one question at a time"
        self.waits = True
        threading.Thread(target=self._run, args=(question,), name=self._name, daemon=True).start()

    def answer(self) -> Answer | None:
        """None: there is none yet. Raises what the question raised."""
        try:
            outcome = self._answers.get_nowait()
        except queue.Empty:
            return None
        self.waits = False
        return outcome()

    def _run(self, question: Callable[[], Answer]) -> None:
        try:
            reply = question()
        except Exception as error:  # noqa: BLE001 - raised where the answer is looked for
            raised = error if isinstance(error, TidegateError) else _ours(error)
            self._answers.put(lambda: _raise(raised))
        else:
            self._answers.put(lambda: reply)


def _ours(error: Exception) -> Unexpected:
    return Unexpected(f"unexpected {type(error).__name__}: {error}", remedy=f"{REPORT}; it is asked again")


def _raise(error: Exception) -> Answer:  # type: ignore[type-var]
    raise error
