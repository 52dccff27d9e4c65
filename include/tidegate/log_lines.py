"""Log lines as JSON objects, where TIDEGATE_LOG=json asks for them: for programs that collect logs.

In:  records of Python's logging; errors; what the work at hand knows of its place.
Out: a line each, with `time`, `level`, `logger` and `message`; and `pipeline`, `source`, `file`,
     `position`, `table`, `error`, `where`, `remedy` as far as they are known. Back again: the line
     that a terminal would have shown.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tidegate.errors import TidegateError, UsageError
from tidegate.home import LOG_ENV

PLACE: Final = ("pipeline", "source", "file", "position", "table")
_OF_ERRORS: Final = ("error", "where", "remedy")
_OURS: Final = ("spark_jobs", "tidegate")
_FORMS: Final = ("json", "text", "")
Fields = Mapping[str, Any]

# Of the whole process: threads of the work at hand log, too.
_known: list[Callable[[], Fields]] = []


def are_json() -> bool:
    """Whether this process logs JSON."""
    return os.environ.get(LOG_ENV, "") == "json"


def check_form() -> None:
    """Raises UsageError for a form of lines that there isn't."""
    if (form := os.environ.get(LOG_ENV, "")) not in _FORMS:
        what = f"{form!r} is no form of log lines"
        raise UsageError(what, where=LOG_ENV, remedy="set it to json, or unset it")


@contextmanager
def known(fields: Callable[[], Fields]) -> Iterator[None]:
    """Lines within the block get these fields of PLACE, unless a line has its own. fields: called for each line."""
    _known.append(fields)
    try:
        yield
    finally:
        _known.remove(fields)


def of_error(error: Exception) -> dict[str, str]:
    """The fields of a line about an error, for `extra` of a record."""
    parts = {"error": type(error).__name__}
    if isinstance(error, TidegateError):
        parts |= {"where": error.where, "remedy": str(error.remedy)}
    return {name: text for name, text in parts.items() if text}


def line(level: str, logger: str, message: str, more: Fields, at: float | None = None) -> str:
    """One line of JSON. at: Unix time; now by default."""
    seconds, milliseconds = divmod(round((time.time() if at is None else at) * 1000), 1000)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03}Z"
    cells: dict[str, Any] = {"time": stamp, "level": level, "logger": logger, "message": message}
    for fields in _known:
        cells |= {name: value for name, value in fields().items() if value not in ("", None)}
    return json.dumps(cells | dict(more), ensure_ascii=False, default=str)


def of_record(record: logging.LogRecord) -> str:
    """A record's line; a stack is its field `stack`."""
    cells = vars(record)
    more: dict[str, Any] = {name: cells[name] for name in (*PLACE, *_OF_ERRORS) if name in cells}
    if record.exc_info:
        more["stack"] = logging.Formatter().formatException(record.exc_info)
    return line(record.levelname.lower(), record.name, record.getMessage(), more, record.created)


def plain(text: str) -> str:
    """A line of a job, as a terminal shows it; any other line stays as it is."""
    if not text.startswith('{"time": '):
        return text
    try:
        cells = json.loads(text)
        level, message = str(cells["level"]), str(cells["message"])
    except (ValueError, KeyError, TypeError):
        return text
    beginning = {"warning": "tidegate: warning: ", "error": "tidegate: "}.get(level, "")
    return beginning + message


class JsonHandler(logging.Handler):
    """Writes whole lines on stderr, at once."""

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a log that can't be written stops no work."""
        try:
            sys.stderr.write(of_record(record) + "\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - as logging's own handlers do
            self.handleError(record)


def begin() -> None:
    """For a command's process: its loggers write JSON if they shall. Raises UsageError."""
    check_form()
    for name in _OURS if are_json() else ():
        logger = logging.getLogger(name)
        if not any(isinstance(handler, JsonHandler) for handler in logger.handlers):
            logger.setLevel(logging.INFO)
            logger.addHandler(JsonHandler())
