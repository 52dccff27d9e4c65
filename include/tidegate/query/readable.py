"""The oldest readable version of a Delta table, and so the oldest readable cut of a lake.

In:  a lake; its published cuts.
Out: the oldest readable version of a table; the oldest cut whose tables can all be read.

VACUUM deletes files that old commits removed, and a log's old commits go. Therefore only a table's oldest
versions are unreadable, and bisection finds the first readable one. It costs one listing per table,
and a few reads of its log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tidegate.commit_ts import time_text
from tidegate.delta.table.state import TableState
from tidegate.errors import CutForgotten, QueryRefused
from tidegate.lake.cuts.published import Cut, CutTable, cut_at, known_cuts
from tidegate.lake.files import LakeFiles


def check_readable(lake: LakeFiles, pipeline: str, cut: Cut, wanted: Iterable[CutTable]) -> None:
    """Look at these tables of the cut, and at no others.

    Raises CutForgotten when one has lost its version, with the oldest cut that has all of them; QueryRefused when its
    newest version isn't whole either; LakeRefused, DeltaUnsupported.
    """
    oldest = {table.path: oldest_readable(lake, table.path) for table in wanted}
    lost = [table for table in cut.tables.values() if table.version < oldest.get(table.path, 0)]
    if not lost:
        return
    for table in lost:
        if oldest[table.path] > lake.log(table.path).known.version:
            raise QueryRefused(
                "files of its newest version are gone, too",
                where=lake.uri(table.path),
                remedy="see `tidegate lake check`; a snapshot reads the table anew",
            )
    first = _oldest_cut(lake, pipeline, cut.cut_ts, oldest)
    way = f"the oldest cut that can be read is {first} ({time_text(first)})" if first else "ask for the newest cut"
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    raise CutForgotten(
        f"files of {lost[0].name}{more} at cut {cut.cut_ts} ({time_text(cut.cut_ts)}) were vacuumed",
        where=lake.root,
        remedy=f"{way}; maintain.keep_cuts_hours says how long cuts stay readable",
    )


def oldest_readable(lake: LakeFiles, path: str) -> int:
    """The oldest version with log and files; the one after the newest when not even that has all."""
    log = lake.log(path)
    newest = log.state().version
    present = lake.written_ms(path).keys()
    low, high = 0, newest + 1  # high can be read, or is behind the newest
    while low < high:
        middle = (low + high) // 2
        state = log.state_at(middle)
        if state is not None and _has_files(state, present):
            high = middle
        else:
            low = middle + 1
    return high


def _has_files(state: TableState, present: Collection[str]) -> bool:
    return all(file.local_path in present for file in state.files)


def _oldest_cut(lake: LakeFiles, pipeline: str, above_ts: int, oldest: Mapping[str, int]) -> int:
    """0 when there is none above the one that was asked for."""
    stamps = [stamp for stamp in known_cuts(lake) if stamp > above_ts]
    low, high = 0, len(stamps)
    while low < high:
        middle = (low + high) // 2
        tables = cut_at(lake, pipeline, stamps[middle]).tables.values()
        if all(table.version >= oldest.get(table.path, 0) for table in tables):
            high = middle
        else:
            low = middle + 1
    return stamps[high] if high < len(stamps) else 0
