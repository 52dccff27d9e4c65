"""The snapshots for a person's eyes: those under way, failed ones, the past of waiting tables.

In:  a lake, again and again; names of tables waiting for their rows.
Out: TableProgress of these, in order of their requests.

Ten thousand tables leave sixty thousand events, most of them about tables whose last snapshot is
done. No event object is made for those, unless the table waits. A file of events is read once, as
long as no file is removed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.event_log import WITHOUT_DEFINITIONS
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress, Tally
from tidegate.table_names import Physical
from tidegate.tables import SNAPSHOTS

_PHYSICAL: Final = ["source", "database", "table"]


class ShownSnapshots:
    """The snapshots of one pipeline's lake. For one thread at a time."""

    def __init__(self, lake: LakeFiles) -> None:
        self._lake, self._tally = lake, Tally()
        self._files: frozenset[str] = frozenset()
        self._passed_over: set[Physical] = set()

    def tables(self, wanted: Collection[Physical] = ()) -> list[TableProgress]:
        """In order of their requests, without tables whose last snapshot is done; but with the
        wanted ones.

        Raises LakeUnavailable, LakeRefused.
        """
        state = control.load(self._lake, SNAPSHOTS)
        live = {} if state is None else {file.path: file for file in state.files}
        if not self._files <= live.keys() or not self._passed_over.isdisjoint(wanted):
            self._tally, self._files, self._passed_over = Tally(), frozenset(), set()
        new = [live[path] for path in sorted(live.keys() - self._files)]
        if state is not None and new:
            rows = self._needed(control.rows_of(self._lake, SNAPSHOTS, state, WITHOUT_DEFINITIONS, files=new), wanted)
            self._tally.take_in(SnapshotEvent.from_row({"definition": None, **row}) for row in rows.to_pylist())
        self._files = frozenset(live)
        return list(self._tally.tables.values())

    def _needed(self, rows: pa.Table, wanted: Collection[Physical]) -> pa.Table:
        """Without the events of tables whose newest event is `done`, and that no earlier look has met."""
        newest = rows.group_by(_PHYSICAL, use_threads=False).aggregate([("recorded_at", "max")])
        done = rows.filter(pc.and_(pc.equal(rows["event"], EventKind.DONE), pc.not_equal(rows["table"], "")))
        done = done.select([*_PHYSICAL, "recorded_at"])
        done = done.join(newest, [*_PHYSICAL, "recorded_at"], [*_PHYSICAL, "recorded_at_max"], join_type="left semi")
        known = {key.physical for key in self._tally.tables} | set(wanted)
        columns = [done[name].to_pylist() for name in _PHYSICAL]
        over = set(map(Physical, *columns)) - known
        self._passed_over |= over
        if not over:
            return rows
        names = pa.table(dict(zip(_PHYSICAL, map(list, zip(*over, strict=True)), strict=True)))
        number = rows.append_column("number", pa.array(range(rows.num_rows)))
        kept = number.join(names, _PHYSICAL, join_type="left anti")["number"]
        return rows.take(kept.sort())


def under_way_and_failed(known: Collection[TableProgress]) -> tuple[list[TableProgress], list[TableProgress]]:
    """Tables whose snapshot isn't over, and those whose last snapshot to end failed, by name; one
    that is tried again now is among both. known: in order of their requests.
    """
    over = {(table.source, table.name): table for table in known if table.state.is_over}
    failed = [table for table in over.values() if table.state is SnapshotState.FAILED]
    return _by_name([table for table in known if not table.state.is_over]), _by_name(failed)


def _by_name(tables: Collection[TableProgress]) -> list[TableProgress]:
    return sorted(tables, key=lambda table: (table.source, table.name))
