"""Write tables that renames link together: phase by phase, in the order of commit_ts over all of
them.

In:  tables of a window with their plans and changes, the Moves among them.
Out: the new Delta version of each table, or the error that stopped it. The error holds its table, and tables that a
     later rename links to it. The others go on.

At a rename: every table's rows before it are written by then; the versions to read are fixed before anything is
written; takers are written before givers are emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from spark_jobs.merge.moves import only_shards, take_rows, taken_rows, version_before
from spark_jobs.merge.past import check_past, follow_past
from spark_jobs.merge.schema import change_schema
from spark_jobs.merge.silver_partitions import partial_taker, refuse_doubts
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.stays import with_ended, with_versions
from spark_jobs.merge.taken_files import given_files, take_files
from spark_jobs.window.application import Application
from spark_jobs.window.made import DdlTimes, GivenBack, TableToWrite
from spark_jobs.window.plan import PlannedPhase
from spark_jobs.window.shape.moves import partners
from spark_jobs.window.standing.silver_guard import version_for_cut
from spark_jobs.window.standing.standings import hold_with
from spark_jobs.window.window import Move, Window
from tidegate.errors import SchemaMismatch, Terminal
from tidegate.failpoint import failpoint
from tidegate.merge.phases import DdlPhase, RowsPhase
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.follow.renames import leaves, renamed_here
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partition_rows import rows_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Step = tuple[TableToWrite, PlannedPhase]
WriteRows = Callable[[SilverWriter, PlannedPhase], None]


class LinkedWriter:
    """Writes one group of a window."""

    def __init__(
        self,
        app: Application,
        window: Window,
        ddl_times: DdlTimes,
        works: Sequence[TableToWrite],
        write_rows: WriteRows,
    ) -> None:
        """write_rows: writes a rows phase as the table's plan says."""
        self._app = app
        self._write_rows = write_rows
        self._window = window
        self._works = works
        self._writers = {work.name: SilverWriter(app, work, ddl_times) for work in works}
        # With its own error, or for its partner's. A table that is given back takes its partners along.
        self._stopped: dict[str, Terminal | GivenBack | None] = {}

    def run(self) -> dict[str, int | BaseException]:
        """The outcome of each table that isn't held for another's sake."""
        steps = [
            (planned.phase.upto_ts, isinstance(planned.phase, RowsPhase), (work, planned))
            for work in self._works
            for planned in work.plan.phases
        ]
        for (upto_ts, rows), together in groupby(sorted(steps, key=lambda s: s[:2]), key=lambda s: s[:2]):
            at_once = [step for _, _, step in together]
            if rows:
                for work, planned in at_once:
                    self._attempt(work.name, upto_ts, partial(self._write_rows, self._writers[work.name], planned))
            else:
                self._change_schemas(upto_ts, at_once)
        outcome: dict[str, int | BaseException] = {}
        for name, writer in self._writers.items():
            if name not in self._stopped:
                outcome[name] = version_for_cut(self._app, name, writer.state)
            elif (error := self._stopped[name]) is not None:
                outcome[name] = error
        return outcome

    def _change_schemas(self, commit_ts: int, together: Sequence[Step]) -> None:
        """All that the statements at one commit_ts do to the tables."""
        moves = [move for move in self._window.moves if move.commit_ts == commit_ts]
        due = [move for move in moves if self._is_due(move)]
        versions = {move.giver: version_before(self._app, move.giver, commit_ts) for move in due}
        takes: list[tuple[str, Callable[[], None]]] = []
        rest: list[tuple[str, PlannedPhase]] = []
        for work, planned in together:
            phase = planned.phase
            assert isinstance(phase, DdlPhase), "sorted so"
            own_moves = [move for move in moves if move.taker == work.name and _in_phase(move, phase)]
            replaced = [move.new for move in own_moves] + [
                new for old, new in phase.changes if own_moves and _left(old, new)
            ]
            others = tuple(change for change in phase.changes if change[1] not in replaced)
            if others:
                rest.append((work.name, replace(planned, phase=DdlPhase(commit_ts, others))))
            if any(move in due for move in own_moves):
                self._attempt(
                    work.name, commit_ts, partial(self._prepare, (work, planned), own_moves, replaced, versions, takes)
                )
        for name, take in takes:
            self._attempt(name, commit_ts, take)
            failpoint("apply_in_move")
        for name, planned in rest:
            self._attempt(name, commit_ts, partial(change_schema, self._writers[name], planned))

    def _is_due(self, move: Move) -> bool:
        """Whether a table of the group lacks the rows that this brings. A killed window may have brought them."""
        taker = self._writers.get(move.taker)
        return taker is not None and not taker.has_taken(move.commit_ts)

    def _prepare(
        self,
        step: Step,
        moves: Sequence[Move],
        replaced: Sequence[TableVersion],
        versions: dict[str, int],
        takes: list[tuple[str, Callable[[], None]]],
    ) -> None:
        """Check that a taker can have its rows, before any taker is written."""
        work, shape = step[0], step[1].shape
        writer = self._writers[work.name]
        assert shape is not None, "a taker has columns"
        follow_past(writer, step[1].before or shape)
        by_spark = partial(self._by_spark, step, moves, replaced, versions)
        files = given_files(writer, shape, moves, versions)
        at = (shape, moves[0].commit_ts)
        takes.append((work.name, by_spark() if files is None else partial(take_files, writer, at, files, by_spark)))

    def _by_spark(
        self, step: Step, moves: Sequence[Move], replaced: Sequence[TableVersion], versions: dict[str, int]
    ) -> Callable[[], None]:
        """The step to write a taker's rows as Spark reads them. Rows are checked here, before it."""
        work, shape = step[0], step[1].shape
        writer = self._writers[work.name]
        assert shape is not None, "a taker has columns"
        given = taken_rows(writer, shape, moves, versions)
        if shape.routed and shape.past.versions:
            for move in moves:
                own = self._app.histories[move.new.source].version_at(*move.new.physical.pair, move.commit_ts - 1)
                check_past(writer, writer, own, move.new, shape)
        partly = any(partial_taker(move.new) for move in moves)
        gave = {move.old.physical for move in self._window.moves if move.commit_ts == moves[0].commit_ts}
        carried = all(version.physical in gave for version in replaced)

        def beside(own: DataFrame | None) -> DataFrame:
            """The rows that the taker gets, and those of its own rows that stay."""
            if partly:
                self._refuse_partial(shape, own, moves)
            if own is None or not shape.past.rows_stay:
                return given
            if shape.past.versions and shape.routed:
                return given
            if shape.past.versions:
                return with_versions(writer, shape, given, own, replaced)
            return with_ended(writer, shape, given, own, replaced, carried=carried)

        if partly or shape.past.rows_stay:
            beside(writer.rows())
        return partial(take_rows, writer, shape, beside, replaced, moves[0].commit_ts)

    def _refuse_partial(self, shape: SilverShape, own: DataFrame | None, moves: Sequence[Move]) -> None:
        """Raise SchemaMismatch where a partition of the taker can't be told, or has rows that silver alone has."""
        new = moves[0].new
        if shape.past.rows_stay and not shape.past.versions:
            raise SchemaMismatch(
                f"{new.ddl[:120]}: its effect on {shape.past.kept} that stay isn't known",
                where=new.where,
                remedy=REFILL,
            )
        for move in moves:
            if own is not None and move.moved is not None and partial_taker(move.new):
                rows = own.where(only_shards([move.new])) if shape.routed else own
                where = rows_where(move.new.columns, move.new.partitioning, move.moved.partitions)
                refuse_doubts(rows, where, move.new)

    def _attempt(self, name: str, commit_ts: int, step: Callable[[], None]) -> None:
        if name in self._stopped:
            return
        try:
            step()
        except Terminal as error:
            self._stop(name, commit_ts, error)
        except GivenBack as given:
            self._stopped[name] = given
            for partner in self._partners(name, commit_ts):
                self._stopped[partner] = GivenBack(f"it goes with {name}: {given.why}", window_only=True)
        failpoint("apply_in_merge")

    def _partners(self, name: str, commit_ts: int) -> list[str]:
        """The tables that a rename from here on links to a table, and that go on so far."""
        later = [move for move in self._window.moves if move.commit_ts >= commit_ts]
        return sorted(partners(later, name) - self._stopped.keys())

    def _stop(self, name: str, commit_ts: int, error: Terminal) -> None:
        """Stop a table, and the tables that a rename from here on links to it."""
        self._stopped[name] = error
        for partner in self._partners(name, commit_ts):
            self._stopped[partner] = None
            self._app.positions.forget_applied(partner)
            hold_with(self._app, self._window, partner, name, str(error), error.needs)


def _in_phase(move: Move, phase: DdlPhase) -> bool:
    return any(new == move.new for _, new in phase.changes)


def _left(old: TableVersion | None, new: TableVersion) -> bool:
    """Whether a rename took a name's rows and gave it no others."""
    return leaves(old, new) and not renamed_here(new)
