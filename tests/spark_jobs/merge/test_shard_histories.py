"""Histories of shards, statement by statement: each shard's versions against what is known of each moment."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.past import end_all
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.window import TableWindow
from tests.spark_jobs.merge.test_retype import begins
from tests.spark_jobs.merge.test_silver_writer import DEL, UP, Shop
from tests.support.readers import by_duckdb
from tests.support.seeds import seed
from tidegate import tables
from tidegate.merge.past import HISTORY as BY_HISTORY

pytestmark = pytest.mark.spark

ROUTES = "[{match: 'd.o_\\d+', to: d.o}]"
HISTORY = "[], history: ['d.o']"


@pytest.fixture(params=["merge", "positional"])
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Callable[..., Shop]:
    return lambda **given: Shop(spark, tmp_path, request.param, routes=ROUTES, **given)


def versions(it: Shop, value: str = "a") -> list[tuple[Any, ...]]:
    rows = by_duckdb(it.app.lake.uri(tables.silver_path("d", "o"))).to_pylist()
    names = (tables.SHARD_TABLE, "id", value, tables.VALID_FROM, tables.VALID_TO, tables.FROM_KNOWN)
    return sorted((tuple(row[name] for name in names) for row in rows), key=lambda row: (row[0], row[1], row[3]))


def two(it: Shop, kinds: tuple[str, str] = ("INT", "INT")) -> Shop:
    for at, kind in enumerate(kinds, 1):
        it.ddl(9 + at, f"CREATE TABLE o_{at} (id INT PRIMARY KEY, a {kind})")
    it.apply(0, 15, {"o_1": [(12, UP, {"id": 1, "a": 1})], "o_2": [(13, UP, {"id": 1, "a": 2})]})
    return it


def test_a_shard_that_is_created_again_with_a_wider_column_goes_on(shop: Callable[..., Shop]) -> None:
    it = two(shop(soft_delete=HISTORY))
    it.ddl(20, "DROP TABLE o_1")
    it.ddl(21, "CREATE TABLE o_1 (id INT PRIMARY KEY, a BIGINT)")
    done = it.apply(15, 30, {"o_1": [(22, UP, {"id": 1, "a": 9876543210})]})
    assert not done.held, done.held
    assert versions(it) == [
        ("o_1", 1, 1, 12, 20, True),
        ("o_1", 1, 9876543210, 22, None, True),
        ("o_2", 1, 2, 13, None, True),
    ]


@pytest.mark.parametrize("mode", ["[]", HISTORY])
def test_a_shard_gets_another_name_after_a_wider_one_is_gone(shop: Callable[..., Shop], mode: str) -> None:
    it = two(shop(soft_delete=mode), ("INT", "BIGINT"))
    it.ddl(20, "DROP TABLE o_2")
    it.apply(15, 20, {})
    it.ddl(22, "RENAME TABLE o_1 TO o_3")
    done = it.apply(20, 30, {"o_3": [(23, UP, {"id": 2, "a": 5})]})
    assert not done.held, done.held
    if mode == HISTORY:
        assert versions(it) == [
            ("o_1", 1, 1, 12, 22, True),
            ("o_2", 1, 2, 13, 20, True),
            ("o_3", 1, 1, 22, None, True),
            ("o_3", 2, 5, 23, None, True),
        ]
    else:
        assert it.silver("o") == [{"id": 1, "a": 1}, {"id": 2, "a": 5}]


def test_two_shards_swap_their_names(shop: Callable[..., Shop]) -> None:
    it = two(shop(soft_delete=HISTORY))
    it.ddl(20, "RENAME TABLE o_1 TO x, o_2 TO o_1, x TO o_2")
    changes = {"o_1": [(19, UP, {"id": 2, "a": 9}), (22, UP, {"id": 1, "a": 3})], "o_2": [(23, DEL, {"id": 1, "a": 1})]}
    for _ in range(2):
        assert not it.apply(15, 30, changes).held
        it.app.positions.forget_applied("d.o")
    assert versions(it) == [
        ("o_1", 1, 1, 12, 20, True), ("o_1", 1, 2, 20, 22, True), ("o_1", 1, 3, 22, None, True),
        ("o_1", 2, 9, 19, 20, True),
        ("o_2", 1, 2, 13, 20, True), ("o_2", 1, 1, 20, 23, True), ("o_2", 2, 9, 20, None, True),
    ]  # fmt: skip


def test_a_shard_of_another_key_gets_no_name_that_has_old_versions(shop: Callable[..., Shop]) -> None:
    it = two(shop(soft_delete=HISTORY))
    it.ddl(20, "DROP TABLE o_1, o_2")
    it.ddl(21, "CREATE TABLE o_5 (id INT, a INT PRIMARY KEY)")
    assert not it.apply(15, 25, {"o_5": [(22, UP, {"id": 1, "a": 5})]}).held
    it.ddl(30, "RENAME TABLE o_5 TO o_6")
    assert not it.apply(25, 35, {}).held
    before = versions(it)
    it.ddl(40, "RENAME TABLE o_6 TO o_1")
    held = it.apply(35, 45, {}).held["d.o"]
    assert "silver keeps 1 " in held.reason
    assert "another key" in held.reason
    assert versions(it) == before


def test_what_a_killed_window_wrote_of_a_shard_from_where_it_begins_anew_is_none_of_its_past(
    shop: Callable[..., Shop],
) -> None:
    it = two(shop(soft_delete=HISTORY))
    it.apply(15, 30, {
        "o_1": [
            (20, UP, {"id": 1, "a": 3}), (21, UP, {"id": 4, "a": 4}), (25, UP, {"id": 1, "a": 5}),
            (26, DEL, {"id": 4, "a": 4}), (27, UP, {"id": 6, "a": 6}), (28, DEL, {"id": 6, "a": 6}),
        ],
        "o_2": [(27, UP, {"id": 1, "a": 7})],
    })  # fmt: skip
    begins(it, "o_1", 23)
    version = it.app.histories["s"].versions("d", "o_1")[-1]
    work = TableToWrite(TableWindow("d.o", "d", "o", routed=True, after_ts=22), TablePlan(past=BY_HISTORY))
    for _ in range(2):
        end_all(SilverWriter(it.app, work, {}), None, version, None)
    assert versions(it) == [
        ("o_1", 1, 1, 12, 20, True), ("o_1", 1, 3, 20, 23, True), ("o_1", 4, 4, 21, 23, True),
        ("o_2", 1, 2, 13, 27, True), ("o_2", 1, 7, 27, None, True),
    ]  # fmt: skip


class ByWindow:
    """What is to be in silver: of each part of a window the last change of each shard's row. None: it is deleted."""

    def __init__(self) -> None:
        self.ended: list[tuple[Any, ...]] = []
        self.current: dict[tuple[str, int], tuple[int, int]] = {("o_1", 1): (1, 12), ("o_2", 1): (2, 13)}

    def take(self, last: dict[tuple[str, int], tuple[int, int | None]]) -> None:
        """last: shard, id -> commit_ts, value."""
        for key, (at, value) in last.items():
            if key in self.current:
                before, since = self.current.pop(key)
                self.ended.append((*key, before, since, at, True))
            if value is not None:
                self.current[key] = value, at

    def versions(self) -> list[tuple[Any, ...]]:
        now = [(*key, value, since, None, True) for key, (value, since) in self.current.items()]
        return sorted([*self.ended, *now], key=lambda row: (row[0], row[1], row[3]))


def test_each_window_leaves_the_last_state_of_each_shards_row(shop: Callable[..., Shop]) -> None:
    """Shards change in turns, one joins, and a statement about one parts the window for all."""
    it = two(shop(soft_delete=f"{HISTORY}, history_by_window: ['d.o']"))
    rng, wanted, at, shards = random.Random(seed()), ByWindow(), 15, ["o_1", "o_2"]
    live, every = set(wanted.current), 0
    for number in range(4):
        low, changes = at, dict[str, list[Any]]()
        if number == 1:
            at += 1
            it.ddl(at, "CREATE TABLE o_3 (id INT PRIMARY KEY, a INT)")
            shards.append("o_3")
        for part in range(2):
            last = dict[tuple[str, int], tuple[int, int | None]]()
            for _ in range(25):
                at += 1
                key = rng.choice(shards), rng.randrange(4)
                gone = key in live and rng.random() < 0.4
                live = live - {key} if gone else live | {key}
                last[key] = at, None if gone else at
                changes.setdefault(key[0], []).append((at, DEL if gone else UP, {"id": key[1], "a": at}))
                every += 1
            wanted.take(last)
            if number == 2 and part == 0:
                at += 1
                it.ddl(at, "TRUNCATE TABLE o_2")
                wanted.take({key: (at, None) for key in live if key[0] == "o_2"})
                live = {key for key in live if key[0] != "o_2"}
            elif part == 0:
                at += 1  # its window ends here
                assert not it.apply(low, at, changes).held
                low, changes = at, {}
        at += 1
        assert not it.apply(low, at, changes).held
    assert versions(it) == wanted.versions()
    assert len(wanted.versions()) < every // 2, "states between were left out, or this shows nothing"
