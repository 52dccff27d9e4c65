"""The upgrade of a lake of an older format: begin, then table by table, then done.

In:  a lake.
Out: the planned changes of each table; the upgraded lake.

After a kill it goes on where it was, since each table's own log says whether it is upgraded
(lake/control/upgrade.py). Two upgrades at once do each table once: the second one finds it done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate import tables
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.control.upgrade import DONE, begin, record, upgrade_table
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import layout_of
from tidegate.lake.format.version import format_of
from tidegate.tables import Table


@dataclass(frozen=True, slots=True)
class TableUpgrade:
    """The changes of one table. what: in words, "" for none. rows: how many are rewritten."""

    path: str
    what: str
    rows: int = 0


def plan(lake: LakeFiles) -> list[TableUpgrade]:
    """The changes for each control table of the lake. Raises LakeUnavailable, LakeRefused."""
    made = []
    for table in _tables():
        state = control.load(lake, table)
        if state is not None:
            layout = layout_of(state, table)
            rows = sum(file.rows or 0 for file in state.files) if layout.steps else 0
            made.append(TableUpgrade(table.path, layout.told, rows))
    return made


def upgrade(lake: LakeFiles, report: Callable[[str], None] = lambda _: None, *, every: bool = False) -> bool:
    """Upgrade the lake. Returns whether there was anything to do. report: gets a line for each
    table.

    every: look at the tables of an upgraded lake, too: one of them may have been restored from an
    old copy.

    Raises LakeUnavailable, LakeRefused, CommitConflict.
    """
    before = format_of(lake)
    if before.is_ours and not (every and any(item.what for item in plan(lake))):
        return False
    begin(lake)
    done = []
    for table in _tables():
        if what := upgrade_table(lake, table):
            report(f"{table.path}: {what}")
            done.append(table.path)
            failpoint("format_after_table")
    failpoint("format_before_done")
    record(lake, DONE, f"from format {before.done}: {', '.join(done) or 'no table changed'}")
    report(f"the lake has {format_of(lake).told}")
    return True


def _tables() -> list[Table]:
    return [table for table in tables.ALL if table.path.startswith("control/") and table is not tables.FORMAT]
