"""The history of shards on two servers: at every moment each shard's versions are what its own server showed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.integration.shards.test_shards import DEFINED, Shards
from tests.support import known_history
from tests.support.known_history import forget_cuts
from tests.support.seeds import seed
from tests.support.shard_pasts import ShardPast, keep_history, move, pasts_of, work
from tidegate.local.server import Server
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1200)]


@contextmanager
def begun(servers: dict[str, Server], folder: Path, writer: str, count: int) -> Iterator[Shards]:
    road = Shards(servers, folder, count)
    keep_history(road, writer)
    try:
        road.capture_all()
        road.create()
        yield road
    finally:
        road.drop()


def applied(road: Shards, spark: SparkSession) -> Application:
    road.capture_all()
    app = road.apply(spark)
    assert not {name: state.reason for name, state in app.states.items() if state.state.waits}
    return app


def check(road: Shards, pasts: list[ShardPast], since: dict[str, int] | None = None) -> int:
    """since: by database, the first state that is compared."""
    for past in pasts:
        past.check_times(road)
    report = verify(
        road.pipeline, {name: road.info_at(name) for name in road.servers}, road.lake.root, {},
        VerifyOptions(timeout_seconds=5),
    )  # fmt: skip
    assert {result.outcome for result in report.tables} == {Outcome.EQUAL}, report.tables
    return sum(past.check(road, since=(since or {}).get(past.database, 0)) for past in pasts)


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_each_shard_has_its_own_history_on_its_own_servers_clock(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    rng = random.Random(seed())
    with begun({"m": mariadb, "y": mysql9}, tmp_path, writer, 3) as road:
        pasts = pasts_of(road, "orders_7")
        first, *_, last = pasts
        for round_number in range(5):
            for _ in range(4):
                for past in pasts:
                    past.done(*work(rng, [name for name in past.names if name != "orders_7"]))
                move(rng, (first, first.names[0]), (last, last.names[0]), rng.randrange(12))
            changes(round_number, first, last)
            applied(road, spark)
            check(road, pasts)
        assert check(road, pasts) > 100
        forget_cuts(road)
        for past in pasts:
            for name in past.names:
                assert known_history.check(road, past, name, spark) > 10, "all shards were created in the log"


def changes(round_number: int, first: ShardPast, last: ShardPast) -> None:
    """Statements on one shard: the others go on as they are."""
    name, other = first.names[0], last.names[0]
    match round_number:
        case 0:
            first.done(f"TRUNCATE TABLE {name}")
            first.done(f"INSERT INTO {name} (id, note) VALUES (3, 'again')")
        case 1:
            last.done(f"ALTER TABLE {other} ADD COLUMN extra VARCHAR(12) DEFAULT 'old'")
            last.done(f"REPLACE INTO {other} (id, extra) VALUES (4, 'new')")
            last.done(f"ALTER TABLE {other} MODIFY place BIGINT")
            last.done(f"REPLACE INTO {other} (id, place) VALUES (5, 9876543210)")
        case 2:
            first.done(f"DROP TABLE {name}")
            first.done(f"CREATE TABLE {name} ({DEFINED})")
            first.done(f"INSERT INTO {name} (id, note) VALUES (5, 'anew')")
        case 3:
            first.done(f"RENAME TABLE {name} TO orders_7")
            first.done("UPDATE orders_7 SET note = 'renamed'")
            first.done(f"CREATE TABLE {name} ({DEFINED})")


def test_versions_of_a_source_that_was_left_behind_come_later_with_their_own_times(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(seed())
    with begun({"m": mariadb, "y": mysql9}, tmp_path, "auto", 1) as road:
        pasts = pasts_of(road)
        behind, ahead = pasts
        for past in pasts:
            past.done(*work(rng, past.names))
        applied(road, spark)
        whole = road.pipeline
        road.pipeline = whole.model_copy(update={"apply": whole.apply.model_copy(update={"stalled_seconds": 0})})
        behind.done(*work(rng, behind.names))
        move(rng, (behind, behind.names[0]), (ahead, ahead.names[0]), 7)
        ahead.done(f"REPLACE INTO {ahead.names[0]} (id, place) VALUES (8, 8)")
        road.capture("y")
        app = road.apply(spark)
        assert app.states[road.logical].state.waits, "no shard is ahead of another one"
        road.pipeline = whole
        behind.done(*work(rng, behind.names))
        for _ in range(2):
            road.capture_all("m")
            road.apply(spark)
        applied(road, spark)
        check(road, pasts)
