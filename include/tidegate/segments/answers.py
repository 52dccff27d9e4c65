"""start_ts -> commit_ts of many transactions, in sixteen bytes each: a window may commit millions.

In:  pairs, or a mapping.
Out: a Mapping over two arrays, which compiled code and numpy read directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Mapping[int, int]):
    """started: start_ts, ascending, each once. stamps: their commit_ts, at the same places."""

    started: Words
    stamps: Words

    @classmethod
    def of(cls, fates: Mapping[int, int]) -> Self:
        if isinstance(fates, cls):
            return fates
        started = np.fromiter(fates.keys(), np.int64, len(fates))
        order = np.argsort(started)
        return cls(started[order], np.fromiter(fates.values(), np.int64, len(fates))[order])

    def __len__(self) -> int:
        return len(self.started)

    def __iter__(self) -> Iterator[int]:
        return iter(self.started.tolist())

    def __getitem__(self, start_ts: int) -> int:
        at = int(np.searchsorted(self.started, start_ts))
        if at == len(self.started) or self.started[at] != start_ts:
            raise KeyError(start_ts)
        return int(self.stamps[at])

    def among(self, started: Words) -> npt.NDArray[np.bool_]:
        """For each of these start_ts, whether it is answered."""
        at = np.searchsorted(self.started, started)
        inside = at < len(self.started)
        return inside & (self.started[np.where(inside, at, 0)] == started) if len(self.started) else inside

    def stamps_of(self, started: Words) -> Words:
        """The commit_ts of these start_ts, all of which are answered."""
        return self.stamps[np.searchsorted(self.started, started)]
