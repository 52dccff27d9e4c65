"""Segments below a window with rows for the window's commits.

In:  refs of one source whose rows and commits come apart (SegmentRef.whole is false); a window's
     low end.
Out: the refs of the earlier segments the window needs.

Each segment of such a source names the latest timestamp so far (max_commit_ts never falls) and how
far the source is resolved. Take the first segment that names something above the low end. Let R be
what was resolved directly before it. A row not yet committed at the low end is in a segment that
names R or more: when the row came, at most R was resolved, and the row was above that, or came
after a row that was. Therefore a window needs no memory of waiting rows: bronze has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.lake.bronze.index import refs_in
from tidegate.lake.bronze.log import bronze_log, files_of
from tidegate.lake.files import LakeFiles
from tidegate.segments.window import SegmentRef, reaching_back


def lookback(lake: LakeFiles, known: Sequence[SegmentRef], source: str, low_ts: int) -> list[SegmentRef]:
    """known: refs of the source in order of seq; the window's first one is among them. Earlier refs
    that aren't known are looked for in bronze.
    """
    if not any(ref.max_commit_ts > low_ts for ref in known):
        return []
    from_ts, before_seq = reaching_back(known, low_ts)
    by_seq = {ref.seq: ref for ref in known}
    backwards: list[SegmentRef] = []
    for seq in range(before_seq - 1, 0, -1):
        ref = by_seq.get(seq)
        if ref is None:
            return [*naming(lake, source, from_ts, seq), *backwards[::-1]]
        if ref.max_commit_ts < from_ts:
            break
        backwards.append(ref)
    return backwards[::-1]


def naming(lake: LakeFiles, source: str, from_ts: int, upto_seq: int) -> list[SegmentRef]:
    """Bronze's segments up to a seq that name a timestamp at or above from_ts."""
    log = bronze_log(lake, lambda add: add["partitionValues"]["source"] == source)
    files = [file for file in files_of(log.state()) if file.source == source]
    return [
        ref
        for file in files
        if file.top_ts >= from_ts and file.min_seq <= upto_seq
        for ref in refs_in(lake, file.path, source, from_ts - 1)
        if ref.seq <= upto_seq and ref.max_commit_ts >= from_ts
    ]
