"""Maintain on real tables: kept cuts stay readable, what is older goes, and no row is lost to anyone."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spark_jobs import maintenance
from spark_jobs.maintain import run
from spark_jobs.maintain_steps.vacuum_files import _may_go
from spark_jobs.maintenance import Maintenance, SilverTable
from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.session.spark import maintenance_session
from tests.support.aged import age
from tests.support.readers import READERS
from tests.support.upsert_table import NAME, PATH, UP, Table
from tidegate import config, tables
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.actions import commit_info, lines, remove
from tidegate.errors import ConfigError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import compared, said_of_all
from tidegate.lake.silver.silver_tables import cluster_by
from tidegate.standing.silver import Unlike

pytestmark = pytest.mark.spark

DAY = 24.0


class Lake:
    """One silver table whose every window is a cut, written as apply writes it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.table = Table.create(spark, folder)
        self.files = self.table.app.lake
        self.path = self.files.uri(PATH)
        self.sql = f"delta.`{self.path}`"
        self.cut = 0
        self.shown: dict[int, dict[int, str]] = {}  # cut_ts -> what the table held
        self.lines: list[str] = []

    @property
    def model(self) -> dict[int, str]:
        """What it holds now."""
        return self.table.model

    def window(self, low: int, high: int, value: int) -> int:
        """Upsert ids [low, high) to value and publish a cut; returns its cut_ts."""
        self.table.write([(UP, number, str(value)) for number in range(low, high)])
        return self.publish({NAME: self.version})

    def publish(self, versions: dict[str, int], state: str = "active") -> int:
        self.cut += 1
        now = datetime.now(UTC)
        rows = [
            {"cut_ts": self.cut, "table": name, "delta_version": at, "applied_ts": self.cut, "state": state}
            | {"published_at": now}
            for name, at in {"": -1, **versions}.items()
        ]
        control.append(self.files, tables.CUTS, rows)
        self.shown[self.cut] = dict(self.model)
        return self.cut

    @property
    def version(self) -> int:
        return int(DeltaTable(self.path).version())

    def age(self, hours: float) -> None:
        age(self.spark, self.files, hours)

    def maintain(self, *, dry_run: bool = False, only: str | None = None, by: str = "", **settings: Any) -> Maintenance:
        """by: the column of tables.clustering."""
        rule = f", clustering: [{{match: 'd.*', columns: [{by}]}}]" if by else ""
        text = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\n"
        text += f"tables: {{include: ['d.*']{rule}}}\n"
        pipeline = config.parse(text, where="p.yaml")
        part = config.Maintain.model_validate(settings)
        session = maintenance_session(self.spark, part.file_bytes)
        mine = pipeline.model_copy(update={"maintain": part})
        job = Maintenance(session, mine, self.files, self.lines.append, dry_run=dry_run)
        run(job, only)
        return job

    def at(self, cut: int) -> dict[int, str]:
        """The table at a cut, as an analyst reads it: the newest row at or below the cut."""
        rows = control.read(self.files, tables.CUTS).sort_by([("cut_ts", "ascending"), ("published_at", "ascending")])
        named = [r for r in rows.to_pylist() if r["table"] == NAME and r["cut_ts"] <= cut][-1]["delta_version"]
        return {row["id"]: row["note"] for row in READERS["DuckDB"](self.path, named).to_pylist()}

    def outcomes(self, job_rows: list[dict[str, Any]] | None = None) -> list[tuple[str, str]]:
        rows = job_rows or control.read(self.files, tables.MAINTENANCE).to_pylist()
        return [(row["step"], row["outcome"]) for row in rows if row["table"] == NAME]

    def order(self) -> set[str]:
        """The columns that Delta has put its files in order of, as it notes them."""
        return {
            (file.action.get("tags") or {}).get("ZCUBE_ZORDER_BY", "") for file in self.files.log(PATH).state().files
        }

    def data_files(self) -> set[str]:
        return {path.name for path in Path(self.path).glob("*") if path.is_file() and not path.name.startswith(".")}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "lake")


def test_a_kept_cut_is_readable_after_vacuum_and_an_old_one_is_gone(lake: Lake) -> None:
    old = [lake.window(0, 100, 1), lake.window(0, 150, 2)]  # nothing of the first file is left
    lake.age(20 * DAY)
    kept = [lake.window(0, 60, 3)]
    lake.age(2 * DAY)
    kept.append(lake.window(140, 200, 4))
    before = lake.data_files()
    lake.maintain()
    assert before - lake.data_files()
    for cut in kept:
        assert lake.at(cut) == lake.shown[cut], cut
    named = {row["cut_ts"] for row in control.read(lake.files, tables.CUTS).to_pylist() if row["table"] == ""}
    assert named == set(kept)
    with pytest.raises(Exception, match=r"DELTA_UNSUPPORTED_TIME_TRAVEL|FILE_NOT_EXIST|FAILED_READ_FILE"):
        lake.spark.sql(f"SELECT count(note) FROM {lake.sql} VERSION AS OF {old[0]}").collect()
    assert ("vacuum", "done") in lake.outcomes()


def test_a_table_that_changes_once_a_month_is_readable_at_yesterdays_cut(lake: Lake) -> None:
    lake.window(0, 100, 1)
    lake.age(30 * DAY)
    quiet = lake.publish({})  # other tables' cut: it names nothing of ours
    lake.maintain()
    lake.age(DAY)
    later = lake.publish({})
    lake.maintain()
    lake.age(5 * DAY)
    changed = lake.window(0, 100, 2)
    lake.maintain()
    for cut in (quiet, later, changed):
        assert lake.at(cut) == lake.shown[cut], cut


def test_a_version_that_anothers_rewrite_left_without_rows_is_not_named(lake: Lake) -> None:
    """It says that it changed no row. Under a name in control/cuts apply would take it for published."""
    lake.window(0, 100, 1)
    lake.age(2 * DAY)
    log = lake.files.log(PATH)
    info = commit_info("OPTIMIZE", "")
    info["commitInfo"]["engineInfo"] = "another one"
    lost = lines([info, remove(log.state().files[0], data_change=False)])
    assert log.store.create(commit_name(log.state().version + 1), lost)
    lake.maintain()
    verdict = compared(lake.files, log, tables.app_id("p", NAME), said_of_all(lake.files)[NAME])
    assert verdict.unlike is Unlike.UNEVEN


def test_many_quiet_tables_take_one_look_at_the_cuts_and_one_commit_and_dropped_ones_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = {f"d.q{number}": lake.files.uri(tables.silver_path("d", f"q{number}")) for number in range(4)}
    for path in quiet.values():
        write_deltalake(path, pa.table({"id": [1, 2]}))
    lake.window(0, 10, 1)
    lake.publish(dict.fromkeys(quiet, 0))
    gone = DeltaTable(quiet["d.q3"])
    gone.delete()
    lake.publish({"d.q3": gone.version()}, state="dropped")
    lake.age(30 * DAY)
    lake.publish({})
    calls: list[tuple[str, str]] = []
    real = {"read": control.read, "append": control.append}
    for word in ("read", "append"):

        def counted(files: LakeFiles, table: tables.Table, *given: Any, word: str = word, **more: Any) -> Any:
            calls.append((word, table.path))
            return real[word](files, table, *given, **more)

        monkeypatch.setattr(control, word, counted)
    lake.maintain()
    assert calls.count(("read", tables.CUTS.path)) == 1
    assert calls.count(("append", tables.CUTS.path)) == 1
    monkeypatch.undo()
    assert [int(DeltaTable(path).version()) for path in quiet.values()][:3] == [2, 2, 2], "properties, then a touch"
    newest = control.newest(lake.files, tables.CUTS, by=["table"], order=["cut_ts", "published_at"]).to_pylist()
    assert {row["table"]: row["delta_version"] for row in newest if row["table"] in quiet} == dict.fromkeys(
        list(quiet)[:3], 2
    ) | {"d.q3": 1}
    assert not list(Path(quiet["d.q3"]).glob("*.parquet")), "the files of what was dropped are gone"
    lake.age(2 * DAY)
    lake.publish({})
    left = DeltaTable(quiet["d.q3"]).version()
    lake.maintain()
    assert DeltaTable(quiet["d.q3"]).version() == left
    assert DeltaTable(quiet["d.q0"]).version() == 3


def test_vacuum_leaves_a_table_alone_whose_kept_version_it_could_not_spare(lake: Lake) -> None:
    first = lake.window(0, 100, 1)
    lake.age(40 * DAY)
    lake.spark.sql(f"REORG TABLE {lake.sql} APPLY (PURGE)")
    lake.spark.sql(f"UPDATE {lake.sql} SET note = note")  # a person's rewrite, which no cut knows
    lake.age(20 * DAY)
    lake.publish({})
    lake.maintain()
    assert ("vacuum", "left") in lake.outcomes()
    assert any("kept cuts need version" in line for line in lake.lines)
    found = DeltaTable(lake.path, version=1).to_pyarrow_table
    assert first
    assert found is not None


def test_small_files_are_clustered_and_deleted_rows_purged(lake: Lake) -> None:
    for number in range(6):
        lake.window(number * 100, number * 100 + 100, 7)
    assert len(DeltaTable(lake.path).file_uris()) == 6
    lake.maintain()
    (packed,) = DeltaTable(lake.path).file_uris()
    assert pq.ParquetFile(packed).metadata.row_group(0).column(0).compression == "ZSTD", "as apply writes its files"
    again = lake.maintain()
    assert not again.rows
    assert lake.outcomes().count(("cluster", "done")) == 1, "an ordered table is left as it is"
    assert lake.at(lake.cut) == lake.model


@pytest.mark.parametrize("killed", [False, True], ids=["asked", "killed behind the first commit"])
def test_files_come_into_the_order_that_the_pipeline_file_asks_for(lake: Lake, killed: bool) -> None:
    for number in range(4):
        lake.window(number * 100, number * 100 + 100, 4 - number)
    lake.maintain()
    assert lake.order() == {'["id"]'}
    if killed:
        cluster_by(lake.files.log(PATH), ["note"])
    assert lake.maintain(by="nowhere").rows == [], "a column that the table lacks changes nothing"
    lake.maintain(by="note")
    assert lake.order() == {'["note"]'}
    assert lake.at(lake.cut) == lake.model
    assert lake.files.log(PATH).state().clustering_columns == ("note",)
    assert lake.maintain(by="note").rows == []


def test_deleted_rows_leave_a_clustered_table_which_reorg_would_skip(lake: Lake) -> None:
    lake.window(0, 1000, 1)
    lake.spark.sql(f"OPTIMIZE {lake.sql}")
    lake.spark.sql(f"DELETE FROM {lake.sql} WHERE id % 3 = 0")
    lake.table.model = {key: value for key, value in lake.model.items() if key % 3}
    lake.publish({NAME: lake.version})
    job = lake.maintain()
    assert not job.rows
    assert ("purge", "done") in lake.outcomes()
    size = job.size(SilverTable(NAME, ("d", "t"), []))
    assert (size.rows, size.dead, size.unclustered_bytes) == (len(lake.model), 0, 0)
    assert lake.at(lake.cut) == lake.model
    assert not [row for row in lake.maintain().rows if row["step"] in ("cluster", "purge")], "nothing is left to do"


def test_a_dry_run_says_what_it_would_do_and_does_nothing(lake: Lake) -> None:
    lake.window(0, 100, 1)
    lake.window(0, 100, 2)
    lake.age(20 * DAY)
    lake.window(100, 200, 3)
    version, files = lake.version, lake.data_files()
    job = lake.maintain(dry_run=True)
    assert (lake.version, lake.data_files()) == (version, files)
    assert control.read(lake.files, tables.CUTS).num_rows == 6
    assert {step for step, outcome in lake.outcomes(job.rows) if outcome == "left"} >= {"retain", "cluster", "vacuum"}
    assert not control.exists(lake.files, tables.MAINTENANCE)


def test_a_table_whose_silver_is_gone_gets_no_log_without_a_schema(lake: Lake) -> None:
    lake.window(0, 3, 1)
    shutil.rmtree(lake.path)
    lake.maintain()
    assert not Path(lake.path).exists()


def test_one_table_can_be_chosen_and_an_unknown_one_is_refused(lake: Lake) -> None:
    lake.window(0, 10, 1)
    assert lake.maintain(only=NAME).rows == []
    with pytest.raises(ConfigError, match=r"silver has no table d\.x; name one of these: d\.t"):
        lake.maintain(only="d.x")


def test_a_rewrite_that_loses_gives_way_and_loses_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer changes the very files between OPTIMIZE's read and its commit, every time."""
    for number in range(3):
        lake.window(number * 100, number * 100 + 100, 7)
    tries: list[int] = []
    exchange = PrivateLog.exchange

    def beaten(private: PrivateLog) -> object:
        """Of each file a row goes first."""
        low = len(tries)
        tries.append(low)
        lake.spark.sql(f"DELETE FROM delta.`{lake.path}` WHERE id % 100 = {low}").collect()
        for first in (0, 100, 200):
            del lake.model[first + low]
        return exchange(private)

    monkeypatch.setattr(maintenance, "MAINTAIN_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(PrivateLog, "exchange", beaten)
    lake.maintain()
    assert len(tries) == 3
    assert ("cluster", "gave way") in lake.outcomes()
    lake.publish({NAME: lake.version})
    assert lake.at(lake.cut) == lake.model
    assert not list(Path(lake.path).glob("tg-*"))


def test_private_logs_of_killed_processes_are_removed(lake: Lake) -> None:
    lake.window(0, 10, 1)
    left = [Path(lake.path, f"tg-{at:012x}{'0' * 20}", "_delta_log") for at in (1, int(time.time() * 1000))]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.json").touch()
    lake.maintain()
    assert [folder.exists() for folder in left] == [False, True]
    assert any(f"removed private logs {left[0].parent.name}" in line for line in lake.lines)


def test_table_names_are_quoted() -> None:
    job = Maintenance(None, None, LakeFiles("/a`b"), print)  # type: ignore[arg-type]
    assert job.sql_name(SilverTable("d.t", ("d", "t"), [])) == "delta.`/a``b/silver/d/t`"


def test_vacuum_looks_only_where_something_may_go(lake: Lake) -> None:
    """Not for a deletion vector that is old and in use, nor for what died a moment ago: VACUUM keeps both."""
    lake.window(0, 100, 1)
    lake.window(0, 5, 2)
    lake.age(30 * DAY)
    job = lake.maintain(dry_run=True)
    table = SilverTable(NAME, ("d", "t"), [])
    assert any(file.deletion_vector for file in job.files(table).files)
    assert not _may_go(job, table, job.written(table))
    lake.window(60, 100, 3)
    assert not _may_go(job, table, job.written(table))
    lake.age(30 * DAY)
    assert _may_go(job, table, job.written(table))
