"""DeltaCommitter: commits through Delta's own code, and what other writers' commits do to them.

In:  a Spark session; tables of a few rows; other writers: Spark SQL in a session of its own, delta-rs.
Out: what is in the log and in the table afterwards, read by Spark, never by the committer itself.
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

from spark_jobs import delta_commit
from spark_jobs.delta_commit import DeltaCommitter
from tidegate.delta.live_file import LiveFile
from tidegate.errors import CommitConflict, ConfigError, LakeRefused, LakeUnavailable
from tidegate.upsert.snapshot import SilverSnapshot

pytestmark = pytest.mark.spark
APP = "tidegate/pipe/db.t"
Statement = Callable[[SparkSession, str], object]


@pytest.fixture(scope="module")
def committer(spark: SparkSession) -> DeltaCommitter:
    return DeltaCommitter.of(spark)


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of 20 rows in two files, with deletion vectors: made once, copied by each test."""
    uri = str(tmp_path_factory.mktemp("template") / "t")
    make(spark, uri)
    return uri


@pytest.fixture
def uri(template: str, tmp_path: Path) -> str:
    """A copy of the template."""
    return str(shutil.copytree(template, tmp_path / "silver" / "db" / "t"))


def make(spark: SparkSession, uri: str, properties: str = "") -> None:
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id BIGINT, v STRING) USING delta "
        f"TBLPROPERTIES ('delta.enableDeletionVectors'='true'{properties})"
    )
    for low in (0, 10):
        insert(spark, uri, low, low + 10)


def insert(spark: SparkSession, uri: str, low: int, high: int) -> None:
    rows = f"SELECT id, CAST(id AS STRING) FROM range({low}, {high}, 1, 1)"
    spark.sql(f"INSERT INTO delta.`{uri}` {rows}")


def rewritten(snapshot: SilverSnapshot, file: LiveFile, name: str = "ours.parquet") -> dict[str, Any]:
    """An `add` of a copy of the file: what an upsert that changes nothing would add."""
    shutil.copy(f"{snapshot.uri}/{file.path}", f"{snapshot.uri}/{name}")
    return {**file.action, "path": name}


def upsert(committer: DeltaCommitter, snapshot: SilverSnapshot, version: int = 7) -> int:
    """Replace the snapshot's first file by a copy of it."""
    file = snapshot.files[0]
    return committer.commit(
        snapshot,
        removes=[file],
        adds=[rewritten(snapshot, file)],
        transaction=(APP, version),
        operation="TIDEGATE UPSERT",
        data_change=True,
    )


def ids(spark: SparkSession, uri: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM delta.`{uri}`").collect())


def actions(uri: str, version: int) -> dict[str, list[dict[str, Any]]]:
    """The log's actions of one commit, by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (Path(uri) / "_delta_log" / f"{version:020d}.json").read_text().splitlines():
        for kind, action in json.loads(line).items():
            found.setdefault(kind, []).append(action)
    return found


def test_a_commit_holds_removes_adds_and_the_transaction_and_names_itself_in_the_history(
    spark: SparkSession, committer: DeltaCommitter, uri: str
) -> None:
    snapshot = committer.snapshot(uri, APP)
    assert (snapshot.created, snapshot.version, snapshot.applied_ts, len(snapshot.files)) == (True, 2, 0, 2)
    assert upsert(committer, snapshot) == 3
    found = actions(uri, 3)
    assert [a["path"] for a in found["remove"]] == [snapshot.files[0].path]
    assert found["remove"][0]["dataChange"] is True
    assert found["remove"][0]["extendedFileMetadata"] is True
    assert found["add"][0]["path"] == "ours.parquet"
    assert (found["txn"][0]["appId"], found["txn"][0]["version"]) == (APP, 7)
    info = found["commitInfo"][0]
    assert (info["operation"], info["isBlindAppend"], info["readVersion"]) == ("TIDEGATE UPSERT", False, 2)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{uri}` LIMIT 1").collect()[0]
    assert (history.version, history.operation) == (3, "TIDEGATE UPSERT")
    assert ids(spark, uri) == list(range(20))
    after = committer.snapshot(uri, APP)
    assert (after.version, after.applied_ts) == (3, 7)
    assert {f.path for f in after.files} == {"ours.parquet", snapshot.files[1].path}
    assert committer.snapshot(uri, "another").applied_ts == 0


def test_an_applied_window_is_not_written_again(committer: DeltaCommitter, uri: str) -> None:
    upsert(committer, committer.snapshot(uri, APP), 7)
    again = committer.snapshot(uri, APP)
    assert [upsert(committer, again, version) for version in (6, 7)] == [3, 3]
    assert not (Path(uri) / "_delta_log" / f"{4:020d}.json").exists()


def test_a_deletion_vector_replaces_the_one_before(spark: SparkSession, committer: DeltaCommitter, uri: str) -> None:
    """Vectors that Spark wrote go through remove and add; the row that one marks is gone, and comes back with it."""
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 3")
    snapshot = committer.snapshot(uri, APP)
    file = next(f for f in snapshot.files if f.deletion_vector)
    plain = {name: value for name, value in file.action.items() if name != "deletionVector"}
    version = committer.commit(
        snapshot, removes=[file], adds=[plain], transaction=None, operation="UNDO", data_change=True
    )
    assert actions(uri, version)["remove"][0]["deletionVector"] == file.action["deletionVector"]
    assert ids(spark, uri) == list(range(20))
    after = committer.snapshot(uri, APP)
    again = next(f for f in after.files if f.path == file.path)
    committer.commit(after, removes=[again], adds=[file.action], transaction=None, operation="REDO", data_change=True)
    assert 3 not in ids(spark, uri)
    assert sum(f.live_rows or 0 for f in committer.snapshot(uri, APP).files) == 19


def _delta_rs_append(spark: SparkSession, uri: str) -> None:
    write_deltalake(uri, pa.table({"id": pa.array([99], pa.int64()), "v": ["rs"]}), mode="append")


OTHERS: dict[str, Statement] = {
    "insert": lambda spark, uri: insert(spark, uri, 50, 51),
    "delete of a row": lambda spark, uri: spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 15"),
    "optimize": lambda spark, uri: spark.sql(f"OPTIMIZE delta.`{uri}`"),
    "added column": lambda spark, uri: spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (w INT)"),
    "property": lambda spark, uri: spark.sql(
        f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_whatever_another_writer_commits_in_between_is_a_conflict_and_nothing_is_lost(
    spark: SparkSession, committer: DeltaCommitter, uri: str, other: str
) -> None:
    snapshot = committer.snapshot(uri, APP)
    OTHERS[other](spark.newSession(), uri)
    before = ids(spark, uri)
    with pytest.raises(CommitConflict, match="after version 2"):
        upsert(committer, snapshot)
    assert ids(spark, uri) == before
    assert committer.snapshot(uri, APP).applied_ts == 0
    upsert(committer, committer.snapshot(uri, APP))
    assert ids(spark, uri) == before


def test_an_append_by_delta_rs_is_a_conflict(spark: SparkSession, committer: DeltaCommitter, tmp_path: Path) -> None:
    uri = str(tmp_path / "plain")
    write_deltalake(uri, pa.table({"id": pa.array(range(5), pa.int64()), "v": ["a"] * 5}))
    snapshot = committer.snapshot(uri, APP)
    _delta_rs_append(spark, uri)
    with pytest.raises(CommitConflict):
        upsert(committer, snapshot)
    upsert(committer, committer.snapshot(uri, APP))
    assert ids(spark, uri) == [0, 1, 2, 3, 4, 99]


def test_a_conflict_inside_the_commit_itself_is_found_by_delta(
    spark: SparkSession, committer: DeltaCommitter, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other commit comes when the transaction has begun already: Delta finds the version taken."""
    snapshot, attempt = committer.snapshot(uri, APP), committer._attempt

    def late(*args: Any) -> int:
        insert(spark.newSession(), uri, 50, 51)
        return attempt(*args)

    monkeypatch.setattr(committer, "_attempt", late)
    with pytest.raises(CommitConflict, match="WRITE changed the table"):
        upsert(committer, snapshot)
    assert ids(spark, uri) == [*range(20), 50]


def test_moving_rows_goes_behind_an_append_but_not_behind_a_change_of_its_file(
    spark: SparkSession, committer: DeltaCommitter, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = committer._attempt

    def move(name: str, other: str) -> int:
        snapshot = committer.snapshot(uri, APP)
        file = next(f for f in snapshot.files if f.bounds("id") == (0, 9))

        def late(*args: Any) -> int:
            OTHERS[other](spark.newSession(), uri)
            return attempt(*args)

        monkeypatch.setattr(committer, "_attempt", late)
        added = {**rewritten(snapshot, file, name)}
        return committer.commit(
            snapshot, removes=[file], adds=[added], transaction=None, operation="TIDEGATE COMPACT", data_change=False
        )

    assert move("one.parquet", "insert") == 4
    assert actions(uri, 4)["add"][0]["dataChange"] is False
    assert move("two.parquet", "delete of a row") == 6
    with pytest.raises(CommitConflict):
        move("three.parquet", "optimize")
    assert ids(spark, uri) == [*(i for i in range(20) if i != 15), 50]


def test_a_commit_whose_answer_got_lost_is_found_in_the_log(
    committer: DeltaCommitter, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, attempt = committer.snapshot(uri, APP), committer._attempt

    def lost(begun: Any, *args: Any) -> int:
        attempt(begun, *args)
        return attempt(begun, *args)  # an assertion in the JVM: this transaction has committed already

    monkeypatch.setattr(committer, "_attempt", lost)
    assert upsert(committer, snapshot) == 3
    assert committer.snapshot(uri, APP).applied_ts == 7


def test_an_attempt_that_wrote_nothing_says_what_delta_said(committer: DeltaCommitter, uri: str) -> None:
    snapshot = committer.snapshot(uri, APP)
    with pytest.raises(LakeRefused, match=r"partition|Delta refuses"):
        committer.commit(
            snapshot,
            removes=[],
            adds=[{**snapshot.files[0].action, "path": "x.parquet", "partitionValues": {"nope": "1"}}],
            transaction=(APP, 9),
            operation="TIDEGATE UPSERT",
            data_change=True,
        )
    assert committer.snapshot(uri, APP).version == 2


def test_a_table_that_isnt_there_says_so_and_appears_when_made(
    spark: SparkSession, committer: DeltaCommitter, template: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "later")
    assert committer.snapshot(uri, APP).created is False
    shutil.copytree(template, uri)
    assert committer.snapshot(uri, APP).version == 2
    shutil.rmtree(uri)
    write_deltalake(uri, pa.table({"id": pa.array([70], pa.int64())}))
    for value in (71, 72):
        write_deltalake(uri, pa.table({"id": pa.array([value], pa.int64())}), mode="append")
    found = committer.snapshot(uri, APP)
    assert (found.version, sorted(f.bounds("id") or () for f in found.files)) == (2, [(70, 70), (71, 71), (72, 72)])


def upsert_round(committer: DeltaCommitter, uri: str, version: int) -> int:
    snapshot = committer.snapshot(uri, APP)
    file = snapshot.files[0]
    return committer.commit(
        snapshot,
        removes=[file],
        adds=[rewritten(snapshot, file, f"{version}.parquet")],
        transaction=(APP, version),
        operation="TIDEGATE UPSERT",
        data_change=True,
    )


@pytest.mark.parametrize("how", ["pyarrow", "spark"])
def test_a_checkpoint_gives_the_same_files_as_the_commits(
    spark: SparkSession, uri: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.checkpointInterval'='5')")
    first = DeltaCommitter.of(spark)
    for version in range(1, 6):
        upsert_round(first, uri, version)
    assert list((Path(uri) / "_delta_log").glob("*.checkpoint.parquet"))
    if how == "spark":
        monkeypatch.setattr(delta_commit, "LOG_CHECKPOINT_BYTES_MAX", 0)
    carried, loaded = first.snapshot(uri, APP), DeltaCommitter.of(spark).snapshot(uri, APP)
    assert carried.version == loaded.version == 8
    assert carried.applied_ts == loaded.applied_ts == 5

    def seen(snapshot: SilverSnapshot) -> list[object]:
        return sorted((f.path, f.rows, f.bounds("id"), f.size, f.partition_values) for f in snapshot.files)

    assert seen(carried) == seen(loaded)
    assert (carried.schema, carried.configuration, carried.features) == (
        loaded.schema,
        loaded.configuration,
        loaded.features,
    )


def test_row_ids_stay_with_a_file_that_is_added_again(
    spark: SparkSession, committer: DeltaCommitter, tmp_path: Path
) -> None:
    uri = str(tmp_path / "tracked")
    make(spark, uri, ", 'delta.enableRowTracking'='true', 'delta.enableInCommitTimestamps'='true'")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 3")
    snapshot = committer.snapshot(uri, APP)
    file = next(f for f in snapshot.files if f.deletion_vector)
    plain = {name: value for name, value in file.action.items() if name != "deletionVector"}
    version = committer.commit(
        snapshot, removes=[file], adds=[plain], transaction=(APP, 1), operation="UNDO", data_change=True
    )
    found = actions(uri, version)
    for name in ("baseRowId", "defaultRowCommitVersion"):
        assert found["add"][0][name] == found["remove"][0][name] == file.action[name]
    assert found["commitInfo"][0]["inCommitTimestamp"] > 0
    assert ids(spark, uri) == list(range(20))


def test_many_tables_are_committed_from_many_threads_and_few_are_kept_in_memory(
    spark: SparkSession, template: str, tmp_path: Path
) -> None:
    uris = [str(shutil.copytree(template, tmp_path / f"t{n}")) for n in range(4)]
    small = DeltaCommitter.of(spark, states_bytes=1)

    def work(uri: str) -> list[int]:
        return [upsert_round(small, uri, version) for version in range(1, 6)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, uris)) == [[3, 4, 5, 6, 7]] * 4
    assert len(small._entries) == 1
    assert all(ids(spark, uri) == list(range(20)) for uri in uris)


def test_no_spark_job_runs_for_a_commit_or_a_snapshot(spark: SparkSession, committer: DeltaCommitter, uri: str) -> None:
    upsert_round(committer, uri, 1)
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    for version in range(2, 6):
        upsert_round(committer, uri, version)
    assert len(tracker.getJobIdsForGroup(None)) == before


def test_a_delta_that_lacks_what_we_call_is_named_at_the_start(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs import delta_jvm

    monkeypatch.setitem(delta_jvm._USED, "org.apache.spark.sql.delta.DeltaLog", ("gone/3",))
    with pytest.raises(ConfigError, match=r"Delta 4\.4\.0 has no org\.apache\.spark\.sql\.delta\.DeltaLog\.gone/3"):
        DeltaCommitter.of(spark)


def test_a_log_with_a_hole_is_an_error_not_an_older_table(committer: DeltaCommitter, uri: str) -> None:
    (Path(uri) / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises((LakeRefused, LakeUnavailable), match="log can't be read"):
        committer.snapshot(uri, APP)
