"""One verification under way: groups of tables, each read, compared and settled.

In:  a pipeline, its sources, its lake, DuckDB.
Out: TableResults.

Tables are read in groups. The source makes prints of each table's rows, chunk by chunk. Then verify waits for a cut
beyond all of its reads, and joins silver's rows at that cut with the prints. A difference may come from a change in
between. Therefore the different keys, and no others, are read again on both sides until each is settled (settle.py
explains why that is exact).

A side with reads at cuts works the other way round: the cut is chosen, then the source is read as of that cut. A
difference is then real. Only a long first read goes on at a newer cut, before the source forgets the older one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.lake.cuts.published import Cut
from tidegate.limits import VERIFY_CUT_SECONDS, VERIFY_GROUP_ROWS, VERIFY_GROUP_TABLES, VERIFY_ROUND_ROWS
from tidegate.table_names import Physical, splits
from tidegate.tables import State
from tidegate.verify.copies import Copies
from tidegate.verify.cut import LakeReader
from tidegate.verify.log_changes import changed_keys
from tidegate.verify.other_columns import note_computed, other_columns, why_columns
from tidegate.verify.report import Outcome, RangeResult, TableResult
from tidegate.verify.settle import settle
from tidegate.verify.silver_side import SILVER_FAULTS, FirstPass, Silver, SilverSide
from tidegate.verify.source_side import SourceSide
from tidegate.verify.source_table import SourceTable
from tidegate.verify.strays import strays
from tidegate.verify.under_way import Again, Differing, Round, TableUnderWay, VerifyOptions, difference, hex_of, waiting
from tidegate.verify.unread import WHY, hidden_tables

_WAITS: Final = (State.HELD, State.RELEASED, State.SNAPSHOT)  # a released one catches up, one of a snapshot lacks rows
_NO_DATE: Final = "rows have a key with a date that no calendar has, which silver has no value for"
_TOO_MANY: Final = "more keys seem to differ than are looked at one by one"
_CHANGES: Final = "keys changed between each two reads of them: verify again when they rest"
_REDEFINED: Final = "its definition changed whenever it was compared"


@dataclass(slots=True)
class Check:
    """One verification under way. cut, positions: of the last wait."""

    pipeline: Pipeline
    lake: LakeReader
    sources: Mapping[str, SourceSide]
    silver: SilverSide
    options: VerifyOptions
    copies: Copies
    unread: Sequence[TableUnderWay] = ()  # tables of sources that can't be read by SQL
    cut: Cut = field(init=False)
    positions: dict[str, tuple[str, int]] = field(default_factory=dict)
    _seen_at: float = field(default=0.0, init=False)  # by time.monotonic(): the last wait's end

    def wait(self, names: Iterable[str]) -> None:
        """Until a cut has all that these sources' reads may have seen; sources with reads at cuts read at this one."""
        sides = {name: self.sources[name] for name in names}
        here = {name: side.position() for name, side in sides.items() if not side.reads_at_cuts}
        self.positions |= here
        self.cut = self.lake.wait(here, self.options.timeout_seconds, self.options.report)
        for side in sides.values():
            side.see(self.cut.cut_ts)
        self._seen_at = time.monotonic()

    def run(self) -> Iterator[TableResult]:
        """Tables of the sources, then silver tables that no source has."""
        seen, known = set[str](), set(self.cut.states)  # a table that is made meanwhile is the next verification's
        shards: dict[str, set[tuple[str, str, str]]] = {}
        todo, shown = list[TableUnderWay](), set[Physical]()
        for source, side in self.sources.items():
            for database, table in side.tables(self._followed):
                to_database, to_table, routed = self.pipeline.tables.logical(database, table)
                logical = f"{to_database}.{to_table}"
                seen.add(logical)
                shown.add(Physical(source, database, table))
                shard = {tables.SHARD_SOURCE: source, tables.SHARD_DATABASE: database, tables.SHARD_TABLE: table}
                if routed:
                    shards.setdefault(logical, set()).add((source, database, table))
                if self._wanted(f"{database}.{table}", logical):
                    todo.append(TableUnderWay(source, database, table, logical, tuple(shard.items()) if routed else ()))
        todo.reverse()
        self.silver.progress.tables = len(todo)
        while todo:
            yield from self._group(todo)
        for logical in sorted(shards):
            yield from self._strays(logical, shards[logical])
        hidden = list(hidden_tables(self.lake.lake, self.pipeline, self.sources, shown, self._followed))
        ended = ("", State.DROPPED, State.LEFT)
        for work in (*self.unread, *(work for work in hidden if self._state(work.logical)[0] not in ended)):
            seen.add(work.logical)
            if self._wanted(work.name_there, work.logical):
                yield self._unread(work)
        alone = [logical for logical in sorted(known - seen) if self._wanted(logical, logical)]
        if alone:
            again = {self._logical(*name) for side in self.sources.values() for name in side.tables(self._followed)}
            self.wait(self.sources)  # a cut that knows why they weren't there
            yield from (self._without_source(logical) for logical in alone if logical not in again)

    def _followed(self, database: str, table: str) -> bool:
        """Kept, or a shadow of a kept table that silver has."""
        kept = self.pipeline.tables
        shadow = kept.shadows(database, table) and f"{database}.{table}" in self.cut.states
        return shadow or kept.keeps(database, table)

    def _logical(self, database: str, table: str) -> str:
        return self.pipeline.tables.logical(database, table).name

    def _wanted(self, *names: str) -> bool:
        return self.options.tables is None or any(name in self.options.tables for name in names)

    def _state(self, logical: str) -> tuple[str, str]:
        """(state, reason) at the cut; "" of one that it doesn't know."""
        return self.cut.states.get(logical, ("", ""))

    def _version(self, logical: str) -> int:
        """The table's Delta version at the cut, with people's later changes of it; -1 where there is none."""
        table = self.cut.tables.get(logical)
        if table is None or table.version < 0:
            return -1
        return self.lake.version_found(table.path, table.version)

    def _without_source(self, logical: str) -> TableResult:
        try:
            return self._silver_alone(logical)
        except SILVER_FAULTS as error:
            return TableResult("", logical, logical, Outcome.UNVERIFIED, str(error))

    def _silver_alone(self, logical: str) -> TableResult:
        state, reason = self._state(logical)
        version = self._version(logical)
        if state in (State.DROPPED, State.LEFT):
            return TableResult("", logical, logical, Outcome.DROPPED, reason or "dropped at the source")
        if state in _WAITS:
            return TableResult("", logical, logical, *waiting(state, reason))
        rows = self.silver.count(self._at(logical, version)) if version >= 0 else 0
        if version < 0:
            return TableResult("", logical, logical, Outcome.DROPPED, "no source has it, and silver neither")
        why = "no source has this table, or shows it to our account (SELECT), and silver isn't marked dropped"
        return TableResult("", logical, logical, Outcome.DIFFERENT, why, silver_rows=rows)

    def _strays(self, logical: str, known: set[tuple[str, str, str]]) -> Iterator[TableResult]:
        """The rows of a routed table that no comparison of a shard has seen."""
        version = self._version(logical)
        if version >= 0 and self._state(logical)[0] not in (*_WAITS, State.LEFT) and self._wanted(logical):
            with suppress(*SILVER_FAULTS):  # each shard has said so
                of = (self.lake.lake, self.pipeline, logical)
                yield from strays(self.silver, self._at(logical, version), known, of)

    def _unread(self, work: TableUnderWay) -> TableResult:
        state, reason = self._state(work.logical)
        if state in _WAITS:
            return work.result(*waiting(state, reason))
        return work.result(Outcome.UNVERIFIED, work.refused or WHY.format(source=work.source))

    def _path(self, logical: str) -> str:
        table = self.cut.tables.get(logical)
        return table.path if table is not None else tables.silver_path(*splits(logical)[0])

    def _at(self, logical: str, version: int, only: tuple[tuple[str, str], ...] = ()) -> Silver:
        """A silver table as DuckDB can read it: where it lies, or a copy of it."""
        path = self._path(logical)
        if self.lake.lake.is_local:
            return Silver(f"{self.lake.lake.root}/{path}", version, only)
        return Silver(self.copies.at(path, version), 0, only)

    # --- a group of tables ----------------------------------------------------------------------------

    def _group(self, todo: list[TableUnderWay]) -> Iterator[TableResult]:
        """Take tables of one kind of side from the list's end; what must be begun again goes back there."""
        group: list[TableUnderWay] = []
        rows = 0
        at_cuts = self._at_cuts(todo[-1])
        sides = {name: side for name, side in self.sources.items() if side.reads_at_cuts == at_cuts}
        if at_cuts:
            self.wait(sides)
        places = {}
        for name, side in sides.items():
            places[name] = side.look()
            side.looked()
        while todo and rows < VERIFY_GROUP_ROWS and len(group) < VERIFY_GROUP_TABLES:
            if self._at_cuts(todo[-1]) != at_cuts:
                break
            work = todo.pop()
            if self._state(work.logical)[0] not in _WAITS:
                work.place = places[work.source]
                rows += self._read(work, f"prints_{len(group)}")
            group.append(work)
        if not at_cuts:
            self.wait(dict.fromkeys(work.source for work in group))
        settling = []
        for number, work in enumerate(group):
            try:
                result = self._compare(work, f"prints_{number}")
            except Again:
                if (again := work.again()) is not None:
                    todo.append(again)
                    continue
                result = work.result(Outcome.UNSETTLED, _REDEFINED)
            except SILVER_FAULTS as error:  # this table's alone
                result = work.result(Outcome.UNVERIFIED, str(error))
            finally:
                self.silver.drop(f"prints_{number}")
            if result is None:
                settling.append(work)
            else:
                yield result
        yield from self._settle(settling, todo)

    def _at_cuts(self, work: TableUnderWay) -> bool:
        return self.sources[work.source].reads_at_cuts

    def _read(self, work: TableUnderWay, name: str) -> int:
        """Take the prints of its rows in; how many they are."""
        side, rows, started = self.sources[work.source], 0, time.monotonic()
        work.table = side.describe(work.database, work.name)
        try:
            if work.table.cells and not work.table.unasked:
                for some in self.silver.keep(name, work.table, side.prints(work.table, self.options.chunk_rows)):
                    work.prints.append(some)
                    rows += some.rows
                    if self.options.rows_per_second:
                        due = rows / self.options.rows_per_second
                        time.sleep(max(0.0, due - (time.monotonic() - started)))
                    if side.reads_at_cuts and time.monotonic() - self._seen_at > VERIFY_CUT_SECONDS:
                        self.wait([work.source])
        except TidegateError:
            if refusal := side.refusal(work.database, work.name):
                work.refused = refusal
            elif side.describe(work.database, work.name) == work.table:
                raise
            work.prints.clear()  # a DDL came in between: _compare finds it
        return rows

    def _silver(self, work: TableUnderWay) -> Silver:
        return self._at(work.logical, self._version(work.logical), work.only)

    def _checked(self, work: TableUnderWay) -> SourceTable:
        """The table as it was read. Raises Again when it is another one now."""
        now = self.sources[work.source].describe(work.database, work.name)
        if now != work.table:
            raise Again
        return now

    def _compare(self, work: TableUnderWay, name: str) -> TableResult | None:
        """The first comparison's result; None if keys are still to be settled. Raises Again."""
        state, reason = self._state(work.logical)
        if state in _WAITS:
            return work.result(*waiting(state, reason))
        if work.refused:
            return work.result(Outcome.UNVERIFIED, work.refused)
        if work.table is None:  # it was held when it would have been read
            raise Again
        table = self._checked(work)
        if table.unasked:
            return work.result(Outcome.DIFFERENT, table.unasked)
        rows = sum(some.rows for some in work.prints)
        version = self._version(work.logical)
        if version < 0 or state == State.DROPPED:
            if rows:
                why = "silver is marked dropped" if state == State.DROPPED else "silver has no such table"
                return work.result(Outcome.DIFFERENT, why, source_rows=rows)
            return work.result(Outcome.EQUAL, "empty at the source, not in silver yet")
        work.silver = self._silver(work)
        rules = self.pipeline.tables
        if columns := other_columns(rules, self.lake, self.silver, work, self._path(work.logical)):
            if refusal := self.sources[work.source].refusal(work.database, work.name, whole=True):
                return work.result(Outcome.UNVERIFIED, refusal)
            return work.result(Outcome.DIFFERENT, why_columns(columns), source_rows=rows, columns=columns)
        work.first = self.silver.compare(name, table, len(work.prints), work.silver)
        assert work.place is not None, "it was read"
        work.verified_ts = self.lake.visible_ts(work.source, work.place)
        work.waiting = list(work.first.suspects)
        if len(work.waiting) < work.first.seemed:
            work.unsettled, work.reason = work.first.seemed - len(work.waiting), _TOO_MANY
        self._note_unnamed(work, table, work.first, work.silver)
        note_computed(self.silver, work)
        return None if work.waiting else self._result(work)

    def _note_unnamed(self, work: TableUnderWay, table: SourceTable, first: FirstPass, silver: Silver) -> None:
        """Note rows that no key names, or that aren't clearly live. Apply writes no such rows:
        another writer did.
        """
        ours, theirs = first.unkeyed
        if ours:
            work.unsettled, work.reason = work.unsettled + ours, _NO_DATE
        work.unnamed = max(0, theirs - ours) + first.doubtful
        if work.unnamed:
            work.rows_different += work.unnamed
            rows = self.silver.unnamed_rows(table, silver, self.options.differences_max)
            work.shown += (difference(table, None, row) for row in rows)

    # --- keys that seem to differ ---------------------------------------------------------------------

    def _settle(self, works: list[TableUnderWay], todo: list[TableUnderWay]) -> Iterator[TableResult]:
        while works:
            rounds = [Round(work, work.waiting[:VERIFY_ROUND_ROWS]) for work in works]
            sources, at_cuts = dict.fromkeys(work.source for work in works), self._at_cuts(works[0])
            if at_cuts:
                self.wait(sources)
            for source in sources:
                side = self.sources[source]
                place = side.look()
                try:
                    for keys_read in rounds:
                        if keys_read.work.source == source:
                            keys_read.read(side, place)
                finally:
                    side.looked()
            if not at_cuts:
                self.wait(sources)
            for keys_read in rounds:
                work = keys_read.work
                try:
                    self._settle_some(keys_read)
                    result = None if work.waiting else self._result(work)
                except Again:
                    works.remove(work)
                    if (again := work.again()) is not None:
                        todo.append(again)
                    else:
                        yield work.result(Outcome.UNSETTLED, _REDEFINED)
                    continue
                except SILVER_FAULTS as error:
                    result = work.result(Outcome.UNVERIFIED, str(error))
                if result is not None:
                    works.remove(work)
                    yield result

    def _settle_some(self, keys_read: Round) -> None:
        """Raises Again."""
        work = keys_read.work
        if keys_read.failed or self._state(work.logical)[0] in _WAITS or work.logical not in self.cut.tables:
            raise Again
        table = self._checked(work)
        work.silver = self._silver(work)
        ours, theirs = keys_read.source, self.silver.rows(table, work.silver, keys_read.keys)
        changed = None
        if any(ours.get(key) != theirs.get(key) for key in keys_read.keys):
            after_ts = self.lake.visible_ts(work.source, keys_read.place) if keys_read.place else 0
            keys_of, names = partial(self.silver.keys_of, table), self.pipeline.tables.names_of(*work.physical.pair)
            changed = changed_keys(self.lake.lake, work.physical, after_ts, self.cut.cut_ts, keys_of, names)
        if changed is not None and keys_read.busy:
            changed = keys_read.busy | set(changed)
        settled = settle(keys_read.keys, ours, theirs, changed)
        del work.waiting[: len(keys_read.keys)]
        for key in settled.left:
            work.tries[key] += 1
            if work.tries[key] < self.options.rounds_max:
                work.waiting.append(key)
            else:
                work.unsettled, work.reason = work.unsettled + 1, work.reason or _CHANGES
        work.rows_different += len(settled.different)
        for key, own_row, other in settled.different:
            work.different[key] = None
            if len(work.shown) < self.options.differences_max:
                work.shown.append(difference(table, own_row, other))

    def _result(self, work: TableUnderWay) -> TableResult:
        first, table, silver = work.first, work.table, work.silver
        assert first is not None, "it was compared"
        assert table is not None, "it was compared"
        assert silver is not None, "it was compared"
        if work.rows_different and self.options.on_different is not None:
            differing = Differing(work.source, table, silver, tuple(work.different), work.unnamed)
            self.options.on_different(differing, self.silver)
        ours, theirs = 0, first.extra_hash
        for sums in first.chunks:
            ours, theirs = ours ^ sums.source_hash, theirs ^ sums.silver_hash
        ranges = tuple(
            RangeResult(some.after, some.upto, sums.source_rows, sums.silver_rows, *map(hex_of, sums.hashes))
            for some, sums in zip(work.prints, first.chunks, strict=True)
        )
        outcome = Outcome.UNSETTLED if work.unsettled else Outcome.EQUAL
        left_out = [f"masked {', '.join(work.masked)}"] if work.masked else []
        left_out += [f"silver's own {', '.join(work.owners)}"] if work.owners else []
        return work.result(
            Outcome.DIFFERENT if work.rows_different or work.computed_rows else outcome,
            work.reason or (f"not compared: {'; '.join(left_out)}" if left_out else ""),
            source_rows=sum(some.rows for some in work.prints),
            silver_rows=first.silver_rows,
            source_hash=hex_of(ours),
            silver_hash=hex_of(theirs),
            seemed=first.seemed + sum(first.unkeyed),
            different=max(work.rows_different, work.computed_rows),
            unsettled=work.unsettled,
            verified_through=work.verified_ts,
            differences=tuple(work.shown),
            ranges=ranges,
        )
