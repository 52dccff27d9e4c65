"""Verify a pipeline of a server, a changefeed and its TiDB, and a changefeed of which no TiDB is named.

Each table is compared by its source's way; what can't be compared is named, and counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.tidb.pumps import SAFE_POINT, collected_upto
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.support.changefeed_writer import CREATE_PLAIN, PLAIN, Change, Changefeed, plain
from tests.support.servers import FreshDatabase
from tidegate import config, pipelines
from tidegate.connections import Connection, from_environment
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING)]

ROWS = ((1, "one"), (2, None), (3, "drei"))


@dataclass
class Mixed:
    """Silver has all that the three sources wrote. database: the server's."""

    file: Path
    database: str
    environment: dict[str, str]
    tidb: Tidb

    def connection(self, name: str) -> Connection:
        return from_environment(name, self.environment)

    def verified(self) -> dict[str, Outcome]:
        pipeline = config.load(self.file)
        lake = pipelines.open_lake(pipeline, self.connection)
        connections = pipelines.sql_infos(pipeline, self.connection, lake)
        report = verify(pipeline, connections, lake.root, {}, VerifyOptions(timeout_seconds=10))
        return {one.table: one.outcome for one in report.tables}

    def command(self, *words: str) -> tuple[int, dict[str, Any]]:
        program = Path(sys.executable).with_name("tidegate")
        command = [program, "verify", self.file, "--json", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


def fed(path: Path, tso: int, *names: str) -> None:
    """A changefeed that wrote these tables, whole, up to a timestamp."""
    feed = Changefeed(path)
    for name in names:
        feed.ddl(name, tso - 2, CREATE_PLAIN.format(*name.split(".")), 3, PLAIN)
        feed.rows(name, *(Change(tso - 1, plain(*row)) for row in ROWS))
    feed.checkpoint(tso)


@pytest.fixture
def mixed(mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path) -> Iterator[Mixed]:
    database, tidb = fresh_database(mariadb), Tidb(tmp_path / "tidb", ())
    try:
        collected_upto(tidb, SAFE_POINT)
        file = tmp_path / "mixed.yaml"
        feed = f"flavour: ticdc, protocol: canal-json, time_zone: UTC, look_seconds: 0.05, path: '{tmp_path}"
        file.write_text(
            f"pipeline: mixed\nlake: {{path: {tmp_path}/lake}}\nsources:\n"
            "  server: {conn_id: server, flavour: mariadb}\n"
            f"  fed: {{{feed}/fed', sql_conn_id: tidb_sql}}\n  bare: {{{feed}/bare'}}\n"
            f"tables: {{include: ['{database}.*', 'shop.*', 'far.*']}}\n"
            "capture: {land_seconds: 0.05, heartbeat_seconds: 0.5}\napply: {mode: batch}\n"
        )
        sql = {"conn_type": "mysql", "host": "127.0.0.1"}
        said = {
            "SERVER": {**sql, "port": mariadb.port, "login": mariadb.user, "password": mariadb.password},
            "TIDB_SQL": {**sql, "port": tidb.port, "login": "root"},
        }
        environment = os.environ | {f"AIRFLOW_CONN_{name}": json.dumps(cells) for name, cells in said.items()}
        found = Mixed(file, database, environment, tidb)
        pipeline, lake = config.load(file), LakeFiles(str(tmp_path / "lake"))

        def capture(source: str) -> None:
            state = tmp_path / "state"
            run = pipelines.capture_run(pipeline, source, state, sources=found.connection, lakes=found.connection)
            run.run(60, idle_seconds=0.8)

        capture("server")
        with mariadb.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20))")
            cursor.executemany("INSERT INTO t VALUES (%s, %s)", ROWS)
            connection.commit()
        with tidb.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE Shop")
            for table in ("Orders", "Planted"):
                cursor.execute(CREATE_PLAIN.format("Shop", table))
                cursor.executemany(f"INSERT INTO Shop.{table} VALUES (%s, %s)", ROWS)
            cursor.execute("UPDATE Shop.Planted SET word = 'planted' WHERE id = 2")
        tso = int(tidb.control("/tso"))
        for name, written in (("fed", ("Shop.Orders", "Shop.Planted")), ("bare", ("far.t",))):
            fed(tmp_path / name, tso, *written)
            capture(name)
        capture("server")
        app = Application(BackgroundSession(lambda: spark), pipeline, lake, BronzeIndex(lake))
        run_apply(app, report=print)
        yield found
    finally:
        tidb.stop()


def test_each_table_is_compared_by_its_sources_way_and_what_cannot_be_is_named(mixed: Mixed) -> None:
    with mixed.tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE shop.orders SET word = 'later' WHERE id = 1")  # behind the cut: no difference
    server = f"{mixed.database}.t"
    assert mixed.verified() == {
        server: Outcome.EQUAL,
        "shop.orders": Outcome.EQUAL,
        "shop.planted": Outcome.DIFFERENT,
        "far.t": Outcome.UNVERIFIED,
    }
    code, told = mixed.command("--table", "far.t", "--table", "shop.orders")
    assert (code, told["equal"], told["complete"], told["passed"]) == (1, True, False, False)
    (why,) = [table["reason"] for table in told["tables"] if table["outcome"] == "unverified"]
    assert "source bare is a changefeed" in why
    assert "sql_conn_id" in why
    code, told = mixed.command("--table", "shop.orders", "--table", server)
    assert (code, told["passed"]) == (0, True)
