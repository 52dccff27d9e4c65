"""The segments to apply next, and the commit_ts to reach.

In:  SegmentRefs per source (bronze without its payloads), and low_ts: all is applied up to there.
Out: cut_ts, the window's upper end.

cut_ts is at most the smallest resolved_ts of the pipeline's sources, because only below it is every
transaction known. A backlog is taken in windows of at most bytes_max: the cut then falls on the
resolved_ts of a segment, that is on a transaction's end, and never inside a transaction. For a
source whose segments aren't whole it may fall on any timestamp that is resolved: one prewrite
without an answer keeps resolved_ts back, for hours perhaps, and the commits meanwhile aren't to be
one window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat

from tidegate.segments.frontier import cut_frontier
from tidegate.tables import SegmentFlag


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """A row of bronze/segments without its bytes, and where they lie.

    path: of the Parquet file, relative to the table; row_group and row: index of the group in the file
    and of the row in the group. given_up_ts: commit_ts of the transaction that the segment ends in, when no segment
    goes on with it: the source died, and another server sends it from its beginning, if it has it at all. 0: none.
    rolled_back_ts: the same when a later segment ends it with ROLLBACK; what isn't rows of it stands. whole: the reader
    of its kind promises that a transaction in here is committed in here, or in the segments that go on with it. Else a
    window needs besides the segments of its own range those before them that rows may still wait in for their commit
    (lake/bronze/lookback.py). prev_commit_ts: what was resolved before it, where it isn't whole.
    server_uuid: whose its place is; one of another server's log, or of this one's before a reset, means something else.
    """

    source: str
    seq: int
    file: str
    start_pos: int
    end_pos: int
    min_commit_ts: int
    max_commit_ts: int
    resolved_ts: int
    tables: tuple[str, ...]
    flags: SegmentFlag
    path: str
    row_group: int
    row: int
    given_up_ts: int = 0
    rolled_back_ts: int = 0
    whole: bool = True
    prev_commit_ts: int = 0
    server_uuid: str = ""

    @property
    def payload_bytes(self) -> int:
        return self.end_pos - self.start_pos

    def overlaps(self, after_ts: int, upto_ts: int) -> bool:
        """Whether a transaction in here may have a commit_ts in (after_ts, upto_ts]. A segment that isn't whole begins
        with older rows, and commits nothing at or below the resolved_ts before it.
        """
        if not self.whole and self.prev_commit_ts >= upto_ts:
            return False
        last = min(self.max_commit_ts, self.upto(upto_ts))
        return self.payload_bytes > 0 and last > after_ts and self.min_commit_ts <= last

    def first_ts(self, after_ts: int) -> int | None:
        """The smallest upto_ts by which it overlaps (after_ts, upto_ts]; None when there is none."""
        first = self.min_commit_ts if self.whole else max(self.min_commit_ts, self.prev_commit_ts + 1)
        return first if self.overlaps(after_ts, max(first, after_ts + 1)) else None

    @property
    def ends_ts(self) -> int:
        """The possible end of a window with it, if that is resolved."""
        return self.resolved_ts if self.whole else self.max_commit_ts

    def upto(self, upto_ts: int) -> int:
        """The end of a window for this segment: before its given-up transaction, always its last."""
        return min(upto_ts, self.given_up_ts - 1) if self.given_up_ts else upto_ts


def choose_cut(
    refs: Mapping[str, Sequence[SegmentRef]], sources: Collection[str], low_ts: int, bytes_max: int
) -> int | None:
    """The next cut_ts, or None when nothing above low_ts is resolved yet (or a source has sent nothing).

    (low_ts, cut_ts] has at most bytes_max of payload, unless the first transaction's end is beyond that already. A
    segment that ends after the cut is read again by the next window. With many sources such segments may fill
    bytes_max, so a window may always have twice of them: at least half of what it reads is done with.
    """
    frontier = resolved_everywhere(refs, sources)
    if frontier <= low_ts:
        return None
    every = [ref for source in sources for ref in refs.get(source, ())]
    ends = {min(ref.ends_ts, frontier) for ref in every if ref.ends_ts > low_ts} | {frontier}
    return last_that_fits(zip(every, repeat(low_ts)), ends, bytes_max)


def last_that_fits(refs: Iterable[tuple[SegmentRef, int]], ends: Collection[int], bytes_max: int) -> int:
    """The largest of the possible ends that choose_cut may give, for refs with the end of what each has after it.

    ends: one at least, each of them above that.
    """
    firsts = ((ref.first_ts(after_ts), ref) for ref, after_ts in refs)
    begins = sorted((first, ref.ends_ts, ref.payload_bytes) for first, ref in firsts if first is not None)
    in_order = sorted(ends)
    again = sum(size for first, end_ts, size in begins if first <= in_order[0] < end_ts)
    bytes_max = max(bytes_max, 2 * again)
    taken = at = 0
    for last, end_ts in enumerate(in_order):
        while at < len(begins) and begins[at][0] <= end_ts:
            taken += begins[at][2]
            at += 1
        if taken > bytes_max:
            return in_order[max(last - 1, 0)]
    return in_order[-1]


def resolved_everywhere(refs: Mapping[str, Sequence[SegmentRef]], sources: Collection[str]) -> int:
    """The smallest resolved_ts of the sources; 0 while one has sent nothing."""
    resolved = {source: max(ref.resolved_ts for ref in refs[source]) for source in sources if refs.get(source)}
    return cut_frontier(resolved, sources)


def in_window(refs: Iterable[SegmentRef], after_ts: int, upto_ts: int) -> list[SegmentRef]:
    """The segments that hold a transaction of (after_ts, upto_ts], in order of (source, seq)."""
    return sorted((ref for ref in refs if ref.overlaps(after_ts, upto_ts)), key=lambda ref: (ref.source, ref.seq))


def reaching_back(refs: Sequence[SegmentRef], low_ts: int) -> tuple[int, int]:
    """(commit_ts, seq): rows that wait for a commit above low_ts are in segments before this seq with a name of this
    or a later commit_ts (lake/bronze/lookback.py). refs: of one source, in order of seq, one at least.
    """
    first = next((ref for ref in refs if ref.max_commit_ts > low_ts), None)
    return (refs[-1].resolved_ts, refs[-1].seq + 1) if first is None else (first.prev_commit_ts, first.seq)


def without_given_up(refs: Sequence[SegmentRef]) -> list[SegmentRef]:
    """Refs of one source in order of seq, with a mark on those ending in a transaction that the next doesn't continue,
    or that a later one rolls back.

    A ref may be missing where all of it is applied. This isn't so if it continues an unapplied transaction: after a
    missing ref begins another one.
    """
    marked = list(refs)
    for at, (ref, after) in enumerate(pairwise(refs)):
        goes_on = bool(after.flags & SegmentFlag.OPEN_AT_START) and after.seq == ref.seq + 1
        if not ref.flags & SegmentFlag.OPEN_AT_END or (goes_on and not after.flags & SegmentFlag.ROLLED_BACK):
            continue
        began = ref.max_commit_ts
        for back in range(at, -1, -1):
            here = refs[back]
            marked[back] = replace(here, rolled_back_ts=began) if goes_on else replace(here, given_up_ts=began)
            if not here.flags & SegmentFlag.OPEN_AT_START or here.min_commit_ts < began:
                break
    return marked


def split_evenly(refs: Sequence[SegmentRef], count: int) -> list[list[SegmentRef]]:
    """At most `count` runs of neighbours with about equal bytes, none of them empty.

    Neighbours, because changes to one key come in flocks: what one worker has netted, no other has to throw away.
    """
    total = sum(ref.payload_bytes for ref in refs)
    runs: list[list[SegmentRef]] = []
    taken = 0
    for ref in refs:
        # A segment belongs where its middle lies: it may fill more than one run, but never makes an empty one.
        middle = taken + ref.payload_bytes / 2
        if not runs or (len(runs) < count and middle * count >= len(runs) * total):
            runs.append([])
        runs[-1].append(ref)
        taken += ref.payload_bytes
    return runs
