"""The log of a job, by Python's logging module: one line each, as a terminal and a task's log show it.

In:  records of the loggers spark_jobs and tidegate.
Out: information as it is, on stdout; `tidegate: warning: ...` and `tidegate: ...` (an error) on
     stderr. Airflow's operator and `tidegate apply` know the lines by these beginnings.

Neither gets a time or a level of its own: Airflow's log puts them before each line. With
TIDEGATE_LOG=json each line is JSON, on the same streams (tidegate/log_lines.py).
"""

from __future__ import annotations

import logging
import sys
from typing import Final

from tidegate import log_lines

_BEGINNINGS: Final = {logging.WARNING: "tidegate: warning: ", logging.ERROR: "tidegate: "}
_OURS: Final = ("spark_jobs", "tidegate")


class JobHandler(logging.Handler):
    """Writes whole lines, at once: a killed job's last ones are there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a log that can't be written stops no job."""
        try:
            stream = sys.stdout if record.levelno < logging.WARNING else sys.stderr
            line = log_lines.of_record(record) if log_lines.are_json() else self._text(record)
            stream.write(line + "\n")
            stream.flush()
        except Exception:  # noqa: BLE001 - as logging's own handlers do
            self.handleError(record)

    def _text(self, record: logging.LogRecord) -> str:
        return _BEGINNINGS.get(record.levelno, "") + self.format(record)


def begin() -> None:
    """For a job's process, before it says anything. Once is enough, and again changes nothing."""
    for name in _OURS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, JobHandler) for handler in logger.handlers):
            logger.setLevel(logging.INFO)
            logger.addHandler(JobHandler())


def tell(line: str) -> None:
    """A line of the job's own story."""
    logging.getLogger("spark_jobs").info("%s", line)
