"""The versions that changes make, against a plain replay of the changes in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.merge.versions import OPEN, Places, spans_of


@dataclass(frozen=True)
class Change:
    """gone: a delete. read_upto: 0 of a change."""

    key: int
    commit_ts: int
    ordinal: int
    gone: bool
    read_upto: int = 0


@st.composite
def logs(draw: Any) -> list[Change]:
    """Changes of few keys, several in a transaction."""
    drawn = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12), st.booleans()), max_size=40))
    return [Change(key, commit_ts, at, gone) for at, (key, commit_ts, gone) in enumerate(drawn)]


def versions(changes: Sequence[Change], applied_ts: int = 0) -> list[tuple[int, int, int, int]]:
    """(key, from, to, ordinal of the change) of what is there in between; and the starts of ends of older versions."""
    columns = ("key", "commit_ts", "ordinal", "ordinal", "read_upto")
    arrays = [np.array([getattr(change, name) for change in changes], np.int64) for name in columns]
    spans = spans_of(Places(*arrays), applied_ts)
    firsts: dict[int, int] = {}
    made = []
    for at, end, first in zip(spans.at.tolist(), spans.ends.tolist(), spans.first.tolist(), strict=True):
        change = changes[at]
        assert first == (change.key not in firsts)
        firsts.setdefault(change.key, change.commit_ts)
        if not change.gone:
            made.append((change.key, change.commit_ts, end, change.ordinal))
    return made


def replayed(changes: Sequence[Change], at: int) -> dict[int, int]:
    """Key -> ordinal of the change that says what the row is like."""
    state: dict[int, int] = {}
    for change in sorted(changes, key=lambda change: (change.commit_ts, change.ordinal)):
        if change.commit_ts > at:
            break
        if change.gone:
            state.pop(change.key, None)
        else:
            state[change.key] = change.ordinal
    return state


@given(logs(), st.randoms(use_true_random=False))
def test_each_moment_is_a_replay_whatever_order_changes_are_staged_in(log: list[Change], rng: Any) -> None:
    shuffled = list(log)
    rng.shuffle(shuffled)
    made = versions(shuffled)
    assert all(begin < end for _, begin, end, _ in made)
    for at in range(14):
        valid = [(key, ordinal) for key, begin, end, ordinal in made if begin <= at < end]
        assert len(valid) == len(dict(valid))
        assert dict(valid) == replayed(log, at)


@given(logs(), st.integers(0, 13))
def test_changes_that_come_once_more_make_nothing_anew(log: list[Change], applied: int) -> None:
    assert versions(log, applied) == versions([change for change in log if change.commit_ts > applied])


@given(logs(), st.integers(0, 13))
def test_of_a_shard_that_silver_has_nothing_of_each_change_counts_beside_one_that_goes_on(
    log: list[Change], applied: int
) -> None:
    """Keys below 2 are of the shard that begins."""
    columns = ("key", "commit_ts", "ordinal", "ordinal", "read_upto")
    arrays = [np.array([getattr(change, name) for change in log], np.int64) for name in columns]
    spans = spans_of(Places(*arrays), np.where(arrays[0] < 2, 0, applied))
    counting = [log[at] for at in spans.at.tolist()]
    begun, goes_on = ([c for c in log if (c.key < 2) == of and (of or c.commit_ts > applied)] for of in (True, False))
    expected = {(c.key, c.commit_ts) for c in (*begun, *goes_on)}
    assert {(c.key, c.commit_ts) for c in counting} == expected


@given(logs(), st.integers(0, 12), st.integers(1, 4), st.integers(0, 12))
def test_a_row_read_counts_from_its_low_mark_unless_a_change_came_while_it_was_read(
    log: list[Change], low: int, length: int, applied: int
) -> None:
    """A wave's low mark is a transaction of its own, so no change has its commit_ts."""
    reads = [Change(key, low * 10 + 5, 100 + key, gone=False, read_upto=(low + length) * 10 + 5) for key in range(4)]
    changes = [Change(c.key, c.commit_ts * 10, c.ordinal, c.gone) for c in log]
    made = versions([*reads, *changes], applied * 10)
    upto = max(reads[0].read_upto, applied * 10)
    again = {change.key for change in changes if reads[0].commit_ts < change.commit_ts <= upto}
    counting = [read for read in reads if read.key not in again]
    kept = [change for change in changes if change.commit_ts > applied * 10]
    assert sorted(made) == sorted(versions([*kept, *counting]))
    assert {ordinal - 100 for _, _, _, ordinal in made if ordinal >= 100} == {read.key for read in counting}


def test_no_change_makes_no_version() -> None:
    assert versions([]) == []
    assert versions([Change(1, 5, 0, gone=False)]) == [(1, 5, OPEN, 0)]


def test_what_is_read_as_it_was_goes_on_in_the_version_before_it() -> None:
    """Of one key: a change, two rows read as it left it, a change, and of another key one row read."""
    numbers = [np.array(those, np.int64) for those in ([1, 1, 1, 1, 2], [10, 20, 30, 40, 20], [0] * 5, [0] * 5)]
    spans = spans_of(Places(*numbers, np.array([0, 25, 35, 0, 25], np.int64)), 0)
    shorter = spans.without(np.array([False, True, True, False, False]))
    assert shorter.at.tolist() == [0, 3, 4]
    assert shorter.ends.tolist() == [40, OPEN, OPEN]
    assert shorter.seen.tolist() == [30, 40, 20]
    assert shorter.first.tolist() == [True, False, True]
    nothing = np.zeros(0, np.int64)
    assert len(spans_of(Places(*(nothing,) * 5), 0).without(np.zeros(0, np.bool_)).at) == 0


def parts(log: Sequence[Change], ends: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The versions that windows with these ends make, one per window: (key, from, to, ordinal)."""
    made: list[tuple[int, int, int, int]] = []
    for after, upto in pairwise([0, *ends, 99]):
        for key in range(4):
            ours = sorted((c.commit_ts, c.ordinal, c) for c in log if c.key == key and after < c.commit_ts <= upto)
            if ours:
                last = ours[-1][2]
                made = [(k, b, last.commit_ts if k == key and e == OPEN else e, o) for k, b, e, o in made]
                made += [(key, last.commit_ts, OPEN, last.ordinal)] * (not last.gone)
    return sorted(made)


def windows(log: Sequence[Change], commits: Sequence[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """The versions by Spans.last_of_each in windows: (read from, upto) of each, perhaps read again."""
    made, applied = list[tuple[int, int, int, int]](), 0
    for after, upto in commits:
        staged = [change for change in log if after < change.commit_ts <= upto]
        columns = ("key", "commit_ts", "ordinal", "ordinal", "read_upto")
        arrays = [np.array([getattr(change, name) for change in staged], np.int64) for name in columns]
        spans = spans_of(Places(*arrays), applied).last_of_each()
        assert spans.first.all()
        assert (spans.ends == OPEN).all()
        for at in spans.at.tolist():
            last = staged[at]
            made = [(k, b, last.commit_ts if k == last.key and e == OPEN else e, o) for k, b, e, o in made]
            made += [(last.key, last.commit_ts, OPEN, last.ordinal)] * (not last.gone)
        applied = max(applied, upto)
    return sorted(made)


@given(logs(), st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), max_size=4))
def test_a_window_repeated_with_another_extent_leaves_the_versions_of_windows_that_end_where_commits_did(
    log: list[Change], cuts: list[tuple[int, int]]
) -> None:
    """Each commit reads from anywhere below what silver has, as a window with a wave does, and ends above it."""
    commits, applied = [], 0
    for back, upto in cuts:
        if upto > applied:
            commits.append((max(0, applied - back), upto))
            applied = upto
    commits.append((0, 99))
    assert windows(log, commits) == parts(log, [upto for _, upto in commits[:-1]])


@given(logs(), st.lists(st.integers(1, 12), max_size=4, unique=True))
def test_one_version_per_window_is_exact_where_windows_end(log: list[Change], ends: list[int]) -> None:
    made = parts(log, sorted(ends))
    for at in (*ends, 98):
        assert {key: ordinal for key, begin, end, ordinal in made if begin <= at < end} == replayed(log, at)
    of_key = [[(begin, end) for k, begin, end, _ in made if k == key] for key in range(4)]
    assert all(left[1] <= right[0] for spans in of_key for left, right in pairwise(sorted(spans)))


def test_no_change_has_no_last_one() -> None:
    assert len(spans_of(Places(*(np.zeros(0, np.int64),) * 5), 0).last_of_each().at) == 0
