"""Random foreign keys and random changes at a real server: after each round silver has what its SELECT has.

A round of many seeds is one window, or a few; each has a database of its own. The application is a new one each time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.seeds import VARIABLE, many, seed
from tests.support.servers import FreshDatabase
from tests.support.workloads.foreign_keys import ForeignKeyWorkload
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.long]


def test_silver_follows_random_foreign_keys(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    first, seeds = seed(), int(os.environ.get("TIDEGATE_CASCADE_SEEDS") or many(4, 60))
    workloads: dict[str, ForeignKeyWorkload] = {}
    for number in range(first, first + seeds):
        elsewhere = next(reversed(workloads), "")
        workloads[name] = ForeignKeyWorkload(mariadb, name := fresh_database(mariadb), number, elsewhere)
    road = Road(mariadb, tmp_path, include=f"({'|'.join(workloads)}).*")
    road.capture()
    try:
        _follow(road, workloads, spark, first)
    finally:
        with mariadb.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET foreign_key_checks = 0")  # keys lead from one database into another
            for name in workloads:
                cursor.execute(f"DROP DATABASE `{name}`")


def _follow(road: Road, workloads: dict[str, ForeignKeyWorkload], spark: SparkSession, first: int) -> None:
    for number in range(int(os.environ.get("TIDEGATE_CASCADE_ROUNDS") or many(3, 6))):
        for workload in workloads.values():
            workload.round() if number else workload.create()
        road.capture()
        app = road.apply(spark)
        held = {name: state.reason for name, state in app.states.items() if state.state == "held"}
        try:
            road.assert_equal()
        except AssertionError as error:
            wrong = str(error).split(".", 1)[0]
            told = "\n".join(workloads[wrong].done)
            raise AssertionError(f"{VARIABLE}={first}, round {number}: {error}\n{told}") from error
        assert not held, f"{VARIABLE}={first}, round {number}: {held}"
