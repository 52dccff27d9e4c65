"""The watcher on bronze, run against a real Delta table by a small stand-in for Airflow's triggerer loop.

In:  a Delta table that grows; an asset state that outlives the trigger, as Airflow's does.
Out: which versions were fired, over restarts.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.bronze import QuietBronze
from tidegate.tables import SEGMENTS

pytestmark = pytest.mark.airflow

SETTLE = 0.2


class AssetState:
    """The two calls of Airflow's asset state that a trigger uses, kept in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.kept.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.kept[key] = value


def grow(lake: Path, times: int = 1) -> None:
    for _ in range(times):
        write_deltalake(str(lake / SEGMENTS.path), pa.table({"n": [1]}), mode="append")


def fired(
    lake: Path, state: AssetState, seconds: float, *while_running: Callable[[], object], **settings: Any
) -> list[int]:
    """Versions that one life of the trigger fires within some seconds; the callables run in between."""
    from tidegate_airflow.bronze_trigger import BronzeVersionTrigger

    async def live() -> list[int]:
        first = BronzeVersionTrigger(str(lake), poll_seconds=SETTLE / 10, **settings)
        path, arguments = first.serialize()
        assert path == f"{BronzeVersionTrigger.__module__}.{BronzeVersionTrigger.__qualname__}"
        trigger = BronzeVersionTrigger(**arguments)  # as the triggerer makes it
        trigger.asset_state_store = state  # type: ignore[assignment]
        found: list[int] = []

        async def collect() -> None:
            async for event in trigger.run():
                found.append(event.payload["delta_version"])  # noqa: PERF401 - the loop never ends by itself

        task = asyncio.create_task(collect())
        for change in while_running:
            await asyncio.sleep(seconds / (len(while_running) + 1))
            await asyncio.to_thread(change)
        await asyncio.sleep(seconds / (len(while_running) + 1))
        task.cancel()
        return found

    return asyncio.run(live())


def test_a_watcher_may_start_before_bronze_exists_and_fires_once_it_does(tmp_path: Path) -> None:
    assert fired(tmp_path, AssetState(), 1.6, lambda: grow(tmp_path)) == [0]


def test_growth_fires_once_and_a_restart_does_not_fire_again(tmp_path: Path) -> None:
    state = AssetState()
    grow(tmp_path, 3)
    assert fired(tmp_path, state, 1.0) == [2]
    assert fired(tmp_path, state, 0.5) == [], "a restart fires only for what is new"


def test_growth_while_the_triggerer_is_down_is_fired_when_it_is_back(tmp_path: Path) -> None:
    state = AssetState()
    grow(tmp_path)
    assert fired(tmp_path, state, 1.0) == [0]
    grow(tmp_path, 2)
    assert fired(tmp_path, state, 1.0) == [2]


def test_a_triggerer_that_dies_right_after_an_event_fires_it_again(tmp_path: Path) -> None:
    """Airflow may not have stored the event yet: one too many is harmless, one too few is not."""
    state = AssetState()
    grow(tmp_path)
    assert fired(tmp_path, state, SETTLE * 0.8) == [0]
    assert state.kept == {}
    assert fired(tmp_path, state, 1.0) == [0]


def test_fast_growth_is_merged_but_its_last_version_always_fires(tmp_path: Path) -> None:
    state = AssetState()
    found = fired(tmp_path, state, 3.0, lambda: grow(tmp_path, 10), lambda: None)
    assert found[-1] == 9
    assert len(found) < 10
    assert found == sorted(set(found))


def test_a_lake_made_anew_fires_although_its_version_is_smaller(tmp_path: Path) -> None:
    state = AssetState()
    grow(tmp_path, 4)
    assert fired(tmp_path, state, 1.0) == [3]
    shutil.rmtree(tmp_path / SEGMENTS.path)
    grow(tmp_path)
    assert fired(tmp_path, state, 1.0) == [0]


def test_a_failing_asset_state_delays_the_watcher_but_does_not_end_it(tmp_path: Path) -> None:
    class Flaky(AssetState):
        failures = 2

        async def aget(self, key: str, default: Any = None) -> Any:
            if self.failures:
                self.failures -= 1
                raise ConnectionError("the API server is restarting")
            return await super().aget(key, default)

    grow(tmp_path)
    assert fired(tmp_path, Flaky(), 1.0) == [0]


def test_a_source_that_only_proves_it_is_quiet_starts_nothing(tmp_path: Path) -> None:
    bronze, state = QuietBronze(tmp_path), AssetState()
    bronze.land("main", (100, 110, 110))
    quiet = [lambda ts=ts: bronze.land("main", (ts,)) for ts in (120, 130, 140)]
    assert fired(tmp_path, state, 2.0, *quiet, sources=["main"]) == [1], "changes fire, heartbeats don't"
    assert fired(tmp_path, state, 1.0, sources=["main"]) == [], "and not after a restart"
    last = [lambda: bronze.land("main", (150,), (160, 161, 161), (170,)), lambda: bronze.land("main", (180,))]
    assert fired(tmp_path, state, 2.0, *last, sources=["main"]) == [5], "a change between heartbeats is one"


def test_heartbeats_alone_fire_every_quiet_seconds_so_that_the_cut_of_a_quiet_source_moves(tmp_path: Path) -> None:
    bronze = QuietBronze(tmp_path)
    beats = [lambda ts=ts: bronze.land("main", (ts,)) for ts in range(100, 220, 10)]
    found = fired(tmp_path, AssetState(), 3.6, *beats, sources=["main"], quiet_seconds=1.2)
    assert len(found) in (2, 3)
    assert fired(tmp_path, AssetState(), 1.0, sources=["main"], quiet_seconds=0.1) == [12], "once, then nothing is new"


def test_a_heartbeat_fires_when_changes_of_another_source_waited_for_it(tmp_path: Path) -> None:
    bronze, state, both = QuietBronze(tmp_path), AssetState(), ["a", "b"]
    bronze.land("a", (100, 100, 100))
    assert fired(tmp_path, state, 0.5, sources=both) == [], "b hasn't said a word: no window can be cut"
    assert fired(tmp_path, state, 1.0, lambda: bronze.land("b", (90,)), sources=both) == [], "b is behind a's change"
    found = fired(tmp_path, state, 1.5, lambda: bronze.land("b", (101,)), sources=both)
    assert found == [3], "now a's change is below both"
    further = [lambda: bronze.land("a", (110,)), lambda: bronze.land("b", (111,))]
    assert fired(tmp_path, state, 1.5, *further, sources=both) == [], "over a restart: that change is done"
    assert fired(tmp_path, state, 1.0, lambda: bronze.land("a", (120, 121, 121)), sources=both) == []
    assert fired(tmp_path, state, 1.0, lambda: bronze.land("b", (130,)), sources=both) == [7]


def test_a_log_that_was_cleaned_up_or_is_long_fires_rather_than_not(tmp_path: Path) -> None:
    bronze, state = QuietBronze(tmp_path), AssetState()
    for ts in range(100, 160, 10):
        bronze.land("main", (ts,))
    assert fired(tmp_path, state, 0.5, sources=["main"]) == []
    DeltaTable(str(tmp_path / SEGMENTS.path)).create_checkpoint()
    (tmp_path / SEGMENTS.path / "_delta_log" / f"{2:020d}.json").unlink()
    assert fired(tmp_path, state, 1.0, sources=["main"]) == [6]


def test_the_version_of_a_local_table_agrees_with_delta_rs_over_checkpoints_and_cleaned_logs(tmp_path: Path) -> None:
    from tidegate.lake.delta_log import StoreDeltaLog, delta_log

    table = tmp_path / "t"
    quick, slow = delta_log(str(table), {}), StoreDeltaLog(str(table), {})
    assert quick.latest() == slow.latest() == -1
    for version in range(5):
        write_deltalake(str(table), pa.table({"n": [1]}), mode="append")
        assert quick.latest() == slow.latest() == version
        assert (quick.commit(version) or "").splitlines() == (slow.commit(version) or "").splitlines() != []
    assert quick.commit(5) is slow.commit(5) is None
    opened = DeltaTable(str(table))
    opened.create_checkpoint()
    for old in range(3):
        (table / "_delta_log" / f"{old:020d}.json").unlink()
    assert delta_log(f"file://{table}", {}).latest() == 4
    (table / "_delta_log" / f"{4:020d}.json").rename(table / "_delta_log" / f"{4:020d}.json.tmp")
    assert quick.latest() == 3, "what it knew is gone: it reads the folder again"
