"""A renamed table's files become the other name's as they are: no Spark, no row decoded, whatever the table's size.

In:  a real MariaDB; roads without any session: an apply that asks for Spark fails.
Out: silver is the source's after cut-overs, swaps and kills; the copies stand for themselves.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge import taken_files
from spark_jobs.merge.taken_files import OPERATION
from spark_jobs.positional import writer as positional_writer
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.made import GivenBack
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import moved, operation_and_engine
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import LakeUnavailable, Overtaken
from tidegate.lake.files import LakeFiles
from tidegate.lake.storage.store_error import StoreDeniedError
from tidegate.local.server import Server
from tidegate.upsert.files.file_layout import FileLayout

pytestmark = [pytest.mark.server, pytest.mark.small_files("apart")]

SHADOW = "CREATE TABLE _t_gho (id INT PRIMARY KEY, name VARCHAR(60), more BIGINT NOT NULL DEFAULT 7)"
TABLE_U, ROWS_U = "CREATE TABLE u (id INT PRIMARY KEY, word CHAR(9))", "INSERT INTO u VALUES (8, 'u'), (500, 'u')"
FILLED = "INSERT INTO _t_gho (id, name) SELECT id, name FROM t"


def begun(server: Server, folder: Path, database: str) -> Road:
    """Table t of 50 rows, some deleted since; its rows lie in several files, with deletion vectors."""
    road = Road.begun(
        server,
        folder,
        database,
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), gone INT)",
        "INSERT INTO t SELECT seq, CONCAT('row ', seq), seq FROM seq_1_to_50",
    )
    done(road, database)
    done(road, database, "DELETE FROM t WHERE id % 7 = 0", "UPDATE t SET name = 'changed' WHERE id % 5 = 0")
    return road


def done(road: Road, database: str, *statements: str) -> None:
    """Statements of one window, applied without Spark."""
    for statement in statements:
        road.server.query(statement, database=database)
    road.capture()
    app = road.apply()
    assert not [(name, state.reason) for name, state in app.states.items() if state.state == "held"]


def files(road: Road, name: str) -> tuple[LiveFile, ...]:
    return road.lake.log(tables.silver_path(*name.split("."))).state().files


def digests(road: Road, name: str, among: tuple[LiveFile, ...]) -> list[str]:
    folder = Path(road.lake.root) / tables.silver_path(*name.split("."))
    return sorted(hashlib.sha256((folder / unquote(file.path)).read_bytes()).hexdigest() for file in among)


def test_a_cut_over_copies_the_shadows_files_and_they_stand_for_themselves(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(road, database, SHADOW, FILLED)
    done(
        road,
        database,
        "UPDATE _t_gho SET more = 8 WHERE id < 20",
        "DELETE FROM _t_gho WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
    )
    given = files(road, f"{database}._t_gho")
    assert any(file.deletion_vector for file in given)
    done(road, database, "RENAME TABLE t TO _t_del, _t_gho TO t", "DROP TABLE _t_del")
    assert road.assert_equal() == {"t": 42}

    taken = files(road, f"{database}.t")
    assert digests(road, f"{database}.t", taken) == digests(road, f"{database}._t_gho", given)
    assert not {file.path for file in taken} & {file.path for file in given}
    log = road.lake.log(tables.silver_path(database, "t"))
    made = [operation_and_engine(log.actions(version) or ()) for version in range(log.state().version + 1)]
    assert (OPERATION, "tidegate") in made
    shutil.rmtree(Path(road.lake.root) / tables.silver_path(database, "_t_gho"))
    done(
        road,
        database,
        "UPDATE t SET name = 'by key' WHERE id = 10",
        "DELETE FROM t WHERE id = 20",
        "INSERT INTO t VALUES (77, 'n', 1)",
    )
    assert road.assert_equal() == {"t": 42}


def test_tables_that_change_names_take_each_others_files(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """A swap, a chain and a way back, of tables without a column in common."""
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(road, database, "CREATE TABLE u (code CHAR(3) PRIMARY KEY)", "INSERT INTO u VALUES ('abc'), ('xyz')")
    done(road, database, "RENAME TABLE t TO x, u TO t, x TO u")
    assert road.assert_equal() == {"t": 2, "u": 43}
    done(
        road,
        database,
        "RENAME TABLE t TO v, u TO t",
        "RENAME TABLE v TO w",
        "RENAME TABLE t TO x",
        "RENAME TABLE x TO t",
    )
    assert road.assert_equal() == {"w": 2, "t": 43}
    done(road, database, "INSERT INTO w VALUES ('new')", "UPDATE t SET gone = 0")
    assert road.assert_equal() == {"w": 3, "t": 43}


def test_no_spark_begins_beside_a_rename_or_a_drop(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its JVM would keep its memory for as long as the application lives; one that can't start would end that."""
    sparks = list[BackgroundSession]()

    def begin(background: BackgroundSession) -> None:
        sparks.append(background)

    monkeypatch.setattr(BackgroundSession, "begin", begin)
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(road, database, SHADOW, FILLED)
    done(road, database, "RENAME TABLE t TO _t_del, _t_gho TO t", "UPDATE t SET more = 1 WHERE id = 2")
    done(road, database, "DROP TABLE _t_del")
    done(road, database, "RENAME TABLE t TO anew")
    assert road.assert_equal() == {"anew": 43}
    assert not sparks


def test_copies_stay_that_the_log_names_though_later_commits_have_changed_them(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store answers the rename's commit with an error, though it is made. Before the next look somebody writes to
    the table.
    """
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(road, database, "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1), (2)")
    real = DeltaLog.commit

    def commit(log: DeltaLog, read: TableState, change: Change, *, attempt: str = "") -> TableState:
        after = real(log, read, change, attempt=attempt)
        if change.operation == OPERATION:
            gone = after.files[:1]
            real(log, after, Change(moved(gone, [], data_change=True), "DELETE"))
            raise LakeUnavailable("no answer", where=log.place)
        return after

    monkeypatch.setattr(DeltaLog, "commit", commit)
    done(road, database, "DROP TABLE u", "RENAME TABLE t TO u")
    monkeypatch.undo()
    live = files(road, f"{database}.u")
    assert live
    digests(road, f"{database}.u", live)


def test_an_apply_that_slept_behind_its_copies_takes_them_away(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one has taken its place, and renamed the table. The copies may be a terabyte."""
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    mariadb.query("RENAME TABLE t TO u", database=database)
    road.capture()
    slept = list[str]()

    def sleep(point: str) -> None:
        if not slept:
            slept.append(point)
            done(road, database)

    monkeypatch.setattr(taken_files, "failpoint", sleep)
    with pytest.raises(Overtaken):
        road.apply()
    assert slept == ["copied_before_commit"]
    assert road.assert_equal() == {"u": 43}
    folder = Path(road.lake.root) / tables.silver_path(database, "u")
    log = road.lake.log(tables.silver_path(database, "u"))
    commits = [log.actions(version) or () for version in range(log.state().version + 1)]
    named = {unquote(action["add"]["path"]) for actions in commits for action in actions if "add" in action}
    assert {path.name for path in folder.glob("*.parquet")} == named


@pytest.mark.spark
def test_a_store_that_doesnt_copy_leaves_the_rows_to_spark(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its policy may allow to read and to write, and not to copy. Every try would meet that."""
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)

    def copy(lake: LakeFiles, path: str, to: str) -> None:
        raise StoreDeniedError(f"{path} to {to}: AccessDenied in {lake.root}")

    monkeypatch.setattr(LakeFiles, "copy", copy)
    mariadb.query("RENAME TABLE t TO u", database=database)
    mariadb.query("UPDATE u SET gone = 2 WHERE id < 9", database=database)
    road.capture()
    app = road.apply(spark)
    assert not [(name, state.reason) for name, state in app.states.items() if state.state == "held"]
    assert road.assert_equal() == {"u": 43}


@pytest.mark.spark
def test_killed_around_each_copy_the_swap_is_whole_in_the_end(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(road, database, "CREATE TABLE u (code CHAR(3) PRIMARY KEY)", "INSERT INTO u VALUES ('abc'), ('xyz')")
    mariadb.query("RENAME TABLE t TO x, u TO t, x TO u", database=database)
    road.capture()
    for point in (
        "copied_before_commit",
        "apply_in_move",
        "copied_before_commit",
        "apply_in_move",
        "apply_before_publish",
    ):
        killed(spark, road.file, point)
    done(road, database)
    assert road.assert_equal() == {"t": 2, "u": 43}
    assert not [state for state in road.apply().states.values() if state.state == "held"]


def test_rows_around_renames_in_one_window_go_by_position(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """A busy table's cut-over, a swap with rows on both sides, and a name that is taken and given in one window."""
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(road, database, SHADOW, FILLED)
    done(
        road,
        database,
        "UPDATE _t_gho SET more = 8 WHERE id < 20",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM _t_gho WHERE id = 1",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "INSERT INTO t (id, name) VALUES (90, 'later')",
        "UPDATE t SET name = 'later still' WHERE id BETWEEN 8 AND 12",
        "DELETE FROM t WHERE id = 30",
        "DROP TABLE _t_del",
    )
    assert road.assert_equal() == {"t": 42}
    done(
        road, database, "CREATE TABLE u (id INT PRIMARY KEY, word CHAR(9))", "INSERT INTO u VALUES (8, 'u'), (500, 'u')"
    )
    done(
        road,
        database,
        "INSERT INTO u VALUES (501, 'before')",
        "UPDATE t SET more = 1 WHERE id = 8",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "INSERT INTO t VALUES (502, 'after')",
        "DELETE FROM t WHERE id = 8",
        "UPDATE u SET id = 1000 WHERE id = 8",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "UPDATE t SET more = 3 WHERE id = 1000",
        "INSERT INTO u VALUES (8, 'again')",
    )
    assert road.assert_equal() == {"t": 42, "u": 4}


@pytest.mark.spark
def test_a_table_that_is_given_back_between_renames_takes_its_partners_along(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The positional writer refuses the rows of one table behind the first rename: MERGE writes all that it is linked
    with from there on.
    """
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    done(
        road, database, "CREATE TABLE u (id INT PRIMARY KEY, word CHAR(9))", "INSERT INTO u VALUES (8, 'u'), (500, 'u')"
    )
    for statement in (
        "INSERT INTO u VALUES (501, 'before')",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "INSERT INTO t VALUES (502, 'after')",
        "UPDATE u SET gone = 3 WHERE id = 8",
        "RENAME TABLE t TO x, u TO t, x TO u",
        "UPDATE t SET gone = 4 WHERE id = 9",
        "DELETE FROM u WHERE id = 8",
    ):
        mariadb.query(statement, database=database)
    road.capture()
    real, refused = positional_writer.check_fit, list[str]()

    def check_fit(snapshot: TableState, layout: FileLayout) -> None:
        real(snapshot, layout)
        if snapshot.place.rstrip("/").endswith("/t") and "word" in layout.schema.names:
            refused.append(snapshot.place)
            raise GivenBack("a test says so")

    monkeypatch.setattr(positional_writer, "check_fit", check_fit)
    app = road.apply(spark)
    assert len(refused) == 1
    assert not [(name, state.reason) for name, state in app.states.items() if state.state in ("held", "released")]
    assert road.assert_equal() == {"t": 43, "u": 3}
