"""start_ts -> commit_ts of many transactions, sixteen bytes each: a window may commit millions.

In:  pairs, or a mapping.
Out: a Mapping, whose numbers compiled code and numpy take as they are.
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
    """started: in order, each once. stamps: beside them."""

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
        """Which of these are answered."""
        at = np.searchsorted(self.started, started)
        inside = at < len(self.started)
        return inside & (self.started[np.where(inside, at, 0)] == started) if len(self.started) else inside

    def stamps_of(self, started: Words) -> Words:
        """The words on some that are answered."""
        return self.stamps[np.searchsorted(self.started, started)]
