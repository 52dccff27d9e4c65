"""Statements of Spark on a private log leave the table as they would have left it directly, for every reader."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.merge.private import log as module
from spark_jobs.merge.private.copy import java_uri
from spark_jobs.merge.private.folders import made_at, remove_leftovers
from spark_jobs.merge.private.log import PrivateLog, change_table, private_log
from spark_jobs.session.spark import DELETION_VECTORS, maintenance_session, table_session
from tests.support.readers import READERS
from tidegate import limits
from tidegate.delta.log import Change
from tidegate.delta.table.actions import domain
from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import CommitConflict, LakeRefused, LakeUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.silver_tables import columns_added
from tidegate.merge.column import SilverColumn
from tidegate.spark_sql import table_at
from tidegate.upsert.deletions.deletion_vector import read as vector_positions

pytestmark = pytest.mark.spark

MERGE = (
    "MERGE INTO {t} t USING (SELECT id, 'm' a, 5 n, id % 3 op FROM range({low}, {high})) s ON t.id = s.id"
    " WHEN MATCHED AND op = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a, n = s.n"
    " WHEN NOT MATCHED THEN INSERT (id, a, n) VALUES (s.id, s.a, s.n)"
)
# Each on what the one before it left. The names say what Delta does.
STATEMENTS = [
    ("MERGE with vectors", MERGE.format(t="{t}", low=90, high=120), "true"),
    ("DELETE", "DELETE FROM {t} WHERE id % 10 = 1", "true"),
    ("UPDATE", "UPDATE {t} SET a = 'u' WHERE id % 10 = 2", "true"),
    ("nothing", "DELETE FROM {t} WHERE id < 0", "true"),
    ("MERGE that rewrites", MERGE.format(t="{t}", low=40, high=130), "false"),
    ("more vectors", "DELETE FROM {t} WHERE id % 9 = 5", "true"),
    ("OPTIMIZE", "OPTIMIZE {t}", "true"),
    ("a vector in a cube", "DELETE FROM {t} WHERE id % 8 = 5", "true"),
    ("a column", "ALTER TABLE {t} ADD COLUMNS (`ü` INT COMMENT 'it''s')", "true"),
    ("its values", "UPDATE {t} SET `ü` = n WHERE id % 4 = 1", "true"),
    ("REORG", "REORG TABLE {t} APPLY (PURGE)", "true"),
    ("MERGE over all that", MERGE.format(t="{t}", low=0, high=160), "true"),
]
# What writes a vector, moves rows, changes columns, and does nothing.
TELLING = ("MERGE with vectors", "nothing", "OPTIMIZE", "a column", "its values")


def make(spark: SparkSession, path: str, *, clustered: bool = True) -> None:
    """A table of three files."""
    cluster = " CLUSTER BY (id)" if clustered else ""
    spark.sql(
        f"CREATE TABLE {table_at(path)} (id BIGINT, a STRING, n INT) USING delta{cluster}"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '1000')"
    )
    rows = spark.range(100).selectExpr("id", "concat('a', id) AS a", "CAST(id % 7 AS INT) AS n")
    rows.repartitionByRange(3, "id").write.format("delta").mode("append").save(path)


def shown(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def by_spark(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    return shown(spark.read.format("delta").load(path).toArrow())


def run(lake: LakeFiles, session: SparkSession, path: str, *statements: str) -> None:
    def work(private: PrivateLog) -> None:
        for statement in statements:
            session.sql(statement.format(t=private.target)).collect()

    change_table(lake, session, path, work)


def folders(table: Path) -> list[str]:
    return sorted(entry.name for entry in table.iterdir() if made_at(entry.name) is not None)


def logs(table: Path) -> list[Path]:
    return list(table.glob("tg-*/_delta_log"))


@pytest.mark.parametrize(
    ("clustered", "statements"),
    [
        pytest.param(True, [one for one in STATEMENTS if one[0] in TELLING], id="telling"),
        pytest.param(True, STATEMENTS, id="all"),
        pytest.param(False, STATEMENTS[5:8] + STATEMENTS[10:11], id="not clustered"),
    ],
)
def test_each_statement_does_what_it_does_to_the_table_itself(
    spark: SparkSession, tmp_path: Path, clustered: bool, statements: list[tuple[str, str, str]]
) -> None:
    lake, session = LakeFiles(str(tmp_path)), table_session(spark, large=False)
    for name in ("direct", "private"):
        make(spark, str(tmp_path / name), clustered=clustered)
    for name, statement, vectors in statements:
        session.conf.set(DELETION_VECTORS, vectors)
        session.sql(statement.format(t=table_at(str(tmp_path / "direct")))).collect()
        run(lake, session, "private", statement)
        expected = shown(READERS["delta-rs"](str(tmp_path / "direct")))  # Spark reads them at the end
        for reader, read in READERS.items():
            assert shown(read(str(tmp_path / "private"))) == expected, f"{name}, read by {reader}"
        ours, theirs = (lake.log(path).state() for path in ("private", "direct"))
        assert ours.schema == theirs.schema
        assert (ours.configuration, ours.protocol, ours.domains) == (
            theirs.configuration, theirs.protocol, theirs.domains,
        ), name  # fmt: skip
        assert told(ours.files) == told(theirs.files), name
        dead = {file.deletion_vector for file in ours.files if file.deletion_vector}
        assert [len(vector_positions(lake, "private", one)) for one in dead] == [one.cardinality for one in dead]
    assert by_spark(spark, str(tmp_path / "private")) == by_spark(spark, str(tmp_path / "direct"))
    assert len(folders(tmp_path / "private")) == 1, "used again"
    assert all(file.path.startswith("tg-") for file in lake.log("private").state().files)
    assert not logs(tmp_path / "private")


def told(files: Iterable[LiveFile]) -> list[Any]:
    """What the log says of files besides their names."""
    found = []
    for add in (file.action for file in files):
        tags = {name: value for name, value in (add.get("tags") or {}).items() if name != "ZCUBE_ID"}
        dead = (add.get("deletionVector") or {}).get("cardinality")
        found.append((add["stats"], tags, add.get("clusteringProvider"), dead))
    return sorted(found, key=repr)


def test_an_overwrite_brings_other_columns_and_reads_what_it_replaces(spark: SparkSession, tmp_path: Path) -> None:
    lake, session = LakeFiles(str(tmp_path)), table_session(spark, large=False)
    make(spark, str(tmp_path / "t"))
    before = lake.log("t").state()

    def work(private: PrivateLog) -> None:
        rows = private.rows().selectExpr("id", "CAST(n AS STRING) AS n", "a AS b")
        rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(private.uri)
        session.sql(f"ALTER TABLE {private.target} CLUSTER BY (id)")

    after = change_table(lake, session, "t", work, ("app", 5))
    assert (after.version, after.transaction("app"), after.table_id) == (before.version + 1, 5, before.table_id)
    assert after.domains == before.domains, "one commit: no version without clustering"
    expected = [{"id": n, "n": str(n % 7), "b": f"a{n}"} for n in range(100)]
    for reader in (*READERS.values(), lambda path: spark.read.format("delta").load(path).toArrow()):
        assert shown(reader(str(tmp_path / "t"))) == expected
    rows = [{"id": 3, "n": "new", "b": "x"}]

    def replaced(private: PrivateLog) -> None:
        writer = spark.createDataFrame(rows, "id BIGINT, n STRING, b STRING").write.format("delta").mode("overwrite")
        writer.option("replaceWhere", "id < 50").save(private.uri)

    change_table(lake, session, "t", replaced)
    assert by_spark(spark, str(tmp_path / "t")) == rows + expected[50:]


def test_a_transaction_is_recorded_once_even_when_nothing_changes(spark: SparkSession, tmp_path: Path) -> None:
    lake, done = LakeFiles(str(tmp_path)), []
    make(spark, str(tmp_path / "t"))
    for version in (3, 3, 2, 4):
        after = change_table(lake, spark, "t", lambda _, version=version: done.append(version), ("app", version))
    assert done == [3, 4]
    assert (after.version, after.transaction("app")) == (3, 4)
    assert change_table(lake, spark, "t", lambda _: None).version == 3, "nothing to commit"
    assert not folders(tmp_path / "t")


def test_it_is_done_again_on_what_another_writer_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, other = LakeFiles(str(tmp_path)), LakeFiles(str(tmp_path)).log("t")
    make(spark, str(tmp_path / "t"))
    seen = []

    def work(private: PrivateLog) -> None:
        seen.append(private.state.version)
        spark.sql(f"DELETE FROM {private.target} WHERE id < 50").collect()
        if len(seen) < 3:
            other.commit(other.state(), Change([domain("delta.test", str(len(seen)))], "SOMEBODY"))

    after = change_table(lake, spark, "t", work, ("app", 1))
    assert seen == [1, 2, 3]
    assert after.version == 4
    assert len(folders(tmp_path / "t")) == 1, "what lost the race is gone"
    assert len(by_spark(spark, str(tmp_path / "t"))) == 50
    seen.clear()
    monkeypatch.setattr(module, "COMMIT_ATTEMPTS_MAX", 2)
    with pytest.raises(CommitConflict, match="SOMEBODY changed the table"):
        change_table(lake, spark, "t", work, ("app", 2))


def test_rows_that_only_moved_go_behind_commits_that_leave_their_files(spark: SparkSession, tmp_path: Path) -> None:
    lake, session = LakeFiles(str(tmp_path)), maintenance_session(spark, 1 << 20)
    make(spark, str(tmp_path / "t"))
    with private_log(lake, session, "t") as private:
        session.sql(f"OPTIMIZE {private.target}").collect()
        run(lake, spark, "t", "INSERT INTO {t} VALUES (100, 'new', 1)")
        after = private.exchange()
    assert (after.version, len(after.files)) == (3, 2)
    assert [row["id"] for row in by_spark(spark, str(tmp_path / "t"))] == list(range(101))
    with private_log(lake, session, "t") as private:
        session.sql(f"OPTIMIZE {private.target}").collect()
        run(lake, spark, "t", "DELETE FROM {t} WHERE id = 7")
        with pytest.raises(CommitConflict):
            private.exchange()
    assert [row["id"] for row in by_spark(spark, str(tmp_path / "t"))] == [*range(7), *range(8, 101)]


def test_what_needs_no_spark_is_part_of_the_same_commit(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    make(spark, str(tmp_path / "t"))
    before = lake.log("t").state()

    def work(private: PrivateLog) -> None:
        private.apply(columns_added(private.inside, [SilverColumn("b", "string"), SilverColumn("at", "timestamp_ntz")]))
        spark.sql(f"UPDATE {private.target} SET b = a WHERE id < 2").collect()
        private.apply([])

    after = change_table(lake, spark, "t", work)
    assert after.version == before.version + 1
    assert "timestampNtz" in after.features
    assert after.configuration == before.configuration
    assert [row["b"] for row in by_spark(spark, str(tmp_path / "t"))[:3]] == ["a0", "a1", None]


def test_what_fails_leaves_nothing_and_what_isnt_known_leaves_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    with pytest.raises(LakeRefused, match="no table"):
        change_table(lake, spark, "t", lambda _: None)
    make(spark, str(tmp_path / "t"))
    delete = "DELETE FROM {t} WHERE id = 1"
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        run(lake, spark, "t", delete, "ALTER TABLE {t} ADD COLUMNS (a INT)")
    assert not folders(tmp_path / "t")
    with pytest.raises(LakeUnavailable, match="isn't whole"):
        change_table(lake, spark, "t", lambda private: _first(private).unlink())
    store = lake.log("t").store
    create = store.create

    def lost(name: str, data: bytes) -> bool:
        create(name, data)
        monkeypatch.setattr(store, "get", _unreachable)
        raise LakeUnavailable("the answer was lost", where="t")

    monkeypatch.setattr(store, "create", lost)
    with pytest.raises(LakeUnavailable, match="isn't known"):
        run(lake, spark, "t", delete)
    monkeypatch.undo()
    assert len(by_spark(spark, str(tmp_path / "t"))) == 99, "it was there all the same"
    assert not logs(tmp_path / "t")


def _first(private: PrivateLog) -> Path:
    return Path(private.lake.uri(private.folder), "_delta_log", f"{0:020d}.json")


def _unreachable(_name: str) -> bytes | None:
    raise LakeUnavailable("no answer", where="t")


def test_tables_whose_rules_only_spark_follows_are_written(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    at = table_at(str(tmp_path / "t"))
    spark.sql(
        f"CREATE TABLE {at} (id BIGINT, a STRING, n INT, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableRowTracking' = 'true',"
        " 'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true',"
        " 'delta.enableInCommitTimestamps' = 'true')"
    )
    spark.sql(f"ALTER TABLE {at} ADD CONSTRAINT small CHECK (n < 10)")
    run(lake, spark, "t", "INSERT INTO {t} (id, a, n) SELECT id, 'a', 1 FROM range(0, 100)")
    run(lake, spark, "t", MERGE.format(t="{t}", low=90, high=105))
    version = lake.log("t").state().version
    with pytest.raises(Exception, match="CHECK constraint small"):
        run(lake, spark, "t", "UPDATE {t} SET n = 11 WHERE id = 1")
    changes = spark.sql(f"SELECT _change_type, id, twice FROM table_changes_by_path('{tmp_path}/t', {version})")
    found = {(row[0], row[1], row[2]) for row in changes.collect()}
    assert {one[:2] for one in found} == {
        *(("delete", n) for n in (90, 93, 96, 99)),
        *((kind, n) for n in (91, 92, 94, 95, 97, 98) for kind in ("update_preimage", "update_postimage")),
        *(("insert", n) for n in (100, 101, 102, 103, 104)),
    }
    assert all(twice == 2 * n for _, n, twice in found)
    rows = spark.read.format("delta").load(str(tmp_path / "t"))
    ids = rows.selectExpr("id", "_metadata.row_id AS row", "_metadata.row_commit_version AS at").collect()
    assert len({row["row"] for row in ids}) == len(ids) == 101
    assert {row["at"] for row in ids if row["id"] < 90} == {version - 1}
    assert {row["at"] for row in ids if row["id"] > 90} == {version}


ODD = ["sp ace", "per%cent", "%41", "ü+ñ=1", "q'uo`te", "a:b,c;d&e", "\u2003wide", "(#?)"]


def test_places_of_all_names_are_written_as_java_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark.sparkContext._jvm
    for odd in ODD:
        for place in (f"file:/{odd}/t", f"s3a://bucket/{odd}/t", f"abfss://box@name.dfs.core.windows.net/{odd}/t"):
            assert java_uri(place.removeprefix("file:")) == jvm.org.apache.hadoop.fs.Path(place).toUri().toString()
    root = tmp_path / "".join(ODD)
    root.mkdir()
    lake = LakeFiles(str(root))
    make(spark, str(root / "t"))
    session = table_session(spark, large=False)
    session.conf.set(DELETION_VECTORS, "true")
    run(lake, session, "t", "DELETE FROM {t} WHERE id = 98", "OPTIMIZE {t}")
    for _ in range(2):
        run(lake, session, "t", MERGE.format(t="{t}", low=90, high=95))
    assert [row["id"] for row in by_spark(spark, str(root / "t"))] == [*range(98), 99]


def test_vacuum_takes_what_is_dead_and_leaves_what_lives(spark: SparkSession, tmp_path: Path) -> None:
    lake, session = LakeFiles(str(tmp_path)), maintenance_session(spark, 1 << 20)
    make(spark, str(tmp_path / "t"))
    for low in (0, 10, 20):
        run(lake, spark, "t", MERGE.format(t="{t}", low=low, high=low + 5))
    run(lake, session, "t", "OPTIMIZE {t}")
    run(lake, spark, "t", "DELETE FROM {t} WHERE id = 50")
    expected = by_spark(spark, str(tmp_path / "t"))
    at = table_at(str(tmp_path / "t"))
    spark.sql(f"ALTER TABLE {at} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    before = lake.log("t").state()
    time.sleep(0.01)
    session.sql(f"VACUUM {at}").collect()
    left = [path for path in (tmp_path / "t").rglob("*") if path.is_file() and path.suffix in (".parquet", ".bin")]
    assert sorted(path.suffix for path in left) == [".bin", ".parquet"]
    assert by_spark(spark, str(tmp_path / "t")) == expected
    assert lake.log("t").state().version == before.version, "VACUUM commits nothing"


def test_what_a_killed_process_left_is_found_by_its_age(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeFiles(str(tmp_path))
    make(spark, str(tmp_path / "t"))
    monkeypatch.setattr(LakeFiles, "delete_folder", lambda *_: None)
    run(lake, spark, "t", "DELETE FROM {t} WHERE id = 1")
    with private_log(lake, spark, "t") as young:
        pass
    monkeypatch.undo()
    assert len(logs(tmp_path / "t")) == 2
    assert remove_leftovers(lake, "t") == []
    now = time.time() + limits.PRIVATE_LOG_SECONDS + 60
    monkeypatch.setattr(time, "time", lambda: now)
    assert len(remove_leftovers(lake, "t", dry_run=True)) == 2
    assert young.copy.name in remove_leftovers(lake, "t")
    assert not logs(tmp_path / "t")
    assert remove_leftovers(lake, "t") == []
    assert len(by_spark(spark, str(tmp_path / "t"))) == 99, "its data files are the table's"
    assert remove_leftovers(lake, "no/table") == []


def test_delta_forgets_private_logs(spark: SparkSession, tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    make(spark, str(tmp_path / "t"))
    package: Any = spark.sparkContext._jvm.org.apache.spark.sql.delta
    cache = getattr(getattr(package, "DeltaLog$"), "MODULE$")
    held = spark.sparkContext._jsc.sc().getPersistentRDDs
    before = cache.cacheSize(), held().size()
    for number in range(3):
        run(lake, spark, "t", f"DELETE FROM {{t}} WHERE id = {number}")
    assert cache.cacheSize() <= before[0]
    assert held().size() <= before[1]
