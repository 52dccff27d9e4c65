"""DeltaLog beside the writers that others use: Spark and delta-rs commit in between, and read what we commit.

In:  a Spark session; tables of a few rows.
Out: what is in the log and in the table afterwards, read by Spark.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.support.readers import by_duckdb
from tidegate.delta.exchange import exchange
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.logs import DeltaLogs
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, DeltaUnsupported

pytestmark = pytest.mark.spark
APP = "tidegate/pipe/db.t"
Statement = Callable[[SparkSession, str], object]


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of 20 rows in two files, with deletion vectors: made once, copied by each test."""
    uri = str(tmp_path_factory.mktemp("template") / "t")
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id BIGINT, v STRING) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    for low in (0, 10):
        insert(spark, uri, low, low + 10)
    return uri


@pytest.fixture
def uri(template: str, tmp_path: Path) -> str:
    """A copy of the template."""
    return str(shutil.copytree(template, tmp_path / "silver" / "db" / "t"))


def insert(spark: SparkSession, uri: str, low: int, high: int) -> None:
    rows = f"SELECT id, CAST(id AS STRING) FROM range({low}, {high}, 1, 1)"
    spark.sql(f"INSERT INTO delta.`{uri}` {rows}")


def rewritten(state: TableState, file: LiveFile, name: str = "ours.parquet") -> dict[str, Any]:
    """An `add` of a copy of the file: what an upsert that changes nothing would add."""
    shutil.copy(f"{state.place}/{file.path}", f"{state.place}/{name}")
    return {**file.action, "path": name}


def upsert(log: DeltaLog, state: TableState, version: int = 7) -> TableState:
    """Replace the state's first file by a copy of it."""
    file = state.files[0]
    found = moved([file], [rewritten(state, file, f"{version}.parquet")], data_change=True)
    return log.commit(state, Change(found, "UPSERT", {APP: version}))


def ids(uri: str) -> list[int]:
    return sorted(by_duckdb(uri)["id"].to_pylist())


def actions(uri: str, version: int) -> dict[str, list[dict[str, Any]]]:
    """The log's actions of one commit, by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (Path(uri) / "_delta_log" / f"{version:020d}.json").read_text().splitlines():
        for kind, action in json.loads(line).items():
            found.setdefault(kind, []).append(action)
    return found


def test_spark_reads_a_commit_its_history_and_the_table_before_it(spark: SparkSession, uri: str) -> None:
    log = DeltaLog(uri)
    state = log.state()
    assert (state.created, state.version, state.transaction(APP), len(state.files)) == (True, 2, 0, 2)
    after = upsert(log, state)
    found = actions(uri, 3)
    assert [a["path"] for a in found["remove"]] == [state.files[0].path]
    assert found["remove"][0]["extendedFileMetadata"] is True
    history = spark.sql(f"DESCRIBE HISTORY delta.`{uri}` LIMIT 1").collect()[0]
    assert (history.version, history.operation, history.engineInfo) == (3, "UPSERT", "tidegate")
    assert sorted(row.id for row in spark.sql(f"SELECT id FROM delta.`{uri}`").collect()) == list(range(20))
    assert (after.version, after.transaction(APP), after.transaction("another")) == (3, 7, 0)
    assert log.state() == after == DeltaLog(uri).state()
    assert spark.sql(f"SELECT count(*) FROM delta.`{uri}` VERSION AS OF 2").collect()[0][0] == 20


def test_spark_packs_deletes_and_vacuums_behind_a_commit(spark: SparkSession, uri: str) -> None:
    log = DeltaLog(uri)
    upsert(log, log.state())
    for statement in (f"OPTIMIZE delta.`{uri}`", f"DELETE FROM delta.`{uri}` WHERE id < 5", f"VACUUM delta.`{uri}`"):
        spark.sql(statement)
    assert ids(uri) == list(range(5, 20))
    assert sum(file.live_rows or 0 for file in log.state().files) == 15


def test_a_deletion_vector_replaces_the_one_before(spark: SparkSession, uri: str) -> None:
    """Vectors that Spark wrote go through remove and add; the row that one marks is gone, and comes back with it."""
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 3")
    log = DeltaLog(uri)
    state = log.state()
    file = next(f for f in state.files if f.deletion_vector)
    plain = {name: value for name, value in file.action.items() if name != "deletionVector"}
    after = log.commit(state, Change(moved([file], [plain], data_change=True), "UNDO"))
    assert actions(uri, after.version)["remove"][0]["deletionVector"] == file.action["deletionVector"]
    assert ids(uri) == list(range(20))
    again = next(f for f in after.files if f.path == file.path)
    log.commit(after, Change(moved([again], [file.action], data_change=True), "REDO"))
    assert 3 not in ids(uri)
    assert sum(f.live_rows or 0 for f in log.state().files) == 19


OTHERS: dict[str, Statement] = {
    "insert": lambda spark, uri: insert(spark, uri, 50, 51),
    "delete of a row": lambda spark, uri: spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 15"),
    "optimize": lambda spark, uri: spark.sql(f"OPTIMIZE delta.`{uri}`"),
    "added column": lambda spark, uri: spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (w INT)"),
    "property": lambda spark, uri: spark.sql(
        f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.logRetentionDuration'='interval 9 days')"
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_whatever_another_writer_commits_in_between_is_a_conflict_and_nothing_is_lost(
    spark: SparkSession, uri: str, other: str
) -> None:
    log = DeltaLog(uri)
    state = log.state()
    OTHERS[other](spark.newSession(), uri)
    before = ids(uri)
    with pytest.raises(CommitConflict, match="after version 2"):
        upsert(log, state)
    assert ids(uri) == before
    assert log.state().transaction(APP) == 0
    upsert(log, log.state())
    assert ids(uri) == before


def test_spark_notices_our_commit_in_the_middle_of_its_own(spark: SparkSession, uri: str) -> None:
    """Its transaction has read a version behind which ours comes: it must read again, or give way."""
    log = DeltaLog(uri)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    theirs = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, uri)
    begun = theirs.startTransaction(jvm.scala.Option.empty(), jvm.scala.Option.empty())
    state = log.state()
    after = log.commit(state, Change(moved([state.files[0]], [], data_change=True), "UPSERT"))
    assert begun.readVersion() == after.version - 1
    insert(spark.newSession(), uri, 90, 91)
    assert ids(uri) == [*sorted(_ids_of(state.files[1])), 90]


def _ids_of(file: LiveFile) -> list[int]:
    low, high = file.bounds("id") or (0, -1)
    return list(range(low, high + 1))


def test_an_append_by_delta_rs_is_a_conflict(tmp_path: Path) -> None:
    uri = str(tmp_path / "plain")
    write_deltalake(uri, pa.table({"id": pa.array(range(5), pa.int64()), "v": ["a"] * 5}))
    log = DeltaLog(uri)
    state = log.state()
    write_deltalake(uri, pa.table({"id": pa.array([99], pa.int64()), "v": ["rs"]}), mode="append")
    with pytest.raises(CommitConflict):
        upsert(log, state)
    upsert(log, log.state())
    write_deltalake(uri, pa.table({"id": pa.array([100], pa.int64()), "v": ["rs"]}), mode="append")
    assert ids(uri) == [0, 1, 2, 3, 4, 99, 100]


def test_moving_rows_goes_behind_an_append_but_not_behind_a_change_of_its_file(spark: SparkSession, uri: str) -> None:
    log = DeltaLog(uri)

    def move(name: str, other: str) -> int:
        state = log.state()
        file = next(f for f in state.files if f.bounds("id") == (0, 9))
        added = rewritten(state, file, name)
        OTHERS[other](spark.newSession(), uri)
        return exchange(log, [file], [added], operation="OPTIMIZE").version

    assert move("one.parquet", "insert") == 4
    assert actions(uri, 4)["add"][0]["dataChange"] is False
    assert move("two.parquet", "delete of a row") == 6
    with pytest.raises(CommitConflict, match="isn't live any more"):
        move("three.parquet", "optimize")
    assert ids(uri) == [*(i for i in range(20) if i != 15), 50]


def test_a_table_that_isnt_there_says_so_and_appears_when_made(template: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "later")
    log = DeltaLog(uri)
    assert log.state().created is False
    shutil.copytree(template, uri)
    assert log.state().version == 2
    shutil.rmtree(uri)
    write_deltalake(uri, pa.table({"id": pa.array([70], pa.int64())}))
    for value in (71, 72):
        write_deltalake(uri, pa.table({"id": pa.array([value], pa.int64())}), mode="append")
    found = log.state()
    assert (found.version, sorted(f.bounds("id") or () for f in found.files)) == (2, [(70, 70), (71, 71), (72, 72)])


def test_row_ids_are_refused_and_in_commit_timestamps_are_given(spark: SparkSession, tmp_path: Path) -> None:
    tracked, timed = str(tmp_path / "tracked"), str(tmp_path / "timed")
    for uri, name in ((tracked, "enableRowTracking"), (timed, "enableInCommitTimestamps")):
        spark.sql(f"CREATE TABLE delta.`{uri}` (id BIGINT) USING delta TBLPROPERTIES ('delta.{name}'='true')")
        insert_one = f"INSERT INTO delta.`{uri}` VALUES (1)"
        spark.sql(insert_one)
    with pytest.raises(DeltaUnsupported, match="rowTracking"):
        upsert(DeltaLog(tracked), DeltaLog(tracked).state())
    log = DeltaLog(timed)
    after = upsert(log, log.state())
    assert actions(timed, after.version)["commitInfo"][0]["inCommitTimestamp"] > 0
    assert ids(timed) == [1]


def test_many_tables_are_committed_from_many_threads_and_few_are_kept_in_memory(
    spark: SparkSession, template: str, tmp_path: Path
) -> None:
    uris = [str(shutil.copytree(template, tmp_path / f"t{n}")) for n in range(4)]
    logs = DeltaLogs(states_bytes=1)

    def work(uri: str) -> list[int]:
        found = []
        for version in range(1, 6):
            log = logs.of(uri)
            found.append(upsert(log, log.state(), version).version)
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, uris)) == [[3, 4, 5, 6, 7]] * 4
    logs.trim()
    assert sum(bool(logs.of(uri).held_bytes) for uri in uris) == 1
    assert all(ids(uri) == list(range(20)) for uri in uris)
