"""Silver that a killed window wrote, and a cut that is published below it: no reader of a cut sees rows of after it.

Apply dies between its tables' commits and its cut; then windows get smaller, and the pipeline file keeps other tables.
At every published cut each table that it doesn't name as behind must have what the source's own SELECT said then.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.cuts.published import cut_at, known_cuts
from tidegate.lake.standing.held import last_states
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

_WINDOW_BYTES = 1 << 20
_PAD = f"INSERT INTO pad (b) VALUES (REPEAT('x', {3 * _WINDOW_BYTES // 2}))"  # a window of its own
Rows = list[tuple[int, int]]
_MADE = ("left_out", "moved", "routed", "keep")


class Cuts(Road):
    """A road that remembers what the source's SELECT said after each step."""

    def begin(self, database: str) -> None:
        self.database = database
        self.told: list[tuple[int, dict[str, Rows]]] = []

    def step(self, *statements: str) -> None:
        """The statements, and so much besides that a small window holds no more; then capture them."""
        said: dict[str, Rows] = {}
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute("SET autocommit = 1")
            for statement in (*statements, _PAD):
                cursor.execute(statement)
            cursor.execute("SHOW TABLES")
            for name in [str(row[0]) for row in cursor.fetchall() if row[0] != "pad"]:
                cursor.execute(f"SELECT id, v FROM `{name}` ORDER BY id")
                said[name] = list(cursor.fetchall())
        self.capture()
        index = BronzeIndex(self.lake)
        index.refresh(0)
        self.told.append((max(ref.max_commit_ts for ref in index.refs["one"]), said))

    def selects(self, *, exclude: str = "", routes: str = "", window_bytes: int = _WINDOW_BYTES) -> None:
        kept = f"include: ['{self.database}.*']"
        kept += f", exclude: ['{self.database}.({exclude})']" if exclude else ""
        kept += f", routes: [{routes}]" if routes else ""
        self.file.write_text(
            f"{self.text.partition('tables: ')[0]}tables: {{{kept}}}\n"
            "capture: {land_seconds: 0.1, heartbeat_seconds: 0.5}\n"
            f"apply: {{mode: batch, window_bytes: {window_bytes}}}\n"
        )
        self.pipeline = config.load(self.file)

    def check(self) -> dict[str, int]:
        """Compare each table of each published cut; the tables of the newest one, with how many rows each has."""
        found: dict[str, int] = {}
        for cut_ts in known_cuts(self.lake):
            said = next(said for at, said in reversed(self.told) if at <= cut_ts)
            cut, found = cut_at(self.lake, "road", cut_ts), {}
            for table in cut.tables.values():
                if table.table == "pad":
                    continue
                opened = DeltaTable(self.lake.uri(table.path), version=table.version)
                rows = QueryBuilder().register("silver", opened).execute("SELECT id, v FROM silver ORDER BY id")
                silver = [(row["id"], row["v"]) for row in pa.table(rows).to_pylist()]
                wanted = said.get("routed" if table.table == "apart" else table.table, [])
                assert silver == wanted, f"{table.table} at cut {cut_ts} of {known_cuts(self.lake)}"
                found[table.table] = len(silver)
        return found


def inserted(number: int, *names: str) -> list[str]:
    return [f"INSERT INTO {name} VALUES ({number}, {number})" for name in names]


@pytest.mark.timeout(900)
def test_no_cut_shows_what_a_killed_window_wrote_above_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.held (id INT PRIMARY KEY, v INT)")
    mariadb.query(f"INSERT INTO {database}.held VALUES (1, 1)")
    road = Cuts(mariadb, tmp_path, include=f"{database}.*")
    road.begin(database)
    road.selects(window_bytes=100 * _WINDOW_BYTES)
    road.capture()
    road.step(
        "CREATE TABLE pad (id INT AUTO_INCREMENT PRIMARY KEY, b LONGTEXT)",
        *(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in _MADE),
        *inserted(1, *_MADE),
    )
    road.apply(spark)
    assert road.check().keys() == set(_MADE), "one waits for its rows, until its TRUNCATE"

    # Four windows' worth in one, whose tables are written when it dies.
    changed = ("left_out", "moved", "routed")
    road.step(*inserted(2, *changed))
    road.step()
    road.step(*inserted(4, *changed), "UPDATE left_out SET v = 40 WHERE id = 1")
    last = ("left_out", "routed", "moved_away", "held", "keep")
    road.step("RENAME TABLE moved TO moved_away", "TRUNCATE TABLE held", *inserted(5, *last))
    killed(spark, road.file, "apply_before_publish")

    # Smaller windows; what was large is left out with some others, and one flows elsewhere.
    road.selects(exclude="pad|left_out|moved", routes=f"{{match: '{database}.routed', to: '{database}.apart'}}")
    killed(spark, road.file, "apply_after_publish")
    road.check()

    # What was left out is taken back before the cut has got to where silver is, and catches up to the cut.
    road.selects(exclude="pad")
    for _ in range(2):
        killed(spark, road.file, "apply_after_publish:2")
        road.check()
    ahead = road.told[-1][0]
    assert known_cuts(road.lake)[-1] < ahead
    waits = {name.split(".")[1] for name, state in last_states(road.lake).items() if state.state.waits}
    assert waits == {"left_out", "moved", "routed", "held"}
    app = road.apply(spark)
    assert app.cut_ts >= ahead
    assert not [name for name, state in app.states.items() if state.state.waits]
    assert road.check() == {"left_out": 4, "routed": 4, "moved_away": 4, "keep": 2, "held": 1}
    road.assert_equal()
