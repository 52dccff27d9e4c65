"""The record of added hours is Airflow's own: whatever else stands in it, no hour is lost or added twice.

In:  events of the record.
Out: the hours that assets have, and those that are missing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.lake.figures.complete_hours import hour_of
from tidegate.limits import COMPLETE_HOURS_MAX
from tidegate_airflow.complete_operator import ADDED, _added, missing_hours

pytestmark = pytest.mark.airflow
EIGHT = hour_of("2026-11-26T08:00:00")


def event(extra: Any) -> Any:
    return SimpleNamespace(extra=extra)


@pytest.mark.parametrize("by_hand", [None, {}, {"from_rest_api": True}, {ADDED: None}, {ADDED: {"a": "x"}}, {ADDED: 1}])
def test_an_event_that_a_person_makes_says_nothing(by_hand: Any) -> None:
    ours = event({ADDED: {"a": "2026-11-26T08:00:00", "b": "2026-11-26T06:00:00"}})
    older = event({ADDED: {"a": "2026-11-26T07:00:00"}})
    assert _added([event(by_hand), event(by_hand), ours, older]) == {"a": EIGHT + 1, "b": EIGHT - 1}
    assert _added([event(by_hand)]) == {}


def test_every_hour_since_is_missing_and_of_a_new_asset_the_newest_alone() -> None:
    assert list(missing_hours(EIGHT, EIGHT - 2)) == [EIGHT - 2, EIGHT - 1]
    assert list(missing_hours(EIGHT, None)) == [EIGHT - 1]
    assert not missing_hours(EIGHT, EIGHT + 3)
    assert not missing_hours(0, EIGHT)
    assert not missing_hours(0, None)
    assert len(missing_hours(EIGHT, 5)) == COMPLETE_HOURS_MAX
