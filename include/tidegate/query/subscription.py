"""A reader of one table's changes: from a cut or a saved place on, filtered, in Arrow batches.

In:  a lake, a logical table with a changelog; where to begin; a group's name, under which its place
     is saved.
Out: batches of changes in commit order, up to the newest published cut; saved places.

A batch is passed on before its place is saved: after a kill in between it comes again. A function
that stores `batch.place` in one transaction with its own results has each change once.

If two readers use one group, the one that began later goes on. The other gets Overtaken when it
saves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.changelog.changelog_table import BEGIN, GAP, changelog
from tidegate.changelog.reading import ChangePlace, changes_after, place_of
from tidegate.errors import ChangesMissing, QueryRefused, UsageError
from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.figures.status import cut_ts
from tidegate.lake.files import LakeFiles
from tidegate.limits import QUERY_MEMORY_BYTES, TAIL_POLL_SECONDS
from tidegate.query import duck
from tidegate.table_names import splits
from tidegate.tables.subscriptions_table import SUBSCRIPTIONS

if TYPE_CHECKING:
    import duckdb

_NUMBERED: Final = "_tg_number"


@dataclass(frozen=True, slots=True)
class Batch:
    """rows: changes, columns as changelog/changelog_table.py has them. place: all rows up to it are read."""

    rows: pa.Table
    place: ChangePlace


@dataclass(frozen=True, slots=True)
class Options:
    """after: where to begin; None: where the group stands, or at the changelog's beginning. where: a condition in
    DuckDB's SQL over the changelog's columns (`op = 'delete' OR (after->>'status') = 'paid'`). over_gaps: hand on rows
    about missing changes, instead of ending there.
    """

    after: ChangePlace | None = None
    group: str | None = None
    where: str | None = None
    over_gaps: bool = False


class Subscription:
    """One reader. Not for several threads."""

    def __init__(self, lake: LakeFiles, name: str, options: Options | None = None) -> None:
        """name: database.table. Raises UsageError when the table keeps no changelog."""
        self.name = name
        self._lake, self._options = lake, options or Options()
        pairs = [pair for pair in splits(name) if control.exists(lake, changelog(*pair))]
        if not pairs:
            raise UsageError(
                f"{name} has no changelog",
                where=lake.root,
                remedy="name it in tables.changelog of the pipeline file; it begins with the table's next change",
            )
        self._table = changelog(*pairs[0])
        self._control = ControlTables(lake)
        if self._options.group is not None:
            self._control.claim(SUBSCRIPTIONS, f"tidegate/tail/{name}/{self._options.group}")
        self.place = self._begin()
        self._database: duckdb.DuckDBPyConnection | None = None

    def _begin(self) -> ChangePlace:
        self._saved_at = datetime.fromtimestamp(0, UTC)
        if self._options.group is None:
            return self._options.after or ChangePlace()
        filters = [("table", "=", self.name), ("reader_group", "=", self._options.group)]
        rows = control.newest(self._lake, SUBSCRIPTIONS, by=["table"], order=["saved_at"], filters=filters)
        if rows.num_rows:
            self._saved_at = rows["saved_at"][0].as_py()
        return self._options.after or (place_of(rows, 0) if rows.num_rows else ChangePlace())

    def batches(self) -> Iterator[Batch]:
        """The new changes, up to the newest published cut. Raises ChangesMissing, QueryRefused, LakeUnavailable."""
        over = self._options.over_gaps
        for rows in changes_after(self._lake, self._table, self.place, cut_ts(self._lake), over_gaps=over):
            missing = None if over else self._missing(rows)
            whole = rows if missing is None else rows.slice(0, missing)
            if whole.num_rows:
                place = place_of(whole, whole.num_rows - 1)
                yield Batch(self._chosen(whole), place)
                self.place = place
            if missing is not None:
                note = rows["note"][missing].as_py() or f"changes up to {rows['commit_ts'][missing]} aren't here"
                raise ChangesMissing(
                    str(note),
                    where=self._table.path,
                    remedy="take silver at a cut after it, and go on --from that cut; or --over-gaps",
                )

    def _missing(self, rows: pa.Table) -> int | None:
        """The first row about missing changes after our place."""
        lacks = pc.equal(rows["op"], GAP)
        if self.place.commit_ts > 0:
            since = pc.greater_equal(rows["commit_ts"], self.place.commit_ts)
            lacks = pc.or_(lacks, pc.and_(pc.equal(rows["op"], BEGIN), since))
        at = pc.index(lacks, True).as_py()
        return None if at < 0 else int(at)

    def _chosen(self, rows: pa.Table) -> pa.Table:
        if self._options.where is None:
            return rows
        import duckdb as db

        if self._database is None:
            self._database = duck.connect(QUERY_MEMORY_BYTES)
        numbered = rows.append_column(_NUMBERED, pa.array(np.arange(rows.num_rows)))
        self._database.register("changes", numbered)
        try:
            text = f"SELECT {_NUMBERED} FROM changes WHERE ({self._options.where}\n) ORDER BY {_NUMBERED}"
            matches = self._database.sql(text).to_arrow_table()
        except db.Error as error:
            raise QueryRefused(" ".join(str(error).split()), where="--where", remedy="correct the condition") from error
        return rows.take(matches[_NUMBERED])

    def save(self, place: ChangePlace) -> None:
        """The group goes on after this place, whoever runs it. Raises Overtaken; nothing without a group."""
        if self._options.group is None:
            return
        # The last row counts: it is the last one also where this machine's clock is behind another's, or goes back.
        self._saved_at = max(datetime.now(UTC), self._saved_at + timedelta(microseconds=1))
        row = {"table": self.name, "reader_group": self._options.group, "saved_at": self._saved_at}
        row |= {"commit_ts": place.commit_ts, "source": place.source, "seq": place.seq, "ordinal": place.ordinal}
        self._control.append(SUBSCRIPTIONS, [row])
        self._control.tidy()

    def run(
        self,
        function: Callable[[Batch], object],
        *,
        follow: bool = True,
        poll_seconds: float = TAIL_POLL_SECONDS,
    ) -> int:
        """Call the function with each batch and save its place; changes in all. follow: wait for what comes."""
        count = 0
        while True:
            for batch in self.batches():
                if batch.rows.num_rows:
                    function(batch)
                    count += batch.rows.num_rows
                self.save(batch.place)
            if not follow:
                return count
            time.sleep(poll_seconds)
