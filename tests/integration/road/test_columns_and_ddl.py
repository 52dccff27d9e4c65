"""Columns that silver leaves out, while DDL, renames, shards and the pipeline file itself change.

In:  real MariaDB; rules of a pipeline file.
Out: DDL of such a column is none of silver's; where rows would lack a value that silver is to have, their table is held
     by name.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_columns_left_out import BRONZE, PLAIN, fields
from tests.integration.road.test_renames import held, released, run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate import config
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]
Made = tuple[Server, str, SparkSession, Path]


@pytest.fixture
def made(mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path) -> Made:
    return mariadb, fresh_database(mariadb), spark, tmp_path


def begun(made: Made, extra: str, script: str, *, apply: str = "") -> Road:
    """A road with these statements applied. extra: more keys of `tables`."""
    server, database, spark, folder = made
    road = Road(server, folder, include=f"{database}.*", extra=f", {extra}", apply=apply)
    road.capture()
    run(server, database, script)
    road.capture()
    assert not held(road.apply(spark))
    return road


def then(road: Road, made: Made, script: str) -> dict[str, str]:
    """Why tables are held behind these statements."""
    server, database, spark, _ = made
    run(server, database, script)
    road.capture()
    return held(road.apply(spark))


def changed(road: Road, before: str, after: str) -> None:
    """Another text in the pipeline file."""
    text = road.file.read_text()
    assert before in text
    road.file.write_text(text.replace(before, after))
    road.pipeline = config.load(road.file)


TABLE = f"""
    CREATE TABLE t (id INT PRIMARY KEY, ssn VARCHAR(40), a INT)
    INSERT INTO t VALUES (1, '{PLAIN}', 1), (2, NULL, 1)
"""


@pytest.mark.parametrize("writer", ["auto", "merge"])
def test_ddl_of_columns_that_are_left_out_asks_nobody_and_needs_no_value(made: Made, writer: str) -> None:
    """Not even where nobody could say what older rows have."""
    _, database, _, folder = made
    policies = "add_column: stop, drop_column: stop, rename_column: ask, change_type: ask"
    road = begun(
        made,
        f"columns: [{{match: '{database}.t', exclude: ['ssn.*']}}]}}\nddl: {{{policies}",
        TABLE,
        apply=f", writer: {writer}",
    )
    assert not then(road, made, f"""
        ALTER TABLE t ADD COLUMN ssn_2 VARCHAR(40) DEFAULT (UUID()), ADD COLUMN ssn_3 INT AS (LENGTH(ssn)) STORED
        ALTER TABLE t RENAME COLUMN ssn TO ssn_1
        SET sql_mode = ''
        ALTER TABLE t MODIFY ssn_2 VARCHAR(3) AFTER id, MODIFY ssn_1 VARBINARY(90)
        UPDATE t SET a = 2, ssn_1 = '{PLAIN} 2' WHERE id = 1
        ALTER TABLE t DROP COLUMN ssn_2
        INSERT INTO t (id, ssn_1, a) VALUES (3, '{PLAIN}', 3)
    """)  # fmt: skip
    assert road.assert_equal() == {"t": 3}
    assert places_of(folder / "lake", PLAIN) <= {*BRONZE, "control"}
    assert "ddl.drop_column is stop" in then(road, made, "ALTER TABLE t DROP COLUMN a")[f"{database}.t"]


def test_a_column_that_is_computed_from_one_that_is_left_out_follows_its_ddl(made: Made) -> None:
    _, database, _, _ = made
    table = TABLE.replace("a INT", "a INT AS (LENGTH(ssn)) STORED").replace(", 1)", ", DEFAULT)")
    road = begun(made, f"columns: [{{match: '{database}.t', exclude: [ssn]}}]", table)
    why = then(road, made, "SET sql_mode = ''\nALTER TABLE t MODIFY ssn VARCHAR(3)")
    assert "it is computed from ssn, which changed" in why[f"{database}.t"]


def test_rules_are_of_names_at_the_source(made: Made) -> None:
    """Silver's own spelling of odd names is nobody's concern."""
    _, database, _, folder = made
    names = "['social number', _tg_x, ÄRGER, 'a;b=.*']"
    road = begun(made, f"columns: [{{match: '{database}.t', exclude: {names}}}]", f"""
        CREATE TABLE t (id INT PRIMARY KEY, `social number` TEXT, a INT, _tg_x TEXT, `Ärger` TEXT, `a;b=c` TEXT)
        INSERT INTO t VALUES (1, '{PLAIN}', 1, '{PLAIN}', '{PLAIN}', '{PLAIN}')
    """)  # fmt: skip
    assert road.assert_equal() == {"t": 1}
    assert fields(road, database, "t") == ["id", "a", "_tg_commit_ts"]
    assert places_of(folder / "lake", PLAIN) <= BRONZE


def test_an_online_schema_change_of_a_shard_has_no_such_column_either(made: Made) -> None:
    """Its own tables have the shard's name, and no route."""
    _, database, _, folder = made
    routes = f"routes: [{{match: '{database}.s_\\d', to: joined.s}}]"
    road = begun(made, f"{routes}, columns: [{{match: joined.s, exclude: [ssn]}}]", f"""
        CREATE TABLE s_1 (id INT PRIMARY KEY, ssn VARCHAR(40), a INT)
        CREATE TABLE s_2 LIKE s_1
        INSERT INTO s_1 VALUES (1, '{PLAIN}', 1)
        CREATE TABLE _s_1_gho LIKE s_1
        INSERT INTO _s_1_gho SELECT * FROM s_1
    """)  # fmt: skip
    assert places_of(folder / "lake", PLAIN) <= BRONZE
    assert not then(road, made, """
        RENAME TABLE s_1 TO _s_1_del, _s_1_gho TO s_1
        INSERT INTO s_1 VALUES (2, 'x', 2)
    """)  # fmt: skip
    assert road.assert_equal() == {"s_1": 2, "s_2": 0, "_s_1_del": 1}
    assert places_of(folder / "lake", PLAIN) <= BRONZE


def test_rows_go_to_a_table_of_other_rules_with_the_same_outcome_and_to_no_other(made: Made) -> None:
    _, database, _, folder = made
    rules = f"{{match: '{database}.t', exclude: [ssn]}}, {{match: '{database}.[uv]', exclude: [ssn, note]}}"
    road = begun(made, f"columns: [{rules}]", TABLE)
    assert not then(road, made, "RENAME TABLE t TO u\nINSERT INTO u VALUES (3, 'x', 1)")
    assert road.assert_equal() == {"u": 3}
    assert places_of(folder / "lake", PLAIN) <= BRONZE
    why = then(road, made, "ALTER TABLE u RENAME TO v, CHANGE ssn plain VARCHAR(40)")
    assert "tables.columns keeps column plain of" in why[f"{database}.v"]


@pytest.mark.parametrize("writer", ["auto", "merge"])
def test_a_rule_that_is_removed_holds_its_table_by_name(made: Made, writer: str) -> None:
    _, database, _, _ = made
    rule = f", columns: [{{match: '{database}.t', exclude: [ssn]}}]"
    road = begun(made, rule.removeprefix(", "), TABLE, apply=f", writer: {writer}")
    changed(road, rule, "")
    why = then(road, made, "INSERT INTO t VALUES (3, 'x', 1)")
    assert "silver lacks column ssn" in why[f"{database}.t"]
    changed(road, f"['{database}.*']", f"['{database}.*']{rule}")
    released(road, f"{database}.t")
    assert not then(road, made, f"UPDATE t SET ssn = '{PLAIN}'"), "it goes on with the old rule"
    assert road.assert_equal() == {"t": 3}


@pytest.mark.parametrize("script", ["INSERT INTO s_1 VALUES (2, 'x', 2)", "CREATE TABLE s_3 LIKE s_1", "TRUNCATE s_2"])
def test_a_changed_rule_holds_shards_before_a_row_gets_null_for_a_value(made: Made, script: str) -> None:
    """A new shard's columns come to silver, and older rows of the others would have NULL in them."""
    _, database, _, _ = made
    routes = f"routes: [{{match: '{database}.s_\\d', to: joined.s}}]"
    road = begun(made, f"{routes}, columns: [{{match: joined.s, exclude: [ssn]}}]", f"""
        CREATE TABLE s_1 (id INT PRIMARY KEY, ssn VARCHAR(40), a INT)
        CREATE TABLE s_2 LIKE s_1
        INSERT INTO s_1 VALUES (1, '{PLAIN}', 1)
    """)  # fmt: skip
    changed(road, "exclude: [ssn]", "exclude: [other]")
    assert "silver lacks column ssn" in then(road, made, script)["joined.s"]
    assert "ssn" not in fields(road, "joined", "s")
