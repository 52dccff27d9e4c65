"""The cut never passes what a source has not resolved, and a backlog is taken in bounded windows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tidegate.segments.window import SegmentRef, choose_cut, in_window, split_evenly, without_given_up
from tidegate.tables import SegmentFlag


def ref(source: str, seq: int, low: int, high: int, resolved: int, size: int = 100) -> SegmentRef:
    return SegmentRef(source, seq, "b.000001", 0, size, low, high, resolved, ("d.t",), SegmentFlag(0), "p", 0, 0)


def test_cut_is_the_slowest_source() -> None:
    refs = {"a": [ref("a", 1, 1, 50, 50)], "b": [ref("b", 1, 2, 20, 20)]}
    assert choose_cut(refs, ["a", "b"], 0, 1 << 30) == 20


def test_a_source_that_has_sent_nothing_stalls_the_cut() -> None:
    assert choose_cut({"a": [ref("a", 1, 1, 50, 50)]}, ["a", "b"], 0, 1 << 30) is None


def test_nothing_new_above_low_gives_no_window() -> None:
    assert choose_cut({"a": [ref("a", 1, 1, 50, 50)]}, ["a"], 50, 1 << 30) is None


def test_a_window_of_a_backlog_is_at_most_of_the_size_asked_for() -> None:
    refs = {"a": [ref("a", i, i * 10, i * 10 + 9, i * 10 + 9) for i in range(1, 11)]}
    assert choose_cut(refs, ["a"], 0, 250) == 29
    assert choose_cut(refs, ["a"], 0, 300) == 39
    assert choose_cut(refs, ["a"], 29, 50) == 39, "a segment that is larger by itself"


def test_a_long_transaction_counts_in_the_window_that_reads_it() -> None:
    """Its parts are resolved no further than what is before it, and aren't read with that."""
    parts = [ref("a", i, 100, 100, 9, size=1000) for i in range(2, 6)]
    refs = {"a": [ref("a", 1, 1, 9, 9), *parts, ref("a", 6, 100, 100, 100), ref("a", 7, 101, 110, 110)]}
    assert choose_cut(refs, ["a"], 0, 1500) == 9
    assert choose_cut(refs, ["a"], 9, 1500) == 100
    assert choose_cut(refs, ["a"], 100, 1500) == 110
    assert choose_cut(refs, ["a"], 0, 5000) == 110


def test_what_another_source_has_in_the_window_counts() -> None:
    refs = {
        "a": [ref("a", i, i * 10, i * 10 + 9, i * 10 + 9) for i in range(1, 11)],
        "b": [ref("b", 1, 15, 200, 200, size=200)],
    }
    assert choose_cut(refs, ["a", "b"], 0, 450) == 29
    assert choose_cut(refs, ["a", "b"], 29, 550) == 59


def test_many_sources_are_read_about_twice_at_most() -> None:
    """A segment of each is begun at every cut: together more than a window, and read by each with a part of it."""
    count, each = 100, 12
    refs = {}
    for number in range(count):
        ends = [1 + number * 10 + 1000 * seq for seq in range(each)]
        lows = [1, *(end + 1 for end in ends)]
        refs[str(number)] = [ref(str(number), seq, lows[seq], end, end, size=8) for seq, end in enumerate(ends)]
    every = [one for of in refs.values() for one in of]
    at, read_bytes = 0, 0
    while (cut := choose_cut(refs, list(refs), at, 512)) is not None:
        assert cut > at
        window = sum(one.payload_bytes for one in in_window(every, at, cut))
        assert window <= 2 * 8 * count
        at, read_bytes = cut, read_bytes + window
    assert read_bytes <= 2.5 * sum(one.payload_bytes for one in every)


def test_a_transaction_larger_than_the_window_is_taken_whole() -> None:
    open_parts = [ref("a", i, 100, 100, 9, size=1000) for i in range(1, 5)]
    refs = {"a": [*open_parts, ref("a", 5, 100, 100, 100, size=1000)]}
    assert choose_cut(refs, ["a"], 9, 1500) == 100


def test_segments_outside_the_window_and_heartbeats_are_left_out() -> None:
    refs = [ref("a", 1, 1, 9, 9), ref("a", 2, 10, 19, 19), ref("a", 3, 0, 0, 25, size=0), ref("a", 4, 30, 39, 39)]
    assert [found.seq for found in in_window(refs, 9, 29)] == [2]


@given(
    ends=st.lists(st.integers(1, 1000), min_size=1, max_size=40, unique=True).map(sorted),
    low=st.integers(0, 1000),
    bytes_max=st.integers(1, 2000),
)
def test_windows_one_after_another_cover_every_segment_once(ends: list[int], low: int, bytes_max: int) -> None:
    starts = [1, *[end + 1 for end in ends[:-1]]]
    refs = [ref("a", i, start, end, end) for i, (start, end) in enumerate(zip(starts, ends, strict=True))]
    taken: list[int] = []
    at = low
    while (cut := choose_cut({"a": refs}, ["a"], at, bytes_max)) is not None:
        assert cut > at
        window = in_window(refs, at, cut)
        assert len(window) == 1 or sum(each.payload_bytes for each in window) <= bytes_max
        taken += [each.seq for each in window]
        at = cut
    assert taken == [each.seq for each in refs if each.max_commit_ts > low]


def test_a_transaction_that_no_segment_goes_on_with_is_outside_of_every_window() -> None:
    """The third begins at another server: what the first two have of the transaction at 20 never was."""
    begins, middle, ends = SegmentFlag.OPEN_AT_END, SegmentFlag.OPEN_AT_END | SegmentFlag.OPEN_AT_START, SegmentFlag(0)
    refs = [
        replace(ref("a", 1, 10, 20, 15), flags=begins),
        replace(ref("a", 2, 20, 20, 15), flags=middle),
        ref("a", 3, 20, 30, 30),
    ]
    found = without_given_up(refs)
    assert [each.given_up_ts for each in found] == [20, 20, 0]
    assert [each.upto(25) for each in found] == [19, 19, 25]
    assert [each.seq for each in in_window(found, 0, 25)] == [1, 3]
    assert [each.seq for each in in_window(found, 19, 25)] == [3]
    for more in (refs[:2], [*refs[:2], replace(refs[2], flags=SegmentFlag.OPEN_AT_START)]):
        assert without_given_up(more) == more, "nothing is known yet, or it goes on"
    alone = [replace(ref("a", 1, 20, 20, 15), flags=begins), replace(ref("a", 2, 0, 0, 40, size=0), flags=ends)]
    assert in_window(without_given_up(alone), 0, 40) == []
    # The other server's own, dated earlier and as large, began in a third that is applied and forgotten.
    again = [*refs[:2], replace(ref("a", 4, 17, 30, 30), flags=SegmentFlag.OPEN_AT_START)]
    assert [each.given_up_ts for each in without_given_up(again)] == [20, 20, 0]


def test_a_window_is_split_into_runs_of_neighbours_with_about_equal_bytes() -> None:
    for sizes in ([1] * 12, [5, 1, 1, 1, 1, 1], [1, 1, 1, 9], [3], [100, 1, 100, 1, 1, 1, 60, 30, 7]):
        refs = [sized(number, size) for number, size in enumerate(sizes)]
        for count in range(1, len(sizes) + 3):
            runs = split_evenly(refs, count)
            assert [ref for run in runs for ref in run] == refs, "in order, each once"
            assert all(runs)
            assert len(runs) <= count
            fair = sum(sizes) / count
            assert all(sum(ref.payload_bytes for ref in run) <= fair + max(sizes) for run in runs)
    assert [len(run) for run in split_evenly([sized(n, 1) for n in range(12)], 4)] == [3, 3, 3, 3]
    assert split_evenly([], 3) == []


def sized(seq: int, size: int) -> SegmentRef:
    return SegmentRef("s", seq, "f", 100, 100 + size, 1, 1, 1, (), SegmentFlag(0), "p", 0, seq)
