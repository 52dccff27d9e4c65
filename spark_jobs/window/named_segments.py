"""The segments of a window that may have changes of some tables.

In:  a window, its prewrites committed apart from their rows, physical tables of one source.
Out: NamedSegment: where a segment is, and which of its rows count; the segments themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.window.names import Names
from spark_jobs.window.window import PrewrittenSegment, Window
from tidegate.errors import StreamCorrupt
from tidegate.lake.bronze.index import segments_or_damage
from tidegate.lake.files import LakeFiles
from tidegate.segments.result import Known
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NamedSegment:
    """answers: of the prewrites whose rows count: start_ts -> commit_ts; None: all its committed
    rows do. names: tables taking part, where the segment itself doesn't name them.
    """

    ref: SegmentRef
    answers: Mapping[int, int] | None = None
    names: Collection[Name] = ()

    @property
    def known(self) -> Known:
        """Which of its rows count, in the form of the decoder."""
        return Known(rolled_back_ts=self.ref.rolled_back_ts, answers=self.answers)

    def upto(self, cut_ts: int) -> int:
        """The commit_ts up to which its rows count. Rows of prewrites count by their answers."""
        return self.ref.upto(cut_ts) if self.answers is None else cut_ts


def read_segments(
    lake: LakeFiles, parts: Iterable[NamedSegment]
) -> Iterator[tuple[NamedSegment, Segment | StreamCorrupt]]:
    """Each with its segment, or the damage; those whose rows count by their answers come last."""
    by_place = {(part.ref.seq, part.answers is None): part for part in parts}
    for whole in (True, False):
        refs = [part.ref for (_, is_whole), part in by_place.items() if is_whole is whole]
        for ref, segment in segments_or_damage(lake, refs):
            yield by_place[ref.seq, whole], segment


def segments_naming(
    names: Names,
    window: Window,
    committed: Sequence[PrewrittenSegment],
    source: str,
    wanted: Collection[Name],
) -> Iterator[NamedSegment]:
    """A segment with both kinds of rows comes twice."""
    asked = frozenset(wanted)
    for ref in window.refs:
        if ref.source == source and ref.whole and not asked.isdisjoint(names.kept(source, ref.tables)):
            yield NamedSegment(ref)
    for segment in committed:
        named = {*names.kept(segment.source, segment.ref.tables), *segment.names}
        if segment.source == source and not asked.isdisjoint(named):
            yield NamedSegment(segment.ref, segment.answers, segment.names)


def tables_named(names: Names, window: Window, committed: Sequence[PrewrittenSegment], source: str) -> set[Name]:
    """All tables of a source that may have changes in the window."""
    named = set[Name]()
    for ref in window.refs:
        if ref.source == source:
            named.update(names.in_segment(ref))
    for segment in committed:
        if segment.source == source:
            named.update(names.kept(source, segment.ref.tables), segment.names)
    return named
