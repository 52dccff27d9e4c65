"""Prewrites in a window's segments and in control/prewrites: their beginnings, answers and places.

In:  an Application, a Window whose refs are complete.
Out: prewrites committed in a window; rows of control/prewrites for its findings.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from spark_jobs.window.application import Application
from spark_jobs.window.standing.standings import note
from spark_jobs.window.window import PrewrittenSegment, Window
from tidegate.commit_ts import compose, physical_ms, time_text
from tidegate.failpoint import failpoint
from tidegate.lake.bronze import prewrites as recorded
from tidegate.lake.bronze.index import read_segments
from tidegate.segment_kinds import prewrites_of
from tidegate.segments.answers import Answers
from tidegate.segments.prewrites import Pending, Prewrite, PrewriteAnswer, Prewrites, within_segment
from tidegate.segments.window import SegmentRef
from tidegate.standing.causes import Cause
from tidegate.standing.events import Answered
from tidegate.tables import SegmentFlag, State
from tidegate.tables.prewrites_table import PREWRITES, PrewriteState

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    """The last read Delta version of control/prewrites while tables waited for it."""

    version: int = -1


_FLAGS = SegmentFlag.HAS_PREWRITE | SegmentFlag.HAS_ANSWER


def has_prewrites(ref: SegmentRef) -> bool:
    """Whether a segment may hold an XA PREPARE, or an answer. Segments never whole are paired by
    pairs.py.
    """
    return ref.whole and bool(ref.flags & _FLAGS)


def answered_in(app: Application, window: Window) -> list[Prewrite]:
    """Committed prewrites whose answer lies in the window, or above the beginning of one of its
    tables. New findings are recorded.

    Raises StreamCorrupt, UnknownEvent: without a segment's prewrites later commits aren't known.
    """
    lowest = min([window.low_ts, *(entry.after_ts for entry in window.tables.values())])
    by_source: dict[str, dict[int, SegmentRef]] = {}
    for ref in window.refs:
        by_source.setdefault(ref.source, {})[ref.seq] = ref
    answered: list[Prewrite] = []
    news: list[Prewrite] = []
    for source, neighbours in by_source.items():
        rest: list[Pending | PrewriteAnswer] = []
        for ref, segment in read_segments(app.lake, [ref for ref in neighbours.values() if has_prewrites(ref)]):
            logged = [_from_its_beginning(prewrite, ref, neighbours) for prewrite in prewrites_of(segment)]
            whole, left = within_segment(source, logged)
            upto_ts = ref.upto(window.cut_ts)
            answered += [prewrite for prewrite in whole if lowest < prewrite.answer_ts <= upto_ts]
            rest += [prewrite for prewrite in left if window.low_ts < _ts(prewrite) <= upto_ts]
        if rest and window.catches_up is None:
            news += app.histories.prewrites.setdefault(source, Prewrites(source)).take(rest)
    if window.main:
        for source in app.histories.prewrites.keys() - app.followed.behind.keys():
            news += _orphans(app, window, source)
    if news:
        recorded.record(app.control, news)
        failpoint("apply_after_prewrites")
    return answered + _answered_elsewhere(app, window, lowest)


def _from_its_beginning(
    entry: Pending | PrewriteAnswer, ref: SegmentRef, neighbours: dict[int, SegmentRef]
) -> Pending | PrewriteAnswer:
    """A prewrite that spans several segments, with the place of its beginning and the tables of all
    of them.
    """
    if not isinstance(entry, Pending):
        return entry
    if not (ref.flags & SegmentFlag.OPEN_AT_START and ref.min_commit_ts == entry.start_ts):
        return entry
    began_seq, named = ref.seq - 1, {*entry.tables}
    while (earlier := neighbours.get(began_seq)) is not None:  # all of them, where the window is the first to see it
        named.update(earlier.tables)
        if not (earlier.flags & SegmentFlag.OPEN_AT_START and earlier.min_commit_ts == entry.start_ts):
            break
        began_seq -= 1
    return replace(entry, began_seq=began_seq, tables=tuple(sorted(named)))


def _ts(entry: Pending | PrewriteAnswer) -> int:
    return entry.start_ts if isinstance(entry, Pending) else entry.commit_ts


def _orphans(app: Application, window: Window, source: str) -> list[Prewrite]:
    """The orphans among the prepared transactions, and their fate. Capture has asked the source
    which ones are still prepared.

    An orphan is older than xa.orphan_timeout_seconds by the log's own time, isn't prepared at the
    source any more, and has no answer up to where the log ended after the source had said so. A
    long time alone decides nothing.
    """
    if not any(prewrite.waits for prewrite in app.histories.prewrites[source]):
        return []
    reports = [ref for ref in app.index.refs.get(source, ()) if ref.flags & SegmentFlag.HAS_PREPARED]
    last = next((ref for ref in reversed(reports) if window.low_ts < ref.resolved_ts <= window.cut_ts), None)
    if last is None:
        return []
    names = set(json.loads(bytes(app.index.read(last).context)))
    timeout_ms = int(app.pipeline.xa.orphan_timeout_seconds * 1000)
    upto_ts = compose(max(physical_ms(last.resolved_ts) - timeout_ms, 0))
    known = app.histories.prewrites[source]
    still = [prewrite for prewrite in known if prewrite.waits and prewrite.start_ts <= upto_ts and prewrite.id in names]
    if still:
        oldest = min(still, key=lambda prewrite: prewrite.start_ts)
        since = f"{oldest.id} since {time_text(oldest.start_ts)}"
        what = f"{len(still)} XA branches of {source} are prepared for long, {since}"
        log.warning("%s; their rows wait for XA COMMIT or XA ROLLBACK", what)
    state, decider = recorded.by_policy(app.pipeline.xa.orphans)
    place = PrewriteAnswer("", False, last.resolved_ts, last.file, last.end_pos)
    decided = [known.decide(prewrite, state, place, decider) for prewrite in known.orphans(upto_ts, names)]
    for orphan in decided:
        what = (
            f"XA branch {orphan.id} of {source}, prepared at {time_text(orphan.start_ts)}, is an orphan: {orphan.state}"
        )
        log.warning("%s", what)
    return decided


def _answered_elsewhere(app: Application, window: Window, lowest: int) -> list[Prewrite]:
    """Prewrites that were prepared in another segment than their answer."""
    if window.catches_up is not None:
        below = recorded.answered_in(app.lake, lowest, window.cut_ts)
        return list(chain.from_iterable(below.values()))
    sources = [window.behind] if window.behind else app.histories.prewrites.keys() - app.followed.behind.keys()
    known = (app.histories.prewrites[source] for source in sources if source in app.histories.prewrites)
    answered = [prewrite for prewrites in known for prewrite in prewrites.answered_in(window.low_ts, window.cut_ts)]
    if lowest < window.low_ts:
        below = recorded.answered_in(app.lake, lowest, window.low_ts)
        answered += chain.from_iterable(below.values())
    return answered


def segments_of(
    app: Application, window: Window, committed: Iterable[Prewrite]
) -> tuple[list[PrewrittenSegment], list[Prewrite]]:
    """(the segments of committed prewrites, the prewrites with segments missing in bronze)."""
    wanted = list(committed)
    here = {(ref.source, ref.seq): ref for ref in window.refs}
    lacking: dict[str, set[int]] = {}
    for prewrite in wanted:
        for seq in range(prewrite.began_seq, prewrite.ended_seq + 1):
            if (prewrite.source, seq) not in here:
                lacking.setdefault(prewrite.source, set()).add(seq)
    here |= recorded.refs_of(app.lake, lacking)
    answers: dict[tuple[str, int], dict[int, int]] = {}
    lost = []
    for prewrite in wanted:
        places = [(prewrite.source, seq) for seq in range(prewrite.began_seq, prewrite.ended_seq + 1)]
        if not all(place in here for place in places):
            lost.append(prewrite)
            continue
        for place in places:
            answers.setdefault(place, {})[prewrite.start_ts] = prewrite.answer_ts
    return [PrewrittenSegment(here[place], Answers.of(answers[place])) for place in sorted(answers)], lost


def release_decided(app: Application) -> None:
    """Let tables go on whose parked prewrites are answered, by a person or by the log after all.

    Only the prewrites of the present hold count. A prewrite that is parked later in the log holds
    the table again when apply reaches it.
    """
    parked = {name: state for name, state in app.states.of(State.HELD) if state.cause is Cause.PARKED}
    if not parked:
        return
    seen, version = app.memory(_Seen), app.control.version(PREWRITES)
    if version != seen.version:  # before the read: the next window finds rows from in between
        app.histories.read_prewrites(app.positions)
        seen.version = version
    waiting = (
        prewrite
        for prewrites in app.histories.prewrites.values()
        for prewrite in prewrites
        if prewrite.state is PrewriteState.PARKED
    )
    waits = set[str]()
    for prewrite in waiting:
        for name in {app.names.logical_name(*of) for of in app.names.kept(prewrite.source, prewrite.tables)}:
            if name in parked and ((place := parked[name].place) is None or prewrite.answer_ts <= place.at_ts):
                waits.add(name)
    for name in sorted(parked.keys() - waits):
        note(app, name, Answered())
    app.record_states({})
