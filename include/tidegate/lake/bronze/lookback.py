"""Segments below a window with rows for the window's commits.

In:  refs of one source whose segments aren't whole (SegmentRef.whole); a window's low end.
Out: the refs of needed earlier segments.

Such a source names in each segment the latest timestamp so far (max_commit_ts only grows) and how
far it is resolved. Take the first segment that names something above the low end, and call R what
was resolved right before it. Rows that aren't committed at the low end wait in a segment that names
something at or above R: when such a row came, R or less was resolved, and the row was above that
itself or after something that was. A window therefore needs no memory of its own of waiting rows:
bronze has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.lake.bronze.index import refs_in
from tidegate.lake.bronze.log import bronze_log, files_of
from tidegate.lake.files import LakeFiles
from tidegate.segments.window import SegmentRef, reaching_back


def lookback(lake: LakeFiles, known: Sequence[SegmentRef], source: str, low_ts: int) -> list[SegmentRef]:
    """known: refs of the source, in order of seq, the first of the window among them; missing ones
    are looked for in bronze.
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
    """Bronze's segments up to a seq whose latest timestamp so far is at or above a given one."""
    log = bronze_log(lake, lambda add: add["partitionValues"]["source"] == source)
    files = [file for file in files_of(log.state()) if file.source == source]
    return [
        ref
        for file in files
        if file.top_ts >= from_ts and file.min_seq <= upto_seq
        for ref in refs_in(lake, file.path, source, from_ts - 1)
        if ref.seq <= upto_seq and ref.max_commit_ts >= from_ts
    ]
