"""The models at small bounds: no promise is broken, nobody waits for ever, and each rule is missed when it is left out.

The model of tables' lives asks the rules themselves; of the steps around them it says nothing: tests/integration shows
the same on the road itself.
"""

from __future__ import annotations

import pytest

from tests.model.__main__ import CASES, breaks, looked
from tests.model.checker import TooLargeError, explore
from tests.model.life import Life
from tests.model.scenarios import LARGE, MUTATIONS, SMALL
from tests.support.seeds import LONG, share

_STATES_MAX = 100_000
_STATES_LONG = 1_500_000
# The ways on are looked for in all states: of the two largest bounds by `make model` and `make test-long`.
_NOT_TO_THEIR_END = () if LONG else ("routed, killed", "rename, held")


@pytest.mark.parametrize("case", share(CASES), ids=lambda case: case.name)
def test_no_state_breaks_its_promise(case) -> None:
    seen = explore(case.make(), _STATES_MAX)
    assert not seen.what, f"{seen.what}: {seen.trace}"


@pytest.mark.parametrize("bounds", share(SMALL), ids=lambda bounds: bounds.name)
def test_no_life_breaks_a_promise_and_nobody_waits_for_what_cannot_come(bounds) -> None:
    followed = LONG or (bounds.is_followed and bounds.name not in _NOT_TO_THEIR_END)
    seen = looked(bounds, _STATES_LONG if followed else _STATES_MAX, followed=followed)
    assert not seen.what, f"{seen.what}: {seen.trace}"


@pytest.mark.parametrize("cure", share(sorted({cure for case in CASES for cure in case.cures})))
def test_each_cure_is_missed_when_it_is_left_out(cure: str) -> None:
    assert any(explore(case.make(cure), _STATES_MAX).what for case in CASES if cure in case.cures)


@pytest.mark.parametrize("mutation", share(MUTATIONS))
def test_each_rule_is_missed_when_it_is_left_out(mutation: str) -> None:
    assert breaks(mutation, _STATES_MAX)


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="an hour: make test-long")
@pytest.mark.parametrize("bounds", LARGE, ids=lambda bounds: bounds.name)
def test_no_long_life_breaks_a_promise(bounds) -> None:
    seen = explore(Life(bounds), _STATES_LONG)
    assert not seen.what, f"{seen.what}: {seen.trace}"


def test_a_model_that_is_too_large_proves_nothing() -> None:
    with pytest.raises(TooLargeError):
        explore(Life(SMALL[0]), 5)
