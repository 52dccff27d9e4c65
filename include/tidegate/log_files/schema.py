"""Names and types from a schema script, for binlog files whose metadata doesn't say them.

In:  DDL scripts (a dump of the schema), then the log's own DDL as its files are read.
Out: for rows events, the plan of a table version that their TABLE_MAP agrees with.

The log's own DDL may lie before or after the moment of the dump. Therefore the version in force by
commit_ts is tried first, then the script's versions of the table, from the last one on. When none
agrees, FULL metadata alone is used, with a note; without it the table can't be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.table_map import parse_table_map, read_name
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.rows.decode_plan import make_plan
from tidegate.binlog.statements.ddl_events import statement_of
from tidegate.binlog.statements.judged import query_at
from tidegate.ddl_script.script import Script
from tidegate.ddl_script.text import statements
from tidegate.errors import DDLError, SchemaMismatch, Terminal, UnsupportedValue, UsageError
from tidegate.log_files.plans import LogPlans, ShownZeroDates, as_shown
from tidegate.log_files.rows import Chosen
from tidegate.schema.model.columns import TableVersion, VersionStatus

_ANY_DATABASE: Final = "?"  # the database of a script's tables without USE: they may be of any database


class SchemaPlans(LogPlans):
    """LogPlans, with a schema beside the log."""

    def __init__(
        self,
        note: Callable[[str], None],
        zero_dates: ShownZeroDates = ShownZeroDates.NULL,
        *,
        server_version: str = "",
        database: str = "",
    ) -> None:
        """server_version: of the log's server, whose defaults the scripts have. database: in which they begin."""
        super().__init__(note, zero_dates)
        self._database = database or _ANY_DATABASE
        self._script = Script(self._database, server_version)
        self._history = self._script.history
        self._script_end = 0
        self._adopted: set[str] = set()
        self._planned: dict[tuple[bytes, int], Chosen | Terminal] = {}

    def read(self, path: Path) -> None:
        """Replay a script. Raises UsageError when it isn't a text file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read the schema: {error}", where=str(path), remedy="give a UTF-8 file") from error
        self._script.database = self._database
        for line, sql in statements(text, plain=self._script.is_plain):
            step = self._script.run(line, sql)
            if step.error:
                self._note(f"{path.name}:{line}: {step.error}")
        names = self._history.tables()
        self._script_end = max((v.commit_ts for name in names for v in self._history.versions(*name)), default=0)

    def follow(self, index: EventIndex, statements: list[int]) -> None:
        """Replay the log's DDL; what doesn't fit the script is passed over, since the TABLE_MAPs have the last word."""
        super().follow(index, statements)
        for event in statements:
            query = query_at(index, event)
            self._adopt(query.database)
            if query.unfinished:
                continue
            statement = statement_of(index, event, query)
            try:
                self._history.replay(statement)
            except DDLError:
                continue

    def choose(
        self, body: bytes, commit_ts: npt.NDArray[np.int64]
    ) -> list[tuple[npt.NDArray[np.int64], Chosen | Terminal]]:
        """One plan per table version in force."""
        name = read_name(body)
        self._adopt(name[0])
        versions = self._history.versions(*name)
        if not versions:
            return super().choose(body, commit_ts)
        starts = np.array([version.commit_ts for version in versions], np.int64)
        which = np.searchsorted(starts, commit_ts, side="right") - 1
        chosen = []
        for at in np.unique(which).tolist():
            of_version = np.flatnonzero(which == at)
            chosen.append((of_version, self._plan(body, versions, at)))
        return chosen

    def _adopt(self, database: str) -> None:
        """Give a database in the log the tables of scripts without a database."""
        if database in self._adopted or not database:
            return
        self._adopted.add(database)
        for owner, table in self._history.tables():
            if owner == _ANY_DATABASE and not self._history.versions(database, table):
                known = self._history.versions(owner, table)
                self._history.add([replace(version, database=database) for version in known])

    def _plan(self, body: bytes, versions: tuple[TableVersion, ...], at: int) -> Chosen | Terminal:
        """The plan by the first version that agrees, in the order of the module's docstring."""
        key = (body, versions[at].version if at >= 0 else -1)
        if key not in self._planned:
            self._planned[key] = self._tried(body, versions, at)
        return self._planned[key]

    def _tried(self, body: bytes, versions: tuple[TableVersion, ...], at: int) -> Chosen | Terminal:
        in_script = [version for version in versions if version.commit_ts <= self._script_end]
        tried = [*versions[max(at, 0) : at + 1], *reversed(in_script)]
        first: Terminal | None = None
        for version in (version for version in tried if version.status is not VersionStatus.DROPPED):
            try:
                return as_shown(make_plan(body, version, mariadb=self._mariadb), self._zero_dates)
            except (SchemaMismatch, UnsupportedValue) as error:
                first = first or error
            except Terminal as error:
                return error
        first = first or SchemaMismatch("the schema has no columns of this table", remedy="give its CREATE TABLE")
        said = type(first)(first.what.replace("schema_history", "the schema"), remedy=_REMEDY)
        table_map = parse_table_map(body, mariadb=self._mariadb)
        if any(column.name is None for column in table_map.columns):
            return said
        (_, own_plan), *_ = super().choose(body, np.zeros(1, np.int64))
        self._note(f"{table_map.name}: {said.what}; the log's own metadata is followed")
        return own_plan


_REMEDY: Final = "give --schema as it was when these rows were written"
