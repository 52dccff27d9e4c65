"""Snapshots of tables whose silver was made by other rules than the pipeline file has now.

In:  a real server; rules of a pipeline file that change, plain tables, history, soft delete;
     snapshots.
Out: a plain table is read anew by the new rule. A table with a past isn't read at all, by name:
     its past would keep the old rule. A snapshot that was under way as its rule changed ends, and
     a swap doesn't wait for it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_masks import silver_of
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.errors import UsageError
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import request, told
from tidegate.snapshot.work import SnapshotWork
from tidegate.table_names import Physical
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

RULES = {
    "renamed": "renames: [{match: '%s.[hps]_renamed', columns: {a: c}}]",
    "masked": "masks: [{match: '%s.[hps]_masked', columns: [a], how: constant, value: x}]",
    "chosen": "rows: [{match: '%s.[hps]_chosen', where: 'a < 15'}]",
    "more": "computed: [{match: '%s.[hps]_more', name: twice, type: bigint, expression: 'b * 2'}]",
}
ROWS = {
    "renamed": ("id, c", [(1, 10), (2, 20), (3, 30)]),
    "masked": ("id, a", [(1, "x"), (2, "x"), (3, "x")]),
    "chosen": ("id, a", [(1, 10)]),
    "more": ("id, twice", [(1, 22), (2, 42), (3, 62)]),
}


def test_a_snapshot_reads_a_table_by_a_changed_rule_or_says_that_it_cannot(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    more = f", history: ['{database}.h_.*'], soft_delete: ['{database}.s_masked'], renames: []"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=more)
    road.capture()
    pasts = [*(f"h_{rule}" for rule in RULES), "s_masked"]
    names = [*(f"p_{rule}" for rule in RULES), *pasts]
    for name in names:
        run(mariadb, database, f"""
            CREATE TABLE {name} (id INT PRIMARY KEY, a INT, b INT)
            INSERT INTO {name} VALUES (1, 10, 11), (2, 20, 21)
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))

    rules = ", ".join(text % database for text in RULES.values())
    road.file.write_text(road.text.replace("renames: []", rules))
    road.pipeline = config.load(road.file)
    for name in names:
        run(mariadb, database, f"INSERT INTO {name} VALUES (3, 30, 31)")
    road.capture()
    reasons = held(road.apply(spark))
    assert reasons.keys() == {f"{database}.{name}" for name in names}
    for name in names:
        assert ("`tidegate snapshot start` reads it anew" in reasons[f"{database}.{name}"]) == (name not in pasts)

    work = SnapshotWork(road.pipeline, road.lake, lambda _: road.info, road.lines.append)
    with pytest.raises(UsageError, match=r"no snapshot makes its past anew: .*rebuild --swap"):
        work.wanted([f"{database}.{name}" for name in pasts])
    # One that was asked for before the file changed, or by an older release.
    request(road.lake, "road", [Physical("one", database, name) for name in pasts])
    Reading(road, spark).run(f"{database}.p_.*")
    for rule, (columns, rows) in ROWS.items():
        assert silver_of(road, f"{database}.p_{rule}", columns) == rows
    ends = {past.table: (past.state, past.reason) for past in told(road.lake, "road")}
    for name in pasts:
        state, reason = ends[name]
        assert state is SnapshotState.FAILED
        assert "rebuild --swap" in reason
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)
    assert not held(road.apply(spark))
    road.assert_equal()
    for rule, (columns, rows) in ROWS.items():
        current = silver_of(road, f"{database}.h_{rule}", f"{columns}, CAST(_tg_is_current AS INT) AS live")
        assert [row[:-1] for row in current if row[-1]] == rows
