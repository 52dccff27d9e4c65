"""`tidegate erase`: a person's rows leave the lake, and each table has a line of its own about it.

In:  a pipeline, its lake, the source's address, an Order.
Out: Erased; or an error, before anything is changed where it says why rows can't be erased.

In this order, so every step is safe beside capture, and safe to be killed in:
1. The table can be erased from (reach.py), and the source has no row that the condition is true of.
2. Apply has come past that: the newest cut has all that the source had in its log by then.
3. bronze, and silver's past, are looked through for the keys; the source has none of them, and silver no live row.
4. bronze's segments and chunks lose the rows, a commit for each file. The old files are still there: an apply that
   planned with them reads them.
5. Under apply's lease: silver keeps its live rows alone, and of its past those of others; so does the changelog. Dead
   files of bronze are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.model import Condition, IsNull
from tidegate.config import Pipeline
from tidegate.delta.leases.lease import Lease
from tidegate.erase.all_places import SubjectPlaces
from tidegate.erase.dead_files import unlisted
from tidegate.erase.kept_keys import KeptKeys, kept_count
from tidegate.erase.reach import Reach, reach_of, renamed_since, table_of
from tidegate.erase.referring import References, ReferringTables
from tidegate.erase.source_asked import check_condition, check_keys
from tidegate.erase.subject import Key, Subject
from tidegate.errors import UsageError
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.log import BronzeFile, BronzeLog
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.lease_wishes import wait_for_lease
from tidegate.lake.rebuild.rebuild_lake import SCRATCH
from tidegate.lake.silver.folders import STAGING
from tidegate.limits import VALUE_LOG_FILE_SECONDS, VALUE_LOG_GONE_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.schema.model.columns import TableVersion
from tidegate.table_names import Physical
from tidegate.text_layout import counted
from tidegate.verify.cut import LakeReader
from tidegate.verify.source_side import SourceSide

# These jobs read the deleted rows, or write beside the erasure. The order is that of a swap, which holds rebuild and
# waits for apply: otherwise the two could wait for each other. And apply works on while the erasure waits for a
# rebuild.
JOBS: Final = ("rebuild", "apply")


@dataclass(frozen=True, slots=True)
class Order:
    """table: database.table at the source. where: the condition. wait_seconds: for apply to come so far, and to end.
    follow_keys: also the rows of other tables that refer to these, by foreign keys.
    """

    table: str
    where: str
    wait_seconds: float = 600.0
    follow_keys: bool = False

    @property
    def condition(self) -> Condition:
        """Raises UsageError."""
        try:
            return read_condition(self.where)
        except ValueError as error:
            raise UsageError(str(error), remedy="look at --where") from None


@dataclass(frozen=True, slots=True)
class Erased:
    """One table's share. places: with the counts of each. logged: rows of the log that go."""

    places: SubjectPlaces
    kept: KeptKeys
    affected: Sequence[BronzeFile]
    logged: int = 0

    @property
    def name(self) -> str:
        return self.places.reach.newest.name

    @property
    def keys(self) -> int:
        return len(self.places.subject.keys)

    @property
    def line(self) -> str:
        """For control/actions: no value of a row is in it."""
        return f"{self.name}: {counted(self.keys, 'key', 'keys')}; {self.places.line}"

    @property
    def planned(self) -> str:
        """The plan in words, without a value of a row."""
        files = counted(len(self.affected), "file", "files")
        also = ["chunks of snapshots with such keys, and older versions of silver"]
        also += ["rows of its past"] if self.places.silver.has_past else []
        also += ["its changelog's rows, and older versions"] if self.places.changelog is not None else []
        left = f"; left: {'; '.join(self.places.left)}" if self.places.left else ""
        keys = counted(self.keys, "key", "keys")
        return f"{self.name}: {keys}; {self.logged} logged rows in {files} of bronze; {', '.join(also)}{left}"


@dataclass(slots=True)
class Erasure:
    """One run."""

    pipeline: Pipeline
    lake: LakeFiles
    info: Callable[[str], ConnectionInfo]
    order: Order
    report: Callable[[str], None]

    def run(self) -> list[Erased]:
        """The table, and those below it by its foreign keys, where the order says so.

        Raises UsageError, LakeRefused and others before anything is changed; LeaseHeld, CommitConflict.
        """
        table = table_of(self.pipeline, self.lake, self.order.table)
        with ExitStack() as held:
            held.enter_context(self._lease(self.pipeline.pipeline, "maintain"))
            # A snapshot reader has rows in memory, and lands them later.
            held.enter_context(self._lease(table.source, "snapshot"))
            done = self._looked(table, held)
            for each in done:
                each.kept.note(each.places.subject.keys)
            failpoint("erase_before_chunks")
            for number, each in enumerate(done):
                self._erase_bronze(each, others_before=number > 0)
            leases = [held.enter_context(self._lease(self.pipeline.pipeline, job)) for job in JOBS]
            for folder in (STAGING, SCRATCH):  # of killed applies and rebuilds
                self.lake.delete_folder(folder)
            for each in done:
                each.places.left += renamed_since(self.lake, each.places.reach)
                each.places.forget(leases)
            for each in reversed(done):  # a parent's keys go last: its children's keys can be learnt from them
                each.kept.forget()
            done[0].places.left += [self._value_log(), *unlisted(self.lake)]
            if count := kept_count(self.lake):
                what = f"a killed run isn't over in another table ({count}): run it again there, or with --follow-keys"
                done[0].places.left.append(what)
            return done

    def plan(self) -> list[Erased]:
        """The work of run(), not done: nothing of the lake changes but its leases. Raises as run() may before that."""
        table = table_of(self.pipeline, self.lake, self.order.table)
        with ExitStack() as held:
            held.enter_context(self._lease(self.pipeline.pipeline, "maintain"))  # it would take files away meanwhile
            return self._looked(table, held)

    def _value_log(self) -> str:
        """A line about capture's value log, which may be on another machine: until when the rows
        stay there.
        """
        wait = VALUE_LOG_FILE_SECONDS + VALUE_LOG_GONE_SECONDS + 2 * self.pipeline.capture.heartbeat_seconds
        until = datetime.now(UTC) + timedelta(seconds=wait)
        return f"rows in capture's value log, on its machine, until {until:%Y-%m-%d %H:%M:%S} UTC, if capture goes on"

    def _looked(self, table: Physical, held: ExitStack) -> list[Erased]:
        """Learn all keys, table by table; nothing is changed yet."""
        side = SourceSide(self.info(table.source), self.pipeline.tables.columns_of)
        held.callback(side.close)
        follow = ReferringTables.alone(table.pair)
        if self.order.follow_keys:
            follow = ReferringTables.below(self.lake, self.pipeline, table.source, table.pair)
        # A refusal by name comes before bronze is read.
        reaches = [reach_of(self.pipeline, self.lake, ".".join(pair), follow.followed) for pair in follow.order]
        done, parents = list[Erased](), dict[tuple[str, str], tuple[TableVersion, Collection[Key]]]()
        for pair, reach in zip(follow.order, reaches, strict=True):
            own = References(self.order.condition) if pair == table.pair else follow.references(reach.newest, parents)
            if own is None and KeptKeys(self.lake, reach.newest).keys():
                own = References(IsNull(reach.newest.key_names[0]))  # of no row: the keys of a killed run are enough
            if own is None:
                continue
            each = self._look(side, reach, Subject(own.condition, reach.newest, own.alike))
            parents[pair] = (reach.newest, each.places.subject.keys)
            done.append(each)
        for each in done:
            check_keys(side, each.places.reach.newest, each.places.subject.keys)
            each.places.silver.check_live()
        return done

    def _look(self, side: SourceSide, reach: Reach, subject: Subject) -> Erased:
        self._check_past(side, reach, subject)
        places, kept = SubjectPlaces.of(self.pipeline, self.lake, reach, subject), KeptKeys(self.lake, reach.newest)
        files = self._bronze().files().get(reach.table.source, [])
        places.look(files, kept)
        keys = counted(len(subject.keys), "key", "keys")
        if killed := len(kept.keys()):
            what = "of its keys are of an erasure that was killed, and is ended now"
            self.report(f"{reach.newest.name}: {killed} {what}")
        self.report(f"{reach.newest.name}: {keys}, of {places.segments.bytes / 1e6:,.1f} MB of log")
        affected, logged = places.segments.affected(files), places.segments.rows
        places.segments.rows = 0  # of the trial
        return Erased(places, kept, affected, logged)

    def _erase_bronze(self, each: Erased, *, others_before: bool) -> None:
        """others_before: another table's rows left files of bronze since this one's were chosen."""
        places, log = each.places, self._bronze()
        affected = each.affected
        if others_before:
            affected = places.segments.affected(log.files().get(places.reach.table.source, []))
            places.segments.rows = 0
        places.chunks.erase()
        places.segments.erase(log, affected)
        self.report(f"{each.name}: bronze: {places.bronze_line}")

    def _bronze(self) -> BronzeLog:
        log = BronzeLog.load(self.lake)
        assert log is not None, "the table has a cut"
        return log

    def _check_past(self, side: SourceSide, reach: Reach, subject: Subject) -> None:
        """The source has no such row, and the newest cut has everything that its log had then."""
        check_condition(side, reach.newest, subject.condition, subject.alike)
        source = reach.table.source
        reader = LakeReader(self.lake.root, self.lake.storage_options, self.pipeline.pipeline, {source: side.server()})
        cut = reader.wait({source: side.position()}, self.order.wait_seconds)
        if reach.logical not in cut.tables:
            raise UsageError("its silver isn't complete any more", where=reach.logical, remedy="see `tidegate status`")

    def _lease(self, of: str, job: str) -> Lease:
        """A job's lease; `of` is a pipeline or a source. Raises LeaseHeld when somebody has it all the time."""
        return wait_for_lease(self.lake, of, job, self.order.wait_seconds, report=self.report)
