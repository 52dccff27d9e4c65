"""One broken table stops no other in what works beside apply: rebuild, a snapshot's reader, lake backup and check.

In:  silver broken in each way of test_one_tables_trouble.py, all at once.
Out: the whole table is rebuilt, read, copied and found in order; each broken one is named, or does as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_one_tables_trouble import WAYS, Mend, apply_anew, begun, held, release
from tests.kit.road import Road
from tests.kit.snapshots import Reader, Reading, patiently
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate.cli.main import app as command_line
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import SnapshotWork
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE, silver_path

pytestmark = [pytest.mark.server, pytest.mark.spark]
BROKEN = tuple(way.__name__ for way in WAYS)


@pytest.fixture
def road(mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path) -> Road:
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    made = begun(mariadb, fresh_database(mariadb), tmp_path, ("whole", *BROKEN))
    made.lake = LakeFiles(made.lake.root)
    return made


def _database(road: Road) -> str:
    return road.pipeline.tables.include[0].partition(".")[0]


def _broken(road: Road) -> list[Mend]:
    """Each table but one, in a way of its own."""
    database = _database(road)
    return [way(Path(road.lake.uri(silver_path(database, way.__name__)))) for way in WAYS]


def _said(road: Road, *arguments: str) -> tuple[int, str]:
    name, *rest = arguments
    done = CliRunner().invoke(command_line, ["lake", name, str(road.file), *rest])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_rebuild_makes_each_table_anew_whatever_is_broken(road: Road, spark: SparkSession) -> None:
    _broken(road)
    for name in ("whole", *BROKEN):
        road.lake = LakeFiles(road.lake.root)  # as a process that begins
        plan = Rebuild.plan(road.pipeline, road.lake, f"{_database(road)}.{name}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
        rows = READERS["DuckDB"](road.lake.uri(plan.to)).select(["id", "v"]).to_pylist()
        assert sorted((row["id"], row["v"]) for row in rows) == [(1, 1), (2, 2)], name


def test_a_backup_has_what_can_be_copied_and_names_the_rest(road: Road, tmp_path: Path) -> None:
    _broken(road)
    silver = f"silver/{_database(road)}"
    copy = tmp_path / "copy"
    code, text = _said(road, "backup", str(copy))
    assert code == 1
    lost = ("checkpoint", "folder", "gone", "torn")  # other bytes, and features of others, are copied as they are
    assert f"nor 4 tables: {', '.join(f'{silver}/{name}' for name in lost)}" in text
    rows = READERS["DuckDB"](str(copy / silver / "whole")).select(["id", "v"]).to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == [(1, 1), (2, 2)]

    code, text = _said(road, "check")
    assert code == 1
    named = {name for name in ("whole", *BROKEN) if f"{_database(road)}.{name}: " in text}
    assert named == {"feature", "checkpoint", "folder", "torn"}, "a log doesn't know what became of its data files"


def test_a_snapshot_reads_the_others_and_those_whose_rows_are_lost(road: Road, spark: SparkSession) -> None:
    mends = _broken(road)
    names = [f"{_database(road)}.{name}" for name in ("whole", *BROKEN)]
    reading = Reading(road, spark)
    reader = Reader(SnapshotWork(road.pipeline, road.lake, lambda _: road.info, reading.lines.append), *names)

    def done() -> set[str]:
        return {table.table for table in told(road.lake, "road") if table.state is SnapshotState.DONE}

    for _ in patiently():
        reader.is_over(0.3)
        road.capture()
        app = road.apply(spark)
        if done() >= {"whole", "gone", "damaged"} == {"whole", *BROKEN} - held(app).keys():
            break
    assert held(app) == dict.fromkeys(("feature", "torn", "checkpoint", "folder"), Cause.FAULT)
    assert road.assert_equal() == {"whole": 2, "gone": 2, "damaged": 2}
    for way, mend in zip(WAYS, mends, strict=True):
        if way.__name__ in held(app):
            mend()
            release(road, f"{_database(road)}.{way.__name__}")
    apply_anew(road)
    for _ in patiently():
        if reader.is_over(0.3):  # until then it has the lease that the next one needs
            break
        road.capture()
        road.apply(spark)
    assert not held(Reading(road, spark).run())
    assert road.assert_equal() == dict.fromkeys(("whole", *BROKEN), 2)
