"""One silver table in one window: where it lies, Spark's way to it, and how a commit of it is recorded.

In:  a table's share of a window, with its plan and its changes.
Out: SilverWriter, which rows.py (MERGE), schema.py (DDL) and past.py write with. A commit holds the data and
     applied_ts (an application's transaction version) together. Spark makes it on a private log (private/log.py), and
     reads silver there for what it rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.merge.private.log import PrivateLog, change_table
from spark_jobs.merge.rewrite import types_of
from spark_jobs.session.spark import table_session
from spark_jobs.window.application import Application
from spark_jobs.window.made import DdlTimes, TableToWrite
from spark_jobs.window.shape.computing import computed_by, computed_of
from spark_jobs.window.shape.kept import masks_of
from spark_jobs.window.shape.shapes import described, kept_of, shape_in, source_of
from spark_jobs.window.standing import silver_guard
from spark_jobs.window.window import TableWindow
from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import TableState
from tidegate.lake.schema_history.schema_rows import table_rows
from tidegate.lake.silver.as_published import ddl_id
from tidegate.lake.silver.silver_tables import add_columns, create_silver
from tidegate.limits import CODEGEN_BYTES_MIN
from tidegate.merge import silver_sql
from tidegate.merge.column import SOURCE_METADATA
from tidegate.merge.kept import in_silver
from tidegate.merge.silver_sql import NAMES_PROPERTY, ROWS_PROPERTY, SilverShape
from tidegate.schema.model.columns import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(slots=True)
class SilverWriter:
    """Writes one logical table in one window; holds the table's own Spark session, once something asks for it.

    ddl_times: (source, commit_ts) of the window's DDL -> when the statement ran, and in which zone.
    """

    app: Application
    work: TableToWrite
    ddl_times: DdlTimes
    _session: SparkSession | None = field(default=None, init=False)

    @property
    def entry(self) -> TableWindow:
        """The table's share of the window."""
        return self.work.entry

    @property
    def session(self) -> SparkSession:
        """Waits for Spark."""
        if self._session is None:
            large = sum(file.bytes for file in self.work.staged.files) >= CODEGEN_BYTES_MIN
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

    @property
    def take_id(self) -> str:
        """The application id under which rows taken from a renamed table are recorded.

        A table of shards has one of its own. Another source may change a row at the commit_ts of the rename: under the
        id of the rows, silver would have that change already.
        """
        return tables.taken_id(self.app.pipeline.pipeline, self.entry.name) if self.entry.routed else self.app_id

    def has_taken(self, commit_ts: int) -> bool:
        """Whether silver has the rows that came here by a rename."""
        return self.log.state().transaction(self.take_id) >= commit_ts

    def reached(self, state: TableState) -> int:
        """The newest commit_ts of silver's rows: of changes, or of a rename."""
        return max(state.transaction(self.app_id), state.transaction(self.take_id))

    def change(self, work: Callable[[PrivateLog], bool | None], transaction: tuple[str, int] | None = None) -> None:
        """The effect of Spark on silver: as change_table."""
        change_table(self.app.lake, self.session, self.path, work, transaction, check=self.check)

    def check(self, state: TableState) -> None:
        """Raise SilverUnlike unless silver is as the control tables say."""
        silver_guard.check(self.app, self.entry.name, state)

    def ensure(self, shape: SilverShape) -> None:
        """Create silver when it isn't there."""
        self.check(self.log.state())
        create_silver(self.log, shape)

    def once(self, what: str, version: TableVersion, sql: Callable[[PrivateLog], str]) -> None:
        """Change rows once for a DDL. A second try must not repeat it on rows that came since.

        It is recorded under an application id of its own. Under the id of the rows, the rows of a CREATE ... SELECT
        would be skipped, as they have the DDL's commit_ts. Under one id for all shards, one shard would hide the
        others.
        """

        def work(private: PrivateLog) -> None:
            self.session.sql(sql(private))

        self.change(work, (self.ddl_id(what, version), version.commit_ts))

    def ddl_id(self, what: str, version: TableVersion) -> str:
        return ddl_id(self.app_id, version.source, version.name, what)

    def shape_of(self, version: TableVersion) -> SilverShape:
        return shape_in(self.app, self.entry, [version])

    def ensure_columns(self, shape: SilverShape) -> None:
        """Create silver when it isn't there, or add the columns that a further shard brings."""
        self.check(self.log.state())
        create_silver(self.log, shape)
        add_columns(self.log, shape.columns)

    def is_as(self, shape: SilverShape | None, state: TableState) -> bool:
        """Whether silver has the shape's columns. A routed table may also have those of other shards."""
        if self.entry.routed or shape is None:
            return True
        same_types = types_of(state) == [(column.name, column.type) for column in shape.all_columns]
        if any(
            state.configuration.get(name, "") != shape.rules.get(name, "") for name in (ROWS_PROPERTY, NAMES_PROPERTY)
        ):
            return False
        same_rules = list(masks_of(state).values()) == [column.mask for column in shape.all_columns]
        return same_types and same_rules and computed_of(state) == computed_by(shape)

    @property
    def state(self) -> TableState:
        """Silver's newest."""
        return self.log.state()

    def rows(self) -> DataFrame | None:
        """Silver as it is, to be looked at; None when there is none."""
        if self.columns() is None:
            return None
        return self.session.read.format("delta").load(self.spark_uri)

    def has_rows(self) -> bool:
        """False when silver certainly has none."""
        return any(file.live_rows != 0 for file in self.log.state().files)

    def only(self, version: TableVersion) -> str:
        """WHERE clause that keeps a statement to one shard; nothing for an unrouted table."""
        return f" WHERE {silver_sql.only_shard(version)}" if self.entry.routed else ""

    def written(self, version: TableVersion | None) -> TableVersion | None:
        """The version by which silver's rows were written: an earlier one, if the table waited. This one, if none is
        known.
        """
        if version is None or self.entry.routed:
            return version
        history = self.app.histories[version.source]
        written_ts = min(self.log.state().transaction(self.app_id), version.commit_ts)
        return history.version_at(version.database, version.table, written_ts) or version

    def sources_of(self, version: TableVersion | None) -> frozenset[str] | None:
        """Silver's names of all columns that the source had between silver's last write and a version.

        None: of none that is known.

        Silver may have columns of an earlier version than the last one: a rename gave the name to another table while
        this one waited, or an older copy came back.
        """
        if version is None:
            return None
        state = self.log.state()
        written_ts = state.transaction(self.app_id)
        known = [*self.app.histories[version.source].versions(version.database, version.table), version]
        sources = _since(known, written_ts, version.commit_ts)
        fields = state.schema["fields"] if state.created else ()
        others = {
            field["name"]: _words(field.get("metadata") or {})
            for field in fields
            if not field["name"].startswith(tables.SYSTEM_PREFIX) and field["name"] not in sources
        }
        if not any(others.values()) and (not others or known[0].commit_ts <= written_ts):
            return sources
        # The versions in memory begin where control tables have the table. Silver may be older than that.
        rows = table_rows(self.app.lake, version.database, version.table)
        history = self.app.histories[version.source]
        known = [history.named(TableVersion.from_row(row)) for row in rows if row["source"] == version.source]
        kept = kept_of(self.app, self.entry)
        # A RESTORE brings back columns of any earlier version, and keeps our transaction versions. A column of the
        # owner may have the same name, but lacks our text in its metadata.
        restored = {
            column.silver
            for each in known
            for column in (*each.columns, *each.plain.columns, *in_silver(kept, each).columns)  # also by former rules
            if others.get(column.silver) in (source_of(column), described(column))
        }
        return sources | _since(known, written_ts, version.commit_ts) | restored


def _words(metadata: Mapping[str, str]) -> str:
    """Our text about a column: its key in the metadata, or its comment in older releases."""
    return metadata.get(SOURCE_METADATA) or metadata.get("comment", "")


def _since(versions: Iterable[TableVersion], written_ts: int, upto_ts: int) -> frozenset[str]:
    """Silver's names of the columns of those versions, oldest first, that held from written_ts on, up to upto_ts."""
    names: set[str] = set()
    begins_ts = -1
    for version in versions:
        if version.commit_ts > upto_ts:
            continue
        if begins_ts < version.commit_ts <= written_ts:
            begins_ts = version.commit_ts
            names.clear()
        names.update(column.silver for column in version.columns)
    return frozenset(names)
