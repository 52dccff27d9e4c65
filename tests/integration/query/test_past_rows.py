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


def test_histories_answer_for_times_before_the_kept_cuts(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Of a table made in the log, of one read by a snapshot, and of one whose history began later: through DDL and
    TRUNCATE, from where each is complete. A plain table is refused, and another writer's DELETE ends what was known.
    """
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.seen {TABLE}")
    mariadb.query(f"INSERT INTO {database}.seen VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
    names = f"'{database}.t', '{database}.tick', '{database}.seen'"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: [{names}]", apply=", writer: positional")
    road.capture()
    past = Past(mariadb, database, ["t", "seen", "late"])
    past.begin()
    past.done(f"CREATE TABLE t {TABLE}", f"CREATE TABLE late {TABLE}", f"CREATE TABLE plain {TABLE}")
    for table in ("t", "late", "plain"):
        past.done(f"INSERT INTO {table} VALUES (1, 'x', 0), (2, 'y', 0)")
    reader = PlainReader(road, database, "seen")
    while not reader.told.is_read:
        reader.low()
        reader.read(10)
        past.done("UPDATE seen SET n = n + 1", "DELETE FROM seen WHERE id = 3")
        reader.high()
        taken(road, spark)
    reader.end()
    taken(road, spark)
    reader.close()
    past.done("UPDATE t SET n = 5 WHERE id = 1", "DELETE FROM late WHERE id = 2", "INSERT INTO seen VALUES (9, 'z', 0)")
    past.done("TRUNCATE TABLE t")
    past.done("INSERT INTO t VALUES (1, 'again', 1)")
    taken(road, spark)
    road.file.write_text(road.text.replace(names, f"{names}, '{database}.late'"))
    road.pipeline = config.load(road.file)
    past.done("ALTER TABLE t ADD COLUMN more INT DEFAULT 7")
    past.done("UPDATE late SET n = 1", "DELETE FROM seen WHERE id = 1", "UPDATE t SET more = 8")
    taken(road, spark)
    past.done("DELETE FROM late", "INSERT INTO t (id, code) VALUES (4, 'four')", "UPDATE seen SET n = 70")
    past.done("INSERT INTO late VALUES (3, 'three', 3)")
    taken(road, spark)
    past.done()
    taken(road, spark)
    forget(road)
    counts = {table: check(road, past, table, spark) for table in past.names}
    least = {"t": 10, "seen": 6, "late": 1}
    assert all(counts[table] >= wanted for table, wanted in least.items()), counts
    begin = complete_from(road, f"{database}.t")
    assert begin is not None
    assert begin < past.moments(road)[1], "its CREATE is in the log"
    at = past.moments(road)[4]
    with pytest.raises(QueryRefused, match="no cut so old is kept, and it keeps no history"):
        PinnedCut.at(road.lake, "road", at).table(f"{database}.plain")

    spark.sql(f"DELETE FROM delta.`{road.lake.spark_uri(tables.silver_path(database, 't'))}` WHERE NOT _tg_is_current")
    past.done("UPDATE t SET n = 100 WHERE id = 4")
    taken(road, spark)
    after = complete_from(road, f"{database}.t")
    assert after is not None
    assert after > begin, "another writer took versions away"
    forget(road)
    check(road, past, "t")
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0, road.lines
    swap(plan, BackgroundSession(lambda: spark), report=road.lines.append)
    assert complete_from(road, f"{database}.t") == begin
    assert check(road, past, "t") >= counts["t"]


def test_a_lake_of_before_refuses_by_name_until_the_table_changes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{database}.*']")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    past.done(f"CREATE TABLE t {TABLE}")
    taken(road, spark)
    past.done("INSERT INTO t VALUES (1, 'x', 0)")
    taken(road, spark)
    forget(road, as_before=True)
    at = past.moments(road)[0]
    with pytest.raises(CutForgotten, match="nothing says yet from when on its history is complete"):
        PinnedCut.at(road.lake, "road", at)
    past.done("INSERT INTO t VALUES (2, 'y', 0)")
    taken(road, spark)
    past.done("INSERT INTO t VALUES (3, 'z', 0)")
    taken(road, spark)
    forget(road)
    assert check(road, past, "t") == 1
