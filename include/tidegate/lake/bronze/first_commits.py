"""The first commit in bronze above a cut: since then silver lacked something.

In:  a lake; cuts.
Out: per cut the smallest commit_ts above it, of all sources. Nothing is written.

The statistics in bronze's log say it of a file that one landing made. Of a file that maintain has packed, or that has
heartbeats beside transactions, the small columns are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from tidegate.lake.bronze.log import BronzeFile
from tidegate.lake.files import LakeFiles
from tidegate.limits.formats import LOGICAL_BITS
from tidegate.tables import SEGMENTS

Span = tuple[int, int]  # the smallest and the largest commit_ts of some transactions

_WIDE: Final = 60_000 << LOGICAL_BITS  # a minute: more than one landing of a capture that is at the end of the log
_NONE: Final = (1 << 63) - 1


class FirstCommits:
    """Looks at one lake. Files that are read once stay known."""

    def __init__(self, lake: LakeFiles) -> None:
        self._lake = lake
        self._read: dict[str, tuple[Span, ...]] = {}

    def above(
        self, files: Mapping[str, Sequence[BronzeFile]], cuts: Sequence[int], sources: Collection[str] | None = None
    ) -> list[int | None]:
        """Per cut the smallest commit_ts above it; None: bronze has none.

        files: by source, in order of seq. sources: these alone. Raises LakeUnavailable, OSError.
        """
        asked, firsts = np.array(cuts, np.int64), np.full(len(cuts), _NONE)
        for source, own in files.items():
            if len(cuts) and (sources is None or source in sources):
                spans = [span for file in _newest(own, min(cuts)) for span in self._spans(file)]
                if spans:
                    firsts = np.minimum(firsts, _firsts(asked, np.array(spans, np.int64)))
        self._forget(files)
        return [None if first == _NONE else int(first) for first in firsts]

    def _spans(self, file: BronzeFile) -> tuple[Span, ...]:
        lowest = file.min_commit_ts
        if file.rows == 1 or (lowest and file.max_commit_ts - lowest < _WIDE):
            return ((lowest or file.max_commit_ts, file.max_commit_ts),)
        if file.path not in self._read:
            self._read[file.path] = tuple(self._segments(file))
        return self._read[file.path]

    def _segments(self, file: BronzeFile) -> Iterator[Span]:
        with self._lake.open(f"{SEGMENTS.path}/{unquote(file.path)}") as handle:
            names = ["seq", "min_commit_ts", "max_commit_ts"]
            rows = pq.read_table(handle, columns=names, partitioning=None).sort_by("seq")
        for lowest, highest in zip(rows["min_commit_ts"].to_pylist(), rows["max_commit_ts"].to_pylist(), strict=True):
            if highest:
                yield lowest or highest, highest

    def _forget(self, files: Mapping[str, Sequence[BronzeFile]]) -> None:
        if self._read:
            there = {file.path for own in files.values() for file in own}
            self._read = {path: spans for path, spans in self._read.items() if path in there}


def _newest(files: Sequence[BronzeFile], cut: int) -> list[BronzeFile]:
    """The files with transactions above a cut, in order of seq."""
    newest = list[BronzeFile]()
    for file in reversed(files):
        if file.max_commit_ts > cut:
            newest.append(file)
        elif file.max_commit_ts:
            break
    return newest[::-1]


def _firsts(cuts: npt.NDArray[np.int64], spans: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """spans: in order of seq. A span that a cut divides counts from the cut on."""
    lowest = np.minimum.accumulate(spans[::-1, 0])[::-1]
    places = np.searchsorted(np.maximum.accumulate(spans[:, 1]), cuts, side="right")
    known = places < len(spans)
    firsts = np.full(len(cuts), _NONE)
    firsts[known] = np.maximum(lowest[places[known]], cuts[known])
    return firsts
