"""News of a pipeline's alerts: beginnings and ends since the last look.

In:  the findings of each look (rules.py); alerts that were told already, as JSON.
Out: a Notice when there is news: one for all of a look, however many tables begin at once.

An alert begins when its condition has held for its rule's time, and ends when it hasn't held for ALERT_OVER_SECONDS.
Shorter flaps make no message. The first ALERT_KEPT_TABLES_MAX tables of an alert are remembered by name, and the others
counted. Among these a beginning isn't seen if another table's trouble ends at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.config import Alert, Pipeline
from tidegate.limits import (
    ALERT_KEPT_TABLES_MAX,
    ALERT_NAMED_TABLES_MAX,
    ALERT_OVER_SECONDS,
    ALERT_TEXT_CHARACTERS_MAX,
)
from tidegate.metrics.disks import DISKS
from tidegate.metrics.hours import ALL, table_shown
from tidegate.metrics.rules import RULES, LookSays, Severity

_GRAVITY: Final = {severity: number for number, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class AlertChange:
    """News of one alert. began: False: it is over. count: of all; names: of some. line: a sentence for people."""

    alert: Alert
    began: bool
    count: int
    names: tuple[str, ...]
    line: str

    def plain(self) -> dict[str, Any]:
        """As JSON's own types."""
        return {
            "alert": str(self.alert),
            "severity": str(RULES[self.alert].severity),
            "began": self.began,
            "count": self.count,
            "names": list(self.names),
            "line": self.line,
        }


@dataclass(slots=True)
class _Kept:
    """Told and not over: some names of an alert, and the number of others."""

    names: set[str] = field(default_factory=set)
    more: int = 0


@dataclass(slots=True)
class _Blinks:
    """Since when the condition of each name holds, or no longer holds. on: names whose alert is on."""

    since: dict[str, float] = field(default_factory=dict)
    over: dict[str, float] = field(default_factory=dict)
    on: set[str] = field(default_factory=set)


class Notices:
    """The news of one pipeline, look after look. kept: the property's value from before a restart."""

    def __init__(self, pipeline: Pipeline, kept: Mapping[str, Any] | None = None) -> None:
        self._pipeline = pipeline
        self._kept: dict[Alert, _Kept] = {}
        self._blinks: dict[Alert, _Blinks] = {}
        self._anew: set[Alert] = set()  # those of which a first look tells who is beyond the names
        for alert in RULES:
            known = (kept or {}).get(str(alert)) or {}
            self._kept[alert] = _Kept(set(known.get("names", ())), known.get("more", 0))
            self._blinks[alert] = _Blinks(on=set(self._kept[alert].names))
            if self._kept[alert].more:
                self._anew.add(alert)

    @property
    def kept(self) -> dict[str, Any]:
        """Alerts told and not over, as JSON."""
        return {
            str(alert): {"names": sorted(of.names), "more": of.more}
            for alert, of in self._kept.items()
            if of.names or of.more
        }

    def take_in(self, said: Mapping[Alert, LookSays], now: float) -> list[AlertChange]:
        """The news, the gravest first. said: an alert missing in it is forgotten. now: Unix time."""
        changes: list[AlertChange] = []
        for alert, of in self._kept.items():
            if alert not in said:
                self._kept[alert], self._blinks[alert] = _Kept(), _Blinks()
                continue
            self._settle(alert, said[alert], now)
            if alert not in self._anew:
                changes += self._changes(alert, of, said[alert])
        return sorted(changes, key=lambda change: (not change.began, _GRAVITY[RULES[change.alert].severity]))

    def _settle(self, alert: Alert, said: LookSays, now: float) -> None:
        """Names are on after being so for long enough, and off after long enough without."""
        blinks, wait = self._blinks[alert], RULES[alert].for_seconds
        for name in said.so:
            blinks.over.pop(name, None)
            # The names beyond those kept were told before this began anew.
            if now - blinks.since.setdefault(name, now) >= wait or alert in self._anew:
                blinks.on.add(name)
        if said.known is None or said.known:
            self._anew.discard(alert)
        for name in (blinks.since.keys() | blinks.on) - said.so.keys():
            if not self._is_known(alert, said, name):
                continue
            blinks.since.pop(name, None)
            if name in blinks.on and now - blinks.over.setdefault(name, now) >= ALERT_OVER_SECONDS:
                blinks.on.discard(name)
            if name not in blinks.on:
                blinks.over.pop(name, None)

    def _is_known(self, alert: Alert, said: LookSays, name: str) -> bool:
        """A source outside the pipeline counts as known: no look will ever name it, nor a table without hours."""
        places = {"source": self._pipeline.sources, "table": (ALL, *self._pipeline.completeness.tables), "disk": DISKS}
        gone = RULES[alert].tables is None and bool(name) and name not in places[RULES[alert].of]
        return gone or said.known is None or name in said.known

    def _changes(self, alert: Alert, of: _Kept, said: LookSays) -> list[AlertChange]:
        on = self._blinks[alert].on
        begun, ended = sorted(on - of.names), sorted(of.names - on)
        more, gone = len(begun), len(ended)
        if of.more:  # which of these were told isn't known any more
            more, gone = max(0, len(begun) - of.more), gone + max(0, of.more - len(begun))
        stays = of.names & on
        of.names = stays | set(begun[: max(0, ALERT_KEPT_TABLES_MAX - len(stays))])
        of.more = len(on) - len(of.names)
        changes = []
        if more:
            changes.append(self._change(alert, True, more, begun if more == len(begun) else (), said))
        if gone:
            changes.append(self._change(alert, False, gone, ended, LookSays({}, None)))
        return changes

    def _change(self, alert: Alert, began: bool, count: int, names: Sequence[str], said: LookSays) -> AlertChange:
        rule, shown = RULES[alert], tuple(names[:ALERT_NAMED_TABLES_MAX])
        do = f" {rule.do.format(pipeline=self._pipeline.pipeline)}" if began else ""
        if rule.tables is None and began and count == 1 and said.so.get(names[0]):
            return AlertChange(alert, began, count, shown, f"{said.so[names[0]]}.{do}")
        words = said.so if rule.tables is not None else said.beside
        listed = [table_shown(name) + (f" ({words[name]})" if words.get(name) else "") for name in shown if name]
        more = [f"{count - len(listed):,} more"] if listed and count > len(listed) else []
        amount = f" ({count:,})" if count > 1 else ""
        head = rule.title + amount + (f": {', '.join([*listed, *more])}" if listed else "")
        return AlertChange(alert, began, count, shown, f"{head}.{do}" if began else f"Over: {head}.")


def message(pipeline: str, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The value `alert` of a notifier's templates. changes: plain ones of one look, or of several."""
    subject = "nothing is new"
    if changes:
        first = changes[0]
        title = RULES[Alert(first["alert"])].title
        rest = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
        subject = f"{'' if first['began'] else 'over: '}{title}{rest}"
    severities = [Severity(change["severity"]) for change in changes if change["began"]]
    return {
        "pipeline": pipeline,
        "subject": f"{pipeline}: {subject}",
        "text": _bounded(f"{pipeline}: {change['line']}" for change in changes),
        "severity": str(min(severities, key=_GRAVITY.__getitem__, default=Severity.INFO)),
        "changes": list(changes),
    }


def _bounded(lines: Iterable[str]) -> str:
    text, left = "", 0
    for line in lines:
        if len(text) + len(line) > ALERT_TEXT_CHARACTERS_MAX:
            left += 1
        else:
            text += f"{line}\n"
    return text + (f"{left:,} more messages\n" if left else "")
