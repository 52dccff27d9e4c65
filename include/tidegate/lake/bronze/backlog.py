"""Segments below the cut, for tables and sources that catch up. They are looked for anew each time.

In:  bronze's Delta log (above.py); per source where to begin, and the wanted tables.
Out: SegmentRefs of one window, and the commit_ts up to which they are complete. Together they have
     bytes_max at most, if a window can be so small.

The small columns of each file are read at most once per window, in order of seq. Only refs with a
wanted table are kept: changes of other tables cost this one look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from tidegate.lake.bronze.above import FilesAbove
from tidegate.lake.bronze.index import refs_in
from tidegate.lake.files import LakeFiles
from tidegate.segments.window import SegmentRef, last_that_fits, without_given_up
from tidegate.tables import EVERY_TABLE, SegmentFlag


@dataclass(frozen=True, slots=True)
class WantedSegments:
    """The segments of one source above after_ts with one of these tables (`database.table`). names:
    None for all tables.
    """

    after_ts: int
    names: Collection[str] | None = None

    def has(self, ref: SegmentRef) -> bool:
        return self.names is None or any(text == EVERY_TABLE or text in self.names for text in ref.tables)


def backlog(
    lake: LakeFiles, wanted: Mapping[str, WantedSegments], upto_ts: int, bytes_max: int, above: FilesAbove | None = None
) -> tuple[int, list[SegmentRef]]:
    """(end_ts, the refs to read up to there, in order of (source, seq)). end_ts: the end of a
    transaction, at or below upto_ts.

    The refs of all sources together have at most bytes_max, as in choose_cut. above: bronze's files
    as a caller that asks repeatedly knows them.
    """
    low_ts = min((want.after_ts for want in wanted.values()), default=0)
    files = (above or FilesAbove(lake)).of(wanted.keys(), low_ts)
    end_ts, refs, ends = upto_ts, list[tuple[SegmentRef, int]](), set[int]()
    for source, want in sorted(wanted.items()):
        paths = [file.path for file in files[source] if file.top_ts > want.after_ts]
        taken_bytes, last = 0, want.after_ts
        for run in _runs(lake, source, paths, want.after_ts):
            here = [ref for ref in run if want.has(ref)]
            refs += zip(here, repeat(want.after_ts))
            taken_bytes += sum(ref.payload_bytes for ref in here if ref.overlaps(want.after_ts, end_ts))
            last = max(last, run[-1].ends_ts)
            ends.add(last)
            if last >= end_ts or (taken_bytes > bytes_max and last > want.after_ts):
                end_ts = min(end_ts, last)
                if run[-1].whole or run[-1].prev_commit_ts >= end_ts:
                    break
        end_ts = min(end_ts, last)
    possible = filter(lambda ts: low_ts < ts < end_ts, ends)
    end_ts = last_that_fits(refs, [*possible, end_ts], bytes_max)
    taken = [ref for ref, after_ts in refs if ref.overlaps(after_ts, end_ts)]
    return end_ts, sorted(taken, key=lambda ref: (ref.source, ref.seq))


def _runs(lake: LakeFiles, source: str, paths: Sequence[str], low_ts: int) -> Iterator[list[SegmentRef]]:
    """Runs of segments joined by an open transaction, with what the source gave up marked."""
    run: list[SegmentRef] = []
    for path in paths:
        for ref in refs_in(lake, path, source, low_ts):
            if run and not run[-1].flags & SegmentFlag.OPEN_AT_END:
                yield without_given_up(run)
                run = []
            run.append(ref)
    if run:
        yield without_given_up(run)
