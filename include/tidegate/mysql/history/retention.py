"""How long until the source purges uncaptured log.

In:  the server's settings and its list of binlog files, read once a minute; how far capture is.
Out: a Retention; a line in the log while less time is left than the pipeline file wants.

The answer assumes that capture stops now. Age: the server removes a file when its last event is
older than a setting, so present events stay for the rest of this age. Size: the oldest files go
when all together are larger than a setting; the server's own rate of writing tells when. A person
with PURGE BINARY LOGS asks nobody; the list then shows at once that our file is gone. A setting may
change at any time, so each look reads it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidegate.capture.purging import (
    SETTINGS,
    UNKEPT,
    UNKEPT_WORDS,
    UNREAD,
    UNREAD_WORDS,
    Binlogs,
    PurgeRules,
    forecast,
)
from tidegate.capture.source import Retention
from tidegate.limits import RETENTION_TOLD_SECONDS
from tidegate.mysql.facts.managed import ONES_OWN, Managed, Service, read_managed
from tidegate.text_layout import counted

log = logging.getLogger(__name__)

BinaryLogs = Sequence[tuple[str, int]]
_SECONDS_PER_DAY: Final = 86400.0
# A service that lets nobody see its table is known by the other names.
_SETTINGS: Final = (
    "SHOW GLOBAL VARIABLES WHERE variable_name IN ('binlog_expire_logs_seconds', 'binlog_expire_logs_auto_purge',"
    " 'expire_logs_days', 'max_binlog_total_size', 'version', 'basedir', 'datadir', 'aurora_version')"
    " OR variable_name LIKE 'azure\\_%' OR variable_name LIKE 'aad\\_auth\\_%'"
)


def purge_rules(variables: Mapping[str, str], managed: Managed = ONES_OWN) -> PurgeRules:
    """From SHOW GLOBAL VARIABLES, of any age of either server (names in lower case). Amazon's services go by hours of
    their own alone.
    """
    if managed.is_amazon:
        if managed.binlog_hours is None:
            return PurgeRules(None, None, UNREAD)
        by = "hours" if managed.binlog_hours else UNKEPT
        return PurgeRules(managed.binlog_hours * 3600.0, None, by)

    def number(name: str) -> float:
        return float(variables.get(name) or 0)

    expire = number("binlog_expire_logs_seconds") or number("expire_logs_days") * _SECONDS_PER_DAY
    if variables.get("binlog_expire_logs_auto_purge", "ON").upper() in ("OFF", "0"):
        expire = 0
    if managed.service is Service.AZURE and not expire:
        return PurgeRules(0.0, None, UNKEPT)
    return PurgeRules(expire or None, int(number("max_binlog_total_size")) or None)


def read_rules(cursor: Any) -> PurgeRules:
    """A server's rules of now. Raises PyMySQL's errors."""
    cursor.execute(_SETTINGS)
    variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    return purge_rules(variables, read_managed(cursor, variables))


class RetentionWatch:
    """Looks one after the other; one per run and server. alert_seconds: less than this is said in the log."""

    def __init__(self, where: str, alert_seconds: float) -> None:
        self._where = where
        self._alert_seconds = alert_seconds
        self._before: tuple[float, dict[str, int]] | None = None
        self._bytes_per_second = 0.0
        self._reported_at: float | None = None

    def look(self, rules: PurgeRules, logs: BinaryLogs, file: str, age_seconds: float) -> Retention:
        """The time that is left, by one more look at the server's files.

        logs: (file, bytes), oldest first; file: where capture is, "" before its first event; age_seconds: how long
        ago, by the source's clock, what capture has reached was written.
        """
        known = forecast(self.measured(rules, logs), file, age_seconds)
        now = time.monotonic()
        alarming = known.seconds_left is not None and known.seconds_left < self._alert_seconds
        if alarming and (self._reported_at is None or now - self._reported_at >= RETENTION_TOLD_SECONDS):
            self._reported_at = now
            log.warning("%s: %s", self._where, purge_text(known))
        if not alarming:
            self._reported_at = None
        return known

    def measured(self, rules: PurgeRules, logs: BinaryLogs) -> Binlogs:
        """The files with the server's rate of writing, by the look before."""
        self._measure(dict(logs))
        return Binlogs(tuple(logs), rules, self._bytes_per_second)

    def _measure(self, sizes: dict[str, int]) -> None:
        now = time.monotonic()
        if self._before is not None:
            then, old = self._before
            written = sum(size - old.get(name, 0) for name, size in sizes.items())
            self._bytes_per_second = max(written, 0) / max(now - then, 1e-3)
        self._before = (now, sizes)


def purge_text(retention: Retention) -> str:
    """One line: the fault, and the remedy."""
    if retention.rule == "gone":
        return (
            f"the binlog file that capture is in is purged; the oldest is {retention.oldest_file}: what is left is on"
            " this connection alone; raise the server's retention, and don't purge by hand"
        )
    if retention.rule in (UNKEPT, UNREAD):
        words = UNKEPT_WORDS if retention.rule == UNKEPT else UNREAD_WORDS
        return f"{words}; tidegate check says what to do"
    if retention.seconds_left is None:
        return "the server purges nothing by itself"
    setting, files = SETTINGS[retention.rule], counted(retention.files_before, "file", "files")
    return (
        f"in {retention.seconds_left / 3600:.1f} hours the server may purge what isn't captured yet, by {setting}"
        f" ({files} before ours on its disk); let capture catch up, or raise that setting"
    )
