"""Where a source's segments begin once its first ones were removed.

In:  files of sources, in order of seq.
Out: a commit_ts: no window after it needs a removed segment.

If each transaction's rows and commit lie together, this is the resolved_ts before the first
segment. If they lie apart (SegmentRef.whole is false), a later commit may need removed rows. No
commit needs them any more after the first segment before which more was resolved than the removed
ones had named (lookback.py). The first remaining segment is the bound for those names, since a
named timestamp never falls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import attrgetter

from tidegate.errors import StreamCorrupt
from tidegate.lake.bronze.file import reading
from tidegate.lake.bronze.log import BronzeFile
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import WHOLE_KINDS
from tidegate.tables import SegmentFlag


def begins(lake: LakeFiles, files: Iterable[BronzeFile]) -> dict[str, int]:
    """Per source whose first segments were removed. files: of any sources, in order of source and seq."""
    by_source = {source: list(of) for source, of in groupby(files, key=attrgetter("source"))}
    return {source: _begin(lake, of) for source, of in by_source.items() if of[0].min_seq > 1}


def _begin(lake: LakeFiles, files: Sequence[BronzeFile]) -> int:
    try:
        kind, _ = _first_segment(lake, files[0])
    except StreamCorrupt:  # the reader that needs this file reports it; the true beginning isn't above this
        return max(files[0].begin_ts, _apart(files))
    return files[0].begin_ts if kind in WHOLE_KINDS else _apart(files)


def can_begin(lake: LakeFiles, files: Sequence[BronzeFile], floor_ts: int) -> bool:
    """Whether these can be all of bronze, where every coming window begins at floor_ts or above."""
    kind, flags = _first_segment(lake, files[0])
    if kind not in WHOLE_KINDS:
        return _apart(files) <= floor_ts
    return not flags & SegmentFlag.OPEN_AT_START


def _apart(files: Sequence[BronzeFile]) -> int:
    named_ts = files[0].first_max_ts
    return next(
        (before.max_commit_ts for before, file in pairwise(files) if file.begin_ts > named_ts), files[-1].top_ts
    )


def _first_segment(lake: LakeFiles, file: BronzeFile) -> tuple[str, SegmentFlag]:
    with reading(lake, file.path) as parquet:
        row = parquet.read_row_group(0, columns=["kind", "flags"], use_threads=False).slice(0, 1).to_pylist()[0]
    return row["kind"], SegmentFlag(row["flags"])
