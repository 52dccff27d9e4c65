"""Versions of tables, made from DDL jobs.

In:  TableChanges (live_tables.py) at a commit_ts; what schema_history has of their names.
Out: TableVersions, whose `origin` is TiDB's own description: rows name ids of tables and columns that stand only there.

Ids of columns in schema_history are unique per source, TiDB's per table: a column with the same id
in TiDB keeps ours, and so does one in the place of another after a change of type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.reader import DdlNotRead, read
from tidegate.schema.ddl.tree import DropDatabase
from tidegate.schema.model.columns import Column, Generated, Index, IndexKind, TableVersion, VersionStatus
from tidegate.schema.model.server import TIDB, ServerVersion
from tidegate.schema.replay.indexes import key_of
from tidegate.schema.replay.partition_moves import PartitionMoves
from tidegate.schema.replay.shape import Shape
from tidegate.schema.replay.work import TableAfter, Work
from tidegate.tidb.jobs import PUBLIC, ColumnInfo, TableInfo, Tp, id_in
from tidegate.tidb.tables.live_tables import LiveTables, Name, TableChange, VersionKind
from tidegate.tidb.tables.partitioning import partitioning_of
from tidegate.tidb.values.cells import cell_text
from tidegate.tidb.values.stored import origin_default

_WHOLE: Final = -1  # length of an index's part that is no prefix


class KnownTables(Protocol):
    """The part of a SchemaHistory that counts here."""

    source: str

    def last(self, name: Name) -> TableVersion | None: ...
    def tables(self) -> tuple[Name, ...]: ...
    def keeps(self, database: str, table: str) -> bool: ...
    def new_id(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Stands:
    """Where a job stands in the log. ddl: its text."""

    commit_ts: int
    file: str
    pos: int
    ddl: str


def info_of(version: TableVersion) -> TableInfo | None:
    """TiDB's description of a version; None of a version that no TiDB described."""
    return TableInfo.from_text(version.origin) if version.origin else None


def ids_of(versions: Sequence[TableVersion]) -> list[tuple[int, ...]]:
    """TiDB's ids of the table in its rows, of each version.

    PARTITION BY and REMOVE PARTITIONING give a table another id. A transaction that began before may commit after that,
    and has the table's former id.
    """
    ids: list[tuple[int, ...]] = []
    for at, version in enumerate(versions):
        own_id = id_in(version.origin) if version.origin else 0
        if ids and ids[-1] and ids[-1][0] == own_id:
            ids.append(ids[-1])
        elif ids and ids[-1] and own_id and _was_divided(versions[at - 1], version):
            ids.append((own_id, ids[-1][0]))
        else:
            ids.append((own_id,) if own_id else ())
    return ids


def _was_divided(before: TableVersion, version: TableVersion) -> bool:
    was, now = info_of(before), info_of(version)
    went_on = version.kind in (VersionKind.ALTER, VersionKind.RENAME)
    return was is not None and now is not None and went_on and was.partition != now.partition


def live_tables(history: KnownTables) -> LiveTables:
    """The tables that are there, as the newest versions say."""
    live, dropped = {}, {}
    for name in history.tables():
        last = history.last(name)
        info = info_of(last) if last is not None else None
        if last is None or info is None:
            continue
        if last.status is not VersionStatus.DROPPED:
            live[info.id] = (name[0], info)
        elif _drops_database(last.ddl):
            dropped[info.id] = (name[0], info)
    return LiveTables(live, dropped)


@lru_cache(maxsize=256)
def _drops_database(ddl: str) -> bool:
    """Comments stand in a job's text as they were written."""
    try:
        parsed = read(ddl, database="", sql_mode=0, server=ServerVersion.of(TIDB))
    except DdlNotRead:
        return False
    return isinstance(parsed, DropDatabase)


def versions_of(changes: list[TableChange], at: Stands, history: KnownTables) -> list[TableVersion]:
    """The new versions of a job's tables; nothing of those whose newest version isn't older."""
    made: dict[Name, TableVersion] = {}
    renamed = {change.was: history.last(change.was) for change in changes if change.was is not None}
    for change in changes:
        last = history.last(change.name)
        if last is not None and last.commit_ts >= at.commit_ts:
            continue
        before = renamed.get(change.was) if change.was is not None else last
        made[change.name] = _version(change, at, before, _number(last), history)
    for name, moved in _moved(changes, history).items():
        if name in made:
            made[name] = replace(made[name], moved=moved.moved, status=moved.status)
    for was, old in renamed.items():
        assert was is not None, "asked for above"
        if was not in made and old is not None and old.commit_ts < at.commit_ts:
            gone = replace(old, status=VersionStatus.DROPPED, moved=None, kind=str(VersionKind.RENAME))
            made[was] = _placed(gone, at, _number(old))
    return list(made.values())


def _moved(changes: list[TableChange], history: KnownTables) -> dict[Name, TableAfter]:
    """The effect of a job on rows of partitions, as the statement in MySQL's log would be followed."""
    work = Work(history.last)
    for change in changes:
        before = history.last(change.name)
        if change.action is not None and before is not None:
            moves = PartitionMoves(work, work.lives, history.keeps, history.new_id)
            moves.follow(change.name, Shape.of(before), [change.action])
    return dict(work.changed())


def _number(last: TableVersion | None) -> int:
    return last.version + 1 if last else 1


def _placed(version: TableVersion, at: Stands, number: int) -> TableVersion:
    return replace(version, version=number, commit_ts=at.commit_ts, file=at.file, pos=at.pos, ddl=at.ddl)


def _version(
    change: TableChange, at: Stands, before: TableVersion | None, number: int, history: KnownTables
) -> TableVersion:
    info, (database, table) = change.info, change.name
    if change.change is VersionKind.DROP and before is not None:
        return _placed(replace(before, status=VersionStatus.DROPPED, kind=str(VersionKind.DROP)), at, number)
    goes_on = change.change in (VersionKind.ALTER, VersionKind.RENAME, VersionKind.TRUNCATE)
    ids = _ids(info, before if goes_on else None, change.renewed, history.new_id)
    cells = json.loads(info.text)
    columns = tuple(_column(column, ids[column.id], cells) for column in info.shown)
    indexes = _indexes(info, cells, ids)
    return TableVersion(
        source=history.source,
        database=database,
        table=table,
        version=number,
        commit_ts=at.commit_ts,
        file=at.file,
        pos=at.pos,
        kind=str(change.change),
        ddl=at.ddl,
        columns=columns,
        key=key_of(columns, indexes),
        charset=cells.get("charset") or "",
        status=_status(change, before, ids),
        collation=cells.get("collate") or "",
        indexes=indexes,
        partitioning=partitioning_of(info),
        origin=info.text,
        comment=cells.get("comment"),
    )


def _status(change: TableChange, before: TableVersion | None, ids: Mapping[int, int]) -> VersionStatus:
    """ids: ours of the columns, by TiDB's."""
    known = {column.id for column in before.columns} if before is not None else set()
    new = [column for column in change.info.shown if ids[column.id] not in known]
    if change.unknown_rows or (
        change.change in (VersionKind.ALTER, VersionKind.RENAME) and not all(map(_fills_rows, new))
    ):
        return VersionStatus.NEEDS_SNAPSHOT
    if change.change in (VersionKind.ALTER, VersionKind.RENAME) and before is not None:
        return before.status
    return VersionStatus.ACTIVE


def _ids(
    info: TableInfo, before: TableVersion | None, renewed: Mapping[int, int], new_id: Callable[[], int]
) -> dict[int, int]:
    """Our id of each column that is shown, by TiDB's."""
    was = info_of(before) if before is not None else None
    known: dict[int, int] = {}
    if was is not None and before is not None:
        known = {column.id: ours.id for column, ours in zip(was.shown, before.columns, strict=True)}
    return {
        column.id: known.get(column.id) or known.get(renewed.get(column.id, 0)) or new_id() for column in info.shown
    }


def _column(info: ColumnInfo, id_: int, table: Mapping[str, Any]) -> Column:
    cells = next(described for described in table["cols"] if described["id"] == info.id)
    text = not info.is_binary and info.charset not in ("", "binary")
    default = existing_value_text(info) if _fills_rows(info) else None
    return Column(
        id=id_,
        name=info.name,
        type=info.type_text,
        nullable=info.nullable,
        charset=info.charset if text else "",
        collation=info.collation if text else "",
        default=default,
        generated=_generated(info),
        generation_expression=info.expression,
        comment=cells.get("comment") or "",
    )


def _generated(info: ColumnInfo) -> Generated:
    if not info.expression:
        return Generated.NO
    return Generated.STORED if info.stored else Generated.VIRTUAL


def _fills_rows(column: ColumnInfo) -> bool:
    """Whether the value of older rows in it is known."""
    try:
        existing_value_text(column)
    except UnsupportedValue:  # CURRENT_DATE, which TiDB 7.5 works out anew at each SELECT
        return False
    return True


def existing_value_text(column: ColumnInfo) -> str | None:
    """The value of rows that were there before the column, as schema/follow reads a default."""
    value = None if column.expression else origin_default(column)
    if value is None:
        return None
    if column.tp is Tp.BIT and isinstance(value, int):
        return hex(value)
    if isinstance(value, bytes) and column.is_binary:
        return "0x" + value.hex()
    if isinstance(value, str):
        return value
    text = cell_text(column, value)
    return f"{text}+00:00" if text is not None and column.tp is Tp.TIMESTAMP else text


def _indexes(info: TableInfo, cells: Mapping[str, Any], ids: Mapping[int, int]) -> tuple[Index, ...]:
    by_offset = {column["offset"]: column["id"] for column in cells["cols"]}
    indexes = []
    for described in cells["index_info"]:
        if described["state"] != PUBLIC:
            continue
        kind = (
            IndexKind.PRIMARY
            if described["is_primary"]
            else IndexKind.UNIQUE
            if described.get("is_unique")
            else IndexKind.PLAIN
        )
        parts = tuple(ids.get(by_offset[part["offset"]], 0) for part in described["idx_cols"])
        whole = all(parts) and all(part.get("length", _WHOLE) == _WHOLE for part in described["idx_cols"])
        indexes.append(Index(described["idx_name"]["O"], kind, parts, whole))
    if info.key and not any(index.kind is IndexKind.PRIMARY for index in indexes):
        indexes.append(Index("PRIMARY", IndexKind.PRIMARY, tuple(ids[id_] for id_ in info.key)))
    return tuple(sorted(indexes, key=lambda index: index.name))
