"""A random workload of DDL and DML at a real server: after every round silver has what the server's SELECT has.

tests/support/seeds.py tells how other seeds are run; TIDEGATE_DDL_ROUNDS makes it longer.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.seeds import VARIABLE, many, seed
from tests.support.servers import FreshDatabase
from tests.support.workloads.statements import Workload
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.long]


def test_silver_follows_a_random_workload_of_ddl_and_dml(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    drawn_from, database = seed(), fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    workload = Workload(any_server, database, drawn_from)
    rounds = int(os.environ.get("TIDEGATE_DDL_ROUNDS") or many(1, 6))
    for number in range(rounds):
        before = len(workload.done)
        workload.round()
        road.capture()
        app = road.apply(spark)
        told = f"{VARIABLE}={drawn_from}, round {number}:\n" + "\n".join(workload.done[before:])
        held = [state.reason for state in app.states.values() if state.state == "held"]
        assert not held, f"{held}\n{told}"
        try:
            assert set(road.assert_equal()) == set(workload.tables)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{told}") from error
