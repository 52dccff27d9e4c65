"""What a server makes of a definition beyond its words: seen on MariaDB 10.11, where nothing else is said."""

from __future__ import annotations

import pytest

from tests.support.ddl_script import MYSQL, columns_of, run, types_of
from tidegate.ddl_script.shown_columns import primary_key, shown_columns
from tidegate.schema.model.server import ServerVersion


def test_a_query_takes_no_default_over_that_hangs_on_other_columns_or_is_never_the_same() -> None:
    script, steps = run(
        "CREATE TABLE s (a INT, b INT DEFAULT (a + 1), c CHAR(36) DEFAULT uuid(),"
        " d INT DEFAULT (1 + 1), e DATE DEFAULT curdate())",
        "CREATE TABLE t SELECT * FROM s",
    )
    assert [step.error for step in steps] == ["", ""]
    defaults = [column["default"] for column in columns_of(script).values()]
    assert defaults == ["NULL", "NULL", "NULL", "1 + 1", "curdate()"]


def test_alter_column_reaches_a_column_that_the_same_statement_adds() -> None:
    script, _ = run("CREATE TABLE t (a INT)", "ALTER TABLE t ADD COLUMN b BLOB, ALTER COLUMN b SET DEFAULT 'x'")
    assert columns_of(script)["b"]["default"] == "'x'"


def test_columns_too_long_for_their_type_have_become_larger_ones() -> None:
    script, _ = run("CREATE TABLE t (a VARCHAR(70000), b VARBINARY(70000), c VARCHAR(65530) CHARACTER SET utf8mb3)")
    assert types_of(script) == {"a": "mediumtext", "b": "mediumblob", "c": "mediumtext"}
    columns = "CREATE TABLE t (a VARCHAR(65533) CHARACTER SET latin1, b VARBINARY(65533), c VARBINARY(65532))"
    assert list(types_of(run(columns)[0]).values()) == ["text", "blob", "varbinary(65532)"]
    assert list(types_of(run(columns, version=MYSQL)[0]).values())[1] == "varbinary(65533)"


def test_a_character_set_by_default_is_the_databases_and_a_collation_by_default_is_its_character_sets() -> None:
    base = "CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "USE d"
    made = "CREATE TABLE d.t (a CHAR(1) CHARACTER SET latin2 COLLATE latin2_bin) CHARACTER SET latin1"
    for sql, wanted in (
        ("ALTER TABLE d.t CONVERT TO CHARACTER SET DEFAULT", ["utf8mb4_general_ci"]),
        ("ALTER TABLE d.t CHARACTER SET DEFAULT, ADD b CHAR(1)", ["latin2_bin", "utf8mb4_general_ci"]),
        ("ALTER TABLE d.t COLLATE DEFAULT, ADD b CHAR(1)", ["latin2_bin", "latin1_swedish_ci"]),
        ("ALTER TABLE d.t MODIFY a CHAR(1) COLLATE DEFAULT", ["latin1_swedish_ci"]),
        ("CREATE OR REPLACE TABLE d.t (a CHAR(1)) COLLATE DEFAULT", ["utf8mb4_general_ci"]),
    ):
        script, _ = run(*base, made, sql, version="10.11.19-MariaDB")
        columns = shown_columns(script.tables()["d.t"], ServerVersion.of(script.server_version))
        assert [column["collation"] for column in columns] == wanted, sql


def test_a_type_of_another_mode_is_what_that_mode_makes_of_it() -> None:
    script, _ = run("SET sql_mode=ORACLE", "CREATE TABLE t (a BLOB, b BLOB(100), c DATE, d mariadb_schema.DATE)")
    assert list(types_of(script).values()) == ["longblob", "tinyblob", "datetime", "date"]
    script, _ = run("SET sql_mode=MAXDB", "CREATE TABLE t (a TIMESTAMP, b mariadb_schema.TIMESTAMP)")
    assert list(types_of(script).values()) == ["datetime", "timestamp"]


def test_a_column_dropped_and_added_in_one_statement_stays_in_its_keys() -> None:
    script, _ = run(
        "CREATE TABLE t (x INT, a INT, PRIMARY KEY (x, a), KEY k (x))", "ALTER TABLE t DROP x, ADD X INT NOT NULL"
    )
    assert list(types_of(script)) == ["a", "X"]
    assert primary_key(script.tables()["test.t"]) == ["X", "a"]


@pytest.mark.parametrize(
    ("keys", "more", "shown"),
    [
        ("KEY a (a)", "", {"a": "MUL", "b": ""}),
        ("KEY a (b)", "", {"a": "", "b": "MUL"}),
        ("KEY a (b)", ", DROP KEY a", {"a": "", "b": ""}),
        ("KEY z (a)", "", {"a": "UNI", "b": ""}),
    ],
)
def test_the_key_of_a_column_that_is_there_is_added_unless_its_name_is(
    keys: str, more: str, shown: dict[str, str]
) -> None:
    add = f"ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT UNIQUE{more}"
    script, _ = run(f"CREATE TABLE t (a INT, b INT, {keys})", add)
    assert {name: column["key"] for name, column in columns_of(script).items()} == shown
