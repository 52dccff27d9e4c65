"""Rows and columns that another writer changed in silver: verify names the table, and what it asks for brings the
source back.

In:  a real server; CASES: a table, and statements of Spark's on its silver. To add a case is to add a line.
Out: a table that nobody changed is equal; each case differs, and is equal behind `verify --repair`, a snapshot or
     `rebuild --swap`, by the server's own SELECT; apply goes on with it. A table with other columns waits till then.

The gate has the most telling cases, by the positional writer: of each kind of table and of each end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.verify.test_at_work import meanwhile
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.lake.people.audit import actions
from tidegate.local.server import Server
from tidegate.repair import verify_and_repair
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE, State
from tidegate.tables.actions_table import Act
from tidegate.verify.report import Outcome, Report
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1800)]

INT: Final = "(id INT PRIMARY KEY, v INT)"
TEXT: Final = "(id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)"
PAIR: Final = "(shop INT DEFAULT 7, id INT, v INT, PRIMARY KEY (shop, id))"
UNIQUE: Final = "(shop INT NULL, id INT, v INT, UNIQUE (shop, id))"  # no key, as a NULL may stand in it
ALL: Final = "SELECT * FROM {t}"
ABOVE_ALL: Final = 9223372036854775807  # no clock's
MAPPED: Final = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
DROPPED: Final = f"{MAPPED}; ALTER TABLE {{t}} DROP COLUMN v"
RETYPED: Final = f"{DROPPED}; ALTER TABLE {{t}} ADD COLUMN v STRING"
FED: Final = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
UNSTAMPED: Final = f"{MAPPED}; ALTER TABLE {{t}} DROP COLUMN _tg_commit_ts"


class End(StrEnum):
    """What brings the source back."""

    REPAIR = "verify --repair"
    SNAPSHOT = "a snapshot"
    REREAD = "a snapshot by itself: it waits for rows"
    REBUILD = "rebuild --swap; or a snapshot, where bronze no longer reaches back"

    @property
    def waits(self) -> bool:
        """Whether the table waits until then, once it has a change."""
        return self in (End.REREAD, End.REBUILD)


@dataclass(frozen=True, slots=True)
class Case:
    """defined: at the source, with ids 1 to 6. by_hand: of silver `{t}`, statements between semicolons."""

    defined: str
    by_hand: str
    end: End = End.REPAIR


CASES: Final[dict[str, Case]] = {
    "null_key": Case(INT, "UPDATE {t} SET id = NULL WHERE id = 2", End.SNAPSHOT),
    "null_in_key": Case(PAIR, "UPDATE {t} SET shop = NULL WHERE id = 2", End.SNAPSHOT),
    "all_null": Case(INT, "UPDATE {t} SET id = NULL, v = NULL, _tg_commit_ts = NULL", End.SNAPSHOT),
    "other_key": Case(INT, "UPDATE {t} SET id = 4711 WHERE id = 2"),
    "first_key": Case(INT, "UPDATE {t} SET id = -5 WHERE id = 2"),
    "twins": Case(INT, f"INSERT INTO {{t}} {ALL}"),
    "unlike_twin": Case(INT, "INSERT INTO {t} SELECT id, 999, _tg_commit_ts FROM {t} WHERE id = 5"),
    "fed_twins": Case(INT, f"{FED}; INSERT INTO {{t}} {ALL}"),
    "fed_null_key": Case(INT, f"{FED}; UPDATE {{t}} SET id = NULL WHERE id = 2", End.SNAPSHOT),
    "no_time": Case(INT, "INSERT INTO {t} VALUES (77, 1, NULL)"),
    "later_time": Case(INT, f"INSERT INTO {{t}} VALUES (77, 1, {ABOVE_ALL})"),
    "times_gone": Case(INT, "UPDATE {t} SET _tg_commit_ts = NULL, v = 0 WHERE id = 5"),
    "other_case": Case(TEXT, "INSERT INTO {t} SELECT upper(id), v, _tg_commit_ts FROM {t} WHERE v = 20"),
    "other_accent": Case(TEXT, "UPDATE {t} SET id = 'ä5' WHERE v = 50"),
    "trailing_space": Case(TEXT, "UPDATE {t} SET id = 'a5  ' WHERE v = 50"),
    "no_row": Case(INT, "DELETE FROM {t}"),
    "keyless": Case(UNIQUE, "UPDATE {t} SET id = NULL WHERE id = 5", End.SNAPSHOT),
    "keyless_twins": Case(UNIQUE, f"INSERT INTO {{t}} {ALL}", End.SNAPSHOT),
    "keyless_hash": Case(UNIQUE, "INSERT INTO {t} (id, v) VALUES (5, 50)", End.SNAPSHOT),
    "soft": Case(INT, "INSERT INTO {t} VALUES (77, 1, NULL, false)"),
    "soft_null_key": Case(INT, "UPDATE {t} SET id = NULL WHERE id = 2", End.SNAPSHOT),
    "soft_no_mark": Case(INT, "INSERT INTO {t} (id, v) VALUES (77, 1)", End.SNAPSHOT),
    "history": Case(INT, "UPDATE {t} SET v = 0 WHERE id = 5"),
    "history_null_key": Case(INT, "UPDATE {t} SET id = NULL WHERE id = 2", End.SNAPSHOT),
    "history_twins": Case(INT, f"INSERT INTO {{t}} {ALL}"),
    "history_no_mark": Case(INT, "UPDATE {t} SET _tg_is_current = NULL, _tg_commit_ts = NULL WHERE id = 2"),
    "history_ended": Case(INT, "UPDATE {t} SET _tg_valid_to = _tg_valid_from + 1 WHERE id = 5", End.SNAPSHOT),
    "shard_null_key": Case(INT, "UPDATE {t} SET id = NULL WHERE id = 2", End.SNAPSHOT),
    "shard_none": Case(INT, "UPDATE {t} SET _tg_source = NULL WHERE id = 2", End.SNAPSHOT),
    "shard_other": Case(INT, "UPDATE {t} SET _tg_table = 'nobody' WHERE id = 5", End.SNAPSHOT),
    "shard_extra": Case(INT, "INSERT INTO {t} (id, v) VALUES (5, 50)", End.SNAPSHOT),
    "retyped": Case(INT, RETYPED, End.REREAD),
    "retyped_keyless": Case(UNIQUE, RETYPED, End.REREAD),
    "soft_retyped": Case(INT, RETYPED, End.REBUILD),
    "history_retyped": Case(INT, RETYPED, End.REBUILD),
    "shard_retyped": Case(INT, RETYPED, End.REREAD),
    "dropped": Case(INT, DROPPED, End.REREAD),
    "soft_dropped": Case(INT, DROPPED, End.REBUILD),
    "shard_dropped": Case(INT, DROPPED, End.REREAD),
    "unstamped": Case(INT, UNSTAMPED, End.REREAD),
    "history_unstamped": Case(INT, UNSTAMPED, End.REBUILD),
    "shard_unstamped": Case(INT, UNSTAMPED, End.REREAD),
}
UNTOUCHED: Final = "untouched"


class Hands(Road):
    """A road with a table for each case; those of shards have two at the source."""

    def __init__(self, server: Server, folder: Path, database: str, writer: str, names: Collection[str]) -> None:
        extra = (
            f", soft_delete: ['{database}.soft.*'], history: ['{database}.history.*'],"
            f" routes: [{{match: '{database}.(shard_.*)_\\d', to: '{database}.\\1'}}]"
        )
        super().__init__(server, folder, include=f"{database}.*", extra=extra, apply=f", writer: {writer}")
        self.database = database
        self.cases = {UNTOUCHED: Case(INT, ALL)} | {name: CASES[name] for name in names}

    def at_source(self, name: str) -> list[str]:
        return [f"{name}_1", f"{name}_2"] if name.startswith("shard_") else [name]

    def ask(self, statement: str) -> None:
        """A statement for each table at the source: {name}, {defined} and {text}, which begins its ids."""
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            for case_name, case in self.cases.items():
                for name in self.at_source(case_name):
                    text = "a" if case.defined == TEXT else ""
                    cursor.execute(statement.format(name=name, defined=case.defined, text=text))
            connection.commit()

    def silver(self, name: str) -> str:
        return self.lake.uri(tables.silver_path(self.database, name))

    def unlike(self) -> set[str]:
        """Cases whose live rows in silver aren't those of the server."""
        return {name for name in self.cases if self._rows(name) != self._source_rows(name)}

    def _rows(self, name: str) -> Counter[tuple[object, object]]:
        rows = READERS["DuckDB"](self.silver(name)).to_pylist()
        live = (row for row in rows if not row.get(tables.DELETED) and row.get(tables.IS_CURRENT) is not False)
        return Counter((row["id"], row.get("v")) for row in live)

    def _source_rows(self, name: str) -> Counter[tuple[object, object]]:
        asked = (self.server.query(f"SELECT id, v FROM {one}", database=self.database) for one in self.at_source(name))
        return Counter(row for rows in asked for row in rows)

    def by_end(self, *ends: End) -> set[str]:
        return {name for name, case in self.cases.items() if name != UNTOUCHED and case.end in ends}

    def rebuild(self, name: str, spark: SparkSession) -> None:
        plan = Rebuild.plan(self.pipeline, self.lake, f"{self.database}.{name}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=self.lines.append) == 0
        swap(plan, BackgroundSession(no_spark), report=self.lines.append)

    def differing(self) -> set[str]:
        """Cases that verify finds different or held; nothing else is unequal."""
        report = verify(self.pipeline, {"one": self.info}, self.lake.root, {}, VerifyOptions(timeout_seconds=60))
        unequal = [result for result in report.tables if result.outcome is not Outcome.EQUAL]
        assert {result.outcome for result in unequal} <= {Outcome.DIFFERENT, Outcome.HELD, Outcome.WAITS}, unequal
        return {result.silver.partition(".")[2] for result in unequal}


MERGED: Final = ("twins", "null_key", "soft_no_mark", "history_twins", "shard_none", "retyped")
TELLING: Final = (
    *("null_key", "fed_twins", "times_gone", "other_case", "keyless_twins", "soft", "soft_no_mark", "history_twins"),
    *("history_ended", "shard_extra", "retyped", "history_unstamped"),
)
PAST: Final = tuple(name for name, case in CASES.items() if case.end is End.REBUILD)


@pytest.mark.parametrize(
    ("writer", "names"),
    [
        pytest.param("auto", TELLING, id="auto"),
        pytest.param("auto", CASES.keys() - TELLING, id="auto-more"),
        pytest.param("auto", PAST, id="auto-read"),
        pytest.param("merge", MERGED, id="merge"),
        pytest.param("merge", CASES.keys() - MERGED, id="merge-more"),
    ],
)
def test_what_another_writer_did_is_found_and_undone(
    any_server: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    writer: str,
    names: Collection[str],
) -> None:
    """Those of PAST are read by a snapshot, too, in place of their rebuild."""
    database = fresh_database(any_server)
    road = Hands(any_server, tmp_path, database, writer, sorted(names))
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    any_server.query(f"GRANT LOCK TABLES ON *.* TO '{any_server.user}'@'%'")  # for tables without a key on MySQL
    road.capture()
    road.ask("CREATE TABLE {name} {defined}")
    for number in range(1, 7):
        road.ask(f"INSERT INTO {{name}} (id, v) VALUES ('{{text}}{number}', {number}0)")
    road.capture()
    road.apply(spark)
    assert not road.unlike()
    for name, case in road.cases.items():
        for statement in case.by_hand.split("; "):
            spark.sql(statement.format(t=f"delta.`{road.silver(name)}`")).collect()
    assert road.differing() == set(names)

    # Apply goes on. A change of the source may undo what was done to its key.
    road.ask("UPDATE {name} SET v = 21 WHERE id = '{text}2'")
    road.ask("INSERT INTO {name} (id, v) VALUES ('{text}8', 80)")
    road.capture()
    app = road.apply(spark)
    held = {name.partition(".")[2]: standing for name, standing in app.states.items() if standing.state is State.HELD}
    assert held.keys() == road.by_end(End.REREAD, End.REBUILD)
    assert {standing.cause for standing in held.values()} <= {Cause.MISMATCH}
    assert {name for name, standing in held.items() if standing.lacks_rows} == road.by_end(End.REREAD)
    noted = {
        action.action.tables[0].partition(".")[2] for action in actions(road.lake) if action.action.act is Act.WRITE
    }
    assert noted == road.by_end(End.REPAIR, End.SNAPSHOT)
    wrong = road.differing()
    assert wrong >= road.unlike(), "nothing that a reader sees is passed over"
    if writer != "merge":
        wrong = repaired(road, spark)
    for name in () if names is PAST else sorted(road.by_end(End.REBUILD)):
        road.rebuild(name, spark)
        wrong.remove(name)
    app = Reading(road, spark).run(*(f"{database}.{name}" for name in sorted(wrong)))
    assert not [name for name, standing in app.states.items() if standing.state is not State.ACTIVE]
    assert not road.differing()
    assert not road.unlike()

    road.ask("UPDATE {name} SET v = v + 1")
    road.ask("DELETE FROM {name} WHERE id IN ('{text}3', '{text}5')")
    road.capture()
    road.apply(spark)
    assert not road.differing()
    assert not road.unlike()


def repaired(road: Hands, spark: SparkSession) -> set[str]:
    """What `verify --repair` leaves; it says of each what ends it."""
    said: list[str] = []

    def mend() -> Report:
        options = VerifyOptions(timeout_seconds=300)
        return verify_and_repair(road.pipeline, road.lake, {"one": road.info}, options, repair=True, report=said.append)

    meanwhile(road, spark, mend)
    wrong = road.differing()
    assert wrong == road.cases.keys() - {UNTOUCHED} - road.by_end(End.REPAIR), said
    for name in road.by_end(End.SNAPSHOT):
        assert any(line.startswith(f"{road.database}.{name}") and "snapshot start" in line for line in said), said
    return wrong
