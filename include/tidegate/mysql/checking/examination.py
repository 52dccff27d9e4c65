"""Can a pipeline run? Its sources' settings, grants and clocks, its tables, its lake; captured or not.

In:  a pipeline, its lake, a way to connect to its sources.
Out: an Examination: one line per finding. Nothing is written at the sources. The lake is tried with
     one small file.

It asks capture's questions (mysql/demands/preflight.py, mysql/start/baseline.py). It also asks about
things capture can't refuse: tables to be held, and the server's unlogged changes of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final

import pymysql

from tidegate.config import Cascades, Flavour, Pipeline, SnapshotMode, Start, near_table
from tidegate.errors import TidegateError, Transient
from tidegate.lake.bronze.table import check_writable
from tidegate.lake.figures.status import captured_server
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import check_owner
from tidegate.limits import CHECK_ANSWER_SECONDS, CLOCK_SKEW_SECONDS_MAX
from tidegate.mysql.checking.idle_rules import idle_patterns, idle_rules
from tidegate.mysql.checking.unfit_modes import unfit_mode, unfit_rules
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.demands.paste import ToRun, marks_grant
from tidegate.mysql.demands.preflight import Level, SourceDemands, findings
from tidegate.mysql.demands.snapshot_grants import marks_of, may_lock, run_there, unmarked
from tidegate.mysql.facts.branches import prepared_branches
from tidegate.mysql.facts.server_facts import SourceFacts, read_clock_ms, read_facts
from tidegate.mysql.facts.unlogged_columns import logs_generated, needed_to_compute, of_no_one_value, unlogged_columns
from tidegate.mysql.servers.hosts import host_of
from tidegate.mysql.servers.other_hosts import about
from tidegate.mysql.servers.same_server import same_server, shares_rows
from tidegate.mysql.sql_text.catalog import asked_by, names_there
from tidegate.mysql.start.baseline import read_baseline
from tidegate.mysql.start.recorded import Began, newest_statuses, recorded_start
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.hidden_changes import kept_elsewhere, unlogged_cascade
from tidegate.schema.model.server import ServerVersion
from tidegate.tables import WATERMARK
from tidegate.text_layout import counted

_NAMES_MAX: Final = 8


class SourceVerdict(StrEnum):
    REFUSED = "refused"  # capture or apply won't run
    UNKNOWN = "unknown"  # it could not be found out now
    HELD = "held"  # runs; these tables wait
    CAUTION = "caution"  # runs; look at it
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Line:
    """of: a source, "lake", "Airflow" or "pipeline file". text: of the tables, if it names some."""

    of: str
    verdict: SourceVerdict
    text: str
    tables: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self._names}: {self.text}" if self.tables else self.text

    @property
    def _names(self) -> str:
        more = len(self.tables) - _NAMES_MAX
        return ", ".join(self.tables[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")

    def shown(self, sources: Collection[str]) -> str:
        """The line as shown, with its verdict and its subject. sources: of the pipeline."""
        head = "" if self.verdict is SourceVerdict.NOTE else f"{str(self.verdict).upper()}: "
        of = f"source {self.of}" if self.of in sources else self.of
        names = self._names + (f" of {of}" if len(sources) > 1 else "")
        return f"{head}{names if self.tables else of}: {self.text}"


@dataclass(slots=True)
class Examination:
    """All findings, in the order of the questions. to_run: by source, commands to be pasted there."""

    pipeline: str
    lines: list[Line] = field(default_factory=list)
    to_run: dict[str, ToRun] = field(default_factory=dict)

    def has(self, verdict: SourceVerdict) -> bool:
        return any(line.verdict is verdict for line in self.lines)

    def to_json(self) -> dict[str, Any]:
        cells = asdict(self)
        return {"pipeline": self.pipeline, "findings": cells["lines"], "to_run": cells["to_run"]}


def examine(
    pipeline: Pipeline,
    lake: LakeFiles,
    connection_of: Callable[[str], ConnectionInfo],  # by conn_id
    elsewhere: Mapping[str, Callable[[], Iterable[Line]]] | None = None,
) -> Examination:
    """elsewhere: examiners of sources without a server. If a source fails, this is a line, too."""
    examination, known, of_lake = Examination(pipeline.pipeline), dict[str, _Source](), ""
    try:
        check_writable(lake)
        check_owner(lake, pipeline.pipeline)
        examination.lines.append(Line("lake", SourceVerdict.NOTE, f"{lake.root} can be written"))
    except TidegateError as error:
        of_lake, examination.lines = str(error), [failed("lake", error)]
    for name in pipeline.sources:
        try:
            if elsewhere and name in elsewhere:
                examination.lines += elsewhere[name]()
                continue
            hosts = connection_of(pipeline.server(name).conn_id)
            examination.lines += _source_lines(pipeline, name, lake, hosts, known)
        except TidegateError as error:
            examination.lines += [failed(name, error)] * (str(error) != of_lake)
    examination.to_run = {name: source.to_run for name, source in known.items() if source.to_run}
    examination.lines += _mixed(pipeline, known)
    if known.keys() == pipeline.sources.keys():
        versions = [version for source in known.values() for version in source.versions]
        shown = [name for source in known.values() for name in source.shown]
        idle = [pattern for pattern in pipeline.tables.include if all(pattern in each.idle for each in known.values())]
        for what in idle_rules(pipeline.tables, versions, idle, shown):
            text = f"{what}: is it mistyped? The rule does nothing now"
            examination.lines.append(Line("pipeline file", SourceVerdict.CAUTION, text))
    return examination


def _mixed(pipeline: Pipeline, known: Mapping[str, _Source]) -> Iterator[Line]:
    """Tables without a route of their own, whose name is another route's target."""
    flows: dict[tuple[str, str], list[tuple[str, tuple[str, str]]]] = {}
    for name, source in known.items():
        for table in source.names:
            flows.setdefault(pipeline.tables.logical(*table)[:2], []).append((name, table))
    for logical, of in flows.items():
        if pipeline.tables.mixes(physical for _, physical in of):
            plain = [(name, physical) for name, physical in of if not pipeline.tables.logical(*physical)[2]]
            text = f"no route names it, and a route brings other tables into {'.'.join(logical)}: both are held"
            yield Line(plain[0][0], SourceVerdict.HELD, text, tuple(f"{d}.{t}" for _, (d, t) in plain))


def _source_lines(
    pipeline: Pipeline, name: str, lake: LakeFiles, hosts: ConnectionInfo, known: dict[str, _Source]
) -> list[Line]:
    """Lines about the host of capture (or the one it would read), then about each other host: can it
    take over?

    known: the earlier sources; this one is added.
    """
    info = host_of(hosts, captured_server(lake, name) if hosts.others else None)
    others = [(host, _facts_or_error(host)) for host in hosts.each if host.endpoint != info.endpoint]
    with connect(info, read_timeout=CHECK_ANSWER_SECONDS) as connection:
        try:
            source = _Source(pipeline, name, lake, info, connection)
            lines = list(source.lines())
            lines += source.beside(known)
            known[name] = source
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, info) from error
    for host, facts in others:
        if isinstance(facts, TidegateError):
            lines.append(Line(name, SourceVerdict.CAUTION, f"host {host.endpoint} can't take over now: {facts}"))
            continue
        for level, text in about(source.facts, facts, SourceDemands.of(pipeline, name)):
            verdict = SourceVerdict.NOTE if level is None else SourceVerdict.CAUTION
            lines.append(Line(name, verdict, f"host {host.endpoint} {text}"))
    return lines


def _facts_or_error(host: ConnectionInfo) -> SourceFacts | TidegateError:
    try:
        with connect(host, read_timeout=CHECK_ANSWER_SECONDS) as connection:
            return read_facts(connection, host)
    except TidegateError as error:
        return error
    except (pymysql.err.MySQLError, OSError) as error:
        return named(error, host)


def failed(of: str, error: TidegateError, tables: tuple[str, ...] = ()) -> Line:
    return Line(
        of, SourceVerdict.UNKNOWN if isinstance(error, Transient) else SourceVerdict.REFUSED, str(error), tables
    )


@dataclass(slots=True)
class _Source:
    """One source, over one connection."""

    pipeline: Pipeline
    name: str
    lake: LakeFiles
    info: ConnectionInfo
    connection: Any
    facts: SourceFacts = field(init=False)
    to_run: ToRun = field(init=False, default=ToRun())
    versions: list[TableVersion] = field(init=False, default_factory=list)
    idle: set[str] = field(init=False, default_factory=set)  # patterns of include without a table here
    shown: list[tuple[str, str]] = field(init=False, default_factory=list)

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(version.database, version.table) for version in self.versions]

    def lines(self) -> Iterator[Line]:
        facts = self.facts = read_facts(self.connection, self.info)
        yield self._line(SourceVerdict.NOTE, f"the server is {facts.version} at {facts.where}{facts.managed}")
        with self.connection.cursor() as cursor:
            self.to_run = run_there(cursor, facts, self.pipeline, self.name)
        refused = False
        for finding in findings(facts, SourceDemands.of(self.pipeline, self.name)):
            refused = refused or finding.level is Level.REFUSE
            level = SourceVerdict.REFUSED if finding.level is Level.REFUSE else SourceVerdict.CAUTION
            yield self._line(level, f"{finding.what}; {finding.remedy}")
        yield from self._clock()
        began = recorded_start(self.lake, self.name)
        yield from self._start(facts, began, refused=refused)
        if facts.position is not None and not refused:
            yield from self._tables(facts, began)
            yield from self._marks(facts)
            yield from self._branches()

    def beside(self, others: Mapping[str, _Source]) -> Iterator[Line]:
        """Other sources of the pipeline that bring the same rows."""
        ours, known = (self.info, self.facts), {name: (other.info, other.facts) for name, other in others.items()}
        if text := same_server(ours, known):
            yield self._line(SourceVerdict.REFUSED, text)
        elif text := shares_rows(ours, known):
            yield self._line(SourceVerdict.CAUTION, text)

    def _line(self, verdict: SourceVerdict, text: str, tables: tuple[str, ...] = ()) -> Line:
        return Line(self.name, verdict, text, tables)

    def _clock(self) -> Iterator[Line]:
        with self.connection.cursor() as cursor:
            ahead = read_clock_ms(cursor) / 1000 - time.time()
        if abs(ahead) > CLOCK_SKEW_SECONDS_MAX:
            how = "ahead of" if ahead > 0 else "behind"
            text = (
                f"the server's clock is {abs(ahead):.1f} s {how} this machine's: lags are shown wrong by that; use NTP"
            )
            yield self._line(SourceVerdict.CAUTION, text)

    def _start(self, facts: SourceFacts, began: Began | None, *, refused: bool) -> Iterator[Line]:
        """`start` counts only once. Its present value is tried, or reported as having no effect."""
        wanted = self.pipeline.server(self.name).start
        if began is not None:
            text = f"its capture began at {began.file}:{began.offset} with start: {began.start}"
            if began.start != wanted:
                text += f"; start: {wanted} has no effect any more: it needs a new lake (see docs/production.md)"
            yield self._line(SourceVerdict.CAUTION if began.start != wanted else SourceVerdict.NOTE, text)
            return
        try:
            Began.of(facts, self.pipeline.server(self.name))
        except TidegateError as error:
            if not refused:  # else a missing right or setting says why already
                yield failed(self.name, error)
        else:
            yield self._line(SourceVerdict.NOTE, f"nothing is captured yet; capture would begin with start: {wanted}")

    def _tables(self, facts: SourceFacts, began: Began | None) -> Iterator[Line]:
        keeps = self.pipeline.tables.keeps
        assert facts.position is not None, "asked for before"
        versions = read_baseline(self.connection, self.name, keeps, facts.position)
        versions = [version for version in versions if version.table]
        self.versions = versions
        self.idle = set(idle_patterns(self.pipeline.tables, versions))
        if self.idle:
            with self.connection.cursor() as cursor:
                self.shown = names_there(asked_by(cursor))
        if not versions:
            read = self.pipeline.tables.include_as_read
            text = f"tables.include matches no table that the server shows this account ({read}):"
            near = near_table(self.pipeline.tables.include[0], self.shown)
            text += " correct them, or grant it SELECT there" + "".join(f"; did you mean {name}?" for name in near)
            yield self._line(SourceVerdict.REFUSED if began is None else SourceVerdict.CAUTION, text)
            return
        matching = counted(len(versions), "table matches", "tables match")
        yield self._line(SourceVerdict.NOTE, f"{matching} tables.include, of those that the server shows us")
        if began is None and self.pipeline.server(self.name).start is Start.NOW:
            verdict, text = self._by_snapshot("rows from before capture")
            yield from self._about(verdict, f"{text} (not with start: earliest)", versions, lambda v: v.status.waits)
        elif began is not None:
            known = newest_statuses(self.lake, self.name)
            yield from self._unknown_rows(known, [version for version in versions if version.status.waits])
            yield from self._not_shown(known, versions)
        text = "no key: a change is found by comparing the whole row, equal rows by counting them"
        yield from self._about(SourceVerdict.CAUTION, text, versions, lambda v: not v.key)
        text = "no key: a snapshot locks them for some milliseconds, and the account may not"
        text += f" (run there: GRANT LOCK TABLES, PROCESS ON *.* TO {facts.account})"
        yield from self._about(
            SourceVerdict.CAUTION, text, versions, lambda v: not v.key and not may_lock(facts, v.database)
        )
        yield from self._unlogged(versions)
        text = "engine MEMORY: a restart of the server empties them by a statement, which holds them"
        yield from self._about(SourceVerdict.CAUTION, text, versions, lambda v: v.engine in ("memory", "heap"))
        server = ServerVersion.of(facts.version)
        if not logs_generated(server):
            asked, held = unlogged_columns(self.pipeline, versions)
            logged = "generated columns, which MariaDB 11.8 logs in inserts alone"
            text = f"{logged}: apply asks the source for the values of updated rows{needed_to_compute(facts)}"
            yield from self._about(SourceVerdict.NOTE, text, asked, lambda _: True)
            text = f"{logged}: an update holds them; leave these columns out (tables.columns)"
            yield from self._about(SourceVerdict.CAUTION, text, held, lambda _: True)

    def _not_shown(
        self, known: Mapping[tuple[str, str], VersionStatus], versions: list[TableVersion]
    ) -> Iterator[Line]:
        """Among followed tables: those hidden by the server, as it does without a right of the account."""
        shown = {(version.database, version.table) for version in versions}
        hidden = {name for name, status in known.items() if status is not VersionStatus.DROPPED} - shown
        names = tuple(
            sorted(f"{database}.{table}" for database, table in hidden if self.pipeline.tables.keeps(database, table))
        )
        text = "followed, and the server doesn't show them: our account has no SELECT on them any more (run there:"
        text += f" GRANT SELECT ON <table> TO {self.facts.account}), unless apply only hasn't come to their DROP or"
        if names:
            yield self._line(SourceVerdict.CAUTION, f"{text} RENAME yet", names)

    def _unknown_rows(self, known: Mapping[tuple[str, str], VersionStatus], full: list[TableVersion]) -> Iterator[Line]:
        """Among tables with rows now: those that capture hasn't followed since they were empty."""
        old = "rows from before capture began, or from changes that the binlog doesn't tell"
        verdict, text = self._by_snapshot(old)
        statuses = {(v.database, v.table): known.get((v.database, v.table)) for v in full}
        yield from self._about(
            verdict, text, full, lambda v: (status := statuses[v.database, v.table]) is not None and status.waits
        )
        new = "rows from before they were followed, unless apply is about to come to their CREATE TABLE"
        verdict, text = self._by_snapshot(new)
        # Perhaps the log has them from their CREATE on: then nothing is held.
        verdict = SourceVerdict.CAUTION if verdict is SourceVerdict.HELD else verdict
        yield from self._about(verdict, text, full, lambda v: statuses[v.database, v.table] is None)

    def _marks(self, facts: SourceFacts) -> Iterator[Line]:
        """Where the marks of snapshots go."""
        if self.pipeline.snapshot.mode is SnapshotMode.MANUAL:
            return
        with self.connection.cursor() as cursor:
            account, writes = marks_of(cursor)
        grants = f"run there: {marks_grant(account)}"
        ours = "" if writes else f"the account has no grant of its own to write {WATERMARK} ({grants})"
        why = unmarked(self.pipeline, facts) or ours
        if not why:
            return
        if facts.flavour is Flavour.MYSQL and not facts.on("gtid_mode"):
            text = f"{why}, and without gtid_mode=ON snapshots need marks: what waits for one stays held"
            yield self._line(SourceVerdict.CAUTION, text)
        else:
            text = f"snapshots are read without marks in the log, each wave when capture has come to its end: {why}"
            yield self._line(SourceVerdict.NOTE, text)

    def _branches(self) -> Iterator[Line]:
        """MySQL shows prepared transactions only to an account with a right of its own."""
        with self.connection.cursor() as cursor:
            try:
                prepared_branches(cursor)
            except pymysql.err.MySQLError as error:
                account, _ = marks_of(cursor)
                why = f"XA RECOVER is refused ({error.args[-1]}), which tells answered XA transactions from others"
                grant = f"where applications use XA: GRANT XA_RECOVER_ADMIN ON *.* TO {account}"
                yield self._line(SourceVerdict.NOTE, f"{why}; {grant}")

    def _by_snapshot(self, what: str) -> tuple[SourceVerdict, str]:
        """The verdict on tables whose rows a snapshot reads."""
        if self.pipeline.snapshot.mode is SnapshotMode.AUTO:
            return SourceVerdict.NOTE, f"{what}: a snapshot reads them by itself"
        return SourceVerdict.HELD, f"{what}: held until `tidegate snapshot start` reads them"

    def _about(
        self, verdict: SourceVerdict, text: str, versions: list[TableVersion], concerned: Callable[[TableVersion], bool]
    ) -> Iterator[Line]:
        if names := tuple(f"{version.database}.{version.table}" for version in versions if concerned(version)):
            yield self._line(verdict, text, names)

    def _unlogged(self, versions: list[TableVersion]) -> Iterator[Line]:
        """Tables whose rows change without row events or differ by session, or that can't have their mode."""
        holds = self.pipeline.ddl.unlogged_cascades is not Cascades.WARN
        no_one_value = partial(of_no_one_value, self.pipeline)
        for text, verdict, why_of in (
            ("rows where the binlog doesn't reach: they will be held", SourceVerdict.HELD, kept_elsewhere),
            (
                "changes by foreign keys in ways that the binlog doesn't show (ddl.unlogged_cascades)",
                SourceVerdict.HELD if holds else SourceVerdict.CAUTION,
                unlogged_cascade,
            ),
            ("held until these columns are left out (tables.columns)", SourceVerdict.HELD, no_one_value),
            ("held with this mode", SourceVerdict.HELD, partial(unfit_mode, self.pipeline)),
            ("held by these rules", SourceVerdict.HELD, partial(unfit_rules, self.pipeline)),
        ):
            reasons = {f"{version.database}.{version.table}": why_of(version) for version in versions}
            if names := tuple(f"{name} ({why})" for name, why in reasons.items() if why):
                yield self._line(verdict, text, names)
