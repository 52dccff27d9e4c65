"""Rebuild: one silver table anew, from bronze alone, by apply's own steps.

In:  --pipeline FILE --table DB.T, perhaps --at CUT; an object store's keys in TIDEGATE_STORAGE_OPTIONS (JSON).
Out: a new silver table beside the old one, as it was at the cut; with --swap in its place. Exit codes as apply's; 1
     also when bronze no longer reaches back to the table's beginning, or --compare finds a difference.

The windows run in a scratch lake over the same bronze (tidegate/lake/rebuild/rebuild_lake.py), with today's schema
history. The policies `ask` and `stop` of the pipeline file's `ddl` count as `apply`: a person answered them long ago.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from spark_jobs.apply import apply_window
from spark_jobs.apply_steps.plan_window import next_catch_up, next_window, window_between
from spark_jobs.rebuilt_differences import differences_of
from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.failures import TableWriteError
from spark_jobs.session.job import configured, failed, lake_of, parser_of, sole
from spark_jobs.session.job_log import begin, tell
from spark_jobs.session.spark import application_session
from spark_jobs.swap import Swap
from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate import limits, tables
from tidegate.commit_ts import time_text
from tidegate.config import Cascades, Ddl, Pipeline, Policy
from tidegate.delta.leases.lease import Lease
from tidegate.errors import LakeRefused, LeaseHeld, TidegateError, UsageError
from tidegate.home import DIFFERS, EXIT_OK, EXIT_USAGE
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.lease_wishes import wait_for_lease
from tidegate.lake.rebuild.rebuild_lake import (
    SCRATCH,
    OnlyTables,
    RebuildLake,
    begin_ts,
    check_captured,
    history_pieces,
    moment,
    physical_tables,
    strangers,
)
from tidegate.lake.rebuild.rebuilt_parents import TableBetween, begin_with_parents, cascade_parents, reshaped_at
from tidegate.lake.rebuild.swap import mark_rebuilt, rebuilt_ts
from tidegate.lake.silver.folders import REBUILT
from tidegate.lake.standing.followed import load
from tidegate.merge.past import past_named
from tidegate.schema.model.columns import LEFT_OUT, TableVersion, VersionStatus
from tidegate.snapshot.progress.requests import events_of
from tidegate.snapshot.progress.whole import not_again, whole_since
from tidegate.table_names import Physical
from tidegate.tables import State
from tidegate.text_layout import counted

EXIT_DIFFERENT = 1


@dataclass(slots=True)
class Rebuild:
    """One table to rebuild. to: path of the new table within the lake; at_ts: it shows all changes up to there.
    physical: whose rows it has. above: parents by foreign keys that act below the log, and theirs. stops: where a
    window ends, at the latest.
    """

    pipeline: Pipeline
    lake: LakeFiles
    table: str
    at_ts: int
    to: str = ""
    physical: set[Physical] = field(default_factory=set)
    above: set[Physical] = field(default_factory=set)
    stops: list[int] = field(default_factory=list)
    database: str = ""
    name: str = ""
    begin_ts: int = 0
    lease: Lease | None = None

    @classmethod
    def plan(cls, pipeline: Pipeline, lake: LakeFiles, table: str, at: str, to: str) -> Rebuild:
        """Where it begins and what belongs to it. Raises UsageError, LakeRefused."""
        plan = cls(pipeline, lake, table, moment(lake, table, at))
        known = physical_tables(history_pieces(lake), pipeline.tables, table, pipeline.sources)
        plan.physical = known - strangers(known, pipeline.tables, load(lake).left)
        if not plan.physical:
            raise UsageError(f"no table {table}", where=pipeline.pipeline, remedy="give database.table as in silver")
        pairs = {pipeline.tables.logical(*name.pair)[:2] for name in plan.physical}
        plan.database, plan.name = next(pair for pair in pairs if ".".join(pair) == table)
        rows = list(_history_of(lake, plan.physical))
        own = [row for row in rows if pipeline.tables.logical(row["database"], row["table"])[:2] == plan.pair]
        begin, parents = begin_ts(rows, plan.at_ts, emptied=plan.is_alone), list[TableBetween]()
        above = list[dict[str, Any]]()
        if pipeline.ddl.unlogged_cascades is Cascades.FOLLOW and begin is not None:
            plan.above, parents = cascade_parents(lambda: history_pieces(lake), pipeline.tables, plan.physical)
            if plan.above:
                above = list(_history_of(lake, plan.above | {giver for of in parents for giver in of.givers}))
                reshaped = reshaped_at([*rows, *(row for row in above if _physical(row) in plan.above)])
                plan.stops = sorted({ts for stamp in reshaped for ts in (stamp - 1, stamp) if ts < plan.at_ts})
        if pipeline.tables.keeps_past(*plan.pair) and pipeline.tables.is_target(table):
            # A window leaves a shard out that lacks rows at its end: what it had until then is of its past.
            left = [row["commit_ts"] for row in own if row["kind"] == LEFT_OUT]
            plan.stops = sorted({*plan.stops, *(at for at in left if at < plan.at_ts)})
        if begin is None or begin_ts(own, plan.at_ts, emptied=False) is None:
            raise UsageError(
                f"{table} wasn't there yet at {plan.at_ts}", where=pipeline.pipeline, remedy="give a later --at"
            )
        # Foreign keys change rows of a parent in between as well, so its rows must be known, too.
        between = [plan._between(parent, above) for parent in parents]
        plan.begin_ts = begin_with_parents(plan._read_since(rows, begin), plan.at_ts, plan.physical, between)
        plan.to = tables.silver_path(plan.database, to or f"{plan.name}{REBUILT}{plan.at_ts}")
        if plan.to == tables.silver_path(*plan.pair):  # it would be removed when it is done
            raise UsageError("--to names the live table", where=plan.to, remedy="give another name, or none")
        return plan

    @property
    def pair(self) -> tuple[str, str]:
        return self.database, self.name

    @property
    def app_id(self) -> str:
        """Under which the live table, and this one, record how far they are."""
        return tables.app_id(self.pipeline.pipeline, self.table)

    @property
    def is_alone(self) -> bool:
        """Whether a CREATE or TRUNCATE of the table leaves none of silver's earlier rows."""
        return len(self.physical) == 1 and self._may_be_emptied(self.database, self.name)

    def _may_be_emptied(self, database: str, table: str) -> bool:
        """Whether a CREATE or TRUNCATE leaves nothing of a logical table."""
        ddl = self.pipeline.ddl
        follows = Policy.IGNORE not in (ddl.truncate, ddl.drop_table)
        return follows and not self.pipeline.tables.keeps_past(database, table)

    def _read_since(self, versions: Sequence[Mapping[str, Any]], begin: int) -> int:
        """If bronze has lost the beginning of its rows: the commit_ts from which a whole snapshot gives all of them.

        A snapshot reads parents and children at different moments. A table that is its own parent begins only where
        it was empty. A table without a key does so, too: a change can't find a row that wasn't read yet.
        """
        (table, *others) = self.physical
        if others or not self.is_alone or table in self.above:
            return begin
        index = BronzeIndex(self.lake)
        index.refresh(0)
        if index.begin(table.source) <= begin:
            return begin
        known = map(TableVersion.from_row, versions)
        if not all(version.key for version in known if version.status is not VersionStatus.DROPPED):
            return begin
        since = whole_since(events_of(self.lake, self.pipeline.pipeline), table, self.at_ts)
        return begin if since is None else max(begin, since - 1)

    def _between(
        self, table: TableBetween, versions: Sequence[dict[str, Any]]
    ) -> tuple[TableBetween, list[dict[str, Any]], bool]:
        """A table between with its own of the versions, and whether it may be emptied."""
        (database, name, routed), *_ = (self.pipeline.tables.logical(*giver.pair) for giver in table.givers)
        alone = len(table.givers) == 1 and not routed and self._may_be_emptied(database, name)
        return table, [row for row in versions if _physical(row) in table.givers], alone

    def application(self, spark: BackgroundSession, scratch: str) -> Application:
        """An apply of this table alone, in a lake of its own that stands where the table begins."""
        given = self.pipeline
        pairs = frozenset(name.pair for name in self.physical | self.above)
        only = OnlyTables(**given.tables.model_dump(), only=pairs)
        policies = {kind: _answered(policy) if isinstance(policy, Policy) else policy for kind, policy in given.ddl}
        owners = {of.source for of in self.physical}
        own_sources = {name: source for name, source in given.sources.items() if given.owner(name) in owners}
        changed = {"tables": only, "ddl": Ddl.model_validate(policies), "sources": own_sources}
        pipeline = given.model_copy(update=changed)
        silver = tables.silver_path(self.database, self.name)
        lake = RebuildLake(self.lake.root, self.lake.storage_options, silver=silver, to=self.to, scratch=scratch)
        copy = control.ControlTables(lake)
        for piece in history_pieces(self.lake):
            copy.append(tables.SCHEMA_HISTORY, piece.to_pylist())
        for known in (tables.JUDGEMENTS, tables.SNAPSHOTS, tables.PREWRITES):
            control.append(lake, known, control.read(self.lake, known).to_pylist())
        app = Application(spark, pipeline, lake, BronzeIndex(lake), self.lease)
        if self.begin_ts:
            cut = {"cut_ts": self.begin_ts, "table": "", "delta_version": -1, "applied_ts": self.begin_ts}
            row = {**cut, "state": "active", "published_at": datetime.now(UTC)}
            control.append(lake, tables.CUTS, [row], (app.cuts_app_id, self.begin_ts))
        return app

    def run(self, spark: BackgroundSession, report: Callable[[str], None]) -> int:
        """Apply windows up to at_ts; returns how many. Raises LakeRefused when the table can't be had from bronze."""
        self.lake.delete_folder(SCRATCH)  # what a killed one left
        scratch = f"{SCRATCH}/{uuid.uuid4().hex[:8]}"
        app = self.application(spark, scratch)
        windows = 0
        try:
            app.load()
            self._check_reaches(app)
            while (window := self._next(app)) is not None:
                done = apply_window(app, window)
                windows += 1
                cut_ts, segments = done.window.cut_ts, len(done.window.refs)
                report(f"cut {cut_ts} of {self.at_ts}: {segments} segments, {done.rows} changes")
                app.lake.empty("staging")
                app.control.tidy()
            self._check(app)
            mark_rebuilt(self.lake.log(self.to), self.app_id, self.at_ts)
            app.check_claim()  # whoever takes the lease removes what this one reads
        except BaseException:
            self.lake.delete_folder(self.to)  # never to be taken for the whole table
            raise
        finally:
            app.checkpoints.close()
            self.lake.delete_folder(SCRATCH if self.lease is None or self.lease.held else scratch)
        return windows

    def _check_reaches(self, app: Application) -> None:
        """Raises LakeRefused when what the table begins with has left bronze, or what it ends with isn't there yet."""
        app.index.refresh(app.cut_ts)
        for source in app.pipeline.sources:
            check_captured(app.index, source, self.table, self.at_ts)
            if (reaches_ts := app.index.begin(source)) > self.begin_ts:
                raise LakeRefused(
                    f"can't be rebuilt at {self.at_ts}: its rows begin at {time_text(self.begin_ts)}, and bronze has no"
                    f" log of {source} from before {time_text(reaches_ts)} any more (maintain.keep_bronze_days)",
                    where=self.table,
                    remedy="tidegate snapshot start repairs the live table, and such a table is rebuilt from the first"
                    " rows of its parents, or from where they were last empty (docs/inside/cascades.md)"
                    if self.above
                    else "its past can't be had again: end its mode in the pipeline file, delete its past in silver,"
                    " run tidegate snapshot start, and name it again (docs/history.md)"
                    if self.pipeline.tables.keeps_past(*self.pair)
                    else "tidegate snapshot start reads it anew: it can be rebuilt from that snapshot's beginning on",
                )

    def _next(self, app: Application) -> Window | None:
        """Apply's next window, which ends at at_ts, or a stop, at the latest; None when all is applied up to there."""
        app.index.refresh(app.cut_ts)
        upto_ts = next((stop for stop in self.stops if stop > app.cut_ts), self.at_ts)
        window = next_catch_up(app, 0) or next_window(app)
        if window is not None and window.cut_ts <= upto_ts:
            return window
        return window_between(app, app.cut_ts, upto_ts) if app.cut_ts < upto_ts else None

    def _check(self, app: Application) -> None:
        state = app.states.get(self.table)
        if state is not None and state.state in (State.HELD, State.DROPPED):
            raise LakeRefused(
                f"can't be rebuilt from bronze at {self.at_ts}: {state.reason}",
                where=self.table,
                remedy="choose another --at" if state.state == State.DROPPED else "remove that cause",
            )
        before, after = (events_of(lake, self.pipeline.pipeline) for lake in (self.lake, app.lake))
        if reason := not_again(before, after, self.physical | self.above, self.begin_ts):
            raise LakeRefused(
                f"can't be rebuilt from bronze at {self.at_ts}: it would lack rows of a snapshot: {reason}",
                where=self.table,
                remedy="tidegate snapshot start reads it anew",
            )
        if not self.lake.log(self.to).state().created:
            raise LakeRefused(
                f"no change up to {self.at_ts} is in bronze", where=self.table, remedy="give a later --at"
            )

    def differences(self, spark: BackgroundSession) -> tuple[int, int] | None:
        """Rows that only the new table has, and only silver; None when silver can't be read at at_ts."""
        where = "true" if self.compares_all else past_named(self.pipeline.tables.pasts(*self.pair)).live
        return differences_of(self.lake, self.pair, self.to, self.at_ts, spark, where)

    @property
    def compares_all(self) -> bool:
        """False where old versions hang on where windows ended: a rebuild's end elsewhere than apply's did."""
        return not self.pipeline.tables.one_version_per_window(*self.pair)


def _history_of(lake: LakeFiles, names: AbstractSet[Physical]) -> Iterator[dict[str, Any]]:
    """Rows of control/schema_history."""
    for piece in history_pieces(lake, {name.table for name in names}):
        for row in piece.to_pylist():
            if _physical(row) in names:
                yield row


def _physical(row: Mapping[str, Any]) -> Physical:
    return Physical(row["source"], row["database"], row["table"])


def _answered(policy: Policy) -> Policy:
    return Policy.IGNORE if policy is Policy.IGNORE else Policy.APPLY


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = parser_of("rebuild", "Rebuild one silver table from bronze alone, as a new table.")
    parser.add_argument("--table", required=True, help="silver table, database.table")
    parser.add_argument("--at", default="", help="a cut_ts, or a time in ISO form; the newest cut when left out")
    parser.add_argument("--to", default="", help="name of the new table; <table>__rebuilt_<cut> when left out")
    parser.add_argument("--compare", action="store_true", help="say whether silver at that cut has the same rows")
    parser.add_argument("--swap", action="store_true", help="put it in the place of the live table, in one commit")
    return parser.parse_args(argv)


def rebuild(plan: Rebuild, spark: BackgroundSession, *, compare: bool, report: Callable[[str], None]) -> int:
    """Run a plan and say what came of it; the exit code. Raises UsageError when the new table's place is taken."""
    if plan.lake.listed(plan.to):
        name = plan.to.rpartition("/")[2]
        remedy = f"give another --to, or remove it; or put it in the live one's place: --swap --to {name}"
        raise UsageError("is there already", where=plan.to, remedy=remedy)
    windows = plan.run(spark, report)
    report(f"rebuilt {plan.table} at {plan.at_ts} in {counted(windows, 'window', 'windows')}: {plan.lake.uri(plan.to)}")
    if not compare:
        return EXIT_OK
    differences = plan.differences(spark)
    if differences is None:
        report(f"not compared: no kept cut says how silver was at {plan.at_ts}: give --at a kept cut")
        return EXIT_DIFFERENT
    if differences == (0, 0):
        report("equal" if plan.compares_all else "equal, its old versions left out: they hang on where windows end")
        return EXIT_OK
    report(f"{DIFFERS}{differences[0]} rows only here, {differences[1]} rows only in silver")
    return EXIT_DIFFERENT


def swap(plan: Rebuild, spark: BackgroundSession, *, report: Callable[[str], None], wait_seconds: float = 0.0) -> None:
    """Put a rebuilt table in the live one's place.

    Raises LeaseHeld while an apply runs for wait_seconds: then nothing has changed.
    """
    silver = tables.silver_path(*plan.pair)
    work = Swap(plan.lake, plan.pipeline.pipeline, plan.table, plan.to, silver)
    report(f"{counted(work.bring(), 'file is', 'files are')} brought to {plan.lake.uri(silver)}")
    try:
        with wait_for_lease(plan.lake, plan.pipeline.pipeline, "apply", wait_seconds, report=report) as lease:
            app = Application(spark, plan.pipeline, plan.lake, BronzeIndex(plan.lake), lease)
            try:
                work.run(app, report)
            finally:
                app.checkpoints.close()
    except LeaseHeld as error:
        name = plan.to.rpartition("/")[2]
        raise LeaseHeld(
            error.what,
            where=error.where,
            remedy=f"it is rebuilt; wait until apply's run has ended (pause its DAG), then add --swap --to {name}",
        ) from error


def main(argv: list[str]) -> int:
    """Entry of spark-submit."""
    arguments = _arguments(argv)
    begin()
    try:
        pipeline = configured(arguments.pipeline, "apply", arguments.set)
        lake = lake_of(pipeline)
        with sole(lake, pipeline.pipeline, "rebuild") as lease:
            plan = Rebuild.plan(pipeline, lake, arguments.table, arguments.at, arguments.to)
            plan.lease = lease
            make = partial(application_session, f"tidegate rebuild {plan.table}", lake.spark_options)
            spark = BackgroundSession(make)
            whole = arguments.swap and bool(rebuilt_ts(lake.log(plan.to).state(), plan.app_id))
            code = EXIT_OK if whole else rebuild(plan, spark, compare=arguments.compare, report=tell)
            if arguments.swap:
                swap(plan, spark, report=tell, wait_seconds=limits.SWAP_LEASE_WAIT_SECONDS)
            spark.stop()
    except UsageError as error:
        failed(error)
        return EXIT_USAGE
    except (TidegateError, TableWriteError) as error:
        return failed(error)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
