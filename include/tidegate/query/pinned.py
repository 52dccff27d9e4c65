"""All tables of a lake at one cut, for DuckDB, Polars and Spark.

In:  a lake and a Cut.
Out: a DuckDB connection with a view of each table, LazyFrames and DataFrames: each at the version
     that the cut names, however long the read takes. A table that isn't complete at the cut is
     refused by name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from tidegate.commit_ts import time_text
from tidegate.errors import CutForgotten, DeltaUnsupported, LakeRefused, QueryRefused, Terminal
from tidegate.lake.cuts.published import Cut, CutTable, cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.storage.storage_options import store_of
from tidegate.limits import QUERY_MEMORY_BYTES
from tidegate.merge.past.as_of import as_of, polars_as_of, spark_as_of
from tidegate.query import duck
from tidegate.query.past_rows import histories_at
from tidegate.query.readable import check_readable
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_NO_TABLE: Final = re.compile(r'Table with name "?(?P<name>.+?)"? does not exist')
# Words of queries that need tables which they don't name, or that begin a transaction, which could
# undo our views.
_LISTS: Final = re.compile(
    r"\b(show|information_schema|pragma\w*|duckdb_\w+|pg_\w+|sqlite_\w+|export|query\w*|from\s+database)\b"
    r"|(^|[;(])\s*(desc|describe)\s*($|[;)])|(^|;)\s*(begin|start)\b"
)

_IN_MEMORY: Final = "memory."  # wherever a USE has gone


class PinnedCut:
    """A cut that can be read. Close it, or use it in a `with`: DuckDB's database ends then."""

    def __init__(self, lake: LakeFiles, pipeline: str, cut: Cut, past_ts: int | None = None) -> None:
        """past_ts: the rows as of this commit_ts, by histories (past_rows.py); None: as of the cut."""
        self.past_ts = past_ts
        self.lake = lake
        self.pipeline = pipeline
        self.cut = cut
        self._database: duckdb.DuckDBPyConnection | None = None
        self._viewed: set[str] = set()
        self._wanted: Sequence[CutTable] = ()  # by the last statement
        self._unread: dict[str, Terminal] = {}  # what can't be read -> why
        self._checked: set[str] | None = None  # names; None at the newest cut: its versions are there

    @classmethod
    def at(cls, lake: LakeFiles, pipeline: str, at: int | None = None) -> PinnedCut:
        """The newest cut at or below a commit_ts; None: the newest. Where none so old is kept, the tables whose history
        reaches back so far. Raises CutNotYet, CutForgotten.

        A table whose version can't be read any more is refused when it is asked for.
        """
        try:
            pinned = cls(lake, pipeline, cut_at(lake, pipeline, at))
        except CutForgotten as forgotten:
            if at is None:
                raise
            return cls(lake, pipeline, histories_at(lake, pipeline, at, forgotten), at)
        if at is not None:
            pinned._checked = set()
        return pinned

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End DuckDB's database."""
        if self._database is not None:
            self._database.close()
            self._database = None
            self._viewed.clear()

    def check(self, wanted: Sequence[CutTable] | None = None) -> None:
        """Raises CutForgotten when the version of one of these tables, of all by default, can't be read any more."""
        check_readable(self.lake, self.pipeline, self.cut, self.cut.tables.values() if wanted is None else wanted)

    def table(self, name: str) -> CutTable:
        """A complete table, `database.table`. Raises QueryRefused, with the reason where there is one."""
        if name in self.cut.tables:
            self._check_old([self.cut.tables[name]])
            return self.cut.tables[name]
        what, remedy = self._why_not(name)
        raise QueryRefused(f"{what} {self.moment}", where=name, remedy=remedy)

    @property
    def moment(self) -> str:
        """As of when its rows are, for people."""
        if self.past_ts is not None:
            return f"as of {self.past_ts} ({time_text(self.past_ts)})"
        return f"at cut {self.cut.cut_ts} ({time_text(self.cut.cut_ts)})"

    def _check_old(self, wanted: Sequence[CutTable]) -> None:
        if self._checked is not None:
            self.check([table for table in wanted if table.name not in self._checked])
            self._checked.update(table.name for table in wanted)

    def _why_not(self, name: str) -> tuple[str, str]:
        if name in self.cut.missing and self.past_ts is not None:
            return f"it can't be read ({self.cut.missing[name]})", "ask for a later time"
        if name in self.cut.missing:
            return f"it isn't complete ({self.cut.missing[name]})", "`tidegate status` says what ends that"
        if name in self.cut.dropped:
            return "the source doesn't have it", "ask for an earlier cut"
        close = difflib.get_close_matches(name, self.cut.tables, n=1)
        return "there is no such table", f"did you mean {close[0]}?" if close else "name it as database.table"

    # --- Polars and Spark -------------------------------------------------------------------------------

    def polars(self, name: str) -> pl.LazyFrame:
        """A table for Polars. Raises QueryRefused."""
        import polars as pl

        table = self.table(name)
        options = self.lake.storage_options or None
        frame = pl.scan_delta(self.lake.uri(table.path), version=table.version, storage_options=options)
        return frame if self.past_ts is None else polars_as_of(frame, self.past_ts)

    def spark(self, session: Any, name: str) -> Any:
        """A table as a DataFrame of a Spark session that has Delta (and the keys of the lake's store)."""
        table = self.table(name)
        reader = session.read.format("delta").option("versionAsOf", str(table.version))
        rows = reader.load(self.lake.spark_uri(table.path))
        return rows if self.past_ts is None else spark_as_of(rows, self.past_ts)

    def spark_views(self, session: Any) -> list[str]:
        """A temporary view of each table, to be named in backticks: SELECT * FROM `shop.orders`. Their names.

        Two names with a difference in case alone have none, unless spark.sql.caseSensitive is true. Views of other
        cuts go if this cut lacks their tables.
        """
        tells_case = str(session.conf.get("spark.sql.caseSensitive")).lower() == "true"
        names = list(self.cut.tables) if tells_case else [table.name for table in self._shown]
        for name in {*self.cut.tables, *self.cut.missing, *self.cut.dropped} - {*names}:
            session.catalog.dropTempView(name)
        for name in names:
            self.spark(session, name).createOrReplaceTempView(quote(name))
        return names

    # --- DuckDB -----------------------------------------------------------------------------------------

    @cached_property
    def unclear(self) -> Mapping[str, str]:
        """Complete tables that DuckDB and Spark can't tell from others, as they don't tell upper from lower case -> the
        reason.
        """
        same: dict[str, list[str]] = {}
        for name in (*self.cut.tables, *self.cut.missing):
            same.setdefault(name.lower(), []).append(name)
        reasons = {}
        for name in self.cut.tables:
            if others := ", ".join(other for other in same[name.lower()] if other != name):
                reasons[name] = f"DuckDB can't tell it from {others}"
        return reasons

    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with a view of each complete table, "database"."table"; the same connection every time."""
        database = self._connected(self._shown)
        for error in self._unread.values():
            raise error
        return database

    def _connected(self, wanted: Sequence[CutTable]) -> duckdb.DuckDBPyConnection:
        """With views of these tables, and of those that were wanted before: each one takes looks at the table's log."""
        if self._database is None:
            database = duck.connect(QUERY_MEMORY_BYTES)
            if not self.lake.is_local:
                duck.reach(database, self.lake.root, self.lake.storage_options)
            for statement in self._schemas():
                database.execute(statement)
            self._database = database
        for table in wanted:
            if table.name not in self._viewed:
                self._show(self._database, table)
        return self._database

    def _show(self, database: duckdb.DuckDBPyConnection, table: CutTable) -> None:
        """A view of the table; of one that can't be read the reason, for a query of it alone."""
        import duckdb

        self._unread.pop(table.name, None)
        try:
            self._check_old([table])
            database.execute(self._view(table, _IN_MEMORY))
        except duckdb.Error as error:
            self._unread[table.name] = QueryRefused(" ".join(str(error).split()), where=self.lake.uri(table.path))
        except (LakeRefused, DeltaUnsupported, CutForgotten, QueryRefused) as error:
            self._unread[table.name] = error
        else:
            self._viewed.add(table.name)

    def _named(self, sql: str) -> Sequence[CutTable]:
        """Those whose names stand in a query; all where it asks what there is."""
        text = sql.lower().replace('""', '"')
        return self._shown if _LISTS.search(text) else [table for table in self._shown if table.table.lower() in text]

    def sql(self, text: str) -> duckdb.DuckDBPyRelation:
        """DuckDB's result of a query. Raises QueryRefused, CutForgotten."""
        import duckdb

        self._wanted = self._named(text)
        try:
            return self._connected(self._wanted).sql(text)
        except duckdb.Error as error:
            why = self._incomplete(text, str(error)) or self._unknown(text, str(error))
            raise why or self.refused(error) from error

    def refused(self, error: Exception) -> QueryRefused:
        """The meaning of DuckDB's error. Raises CutForgotten when it is that files are gone."""
        self.check(self._wanted)
        absent = {**self.cut.missing, **self.unclear}
        reasons = [f"{name}: {reason}" for name, reason in absent.items()]
        remedy = f"not in this cut: {'; '.join(reasons)}" if reasons else "see DuckDB's documentation of its SQL"
        return QueryRefused(" ".join(str(error).split()), remedy=remedy)

    def _incomplete(self, sql: str, error: str) -> Terminal | None:
        """The error for a query with an incomplete table, or an unread one, which DuckDB hasn't. DuckDB names it
        without its database.
        """
        asked = _NO_TABLE.search(error)
        text = sql.replace('"', "").lower()
        for name in (*self.cut.missing, *self._unread):
            database, _, table = name.lower().partition(".")
            if asked is None or asked["name"].lower() not in (table, f"{database}.{table}"):
                continue
            if f"{database}.{table}" in text or f".{table}" not in text:
                if name in self._unread:
                    return self._unread[name]
                remedy = "`tidegate status` says what ends that"
                return QueryRefused(f"{name} isn't complete at this cut: {self.cut.missing[name]}", remedy=remedy)
        return None

    def _unknown(self, sql: str, error: str) -> QueryRefused | None:
        """The error for a query with an unknown table. DuckDB has only the tables that the query names right."""
        asked = _NO_TABLE.search(error)
        if asked is None or self.cut.missing or self.unclear:  # those are told of instead
            return None
        whole = re.search(rf"\w+\.{re.escape(asked['name'])}", sql.replace('"', ""), re.IGNORECASE)
        name = whole.group() if whole else asked["name"]
        whole_names = {known_name.lower(): known_name for known_name in self.cut.tables}
        known = {known_name.partition(".")[2]: of for known_name, of in whole_names.items()} | whole_names
        close = difflib.get_close_matches(name.lower(), known, n=1)
        remedy = f"did you mean {known[close[0]]}?" if close else "SHOW ALL TABLES says which there are"
        return QueryRefused(f"there is no table {name} in this cut", where=self.pipeline, remedy=remedy)

    def views_file(self) -> str:
        """A script for DuckDB that makes the same views, wherever the lake can be reached."""
        reasons = [f"-- not in it: {name}: {reason}" for name, reason in {**self.cut.missing, **self.unclear}.items()]
        head = f"-- {self.pipeline} {self.moment}"
        lines = [head, *(" ".join(line.split()) for line in reasons), "INSTALL delta; LOAD delta;"]
        if not self.lake.is_local:
            lines += ["INSTALL httpfs; LOAD httpfs;", *self._reached()]
        made = [*self._schemas(), *(self._view(table) for table in self._shown)]
        return "\n".join([*lines, *(f"{statement};" for statement in made)]) + "\n"

    def _reached(self) -> list[str]:
        """How DuckDB reaches an S3 store, but for the keys: a script is a file that is passed on."""
        if store_of(self.lake.root) != "s3":
            return ["-- first: CREATE SECRET, with your keys of the lake's store"]
        place = "".join(f", {name} {value}" for name, value in duck.s3_place(self.lake.storage_options).items())
        keys = "KEY_ID '...', SECRET '...', REGION '...'"
        return [
            f"-- first, with your keys: CREATE SECRET (TYPE s3, {keys}{place}, SCOPE {duck.literal(self.lake.root)});"
        ]

    @cached_property
    def _shown(self) -> Sequence[CutTable]:
        return [table for table in self.cut.tables.values() if table.name not in self.unclear]

    def _schemas(self) -> Iterator[str]:
        databases = sorted({table.database for table in self._shown})
        for database in databases:
            yield f"CREATE SCHEMA IF NOT EXISTS {duck.identifier(database)}"
        if len(databases) == 1:
            yield f"USE {duck.identifier(databases[0])}"

    def _view(self, table: CutTable, catalog: str = "") -> str:
        named = f"{catalog}{duck.identifier(table.database)}.{duck.identifier(table.table)}"
        rows = duck.scan(self.lake.uri(table.path), table.version)
        selected = f"SELECT * FROM {rows}" if self.past_ts is None else as_of(rows, self.past_ts)
        return f"CREATE OR REPLACE VIEW {named} AS {selected}"
