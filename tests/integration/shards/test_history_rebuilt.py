"""The history of shards is rebuilt from bronze and swapped: each version has the times that it had.

In:  two servers with two shards each, their statements, and apply that goes on meanwhile; a changed rule.
Out: silver with the versions that apply had made, by a new rule with the same times; then as the servers go on.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.shards.test_history import applied, begun, changes, check
from tests.integration.shards.test_shards import Shards
from tests.kit.spark import no_spark
from tests.support.past import Row
from tests.support.readers import READERS
from tests.support.seeds import seed
from tests.support.shard_pasts import ShardPast, move, pasts_of, work
from tidegate import config, tables
from tidegate.errors import LakeRefused
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1200)]

_KEY = (*tables.SHARDS, "id", tables.VALID_FROM)


def versions(road: Shards) -> list[Row]:
    """All of silver's, of all shards, in every column."""
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(*road.logical.split(".")))).to_pylist()
    return sorted(rows, key=lambda row: tuple(row[name] for name in _KEY))


def rebuilt(road: Shards, spark: SparkSession, *, compare: bool = True) -> Rebuild:
    """compare: silver has the same rows, the rebuilder says."""
    plan = Rebuild.plan(road.pipeline, road.lake, road.logical, "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=compare, report=road.lines.append) == 0, road.lines
    assert not compare or road.lines[-1] == "equal"
    return plan


def masked(text: str | None) -> str | None:
    return text if text is None else "*" * (len(text) - 1) + text[-1:]


def swapped(road: Shards, plan: Rebuild) -> None:
    swap(plan, BackgroundSession(no_spark), report=road.lines.append)


def filled(road: Shards, rng: random.Random, *later: str) -> list[ShardPast]:
    pasts = pasts_of(road, *later)
    for past in pasts:
        past.done(*work(rng, [name for name in past.names if name not in later]))
    return pasts


def busy(rng: random.Random, pasts: list[ShardPast]) -> None:
    """Changes of all shards, and rows that move between the servers."""
    first, last = pasts[0], pasts[-1]
    for _ in range(4):
        for past in pasts:
            past.done(*work(rng, [name for name in past.names if name in past.states[-1]]))
        move(rng, (first, first.names[0]), (last, last.names[0]), rng.randrange(12))


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_rebuilt_history_of_shards_takes_the_live_ones_place(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    rng = random.Random(seed())
    with begun({"m": mariadb, "y": mysql9}, tmp_path, writer, 2) as road:
        pasts = filled(road, rng, "orders_7")
        for round_number in range(4):
            busy(rng, pasts)
            changes(round_number, pasts[0], pasts[-1])
            if round_number % 2:
                applied(road, spark)
        before = versions(road)
        assert {tuple(row[name] for name in tables.SHARDS) for row in before} > set(road.shards)
        swapped(road, rebuilt(road, spark))
        assert versions(road) == before
        busy(rng, pasts)
        applied(road, spark)
        assert check(road, pasts) > 100


def test_a_changed_rule_makes_all_shards_versions_anew_with_the_times_that_they_had(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(seed())
    with begun({"m": mariadb, "y": mysql9}, tmp_path, "auto", 1) as road:
        pasts = filled(road, rng)
        busy(rng, pasts)
        pasts[0].done(f"TRUNCATE TABLE {pasts[0].names[0]}")
        applied(road, spark)
        busy(rng, pasts)
        applied(road, spark)
        before = versions(road)
        mask = f"tables: {{masks: [{{match: '{road.logical}', columns: [note], how: partial, last: 1}}], "
        road.file.write_text(road.file.read_text().replace("tables: {", mask))
        road.pipeline = config.load(road.file)
        busy(rng, pasts)
        road.capture_all()
        app = road.apply(spark)
        assert app.states[road.logical].state is State.HELD
        assert versions(road) == before
        plan = rebuilt(road, spark, compare=False)
        late = replace(plan, to=f"{plan.to}_late")
        shutil.copytree(road.lake.uri(plan.to), road.lake.uri(late.to))
        swapped(road, plan)
        assert versions(road) == [row | {"note": masked(row["note"])} for row in before]
        assert applied(road, spark).states[road.logical].state is State.ACTIVE
        for past in pasts:
            for state in past.states:
                for row in (row for of_table in state.values() for row in of_table):
                    row["note"] = masked(row["note"])
        check(road, pasts)

        # What came since is certainly in bronze only where a table has one shard.
        since = versions(road)
        with pytest.raises(LakeRefused, match="while apply is stopped"):
            swapped(road, late)
        assert versions(road) == since
