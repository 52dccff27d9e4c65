"""Verify a pipeline: wait for a cut that holds everything, compare table by table, check that nothing moved meanwhile.

In:  a pipeline, connections to its sources, where its lake lies.
Out: a Report. Nothing is written, neither at the source nor in the lake.

The workload must be quiet: rows are read from the source as they are now and from silver as of the cut, and these are
the same instant only if the source's binlog stands still from before the cut until after the comparison.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.errors import UsageError, VerifyError
from tidegate.mysql.connection import ConnectionInfo
from tidegate.silver_names import silver_column
from tidegate.tables import State
from tidegate.verify.comparison import Row, compare
from tidegate.verify.cut import Cut, LakeReader
from tidegate.verify.report import Difference, Outcome, Report, TableResult
from tidegate.verify.silver_side import SilverSide
from tidegate.verify.source_side import SourceSide, SourceTable

DIFFERENCES_MAX: Final = 10
_WAITS: Final = (State.HELD, State.RELEASED, State.SNAPSHOT)  # a released one catches up, one of a snapshot lacks rows


@dataclass(frozen=True, slots=True)
class Options:
    """table: only this `database.table`; timeout_seconds: how long to wait for a cut."""

    table: str | None = None
    timeout_seconds: float = 60.0
    differences_max: int = DIFFERENCES_MAX


def verify(
    pipeline: Pipeline,
    connections: Mapping[str, ConnectionInfo],
    lake_root: str,
    storage_options: Mapping[str, str] | None = None,
    options: Options | None = None,
    on_table: Callable[[TableResult], None] | None = None,
) -> Report:
    """Compare every kept table. connections: source name -> connection; lake_root: absolute path or URL.

    Raises VerifyError when it can't be carried out: no cut in time, the source moved, nothing to compare.
    """
    options = options or Options()
    started = time.monotonic()
    sources: dict[str, SourceSide] = {}
    silver = SilverSide()
    try:
        for name in pipeline.sources:
            sources[name] = SourceSide(connections[name])
        positions = {name: side.position() for name, side in sources.items()}
        servers = {name: side.server_id() for name, side in sources.items()}
        lake = LakeReader(lake_root, storage_options or {}, pipeline.pipeline, servers)
        if options.table is not None:
            _check_known(pipeline, sources, lake.newest_cut(), options.table)
        cut = lake.wait(positions, options.timeout_seconds)
        check = _Check(pipeline, lake_root, cut, sources, silver, options)
        results = []
        for result in check.run():
            results.append(result)
            if on_table is not None:
                on_table(result)
        _stood_still(sources, positions)
    finally:
        silver.close()
        for side in sources.values():
            side.close()
    if not results:
        raise VerifyError(
            "no table to compare",
            where=pipeline.pipeline,
            remedy="check tables.include of the pipeline file",
        )
    where = {name: f"{file}:{offset}" for name, (file, offset) in positions.items()}
    return Report(pipeline.pipeline, cut.cut_ts, where, tuple(results), time.monotonic() - started)


def _check_known(pipeline: Pipeline, sources: Mapping[str, SourceSide], cut: Cut | None, table: str) -> None:
    """Raises UsageError for a table that neither a source nor a cut names, before the wait for a cut."""
    known = set(cut.versions) if cut else set()
    for side in sources.values():
        for database, name in side.tables(pipeline.tables.keeps):
            known |= {f"{database}.{name}", ".".join(pipeline.tables.logical(database, name)[:2])}
    if table not in known:
        close = difflib.get_close_matches(table, known, n=1)
        remedy = f"did you mean {close[0]}?" if close else "give database.table as at the source or in silver"
        raise UsageError(f"there is no table {table!r}", where=pipeline.pipeline, remedy=remedy)


def _stood_still(sources: Mapping[str, SourceSide], positions: Mapping[str, tuple[str, int]]) -> None:
    for name, side in sources.items():
        now = side.position()
        if now != positions[name]:
            file, offset = positions[name]
            raise VerifyError(
                f"the source moved from {file}:{offset} to {now[0]}:{now[1]} while it was compared",
                where=name,
                remedy="stop what writes to it, then verify again",
            )


@dataclass(frozen=True, slots=True)
class _Check:
    """One verification under way."""

    pipeline: Pipeline
    lake_root: str
    cut: Cut
    sources: Mapping[str, SourceSide]
    silver: SilverSide
    options: Options

    def run(self) -> Iterator[TableResult]:
        """Tables of the sources, then silver tables that no source has."""
        seen: set[str] = set()
        for source, side in self.sources.items():
            for database, table in side.tables(self._followed):
                to_database, to_table, routed = self.pipeline.tables.logical(database, table)
                logical = f"{to_database}.{to_table}"
                seen.add(logical)
                if self._wanted(f"{database}.{table}", logical):
                    only = {
                        tables.SHARD_SOURCE: source,
                        tables.SHARD_DATABASE: database,
                        tables.SHARD_TABLE: table,
                    }
                    yield self._table(source, side.describe(database, table), logical, only if routed else {})
        for logical in sorted(self.cut.versions.keys() - seen):
            if self._wanted(logical, logical):
                yield self._without_source(logical)

    def _followed(self, database: str, table: str) -> bool:
        """Kept, or a shadow of a kept table that silver has."""
        kept = self.pipeline.tables
        shadow = kept.shadows(database, table) and f"{database}.{table}" in self.cut.versions
        return shadow or kept.keeps(database, table)

    def _wanted(self, *names: str) -> bool:
        return self.options.table is None or self.options.table in names

    def _address(self, logical: str) -> str:
        return f"{self.lake_root}/{tables.silver_path(*logical.split('.', 1))}"

    def _state(self, logical: str) -> tuple[str, str]:
        """(state, reason): the last event of control/table_states counts, else what the cut says."""
        return self.cut.reasons.get(logical) or (self.cut.versions.get(logical, (-1, ""))[1], "")

    def _without_source(self, logical: str) -> TableResult:
        state, reason = self._state(logical)
        version = self.cut.versions[logical][0]
        if state in (State.DROPPED, State.LEFT):
            return TableResult("", logical, logical, Outcome.DROPPED, reason or "dropped at the source")
        if state in _WAITS:
            return TableResult("", logical, logical, Outcome.HELD, reason)
        rows = self.silver.count(self._address(logical), version) if version >= 0 else 0
        if version < 0:
            return TableResult("", logical, logical, Outcome.DROPPED, "no source has it, and silver neither")
        why = "no source has this table, and silver isn't marked dropped"
        return TableResult("", logical, logical, Outcome.DIFFERENT, why, silver_rows=rows)

    def _table(self, source: str, table: SourceTable, logical: str, only: dict[str, str]) -> TableResult:
        def result(outcome: Outcome, reason: str = "", **more: Any) -> TableResult:
            return TableResult(source, table.name, logical, outcome, reason, **more)

        state, reason = self._state(logical)
        if state in _WAITS:
            return result(Outcome.HELD, reason)
        version = self.cut.versions.get(logical, (-1, ""))[0]
        if version < 0 or state == State.DROPPED:
            rows = sum(1 for _ in self.sources[source].rows(table))
            if rows:
                why = "silver is marked dropped" if state == State.DROPPED else "silver has no such table"
                return result(Outcome.DIFFERENT, why, source_rows=rows)
            return result(Outcome.EQUAL, "empty at the source, not in silver yet")
        address = self._address(logical)
        names, there = [silver_column(cell.name) for cell in table.cells], self.silver.columns(address, version)
        if set(names) != set(there) and not (only and set(names) <= set(there)):
            missing, extra = sorted(set(names) - set(there)), sorted(set(there) - set(names))
            return result(Outcome.DIFFERENT, f"columns differ: missing in silver {missing}, only in silver {extra}")

        def source_rows() -> Iterator[Row]:
            return self.sources[source].rows(table)

        def silver_rows() -> Iterator[Row]:
            return self.silver.rows(address, version, table.cells, only)

        compared = compare(source_rows, silver_rows, table.key, self.options.differences_max)
        return result(
            Outcome.EQUAL if compared.equal else Outcome.DIFFERENT,
            source_rows=compared.source.rows,
            silver_rows=compared.silver.rows,
            source_hash=compared.source.hash,
            silver_hash=compared.silver.hash,
            differences=tuple(_difference(table, *found) for found in compared.differing),
        )


def _difference(table: SourceTable, key: Row, ours: Row | None, theirs: Row | None) -> Difference:
    names = [cell.name for cell in table.cells]
    key_names = [names[index] for index in table.key] or names
    return Difference(dict(zip(key_names, key, strict=True)), _named(names, ours), _named(names, theirs))


def _named(names: list[str], row: Row | None) -> dict[str, Any] | None:
    return None if row is None else dict(zip(names, row, strict=True))
