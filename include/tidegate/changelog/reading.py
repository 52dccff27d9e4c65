"""Changes in order from a place on, up to a published cut.

In:  a changelog, the place where a reader stands, the newest cut.
Out: Arrow tables of changelog_table.SCHEMA in order, a piece at a time; the place of a row.

A reader remembers one place. Each row has its own place, in order, so a place stays right when
maintain packs files. Rows of unpublished windows come with a later read. A piece of some MiB is in
memory (merged.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidegate.changelog.changelog_table import BEGIN, SCHEMA
from tidegate.changelog.merged import FIRST, CommitRange, behind, merged, placed
from tidegate.commit_ts import time_text
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import ChangesMissing
from tidegate.lake import control
from tidegate.lake.control.files import chosen
from tidegate.lake.files import LakeFiles
from tidegate.tables.form import Table


@dataclass(frozen=True, slots=True, order=True)
class ChangePlace:
    """The place of a row, by changelog_table.PLACE. A reader at a place has read all rows up to it,
    and the row itself.
    """

    commit_ts: int = 0
    source: str = ""
    seq: int = FIRST
    ordinal: int = FIRST

    @classmethod
    def behind(cls, commit_ts: int) -> ChangePlace:
        """Behind all changes of a commit_ts, those of a cut for one."""
        return cls(commit_ts + 1)


def changes_after(
    lake: LakeFiles, table: Table, place: ChangePlace, upto_ts: int, *, over_gaps: bool = False
) -> Iterator[pa.Table]:
    """Raises ChangesMissing when changes after the place have left the changelog; over_gaps: goes on without them."""
    seen = -1
    while (state := control.load(lake, table)) is not None:
        if not over_gaps:
            _check_kept(lake, table, state, place)
        try:
            for rows in _behind(lake, table, state, place, upto_ts):
                place = place_of(rows, rows.num_rows - 1)
                yield rows
        except FileNotFoundError as error:  # the read took so long that maintain packed the next file, and removed it
            if state.version == seen:
                remedy = "restore the file; else take silver at a newer cut, and go on --from that cut"
                raise ChangesMissing("a file of the changelog is gone", where=str(error), remedy=remedy) from error
            seen = state.version
        else:
            return


def _behind(lake: LakeFiles, table: Table, state: TableState, place: ChangePlace, upto_ts: int) -> Iterator[pa.Table]:
    span = CommitRange(place.commit_ts, upto_ts)
    files = chosen(state, (("commit_ts", ">=", span.from_ts), ("commit_ts", "<=", span.upto_ts)))
    for piece in merged(lake, table, files, span):
        rows = piece.filter(behind(piece, (place.commit_ts, place.source, place.seq, place.ordinal)))
        if rows.num_rows:
            yield rows.combine_chunks()


def place_of(rows: pa.Table, at: int) -> ChangePlace:
    """The place of a row."""
    return ChangePlace(*placed(rows, at))


def _check_kept(lake: LakeFiles, table: Table, state: TableState, place: ChangePlace) -> None:
    """Check that no change after the place is gone: the oldest file begins at or below it, or is
    the first file ever.
    """
    first = min(state.files, key=_bounds, default=None)
    if first is None or _bounds(first)[0] <= place.commit_ts:
        return
    oldest = _bounds(first)[0]
    ops = control.rows_of(lake, table, state, pa.schema([SCHEMA.field("op")]), files=[first])["op"]
    if BEGIN not in ops.unique().to_pylist():
        raise ChangesMissing(
            f"changes up to {oldest} ({time_text(oldest)}) have left the changelog",
            where=table.path,
            remedy="read silver at a later cut, and continue --from that cut; or continue --over-gaps with the rest."
            " maintain.keep_changelog_days is the retention of changes",
        )


def _bounds(file: LiveFile) -> tuple[int, int]:
    low, high = file.bounds("commit_ts") or (0, 1 << 62)
    return int(low), int(high)
