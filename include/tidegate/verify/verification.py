"""Verify a pipeline while its sources are written to.

In:  a pipeline, connections to its sources, where its lake lies.
Out: a Report; rows in control/verification. Nothing is written at the source.

Tables are read in groups. Of each the source prints its rows, chunk by chunk; then a cut is waited for that holds all
that the reads saw, and silver's rows of that cut are joined with the prints. What differs may have changed meanwhile:
those keys, and no others, are read again on both sides until each is settled (settle.py says why that is exact).
"""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from tidegate import tables
from tidegate.config import Pipeline, Verify
from tidegate.errors import TidegateError, UsageError, VerifyError
from tidegate.limits import (
    VERIFY_ATTEMPTS_MAX,
    VERIFY_CHUNK_ROWS_DEFAULT,
    VERIFY_GROUP_ROWS,
    VERIFY_GROUP_TABLES,
    VERIFY_MEMORY_MIB_DEFAULT,
    VERIFY_ROUND_KEYS,
    VERIFY_ROUNDS_MAX,
)
from tidegate.mysql.connection import ConnectionInfo
from tidegate.silver_names import silver_column
from tidegate.tables import State
from tidegate.verify.cut import Cut, LakeReader
from tidegate.verify.log_changes import changed_keys
from tidegate.verify.recording import record
from tidegate.verify.report import Difference, Outcome, RangeResult, Report, TableResult
from tidegate.verify.settle import Key, Row, settle
from tidegate.verify.silver_side import FirstPass, Silver, SilverSide
from tidegate.verify.source_side import Prints, SourceSide, SourceTable, Visible

DIFFERENCES_MAX: Final = 10
_WAITS: Final = (State.HELD, State.RELEASED, State.SNAPSHOT)  # a released one catches up, one of a snapshot lacks rows
_NO_DATE: Final = "rows have a key with a date that no calendar has, which silver has no value for"
_TOO_MANY: Final = "more keys seem to differ than are looked at one by one"
_CHANGES: Final = "keys changed between each two reads of them: verify again when they rest"
_REDEFINED: Final = "its definition changed whenever it was compared"


@dataclass(frozen=True, slots=True)
class Options:
    """table: only this `database.table`; timeout_seconds: how long to wait for a cut, each time.

    rows_per_second: 0 for no bound. rounds_max: how often a key that seems to differ is read again. record: whether
    control/verification gets what is found.
    """

    table: str | None = None
    timeout_seconds: float = 60.0
    differences_max: int = DIFFERENCES_MAX
    chunk_rows: int = VERIFY_CHUNK_ROWS_DEFAULT
    rows_per_second: int = 0
    memory_mib: int = VERIFY_MEMORY_MIB_DEFAULT
    rounds_max: int = VERIFY_ROUNDS_MAX
    record: bool = False

    @classmethod
    def of(cls, section: Verify, *, table: str | None = None, timeout_seconds: float = 60.0) -> Self:
        """As a pipeline file says; what is found is recorded."""
        return cls(
            table,
            timeout_seconds,
            chunk_rows=section.chunk_rows,
            rows_per_second=section.rows_per_second,
            memory_mib=section.memory_mb,
            rounds_max=section.rounds,
            record=True,
        )


@dataclass(frozen=True, slots=True)
class Differing:
    """A table with the keys of its rows that differ."""

    source: str
    table: SourceTable
    silver: Silver
    keys: tuple[Key, ...]


def verify(
    pipeline: Pipeline,
    connections: Mapping[str, ConnectionInfo],
    lake_root: str,
    storage_options: Mapping[str, str] | None = None,
    options: Options | None = None,
    *,
    on_table: Callable[[TableResult], None] | None = None,
    on_different: Callable[[Differing, SilverSide], None] | None = None,
) -> Report:
    """Compare every kept table. connections: source name -> connection; lake_root: absolute path or URL.

    Raises VerifyError when it can't be carried out: no cut in time, nothing to compare.
    """
    options = options or Options()
    started = time.monotonic()
    sources: dict[str, SourceSide] = {}
    silver = SilverSide(options.memory_mib)
    try:
        for name in pipeline.sources:
            sources[name] = SourceSide(connections[name])
        positions = {name: side.position() for name, side in sources.items()}
        servers = {name: side.server_id() for name, side in sources.items()}
        lake = LakeReader(lake_root, storage_options or {}, pipeline.pipeline, servers)
        if options.table is not None:
            _check_known(pipeline, sources, lake.newest_cut(), options.table)
        check = _Check(pipeline, lake, sources, silver, options, on_different)
        check.wait(sources)
        results = []
        for result in check.run():
            results.append(result)
            if on_table is not None:
                on_table(result)
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
    where = {name: f"{file}:{offset}" for name, (file, offset) in (positions | check.positions).items()}
    report = Report(pipeline.pipeline, check.cut.cut_ts, where, tuple(results), time.monotonic() - started)
    if options.record:
        record(lake.lake, report)
    return report


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


@dataclass(slots=True)
class _Work:
    """One physical table under way. place: where its first read began. prints: its chunks, without their text."""

    source: str
    database: str
    name: str
    logical: str
    only: tuple[tuple[str, str], ...]
    attempts: int = 0
    table: SourceTable | None = None
    place: Visible | None = None
    prints: list[Prints] = field(default_factory=list)
    first: FirstPass | None = None
    silver: Silver | None = None
    verified_ts: int = 0
    reason: str = ""
    waiting: list[Key] = field(default_factory=list)
    tries: Counter[Key] = field(default_factory=Counter)
    unsettled: int = 0
    different: dict[Key, None] = field(default_factory=dict)
    rows_different: int = 0
    shown: list[Difference] = field(default_factory=list)

    @property
    def physical(self) -> tuple[str, str, str]:
        return self.source, self.database, self.name

    def result(self, outcome: Outcome, reason: str = "", **more: Any) -> TableResult:
        return TableResult(self.source, f"{self.database}.{self.name}", self.logical, outcome, reason, **more)


class _Again(Exception):  # noqa: N818 - what to do, not what happened
    """The table isn't what it was when it was read."""


@dataclass(slots=True)
class _Check:
    """One verification under way. cut, positions: of the last wait."""

    pipeline: Pipeline
    lake: LakeReader
    sources: Mapping[str, SourceSide]
    silver: SilverSide
    options: Options
    on_different: Callable[[Differing, SilverSide], None] | None = None
    cut: Cut = field(init=False)
    positions: dict[str, tuple[str, int]] = field(default_factory=dict)

    def wait(self, names: Iterator[str] | Mapping[str, Any] | Sequence[str]) -> None:
        """Until a cut has all that reads of these sources may have seen."""
        here = {name: self.sources[name].position() for name in names}
        self.positions |= here
        self.cut = self.lake.wait(here, self.options.timeout_seconds)

    def run(self) -> Iterator[TableResult]:
        """Tables of the sources, then silver tables that no source has."""
        seen: set[str] = set()
        todo: list[_Work] = []
        for source, side in self.sources.items():
            for database, table in side.tables(self._followed):
                to_database, to_table, routed = self.pipeline.tables.logical(database, table)
                logical = f"{to_database}.{to_table}"
                seen.add(logical)
                shard = {tables.SHARD_SOURCE: source, tables.SHARD_DATABASE: database, tables.SHARD_TABLE: table}
                if self._wanted(f"{database}.{table}", logical):
                    todo.append(_Work(source, database, table, logical, tuple(shard.items()) if routed else ()))
        todo.reverse()
        while todo:
            yield from self._group(todo)
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
        address = self._address(logical)
        rows = self.silver.count(address, version) if version >= 0 else 0
        if version < 0:
            return TableResult("", logical, logical, Outcome.DROPPED, "no source has it, and silver neither")
        why = "no source has this table, and silver isn't marked dropped"
        return TableResult("", logical, logical, Outcome.DIFFERENT, why, silver_rows=rows)

    def _address(self, logical: str) -> str:
        return f"{self.lake.root}/{tables.silver_path(*logical.split('.', 1))}"

    # --- a group of tables ----------------------------------------------------------------------------

    def _group(self, todo: list[_Work]) -> Iterator[TableResult]:
        """Take tables from the end of the list; what has to be begun again goes back there."""
        group: list[_Work] = []
        rows = 0
        places = {}
        for name, side in self.sources.items():
            places[name] = side.look()
            side.looked()
        while todo and rows < VERIFY_GROUP_ROWS and len(group) < VERIFY_GROUP_TABLES:
            work = todo.pop()
            if self._state(work.logical)[0] not in _WAITS:
                work.place = places[work.source]
                rows += self._read(work, f"prints_{len(group)}")
            group.append(work)
        self.wait(dict.fromkeys(work.source for work in group))
        settling = []
        for number, work in enumerate(group):
            try:
                found = self._compare(work, f"prints_{number}")
            except _Again:
                if (again := self._again(work)) is not None:
                    todo.append(again)
                    continue
                found = work.result(Outcome.UNSETTLED, _REDEFINED)
            finally:
                self.silver.drop(f"prints_{number}")
            if found is None:
                settling.append(work)
            else:
                yield found
        yield from self._settle(settling, todo)

    @staticmethod
    def _again(work: _Work) -> _Work | None:
        if work.attempts + 1 >= VERIFY_ATTEMPTS_MAX:
            return None
        begun = (work.source, work.database, work.name, work.logical, work.only)
        return _Work(*begun, attempts=work.attempts + 1)

    def _read(self, work: _Work, name: str) -> int:
        """Take the prints of its rows in; how many they are."""
        side, rows, started = self.sources[work.source], 0, time.monotonic()
        work.table = side.describe(work.database, work.name)
        try:
            if work.table.cells:
                for some in self.silver.keep(name, work.table, side.prints(work.table, self.options.chunk_rows)):
                    work.prints.append(some)
                    rows += some.rows
                    if self.options.rows_per_second:
                        due = rows / self.options.rows_per_second
                        time.sleep(max(0.0, due - (time.monotonic() - started)))
        except TidegateError:
            if side.describe(work.database, work.name) == work.table:
                raise
            work.prints.clear()  # a DDL came in between: _compare finds it
        return rows

    def _silver(self, work: _Work) -> Silver:
        return Silver(self._address(work.logical), self.cut.versions[work.logical][0], work.only)

    def _checked(self, work: _Work) -> SourceTable:
        """The table as it was read. Raises _Again when it is another one now."""
        now = self.sources[work.source].describe(work.database, work.name)
        if now != work.table:
            raise _Again
        return now

    def _compare(self, work: _Work, name: str) -> TableResult | None:
        """The first comparison; None: keys are to be settled. Raises _Again."""
        state, reason = self._state(work.logical)
        if state in _WAITS:
            return work.result(Outcome.HELD, reason)
        if work.table is None:  # it was held when it would have been read
            raise _Again
        table = self._checked(work)
        rows = sum(some.rows for some in work.prints)
        version = self.cut.versions.get(work.logical, (-1, ""))[0]
        if version < 0 or state == State.DROPPED:
            if rows:
                why = "silver is marked dropped" if state == State.DROPPED else "silver has no such table"
                return work.result(Outcome.DIFFERENT, why, source_rows=rows)
            return work.result(Outcome.EQUAL, "empty at the source, not in silver yet")
        work.silver = self._silver(work)
        names = [silver_column(cell.name) for cell in table.cells]
        there = self.silver.columns(work.silver.address, version)
        if set(names) != set(there) and not (work.only and set(names) <= set(there)):
            missing, extra = sorted(set(names) - set(there)), sorted(set(there) - set(names))
            why = f"columns differ: missing in silver {missing}, only in silver {extra}"
            return work.result(Outcome.DIFFERENT, why, source_rows=rows)
        work.first = self.silver.compare(name, table, len(work.prints), work.silver)
        assert work.place is not None, "it was read"
        work.verified_ts = self.lake.visible_ts(work.source, work.place)
        work.waiting = [key for key in work.first.suspects if None not in key]
        if len(work.waiting) < work.first.seemed:
            work.unsettled = work.first.seemed - len(work.waiting)
            work.reason = _NO_DATE if len(work.waiting) < len(work.first.suspects) else _TOO_MANY
        return None if work.waiting else self._result(work)

    # --- keys that seem to differ ---------------------------------------------------------------------

    def _settle(self, works: list[_Work], todo: list[_Work]) -> Iterator[TableResult]:
        while works:
            rounds = [_Round(work, work.waiting[:VERIFY_ROUND_KEYS]) for work in works]
            for source in dict.fromkeys(work.source for work in works):
                side = self.sources[source]
                place = side.look()
                try:
                    for one in rounds:
                        if one.work.source == source:
                            one.read(side, place)
                finally:
                    side.looked()
            self.wait(dict.fromkeys(work.source for work in works))
            for one in rounds:
                work = one.work
                try:
                    self._settle_some(one)
                except _Again:
                    works.remove(work)
                    if (again := self._again(work)) is not None:
                        todo.append(again)
                    else:
                        yield work.result(Outcome.UNSETTLED, _REDEFINED)
                    continue
                if not work.waiting:
                    works.remove(work)
                    yield self._result(work)

    def _settle_some(self, one: _Round) -> None:
        """Raises _Again."""
        work = one.work
        if one.failed or self._state(work.logical)[0] in _WAITS or work.logical not in self.cut.versions:
            raise _Again
        table = self._checked(work)
        work.silver = self._silver(work)
        ours, theirs = one.source, self.silver.rows(table, work.silver, one.keys)
        changed = None
        if any(ours.get(key) != theirs.get(key) for key in one.keys):
            after_ts = self.lake.visible_ts(work.source, one.place) if one.place else 0
            changed = changed_keys(
                self.lake.lake, work.physical, after_ts, self.cut.cut_ts, lambda rows: self.silver.keys_of(table, rows)
            )
        if changed is not None and one.busy:
            changed = one.busy | set(changed)
        found = settle(one.keys, ours, theirs, changed)
        del work.waiting[: len(one.keys)]
        for key in found.left:
            work.tries[key] += 1
            if work.tries[key] < self.options.rounds_max:
                work.waiting.append(key)
            else:
                work.unsettled, work.reason = work.unsettled + 1, work.reason or _CHANGES
        work.rows_different += len(found.different)
        for key, mine, other in found.different:
            work.different[key] = None
            if len(work.shown) < self.options.differences_max:
                work.shown.append(_difference(table, mine, other))

    def _result(self, work: _Work) -> TableResult:
        first, table, silver = work.first, work.table, work.silver
        assert first is not None, "it was compared"
        assert table is not None, "it was compared"
        assert silver is not None, "it was compared"
        if work.different and self.on_different is not None:
            self.on_different(Differing(work.source, table, silver, tuple(work.different)), self.silver)
        ours, theirs = 0, first.extra_hash
        for sums in first.chunks:
            ours, theirs = ours ^ sums.source_hash, theirs ^ sums.silver_hash
        ranges = tuple(
            RangeResult(some.after, some.upto, sums.source_rows, sums.silver_rows, *map(_hex, sums.hashes))
            for some, sums in zip(work.prints, first.chunks, strict=True)
        )
        outcome = Outcome.UNSETTLED if work.unsettled else Outcome.EQUAL
        return work.result(
            Outcome.DIFFERENT if work.different else outcome,
            work.reason,
            source_rows=sum(some.rows for some in work.prints),
            silver_rows=first.silver_rows,
            source_hash=_hex(ours),
            silver_hash=_hex(theirs),
            seemed=first.seemed,
            different=work.rows_different,
            unsettled=work.unsettled,
            verified_through=work.verified_ts,
            differences=tuple(work.shown),
            ranges=ranges,
        )


@dataclass(slots=True)
class _Round:
    """Some keys of a table, read again."""

    work: _Work
    keys: list[Key]
    place: Visible | None = None
    source: dict[Key, Counter[Row]] = field(default_factory=dict)
    busy: set[Key] = field(default_factory=set)
    failed: bool = False

    def read(self, side: SourceSide, place: Visible) -> None:
        table = self.work.table
        assert table is not None, "it was compared"
        self.place = place
        try:
            self.source, self.busy = side.rows(table, self.keys)
        except TidegateError:
            if side.describe(table.database, table.table) == table:
                raise
            self.failed = True


def _hex(number: int) -> str:
    return f"{number:016x}"


def _difference(table: SourceTable, ours: Row | None, theirs: Row | None) -> Difference:
    names = [cell.name for cell in table.cells]
    row = ours or theirs or ()
    shown = table.key or range(len(names))
    return Difference({names[n]: row[n] for n in shown}, _named(names, ours), _named(names, theirs))


def _named(names: list[str], row: Row | None) -> dict[str, Any] | None:
    return None if row is None else dict(zip(names, row, strict=True))
