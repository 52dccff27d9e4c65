"""GTID sets as numbers: what one has and another lacks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.position import MysqlGtidSet

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562:tag"
NUMBERS = st.dictionaries(st.sampled_from([A, B]), st.sets(st.integers(1, 40), max_size=25), max_size=2)


def _set(numbers: dict[str, set[int]]) -> MysqlGtidSet:
    found = MysqlGtidSet()
    for sid, members in numbers.items():
        for number in sorted(members):
            found.add(sid, number, number)
    return found


@given(NUMBERS, NUMBERS)
def test_minus_is_what_sets_of_numbers_say(one: dict[str, set[int]], other: dict[str, set[int]]) -> None:
    wanted = {sid: members - other.get(sid, set()) for sid, members in one.items()}
    assert str(_set(one).minus(_set(other))) == str(_set({sid: left for sid, left in wanted.items() if left}))
    assert _set(one).minus(_set(one)).intervals == {}


@given(NUMBERS, NUMBERS)
def test_one_covers_another_when_it_has_all_its_numbers(one: dict[str, set[int]], other: dict[str, set[int]]) -> None:
    wanted = all(members <= one.get(sid, set()) for sid, members in other.items())
    assert _set(one).covers(_set(other)) == wanted
    assert _set({**one, A: one.get(A, set()) | other.get(A, set())}).covers(_set({A: other.get(A, set())}))
