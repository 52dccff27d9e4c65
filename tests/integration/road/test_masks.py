"""Columns that silver has masked (tables.masks): no file of it has their values, whatever happens to the table.

In:  real servers; rules of a pipeline file, rows, DDL on columns that are masked, a snapshot, both writers.
Out: silver has what Python's hmac makes of the source's own SELECT; verify compares the other columns. Bronze keeps the
     log as it came.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_columns_left_out import BRONZE, PLAIN, Held, assert_held, rules_for
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.readers import rows_of
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate import config, tables
from tidegate.errors import ConfigError
from tidegate.local.server import Server
from tidegate.table_names import splits

pytestmark = [pytest.mark.server, pytest.mark.spark]

SECRET = "a key that nobody guesses"
HMAC = "how: hmac, key_conn_id: veil"
Value = str | int | None


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_VEIL", f'{{"conn_type": "generic", "password": "{SECRET}"}}')


@pytest.fixture
def made(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> tuple[Server, str, SparkSession, Path]:
    return mariadb, fresh_database(mariadb), spark, tmp_path


def coded(value: Value) -> str | None:
    return None if value is None else hmac.new(SECRET.encode(), str(value).encode(), hashlib.sha256).hexdigest()


def ended(value: Value) -> str | None:
    text = str(value)
    return None if value is None else "*" * len(text) if len(text) <= 2 else "*" * (len(text) - 2) + text[-2:]


def nothing(_: Value) -> None:
    return None


Kinds = dict[str, Callable[[Any], Any]]


def silver_of(road: Road, name: str, columns: str) -> list[tuple[Any, ...]]:
    return rows_of(road.lake.uri(tables.silver_path(*splits(name)[0])), columns)


def masked_source(server: Server, name: str, columns: str, kinds: Kinds) -> list[tuple[Any, ...]]:
    rows = server.query(f"SELECT {columns} FROM {name}")
    how = [kinds.get(name, lambda value: value) for name in columns.split(", ")]
    return sorted((tuple(mask(value) for mask, value in zip(how, row, strict=True)) for row in rows), key=repr)


def masking(server: Server, folder: Path, database: str, rules: str, more: str = "", apply: str = "") -> Road:
    """A road that captures already."""
    road = Road(server, folder, include=f"{database}.*", extra=f"{more}, masks: [{rules}]", apply=apply)
    road.capture()
    return road


# Writers see decoded rows, and no server: each server and each writer once.
@pytest.mark.parametrize(("any_server", "writer"), [("mariadb", "merge"), ("mysql9", "auto")], indirect=["any_server"])
def test_silver_has_masked_values_alone(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    server, database = any_server, fresh_database(any_server)
    rules = (
        f"{{match: '{database}.t', columns: [ssn, n], {HMAC}}}, {{match: '{database}.t', comment: pii, how: null}},"
        f" {{match: '{database}.*', columns: [card], how: partial, last: 2}}"
    )
    kinds: Kinds = {"ssn": coded, "n": coded, "born": nothing, "card": ended, "ssn_2": coded}
    run(server, database, f"CREATE TABLE u (card VARCHAR(40), id INT PRIMARY KEY)\nINSERT INTO u VALUES ('{PLAIN}', 1)")
    road = masking(server, tmp_path, database, rules, apply=f", writer: {writer}")
    run(server, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, SSN VARCHAR(40) DEFAULT '{PLAIN}', n INT, born DATE COMMENT 'pii')
        ALTER TABLE t ADD COLUMN card CHAR(20)
        INSERT INTO t VALUES (1, '{PLAIN}', 471100, '2001-01-01', '{PLAIN}'), (2, NULL, NULL, NULL, '')
        INSERT INTO t VALUES (3, 'é😀', -1, NULL, 'ab')
        UPDATE u SET id = 2
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    columns = "id, ssn, n, born, card"

    def check(columns: str) -> None:
        road.capture()
        assert not held(road.apply(spark))
        road.assert_equal()
        assert silver_of(road, f"{database}.t", columns) == masked_source(server, f"{database}.t", columns, kinds)
        assert silver_of(road, f"{database}.u", "id, card") == masked_source(server, f"{database}.u", "id, card", kinds)

    check(columns)
    run(server, database, f"""
        UPDATE t SET born = '1990-12-31', ssn = 'other {PLAIN}' WHERE id = 2
        INSERT INTO t VALUES (4, '{PLAIN}', 471100, '2001-01-01', '{PLAIN} and')
        DELETE FROM t WHERE id = 3
        UPDATE u SET card = '{PLAIN} 2'
    """)  # fmt: skip
    check(columns)
    run(server, database, f"""
        ALTER TABLE t ADD COLUMN b INT DEFAULT 9 FIRST, MODIFY n BIGINT, MODIFY SSN VARCHAR(90) DEFAULT '{PLAIN}'
        ALTER TABLE t MODIFY born DATETIME COMMENT 'pii still'
        INSERT INTO t VALUES (5, 5, '{PLAIN}', 7000000000, '2001-01-01', '{PLAIN}')
        ALTER TABLE t DROP COLUMN card
        ALTER TABLE t ADD COLUMN card VARCHAR(20) DEFAULT '{PLAIN}'
        INSERT INTO t (id) VALUES (6)
    """)  # fmt: skip
    check("id, b, ssn, n, born, card")
    # Statements are in control, with what a person wrote in them; rows are in bronze alone.
    assert places_of(tmp_path / "lake", PLAIN) <= {*BRONZE, "control"}
    assert places_of(tmp_path / "lake", f"other {PLAIN}") <= BRONZE
    assert places_of(tmp_path / "lake", SECRET) == set()


def test_cascades_shards_and_deleted_rows_are_masked_once(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Foreign keys change rows that silver has masked already, and rows that the same window brings plain."""
    database = fresh_database(mariadb)
    more = f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}], soft_delete: ['{database}.d']"
    road = masking(mariadb, tmp_path, database, f"{{match: '{database}.[csd]', columns: [note], {HMAC}}}", more)
    run(mariadb, database, f"""
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (id INT PRIMARY KEY, p_id INT REFERENCES p (id) ON DELETE SET NULL, note TEXT)
        CREATE TABLE s_1 (id INT PRIMARY KEY, note TEXT)
        CREATE TABLE s_2 (note VARCHAR(30), id INT PRIMARY KEY)
        CREATE TABLE d (id INT PRIMARY KEY, note TEXT)
        INSERT INTO p VALUES (1), (2), (3)
        INSERT INTO c VALUES (1, 1, '{PLAIN}'), (2, 2, '{PLAIN}')
        INSERT INTO s_1 VALUES (1, '{PLAIN}')
        INSERT INTO s_2 VALUES ('{PLAIN}', 1)
        INSERT INTO d VALUES (1, '{PLAIN}'), (2, '{PLAIN}')
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, f"""
        DELETE FROM p WHERE id = 1
        INSERT INTO c VALUES (3, 3, '{PLAIN} 3')
        DELETE FROM p WHERE id = 3
        ALTER TABLE s_1 ADD COLUMN a INT DEFAULT 4
        UPDATE s_2 SET note = '{PLAIN} 2'
        DELETE FROM d WHERE id = 1
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"p": 1, "c": 3, "s_1": 1, "s_2": 1, "d": 1}
    columns, kinds = "id, p_id, note", {"note": coded}
    assert silver_of(road, f"{database}.c", columns) == masked_source(mariadb, f"{database}.c", columns, kinds)
    assert silver_of(road, f"{database}.d", "id, note") == [(1, coded(PLAIN)), (2, coded(PLAIN))]
    assert silver_of(road, f"{database}.s", "id, note") == sorted([(1, coded(PLAIN)), (1, coded(f"{PLAIN} 2"))])
    assert places_of(tmp_path / "lake", PLAIN) <= BRONZE


REFERS = "id INT PRIMARY KEY, a INT REFERENCES {t} (id) ON DELETE CASCADE"
KEYED = "id INT PRIMARY KEY, a VARCHAR(40) COMMENT 'x'"


_HELD = (
    Held("columns: [id], how: null", KEYED, "", "masks id, of its key"),
    Held("columns: [a], how: null", "id INT, a INT", "", "it has no key, so silver needs all of its columns"),
    Held(
        "columns: [a], how: null",
        f"{KEYED}, UNIQUE (a)",
        "RENAME COLUMN a TO b",
        "doesn't mask column b from here on",
    ),
    Held("columns: [b], how: null", KEYED, "RENAME COLUMN a TO b", "tables.masks masks column b from here on"),
    Held("comment: pii, how: null", KEYED, "MODIFY a VARCHAR(40) COMMENT 'pii'", "masks column a from here on"),
    Held(f"columns: [a], {HMAC}", "id INT PRIMARY KEY, a DOUBLE", "", "tables.masks can mask text and whole numbers"),
    Held(f"columns: [a], {HMAC}", KEYED, "MODIFY a VARCHAR(2)", "the server rewrote rows"),
    Held("columns: [a], how: null", KEYED, "DROP PRIMARY KEY", "it has no key"),
    Held("columns: [a], how: null", REFERS, "", "of its key or of a foreign key"),
)


def test_what_silver_can_not_mask_holds_its_table_by_name(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, folder = made
    road = masking(mariadb, folder, database, rules_for(database, _HELD))
    assert_held(road, spark, (mariadb, database), _HELD)


def test_a_changed_rule_or_key_holds_a_table_that_has_rows_until_it_is_rebuilt(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=", masks: []")
    road.capture()
    plain = road.text
    create = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40), b INT)"
    run(mariadb, database, f"{create}\nINSERT INTO t VALUES (1, '{PLAIN}', 1)")
    road.capture()
    assert not held(road.apply(spark))
    number = 1

    def changed(rules: str) -> None:
        """Another rule holds the table; a rebuild ends that."""
        nonlocal number
        number += 1
        road.file.write_text(plain.replace("masks: []", f"masks: [{rules}]"))
        road.pipeline = config.load(road.file)
        run(mariadb, database, f"INSERT INTO t VALUES ({number}, 'x', 1)")
        road.capture()
        assert "silver's values of column a are masked by other rules" in held(road.apply(spark))[f"{database}.t"]
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)
        assert not held(road.apply(spark))
        road.assert_equal()

    def check(mask: Callable[[Value], Any]) -> None:
        silver = silver_of(road, f"{database}.t", "id, a")
        assert silver == masked_source(mariadb, f"{database}.t", "id, a", {"a": mask})

    changed(f"{{match: '{database}.t', columns: [a], {HMAC}}}")
    check(coded)
    changed(f"{{match: '{database}.t', columns: [a], how: partial, last: 2}}")
    check(ended)
    changed(f"{{match: '{database}.t', columns: [a], {HMAC}}}")
    monkeypatch.setenv("AIRFLOW_CONN_VEIL", '{"password": "another key, rotated"}')
    changed(f"{{match: '{database}.t', columns: [a], {HMAC}}}")
    assert not set(silver_of(road, f"{database}.t", "a")) & {(coded(PLAIN),), (PLAIN,)}
    changed("")
    check(lambda value: value)
    run(mariadb, database, "ALTER TABLE t MODIFY b BIGINT\nUPDATE t SET a = 'z'")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()


def test_apply_does_not_begin_without_the_key(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = masking(mariadb, tmp_path, fresh_database(mariadb), f"{{match: 'a.t', columns: [a], {HMAC}}}")
    monkeypatch.delenv("AIRFLOW_CONN_VEIL")
    with pytest.raises(ConfigError, match="the driver has no key of masks"):
        road.apply(spark)


def test_an_emptied_table_takes_a_changed_rule_unless_rows_stay(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, folder = made
    more = f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}], soft_delete: ['{database}.d'], masks: []"
    road = Road(mariadb, folder, include=f"{database}.*", extra=more)
    road.capture()
    for table in ("t", "d", "s_1", "s_2"):
        run(mariadb, database, f"CREATE TABLE {table} (id INT PRIMARY KEY, a VARCHAR(40))")
        run(mariadb, database, f"INSERT INTO {table} VALUES (1, '{PLAIN}')")
    road.capture()
    assert not held(road.apply(spark))
    rules = f"{{match: '{database}.*', columns: [a], {HMAC}}}"
    road.file.write_text(road.text.replace("masks: []", f"masks: [{rules}]"))
    road.pipeline = config.load(road.file)
    for table in ("t", "d", "s_1"):
        run(mariadb, database, f"TRUNCATE TABLE {table}\nINSERT INTO {table} VALUES (2, '{PLAIN}')")
    road.capture()
    assert set(held(road.apply(spark))) == {f"{database}.d", f"{database}.s"}
    assert silver_of(road, f"{database}.t", "id, a") == [(2, coded(PLAIN))]
    run(mariadb, database, f"INSERT INTO t VALUES (3, '{PLAIN}')")
    road.capture()
    assert set(held(road.apply(spark))) == {f"{database}.d", f"{database}.s"}
    assert silver_of(road, f"{database}.t", "id, a") == [(2, coded(PLAIN)), (3, coded(PLAIN))]
