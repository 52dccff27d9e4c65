"""How one silver table is written: the contract that every writer keeps, and the MERGE that is its reference.

In:  staged changes of a table (Parquet, any order) or a schema change.
Out: one Delta commit that holds the data and applied_ts (an application's transaction version) together. Spark makes
     it on a private log (spark_jobs/merge/private_log.py), and reads silver there for what it rewrites.

A writer is given a shape, staged files and the phase's upto_ts; what it commits must equal what MERGE
commits. A faster writer takes write_rows' place behind the same signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.merge.partitions import delete_statement
from spark_jobs.merge.private_log import PrivateLog, change_table
from spark_jobs.merge.recast import recast_values
from spark_jobs.merge.rewrite import keeps_values, rewrite, types_of
from spark_jobs.merge.values import literals, staged_schema
from spark_jobs.session.spark import DELETION_VECTORS, table_session
from spark_jobs.window.application import Application
from spark_jobs.window.plan import PlannedPhase
from spark_jobs.window.shapes import described, shape_of
from spark_jobs.window.window import StagedFile, TableWindow
from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.delta.state import TableState
from tidegate.errors import REFILL, SchemaMismatch, UnsupportedValue
from tidegate.lake.silver_tables import add_columns, columns_added, create_silver, describe_columns, empty_silver
from tidegate.limits import CODEGEN_BYTES_MIN, REWRITE_BYTES_MAX
from tidegate.merge import silver_sql
from tidegate.merge.phases import DdlPhase, RowsPhase, empties
from tidegate.merge.silver_sql import SilverColumn, SilverShape
from tidegate.schema.follow.renames import renamed_here
from tidegate.schema.follow.silver_change import AddSilverColumn, SilverAction, diff
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partitions import DELETED as DELETED_ROWS
from tidegate.schema.model.types import canonical
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(slots=True)
class LargeTables:
    """Once large, a table isn't measured again."""

    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class SilverWriter:
    """Writes one logical table in one window; holds the table's own Spark session, once something asks for it.

    ddl_times: (source, commit_ts) of the window's DDL -> when the statement ran, Unix microseconds.
    """

    app: Application
    entry: TableWindow
    ddl_times: Mapping[tuple[str, int], int]
    _session: SparkSession | None = field(default=None, init=False)

    @property
    def session(self) -> SparkSession:
        """Waits for Spark."""
        if self._session is None:
            large = sum(file.bytes for file in self.entry.staged) >= CODEGEN_BYTES_MIN
            self._session = table_session(self.app.spark, large=large)
        return self._session

    @property
    def path(self) -> str:
        return tables.silver_path(self.entry.database, self.entry.table)

    @property
    def log(self) -> DeltaLog:
        return self.app.lake.log(self.path)

    def columns(self) -> list[str] | None:
        """Silver's columns as it is now, in order; None when there is none."""
        state = self.log.state()
        return [field["name"] for field in state.schema["fields"]] if state.created else None

    @property
    def spark_uri(self) -> str:
        """For Spark: on S3 another scheme."""
        return self.app.lake.spark_uri(self.path)

    @property
    def app_id(self) -> str:
        return tables.app_id(self.app.pipeline.pipeline, self.entry.name)

    # --- rows ---------------------------------------------------------------------------------------

    def write_rows(self, planned: PlannedPhase) -> None:
        """MERGE the staged changes of (after_ts, upto_ts] and record upto_ts with them."""
        phase, shape = planned.phase, planned.shape
        assert isinstance(phase, RowsPhase), "asked of those"
        files = [
            file
            for file in self.entry.staged
            if file.max_commit_ts > phase.after_ts and file.min_commit_ts <= phase.upto_ts
        ]
        if not files:
            return
        applied = self.log.state().transaction(self.app_id)
        if applied >= phase.upto_ts:
            return
        self.entry.check_follows(phase.after_ts, applied)
        assert shape is not None, "staged rows have a version in force"
        self.ensure(shape)
        self._follow_soft_delete(shape)
        view = "_tg_changes"
        self._changes(files, phase, shape).createOrReplaceTempView(view)

        def merge(private: PrivateLog) -> None:
            self.entry.check_follows(phase.after_ts, private.state.transaction(self.app_id))
            if shape.key:
                source = silver_sql.latest_per_key(view, shape) if len(files) > 1 else f"SELECT * FROM {view}"
            else:
                source = silver_sql.net_rows(view, private.uri, shape)
            self.session.conf.set(DELETION_VECTORS, str(self._is_large(private.state)).lower())
            self.session.sql(silver_sql.merge(private.uri, source, shape))

        self.change(merge, (self.app_id, phase.upto_ts))

    def change(self, work: Callable[[PrivateLog], bool | None], transaction: tuple[str, int] | None = None) -> None:
        """What Spark does to silver: as change_table."""
        change_table(self.app.lake, self.session, self.path, work, transaction)

    def _is_large(self, state: TableState) -> bool:
        known = self.app.memory(LargeTables).names
        if self.entry.name not in known and sum(file.size for file in state.files) > REWRITE_BYTES_MAX:
            known.add(self.entry.name)
        return self.entry.name in known

    def _changes(self, files: Sequence[StagedFile], phase: RowsPhase, shape: SilverShape) -> DataFrame:
        """The phase's changes with silver's columns; columns that a shard does not have are null."""
        from pyspark.sql import functions as sql_functions

        frames = []
        by_version: dict[tuple[str, str, str, int], list[StagedFile]] = {}
        for file in files:
            by_version.setdefault((file.source, file.database, file.table, file.version), []).append(file)
        for (source, database, table, number), group in by_version.items():
            version = next(v for v in self.app.histories[source].versions(database, table) if v.version == number)
            frame = self.session.read.schema(staged_schema(version, shape)).parquet(
                *(self.app.lake.spark_uri(f.path) for f in group)
            )
            frame = frame.withColumn("_tg_order_source", sql_functions.lit(source))
            if self.entry.routed:
                for name, value in zip(tables.SHARDS, (source, database, table), strict=True):
                    frame = frame.withColumn(name, sql_functions.lit(value))
            if not all(phase.after_ts < f.min_commit_ts and f.max_commit_ts <= phase.upto_ts for f in group):
                stamp = sql_functions.col(tables.COMMIT_TS)
                frame = frame.where((stamp > phase.after_ts) & (stamp <= phase.upto_ts))
            frames.append(frame)
        merged = frames[0]
        for frame in frames[1:]:
            merged = merged.unionByName(frame, allowMissingColumns=True)
        present = set(merged.columns)
        for column in shape.columns:
            if column.name not in present:
                merged = merged.withColumn(column.name, sql_functions.lit(None).cast(column.type))
        return merged

    # --- schema -------------------------------------------------------------------------------------

    def ensure(self, shape: SilverShape) -> None:
        """Create silver when it isn't there."""
        create_silver(self.log, shape)

    def change_schema(self, planned: PlannedPhase) -> None:
        """Follow the DDL at one commit_ts. Raises SchemaMismatch for what can't be followed yet."""
        phase, shape = planned.phase, planned.shape
        assert isinstance(phase, DdlPhase), "asked of those"
        self.app.check_claim()
        if planned.before:
            self._follow_soft_delete(planned.before)
        for old, new in phase.changes:
            if renamed_here(new) or (new.moved is not None and new.moved.takes):
                raise SchemaMismatch(
                    f"{new.ddl[:120]}: the table that had the rows isn't in silver",
                    where=new.where,
                    remedy=REFILL,
                )
            if empties(new) or (new.kind == "create" and old is not None):
                self._empty(old, new, shape)
            elif old is None and shape is not None:
                self.ensure_columns(shape)
            elif old is not None and shape is not None:
                self._alter(old, new, shape, phase.upto_ts)
                if new.moved is not None and new.moved.how == DELETED_ROWS:
                    self._delete_partitions(old, new)

    def _delete_partitions(self, old: TableVersion, new: TableVersion) -> None:
        shard = silver_sql.only_shard(new) if self.entry.routed else "true"
        if self.columns() is not None:
            self._once("partitions", new, lambda it: delete_statement(it.rows(), it.target, shard, old, new))

    def _once(self, what: str, version: TableVersion, sql: Callable[[PrivateLog], str]) -> None:
        """One change of rows by a DDL, which an application that is behind must not do again to rows that came since.

        Recorded under an id of its own: under the rows' one those would be skipped that a CREATE ... SELECT commits at
        the DDL's commit_ts, and one id for all shards would have one shadow the others.
        """

        def work(private: PrivateLog) -> None:
            self.session.sql(sql(private))

        self.change(work, (self._ddl_id(what, version), version.commit_ts))

    def _ddl_id(self, what: str, version: TableVersion) -> str:
        return f"{self.app_id}/ddl/{version.source}.{version.name}/{what}"

    def shape_of(self, version: TableVersion) -> SilverShape:
        return shape_of([version], routed=self.entry.routed, keeps_deleted=self.entry.plan.keeps_deleted)

    def ensure_columns(self, shape: SilverShape) -> None:
        """Create silver when it isn't there, or add the columns that a further shard brings."""
        create_silver(self.log, shape)
        add_columns(self.log, shape.columns)

    def _empty(self, old: TableVersion | None, version: TableVersion, shape: SilverShape | None) -> None:
        """No live rows (of this shard) from here on, and the columns of `shape`, whatever they were before."""
        if shape is None and self.columns() is None:
            return
        if shape is not None:
            (self.ensure_columns if self.entry.routed else self.ensure)(shape)
        if self.entry.plan.keeps_deleted:
            self._mark_all(old, version, shape)
        elif self.entry.routed:
            self._once("rows", version, lambda private: f"DELETE FROM {private.target}{self._only(version)}")
        else:
            done = (self._ddl_id("rows", version), version.commit_ts)
            empty_silver(self.log, done, None if self._is_as(shape, self.log.state()) else shape)

    def _is_as(self, shape: SilverShape | None, state: TableState) -> bool:
        """Whether silver has the columns that it is to have; those of a routed table are other shards' too."""
        if self.entry.routed or shape is None:
            return True
        return types_of(state) == [(column.name, column.type) for column in shape.all_columns]

    def rows(self) -> DataFrame | None:
        """Silver as it is, to be looked at; None when there is none."""
        if self.columns() is None:
            return None
        return self.session.read.format("delta").load(self.spark_uri)

    def _has_rows(self) -> bool:
        """False when silver certainly has none."""
        return any(file.live_rows != 0 for file in self.log.state().files)

    def _only(self, version: TableVersion) -> str:
        """WHERE clause that keeps a statement to one shard; nothing for an unrouted table."""
        return f" WHERE {silver_sql.only_shard(version)}" if self.entry.routed else ""

    def _alter(self, old: TableVersion, new: TableVersion, shape: SilverShape, upto_ts: int) -> None:
        try:
            self._follow(diff(old, new, self.ddl_times.get((new.source, new.commit_ts))), old, new, shape, upto_ts)
        except (SchemaMismatch, UnsupportedValue):
            if self.entry.routed or self._has_rows():
                raise
            self._empty(old, new, shape)  # nothing was rewritten; it gets its columns

    def _follow(
        self, actions: Sequence[SilverAction], old: TableVersion, new: TableVersion, shape: SilverShape, upto_ts: int
    ) -> None:
        only_adds = all(isinstance(action, AddSilverColumn) for action in actions)
        if self.entry.routed and not only_adds:
            raise SchemaMismatch(
                f"{new.ddl[:120]}: only added columns are followed in routed tables",
                where=new.where,
                remedy=f"bring all shards to one shape; {REFILL}",
            )
        self._check_marked(self.rows, self.log.state(), old, new, shape)
        if actions and self.columns() is None:
            self.ensure(shape)
        elif actions and only_adds and shape.key:
            self._add(actions, new)
        elif actions:

            def work(private: PrivateLog) -> bool:
                recasts = recast_values(private.rows(), actions, new)
                self._check_marked(private.rows, private.state, old, new, shape)
                stays = all(keeps_values(private.state, action, recasts) for action in actions)
                if not stays:
                    rewrite(private, actions, shape, recasts)
                return not stays

            self.change(work, (self.app_id, upto_ts))
        self._describe(old, new)

    def _add(self, actions: Sequence[SilverAction], new: TableVersion) -> None:
        """The columns, with the value the server gave to existing rows."""
        added = [action for action in actions if isinstance(action, AddSilverColumn)]
        columns = [SilverColumn(a.column.silver, canonical(a.column).delta, described(a.column)) for a in added]
        values = literals([action for action in added if action.value is not None])
        if not values:
            add_columns(self.log, columns)
            return
        assign = ", ".join(f"{quote(name)} = {value}" for name, value in values.items())

        def filled(private: PrivateLog) -> str:
            private.apply(columns_added(private.inside, columns))
            return f"UPDATE {private.target} SET {assign}{self._only(new)}"

        self._once("values", new, filled)

    def _describe(self, old: TableVersion, new: TableVersion) -> None:
        """Columns whose type text or comment at the source changed, and silver's column didn't, say so."""
        before = {column.id: described(column) for column in old.columns}
        now = {column.silver: described(column) for column in new.columns}
        changed = {c.silver for c in new.columns if before.get(c.id, now[c.silver]) != now[c.silver]}
        if changed:
            describe_columns(self.log, {name: text for name, text in now.items() if name in changed})

    # --- deleted rows that stay -----------------------------------------------------------------------

    def _follow_soft_delete(self, shape: SilverShape) -> None:
        """Give silver the mark when soft_delete names the table from now on; take it back when nothing is marked."""

        def fits(columns: Sequence[str] | None) -> bool:
            return columns is None or (tables.DELETED in columns) == shape.keeps_deleted

        def work(private: PrivateLog) -> bool:
            rows = private.rows()
            if fits(rows.columns):
                return False
            if not shape.keeps_deleted and (count := _marked(rows)):
                raise SchemaMismatch(
                    f"silver keeps {count} deleted rows, and soft_delete doesn't name the table any more",
                    where=self.entry.name,
                    remedy=f"name it again, or delete the rows that {tables.DELETED} marks; then release it",
                )
            rewrite(private, (), shape, {})
            return True

        if not fits(self.columns()):
            self.change(work)

    def _mark_all(self, old: TableVersion | None, version: TableVersion, shape: SilverShape | None) -> None:
        """TRUNCATE and DROP TABLE delete every row (of this shard); those that are gone already keep their time.

        They are marked even when silver can't take the shape then: whoever is told to delete marked rows finds them so.
        """
        assign = f"{tables.DELETED} = true, {tables.COMMIT_TS} = {version.commit_ts}"
        where = f"{self._only(version) or ' WHERE true'} AND NOT {tables.DELETED}"
        self._once("marks", version, lambda private: f"UPDATE {private.target} SET {assign}{where}")
        if shape is None:
            return

        def work(private: PrivateLog) -> bool:
            self._check_marked(private.rows, private.state, old, version, shape)
            fits = self._is_as(shape, private.state)
            if not fits:
                rewrite(private, (), shape, {})
            return not fits

        state = self.log.state()
        self._check_marked(self.rows, state, old, version, shape)
        if not self._is_as(shape, state):
            self.change(work, (self._ddl_id("shape", version), version.commit_ts))

    def _check_marked(
        self,
        rows: Callable[[], DataFrame | None],
        state: TableState,
        old: TableVersion | None,
        new: TableVersion,
        shape: SilverShape,
    ) -> None:
        """Raises SchemaMismatch when marked rows can't stay beside rows of another key or of other types.

        rows, state: silver's, the rows read only when there is a doubt.
        """
        if not shape.keeps_deleted:
            return
        fits = old is not None and self.shape_of(old).key == shape.key
        if new.kind != "alter":
            types = dict(types_of(state))
            fits = fits and all(types.get(column.name, column.type) == column.type for column in shape.columns)
        if not fits and (own := rows()) is not None and (count := _marked(own)):
            raise SchemaMismatch(
                f"{new.ddl[:120]}: silver keeps {count} deleted rows, which have another key or other types",
                where=new.where,
                remedy=f"delete the rows that {tables.DELETED} marks, then release the table",
            )


def _marked(rows: DataFrame) -> int:
    return rows.where(tables.DELETED).count() if tables.DELETED in rows.columns else 0
