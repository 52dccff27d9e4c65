"""The record of added hours is Airflow's own: whatever else stands in it, no hour is lost or added twice.

In:  events of the record.
Out: the hours that assets have, and those that are missing.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from tidegate.errors import ConfigError
from tidegate.lake.figures.complete_hours import hour_of, partition_key
from tidegate.limits import COMPLETE_HOURS_MAX, COMPLETE_TABLES_MAX
from tidegate_airflow.complete_operator import ADDED, CompleteOperator, _added, missing_hours

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


class Outlets:
    """Airflow's accessors of events. known: the assets that DAGs name."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.keys: dict[str, list[str]] = defaultdict(list)
        self.extra: dict[str, Any] = {}

    def for_asset(self, *, name: str) -> None:
        if name not in self.known:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.ASSET_NOT_FOUND))

    def __getitem__(self, asset: Any) -> Any:
        return (
            self
            if asset.name.endswith("__added_hours")
            else SimpleNamespace(add_partitions=self.keys[asset.name].extend)
        )


class Record(list[Any]):
    """The newest event of the record first."""

    def ascending(self, _: bool) -> Record:
        return self

    def limit(self, _: int) -> Record:
        return self


def by_pattern(folder: Path, hours: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> CompleteOperator:
    file = folder / "shop.yaml"
    file.write_text(
        f"pipeline: shop\nlake: {{path: {folder / 'lake'}}}\nsources: {{db: {{conn_id: db, flavour: mysql}}}}\n"
        "tables: {include: ['shop.*']}\ncompleteness: {hourly: true, tables: [shop.orders], include: ['shop.pay.*']}\n"
    )

    def read(_: Any, wanted: Any, include: Any) -> dict[str, int]:
        assert (wanted, include) == (("shop.orders",), ("shop.pay.*",))
        return hours

    monkeypatch.setattr("tidegate.lake.figures.complete_hours.read_complete_hours", read)
    return CompleteOperator(task_id="complete", pipeline_file=str(file))


def test_tables_of_a_pattern_get_the_hours_of_the_assets_that_dags_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = {"": EIGHT, "shop.orders": EIGHT, "shop.payments": EIGHT, "shop.payers": EIGHT, "shop.paid": 0}
    task = by_pattern(tmp_path, hours, monkeypatch)
    waits = "shop__complete__shop.payments"
    outlets = Outlets(waits, "shop__complete__shop.paid")
    context: Any = {"inlet_events": defaultdict(Record), "outlet_events": outlets}
    task.execute(context)
    key = partition_key(EIGHT - 1)
    owned = {"shop__complete": [key], "shop__complete__shop.orders": [key]}
    assert outlets.keys == owned | {waits: [key]}
    assert set(outlets.extra[ADDED]) == {*owned, waits}, "the others begin when a DAG names them"
    named = [outlet for outlet in task.outlets if outlet.name == waits]
    assert named == [Asset.ref(name=waits)], "whatever address the DAG gives it"


def test_a_pattern_of_too_many_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = {f"shop.pay{number}": EIGHT for number in range(COMPLETE_TABLES_MAX + 1)}
    task = by_pattern(tmp_path, hours | {"": EIGHT, "shop.orders": EIGHT}, monkeypatch)
    with pytest.raises(ConfigError, match="include matches 1,001 tables, and 1,000 may have hours"):
        task.execute({"inlet_events": defaultdict(Record), "outlet_events": Outlets()})  # type: ignore[typeddict-item]
