"""The rule for new tries of a failed task.

In:  the exception a task failed with.
Out: stop after a Terminal error, since a retry gives the same answer. Try again after a Transient one, with a growing
     pause up to a minute, practically without end: a source may be down for a weekend. Any other error is a fault of
     tidegate or of the machine, and is tried three times.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

from tidegate.errors import Terminal, Transient
from tidegate.limits import FAULT_ATTEMPTS_MAX, TASK_ATTEMPTS_MAX, TASK_PAUSE_SECONDS_MAX

if TYPE_CHECKING:
    from airflow.sdk import Context


class Ended(Transient):
    """A process was ended from outside, without a message. It counts as a fault: it may have used too much memory."""


class TransientOnly(RetryPolicy):
    """Terminal fails at once, Transient is tried again, faults three times."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Called by Airflow in the task's process with the exception that ended it."""
        del max_tries, context
        pause = timedelta(seconds=min(2 ** min(try_number, 10), TASK_PAUSE_SECONDS_MAX))
        if isinstance(exception, Terminal):
            return RetryDecision.fail(reason=str(exception))
        if isinstance(exception, Transient) and not isinstance(exception, Ended):
            return RetryDecision.retry(delay=pause, reason=str(exception))
        if try_number < FAULT_ATTEMPTS_MAX:
            return RetryDecision.retry(delay=pause, reason=f"{type(exception).__name__}, try {try_number}")
        return RetryDecision.fail(reason=f"{type(exception).__name__} on {try_number} tries")


# default_args of every DAG. retry_delay is for killed processes: no policy sees them.
TASK_DEFAULTS: dict[str, Any] = {
    "owner": "tidegate",
    "retries": TASK_ATTEMPTS_MAX,
    "retry_delay": timedelta(seconds=5),
    "retry_policy": TransientOnly(),
}
