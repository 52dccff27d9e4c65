"""The first commit in bronze above each cut: from then on silver lacked something.

In:  a lake; cuts.
Out: per cut, the smallest commit_ts above it, over all sources. Nothing is written.

The statistics in bronze's log answer for a file of one landing. A packed file, and a file with
heartbeats beside transactions, is opened for its small columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from tidegate.commit_ts import FOREVER
from tidegate.lake.bronze.log import BronzeFile
from tidegate.lake.files import LakeFiles
from tidegate.limits.formats import LOGICAL_BITS
from tidegate.tables import SEGMENTS

Range = tuple[int, int]  # the smallest and the largest commit_ts of some transactions

_WIDE: Final = 60_000 << LOGICAL_BITS  # a minute: more than one landing of a capture that is at the end of the log


class FirstCommits:
    """Looks at one lake. Each file is read at most once."""

    def __init__(self, lake: LakeFiles) -> None:
        self._lake = lake
        self._read: dict[str, tuple[Range, ...]] = {}

    def above(
        self, files: Mapping[str, Sequence[BronzeFile]], cuts: Sequence[int], sources: Collection[str] | None = None
    ) -> list[int | None]:
        """Per cut, the smallest commit_ts above it; None if bronze has none.

        files: by source, in order of seq. sources: only these; None for all. Raises
        LakeUnavailable, OSError.
        """
        asked, firsts = np.array(cuts, np.int64), np.full(len(cuts), FOREVER)
        for source, own in files.items():
            if len(cuts) and (sources is None or source in sources):
                ranges = [each for file in _newest(own, min(cuts)) for each in self._ranges(file)]
                if ranges:
                    firsts = np.minimum(firsts, _firsts(asked, np.array(ranges, np.int64)))
        self._forget(files)
        return [None if first == FOREVER else int(first) for first in firsts]

    def _ranges(self, file: BronzeFile) -> tuple[Range, ...]:
        lowest = file.min_commit_ts
        if file.rows == 1 or (lowest and file.max_commit_ts - lowest < _WIDE):
            return ((lowest or file.max_commit_ts, file.max_commit_ts),)
        if file.path not in self._read:
            self._read[file.path] = tuple(self._segments(file))
        return self._read[file.path]

    def _segments(self, file: BronzeFile) -> Iterator[Range]:
        with self._lake.open(f"{SEGMENTS.path}/{unquote(file.path)}") as handle:
            names = ["seq", "min_commit_ts", "max_commit_ts"]
            rows = pq.read_table(handle, columns=names, partitioning=None).sort_by("seq")
        for lowest, highest in zip(rows["min_commit_ts"].to_pylist(), rows["max_commit_ts"].to_pylist(), strict=True):
            if highest:
                yield lowest or highest, highest

    def _forget(self, files: Mapping[str, Sequence[BronzeFile]]) -> None:
        if self._read:
            paths = {file.path for own in files.values() for file in own}
            self._read = {path: ranges for path, ranges in self._read.items() if path in paths}


def _newest(files: Sequence[BronzeFile], cut: int) -> list[BronzeFile]:
    """The files with transactions above a cut, in order of seq."""
    newest = list[BronzeFile]()
    for file in reversed(files):
        if file.max_commit_ts > cut:
            newest.append(file)
        elif file.max_commit_ts:
            break
    return newest[::-1]


def _firsts(cuts: npt.NDArray[np.int64], ranges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """ranges: in order of seq. If a cut lies inside a range, its first commit counts as at the cut."""
    lowest = np.minimum.accumulate(ranges[::-1, 0])[::-1]
    places = np.searchsorted(np.maximum.accumulate(ranges[:, 1]), cuts, side="right")
    known = places < len(ranges)
    firsts = np.full(len(cuts), FOREVER)
    firsts[known] = np.maximum(lowest[places[known]], cuts[known])
    return firsts
