"""How long a run keeps trying to reach a source that is down, or that refuses.

In:  one failure after another.
Out: how long to wait before the next try. At the run's end it raises the failure itself. After
     minutes of the same answer by the server it raises SourceRefused.
"""

from __future__ import annotations

import time
from typing import Final

from tidegate.errors import SourceRefused, SourceUnavailable, SourceUnwilling
from tidegate.limits import ANSWERS_KNOWN_SECONDS

_BACKOFF_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
_ANSWERS_MAX: Final = 10


class Retries:
    """One per run. deadline: of time.monotonic()."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._failures = 0
        self._answer = ""
        self._answers = 0
        self._answered_at = 0.0

    def wait_seconds(self, error: SourceUnavailable, *, heard: bool) -> float:
        """heard: events came since the last failure. Raises the error if no time is left;
        SourceRefused.
        """
        self._failures = 1 if heard else self._failures + 1
        self._count(error, heard=heard)
        wait = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS)) - 1]
        if time.monotonic() + wait >= self._deadline:
            raise error
        return wait

    def _count(self, error: SourceUnavailable, *, heard: bool) -> None:
        now = time.monotonic()
        if heard or not isinstance(error, SourceUnwilling) or error.what != self._answer:
            self._answer = error.what if isinstance(error, SourceUnwilling) else ""
            self._answers, self._answered_at = 0, now
        self._answers += 1
        seconds = now - self._answered_at
        if self._answer and self._answers > _ANSWERS_MAX and seconds > ANSWERS_KNOWN_SECONDS:
            raise SourceRefused(
                f"{error.what} (the server's answer {self._answers} times in {seconds / 60:.0f} minutes)",
                where=error.where,
                remedy=error.remedy,
            ) from error
