"""`tidegate erase` where silver keeps the past: rows of a history, deleted rows with a mark, and a changelog go, too.

In:  a real server; a table each with a history, a soft delete, a changelog; changes of a person and of others; kills; a
     bronze that begins later than the tables do.
Out: no file of the lake has a value of the person, others keep each version and each change, and apply goes on. A
     changelog's reader between two places lacks nothing.
"""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintenance import Maintenance
from tests.integration.road.test_erase import PERSON, erase, erased, in_payloads
from tests.integration.road.test_renames import held, run
from tests.kit.changelogs import changes_of
from tests.kit.road import Road
from tests.support.aged import age_all
from tests.support.nursery import Nursery
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.changelog.changelog_table import ERASED, changelog
from tidegate.changelog.reading import ChangePlace, changes_after
from tidegate.config import Maintain
from tidegate.errors import UsageError
from tidegate.local.server import Server
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import live_rows

pytestmark = [pytest.mark.server, pytest.mark.spark]

ERASED_ROWS = 4  # of the person in a changelog: an insert, two updates, a delete
POINTS = ("erase_after_purge", "erase_before_files", "erase_after_changelog_commit")
DAYS = 100  # of a run of maintain; more than bronze is kept
TABLES = ("versions", "marked", "logged")


def begun(server: Server, database: str, folder: Path, more: str = "") -> Road:
    """A road that keeps a past of each table. more: keys of `tables`, behind a comma."""
    extra = f", history: ['{database}.versions'], soft_delete: ['{database}.marked']"
    extra += f", changelog: ['{database}.logged', '{database}.versions']"
    road = Road(server, folder, include=f"{database}.*", extra=extra + more)
    road.capture()
    return road


def filled(road: Road, spark: SparkSession, database: str) -> None:
    """A person with three versions and two keys, and another one who did the same."""
    for table in TABLES:
        run(road.server, database, f"""
            CREATE TABLE {table} (day DATE, mail VARCHAR(60), note TEXT, PRIMARY KEY (day, mail))
            INSERT INTO {table} VALUES ('2026-01-02', '{PERSON}', 'a'), ('2026-01-02', 'bob', 'b')
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    for table in TABLES:
        run(road.server, database, f"""
            UPDATE {table} SET note = 'again {PERSON}' WHERE mail = '{PERSON}'
            UPDATE {table} SET note = 'bob again' WHERE mail = 'bob'
            UPDATE {table} SET mail = CONCAT('2 ', mail)
            UPDATE {table} SET day = '2026-01-03' WHERE mail = '2 bob'
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    for table in TABLES:
        run(road.server, database, f"DELETE FROM {table} WHERE mail LIKE '%{PERSON}'")
        run(road.server, database, f"DELETE FROM {table} WHERE mail LIKE '%bob'")
        run(road.server, database, f"INSERT INTO {table} VALUES ('2026-01-09', 'later', '')")
    road.capture()
    assert not held(road.apply(spark))


def rows(road: Road, database: str, table: str) -> list[dict[str, Any]]:
    """All rows of a table's silver, those of the past, too."""
    path = f"silver/{database}/{table}"
    state = road.lake.log(path).state()
    pieces = [piece for file in state.files for piece in live_rows(road.lake, path, file, FileLayout.of(state, ()))]
    return [row for piece in pieces for row in piece.to_pylist()]


def mails(road: Road, database: str, table: str) -> list[str]:
    return sorted(row["mail"] for row in rows(road, database, table))


def test_a_person_leaves_a_past_under_other_names(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    names = f", renames: [{{match: '{database}.*', columns: {{mail: day, day: mail, note: words}}}}]"
    road = begun(mariadb, database, tmp_path, names)
    filled(road, spark, database)
    before = [row["day"] for row in rows(road, database, "versions")]
    where = f"mail = '{PERSON}' AND day = '2026-01-02'"
    for table in TABLES:
        assert erased(road, f"{database}.{table}", where).keys == 2
    assert places_of(tmp_path / "lake", PERSON) == set()
    left = sorted(row["day"] for row in rows(road, database, "versions"))
    assert left == sorted(mail for mail in before if PERSON not in mail)
    assert len(left) == len(before) - 3


def test_a_person_leaves_the_past_as_well(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, nursery: Nursery
) -> None:
    database = fresh_database(any_server)
    road = begun(any_server, database, tmp_path)
    filled(road, spark, database)
    assert mails(road, database, "versions") == [f"2 {PERSON}", *["2 bob"] * 2, *[PERSON] * 2, *["bob"] * 2, "later"]
    before = {table: changes_of(road.lake, database, table) for table in ("logged", "versions")}
    where = f"mail = '{PERSON}' AND day = '2026-01-02'"
    order = ["--table", f"{database}.versions", "--where", where, "--wait", "20"]
    for point in POINTS:
        assert erase(nursery, road, *order, TIDEGATE_FAILPOINT=point)[0] == -signal.SIGKILL, point
    code, said = erase(nursery, road, *order)
    assert (code, f"\nerased: {database}.versions: 2 keys" in f"\n{said}") == (0, True), said
    for table in ("marked", "logged"):
        assert erased(road, f"{database}.{table}", where).keys == 2
    assert places_of(tmp_path / "lake", PERSON) == set()
    assert not in_payloads(road)

    assert mails(road, database, "versions") == ["2 bob", "2 bob", "bob", "bob", "later"]
    assert mails(road, database, "marked") == ["2 bob", "2 bob", "bob", "later"]
    for table, had in before.items():
        has = changes_of(road.lake, database, table)
        assert len(has) == len(had)
        gone = [row for row in has if row["op"] == ERASED]
        assert len(gone) == ERASED_ROWS
        assert {(row["before"], row["after"], row["note"], row["gtid"]) for row in gone} == {(None,) * 4}
        assert [row for row in has if row["op"] != ERASED] == [row for row in had if PERSON not in json.dumps(row)]
    run(any_server, database, f"INSERT INTO versions VALUES ('2026-01-02', '{PERSON}', 'a new one')")
    road.capture()
    assert not held(road.apply(spark))
    (newest,) = [row for row in rows(road, database, "versions") if row["mail"] == PERSON]
    assert (newest["note"], newest["_tg_is_current"]) == ("a new one", True)


def test_rows_older_than_bronze_go_by_their_key(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The log that made them has left bronze: silver and the changelog alone have the values."""
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    filled(road, spark, database)
    read_upto = ChangePlace(changes_of(road.lake, database, "logged")[3]["commit_ts"])
    bronze_begins_now(road, spark, database)
    assert "bronze" not in places_of(tmp_path / "lake", PERSON)
    with pytest.raises(UsageError, match="name the rows by their key alone: day = "):
        erased(road, f"{database}.logged", f"mail = '{PERSON}'")
    both = f"day = '2026-01-02' AND mail IN ('{PERSON}', '2 {PERSON}')"
    done = erased(road, f"{database}.logged", both)
    assert done.places.changelog is not None
    assert done.places.changelog.rows == ERASED_ROWS
    assert "if an update gave them these keys before" in done.line
    assert erased(road, f"{database}.marked", f"note = 'again {PERSON}'").places.past.ended == 2
    assert erased(road, f"{database}.versions", both).places.past.ended == 3
    assert places_of(tmp_path / "lake", PERSON) == set()
    behind = changes_after(road.lake, changelog(database, "logged"), read_upto, 1 << 62)
    later = [row for row in changes_of(road.lake, database, "logged") if row["commit_ts"] >= read_upto.commit_ts]
    assert sum(piece.num_rows for piece in behind) == len(later) > ERASED_ROWS
    run(mariadb, database, "INSERT INTO logged VALUES ('2026-01-10', 'last', '')")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal()["logged"] == 5


def bronze_begins_now(
    road: Road,
    spark: SparkSession,
    database: str,
    insert: str = "INSERT INTO logged VALUES ('2026-02-0{day}', 'x', '')",
) -> None:
    """As if the tables had been quiet for long; then a change."""
    settings = Maintain(keep_bronze_days=10)
    pipeline = road.pipeline.model_copy(update={"maintain": settings})
    for day in range(3):
        age_all(spark, road.lake, 24 * DAYS)
        run(road.server, database, insert.format(day=day + 1))
        road.capture()
        assert not held(road.apply(spark))
        job = Maintenance(spark, pipeline, road.lake, road.lines.append, datetime.now(UTC) + timedelta(DAYS))
        for step in (*maintain.BEFORE, *maintain.BRONZE, *maintain.AFTER):  # silver's own steps take Spark
            step(job)
