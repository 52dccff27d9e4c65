"""Which tables of silver changed since a cut, with their columns, their sources, and the written
rows.

In:  a lake; an earlier cut.
Out: AppliedTables, for OpenLineage. Nothing is written.

There are bounds for the number of named tables, of their columns and their shards, and of the
commits summed up.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.errors import TidegateError
from tidegate.lake import control
from tidegate.limits import (
    LINEAGE_CHARACTERS_MAX,
    LINEAGE_COMMITS_MAX,
    LINEAGE_SHARDS_TABLES_MAX,
    LINEAGE_TABLES_MAX,
)
from tidegate.masks.masking import MASK_METADATA
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.renamed import under_names
from tidegate.table_names import Physical, splits
from tidegate.tables import CUTS, LEDGER, SCHEMA_HISTORY, State

if TYPE_CHECKING:
    from tidegate.config import Pipeline, Tables
    from tidegate.lake.files import LakeFiles

_NAMES: Final = ["source", "database", "table"]
_WRITTEN: Final = (State.ACTIVE, State.SNAPSHOT)  # tables in other states are behind the cut
_AROUND_CHARACTERS: Final = 200  # JSON's and OpenLineage's own words


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table of silver. columns: (name, Delta's type); () beyond the bound. sources: its tables at
    the sources, with their columns. more_sources: how many more there are. rows, bytes: written;
    None after many commits. masked: columns with masked values.
    """

    name: str
    path: str
    version: int
    columns: tuple[tuple[str, str], ...]
    sources: tuple[TableVersion, ...]
    more_sources: int
    rows: int | None
    bytes: int | None
    masked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AppliedTables:
    """more: changed tables beyond the named ones. rows, bytes: of the log, by the ledger."""

    cut_ts: int
    tables: tuple[WrittenTable, ...]
    more: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Flow:
    """Tables at the sources behind a table of silver: some with their columns, and how many more."""

    sources: tuple[TableVersion, ...]
    more: int
    pair: tuple[str, str]  # database and table of silver


def applied_since(pipeline: Pipeline, lake: LakeFiles, after_ts: int) -> AppliedTables:
    """The tables written by the windows above after_ts. Raises LakeUnavailable, LakeRefused."""
    since: Final = [("cut_ts", ">", after_ts)]
    columns = ["cut_ts", "table", "delta_version", "state"]
    cuts = control.newest(lake, CUTS, by=["table"], order=["cut_ts"], columns=columns, filters=since)
    versions: dict[str, int] = {}
    for row in cuts.to_pylist():
        if row["table"] and row["delta_version"] >= 0 and row["state"] in _WRITTEN:
            versions[row["table"]] = row["delta_version"]
    newest = pc.max(cuts["cut_ts"]).as_py() or after_ts
    names = _some(sorted(versions), newest)
    flows = _flows(pipeline, lake, names)
    written, left = [], LINEAGE_CHARACTERS_MAX
    for name in names:
        table = _written(lake, name, versions[name], flows[name], after_ts, left)
        left -= _room(table.columns, table.sources)
        written.append(table)
    ledger = control.read(lake, LEDGER, columns=["rows", "payload_bytes"], filters=since)
    rows, size = (pc.sum(ledger[column]).as_py() or 0 for column in ("rows", "payload_bytes"))
    return AppliedTables(newest, tuple(written), len(versions) - len(names), rows, size)


def captured_tables(pipeline: Pipeline, lake: LakeFiles, source: str) -> tuple[list[TableVersion], int]:
    """Kept tables of a source with their newest columns, and how many more there are. Raises
    LakeUnavailable, LakeRefused.
    """
    columns = [*_NAMES, "status", "commit_ts"]
    filters: Final = [("source", "=", source)]
    order = ["commit_ts", "version"]
    history = control.newest(lake, SCHEMA_HISTORY, by=_NAMES, order=order, columns=columns, filters=filters)
    kept = {
        f"{row['database']}.{row['table']}": Physical(source, row["database"], row["table"])
        for row in history.to_pylist()
        if row["table"]
        and row["status"] != VersionStatus.DROPPED
        and pipeline.tables.keeps(row["database"], row["table"])
    }
    newest = max(pc.max(history["commit_ts"]).as_py() or 0, 0) if len(history) else 0
    names = _some(sorted(kept), newest)
    versions = _versions(lake, pipeline.tables, [kept[name] for name in names])
    known, left = list[TableVersion](), LINEAGE_CHARACTERS_MAX
    for name in names:
        if (version := versions.get(kept[name])) is None:
            continue
        room = _room([(column.name, column.type) for column in version.columns], ())
        if room <= left:
            known.append(version)
            left -= room
    return known, len(kept) - len(known)


def _some(names: list[str], cut_ts: int) -> list[str]:
    """As many names as the bound allows. It begins at another name at each cut, so each has its
    turn.
    """
    if len(names) <= LINEAGE_TABLES_MAX:
        return names
    at = zlib.crc32(str(cut_ts).encode()) % len(names)
    return sorted([*names[at:], *names[:at]][:LINEAGE_TABLES_MAX])


def _flows(pipeline: Pipeline, lake: LakeFiles, names: Collection[str]) -> dict[str, _Flow]:
    """The newest versions of the tables at the sources behind each name."""
    physical: dict[str, list[Physical]] = {name: [] for name in names}
    pairs = {name: splits(name)[0] for name in names}
    columns = [*_NAMES, "status"]
    history = control.newest(lake, SCHEMA_HISTORY, by=_NAMES, order=["commit_ts", "version"], columns=columns)
    for row in history.to_pylist() if names else ():
        pair = (row["database"], row["table"])
        if row["table"] and row["status"] != VersionStatus.DROPPED and pipeline.tables.keeps(*pair):
            logical = pipeline.tables.logical(*pair)
            if logical.name in physical:
                physical[logical.name].append(Physical(row["source"], *pair))
                pairs[logical.name] = (logical.database, logical.table)
    shown = {name: sorted(of)[:LINEAGE_SHARDS_TABLES_MAX] for name, of in physical.items()}
    versions = _versions(lake, pipeline.tables, list(itertools.chain.from_iterable(shown.values())))
    flows: dict[str, _Flow] = {}
    for name, of in shown.items():
        known = tuple(versions[each] for each in of if each in versions)
        flows[name] = _Flow(known, len(physical[name]) - len(of), pairs[name])
    return flows


def _versions(lake: LakeFiles, rules: Tables, physical: Sequence[Physical]) -> dict[Physical, TableVersion]:
    if not physical:
        return {}
    databases = sorted({each.pair[0] for each in physical})
    names = sorted({each.pair[1] for each in physical})
    rows = control.newest(
        lake,
        SCHEMA_HISTORY,
        by=_NAMES,
        order=["commit_ts", "version"],
        filters=[("database", "in", databases), ("table", "in", names)],
    )
    versions = map(TableVersion.from_row, rows.to_pylist())
    return {version.physical: under_names(version, rules.names_of(*version.physical.pair)) for version in versions}


def _written(lake: LakeFiles, name: str, version: int, flow: _Flow, after_ts: int, left: int) -> WrittenTable:
    path = tables.silver_path(*flow.pair)
    log = DeltaLog(lake.uri(path), lake.storage_options, keep=_none)
    columns: tuple[tuple[str, str], ...] = ()
    rows = size = None
    masked: frozenset[str] = frozenset()
    with suppress(TidegateError):  # a damaged table is named without columns, and doesn't affect the others
        fields = log.state().schema["fields"]
        columns = tuple((field["name"], _type_text(field["type"])) for field in fields)
        masked = frozenset(str(field["name"]) for field in fields if (field.get("metadata") or {}).get(MASK_METADATA))
        columns = columns if _room(columns, flow.sources) <= left else ()
        rows, size = _sums(log, version, after_ts)
    return WrittenTable(name, path, version, columns, flow.sources, flow.more, rows, size, masked)


def _room(columns: Sequence[tuple[str, str]], sources: Sequence[TableVersion]) -> int:
    """About how many characters of an event columns take: each names itself, its type, and a column of each source."""
    return sum(2 * len(name) + len(kind) + _AROUND_CHARACTERS for name, kind in columns) * (1 + len(sources))


def _none(_: Any) -> bool:
    return False


def _type_text(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type", ""))


def _sums(log: DeltaLog, version: int, after_ts: int) -> tuple[int | None, int | None]:
    """Rows and bytes our commits after a cut wrote, walking back from the newest commit."""
    rows = size = 0
    for at in range(version, max(-1, version - LINEAGE_COMMITS_MAX), -1):
        actions = log.actions(at)
        if actions is None:
            return None, None  # cleaned up
        marks = [action["txn"]["version"] for action in actions if "txn" in action]
        if marks and max(marks) <= after_ts:
            return rows, size
        added, written = _added(actions)
        rows, size = rows + added, size + written
    return (rows, size) if version < LINEAGE_COMMITS_MAX else (None, None)


def _added(actions: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """A file with a new deletion vector is the same file: the commit removes and adds it under one
    path.
    """
    adds = {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    for action in actions:
        if "remove" in action:
            adds.pop(action["remove"]["path"], None)
    new = [add for add in adds.values() if add.get("dataChange")]
    rows = sum(json.loads(add.get("stats") or "{}").get("numRecords", 0) for add in new)
    return rows, sum(add["size"] for add in new)
