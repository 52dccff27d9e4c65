"""Columns that silver leaves out (tables.columns): no file of it has their values, whatever happens to the table.

In:  real MariaDB; rules of a pipeline file, rows, DDL on columns that are left out, a snapshot, both writers.
Out: silver is equal in all other columns, and verify compares those alone. Bronze keeps the log as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate import config, tables
from tidegate.errors import ConfigError
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

PLAIN = "secret-4711"
BRONZE = {"bronze", "bronze_log"}


@pytest.fixture
def made(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> tuple[Server, str, SparkSession, Path]:
    return mariadb, fresh_database(mariadb), spark, tmp_path


def ruled(server: Server, folder: Path, database: str, rules: str, apply: str = "") -> Road:
    """A road that captures already."""
    road = Road(server, folder, include=f"{database}.*", extra=f", columns: [{rules}]" if rules else "", apply=apply)
    road.capture()
    return road


@dataclass(frozen=True, slots=True)
class Held:
    """A table that waits. rule: of its columns, in the words of the pipeline file. columns: it is made with these.
    why: words of the reason, once it is made, or once it is altered so. {t}: the table's name.
    """

    rule: str
    columns: str
    later: str
    why: str


def rules_for(database: str, cases: Sequence[Held]) -> str:
    """A rule of the pipeline file for each case's table."""
    return ", ".join(f"{{match: '{database}.t{number}', {case.rule}}}" for number, case in enumerate(cases))


def assert_held(road: Road, spark: SparkSession, there: tuple[Server, str], cases: Sequence[Held]) -> None:
    """Each case's table, t0, t1, ... of one road, waits for its reason, not before it. there: server and database."""
    server, database = there
    tables_of = {f"{database}.t{number}": case for number, case in enumerate(cases)}
    for name, case in tables_of.items():
        columns = case.columns.format(t=name.split(".")[1])
        run(server, database, f"CREATE TABLE {name} ({columns})\nINSERT INTO {name} VALUES (1, 1)")
    road.capture()
    at_once = held(road.apply(spark))
    assert at_once.keys() == {name for name, case in tables_of.items() if not case.later}
    for name, case in tables_of.items():
        if case.later:
            run(server, database, f"ALTER TABLE {name} {case.later}\nINSERT INTO {name} VALUES (2, 2)")
    road.capture()
    reasons = held(road.apply(spark)) if len(at_once) < len(cases) else at_once
    assert reasons.keys() == tables_of.keys()
    for name, case in tables_of.items():
        assert case.why in reasons[name], case


def fields(road: Road, database: str, table: str) -> list[str]:
    return [field.name for field in DeltaTable(road.lake.uri(tables.silver_path(database, table))).schema().fields]


@pytest.mark.parametrize("writer", ["auto", "merge"])
def test_silver_never_has_a_column_that_is_left_out(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    rules = f"{{match: '{database}.t', exclude: ['note.*', ssn]}}, {{match: '{database}.u', include: [a]}}"
    create = "CREATE TABLE u (a INT, b VARCHAR(40), id INT PRIMARY KEY)"
    run(mariadb, database, f"{create}\nINSERT INTO u VALUES (1, '{PLAIN}', 1)")  # a snapshot reads it
    road = ruled(mariadb, tmp_path, database, rules, f", writer: {writer}")
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, SSN VARCHAR(40) DEFAULT '{PLAIN}', a INT, note TEXT)
        INSERT INTO t VALUES (1, '{PLAIN}', 1, '{PLAIN}'), (2, '{PLAIN}', 2, NULL)
        UPDATE u SET a = 2
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    run(mariadb, database, f"""
        UPDATE t SET a = 3, note = '{PLAIN}' WHERE id = 2
        UPDATE t SET SSN = 'other {PLAIN}' WHERE id = 1
        INSERT INTO t VALUES (3, '{PLAIN}', 3, '{PLAIN}')
        DELETE FROM t WHERE id = 1
        UPDATE u SET b = '{PLAIN} 2'
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, f"""
        ALTER TABLE t ADD COLUMN note_2 VARCHAR(40) DEFAULT '{PLAIN}', ADD COLUMN b INT DEFAULT 9
        ALTER TABLE t MODIFY note VARCHAR(90)
        ALTER TABLE t RENAME COLUMN note TO note_1
        ALTER TABLE t DROP COLUMN SSN
        INSERT INTO t VALUES (4, 4, '{PLAIN}', '{PLAIN}', 4)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 3, "u": 1}
    assert [name for name in fields(road, database, "t") if not name.startswith("_tg")] == ["id", "a", "b"]
    assert [name for name in fields(road, database, "u") if not name.startswith("_tg")] == ["a", "id"]
    # Statements are in control, with what a person wrote in them; rows are in bronze alone.
    assert places_of(tmp_path / "lake", PLAIN) <= {*BRONZE, "control"}
    assert places_of(tmp_path / "lake", f"other {PLAIN}") <= BRONZE


def test_renames_take_rows_without_the_columns_that_both_tables_leave_out(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    """As online schema changes do; a table of other rules can't take them over."""
    mariadb, database, spark, folder = made
    road = ruled(mariadb, folder, database, f"{{match: '{database}.t', exclude: [ssn]}}")
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, ssn VARCHAR(40), a INT)
        INSERT INTO t VALUES (1, '{PLAIN}', 1)
        CREATE TABLE _t_new LIKE t
        ALTER TABLE _t_new ADD COLUMN b INT DEFAULT 5, MODIFY ssn VARCHAR(90)
        INSERT INTO _t_new (id, ssn, a) SELECT * FROM t
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, "RENAME TABLE t TO _t_old, _t_new TO t\nINSERT INTO t VALUES (2, 'x', 2, 2)")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 2, "_t_old": 1}
    assert places_of(folder / "lake", PLAIN) <= BRONZE
    run(mariadb, database, "RENAME TABLE t TO plain")
    road.capture()
    assert "tables.columns keeps column ssn of" in held(road.apply(spark))[f"{database}.plain"]
    assert places_of(folder / "lake", PLAIN) <= BRONZE


def test_cascades_shards_and_deleted_rows_go_without_the_column_too(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, folder = made
    more = f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}], soft_delete: ['{database}.d']"
    extra = f"{more}, columns: [{{match: '{database}.[csd]', exclude: [note]}}]"
    road = Road(mariadb, folder, include=f"{database}.*", extra=extra)
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (id INT PRIMARY KEY, p_id INT REFERENCES p (id) ON DELETE SET NULL, note TEXT)
        CREATE TABLE s_1 (id INT PRIMARY KEY, note TEXT)
        CREATE TABLE s_2 (note TEXT, id INT PRIMARY KEY)
        CREATE TABLE d (id INT PRIMARY KEY, note TEXT)
        INSERT INTO p VALUES (1), (2)
        INSERT INTO c VALUES (1, 1, '{PLAIN}'), (2, 2, '{PLAIN}')
        INSERT INTO s_1 VALUES (1, '{PLAIN}')
        INSERT INTO s_2 VALUES ('{PLAIN}', 1)
        INSERT INTO d VALUES (1, '{PLAIN}'), (2, '{PLAIN}')
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        DELETE FROM p WHERE id = 1
        ALTER TABLE s_1 ADD COLUMN a INT DEFAULT 4
        DELETE FROM d WHERE id = 1
        TRUNCATE TABLE s_2
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"p": 1, "c": 2, "s_1": 1, "s_2": 0, "d": 1}
    assert [name for name in fields(road, database, "s") if not name.startswith("_tg")] == ["id", "a"]
    assert places_of(folder / "lake", PLAIN) <= BRONZE


def test_a_column_that_is_left_out_of_one_table_is_the_key_of_the_next_of_its_name(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, folder = made
    road = ruled(mariadb, folder, database, f"{{match: '{database}.t', include: [a]}}")
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(40), a INT)
        INSERT INTO t VALUES (1, '{PLAIN}', 1)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        INSERT INTO t VALUES (2, 'x', 2)
        DROP TABLE t
        CREATE TABLE t (code VARCHAR(40) PRIMARY KEY, id INT, a INT)
        INSERT INTO t VALUES ('key', 3, 3)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, "UPDATE t SET a = 4, id = 4")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 1}
    assert fields(road, database, "t") == ["code", "a", "_tg_commit_ts"]


KEYED = "id INT PRIMARY KEY, a INT"


_HELD = (
    Held("exclude: [id]", KEYED, "", "leaves out id, of its key"),
    Held("exclude: [a]", "id INT, a INT", "", "it has no key, so silver needs all of its columns"),
    Held("exclude: [a]", KEYED, "RENAME COLUMN a TO b", "tables.columns keeps column b from here on"),
    Held("exclude: [b]", KEYED, "RENAME COLUMN a TO b", "tables.columns leaves out column b"),
    Held("exclude: [a]", KEYED, "DROP PRIMARY KEY", "it has no key"),
    Held("exclude: [a]", f"{KEYED} REFERENCES {{t}} (id) ON DELETE CASCADE", "", "of its key or of a foreign key"),
)


def test_what_silver_can_not_leave_out_holds_its_table_by_name(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, folder = made
    road = ruled(mariadb, folder, database, rules_for(database, _HELD))
    assert_held(road, spark, (mariadb, database), _HELD)


def test_a_changed_rule_holds_a_table_that_has_rows(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, folder = made
    road = ruled(mariadb, folder, database, "")
    run(mariadb, database, f"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))\nINSERT INTO t VALUES (1, '{PLAIN}')")
    road.capture()
    road.apply(spark)
    plain, include = road.text, f"include: ['{database}.*']"
    rule = f"columns: [{{match: '{database}.t', exclude: [a]}}]"
    road.file.write_text(plain.replace(include, f"{include}, {rule}"))
    road.pipeline = config.load(road.file)
    run(mariadb, database, "INSERT INTO t VALUES (2, 'x')")
    road.capture()
    assert "silver has column a, which tables.columns leaves out" in held(road.apply(spark))[f"{database}.t"]
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
    swap(plan, BackgroundSession(no_spark), report=road.lines.append)
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 2}
    assert fields(road, database, "t") == ["id", "_tg_commit_ts"]
    road.file.write_text(plain)
    road.pipeline = config.load(road.file)
    run(mariadb, database, "INSERT INTO t VALUES (3, 'x')")
    road.capture()
    assert "silver lacks column a" in held(road.apply(spark))[f"{database}.t"], "older rows have no value for it"


def test_a_rule_that_says_nothing_is_refused_when_the_file_is_read() -> None:
    text = (
        "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\n"
        "tables: {include: ['a.*'], columns: [%s]}\n"
    )
    for rule, why in (
        ("{match: a.t}", "give include or exclude"),
        ("{match: a.t, include: [a], exclude: [b]}", "give include or exclude"),
        ("{match: a.t, exclude: ['(']}", "not a regular expression"),
        ("{match: t, exclude: [a]}", "must be database.table"),
    ):
        with pytest.raises(ConfigError, match=why):
            config.parse(text % rule, where="p.yaml")
