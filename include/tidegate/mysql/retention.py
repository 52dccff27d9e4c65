"""How long until the source purges what isn't captured yet.

In:  the server's settings and its list of binlog files, looked at once a minute; how far capture is.
Out: a Retention; a line in the log while less is left than the pipeline file wants.

The answer holds if capture stood still from now on. The age: the server removes a file when its last event is older
than its setting, so events of our present time stay for the rest of that age. The size: the oldest files go when all
are larger together than the setting; the server's own rate of writing says when. A person with PURGE BINARY LOGS asks
nobody; the list then shows at once that our file is gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.capture.source import Retention
from tidegate.limits import RETENTION_TOLD_SECONDS

log = logging.getLogger(__name__)

BinaryLogs = Sequence[tuple[str, int]]
_SECONDS_PER_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class PurgeRules:
    """expire_seconds: the age at which files go; total_bytes: the size beyond which the oldest go. None: no rule."""

    expire_seconds: float | None
    total_bytes: int | None


def purge_rules(variables: Mapping[str, str]) -> PurgeRules:
    """From SHOW GLOBAL VARIABLES, of any age of either server (names in lower case)."""

    def number(name: str) -> float:
        return float(variables.get(name) or 0)

    expire = number("binlog_expire_logs_seconds") or number("expire_logs_days") * _SECONDS_PER_DAY
    if variables.get("binlog_expire_logs_auto_purge", "ON").upper() in ("OFF", "0"):
        expire = 0
    return PurgeRules(expire or None, int(number("max_binlog_total_size")) or None)


class RetentionWatch:
    """Looks one after the other; one per run and server. alert_seconds: less than this is said in the log."""

    def __init__(self, where: str, rules: PurgeRules, alert_seconds: float) -> None:
        self._where = where
        self._rules = rules
        self._alert_seconds = alert_seconds
        self._before: tuple[float, dict[str, int]] | None = None
        self._bytes_per_second = 0.0
        self._reported_at: float | None = None

    def look(self, logs: BinaryLogs, file: str, age_seconds: float) -> Retention:
        """logs: (file, bytes), oldest first; file: where capture is, "" before its first event; age_seconds: how long
        ago, by the source's clock, what capture has reached was written.
        """
        self._measure(dict(logs))
        forecast = self._forecast(logs, file, age_seconds)
        now = time.monotonic()
        alarming = forecast.seconds_left is not None and forecast.seconds_left < self._alert_seconds
        if alarming and (self._reported_at is None or now - self._reported_at >= RETENTION_TOLD_SECONDS):
            self._reported_at = now
            log.warning("%s: %s", self._where, purge_text(forecast))
        if not alarming:
            self._reported_at = None
        return forecast

    def _measure(self, sizes: dict[str, int]) -> None:
        now = time.monotonic()
        if self._before is not None:
            then, old = self._before
            written = sum(size - old.get(name, 0) for name, size in sizes.items())
            self._bytes_per_second = max(written, 0) / max(now - then, 1e-3)
        self._before = (now, sizes)

    def _forecast(self, logs: BinaryLogs, file: str, age_seconds: float) -> Retention:
        names = [name for name, _ in logs]
        oldest = names[0] if names else ""
        if file and file not in names:
            return Retention(0.0, "gone", oldest, 0)
        at = names.index(file) if file else max(len(names) - 1, 0)
        left: list[tuple[float, str]] = []
        if self._rules.expire_seconds is not None:
            left.append((max(self._rules.expire_seconds - age_seconds, 0.0), "age"))
        if self._rules.total_bytes is not None and self._bytes_per_second:
            needed = sum(size for _, size in logs[at:])
            left.append((max(self._rules.total_bytes - needed, 0) / self._bytes_per_second, "size"))
        seconds, rule = min(left, default=(None, ""))
        return Retention(seconds, rule, oldest, at)


def purge_text(retention: Retention) -> str:
    """One line: the fault, and the remedy."""
    if retention.rule == "gone":
        return (
            f"the binlog file that capture is in is purged; the oldest is {retention.oldest_file}: what is left is on"
            " this connection alone; raise the server's retention, and don't purge by hand"
        )
    if retention.seconds_left is None:
        return "the server purges nothing by itself"
    setting = "binlog_expire_logs_seconds" if retention.rule == "age" else "max_binlog_total_size"
    return (
        f"in {retention.seconds_left / 3600:.1f} hours the server may purge what isn't captured yet, by {setting}"
        f" ({retention.files_before} files before ours are there); let capture catch up, or raise that setting"
    )
