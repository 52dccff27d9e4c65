"""The second connection to a source: its facts, and its clock.

In:  a connection's settings, the pipeline and the name of its source.
Out: checked facts; the clock when asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

import pymysql

from tidegate.capture.source import Retention
from tidegate.config import Pipeline
from tidegate.limits import ANSWER_SECONDS_MAX, CLOCK_ASKED_SECONDS, CLOCK_LOOK_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.demands.preflight import SourceDemands, preflight
from tidegate.mysql.facts.server_facts import read_binary_logs, read_clock_ms, read_facts
from tidegate.mysql.history.retention import RetentionWatch, read_rules
from tidegate.mysql.stream.source_clock import SourceClock

log = logging.getLogger(__name__)

T = TypeVar("T")


class SecondConnection:
    """Open as long as the stream beside it. Both are made again together."""

    def __init__(
        self,
        info: ConnectionInfo,
        pipeline: Pipeline,
        source_name: str,
        connection: pymysql.connections.Connection[Any],
        clock: SourceClock,
    ) -> None:
        self._info = info
        self._connection = connection
        self.facts = read_facts(connection, info)
        for caution in preflight(self.facts, SourceDemands.of(pipeline, source_name)):
            log.warning("%s", caution)
        self._clock = clock
        self.clock_ms()
        alert_seconds = pipeline.capture.retention_alert_hours * 3600
        self._watch = RetentionWatch(info.where, alert_seconds)
        self._retention: Retention | None = None
        self._look_at = time.monotonic()

    @classmethod
    def open(
        cls,
        info: ConnectionInfo,
        pipeline: Pipeline,
        source_name: str,
        clock: SourceClock,
        patience_seconds: float = ANSWER_SECONDS_MAX,
    ) -> Self:
        """clock: with the knowledge of earlier connections. Raises SourceUnavailable (also if an
        answer takes longer than patience_seconds, since the stream isn't read meanwhile),
        SourceRefused.
        """
        connection = connect(info, read_timeout=patience_seconds, write_timeout=patience_seconds)
        try:
            return cls(info, pipeline, source_name, connection, clock)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        self._connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  no farewell to a dead server

    def look_again(self) -> None:
        """The server's facts as they are now. Raises SourceUnavailable."""
        self.facts = read_facts(self._connection, self._info)

    def retention(self, file: str, reached_ms: int) -> Retention | None:
        """When the source would purge uncaptured log. It looks once a minute. Raises
        SourceUnavailable.

        file: where capture is. reached_ms: the source's clock when the event there was written; 0
        if it isn't known.
        """
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + CLOCK_LOOK_SECONDS
            age_seconds = max(self.source_ms - reached_ms, 0) / 1000 if reached_ms else 0.0
            rules, logs = self.ask(read_rules), self.ask(read_binary_logs)
            self._retention = self._watch.look(rules, logs, file, age_seconds)
        return self._retention

    @property
    def source_ms(self) -> float:
        """The expected time of the source's clock."""
        return self._clock.now_ms

    def clock_ms(self) -> int:
        """The source's own clock, as far as it is believed. Raises SourceUnavailable."""
        self._clock_at = time.monotonic()
        return self._clock.take(self.ask(read_clock_ms), self._clock_at)

    def keep_time(self) -> None:
        """Ask for the clock also while the stream is busy. Raises SourceUnavailable."""
        if time.monotonic() - self._clock_at >= CLOCK_ASKED_SECONDS:
            self.clock_ms()

    def ask(self, question: Callable[[Any], T]) -> T:
        """The rows of a question to a cursor. Raises SourceUnavailable, also where the server refuses it."""
        try:
            with self._connection.cursor() as cursor:
                return question(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
