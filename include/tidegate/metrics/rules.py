"""The one list of alerts, and the conditions of each.

In:  samples of a look (measured.py), and the look itself for the names of tables.
Out: RULES: each alert with its figure, bound, gravity and words. says: the findings of a look, by alert.
     tools/alert_rules.py writes the same list as rules of Prometheus (docker/monitoring/alerts.yaml).

A figure without a sample is unknown: its alert neither begins nor ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tidegate.config import Alert
from tidegate.limits import DISK_LOW_BYTES, HOUR_SECONDS, WORK_BEGINS_SECONDS
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.hours import overdue_words, table_shown
from tidegate.text_layout import age_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.config import Pipeline
    from tidegate.metrics.disks import Disk
    from tidegate.metrics.measured import Sample
    from tidegate.pipelines import PipelineView

HOUR: Final = 3600.0


class Severity(StrEnum):
    """From the gravest on."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Measure(StrEnum):
    """The compared side of a sample."""

    VALUE = "value"
    AGE = "age"  # the sample is a Unix time
    ABSOLUTE = "absolute"


class Sign(StrEnum):
    """How the sample compares with the bound."""

    ABOVE = ">"
    BELOW = "<"
    IS = "=="


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison. labels: of the counting samples. times: the bound is so many of this metric's, of the same
    labels; only_if: this metric must be 1 for them. bound: its own one; no pipeline file changes it.
    """

    metric: str
    sign: Sign
    form: Measure = Measure.VALUE
    labels: Mapping[str, str] | None = None
    times: str = ""
    only_if: str = ""
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class AlertRule:
    """terms: any of them makes it so. bound: of all. title: of several at once; words: of one, with {value}, {source},
    {cause}, {disk}, {table}. do: a sentence with {pipeline}. tables: the tables behind the figure, with a word on each.
    runbook: a page of docs/runbooks. of: the label that names the trouble's place. beside: a few words more on some
    places; named_by: the metric with the names of their tables.
    """

    severity: Severity
    for_seconds: int
    bound: float
    terms: tuple[Term, ...]
    title: str
    words: str
    do: str
    tables: Callable[[PipelineView], Mapping[str, str]] | None = None
    runbook: str = ""
    of: str = "source"
    beside: Callable[[PipelineView], Mapping[str, str]] | None = None
    named_by: str = ""

    @property
    def is_of_bytes(self) -> bool:
        """Whether {value} is a number of bytes."""
        return all(term.metric.endswith("_bytes") for term in self.terms)

    @property
    def is_of_time(self) -> bool:
        """Whether {value} is a number of seconds."""
        return any(term.metric.endswith("_seconds") for term in self.terms)


def _held(view: PipelineView) -> dict[str, str]:
    return {table.table: table.cause for table in view.standing.held} if view.standing is not None else {}


def _different(view: PipelineView) -> dict[str, str]:
    return dict.fromkeys(view.different, "")


def _unread(view: PipelineView) -> dict[str, str]:
    return {f"{'.'.join(table.name)} of {table.source}": "" for table in view.failed_snapshots}


_WARNS, _CRITICAL = Severity.WARNING, Severity.CRITICAL
_ABOVE, _BELOW, _IS = Sign.ABOVE, Sign.BELOW, Sign.IS
_DOWN: Final = "`tidegate status {pipeline}` says since when, and what starts it again."

RULES: Final[Mapping[Alert, AlertRule]] = {
    Alert.LAKE_UNREADABLE: AlertRule(
        *(_CRITICAL, 300, 0, (Term("tidegate_up", _IS),)),
        "The lake can't be read",
        "the lake can't be read",
        "`tidegate status {pipeline}` says why.",
    ),
    Alert.NOT_STARTED: AlertRule(
        *(_WARNS, 900, 1, (Term("tidegate_state", _IS, labels={"state": "not started"}),)),
        "Nothing is applied",
        "nothing was ever applied",
        "`tidegate status {pipeline}` says why: capture or apply doesn't run, or the lake is an empty one.",
        runbook="restore-a-backup",
    ),
    Alert.STOPPED: AlertRule(
        *(_CRITICAL, 60, 1, (Term("tidegate_state", _IS, labels={"state": "stopped"}),)),
        "Apply has stopped",
        "apply has stopped",
        "The newest cut is in the future. The log of {pipeline}__apply says why.",
    ),
    Alert.SILVER_BEHIND: AlertRule(
        *(_WARNS, 300, 300, (Term("tidegate_lag_seconds", _ABOVE),)),
        "Silver is behind",
        "silver is {value} behind",
        "`tidegate top {pipeline}` and the page in Airflow say which is late: capture or apply.",
    ),
    Alert.CAPTURE_BEHIND: AlertRule(
        *(_WARNS, 300, 300, (Term("tidegate_source_lag_seconds", _ABOVE),)),
        "Bronze is behind its sources",
        "bronze is {value} behind {source}",
        "Does the capture DAG of {source} run? `tidegate status {pipeline}` shows each source, and whether it answers.",
    ),
    Alert.SOURCE_DOWN: AlertRule(
        *(_WARNS, 300, 0, (Term("tidegate_source_up", _IS),)),
        "Sources don't answer",
        "{source} doesn't answer",
        "`tidegate check {pipeline}` says why.",
        runbook="source-failed-over",
    ),
    Alert.SOURCE_LEFT_BEHIND: AlertRule(
        *(_WARNS, 60, 1, (Term("tidegate_source_left_behind", _IS),)),
        "The cut goes on without sources",
        "the cut goes on without {source}",
        "Its tables wait, and catch up once capture of it goes on.",
    ),
    Alert.TABLES_HELD: AlertRule(
        *(_WARNS, 300, 0, (Term("tidegate_held_tables", _ABOVE),)),
        "Tables are held",
        "tables are held: {value} ({cause})",
        "`tidegate status {pipeline}` says for each what ends it.",
        _held,
        runbook="table-held",
    ),
    Alert.SNAPSHOT_FAILED: AlertRule(
        *(_WARNS, 0, 0, (Term("tidegate_snapshot_tables", _ABOVE, labels={"state": "failed"}),)),
        "Snapshots failed",
        "snapshots failed: {value}",
        "`tidegate snapshot status {pipeline}` says why. They are tried again by themselves, less and less often.",
        _unread,
    ),
    Alert.VERIFICATION_DIFFERS: AlertRule(
        *(_CRITICAL, 0, 0, (Term("tidegate_verified_tables", _ABOVE, labels={"outcome": "different"}),)),
        "Tables differ from the source",
        "tables differ from the source: {value}",
        "`tidegate verify {pipeline}` shows the rows; `--repair` copies them again.",
        _different,
        runbook="wrong-data",
    ),
    Alert.VERIFICATION_OLD: AlertRule(
        *(Severity.INFO, 3600, 48 * HOUR),
        (Term("tidegate_unverified_since_timestamp_seconds", _ABOVE, Measure.AGE),),
        "The verification is old",
        "not verified for {value}",
        "Is {pipeline}__verify paused, and is verify.each_table_hours set? By hand: `tidegate verify {pipeline}`."
        " `each_table_hours: 0` switches this alert off.",
    ),
    Alert.PURGE_NEAR: AlertRule(
        *(_CRITICAL, 300, 24 * HOUR, (Term("tidegate_source_purge_in_seconds", _BELOW),)),
        "Sources purge uncaptured log soon",
        "{source} purges uncaptured log in {value}",
        "Start capture, or raise the source's retention.",
        runbook="binlog-purged",
    ),
    Alert.CAPTURE_DOWN: AlertRule(
        *(_WARNS, 300, 1, (Term("tidegate_capture_down", _IS),)),
        "Captures don't run",
        "capture of {source} doesn't run",
        _DOWN,
    ),
    Alert.APPLY_DOWN: AlertRule(
        *(_WARNS, 300, 1, (Term("tidegate_apply_down", _IS),)),
        "Apply doesn't run",
        "apply doesn't run",
        _DOWN,
    ),
    Alert.CAPTURE_SILENT: AlertRule(
        *(_WARNS, 300, 900, (Term("tidegate_capture_status_timestamp_seconds", _ABOVE, Measure.AGE),)),
        "Captures are silent",
        "capture of {source} is silent",
        "Does the capture DAG of {source} run?",
    ),
    Alert.VALUE_LOG_FULL: AlertRule(
        *(_CRITICAL, 300, 4 * HOUR),
        (
            Term(
                *("tidegate_capture_room_bytes", _BELOW),
                times="tidegate_capture_read_bytes_per_second",
                only_if="tidegate_capture_chasing",
            ),
        ),
        "Value logs are nearly full",
        "the value log of {source} is nearly full",
        "The lake doesn't take what capture reads. Mend the lake's store, or make room.",
        runbook="disk-full",
    ),
    Alert.DISK_LOW: AlertRule(
        *(_CRITICAL, 300, 0.1),
        (
            Term("tidegate_disk_free_bytes", _BELOW, times="tidegate_disk_bytes"),
            Term("tidegate_disk_free_bytes", _BELOW, bound=DISK_LOW_BYTES),
        ),
        "Disks are nearly full",
        "the disk of {disk} has {value} left",
        "Make room: a full disk stops what writes to it, and loses nothing.",
        runbook="disk-full",
        of="disk",
    ),
    Alert.DISK_SILENT: AlertRule(
        *(_CRITICAL, 120, 0, (Term("tidegate_disk_up", _IS),)),
        "Disks don't answer",
        "the disk of {disk} doesn't answer, and nobody knows its room",
        "Its mount hangs, or is stale: what reads or writes there hangs, too. Mount it again.",
        runbook="disk-full",
        of="disk",
    ),
    Alert.HOUR_OVERDUE: AlertRule(
        *(_WARNS, 60, 600, (Term("tidegate_hour_overdue_seconds", _ABOVE),)),
        "Hours are overdue",
        "an hour of {table} is over for {value} and isn't complete",
        "DAGs don't run for the hour. `tidegate status {pipeline}` says of each table what ends its wait.",
        runbook="hour-overdue",
        of="table",
        beside=overdue_words,
        named_by="tidegate_waiting_table_overdue_seconds",
    ),
    Alert.CLOCK_SKEW: AlertRule(
        *(Severity.INFO, 600, 2),
        (
            Term("tidegate_clock_skew_seconds", _ABOVE),
            Term("tidegate_source_clock_ahead_seconds", _ABOVE, Measure.ABSOLUTE),
        ),
        "Clocks differ",
        "clocks differ by {value}",
        "Use NTP: rows of the clock that is ahead are visible later.",
    ),
}


@dataclass(frozen=True, slots=True)
class LookSays:
    """A look's finding on an alert. so: name -> a word or a sentence. A name: of a source, of a table, ""
    for the pipeline. known: names with any knowledge in this look; None: all. beside: name -> a few words more.
    """

    so: Mapping[str, str]
    known: frozenset[str] | None
    beside: Mapping[str, str] = field(default_factory=dict)


def says(view: PipelineView, samples: Iterable[Sample]) -> dict[Alert, LookSays]:
    """Findings on all alerts, without those left out by the pipeline file. samples: of this view."""
    by_metric: dict[str, dict[tuple[str, ...], float]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, {})[sample.labels[1:]] = sample.value
    if view.standing is None:
        by_metric.pop("tidegate_state", None)  # "unreadable" doesn't say that it isn't any of the others
    wanted = {alert: rule for alert, rule in RULES.items() if alert not in view.pipeline.alerts.leave_out}
    return {alert: _said(alert, rule, view, by_metric) for alert, rule in wanted.items()}


def bound(alert: Alert, pipeline: Pipeline) -> float:
    """As the pipeline file says, or the rule's."""
    by_itself, capture = RULES[alert].bound, pipeline.capture
    if alert is Alert.PURGE_NEAR:
        by_itself = capture.retention_alert_hours * HOUR
    if alert is Alert.CAPTURE_SILENT:  # it may rest as long as a run, and writes no status then
        by_itself = max(by_itself, capture.run_for_seconds + WORK_BEGINS_SECONDS)
    if alert is Alert.VERIFICATION_OLD:  # each table is due once in so many hours, and waits for its turn
        by_itself = max(by_itself, ((pipeline.verify.each_table_hours or 0) + 24) * HOUR_SECONDS)
    return pipeline.alerts.bounds.get(alert, by_itself)


def is_low(disk: Disk, pipeline: Pipeline) -> bool:
    """Whether the alert disk_low is so of a disk."""
    return disk.free < max(disk.total * bound(Alert.DISK_LOW, pipeline), DISK_LOW_BYTES)


_Figures = Mapping[str, Mapping[tuple[str, ...], float]]


def _said(alert: Alert, rule: AlertRule, view: PipelineView, figures: _Figures) -> LookSays:
    if rule.tables is not None:
        return LookSays(rule.tables(view), frozenset() if view.standing is None else None)
    so: dict[str, str] = {}
    known: set[str] = set()
    limit = bound(alert, view.pipeline)
    beside = rule.beside(view) if rule.beside is not None else {}
    for term in rule.terms:
        for name, value, is_so in _compared(term, rule.of, limit, view.at, figures):
            known.add(name)
            if is_so:
                shown = age_text(value) if rule.is_of_time else size_text(value) if rule.is_of_bytes else f"{value:g}"
                said = rule.words.format(value=shown, **({"source": "", "cause": ""} | {rule.of: table_shown(name)}))
                so[name] = f"{said}: {beside[name]}" if name in beside else said
    return LookSays(so, frozenset(known), beside)


def _compared(term: Term, of: str, limit: float, now: float, figures: _Figures) -> Iterator[tuple[str, float, bool]]:
    """(name, the compared value, whether it is so) of each counting sample."""
    names = METRICS[term.metric].labels[1:]
    for labels, sampled in figures.get(term.metric, {}).items():
        by_name = dict(zip(names, labels, strict=True))
        if any(by_name[name] != value for name, value in (term.labels or {}).items()):
            continue
        factor = figures.get(term.times, {}).get(labels) if term.times else 1.0
        gate = figures.get(term.only_if, {}).get(labels) if term.only_if else 1.0
        if factor is None or gate is None:
            continue
        value = _formed(term.form, sampled, now)
        limit = limit if term.bound is None else term.bound
        is_so = {Sign.ABOVE: value > limit * factor, Sign.BELOW: value < limit * factor, Sign.IS: value == limit}
        yield by_name.get(of, ""), value, gate == 1 and is_so[term.sign]


def _formed(form: Measure, value: float, now: float) -> float:
    if form is Measure.AGE:
        return now - value
    return abs(value) if form is Measure.ABSOLUTE else value
