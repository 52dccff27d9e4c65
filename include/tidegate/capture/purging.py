"""A forecast: when will the source purge binlog files that capture hasn't read?

In:  the server's rules, its files, how fast it writes; how far capture is.
Out: a Retention, and words for a person: are changes lost if capture stays down until tomorrow?

The forecast uses the server's own settings; on Amazon's services, their retention hours. Another
service may purge earlier, by a setting of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.capture.source import Retention
from tidegate.limits import PURGE_SOON_SECONDS
from tidegate.position import Position
from tidegate.text_layout import age_text

SETTINGS: Final = {
    "age": "binlog_expire_logs_seconds",
    "size": "max_binlog_total_size",
    "hours": "binlog retention hours",
}
UNKEPT: Final = "unkept"  # a service that may remove a file at any time
UNREAD: Final = "unread"  # a service whose retention hours our account may not read
UNKEPT_WORDS: Final = "the service keeps no binlog file, and may purge what isn't captured at any moment"
UNREAD_WORDS: Final = "this account can't see the service's binlog retention hours (mysql.rds_configuration)"


@dataclass(frozen=True, slots=True)
class PurgeRules:
    """expire_seconds: the age at which files go. total_bytes: the size beyond which the oldest go.
    None: no such rule. by: the rule of the age, a key of SETTINGS; or UNKEPT, UNREAD.
    """

    expire_seconds: float | None
    total_bytes: int | None
    by: str = "age"


@dataclass(frozen=True, slots=True)
class Binlogs:
    """A server's binlog files, oldest first: (file, bytes). bytes_per_second: how fast it writes; 0
    if unknown.
    """

    files: tuple[tuple[str, int], ...]
    rules: PurgeRules
    bytes_per_second: float = 0.0

    def behind_bytes(self, captured: Position, end: Position) -> int | None:
        """Bytes of the server's log after a place; None if its files don't tell. end: of its
        binlog, asked later.
        """
        if captured.base != end.base or captured > end:
            return None
        sizes = {file: size for file, size in self.files if captured.number < Position.of(file, 0).number < end.number}
        if end.number - captured.number - 1 > len(sizes):
            return None  # files between them were written since the list was made
        if captured.number == end.number:
            return end.offset - captured.offset
        own = dict(self.files).get(captured.file, captured.offset)
        return max(0, own - captured.offset) + sum(sizes.values()) + end.offset


def forecast(binlogs: Binlogs, file: str, age_seconds: float) -> Retention:
    """file: capture's; "" before its first event. age_seconds: the age of the last captured event,
    by the source's clock.
    """
    names = list(dict(binlogs.files))
    oldest = names[0] if names else ""
    if file and file not in names and not _is_newer(file, names):
        return Retention(0.0, "gone", oldest, 0)
    at = names.index(file) if file in names else max(len(names) - 1, 0)
    rules, left = binlogs.rules, list[tuple[float, str]]()
    if rules.expire_seconds is not None:
        left.append((max(rules.expire_seconds - age_seconds, 0.0), rules.by))
    if rules.total_bytes is not None and binlogs.bytes_per_second:
        needed = sum(list(dict(binlogs.files).values())[at:])
        left.append((max(rules.total_bytes - needed, 0) / binlogs.bytes_per_second, "size"))
    seconds, rule = min(left, default=(None, UNREAD if rules.by == UNREAD else ""))
    return Retention(seconds, rule, oldest, at)


def _is_newer(file: str, names: list[str]) -> bool:
    """Whether the file was begun after the list was made."""
    if not names:
        return False
    last, ours = Position.of(names[-1], 0), Position.of(file, 0)
    return ours.base == last.base and ours.number > last.number


def if_down(retention: Retention) -> str:
    """The loss if capture stays down until tomorrow."""
    if retention.rule == "gone":
        return f"Binlog that isn't captured is purged already: the oldest file is {retention.oldest_file}."
    if retention.rule == UNKEPT:
        return f"Changes: {UNKEPT_WORDS}. tidegate check has the command that keeps them."
    if retention.rule == UNREAD:
        return f"Not known: {UNREAD_WORDS}. tidegate check has the grant."
    if retention.seconds_left is None:
        return "Nothing: the server purges no binlog by itself."
    setting = SETTINGS[retention.rule]
    left = age_text(retention.seconds_left)
    if retention.seconds_left >= PURGE_SOON_SECONDS:
        return f"Nothing: what isn't captured is purged in {left} at the earliest ({setting})."
    if retention.seconds_left == 0:
        return f"Changes: the server may purge what isn't captured at any moment ({setting})."
    return (
        f"Changes: the server may purge what isn't captured in {left} ({setting})."
        " Start capture before then, or raise that setting."
    )
