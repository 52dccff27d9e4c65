"""A pipeline's state in one word, and why.

In:  a CaptureStanding.
Out: Health; the slowest hop of a change's way; sentences. They are for the page in Airflow, its
     JSON and `tidegate top`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidegate.capture.silence import LeasedWork, LeaseHolder
from tidegate.capture.standing import CaptureStanding, SourceStanding
from tidegate.lake.figures.status import TableStatus
from tidegate.limits import BEHIND_SECONDS
from tidegate.standing.causes import Cause
from tidegate.tables import State
from tidegate.text_layout import age_text, counted, sentence, size_text


class Health(StrEnum):
    """From the worst to the best. The first true one counts."""

    UNREADABLE = "unreadable"
    AHEAD = "stopped"
    EMPTY = "not started"
    BEHIND = "behind"
    WAITING = "tables wait"
    CURRENT = "current"

    @property
    def is_good(self) -> bool:
        return self is Health.CURRENT


class Hop(StrEnum):
    """A step on a change's way."""

    CAPTURE = "capture"  # from the source to bronze
    APPLY = "apply"  # from bronze to silver


@dataclass(frozen=True, slots=True)
class Slowest:
    """The hop with most of the lag. source: "" for apply. seconds: its part of the lag; None if it
    isn't known.
    """

    hop: Hop
    source: str
    seconds: float | None
    words: str


def slowest(stands: CaptureStanding) -> Slowest | None:
    """Where silver's lag comes from; None while nothing is missing."""
    late = [source for source in stands.sources if source.captured is None or source.lag_seconds]
    if stands.nothing_missing or not stands.sources:
        return None
    worst = max(late, key=lambda source: _seconds(source.lag_seconds), default=None)
    captured = worst.lag_seconds or 0.0 if worst is not None else 0.0
    # Before the first cut nobody knows how old it is, and all that waits in bronze waits for apply.
    applied = max(0.0, (stands.lag_seconds or 0.0) - captured) if stands.cut_ts else float("inf")
    waits = stands.unapplied_bytes
    if worst is not None and (worst.captured is None or not waits or captured >= applied):
        words = _capture_words(worst, stands)
        return Slowest(Hop.CAPTURE, worst.source, worst.lag_seconds, words)
    if not waits:
        return None
    behind = f"Apply is {age_text(applied)} behind bronze" if stands.cut_ts else "Apply has published no cut yet"
    words = f"{behind}: {size_text(waits)} wait for {stands.pipeline}__apply."
    return Slowest(Hop.APPLY, "", applied if stands.cut_ts else None, words)


def _seconds(lag: float | None) -> float:
    return float("inf") if lag is None else lag


def _capture_words(source: SourceStanding, stands: CaptureStanding) -> str:
    name, captured = source.source, source.captured
    if captured is None and source.lost:
        return f"Source {name}: {source.lost}."
    if captured is None:
        return f"The lake is new, nothing of {name} was ever captured into it: does {source.capture_dag} run?"
    if source.server.error:
        again = " Capture tries again by itself." if source.is_down else ""
        return f"{name} doesn't answer; it is captured up to {age_text(source.lag_seconds)} ago.{again}"
    if source.is_purged:
        what = f"Capture of {name} may be unable to go on: its binlog file is purged at the server"
        return f"{what}. `tidegate accept {stands.pipeline} {name}` says what is lost."
    return _late_words(source, stands, time.time() - captured.heard_at)


def rests(source: SourceStanding, stands: CaptureStanding) -> bool:
    """Whether capture isn't late: its last run ended, and a further one begins now or has begun."""
    if stands.silence(LeasedWork.CAPTURE, source.source):
        return False
    holder, captured = _holder(source, stands), source.captured
    if holder is None or captured is None:
        return source.rests_since is not None
    return time.time() - holder.since <= BEHIND_SECONDS and captured.heard_at < holder.since


def _holder(source: SourceStanding, stands: CaptureStanding) -> LeaseHolder | None:
    wanted = (LeasedWork.CAPTURE, source.source)
    return next((holder for holder in stands.holders if (holder.work, holder.of) == wanted), None)


def _late_words(source: SourceStanding, stands: CaptureStanding, silent: float) -> str:
    """silent: seconds since the last segment."""
    name, last = source.source, f"its last segment came {age_text(silent)} ago"
    size = f"{size_text(source.behind_bytes)} of binlog" if source.behind_bytes else ""
    if rests(source, stands):
        came = f"{size or 'something'} came meanwhile, and {source.capture_dag} goes on with it"
        return f"Capture of {name} rested for {age_text(silent)}; {came}."
    lag = age_text(source.lag_seconds)
    words = f"Capture of {name} is {lag} behind its server{f', {size}' if size else ''}."
    if silent <= BEHIND_SECONDS or stands.silence(LeasedWork.CAPTURE, name):  # another sentence says it
        return words
    if (holder := _holder(source, stands)) is not None:
        return f"{words} It has run for {age_text(time.time() - holder.since)}, and {last}."
    return f"{words} {last.capitalize()}: does {source.capture_dag} run?"


def health(stands: CaptureStanding | None) -> Health:
    """The health of a whole pipeline. stands: None if its lake can't be read."""
    if stands is None:
        return Health.UNREADABLE
    if stands.ahead:
        return Health.AHEAD
    if not stands.cut_ts:
        return Health.EMPTY
    if (stands.lag_seconds or 0) > BEHIND_SECONDS or stands.left_behind:
        return Health.BEHIND
    if any(table.state.waits or table.state is State.SNAPSHOT for table in stands.tables):
        return Health.WAITING
    return Health.CURRENT


def why(stands: CaptureStanding) -> str:
    """A sentence or two for a person, and one more per stopped work."""
    stopped = [each.text(time.time()) for each in stands.silences]
    return " ".join([_state_words(stands), *map(sentence, stopped)])


def _waited_for(waiting: Sequence[TableStatus]) -> str:
    """The ends of the tables' waits, and how many wait for each."""
    counts = Counter(_ENDS_WITH[Cause(table.cause)] if table.cause else _GOES_ON for table in waiting)
    return ", ".join(f"{count:,} {words}" for words, count in counts.most_common())


_GOES_ON: Final = "until apply has caught up"
_ENDS_WITH: Final[Mapping[Cause, str]] = {
    Cause.NEEDS_ROWS: "for rows from a snapshot",
    Cause.UNLOGGED: "for a change of the table at the source",
    Cause.DDL_STOPS: "for a release after a statement",
    Cause.DDL_ASKS: "for approval of a statement",
    Cause.DDL_NOT_READ: "for a judgement of a place in the log",
    Cause.MISMATCH: "for a release, once their columns agree",
    Cause.EVENT_NOT_READ: "for a judgement of a place in the log",
    Cause.WRITE_FAILED: "for the next try",
    Cause.WAITS_WITH: "for another table",
    Cause.PARKED: "for a decision about transactions",
    Cause.SAME_NAME: "for a name of their own",
    Cause.FAULT: "for a release, once a fault is removed",
}


def _state_words(stands: CaptureStanding) -> str:
    late = [source.source for source in stands.left_behind]
    waiting = [table for table in stands.tables if table.state.waits]
    filled = sum(table.state is State.SNAPSHOT for table in stands.tables)
    of, s = counted(len(stands.tables), "table", "tables"), "s" * (len(waiting) == 1)
    waits = [
        *([f"{len(waiting):,} of {of} wait{s}: {_waited_for(waiting)}"] if waiting else []),
        *([f"{counted(filled, 'table lacks', 'tables lack')} rows until a snapshot ends"] if filled else []),
    ]
    aside = f" {'; '.join(waits)}." if waits else ""
    match health(stands):
        case Health.AHEAD:
            log = f"the log of {stands.pipeline}__apply"
            return f"The newest cut is in the future. Apply goes no further, and {log} says why."
        case Health.EMPTY:
            return f"Nothing is applied yet. {at.words}" if (at := slowest(stands)) else "Nothing is applied yet."
        case _ if late:
            return f"The cut goes on without {', '.join(late)}; the tables of these sources wait.{aside}"
        case _ if stands.nothing_missing:
            return f"Bronze has all that the sources wrote, but{aside}" if waits else "Nothing is missing."
        case _:
            at = slowest(stands)
            slow = [source for source in stands.sources if at and at.source == source.source]
            rested = any(rests(source, stands) for source in slow)
            # Since when something is missing isn't known of a source that was quiet.
            lag = f"{'at most ' * rested}{age_text(stands.lag_seconds)}"
            return f"Silver is {lag} behind.{f' {at.words}' if at else ''}{aside}"
