"""Transactions whose rows and whose commit come apart, paired over all Pumps of a cluster: what a window commits.

In:  the window's segments of Pumps, and those below it in which rows may wait for a commit in the window.
Out: Pairs per cluster: where the rows lie that it commits; its DDL in order of commit_ts.

A function of bronze alone: nothing is remembered between windows but summaries of segments, so a window can be tried
again, or be one of few tables, and says the same. What comes twice (a prewrite on two Pumps, an answer that was sent
once more) has one start_ts and one commit_ts: it counts once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate.errors import StreamCorrupt
from tidegate.lake.bronze.index import read_segments
from tidegate.lake.bronze.lookback import lookback, naming
from tidegate.limits import TIDB_KEPT_BYTES_MAX
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef
from tidegate.tidb.summary import DdlBinlog, Summary, summary_of

Place = tuple[str, int]
_FOREVER: Final = (1 << 63) - 1


@dataclass(slots=True)
class Summaries:
    """Of segments that windows have looked at, the newest ones. held_bytes: what they take, roughly."""

    kept: OrderedDict[Place, Summary] = field(default_factory=OrderedDict)
    held_bytes: int = 0

    def of(self, app: Application, refs: list[SegmentRef]) -> Iterator[tuple[SegmentRef, Summary]]:
        """In order of the refs. Raises StreamCorrupt, UnknownEvent: what a segment says of others can't be guessed."""
        unread = [ref for ref in refs if (ref.source, ref.seq) not in self.kept]
        fresh = _summaries(app, unread)
        for ref in refs:
            place = (ref.source, ref.seq)
            found = self.kept.get(place)
            if found is None:
                _, found = next(fresh)
                self.kept[place] = found
                self.held_bytes += found.held_bytes
            self.kept.move_to_end(place)  # the last ones are those that the next window looks at
            yield ref, found
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
    """Of one cluster. rows: per segment start_ts -> commit_ts. touched: per segment ids of tables -> commit_ts of their
    rows. ddl: in order. tables: what was there at a timestamp. lost: start_ts -> commit_ts of what has no rows. late:
    start_ts -> commit_ts of what was committed at or below the cut, and said only when the cut had passed it.
    """

    owner: str
    refs: dict[Place, SegmentRef] = field(default_factory=dict)
    rows: dict[Place, dict[int, int]] = field(default_factory=dict)
    touched: dict[Place, dict[int, tuple[int, int]]] = field(default_factory=dict)
    ddl: list[CommittedDdl] = field(default_factory=list)
    jobs: dict[int, bytes] = field(default_factory=dict)
    tables: list[tuple[int, bytes, SegmentRef]] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)


def pairs_of(app: Application, window: Window) -> list[Pairs]:
    """Made once per try of a window. Raises StreamCorrupt, UnknownEvent."""
    if window.pairs is None:
        owners = dict.fromkeys(app.pipeline.owner(ref.source) for ref in window.refs if not ref.whole)
        found = list[Pairs]()
        for owner in owners:
            pairs, told = _paired(app, window, owner, window.low_ts)
            pairs.late = _late(app, window, owner, told)
            found.append(pairs)
        window.pairs = found
    return window.pairs


def pairs_after(app: Application, window: Window, owner: str, after_ts: int) -> Pairs:
    """What was committed in (after_ts, the window's end], for tables that begin below the window. Raises StreamCorrupt,
    UnknownEvent.
    """
    return _paired(app, window, owner, after_ts)[0]


def _paired(
    app: Application, window: Window, owner: str, low_ts: int
) -> tuple[Pairs, list[tuple[SegmentRef, Summary]]]:
    """Of (low_ts, the window's end]; and what was read for it."""
    found = Pairs(owner)
    committed: dict[int, int] = {}
    told: list[tuple[SegmentRef, Summary]] = []
    summaries = app.memory(Summaries)
    for source in app.pipeline.pumps(owner):
        told += summaries.of(app, _refs(app, window, source, low_ts))
    for ref, summary in told:
        found.jobs.update(summary.jobs)
        for start_ts, commit_ts in summary.answers.items():
            if low_ts < commit_ts <= window.cut_ts:
                _agree(committed, start_ts, commit_ts, ref)
        found.tables += [(tso, text, ref) for tso, text in summary.tables.items() if low_ts < tso <= window.cut_ts]
    waiting = dict(committed)
    for ref, summary in told:
        for start_ts, ids in summary.rows.items():
            if start_ts in waiting:
                commit_ts = waiting.pop(start_ts)
                place = (ref.source, ref.seq)
                found.refs[place] = ref
                found.rows.setdefault(place, {})[start_ts] = commit_ts
                touched = found.touched.setdefault(place, {})
                for table_id in ids:
                    first_ts, last_ts = touched.get(table_id, (commit_ts, commit_ts))
                    touched[table_id] = (min(first_ts, commit_ts), max(last_ts, commit_ts))
        for start_ts, binlog in summary.ddl.items():
            if start_ts in waiting:
                found.ddl.append(CommittedDdl(waiting.pop(start_ts), binlog))
    found.lost = waiting
    found.ddl.sort(key=lambda one: one.commit_ts)
    found.tables.sort(key=lambda one: one[0])
    return found, told


def _late(app: Application, window: Window, owner: str, told: list[tuple[SegmentRef, Summary]]) -> dict[int, int]:
    """start_ts -> commit_ts of Commits that no window had, though they are at or below this one's low end.

    A Pump promises none at or below what it has resolved, so one that is there says what was said before; a Rollback
    that was said before, or nothing, makes it a contradiction. What was said stands behind the commit_ts in bronze.
    """
    late = {
        start_ts: commit_ts
        for ref, summary in told
        for start_ts, commit_ts in summary.answers.items()
        if 0 < commit_ts <= min(ref.prev_commit_ts, window.low_ts)
    }
    _drop_said(late, told)
    for source in app.pipeline.pumps(owner):
        if late:
            upto_seq = max((ref.seq for ref, _ in told if ref.source == source), default=_FOREVER)
            earlier = naming(app.lake, source, min(late.values()), upto_seq)
            _drop_said(late, app.memory(Summaries).of(app, earlier))
    return late


def _drop_said(late: dict[int, int], told: Iterable[tuple[SegmentRef, Summary]]) -> None:
    """Those that were said in time."""
    for ref, summary in told:
        for start_ts in late.keys() & summary.answers.keys():
            if ref.prev_commit_ts < late[start_ts] == summary.answers[start_ts]:
                del late[start_ts]


def _refs(app: Application, window: Window, source: str, low_ts: int) -> list[SegmentRef]:
    """Those of (low_ts, the window's end], behind those in which rows may wait for them; in order of seq."""
    here = {ref.seq: ref for ref in window.refs if ref.source == source}
    if low_ts < window.low_ts:
        below = naming(app.lake, source, low_ts + 1, max(here, default=_FOREVER))
        here |= {ref.seq: ref for ref in below if ref.prev_commit_ts < window.cut_ts}
    if not here:
        return []
    known = {ref.seq: ref for ref in app.index.refs.get(source, ())} | here
    earlier = lookback(app.lake, [known[seq] for seq in sorted(known)], source, low_ts)
    every = {ref.seq: ref for ref in earlier} | here
    return [every[seq] for seq in sorted(every)]


def _agree(committed: dict[int, int], start_ts: int, commit_ts: int, ref: SegmentRef) -> None:
    """Raises StreamCorrupt where two answers of one transaction differ."""
    if committed.setdefault(start_ts, commit_ts) != commit_ts:
        raise StreamCorrupt(
            f"transaction {start_ts} was committed at {committed[start_ts]}, says one answer, and at {commit_ts},"
            " says another",
            where=f"{ref.source} at {ref.file}:{ref.start_pos}",
            remedy="ask TiDB which is true (HTTP /mvcc/hex), and report it",
        )
