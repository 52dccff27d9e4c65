"""The beginning of a source's capture, recorded with the schema there: a failed start begins again
there.

In:  the facts of a source at its first start; the baseline's rows in control/schema_history.
Out: a Began, and its Checkpoint.

Between a baseline and the first durable segment anything may end a run: a kill, a refused dump, the
network. The next run continues where the baseline was read, and not where the binlog ends by then:
changes between the two are in no table of the baseline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from tidegate import tables
from tidegate.config import DumpMode, Flavour, MysqlSource, Start
from tidegate.errors import LakeUnavailable, PositionLost, SourceRefused
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.stream.place import BinlogCheckpoint, beginning
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.server_settings import ServerSettings
from tidegate.schema.model.unlogged import NO_VIEW, VIEWS

_COLUMN: Final = "began"  # of control/schema_history


@dataclass(frozen=True, slots=True)
class Began:
    """The place before the first event, on the server that it was taken from."""

    start: str  # as the pipeline file said then
    file: str
    offset: int
    gtid_executed: str
    server_id: int
    server_uuid: str

    @classmethod
    def of(cls, facts: SourceFacts, source: MysqlSource) -> Self:
        """The end of the binlog now, or its beginning. Raises PositionLost, SourceRefused."""
        if facts.position is None or not facts.binary_logs:
            raise SourceRefused(
                "the server shows no binlog position", where=facts.where, remedy="check log_bin and the grants"
            )
        server = (facts.server_id, facts.server_uuid)
        if source.start is Start.NOW:
            return cls(source.start, facts.position.file, facts.position.offset, facts.gtid_executed, *server)
        first = facts.binary_logs[0][0]
        if facts.gtid_purged or Position.of(first, 4).number > 1:
            missing = f"GTIDs {facts.gtid_purged}" if facts.gtid_purged else f"everything before {first}"
            raise PositionLost(
                f"start: earliest isn't possible, the server has purged {missing}",
                where=facts.where,
                remedy="set start: now",
            )
        return cls(source.start, first, 4, "", *server)

    @property
    def position(self) -> Position:
        return Position.of(self.file, self.offset)

    def checkpoint(self, dump: DumpMode) -> BinlogCheckpoint:
        """With GTIDs the server chooses file and offset."""
        place = (self.file, self.offset) if dump is DumpMode.POSITION else ("", 4)
        return beginning(*place, self.gtid_executed, self.server_id, self.server_uuid)

    def still_there(self, facts: SourceFacts) -> bool:
        """Whether the server's files reach back to this start. Another server passes if the start has GTIDs
        of MySQL, since these name their server. MariaDB's GTIDs are numbers that any server may have.
        """
        if (facts.server_id, facts.server_uuid) != (self.server_id, self.server_uuid):
            return facts.flavour is Flavour.MYSQL and bool(self.gtid_executed)
        return dict(facts.binary_logs).get(self.file, -1) >= self.offset


def without_columns(source: str, database: str, table: str, position: Position, kind: str) -> TableVersion:
    """A baseline's first row of what has no columns: a database's defaults, a view."""
    return TableVersion(
        source=source,
        database=database,
        table=table,
        version=1,
        commit_ts=0,
        file=position.file,
        pos=position.offset,
        kind=kind,
        ddl="",
        columns=(),
        key=(),
        charset="",
    )


def recorded_start(lake: LakeFiles, source: str) -> Began | None:
    """The start of the newest baseline; None before there is one. Raises LakeUnavailable."""
    rows = _rows(lake, source, ["source", "version", _COLUMN])
    recorded = [row for row in rows if row[_COLUMN]]
    return Began(**json.loads(max(recorded, key=lambda row: row["version"])[_COLUMN])) if recorded else None


def check_settings(lake: LakeFiles, source: str, facts: SourceFacts) -> None:
    """Raises SourceRefused if the server's settings for names' case, or for foreign keys, aren't the
    baseline's.

    What schema_history's rows mean depends on these settings. If the lake is away, capture goes on, and
    the next connection checks.
    """
    filters = [("source", "==", source), ("database", "==", ""), ("table", "==", "")]
    try:
        rows = control.read(lake, tables.SCHEMA_HISTORY, columns=["version", "settings"], filters=filters).to_pylist()
    except LakeUnavailable:
        return
    recorded = ServerSettings.from_text(max(rows, key=lambda row: row["version"])["settings"]) if rows else None
    now = ServerSettings.of(facts.variables)
    if recorded is None:
        return
    for name, before, after in (
        ("lower_case_table_names", recorded.folds_names, now.folds_names),
        ("innodb_native_foreign_keys", recorded.native_keys, now.native_keys),
    ):
        if before != after:
            raise SourceRefused(
                f"{name} was {'on' if before else 'off'} when capture began, and is {facts.variables.get(name, 'off')}",
                where=facts.where,
                remedy="set it back, or begin again in a new lake path",
            )


def earlier_versions(lake: LakeFiles, source: str) -> list[TableVersion]:
    """The newest of each table in this source's baseline, from which nothing was captured; [] before there is one."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _rows(lake, source, tables.SCHEMA_HISTORY.schema.names):
        name = (row["database"], row["table"])
        if name not in newest or row["version"] > newest[name]["version"]:
            newest[name] = row
    return [TableVersion.from_row(row) for row in newest.values()]


def newest_statuses(lake: LakeFiles, source: str) -> dict[tuple[str, str], VersionStatus]:
    """The newest status of each table that schema_history knows. Raises LakeUnavailable."""
    rows = control.newest(
        lake,
        tables.SCHEMA_HISTORY,
        by=["database", "table"],
        order=["version"],
        columns=["database", "table", "status"],
        filters=[("source", "==", source)],
    ).to_pylist()
    return {(row["database"], row["table"]): VersionStatus(row["status"]) for row in rows if row["table"]}


def record_baseline(
    lake: LakeFiles, source: str, versions: Iterable[TableVersion], began: Began, earlier: Iterable[TableVersion] = ()
) -> None:
    """Append a baseline and its start to control/schema_history, in one commit.

    earlier: what it takes the place of. Each table of it gets its present version, also a vanished one. If two
    processes record at once, one does nothing.
    """
    app_id = f"tidegate/baseline/{source}"
    last_number = control.application_version(lake, tables.SCHEMA_HISTORY, app_id) or 0
    last = {(version.database, version.table): version for version in earlier}
    recorded = []
    for version in versions:
        before = last.pop((version.database, version.table), None)
        recorded.append(replace(version, version=before.version + 1) if before else version)
    for gone in last.values():
        engine = NO_VIEW if gone.engine in VIEWS else gone.engine
        recorded.append(replace(gone, version=gone.version + 1, status=VersionStatus.DROPPED, engine=engine))
    text = json.dumps(asdict(began))
    rows = [version.to_row() | {_COLUMN: None if version.database or version.table else text} for version in recorded]
    control.append(lake, tables.SCHEMA_HISTORY, rows, app_transaction=(app_id, last_number + 1))


def _rows(lake: LakeFiles, source: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    rows_there = control.read(lake, tables.SCHEMA_HISTORY, columns=columns, filters=[("source", "==", source)])
    rows: list[dict[str, Any]] = rows_there.to_pylist()
    return rows
