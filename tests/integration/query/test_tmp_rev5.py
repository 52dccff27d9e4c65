"""Tables with history answer for times whose cuts are gone: as the server's own SELECT was then, or by a refusal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.past import Past, shown
from tests.support.plain_snapshot import PlainReader
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.errors import CutForgotten, QueryRefused
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.cuts.kept_cuts import kept_rows
from tidegate.lake.cuts.published import known_cuts
from tidegate.local.server import Server
from tidegate.query.pinned import PinnedCut

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLE = "(id INT PRIMARY KEY, code VARCHAR(20), n INT)"


def forget(road: Road, *, as_before: bool = False) -> None:
    """As maintain does long after: of the cuts only the newest one stays. as_before: as an older release left it."""

    def stays(rows: pa.Table) -> pa.Table:
        rows = kept_rows(rows, datetime.now(UTC) + timedelta(days=1), timedelta(0), 60)
        if not as_before:
            return rows
        at = rows.schema.get_field_index("history_ts")
        return rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.int64()))

    rewrite(road.lake, tables.CUTS, stays)


def taken(road: Road, spark: SparkSession) -> None:
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]


def complete_from(road: Road, name: str) -> int | None:
    rows = control.read(road.lake, tables.CUTS).sort_by([("cut_ts", "ascending"), ("published_at", "ascending")])
    known = [row["history_ts"] for row in rows.to_pylist() if row["table"] == name]
    last: int | None = known[-1]
    return last


def read_while_it_changes(road: Road, past: Past, spark: SparkSession) -> None:
    """A snapshot of `seen`."""
    reader = PlainReader(road, past.database, "seen")
    while not reader.told.is_read:
        reader.low()
        reader.read(10)
        past.done("UPDATE seen SET n = n + 1", "DELETE FROM seen WHERE id = 3")
        reader.high()
        taken(road, spark)
    reader.end()
    taken(road, spark)
    reader.close()


def check(road: Road, past: Past, table: str, spark: SparkSession | None = None) -> int:
    """Every moment from the recorded beginning on, up to the kept cut, by each reader; how many there were."""
    name = f"{past.database}.{table}"
    begin, moments, compared = complete_from(road, name), past.moments(road), 0
    assert begin is not None
    for number, state in enumerate(past.states):
        at = moments[number]
        if at >= known_cuts(road.lake)[0]:
            continue
        if at < begin:
            with pytest.raises((CutForgotten, QueryRefused), match=r"complete from|history"):
                PinnedCut.at(road.lake, "road", at).table(name)
            continue
        wanted = state.get(table, [])
        with PinnedCut.at(road.lake, "road", at) as cut:
            assert cut.past_ts == at
            readers: list[Any] = [cut.connection().sql(f'FROM "{past.database}"."{table}"').to_arrow_table()]
            if compared % 7 == 0:
                readers.append(cut.polars(name).collect().to_arrow())
                readers += [cut.spark(spark, name).toArrow()] if spark is not None else []
            for rows in readers:
                live = [row for row in rows.to_pylist() if row[tables.IS_CURRENT]]
                assert all(row[tables.VALID_TO] is None for row in live)
                shared = {column for row in wanted[:1] for column in row}.intersection(rows.column_names)
                assert shown(live, shared) == shown(wanted, shared), f"state {number} of {table} at {at}"
        compared += 1
    return compared




from tests.integration.road.test_accept import _accept
from tests.support.replica_pair import purge_logs
from tests.support.servers import ROOT
from tidegate.errors import PositionLost
from tidegate.local import mariadb as mariadb_package


@pytest.mark.parametrize("apart", [True, False])
def test_unlogged(mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, apart: bool) -> None:
    database = fresh_database(mariadb)
    hold = "}\nddl: {unlogged_cascades: hold"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{database}.t']", apply=hold)
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done("CREATE TABLE p (id INT PRIMARY KEY)")
    past.done("INSERT INTO p VALUES (1), (2)")
    past.done("CREATE TABLE t (id INT PRIMARY KEY, p INT)")
    past.done("INSERT INTO t VALUES (1, 1), (2, 2)")
    taken(road, spark)
    begin = complete_from(road, f"{database}.t")
    past.done("ALTER TABLE t ADD CONSTRAINT fk_t FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE")
    past.done("DELETE FROM p WHERE id = 1")
    if apart:
        road.capture()
        road.apply(spark)
    past.done("ALTER TABLE t DROP FOREIGN KEY fk_t")
    past.done("TRUNCATE TABLE t")
    past.done("INSERT INTO t VALUES (5, 2)")
    taken(road, spark)
    past.done("INSERT INTO t VALUES (6, 2)")
    taken(road, spark)
    after = complete_from(road, f"{database}.t")
    print("UNLOGGED", apart, begin, after)
    forget(road)
    check(road, past, "t")


@pytest.mark.parametrize("apart", [True, False])
def test_gap(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, apart: bool) -> None:
    server = mariadb_package.MariaDB(tmp_path / "server", mariadb_package.install(ROOT))
    with server:
        server.query("CREATE DATABASE shop")
        road = Road(server, tmp_path, include="shop.*", extra=", history: ['shop.t']")
        road.capture()
        server.query("CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)")
        server.query("INSERT INTO shop.t VALUES (1, 0)")
        taken(road, spark)
        begin = complete_from(road, "shop.t")
        server.query("UPDATE shop.t SET n = 1")
        purge_logs(server)
        with pytest.raises(PositionLost):
            road.capture(seconds=30)
        _accept(road, monkeypatch, "--lost")
        if apart:
            road.capture()
            road.apply(spark)
        server.query("CREATE OR REPLACE TABLE shop.t (id INT PRIMARY KEY, n INT)")
        server.query("INSERT INTO shop.t VALUES (7, 7)")
        taken(road, spark)
        after = complete_from(road, "shop.t")
        print("GAP", apart, begin, after)
        assert begin is not None and after is not None and after > begin, "an UPDATE was lost with the log"
