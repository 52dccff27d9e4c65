"""What a window's segments and control/prewrites have of prewrites: which begin, which are answered, where they lie.

In:  an Application, a Window whose refs are complete.
Out: prewrites that are committed in a window; rows of control/prewrites for what it found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from spark_jobs.window.application import Application
from spark_jobs.window.window import PrewrittenSegment, Window
from tidegate.failpoint import failpoint
from tidegate.lake import prewrites as recorded
from tidegate.lake.bronze_index import read_segments
from tidegate.segment_kinds import prewrites_of
from tidegate.segments.prewrites import Answer, Pending, Prewrite, Prewrites, within_segment
from tidegate.segments.window import SegmentRef
from tidegate.tables import SegmentFlag

_FLAGS = SegmentFlag.HAS_PREWRITE | SegmentFlag.HAS_ANSWER


def has_prewrites(ref: SegmentRef) -> bool:
    """Whether a segment may hold an XA PREPARE, or an answer."""
    return bool(ref.flags & _FLAGS)


def answered_in(app: Application, window: Window) -> list[Prewrite]:
    """Those whose answer is in the window, or above where one of its tables begins; what is new is recorded.

    Raises StreamCorrupt, UnknownEvent: without what a segment says of prewrites nobody knows what is committed later.
    """
    lowest = min([window.low_ts, *(entry.after_ts for entry in window.tables.values())])
    by_source: dict[str, dict[int, SegmentRef]] = {}
    for ref in window.refs:
        by_source.setdefault(ref.source, {})[ref.seq] = ref
    answered: list[Prewrite] = []
    news: list[Prewrite] = []
    for source, neighbours in by_source.items():
        rest: list[Pending | Answer] = []
        for ref, segment in read_segments(app.lake, [ref for ref in neighbours.values() if has_prewrites(ref)]):
            told = [_from_its_beginning(one, ref, neighbours) for one in prewrites_of(segment)]
            whole, left = within_segment(source, told)
            upto_ts = ref.upto(window.cut_ts)
            answered += [one for one in whole if lowest < one.answer_ts <= upto_ts]
            rest += [one for one in left if window.low_ts < _ts(one) <= upto_ts]
        if rest and window.catches_up is None:
            news += app.prewrites.setdefault(source, Prewrites(source)).take(rest)
    if news:
        recorded.record(app.control, news)
        failpoint("apply_after_prewrites")
    return answered + _answered_elsewhere(app, window, lowest)


def _from_its_beginning(one: Pending | Answer, ref: SegmentRef, neighbours: dict[int, SegmentRef]) -> Pending | Answer:
    """A prewrite that began in earlier segments begins there, and wrote to what they name."""
    if not isinstance(one, Pending):
        return one
    if not (ref.flags & SegmentFlag.OPEN_AT_START and ref.min_commit_ts == one.start_ts):
        return one
    began_seq, named = ref.seq - 1, {*one.tables}
    while (earlier := neighbours.get(began_seq)) is not None:  # all of them, where the window is the first to see it
        named.update(earlier.tables)
        if not (earlier.flags & SegmentFlag.OPEN_AT_START and earlier.min_commit_ts == one.start_ts):
            break
        began_seq -= 1
    return replace(one, began_seq=began_seq, tables=tuple(sorted(named)))


def _ts(one: Pending | Answer) -> int:
    return one.start_ts if isinstance(one, Pending) else one.commit_ts


def _answered_elsewhere(app: Application, window: Window, lowest: int) -> list[Prewrite]:
    """Those that were prepared in another segment than the one that answers them."""
    if window.catches_up is not None:
        below = recorded.answered_in(app.lake, lowest, window.cut_ts)
        return list(chain.from_iterable(below.values()))
    sources = [window.behind] if window.behind else app.prewrites.keys() - app.followed.behind.keys()
    known = chain.from_iterable(app.prewrites[source] for source in sources if source in app.prewrites)
    mine = [one for one in known if window.low_ts < one.answer_ts <= window.cut_ts]
    if lowest < window.low_ts:
        below = recorded.answered_in(app.lake, lowest, window.low_ts)
        mine += chain.from_iterable(below.values())
    return mine


def segments_of(
    app: Application, window: Window, committed: Iterable[Prewrite]
) -> tuple[list[PrewrittenSegment], list[Prewrite]]:
    """(the segments that committed prewrites lie in, those of which bronze lacks some)."""
    wanted = list(committed)
    here = {(ref.source, ref.seq): ref for ref in window.refs}
    lacking: dict[str, set[int]] = {}
    for one in wanted:
        for seq in range(one.began_seq, one.ended_seq + 1):
            if (one.source, seq) not in here:
                lacking.setdefault(one.source, set()).add(seq)
    here |= recorded.refs_of(app.lake, lacking)
    answers: dict[tuple[str, int], dict[int, int]] = {}
    lost = []
    for one in wanted:
        places = [(one.source, seq) for seq in range(one.began_seq, one.ended_seq + 1)]
        if not all(place in here for place in places):
            lost.append(one)
            continue
        for place in places:
            answers.setdefault(place, {})[one.start_ts] = one.answer_ts
    return [PrewrittenSegment(here[place], answers[place]) for place in sorted(answers)], lost
