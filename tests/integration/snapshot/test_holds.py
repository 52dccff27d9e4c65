"""Tables that are held before their snapshot or during it, chunks that are damaged, shards: the same exactness."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.snapshot.test_chunks import finished, road_of, state, stepped, stocked
from tests.kit.road import Road
from tests.kit.snapshots import Reader, Reading, patiently, states
from tests.kit.spark import no_spark
from tests.support.plain_snapshot import PlainReader
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.cli.snapshot_lines import progress_lines
from tidegate.errors import LakeRefused
from tidegate.lake import control
from tidegate.lake.standing.held import last_states, release, to_row
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.snapshot.progress.events import EventKind, SnapshotState
from tidegate.snapshot.progress.held_back import held_back
from tidegate.snapshot.progress.requests import tell_tables
from tidegate.snapshot.work import SnapshotWork
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import WATERMARK_DATABASE, State

pytestmark = [pytest.mark.server, pytest.mark.spark]


def _begun(server: Server, fresh_database: FreshDatabase, spark: SparkSession, folder: Path) -> tuple[str, Road]:
    """A database whose table t has rows from before the road, which has begun."""
    database = fresh_database(server)
    stocked(server, database)
    road = road_of(server, folder, database)
    stepped(road, spark)
    return database, road


def test_a_table_that_is_held_meanwhile_takes_its_waves_when_it_catches_up(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, road = _begun(mariadb, fresh_database, spark, tmp_path)
    mariadb.query(f"CREATE TABLE {database}.other (id INT PRIMARY KEY)")
    reader = PlainReader(road, database, "t")
    reader.whole_wave(count=2, chunks=1)
    app = stepped(road, spark)
    name = f"{database}.t"
    held = Standing(State.HELD, "for a while", Cause.WRITE_FAILED, app.positions.applied(name), times=1)
    control.append(road.lake, tables.TABLE_STATES, [to_row(held, "road", name, datetime.now(UTC))])
    reader.low()
    reader.read(4)
    mariadb.query(f"UPDATE {database}.t SET a = 'later' WHERE id IN (1, 4, 9)")
    mariadb.query(f"INSERT INTO {database}.other VALUES (1)")
    assert state(stepped(road, spark), database, "t") == "held"
    reader.high()
    mariadb.query(f"DELETE FROM {database}.t WHERE id = 5")
    stepped(road, spark)
    assert reader.told.waiting, "nothing is lost: the wave is taken once the table goes on"
    release(road.lake, last_states(road.lake)[name])
    app = stepped(road, spark)
    assert not reader.told.waiting
    assert state(app, database, "t") == "snapshot", "it has caught up, and lacks rows still"
    app = finished(road, spark, reader)
    assert state(app, database, "t") == "active"
    assert road.assert_equal() == {"t": 9, "other": 1}
    reader.close()


def test_a_table_that_is_renamed_away_and_back_while_it_is_read_is_read_anew(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, road = _begun(mariadb, fresh_database, spark, tmp_path)
    reader = PlainReader(road, database, "t")
    reader.whole_wave()
    stepped(road, spark)
    mariadb.query(f"RENAME TABLE {database}.t TO {database}.away")
    mariadb.query(f"RENAME TABLE {database}.away TO {database}.t")
    reader.end()
    app = stepped(road, spark)
    assert (state(app, database, "t"), state(app, database, "away")) == ("held", "held")
    assert reader.told.state is SnapshotState.FAILED, "nothing would ever end it, and nobody ask for another one"
    again = PlainReader(road, database, "t", reader)
    again.whole_wave()
    stepped(road, spark)
    again.end()
    app = stepped(road, spark)
    assert (state(app, database, "t"), state(app, database, "away")) == ("active", "dropped")
    assert road.assert_equal() == {"t": 10}
    for one in (reader, again):
        one.close()


def test_a_table_that_was_renamed_away_while_it_was_read_is_over_once_its_rows_are_read_under_the_new_name(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, road = _begun(mariadb, fresh_database, spark, tmp_path)
    reader = PlainReader(road, database, "t")
    reader.whole_wave(count=2, chunks=1)
    stepped(road, spark)
    mariadb.query(f"RENAME TABLE {database}.t TO {database}.named")
    reader.record(EventKind.FAILED, reason="there is no such table at the source")
    app = stepped(road, spark)
    assert (state(app, database, "t"), state(app, database, "named")) == ("held", "held")
    again = PlainReader(road, database, "named", reader)
    again.whole_wave()
    road.capture()
    run_apply(app, report=road.lines.append)
    for step in (again.end, lambda: mariadb.query(f"INSERT INTO {database}.named VALUES (11, 'x', 1)")):
        step()
        road.capture()
        run_apply(app, report=road.lines.append)  # the same application: it has looked at them before
    assert (state(app, database, "t"), state(app, database, "named")) == ("dropped", "active")
    assert road.assert_equal() == {"named": 11}
    for one in (reader, again):
        one.close()


def test_a_chunk_that_is_damaged_or_missing_refuses_its_wave(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, road = _begun(mariadb, fresh_database, spark, tmp_path)
    reader = PlainReader(road, database, "t")
    reader.ask("SET SESSION binlog_row_image = 'MINIMAL'")
    reader.low()
    reader.read(3)
    (file,) = (tmp_path / "lake" / "bronze" / "chunks").rglob("*.parquet")
    whole = bytearray(file.read_bytes())
    at = whole.index(reader.wave.chunks[0].payload) + 40  # type: ignore[union-attr, arg-type]
    whole[at] ^= 1
    file.write_bytes(whole)
    reader.high()
    app = stepped(road, spark)
    assert state(app, database, "t") == "snapshot", "it began, without the rows of this wave"
    assert "CRC-32C" in reader.told.refused[0]
    reader.low()
    reader.read(3)
    reader.high(crc=1)
    stepped(road, spark)
    assert "or others than the 1 that were read" in reader.told.refused[1]
    reader.low()
    reader.read(3)
    reader.high(dies=True)  # its reader is gone; the next one reads the same again
    app = finished(road, spark, reader)
    assert state(app, database, "t") == "active"
    assert road.assert_equal() == {"t": 10}
    reader.close()


def test_a_table_held_for_its_columns_gets_those_that_the_reader_saw(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = road_of(mariadb, tmp_path, database)
    road.capture()
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(20), n INT)")
    mariadb.query(f"INSERT INTO {database}.t VALUES (1, 'x', 1), (2, 'x', 2)")
    stepped(road, spark)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("ALTER TABLE t DROP COLUMN a, ADD COLUMN b BIGINT FIRST")
    mariadb.query(f"INSERT INTO {database}.t VALUES (30, 3, 3)")
    assert state(stepped(road, spark), database, "t") == "held"
    reader = PlainReader(road, database, "t")
    keeps = (database, "t").__eq__
    with mariadb.connect() as connection:
        place = Position.of("binlog.000001", 4)
        seen = read_schema(connection, "one", lambda *name: keeps(name), place, first_id=1)
    definition = next(replace(version, version=0) for version in seen if version.table)
    reader.low()
    reader.read(9, definition)
    reader.high()
    stepped(road, spark)
    assert "columns aren't known" in reader.told.refused[0]
    reader.low()
    reader.read(9, definition)
    reader.high(definition=definition)
    mariadb.query(f"UPDATE {database}.t SET b = 31 WHERE id = 3")
    app = stepped(road, spark)
    assert state(app, database, "t") == "snapshot", reader.told
    assert state(finished(road, spark, reader), database, "t") == "active"
    assert road.assert_equal() == {"t": 3}
    reader.close()


def test_a_shard_is_snapshotted_in_place_beside_others(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    more = f", routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}]"
    road = road_of(mariadb, tmp_path, database, more=more)
    road.capture()
    for shard in (1, 2):
        mariadb.query(f"CREATE TABLE {database}.t_{shard} (id INT PRIMARY KEY, a VARCHAR(20))")
        mariadb.query(f"INSERT INTO {database}.t_{shard} VALUES (1, 's{shard}'), (2, 's{shard}'), (3, 's{shard}')")
    stepped(road, spark)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("DELETE FROM t_1 WHERE id = 1")
        cursor.execute("UPDATE t_1 SET a = 'unheard' WHERE id = 2")
        connection.commit()
    reader = PlainReader(road, database, "t_1")
    reader.low()
    mariadb.query(f"UPDATE {database}.t_2 SET a = 'one' WHERE id = 2")
    reader.read(2)
    mariadb.query(f"UPDATE {database}.t_2 SET a = 'two' WHERE id = 2")
    stepped(road, spark)
    mariadb.query(f"TRUNCATE TABLE {database}.t_2")
    stepped(road, spark)
    reader.high()
    stepped(road, spark)
    assert not reader.told.refused, "what a DDL did to another shard isn't done again"
    app = finished(road, spark, reader)
    assert state(app, database, "t") == "active"
    assert road.assert_equal() == {"t_1": 2, "t_2": 0}
    reader.close()


def test_a_rebuild_reads_the_marks_and_chunks_that_bronze_has(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, road = _begun(mariadb, fresh_database, spark, tmp_path)
    reader = PlainReader(road, database, "t")
    reader.low()
    reader.read(4)
    mariadb.query(f"UPDATE {database}.t SET id = 90 WHERE id = 2")
    stepped(road, spark)
    reader.high()
    mariadb.query(f"ALTER TABLE {database}.t ADD COLUMN c INT NOT NULL DEFAULT 5")
    stepped(road, spark)
    finished(road, spark, reader)
    mariadb.query(f"DELETE FROM {database}.t WHERE id = 3")
    stepped(road, spark)
    assert road.assert_equal() == {"t": 9}
    lines: list[str] = []
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
    code = rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=lines.append)
    assert (code, lines[-1]) == (0, "equal")
    reader.close()


def test_a_table_that_the_pipeline_file_leaves_fails_its_snapshot(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, road = _begun(mariadb, fresh_database, spark, tmp_path)
    reader = PlainReader(road, database, "t")
    reader.whole_wave(count=2, chunks=1)
    assert state(stepped(road, spark), database, "t") == "snapshot"
    road.file.write_text(road.text.replace("include: ", f"exclude: ['{database}.t'], include: "))
    road.pipeline = config.load(road.file)
    reader.whole_wave(count=2, chunks=1)
    assert state(stepped(road, spark), database, "t") == "left"
    assert reader.told.state is SnapshotState.FAILED, "nobody reads on what apply refuses for ever"
    reader.close()


def test_a_hold_that_no_snapshot_ends_is_told_and_a_rebuild_ends_it_once_that_is_cancelled(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The window that takes the snapshot's first wave holds the table: its deleted rows would keep the other type."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", soft_delete: ['{database}.soft']")
    road.capture()
    for table in ("soft", "plain"):
        mariadb.query(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY, v INT)")
        mariadb.query(f"INSERT INTO {database}.{table} VALUES (1, 10), (2, 20), (3, 30)")
    stepped(road, spark)
    silver = f"delta.`{road.lake.uri(tables.silver_path(database, 'soft'))}`"
    for change in ("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "DROP COLUMN v", "ADD COLUMN v STRING"):
        spark.sql(f"ALTER TABLE {silver} {change}")
    work = SnapshotWork(road.pipeline, road.lake, lambda _: road.info, road.lines.append)
    reader = Reader(work, f"{database}.soft", f"{database}.plain")
    for _ in patiently():
        reader.is_over(0.3)
        app = stepped(road, spark)
        of = {table.table: table for table in work.told.tables()}
        if of and of["plain"].state is SnapshotState.DONE and of["soft"].waiting:
            break
    assert state(app, database, "soft") == "held"
    assert not of["soft"].left, "all of it is read"
    ((place, why),) = held_back(road.pipeline, road.lake, of.values()).items()
    assert place == ("one", (database, "soft"))
    assert "rebuild --swap" in why
    assert "its waves wait for the end of that" in " ".join(progress_lines(list(of.values()), {}, {}, {place: why}))
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.soft", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
    with pytest.raises(LakeRefused, match=f"tidegate snapshot cancel road {database}.soft"):
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)
    tell_tables(road.lake, "road", [of["soft"]], EventKind.CANCELLED)
    assert reader.is_over(60), "nothing is left to wait for"
    swap(plan, BackgroundSession(no_spark), report=road.lines.append)
    assert state(stepped(road, spark), database, "soft") == "active"
    assert road.assert_equal() == {"soft": 3, "plain": 3}


def test_a_vector_that_was_a_text_once_is_read_again_when_it_is_whole(
    mysql9: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """MySQL lets ALTER make a VECTOR of any bytes. The log has them until an UPDATE stores floats."""
    database = fresh_database(mysql9)
    road = Road(mysql9, tmp_path, include=f"{database}.*")
    road.capture()
    mysql9.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mysql9.user}'@'%'")
    mysql9.query(f"GRANT LOCK TABLES ON *.* TO '{mysql9.user}'@'%'")
    mysql9.query(f"CREATE TABLE {database}.t (a BLOB)")
    mysql9.query(f"INSERT INTO {database}.t VALUES ('1')")
    mysql9.query(f"ALTER TABLE {database}.t MODIFY a VECTOR(2)")
    mysql9.query(f"UPDATE {database}.t SET a = TO_VECTOR('[1,2]')")
    road.capture()
    assert states(road.apply(spark)) == {"t": "held"}
    assert states(Reading(road, spark).run()) == {"t": "active"}
    assert road.assert_equal() == {"t": 1}
