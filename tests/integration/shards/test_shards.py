"""Shards of one table on several servers of both flavours: `shop_N`.`orders_N` of each flow into one silver table.

In:  real servers, one of them a pair that fails over, one that is dead for a while; rows that move between shards, one
     key on two shards, DDL that arrives shard by shard.
Out: silver equal to the union of the servers' own SELECTs; while a source is dead, the tables that it
     doesn't feed go on, and those that it does feed wait by name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.reached import run_to
from tests.kit.road import Road
from tests.support.captures import binlog_end
from tests.support.own_server import own_server_or_skip
from tests.support.readers import by_duckdb
from tests.support.replica_pair import Pair, promote, replica_pair
from tests.support.seeds import many
from tidegate import config, tables
from tidegate.capture.standing import standing
from tidegate.errors import SourceUnavailable
from tidegate.lake.standing import held
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo, Endpoint
from tidegate.mysql.looking.asked import ask
from tidegate.position import Position

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

DEFINED = "id BIGINT PRIMARY KEY, place INT, amount DECIMAL(8, 2), note VARCHAR(20)"
COLUMNS = ("id", "place", "amount", "note", "extra")
Row = tuple[object, ...]
PROVEN_SECONDS = 1.4  # more than until a second heartbeat


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with replica_pair("mariadb", tmp_path / "pair") as found:
        yield found


class Shards(Road):
    """Sources with `count` shards each, and a table `alone` each that nothing else flows into."""

    def __init__(self, servers: dict[str, Server], folder: Path, count: int) -> None:
        super().__init__(next(iter(servers.values())), folder, include=f"(shop_{os.getpid()}\\d+|only_\\w+).*")
        self.servers = servers
        self.others: dict[str, Server] = {}  # source -> its other host
        self.shards = [
            (source, f"shop_{os.getpid()}{at * 10 + number % 2}", f"orders_{number}")
            for at, source in enumerate(servers)
            for number in range(count)
        ]
        entries = ", ".join(
            f"{source}: {{conn_id: {source}, flavour: {one.flavour}}}" for source, one in servers.items()
        )
        head, _, tail = self.text.partition("sources: ")
        route = f"{{match: 'shop_\\d+.(\\w+)_\\d+', to: 'shop_{os.getpid()}.\\1'}}"
        text = f"{head}sources: {{{entries}}}\n{tail.partition(chr(10))[2]}"
        self.file.write_text(text.replace("']}", f"'], routes: [{route}]}}"))
        self.pipeline = config.load(self.file)
        self.logical = f"shop_{os.getpid()}.orders"

    def create(self) -> None:
        for source, server in self.servers.items():
            for name in sorted({database for of, database, _ in self.shards if of == source} | {f"only_{source}"}):
                server.query(f"CREATE DATABASE {name}")
            server.query(f"CREATE TABLE only_{source}.alone (id INT PRIMARY KEY)")
        for shard in self.shards:
            self.on(shard, f"CREATE TABLE {{t}} ({DEFINED})")

    def drop(self) -> None:
        for source, server in self.servers.items():
            if server.process is None:
                server.start()
            for name in {database for of, database, _ in self.shards if of == source} | {f"only_{source}"}:
                server.query(f"DROP DATABASE IF EXISTS {name}")

    def on(self, shard: tuple[str, str, str], *statements: str) -> None:
        source, database, table = shard
        with self.servers[source].connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement.format(t=table))

    def fill(self, first: int, rows: int = 3) -> None:
        """So many rows in each shard that can be reached."""
        for at, shard in enumerate(self.shards):
            if self.servers[shard[0]].process is not None:
                values = [f"({first + at * rows + n}, {at}, {n}.50, 'from {at}')" for n in range(rows)]
                self.on(shard, f"INSERT INTO {{t}} (id, place, amount, note) VALUES {', '.join(values)}")

    def info_at(self, source: str) -> ConnectionInfo:
        server, other = self.servers[source], self.others.get(source)
        info = ConnectionInfo(server.host, server.port, server.user, server.password)
        return replace(info, others=(Endpoint(other.host, other.port),)) if other else info

    def capture_all(self, last: str = "") -> None:
        """Each source's last heartbeat is later than all rows of the others, by whole seconds too."""
        time.sleep(1.1 - time.time() % 1)
        for source, server in sorted(self.servers.items(), key=lambda one: one[0] == last):
            if server.process is not None or source in self.others:
                self.capture(source)

    def capture(self, source: str) -> None:
        """Until a heartbeat proves that nothing of it is left; of a source with two servers, until it is quiet."""
        run = binlog_run(self.pipeline, source, self.info_at(source), self.folder / "state")
        goal = None if source in self.others else Position.of(*binlog_end(self.servers[source]))
        run_to(run, goal, 60, idle_seconds=PROVEN_SECONDS, heartbeat=True)

    def at_sources(self) -> list[Row]:
        """The union of the servers' own SELECTs, of columns that a shard hasn't got yet NULL."""
        found: list[Row] = []
        for source, database, table in self.shards:
            server = self.servers[source]
            there = {row[0] for row in server.query(f"SHOW COLUMNS FROM {database}.{table}")}
            cells = ", ".join(name if name in there else "NULL" for name in COLUMNS)
            rows = server.query(f"SELECT {cells} FROM {database}.{table}")
            found += [(source, database, table, *row) for row in rows]
        return sorted(found, key=str)

    def in_silver(self) -> list[Row]:
        rows = by_duckdb(self._uri(self.logical)).to_pylist()
        names = (tables.SHARD_SOURCE, tables.SHARD_DATABASE, tables.SHARD_TABLE, *COLUMNS)
        return sorted((tuple(row.get(name) for name in names) for row in rows), key=str)

    def alone(self, source: str) -> int:
        return by_duckdb(self._uri(f"only_{source}.alone")).num_rows

    def _uri(self, name: str) -> str:
        return self.lake.uri(tables.silver_path(*name.split(".")))

    def equal(self, spark: SparkSession, last: str = "") -> Application:
        """Capture and apply all, and compare. last: a source that was left behind, and is to reach the others' cut."""
        self.capture_all(last)
        app = self.apply(spark)
        waits = {name: state.reason for name, state in app.states.items() if state.state.waits}
        assert not waits
        assert self.in_silver() == self.at_sources()
        return app


def test_shards_on_servers_of_both_flavours_are_one_table_whatever_happens_to_them(
    mariadb: Server, mysql9: Server, pair: Pair, spark: SparkSession, tmp_path: Path
) -> None:
    """Four servers; in `make test-long` five, and 64 shards instead of 6."""
    servers = {"m": mariadb, "y": mysql9, "p": pair.primary}
    with ExitStack() as ending:
        if many(0, 1):
            servers["z"] = ending.enter_context(own_server_or_skip("mysql9", tmp_path / "z"))
        road = Shards(servers, tmp_path, many(2, 16))
        ending.callback(road.drop)
        road.capture_all()
        road.create()
        road.fill(1000)
        road.equal(spark)
        _rows_move_and_keys_meet(road, spark)
        _ddl_arrives_shard_by_shard(road, spark)
        _a_source_is_dead_for_a_while(road, spark)
        _a_source_fails_over(road, pair, spark)


def _rows_move_and_keys_meet(road: Shards, spark: SparkSession) -> None:
    """Between servers, and back; a key on two shards is two rows, told apart by where they are."""
    here, there = road.shards[0], road.shards[-1]
    road.on(there, "INSERT INTO {t} VALUES (1000, -1, 7, 'moved')")  # it is on both for a while, as migrations do it
    road.equal(spark)
    road.on(here, "DELETE FROM {t} WHERE id IN (1000, 1001)")
    road.on(there, "INSERT INTO {t} VALUES (1001, -1, 8, 'moved')")
    road.on(road.shards[1], "INSERT INTO {t} VALUES (5, 1, 1, 'back')", "DELETE FROM {t} WHERE id = 5")
    road.equal(spark)


def _ddl_arrives_shard_by_shard(road: Shards, spark: SparkSession) -> None:
    """Shards that have it and shards that don't go on, each with rows of its own kind."""
    ddl = "ALTER TABLE {t} ADD COLUMN extra VARCHAR(12) DEFAULT 'old'"
    wider = "ALTER TABLE {t} MODIFY note VARCHAR(60), MODIFY amount DECIMAL(12, 2), MODIFY place BIGINT"
    large = "UPDATE {t} SET amount = 9876543210.25, place = 9876543210 WHERE extra = 'new'"
    first, rest = road.shards[::3], [shard for at, shard in enumerate(road.shards) if at % 3]
    for number, part in enumerate((first, rest)):
        for at, shard in enumerate(part):
            road.on(
                shard, ddl, f"INSERT INTO {{t}} VALUES ({9000 + number * 500 + at}, 0, 1, 'n', 'new')", wider, large
            )
        road.fill(10_000 + number * 1000, rows=1)
        road.equal(spark)


def _a_source_is_dead_for_a_while(road: Shards, spark: SparkSession) -> None:
    """What it feeds waits by name where it was, the rest goes on; all is there once it is back."""
    road.servers["m"].kill()
    road.fill(20_000, rows=1)
    road.servers["y"].query("INSERT INTO only_y.alone VALUES (1)")
    road.capture_all()
    with pytest.raises(SourceUnavailable):
        binlog_run(road.pipeline, "m", road.info_at("m"), road.folder / "state").run(5)
    before, patient = road.in_silver(), road.pipeline
    needed = patient.sources["m"].model_copy(update={"required": True, "max_hold_seconds": 0})
    road.pipeline = patient.model_copy(update={"sources": {**patient.sources, "m": needed}})
    road.apply(spark)
    assert not [name for name, state in held.last_states(road.lake).items() if state.state.waits], "it is required"
    hasty = needed.model_copy(update={"required": False})
    road.pipeline = patient.model_copy(update={"sources": {**patient.sources, "m": hasty}})
    road.apply(spark)
    states = held.last_states(road.lake)
    assert {name for name, state in states.items() if state.state.waits} == {road.logical, "only_m.alone"}
    assert "source m is captured up to" in states[road.logical].reason
    assert road.in_silver() == before, "a part of the shards would be no state that ever was"
    assert road.alone("y") == 1
    said = standing(patient, road.lake, lambda name: ask(patient, lambda: road.info_at(name)))
    assert [source.source for source in said.left_behind] == ["m"]
    assert said.skew_seconds < 60, "one machine has one clock, and may take its time to tell"
    road.pipeline = patient
    road.servers["m"].start()
    road.equal(spark, last="m")


def _a_source_fails_over(road: Shards, pair: Pair, spark: SparkSession) -> None:
    pair.replicated()
    road.others["p"] = pair.replica
    pair.replica.password = pair.primary.password
    with pair.replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"SET PASSWORD FOR '{pair.replica.user}'@'%' = PASSWORD('{pair.primary.password}')")
    promote(pair.replica)
    pair.primary.kill()
    road.servers["p"] = pair.replica
    road.others["p"] = pair.primary
    road.fill(30_000, rows=1)
    road.equal(spark)
