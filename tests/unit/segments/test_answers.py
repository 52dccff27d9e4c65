"""Answers are a dict of start_ts and commit_ts, by binary search."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.segments.answers import Answers

_STAMPS = st.integers(1, 40)


@given(st.dictionaries(_STAMPS, _STAMPS, max_size=12), st.lists(_STAMPS, max_size=20))
def test_as_a_dict(fates: dict[int, int], asked: list[int]) -> None:
    answers = Answers.of(fates)
    assert dict(answers) == fates
    assert [answers.get(start_ts) for start_ts in asked] == [fates.get(start_ts) for start_ts in asked]
    started = np.array(asked, np.int64)
    among = answers.among(started)
    assert among.tolist() == [start_ts in fates for start_ts in asked]
    assert answers.stamps_of(started[among]).tolist() == [fates[start_ts] for start_ts in asked if start_ts in fates]
    assert Answers.of(answers) is answers
