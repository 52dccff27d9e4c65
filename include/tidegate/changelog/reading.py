"""Changes in order from a place on, up to a published cut.

In:  a changelog, the place where a reader stands, the newest cut.
Out: Arrow tables of table.SCHEMA in order, a file of the changelog at a time; the place of a row.

Who reads remembers one place: all rows have one each, in order, so it holds whatever files maintain packs meanwhile.
Windows that aren't published yet are left for the next look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.changelog.table import BEGIN, PLACE
from tidegate.commit_ts import time_text
from tidegate.delta.live_file import LiveFile
from tidegate.errors import ChangesMissing
from tidegate.lake import control
from tidegate.lake.control.files import Filters, chosen
from tidegate.lake.files import LakeFiles
from tidegate.tables_form import Table

_FIRST: Final = -(1 << 62)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Of a row, by table.PLACE. A reader at a place has read all rows up to and including it."""

    commit_ts: int = 0
    source: str = ""
    seq: int = _FIRST
    ordinal: int = _FIRST

    @classmethod
    def behind(cls, commit_ts: int) -> Place:
        """Behind all changes of a commit_ts, those of a cut for one."""
        return cls(commit_ts + 1)


def changes_after(lake: LakeFiles, table: Table, place: Place, upto_ts: int) -> Iterator[pa.Table]:
    """Raises ChangesMissing when changes behind the place have left the changelog."""
    found = control.load(lake, table)
    if found is None:
        return
    _check_kept(lake, table, found.files, place)
    filters: Filters = (("commit_ts", ">=", place.commit_ts), ("commit_ts", "<=", upto_ts))
    for files in _in_order(chosen(found, filters)):
        rows = control.rows_of(lake, table, found, filters=filters, files=files)
        rows = rows.filter(_behind(rows, place)).sort_by([(name, "ascending") for name in PLACE])
        if rows.num_rows:
            yield rows.combine_chunks()


def place_of(rows: pa.Table, at: int) -> Place:
    """The place of a row."""
    return Place(*(rows[name][at].as_py() for name in PLACE))


def _check_kept(lake: LakeFiles, table: Table, files: tuple[LiveFile, ...], place: Place) -> None:
    """All behind a place is there when the oldest file begins at or below it, or is the first that there ever was."""
    first = min(files, key=_bounds, default=None)
    if first is None or _bounds(first)[0] <= place.commit_ts:
        return
    found = control.load(lake, table)
    oldest = _bounds(first)[0]
    if found is not None and BEGIN not in control.rows_of(lake, table, found, files=[first])["op"].to_pylist():
        raise ChangesMissing(
            f"changes up to {oldest} ({time_text(oldest)}) have left the changelog",
            where=table.path,
            remedy="take silver at a cut from then on, and go on --from that cut; maintain.keep_changelog_days says how"
            " long changes are kept",
        )


def _in_order(files: list[LiveFile]) -> Iterator[list[LiveFile]]:
    """Files whose commit_ts overlap together."""
    group, top = list[LiveFile](), 0
    for file in sorted(files, key=_bounds):
        low, high = _bounds(file)
        if group and low > top:
            yield group
            group = []
        group.append(file)
        top = max(top, high)
    if group:
        yield group


def _bounds(file: LiveFile) -> tuple[int, int]:
    low, high = file.bounds("commit_ts") or (0, 1 << 62)
    return int(low), int(high)


def _behind(rows: pa.Table, place: Place) -> pa.ChunkedArray:
    """Mask of the rows behind a place, column by column from the last."""
    mask = pc.greater(rows["ordinal"], place.ordinal)
    for name, value in (("seq", place.seq), ("source", place.source), ("commit_ts", place.commit_ts)):
        mask = pc.or_(pc.greater(rows[name], value), pc.and_(pc.equal(rows[name], value), mask))
    return mask
