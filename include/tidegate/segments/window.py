"""Which segments to apply next, and up to which commit_ts.

In:  SegmentRefs per source (bronze without its payloads); low_ts, up to which everything is
     applied.
Out: cut_ts, the window's upper end.

cut_ts is at most the smallest resolved_ts of the pipeline's sources: only below it every
transaction is known. A backlog is taken in windows of at most bytes_max. The cut is then the
resolved_ts of a segment, which is at a transaction's end, never inside a transaction. If a source's
rows and commits come apart, the cut may be any resolved timestamp. One prewrite without an answer
keeps that source's resolved_ts back, perhaps for hours, and the commits meanwhile must not become
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

    path: of the Parquet file, relative to the table. row_group, row: index of the group in the
    file, and of the row in the group. given_up_ts: commit_ts of the transaction at the segment's
    end, if no segment continues it; 0: none. Its source died, and another server sends it from its
    beginning, if it has it at all. rolled_back_ts: the same, if a later segment ends it with
    ROLLBACK: only its rows don't count.

    whole: the reader of this kind promises a transaction in here is also committed in here, or in
    the segments that continue it. If not, a window also needs the earlier segments in which rows
    may wait for their commit (lake/bronze/lookback.py). prev_commit_ts: if not whole, what was
    resolved before it. server_uuid: of its place. A place in another server's log, or in this log
    before a reset, can't be compared.
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
        """Whether a transaction in here may have a commit_ts in (after_ts, upto_ts]. A segment that
        isn't whole may begin with older rows, but it commits nothing at or below the resolved_ts
        before it.
        """
        if not self.whole and self.prev_commit_ts >= upto_ts:
            return False
        last = min(self.max_commit_ts, self.upto(upto_ts))
        return self.payload_bytes > 0 and last > after_ts and self.min_commit_ts <= last

    def first_ts(self, after_ts: int) -> int | None:
        """The smallest upto_ts for which it overlaps (after_ts, upto_ts]; None if there is none."""
        first = self.min_commit_ts if self.whole else max(self.min_commit_ts, self.prev_commit_ts + 1)
        return first if self.overlaps(after_ts, max(first, after_ts + 1)) else None

    @property
    def ends_ts(self) -> int:
        """Where a window with this segment may end, once that is resolved."""
        return self.resolved_ts if self.whole else self.max_commit_ts

    def upto(self, upto_ts: int) -> int:
        """The end of a window for this segment. A given-up transaction, always its last one, is
        left out.
        """
        return min(upto_ts, self.given_up_ts - 1) if self.given_up_ts else upto_ts


def choose_cut(
    refs: Mapping[str, Sequence[SegmentRef]], sources: Collection[str], low_ts: int, bytes_max: int
) -> int | None:
    """The next cut_ts; None if nothing above low_ts is resolved yet, or if a source has sent
    nothing.

    (low_ts, cut_ts] has at most bytes_max of payload, unless already the first transaction ends
    beyond that. A segment that ends after the cut is read again by the next window. With many
    sources such segments alone may fill bytes_max. Therefore a window may always have twice as much as
    they have: at least half of what it reads is then done.
    """
    frontier = resolved_everywhere(refs, sources)
    if frontier <= low_ts:
        return None
    every = [ref for source in sources for ref in refs.get(source, ())]
    ends = {min(ref.ends_ts, frontier) for ref in every if ref.ends_ts > low_ts} | {frontier}
    return last_that_fits(zip(every, repeat(low_ts)), ends, bytes_max)


def last_that_fits(refs: Iterable[tuple[SegmentRef, int]], ends: Collection[int], bytes_max: int) -> int:
    """The largest possible end that keeps to choose_cut's bound. refs: each with the commit_ts up
    to which it is done.

    ends: at least one, and each above all of these.
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
    """The segments that may hold a transaction of (after_ts, upto_ts], in order of (source, seq)."""
    return sorted((ref for ref in refs if ref.overlaps(after_ts, upto_ts)), key=lambda ref: (ref.source, ref.seq))


def reaching_back(refs: Sequence[SegmentRef], low_ts: int) -> tuple[int, int]:
    """(commit_ts, seq): rows that wait for a commit above low_ts are in segments before this seq
    that name this commit_ts or a later one (lake/bronze/lookback.py). refs: of one source, in
    order of seq, at least one.
    """
    first = next((ref for ref in refs if ref.max_commit_ts > low_ts), None)
    return (refs[-1].resolved_ts, refs[-1].seq + 1) if first is None else (first.prev_commit_ts, first.seq)


def without_given_up(refs: Sequence[SegmentRef]) -> list[SegmentRef]:
    """Refs of one source in order of seq. It marks those that end in a transaction the next one
    doesn't continue, or that a later one rolls back.

    A ref may be missing if all of it is applied. A missing ref never continues an unapplied
    transaction, so another transaction begins after it.
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

    Neighbours, since changes of one key often come close together: one worker then nets them, and
    others needn't.
    """
    total = sum(ref.payload_bytes for ref in refs)
    runs: list[list[SegmentRef]] = []
    taken = 0
    for ref in refs:
        # The middle of a segment decides its run: it may fill more than one run, but never leaves an empty one.
        middle = taken + ref.payload_bytes / 2
        if not runs or (len(runs) < count and middle * count >= len(runs) * total):
            runs.append([])
        runs[-1].append(ref)
        taken += ref.payload_bytes
    return runs
