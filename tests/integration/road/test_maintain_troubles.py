"""One table's trouble stays its own in maintain, too: whatever breaks its silver or its changelog, the others are kept.

In:  a real server's tables with changelogs; silver or the changelog of some broken as in test_one_tables_trouble.py.
Out: the others are maintained, the run is red and names those that aren't, and control/maintenance has a row for each.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintain_steps import keep_changelogs
from spark_jobs.maintenance import DONE, LEFT, Maintenance
from spark_jobs.session.spark import maintenance_session
from tests.integration.road.test_one_tables_trouble import WAYS, Mend, apply_anew, held, release
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.changelog import packing
from tidegate.changelog.changelog_table import changelog
from tidegate.errors import LakeUnavailable
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.tables import MAINTENANCE, silver_path

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(600)]

_BROKEN = tuple(way.__name__ for way in WAYS)
_NAMES = (*_BROKEN, "whole")


def _begun(server: Server, database: str, folder: Path) -> Road:
    """Tables with changelogs of a few files."""
    road = Road(server, folder, include=f"{database}.*", extra=", changelog: ['*.*']")
    road.capture()
    for name in _NAMES:
        server.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)", database=database)
        server.query(f"INSERT INTO {name} VALUES (1, 1), (2, 2)", database=database)
    for _ in range(2):
        road.capture()
        apply_anew(road)
        _change(server, database)
    return road


def _change(server: Server, database: str) -> None:
    for name in _NAMES:
        server.query(f"UPDATE {name} SET v = v + 10", database=database)


def _maintained(road: Road, spark: SparkSession) -> dict[str, set[str]]:
    """By a run that ends red: outcomes by the table's name, or the changelog's path."""
    job = Maintenance(maintenance_session(spark, 1 << 28), road.pipeline, LakeFiles(road.lake.root), road.lines.append)
    with pytest.raises(LakeUnavailable, match="of maintain failed"):
        maintain.run(job)
    outcomes: dict[str, set[str]] = {}
    for row in control.read(job.lake, MAINTENANCE).to_pylist():
        outcomes.setdefault(row["table"], set()).add(row["outcome"])
    return outcomes


def test_whatever_breaks_one_tables_silver_maintain_keeps_the_others(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = _begun(mariadb, database, tmp_path)
    for way in WAYS:
        way(Path(road.lake.uri(silver_path(database, way.__name__))))
    outcomes = _maintained(road, spark)
    assert DONE in outcomes[f"{database}.whole"]
    for name in ("feature", "torn", "checkpoint", "folder"):
        assert LEFT in outcomes[f"{database}.{name}"], name


def test_whatever_breaks_one_changelog_the_others_are_written_and_kept(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh_database(mariadb)
    road = _begun(mariadb, database, tmp_path)
    paths = {name: changelog(database, name).path for name in _NAMES}
    mends: list[Mend] = [way(Path(road.lake.uri(paths[way.__name__]))) for way in WAYS]
    road.capture()
    app = apply_anew(road)
    assert {"feature", "torn", "checkpoint", "folder"} <= held(app).keys() <= set(_BROKEN)
    assert road.assert_equal()["whole"] == 2
    changes = control.read(road.lake, changelog(database, "whole"))
    assert changes.num_rows >= 6, "the last window's two changes are there"

    for module in (keep_changelogs, packing):
        monkeypatch.setattr(module, "CONTROL_PACKED_FILES_MIN", 1)
    outcomes = _maintained(road, spark)
    assert outcomes[paths["whole"]] == {DONE}
    for name in (name for name in _BROKEN if name != "folder"):  # that one has no log to be seen by
        assert LEFT in outcomes[paths[name]], name

    for mend in mends:
        mend()
    for name in held(app):
        release(road, f"{database}.{name}")
    app = apply_anew(road)
    assert not held(app)
    assert road.assert_equal() == dict.fromkeys(_NAMES, 2)
