"""The models at small bounds: no promise is broken, and each cure is missed when it is left out.

A model says nothing of code that has moved on: tests/integration shows the same on the road itself.
"""

from __future__ import annotations

import pytest

from tests.model.__main__ import SMALL, cases
from tests.model.checker import TooLargeError, explore
from tests.support.seeds import share

_CASES = list(cases(SMALL))
_STATES_MAX = 100_000


@pytest.mark.parametrize("case", share(_CASES), ids=lambda case: case.name)
def test_no_state_breaks_its_promise(case) -> None:
    found = explore(case.make(), _STATES_MAX)
    assert not found.what, f"{found.what}: {found.trace}"


@pytest.mark.parametrize("cure", share(sorted({cure for case in _CASES for cure in case.cures})))
def test_each_cure_is_missed_when_it_is_left_out(cure: str) -> None:
    assert any(explore(case.make(cure), _STATES_MAX).what for case in _CASES if cure in case.cures)


def test_a_model_that_is_too_large_proves_nothing() -> None:
    with pytest.raises(TooLargeError):
        explore(_CASES[0].make(), 5)
