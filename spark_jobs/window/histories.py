"""An application's schema histories, and how far back each must reach.

In:  control/schema_history, control/prewrites, control/judgements; how far each table is.
Out: Histories, a dict of them by source. Versions needed by no window any more aren't in memory.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from spark_jobs.window.handles import Handles
from spark_jobs.window.names import Names
from spark_jobs.window.positions import Positions
from tidegate import tables
from tidegate.lake.bronze import prewrites
from tidegate.lake.people import judgements
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.remedy import Remedy
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.renamed import under_names
from tidegate.schema.replay.bounds import Bounds
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.prewrites import Prewrites
from tidegate.tables import State

_FOREVER: Final = (1 << 63) - 1


class Histories(dict[str, SchemaHistory]):
    """version: of schema_history. judged: per source, persons' judgements of its log. prewrites:
    per source, the open ones, and those answered above the cut: their rows are committed long after
    they were written.
    """

    def __init__(self, handles: Handles) -> None:
        super().__init__()
        self._handles = handles
        self.names = Names(handles.pipeline, self)
        self.version = -1
        self.judged: dict[str, judgements.Judged] = {}
        self.prewrites: dict[str, Prewrites] = {}
        self._prewritten: dict[str, int] = {}  # per source: start_ts of the oldest that is needed
        self._prewritten_below: dict[str, int] = {}  # the same, for windows below the cut

    def read_prewrites(self, at: Positions) -> None:
        """Read the prewrites open, or answered above the cut; a person may have decided about an
        orphan.
        """
        rows = prewrites.for_apply(self._handles.lake, min([at.cut_ts, *at.followed.behind.values()]))
        self.prewrites = {source: Prewrites(source, rows.get(source, ())) for source in self._handles.pipeline.sources}

    def read_judged(self) -> None:
        """Read persons' judgements of a log. A statement may be replayed again by them, on the
        history before it.
        """
        self.judged = judgements.read(self._handles.lake)
        self.version = -1

    def read(self, at: Positions, open_lows: Collection[int]) -> None:
        """Take in others' rows of schema_history, if any."""
        version = self._handles.control.version(tables.SCHEMA_HISTORY)
        if version == self.version:
            return
        self.version = version
        self.names.forget_flows()
        self._note_prewritten(at, open_lows)
        rows = needed_rows(self._handles.lake, self._handles.pipeline.sources, partial(self.floor, at))
        made = {}
        for source, of in rows.items():
            bounds = Bounds(of.next_id, of.floor, of.standing)
            keeps = partial(self.names.keeps, source)
            made[source] = SchemaHistory(source, of.rows, keeps, bounds=bounds, named=self._named)
        self.clear()
        self.update(made)
        for history in self.values():
            self._hold_in(history, at)

    def _named(self, version: TableVersion) -> TableVersion:
        """A version with silver's names."""
        return under_names(version, self._handles.pipeline.tables.names_of(version.database, version.table))

    def written(self, version: int) -> None:
        """Note our own append to schema_history: memory has it already, unless another commit came before it."""
        if version == self.version + 1:
            self.version = version

    def forget(self, at: Positions, open_lows: Collection[int]) -> None:
        """After a published cut: let go of table versions needed by no window any more."""
        self._sum_prewritten(at, open_lows)
        for source, history in self.items():
            history.forget(partial(self.floor, at, source))

    def floor(self, at: Positions, source: str, database: str, table: str) -> int:
        """A table's versions are needed from this commit_ts on: it is applied up to there."""
        position = min(at.of(source), self._prewritten.get(source, _FOREVER))
        known = at.states.get(self.names.logical_name(database, table)) if table else None
        return min(position, known.applied_ts) if known and known.state.waits else position

    def _note_prewritten(self, at: Positions, open_lows: Collection[int]) -> None:
        """From where on versions are needed, also for the windows ahead of a table below the
        cut.
        """
        lows = [state.applied_ts for _, state in at.states.of(State.HELD, State.RELEASED)]
        low_ts = min([*lows, *open_lows], default=at.cut_ts)
        below = dict.fromkeys(self._handles.pipeline.sources, low_ts) if low_ts < at.cut_ts else {}
        self._prewritten_below = prewrites.first_needed(self._handles.lake, below)
        self._sum_prewritten(at, open_lows)

    def _sum_prewritten(self, at: Positions, open_lows: Collection[int]) -> None:
        # A person's decision stays on record. It is needed only while a table may stand below it.
        decided = any(prewrite.decided_by for of in self.prewrites.values() for prewrite in of)
        below_cut = decided and (at.states.any(State.HELD, State.RELEASED) or bool(open_lows))
        self._prewritten = {}
        for source, of in self.prewrites.items():
            after_ts = 0 if below_cut else at.of(source)
            due = (prewrite.start_ts for prewrite in of if prewrite.waits or prewrite.answer_ts > after_ts)
            self._prewritten[source] = min([self._prewritten_below.get(source, _FOREVER), *due])

    def _hold_in(self, history: SchemaHistory, at: Positions) -> None:
        """Mark, in a fresh history, the tables that wait because a statement wasn't followed."""
        for database, table in history.tables():
            state = at.states.get(self.names.logical_name(database, table))
            if state is not None and state.state == State.HELD and state.is_unread:
                remedy, names = Remedy(needs=state.needs), (f"{database}.{table}",)
                history.held[(database, table)] = DdlNotRead(state.reason, remedy=remedy, tables=names)
