"""The event of the silver asset: how far silver is and what is held, as values and as a sentence, and once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import to_row
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing

pytestmark = pytest.mark.airflow
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def test_the_event_says_in_a_sentence_how_far_silver_is(tmp_path: Path) -> None:
    from tidegate_airflow.silver_event import silver_event

    lake = LakeFiles(str(tmp_path))
    cut = {"cut_ts": 1_795_694_400_000 << 18, "applied_ts": 1, "state": "active", "published_at": NOW}
    control.append(lake, tables.CUTS, [cut | {"table": "", "delta_version": -1}])
    assert silver_event(lake)["text"] == "Silver is complete up to 2026-11-26 12:00:00 UTC."

    names = [f"shop.t{number}" for number in range(6)]
    waits = Standing(tables.State.HELD, "it waits", Cause.UNLOGGED)
    control.append(lake, tables.TABLE_STATES, [to_row(waits, "shop", name, NOW) for name in names])
    event = silver_event(lake)
    assert list(event["held"]) == names
    assert event["text"].partition(", but")[2] == (
        " for 6 held tables: shop.t0, shop.t1, shop.t2, shop.t3, shop.t4 and 1 more."
    )


class Events:
    """The asset's events, the newest one last, as a task gets them."""

    def __init__(self, *extras: Any) -> None:
        self._events = [SimpleNamespace(extra=extra) for extra in extras]

    def ascending(self, ascending: bool) -> Events:
        assert not ascending
        return self

    def limit(self, count: int) -> list[Any]:
        return self._events[::-1][:count]


@pytest.mark.parametrize(
    ("extras", "known"),
    [
        ((), False),
        (({"cut_ts": 5, "held": {}},), True),
        (({"cut_ts": 5, "held": {}}, {"cut_ts": 4, "held": {}}), False),
        (({"cut_ts": 4, "held": {}}, {"cut_ts": 5, "held": {}, "text": "an older sentence"}), True),
        (({"cut_ts": 5, "held": {"shop.t": "why"}},), False),
        (({"from_rest_api": True},), False),
        ((None,), False),
    ],
)
def test_an_event_that_says_the_same_is_known(extras: tuple[Any, ...], known: bool) -> None:
    from tests.support.pipeline_views import pipeline
    from tidegate_airflow.assets import silver_asset
    from tidegate_airflow.silver_event import is_known

    context: Any = {"inlet_events": {silver_asset(pipeline()): Events(*extras)}}
    assert is_known({"cut_ts": 5, "cut_at": "then", "held": {}, "text": "a sentence"}, pipeline(), context) is known


def test_an_airflow_that_doesnt_say_ends_no_run() -> None:
    from tests.support.pipeline_views import pipeline
    from tidegate_airflow.silver_event import is_known

    context: Any = {"inlet_events": {}}
    assert not is_known({"cut_ts": 5, "held": {}}, pipeline(), context)
