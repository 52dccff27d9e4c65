"""The watcher on bronze, run against a real Delta table by a small stand-in for Airflow's triggerer loop.

In:  a Delta table that grows; an asset state that outlives the trigger, as Airflow's does.
Out: which versions were fired, over restarts.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.bronze import QuietBronze
from tidegate.lake.jobs import news
from tidegate.tables import SEGMENTS

pytestmark = pytest.mark.airflow

SETTLE = 0.2
PATIENCE_SECONDS = 120


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
    lake: Path, state: AssetState, *changes: Callable[[], object], dies_after: int = 0, **settings: Any
) -> list[int]:
    """Versions that one life of the trigger fires, which looks several times before and after each of the changes.

    dies_after: it ends right after so many events, before it can store them.
    """
    from tidegate_airflow import bronze_trigger

    looks = 0
    real = news.FollowedBronze.look

    def look(log: Any) -> Any:
        nonlocal looks
        try:
            return real(log)
        finally:
            looks += 1

    async def live() -> list[int]:
        first = bronze_trigger.BronzeVersionTrigger(str(lake), poll_seconds=SETTLE / 10, **settings)
        path, arguments = first.serialize()
        assert path == f"{type(first).__module__}.{type(first).__qualname__}"
        trigger = bronze_trigger.BronzeVersionTrigger(**arguments)  # as the triggerer makes it
        trigger.asset_state_store = state  # type: ignore[assignment]
        found: list[int] = []

        async def collect() -> None:
            async for event in trigger.run():
                found.append(event.payload["delta_version"])  # noqa: PERF401 - the loop never ends by itself

        async def until(done: Callable[[], bool]) -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not done():  # noqa: ASYNC110 - looks happen in threads
                    await asyncio.sleep(SETTLE / 100)

        task = asyncio.create_task(collect())
        for change in (*changes, None):
            seen = looks
            # The look that was going on, one that sees what is new, and one after its event was stored.
            await until(lambda: looks >= seen + 3 or 0 < dies_after <= len(found))  # noqa: B023 - awaited at once
            if change:
                await asyncio.to_thread(change)
        task.cancel()
        return found

    with mock.patch.object(news.FollowedBronze, "look", look):
        return asyncio.run(live())


def test_a_watcher_may_start_before_bronze_exists_and_fires_once_it_does(tmp_path: Path) -> None:
    assert fired(tmp_path, AssetState(), lambda: grow(tmp_path)) == [0]


def test_growth_fires_once_and_a_restart_does_not_fire_again(tmp_path: Path) -> None:
    state = AssetState()
    grow(tmp_path, 3)
    assert fired(tmp_path, state) == [2]
    assert fired(tmp_path, state) == [], "a restart fires only for what is new"


def test_growth_while_the_triggerer_is_down_is_fired_when_it_is_back(tmp_path: Path) -> None:
    state = AssetState()
    grow(tmp_path)
    assert fired(tmp_path, state) == [0]
    grow(tmp_path, 2)
    assert fired(tmp_path, state) == [2]


def test_a_triggerer_that_dies_right_after_an_event_fires_it_again(tmp_path: Path) -> None:
    """Airflow may not have stored the event yet: one too many is harmless, one too few is not."""
    state = AssetState()
    grow(tmp_path)
    assert fired(tmp_path, state, dies_after=1) == [0]
    assert state.kept == {}
    assert fired(tmp_path, state) == [0]


def test_fast_growth_is_merged_but_its_last_version_always_fires(tmp_path: Path) -> None:
    grow(tmp_path / "before", 10)
    ten_commits = lambda: shutil.copytree(tmp_path / "before" / SEGMENTS.path, tmp_path / SEGMENTS.path)  # noqa: E731
    found = fired(tmp_path, AssetState(), ten_commits)
    assert found[-1] == 9
    assert len(found) < 10
    assert found == sorted(set(found))


def test_a_lake_made_anew_fires_although_its_version_is_smaller(tmp_path: Path) -> None:
    state = AssetState()
    grow(tmp_path, 4)
    assert fired(tmp_path, state) == [3]
    shutil.rmtree(tmp_path / SEGMENTS.path)
    grow(tmp_path)
    assert fired(tmp_path, state) == [0]


def test_a_failing_asset_state_delays_the_watcher_but_does_not_end_it(tmp_path: Path) -> None:
    class Flaky(AssetState):
        failures = 2

        async def aget(self, key: str, default: Any = None) -> Any:
            if self.failures:
                self.failures -= 1
                raise ConnectionError("the API server is restarting")
            return await super().aget(key, default)

    grow(tmp_path)
    assert fired(tmp_path, Flaky()) == [0]


def test_a_source_that_only_proves_it_is_quiet_starts_nothing(tmp_path: Path) -> None:
    bronze, state = QuietBronze(tmp_path), AssetState()
    bronze.land("main", (100, 110, 110))
    quiet = [lambda ts=ts: bronze.land("main", (ts,)) for ts in (120, 130, 140)]
    assert fired(tmp_path, state, *quiet, sources=["main"]) == [0], "changes fire, heartbeats don't"
    assert fired(tmp_path, state, sources=["main"]) == [], "and not after a restart"
    last = [lambda: bronze.land("main", (150,), (160, 161, 161), (170,)), lambda: bronze.land("main", (180,))]
    assert fired(tmp_path, state, *last, sources=["main"]) == [4], "a change between heartbeats is one"


def test_heartbeats_alone_fire_every_quiet_seconds_so_that_the_cut_of_a_quiet_source_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bronze, state, now = QuietBronze(tmp_path), AssetState(), [0.0]
    monkeypatch.setattr("tidegate.lake.jobs.news.time", SimpleNamespace(monotonic=lambda: now[0]))

    def beat() -> None:
        bronze.land("main", (int(100 + 10 * now[0]),))
        now[0] += 0.5

    assert fired(tmp_path, state, *[beat] * 14, sources=["main"], quiet_seconds=2.0) == [3, 7, 11]

    def wait() -> None:
        now[0] += 2

    assert fired(tmp_path, state, wait, wait, sources=["main"], quiet_seconds=2.0) == [13], "once, then nothing is new"


def test_a_heartbeat_fires_when_changes_of_another_source_waited_for_it(tmp_path: Path) -> None:
    bronze, state, both = QuietBronze(tmp_path), AssetState(), ["a", "b"]
    bronze.land("a", (100, 100, 100))
    assert fired(tmp_path, state, sources=both) == [], "b hasn't said a word: no window can be cut"
    assert fired(tmp_path, state, lambda: bronze.land("b", (90,)), sources=both) == [], "b is behind a's change"
    found = fired(tmp_path, state, lambda: bronze.land("b", (101,)), sources=both)
    assert found == [2], "now a's change is below both"
    further = [lambda: bronze.land("a", (110,)), lambda: bronze.land("b", (111,))]
    assert fired(tmp_path, state, *further, sources=both) == [], "over a restart: that change is done"
    assert fired(tmp_path, state, lambda: bronze.land("a", (120, 121, 121)), sources=both) == []
    assert fired(tmp_path, state, lambda: bronze.land("b", (130,)), sources=both) == [6]


def test_a_log_that_was_cleaned_up_or_is_long_fires_rather_than_not(tmp_path: Path) -> None:
    bronze, state = QuietBronze(tmp_path), AssetState()
    for ts in range(100, 160, 10):
        bronze.land("main", (ts,))
    assert fired(tmp_path, state, sources=["main"]) == []
    DeltaTable(str(tmp_path / SEGMENTS.path)).create_checkpoint()
    (tmp_path / SEGMENTS.path / "_delta_log" / f"{2:020d}.json").unlink()
    assert fired(tmp_path, state, sources=["main"]) == [5]
