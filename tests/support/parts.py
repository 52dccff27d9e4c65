"""One part of the gate, for machines side by side: `make test PART=2/4`.

In:  TIDEGATE_PART, a number and of how many, or nothing; the test files, the longest first.
Out: the files of that part. Each file is in one part; the long ones are spread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import pytest

VARIABLE: Final = "TIDEGATE_PART"
T = TypeVar("T")


class Part(NamedTuple):
    """number: from 1."""

    number: int
    of: int

    def take(self, files: Sequence[T]) -> list[T]:
        """Of files in the same order on each machine."""
        return list(files[self.number - 1 :: self.of])


def asked() -> Part:
    """By the environment. Raises pytest.UsageError."""
    return parsed(os.environ.get(VARIABLE, ""))


def parsed(text: str) -> Part:
    """Of nothing: all is one part. Raises pytest.UsageError."""
    matched = re.fullmatch(r"(\d{1,3})/(\d{1,3})", text or "1/1")
    part = Part(*map(int, matched.groups())) if matched else Part(0, 0)
    if not 1 <= part.number <= part.of:
        raise pytest.UsageError(f"{VARIABLE}={text}: give a part and of how many, as in 2/4")
    return part
