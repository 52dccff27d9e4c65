"""Over years of failovers, stalls, rebuilds and kills each hour is added once, never early, and always.

In:  a simulated pipeline (hours_world.py), whose rules are tidegate's own.
Out: the hours that Airflow gets.
"""

from __future__ import annotations

import random

import pytest

from tests.support.seeds import many
from tests.unit.lake.figures.hours_world import BEGINS, FEEDS, World
from tidegate.lake.figures.complete_hours import ALL_TABLES, hours_before
from tidegate.limits import HOUR_SECONDS

DAYS = 1_250


@pytest.mark.parametrize("seed", range(many(2, 8)))
def test_no_hour_is_early_or_doubled_or_left_out_over_failovers_and_rebuilds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 days by night, 2,500 by day."""
    dice = random.Random(seed)
    world = World(dice, monkeypatch)
    while world.now < BEGINS + DAYS * 24 * HOUR_SECONDS:
        world.now += dice.choice((1, 5, 60, 1_200, HOUR_SECONDS, 3 * HOUR_SECONDS))
        for name in world.sources:
            if dice.random() < 0.004:
                world.count("failed over")
                world.fail_over(name)
            world.write(name)
        if dice.random() < 0.02:
            world.rebuild(dice.choice(list(FEEDS)), swap=dice.random() < 0.6, killed=dice.random() < 0.4)
            world.look()
        if dice.random() < 0.05:
            world.mend()
        if dice.random() < 0.9:
            world.apply(dice.choice(("silver", "states", "below")) if dice.random() < 0.1 else "")
        world.look()
    for source in world.sources.values():
        source.back_at = 0
    for _ in range(400):
        world.now += 600
        for name in world.sources:
            world.write(name)
        world.mend()
        world.apply()
        world.look()
    if world.due is not None:
        world.run()  # what has been fired; what hasn't never comes
    for name in (ALL_TABLES, *FEEDS):
        hours = world.events[name]
        assert hours == list(range(hours[0], hours[-1] + 1)), f"{name}: an hour is left out"
        assert hours[-1] + 1 == min(hours_before(world.cut), int(world.now) // HOUR_SECONDS), f"{name}: no end"
        assert len(hours) > (DAYS - 10) * 24
    print(world.happened)
    wanted = {"failed over", "left behind", "swapped", "swap killed", "rebuilt in place"}
    assert all(world.happened[what] > 9 for what in wanted), world.happened
