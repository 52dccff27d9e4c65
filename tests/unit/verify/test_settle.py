"""Settling, on a model: a log, a source that is read at a moment, silver at cuts, faults; verdicts against the truth.

Keys 0 to 5 hold a version or nothing. The log is a list of changes; commit_ts is the place in it. A round reads the
source at a moment m that saw everything up to L <= m, and silver at a cut C >= m.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.verify.settle import Key, Row, settle

KEYS = 6


class Rule(Enum):
    """The rule, and what it would be without one of its parts."""

    EXACT = auto()
    CUT_BEFORE_THE_READ = auto()
    LOG_FROM_THE_READ_ON = auto()  # although the read didn't see all that lies before it in the log
    CHANGES_IGNORED = auto()


@dataclass
class World:
    """faults: key -> what silver has instead, until the log changes the key again."""

    rule: Rule
    log: list[tuple[int, int | None]] = field(default_factory=list)
    faults: dict[int, tuple[int, int | None]] = field(default_factory=dict)

    def source(self, upto: int) -> dict[int, int | None]:
        return dict(self.log[:upto])

    def silver(self, upto: int) -> dict[int, int | None]:
        rows = self.source(upto)
        for key, (since, value) in self.faults.items():
            if since <= upto and not any(changed == key for changed, _ in self.log[since:upto]):
                rows[key] = value
        return rows

    def truly_faulty(self, key: int, at: int) -> bool:
        return self.silver(at).get(key) != self.source(at).get(key)

    def changed(self, after: int, upto: int) -> set[Key]:
        return {(str(key),) for key, _ in self.log[after:upto]}


def rows_of(state: dict[int, int | None]) -> dict[Key, Counter[Row]]:
    return {(str(key),): Counter([(value,)]) for key, value in state.items() if value is not None}


changes = st.lists(st.tuples(st.integers(0, KEYS - 1), st.one_of(st.none(), st.integers(0, 2))), max_size=4)


@st.composite
def rounds(draw: st.DrawFn, rule: Rule) -> tuple[World, list[tuple[int, int, int]]]:
    """A world, and (L, m, C) of each round."""
    world, told = World(rule), []
    world.log += draw(changes)
    for key in draw(st.sets(st.integers(0, KEYS - 1), max_size=3)):
        world.faults[key] = (len(world.log), draw(st.one_of(st.none(), st.integers(3, 4))))
    for _ in range(draw(st.integers(1, 4))):
        low = len(world.log)
        world.log += draw(changes)
        seen = draw(st.integers(low, len(world.log)))
        if rule is Rule.LOG_FROM_THE_READ_ON:
            low = len(world.log)  # what is logged, and not what was visible
        world.log += draw(changes)
        cut = draw(st.integers(0 if rule is Rule.CUT_BEFORE_THE_READ else seen, len(world.log)))
        told.append((low, seen, cut))
    return world, told


def verdicts_are_right(world: World, told: list[tuple[int, int, int]]) -> bool:
    keys: list[Key] = [(str(key),) for key in range(KEYS)]
    for low, seen, cut in told:
        changed = set() if world.rule is Rule.CHANGES_IGNORED else world.changed(low, cut)
        found = settle(keys, rows_of(world.source(seen)), rows_of(world.silver(cut)), changed)
        for key, _, _ in found.different:
            if not world.truly_faulty(int(str(key[0])), cut):
                return False  # a difference that is none
        for key in found.equal:
            number = int(str(key[0]))
            old = world.faults.get(number, (low + 1, None))[0] <= low
            if old and world.truly_faulty(number, cut) and not any(k == number for k, _ in world.log[low:cut]):
                return False  # a fault from at or below L is hidden
        for key in found.left:
            if key not in changed:
                return False  # what rests must be settled
        keys = list(found.left)
    return True


@given(rounds(Rule.EXACT))
def test_no_difference_is_made_up_and_none_that_was_there_is_hidden(
    case: tuple[World, list[tuple[int, int, int]]],
) -> None:
    assert verdicts_are_right(*case)


# Of each part a log and a round (L, m, C) whose verdict is wrong without it.
GOES_WRONG: dict[Rule, tuple[list[tuple[int, int | None]], tuple[int, int, int]]] = {
    Rule.CUT_BEFORE_THE_READ: ([(0, 0)], (0, 1, 0)),
    Rule.LOG_FROM_THE_READ_ON: ([(0, None), (0, None), (0, 0)], (3, 0, 3)),
    Rule.CHANGES_IGNORED: ([(0, 0)], (0, 0, 1)),
}


@pytest.mark.parametrize("rule", [rule for rule in Rule if rule is not Rule.EXACT])
def test_each_part_of_the_rule_is_needed(rule: Rule) -> None:
    log, told = GOES_WRONG[rule]
    assert not verdicts_are_right(World(rule, log), [told])


def test_rows_of_a_key_are_compared_as_a_multiset() -> None:
    key: Key = ("1",)
    found = settle([key], {key: Counter({("a",): 2})}, {key: Counter({("a",): 1, ("b",): 2})}, ())
    assert found.different == ((key, ("a",), ("b",)), (key, None, ("b",)))
    assert settle([key], {key: Counter({("a",): 1})}, {}, None).left == (key,)
