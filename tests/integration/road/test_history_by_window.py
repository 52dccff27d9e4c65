"""One version of a row per window, on real servers: its versions are those that the server's own states make."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.past import Past, check_spans
from tests.support.past_by_window import by_window, in_silver, parts_at
from tests.support.plain_snapshot import PlainReader
from tests.support.readers import READERS
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

BOTH: Final = pytest.mark.parametrize("writer", ["positional", "merge"])
CREATE: Final = "CREATE TABLE t (id INT PRIMARY KEY, w INT NOT NULL, code VARCHAR(20))"


def begun(server: Server, folder: Path, database: str, writer: str) -> tuple[Road, Past]:
    """`tick` keeps every change: it says when each transaction was."""
    keys = f", history: ['{database}.*'], history_by_window: ['{database}.t']"
    road = Road(server, folder, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    past = Past(server, database, ["t"])
    past.begin()
    return road, past


def wrote(past: Past, rng: random.Random) -> None:
    """A transaction that writes, changes, moves or deletes rows of few keys. A row has the number of its last one."""
    number, key, other = len(past.states), rng.randrange(6), rng.randrange(6)
    past.done(
        "BEGIN",
        rng.choice(
            [
                f"REPLACE INTO t (id, w, code) VALUES ({key}, {number}, 'c{other}'), ({key + 3}, {number}, NULL)",
                f"UPDATE t SET w = {number}, code = 'u{other}' WHERE id <= {key}",
                f"UPDATE IGNORE t SET w = {number}, id = {other} WHERE id = {key}",
                f"DELETE FROM t WHERE id IN ({key}, {other})",
                f"DELETE FROM t WHERE id >= {key}",
            ]
        ),
    )


def applied_ts(road: Road, database: str) -> int:
    """Up to where silver has the log: a window of the table ended there."""
    return road.lake.log(tables.silver_path(database, "t")).state().transaction(tables.app_id("road", f"{database}.t"))


def changed(past: Past, statement: str, parts: set[int]) -> None:
    """A DDL, which parts a window."""
    parts |= {len(past.states) - 1, len(past.states)}
    past.done(statement)


@BOTH
def test_a_window_leaves_the_last_state_of_each_row(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database, rng = fresh_database(any_server), random.Random(seed())
    road, past = begun(any_server, tmp_path, database, writer)
    parts, stamps = set[int](), list[int]()
    changed(past, CREATE, parts)
    for round_number in range(4):
        for _ in range(15):
            wrote(past, rng)
        past.done("BEGIN", f"REPLACE INTO t (id, w, code) VALUES (77, {len(past.states)}, 'came')")
        past.done("BEGIN", "DELETE FROM t WHERE id = 77")
        if round_number == 1:
            changed(past, "TRUNCATE TABLE t", parts)
            wrote(past, rng)
        if round_number == 2:
            changed(past, "ALTER TABLE t ADD COLUMN extra INT DEFAULT 7", parts)
            wrote(past, rng)
        road.capture()
        app = road.apply(spark)
        assert not [state.reason for state in app.states.values() if state.state == "held"]
        road.assert_equal()
        stamps.append(applied_ts(road, database))
    moments = past.moments(road)
    wanted = by_window(past, "t", parts | parts_at(moments, stamps))
    assert in_silver(road, past, moments, "t", parts) == wanted
    assert not [version for version in wanted if version[0] == 77], "it came and went in each window"
    every = by_window(past, "t", range(len(past.states)))
    assert len(wanted) < len(every), "some were left out, or this shows nothing"
    other = "merge" if writer == "positional" else "positional"
    assert_rebuilt(road, past, spark, other, parts)


def assert_rebuilt(road: Road, past: Past, spark: SparkSession, writer: str, parts: set[int]) -> None:
    """A rebuild's windows are its own: here one, parted by the statements."""
    path, name = road.folder / "other.yaml", f"{past.database}.t"
    for keys, ends in ((f", history_by_window: ['{name}']", parts), ("", set(range(len(past.states))))):
        told, to = list[str](), f"by_{writer}_{len(ends)}"
        text = road.text.replace(f", history_by_window: ['{name}']", keys)
        path.write_text(text.replace("writer: merge", "writer: auto").replace("writer: positional", "writer: auto"))
        path.write_text(path.read_text().replace("writer: auto", f"writer: {writer}"))
        plan = Rebuild.plan(config.load(path), road.lake, name, "", to)
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=bool(keys), report=told.append) == 0, told
        assert in_silver(road, past, past.moments(road), to, parts) == by_window_of(past, to, ends)
        if keys:
            assert "1 window:" in told[-2], told
            assert "old versions left out" in told[-1], told


def by_window_of(past: Past, name: str, ends: set[int]) -> list[tuple[int, int, int, int | None]]:
    assert name.startswith("by_")
    return by_window(past, "t", ends)


@BOTH
def test_a_window_that_dies_and_comes_again_with_more_leaves_versions_that_windows_make(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Silver's versions are those of windows that end where silver was committed, and nowhere else."""
    database, rng = fresh_database(mariadb), random.Random(seed())
    road, past = begun(mariadb, tmp_path, database, writer)
    parts, stamps = set[int](), list[int]()
    changed(past, CREATE, parts)
    road.capture()
    road.apply(spark)
    points = ["apply_after_decode", "apply_in_merge", "apply_after_merge", "apply_before_publish"]
    if writer == "positional":
        points += ["apply_before_commit", "apply_after_commit"]
    rng.shuffle(points)
    for point in points:
        for _ in range(6):
            wrote(past, rng)
        if point == "apply_before_publish":
            changed(past, "TRUNCATE TABLE t", parts)
            for _ in range(4):
                wrote(past, rng)
        road.capture()
        killed(spark, road.file, point)
        stamps.append(applied_ts(road, database))
    for _ in range(6):
        wrote(past, rng)
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    road.assert_equal()
    moments = past.moments(road)
    assert in_silver(road, past, moments, "t", parts) == by_window(past, "t", parts | parts_at(moments, stamps))
    assert 1 < len(set(stamps)) < len(stamps), "some windows died before their commit, and some behind it"


@BOTH
def test_a_snapshot_that_reads_while_rows_change_leaves_the_last_state_of_each(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Beside the same log with every version: each version by windows is one of these, and each cut shows the same."""
    database, rng = fresh_database(mariadb), random.Random(seed())
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, w INT NOT NULL, code VARCHAR(20))")
    mariadb.query(f"INSERT INTO {database}.t SELECT seq, -1, 'old' FROM seq_0_to_59", database=database)
    road, past = begun(mariadb, tmp_path, database, writer)
    road.capture()
    road.apply(spark)
    exact_from, stamps = 0, list[int]()
    for turn in range(2):
        reader = PlainReader(road, database, "t")
        while not reader.told.is_read:
            reader.low()
            while reader.rows_of_wave < 20 and reader.read(10):
                for _ in range(3):
                    wide(past, rng)
            reader.high()
            wide(past, rng)
            if rng.random() < 0.4:  # else a window has several waves, and what changed between them
                road.capture()
                road.apply(spark)
                stamps.append(applied_ts(road, database))
        reader.end()
        road.capture()
        app = road.apply(spark)
        assert app.states[f"{database}.t"].state == "active", app.states[f"{database}.t"].reason
        stamps.append(applied_ts(road, database))
        exact_from = exact_from if turn else len(past.states) - 1
        for _ in range(5):
            wide(past, rng)
        road.capture()
        road.apply(spark)
        stamps.append(applied_ts(road, database))
        reader.close()
        road.assert_equal()
    moments = past.moments(road)
    rows = versions_of(road, database, "t")
    check_spans(rows)
    for number in parts_at(moments, stamps):
        if number >= exact_from:
            at = moments[number]
            valid = {
                row["id"]: row["w"] for row in rows if row[tables.VALID_FROM] <= at < (row[tables.VALID_TO] or 1 << 63)
            }
            assert valid == {row["id"]: row["w"] for row in past.states[number]["t"]}, number
    every = every_version(road, spark, f"{database}.t", writer)
    begins = {(row["id"], row[tables.VALID_FROM]): (row["w"], row[tables.FROM_KNOWN]) for row in every}
    for row in rows:
        assert begins[row["id"], row[tables.VALID_FROM]] == (row["w"], row[tables.FROM_KNOWN]), row
    edges = [0, *sorted(stamps)]
    opened = [(row["id"], sum(edge < row[tables.VALID_FROM] for edge in edges)) for row in rows]
    assert len(opened) == len(set(opened)), "a row began twice in one window"
    assert len(rows) < len(every)
    assert any(not row[tables.FROM_KNOWN] for row in rows)


def wide(past: Past, rng: random.Random) -> None:
    """A transaction on a table of sixty rows."""
    number, key = len(past.states), rng.randrange(60)
    past.done(
        "BEGIN",
        rng.choice(
            [
                f"UPDATE t SET w = {number} WHERE id BETWEEN {key} AND {key + 20}",
                f"DELETE FROM t WHERE id BETWEEN {key} AND {key + 3}",
                f"UPDATE IGNORE t SET w = {number}, id = {rng.randrange(90)} WHERE id = {key}",
                f"REPLACE INTO t VALUES ({key}, {number}, 'new'), ({key + 9}, {number}, NULL)",
            ]
        ),
    )


def versions_of(road: Road, database: str, table: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, table))).to_pylist()
    return rows


def every_version(road: Road, spark: SparkSession, name: str, writer: str) -> list[dict[str, object]]:
    path = road.folder / "every.yaml"
    path.write_text(road.text.replace(f", history_by_window: ['{name}']", ""))
    plan = Rebuild.plan(config.load(path), road.lake, name, "", f"every_{writer}")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
    return versions_of(road, name.partition(".")[0], f"every_{writer}")


@BOTH
def test_a_live_table_takes_the_setting_and_gives_it_up_without_a_rebuild(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Versions that are there stay: they are true. The window that follows is by the new rule, also one that died."""
    database = fresh_database(mariadb)
    road, past = begun(mariadb, tmp_path, database, writer)
    by_windows, every = road.text, road.text.replace(f", history_by_window: ['{database}.t']", "")
    parts, stamps = set[int](), list[int]()
    changed(past, CREATE, parts)
    for turn, text in enumerate([every, by_windows, every, by_windows]):
        road.file.write_text(text)
        road.pipeline = config.load(road.file)
        first = len(past.states)
        for _ in range(3):
            past.done(
                "BEGIN", f"REPLACE INTO t VALUES (1, {len(past.states)}, 'x'), ({10 + turn}, {len(past.states)}, 'y')"
            )
        road.capture()
        killed(spark, road.file, "apply_after_merge")
        if text == every:
            parts |= set(range(first, len(past.states)))
        stamps.append(applied_ts(road, database))
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    road.assert_equal()
    moments = past.moments(road)
    assert in_silver(road, past, moments, "t", parts) == by_window(past, "t", parts | parts_at(moments, stamps))
