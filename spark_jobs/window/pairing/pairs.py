"""A window's transactions with rows apart from their commit, paired over all Pumps of a cluster.

In:  the window's segments of Pumps, and those below it with rows perhaps waiting for a commit in
     the window.
Out: Pairs per cluster: the places of its committed rows; its DDL in order of commit_ts.

A function of bronze alone: nothing is remembered between windows but summaries of segments, so a
window can be tried again, or be one of few tables, and says the same. A row coming twice (a
prewrite on two Pumps, an answer sent once more) has one start_ts and one commit_ts: it counts once.

It holds sixteen bytes for each committed transaction of the window, and the summaries of the
window's own segments, bounded by apply.window_bytes. Below the window it reads segments from the
newest on, a row group of a file at a time, and stops at the last wanted prewrite. Usually that one
is near, however many others wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate.errors import StreamCorrupt
from tidegate.lake.bronze.index import read_segments
from tidegate.lake.bronze.lookback import lookback, naming
from tidegate.limits import TIDB_KEPT_BYTES_MAX
from tidegate.remedy import REPORT
from tidegate.segments.answers import Answers
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef
from tidegate.tidb.rows.summary import DdlBinlog, Summary, each_once, summary_of

Place = tuple[str, int]
_FOREVER: Final = (1 << 63) - 1


@dataclass(slots=True)
class Summaries:
    """The newest segments seen by windows. held_bytes: their size, roughly."""

    kept: OrderedDict[Place, Summary] = field(default_factory=OrderedDict)
    held_bytes: int = 0

    def of(self, app: Application, refs: Sequence[SegmentRef]) -> Iterator[tuple[SegmentRef, Summary]]:
        """In order of the refs. Raises StreamCorrupt, UnknownEvent: a segment's answers to other
        segments' rows can't be guessed.
        """
        unread = [ref for ref in refs if (ref.source, ref.seq) not in self.kept]
        fresh = _summaries(app, unread)
        for ref in refs:
            place = (ref.source, ref.seq)
            summary = self.kept.get(place)
            if summary is None:
                _, summary = next(fresh)
                self.kept[place] = summary
                self.held_bytes += summary.held_bytes
            self.kept.move_to_end(place)  # the last ones are those that the next window looks at
            yield ref, summary
        # Not before the end of the loop: `unread` counts on what was kept at its beginning.
        while self.held_bytes > TIDB_KEPT_BYTES_MAX:
            _, gone = self.kept.popitem(last=False)
            self.held_bytes -= gone.held_bytes


def _summaries(app: Application, refs: list[SegmentRef]) -> Iterator[tuple[SegmentRef, Summary]]:
    for ref, segment in read_segments(app.lake, refs):
        yield ref, _summary(segment)


def _summary(segment: Segment) -> Summary:
    try:
        return summary_of(segment)
    except StreamCorrupt as error:
        error.where = error.where or segment.where
        raise


@dataclass(frozen=True, slots=True)
class CommittedDdl:
    commit_ts: int
    binlog: DdlBinlog


@dataclass(slots=True)
class Pairs:
    """One cluster's share. rows: per segment its committed prewrites. touched: per segment ids of
    tables -> commit_ts of their rows. ddl: in order. tables: those there at a timestamp. lost:
    start_ts -> commit_ts of commits without rows. late: start_ts -> commit_ts of commits at or
    below the cut, told only when the cut had passed them.
    """

    owner: str
    refs: dict[Place, SegmentRef] = field(default_factory=dict)
    rows: dict[Place, Answers] = field(default_factory=dict)
    touched: dict[Place, dict[int, tuple[int, int]]] = field(default_factory=dict)
    ddl: list[CommittedDdl] = field(default_factory=list)
    jobs: dict[int, bytes] = field(default_factory=dict)
    tables: list[tuple[int, bytes, SegmentRef]] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Segments:
    """here: of each Pump those with possible answers of a range. earlier: below them, where rows
    may wait.
    """

    here: list[SegmentRef] = field(default_factory=list)
    earlier: list[SegmentRef] = field(default_factory=list)


def pairs_of(app: Application, window: Window) -> list[Pairs]:
    """The pairs of each cluster of Pumps: there a prewrite and its answer may lie in different
    segments. Raises StreamCorrupt, UnknownEvent.
    """
    clusters = list[Pairs]()
    for owner in dict.fromkeys(app.pipeline.owner(ref.source) for ref in window.refs if not ref.whole):
        segments = _segments(app, window, owner, window.low_ts)
        pairs = _paired(app, window, owner, segments, window.low_ts)
        pairs.late = _late(app, window, owner, segments)
        clusters.append(pairs)
    return clusters


def pairs_after(app: Application, window: Window, owner: str, after_ts: int) -> Pairs:
    """Pairs of (after_ts, the window's end], for tables beginning below the window. Raises
    StreamCorrupt, UnknownEvent.
    """
    return _paired(app, window, owner, _segments(app, window, owner, after_ts), after_ts)


def _paired(app: Application, window: Window, owner: str, segments: _Segments, low_ts: int) -> Pairs:
    """The pairs of (low_ts, the window's end]."""
    pairs, summaries = Pairs(owner), app.memory(Summaries)
    summarized = list(summaries.of(app, segments.here))
    for ref, summary in summarized:
        pairs.jobs.update(summary.jobs)
        pairs.tables += [(tso, text, ref) for tso, text in summary.tables.items() if low_ts < tso <= window.cut_ts]
    wanted = _Wanted(pairs, _committed(summarized, low_ts, window.cut_ts))
    for ref, summary in summarized:
        wanted.take(ref, summary)
    # From the newest on: in steady work a prewrite is just below its commit, and older segments needn't be read.
    for refs in _newest_first(segments.earlier):
        if not wanted.any:
            break
        for ref, summary in summaries.of(app, refs):
            wanted.take(ref, summary)
    pairs.lost = dict(wanted.left())
    pairs.ddl.sort(key=lambda ddl: ddl.commit_ts)
    pairs.tables.sort(key=lambda listed: listed[0])
    return pairs


def _committed(summarized: Sequence[tuple[SegmentRef, Summary]], low_ts: int, cut_ts: int) -> Answers:
    """The commits of (low_ts, cut_ts]. Raises StreamCorrupt where two answers of one transaction differ."""
    started, stamps = [], []
    for _, summary in summarized:
        inside = (summary.stamps > low_ts) & (summary.stamps <= cut_ts)
        started.append(summary.answered[inside])
        stamps.append(summary.stamps[inside])
    empty = np.empty(0, np.int64)
    answers = Answers(*each_once(np.concatenate([empty, *started]), np.concatenate([empty, *stamps])))
    # Repeated answers are gone (each_once). So a start_ts that occurs twice has two different commit_ts.
    twice = np.flatnonzero(answers.started[1:] == answers.started[:-1])
    if len(twice):
        start_ts, (first, second) = int(answers.started[twice[0]]), answers.stamps[twice[0] : twice[0] + 2].tolist()
        ref = next(ref for ref, summary in summarized if bool(np.any(summary.answered == start_ts)))
        raise StreamCorrupt(
            f"transaction {start_ts} was committed at {first}, says one answer, and at {second}, says another",
            where=f"{ref.source} at {ref.file}:{ref.start_pos}",
            remedy=f"ask TiDB which is true (HTTP /mvcc/hex), and {REPORT}",
        )
    return answers


class _Wanted:
    """Commits whose prewrites are looked for; the findings go to a Pairs."""

    def __init__(self, pairs: Pairs, committed: Answers) -> None:
        self._pairs, self._committed = pairs, committed
        self._waits = np.ones(len(committed), np.bool_)
        self._count = len(committed)

    @property
    def any(self) -> bool:
        return self._count > 0

    def take(self, ref: SegmentRef, summary: Summary) -> None:
        """The first copy of a prewrite counts."""
        own_answers = self._taken(summary.started)
        if len(own_answers):
            place = (ref.source, ref.seq)
            self._pairs.refs[place] = ref
            self._pairs.rows[place] = own_answers
            self._pairs.touched[place] = _touched(summary, own_answers)
        if summary.ddl:
            ddl = self._taken(np.array(sorted(summary.ddl), np.int64))
            self._pairs.ddl += [CommittedDdl(commit_ts, summary.ddl[start_ts]) for start_ts, commit_ts in ddl.items()]

    def _taken(self, started: npt.NDArray[np.int64]) -> Answers:
        wanted = started[self._committed.among(started)]
        at = np.searchsorted(self._committed.started, wanted)
        at = at[self._waits[at]]  # a second copy of a prewrite finds its commit taken
        self._waits[at] = False
        self._count -= len(at)
        return Answers(self._committed.started[at], self._committed.stamps[at])

    def left(self) -> Iterator[tuple[int, int]]:
        """Answers without a prewrite."""
        committed = self._committed
        return zip(committed.started[self._waits].tolist(), committed.stamps[self._waits].tolist(), strict=True)


def _touched(summary: Summary, answers: Answers) -> dict[int, tuple[int, int]]:
    inside = answers.among(summary.of_table)
    ids, stamps = summary.table_ids[inside], answers.stamps_of(summary.of_table[inside])
    spans = {}
    for table_id in np.unique(ids).tolist():
        of_table = stamps[ids == table_id]
        spans[table_id] = int(of_table.min()), int(of_table.max())
    return spans


def _late(app: Application, window: Window, owner: str, segments: _Segments) -> dict[int, int]:
    """start_ts -> commit_ts of Commits in no window, though at or below this one's low end.

    A Pump promises no commit at or below its resolved timestamp. Therefore such a commit must repeat an
    earlier answer. If there was an earlier Rollback, or no answer at all, it is a contradiction. An
    answer lies after its commit_ts in bronze: its segment has timestamps at or above the low end,
    like all segments captured after the cut.
    """
    summaries, late = app.memory(Summaries), dict[int, int]()
    refs = [*segments.here, *(ref for ref in segments.earlier if ref.max_commit_ts >= window.low_ts)]
    for ref, summary in summaries.of(app, refs):
        behind = (summary.stamps > 0) & (summary.stamps <= min(ref.prev_commit_ts, window.low_ts))
        late |= dict(zip(summary.answered[behind].tolist(), summary.stamps[behind].tolist(), strict=True))
    if late:
        _drop_said(late, summaries.of(app, refs))
    for source in app.pipeline.pumps(owner):
        if late:
            upto_seq = max((ref.seq for ref in refs if ref.source == source), default=_FOREVER)
            _drop_said(late, summaries.of(app, naming(app.lake, source, min(late.values()), upto_seq)))
    return late


def _drop_said(late: dict[int, int], summarized: Iterable[tuple[SegmentRef, Summary]]) -> None:
    """Drop the commits that an earlier answer told in time."""
    for ref, summary in summarized:
        in_time = summary.stamps > ref.prev_commit_ts
        for start_ts, commit_ts in zip(
            summary.answered[in_time].tolist(), summary.stamps[in_time].tolist(), strict=True
        ):
            if late.get(start_ts) == commit_ts:
                del late[start_ts]


def _segments(app: Application, window: Window, owner: str, low_ts: int) -> _Segments:
    """For (low_ts, the window's end]; of each Pump in order of seq."""
    segments = _Segments()
    for source in app.pipeline.pumps(owner):
        here = {ref.seq: ref for ref in window.refs if ref.source == source}
        if low_ts < window.low_ts:
            below = naming(app.lake, source, low_ts + 1, max(here, default=_FOREVER))
            here |= {ref.seq: ref for ref in below if ref.prev_commit_ts < window.cut_ts}
        if here:
            known = {ref.seq: ref for ref in app.index.refs.get(source, ())} | here
            earlier = lookback(app.lake, [known[seq] for seq in sorted(known)], source, low_ts)
            segments.here += [here[seq] for seq in sorted(here)]
            segments.earlier += [ref for ref in earlier if ref.seq not in here]
    return segments


def _newest_first(refs: Sequence[SegmentRef]) -> Iterator[list[SegmentRef]]:
    """The share of one row group of bronze, over all Pumps by the latest timestamp in it."""
    groups = [list(group) for _, group in groupby(refs, key=lambda ref: (ref.source, ref.path, ref.row_group))]
    return iter(sorted(groups, key=lambda group: group[-1].max_commit_ts, reverse=True))
