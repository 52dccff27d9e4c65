"""A DDL script: where its statements end, what its session does to them, and what `--trace` says."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path

import pytest

from tests.support.command import tidegate
from tests.support.ddl_script import MARIADB, MYSQL, columns_of, run, types_of
from tests.support.seeds import share
from tidegate.ddl_script.script import Script
from tidegate.ddl_script.shown_columns import primary_key
from tidegate.ddl_script.text import statements

# --- where statements end -------------------------------------------------------------------------


def test_a_delimiter_in_quotes_or_comments_ends_nothing() -> None:
    text = "A ';' \";\" `;` /* ; */ -- ;\n # ;\n x;\n\nB '\\';' '';\n/*!50001 C ; */;D"
    assert list(statements(text)) == [
        (1, "A ';' \";\" `;` /* ; */ -- ;\n # ;\n x"),
        (5, "B '\\';' ''"),
        (6, "/*!50001 C ; */"),
        (6, "D"),
    ]


def test_delimiter_lines_are_followed_behind_comments_too() -> None:
    text = "-- a routine\nDELIMITER //\nCREATE PROCEDURE p() BEGIN SELECT 1; END//\nA//\ndelimiter ;\nB; C"
    assert list(statements(text)) == [
        (3, "CREATE PROCEDURE p() BEGIN SELECT 1; END"),
        (4, "A"),
        (6, "B"),
        (6, "C"),
    ]


def test_a_backslash_ends_no_quote_unless_the_mode_says_so() -> None:
    assert len(list(statements(r"a '\'; b' ; c"))) == 2
    assert len(list(statements(r"a '\'; b '' ; c", plain=lambda: True))) == 3


@pytest.mark.parametrize(
    "piece", share(["'\\", "/*", "''\"", "-- \n;", "\n", "a;", "`", "/* *", "DELIMITER ;\n", "(", "x ", "0x"])
)
def test_the_time_for_a_text_grows_with_its_length_alone(piece: str) -> None:
    def seconds(times: int) -> float:
        text = "CREATE TABLE t (a INT) " + piece * times
        started = time.process_time()
        script = Script("test", MARIADB)
        for line, sql in statements(text):
            script.run(line, sql)
        return time.process_time() - started

    gc.disable()  # it would look through all that the process has, which other tests made large
    try:
        small, large = min(seconds(2_000) for _ in range(3)), min(seconds(32_000) for _ in range(2))
    finally:
        gc.enable()
    assert large < 16 * 8 * small + 0.2, f"{small:.4f} s, 16 times as much {large:.4f} s"


# --- the session ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "ansi"),
    [
        ("SET sql_mode=ANSI_QUOTES", True),
        ("SET SESSION sql_mode = 'ANSI,TRADITIONAL'", True),
        ("SET @@session.sql_mode := 'ORACLE'", True),
        ("/*!40101 SET @OLD=@@SQL_MODE, SQL_MODE='ANSI_QUOTES' */", True),
        ("SET sql_mode=CONCAT(@@sql_mode, ',ANSI_QUOTES')", True),
        ("SET GLOBAL sql_mode=ANSI_QUOTES", False),
        ("SET @sql_mode = 'ANSI_QUOTES'", False),
        ("SET sql_mode=DEFAULT", False),
        ("SET sql_mode=REPLACE('ANSI_QUOTES,X', 'ANSI_QUOTES', '')", False),
        ("SET NAMES utf8mb4, sql_mode=4", True),
    ],
)
def test_sql_mode_is_what_the_session_last_set(settings: str, ansi: bool) -> None:
    script, steps = run(settings, 'CREATE TABLE t ("a" INT)', "CREATE TABLE u (b INT DEFAULT 1)")
    assert steps[0].kind == "set"
    assert list(types_of(script)) == ["a"]  # MariaDB and MySQL take "a" for a name in either mode only where we do
    assert bool(script.settings.sql_mode & 4) is ansi


def test_a_mode_kept_in_a_variable_comes_back() -> None:
    script, _ = run("SET sql_mode='ANSI_QUOTES'", "SET @old = @@sql_mode", "SET sql_mode=''", "SET sql_mode=@old")
    assert script.settings.sql_mode == 4


def test_use_changes_the_database_and_its_character_set() -> None:
    script, steps = run("CREATE DATABASE d CHARACTER SET latin1", "USE `d`", "CREATE TABLE t (a CHAR(1))")
    assert steps[2].versions[0].name == "d.t"
    assert script.tables()["d.t"].columns[0].charset == "latin1"


def test_rows_and_other_statements_are_passed_over_and_dynamic_ones_are_said() -> None:
    _, steps = run("INSERT INTO t VALUES (1)", "SELECT 1", "BEGIN", "CREATE VIEW v AS SELECT 1", "EXECUTE s", "FROB x")
    assert [(step.kind, bool(step.error)) for step in steps] == [
        ("other", False),
        ("other", False),
        ("other", False),
        ("other", False),
        ("unparsed", True),
        ("other", False),
    ]


def test_a_temporary_table_hides_the_one_of_its_name() -> None:
    script, steps = run(
        "CREATE TABLE t (a INT)",
        "CREATE TEMPORARY TABLE t (x INT)",
        "ALTER TABLE t ADD y INT",
        "DROP TABLE t",
        "ALTER TABLE t ADD b INT",
    )
    assert list(types_of(script)) == ["a", "b"]
    assert [step.kind for step in steps[1:4]] == ["table.temp"] * 3


def test_what_takes_columns_from_a_temporary_table_is_not_guessed() -> None:
    script, steps = run(
        "CREATE TABLE s (a INT)",
        "CREATE TEMPORARY TABLE s (x INT)",
        "CREATE TABLE t LIKE s",
        "CREATE TABLE u AS SELECT * FROM s",
        "ALTER TABLE t ADD b INT",
        "DROP TABLE t",
    )
    assert [bool(step.error) for step in steps] == [False, False, True, True, True, False]
    assert steps[5].forgotten == ("test.t",)
    assert list(script.tables()) == ["test.s"]


# --- what tables become -----------------------------------------------------------------------------


def test_a_query_of_plain_columns_gives_the_new_table_its_columns() -> None:
    script, steps = run(
        "CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(9) NOT NULL DEFAULT 'x', g INT AS (id) VIRTUAL,"
        " h INT INVISIBLE)",
        "CREATE TABLE t (a CHAR(3), w INT, PRIMARY KEY (id)) AS SELECT s.id, a, test.s.A b, g AS `select` FROM s",
        "CREATE TABLE l AS (SELECT x.* FROM s AS x WHERE x.a > 'b' ORDER BY (SELECT 1) LIMIT 3)",
    )
    assert not any(step.error for step in steps)
    assert types_of(script) == {
        "w": "int(11)", "id": "int(11)", "a": "char(3)", "b": "varchar(9)", "select": "int(11)",
    }  # fmt: skip
    assert primary_key(script.tables()["test.t"]) == ["id"]
    found = columns_of(script, "l")
    assert {name: column["nullable"] for name, column in found.items()} == {"id": False, "a": False, "g": True}
    assert found["g"]["extra"] == found["id"]["key"] == ""
    assert found["id"]["default"] == "0"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM s UNION SELECT 1", "SELECT 'text'", "SELECT HEX(a) FROM s", "SELECT * FROM s NATURAL JOIN s y",
        "SELECT ABS()", "SELECT IF(a) FROM s", "SELECT @x", "SELECT (SELECT 1)", "SELECT a + FROM s", "SELECT ROUND(",
        "WITH c AS (SELECT 1) SELECT * FROM c", "SELECT nothing FROM s", "SELECT * FROM unknown", "TABLE s",
        "SELECT b FROM s GROUP BY b", "SELECT a x, a X FROM s", "SELECT a FROM s GROUP BY a WITH ROLLUP",
        "SELECT a FROM s FOR SYSTEM_TIME ALL", "VALUES ROW(1)", "SELECT a FROM s INTO @x",
        "SELECT a + 1 AS x FROM s", "SELECT 1", "SELECT NULL FROM s", "SELECT true FROM s", "SELECT now() FROM s",
        "SELECT date '2001-01-01' FROM s", "SELECT DISTINCT b FROM s", "SELECT y.a FROM s", "SELECT s.a FROM s AS y",
        "SELECT * FROM s, s y", "SELECT * FROM s LEFT JOIN s y ON 1", "SELECT * FROM (SELECT a FROM s) x",
        "SELECT a FROM s WHERE a UNION SELECT b FROM s", "SELECT a FROM s ORDER BY a INTO @x", "(SELECT a FROM s",
        "SELECT current_date FROM s", "SELECT a FROM s PROCEDURE ANALYSE()", "SELECT @a := a FROM s",
        "SELECT a IS NULL FROM s",
        "SELECT a, FROM s", "SELECT a FROM s PARTITION (p)", "SELECT binary a FROM s",
        "SELECT a COLLATE utf8mb4_bin FROM s",
    ],
)  # fmt: skip
def test_any_other_query_leaves_its_table_unknown(query: str) -> None:
    script, steps = run(
        "CREATE TABLE s (a INT, b TEXT, `current_date` INT, `true` INT, `null` INT, `binary` INT)",
        f"CREATE TABLE t AS {query}",
        "ALTER TABLE t ADD c INT",
    )
    assert [bool(step.error) for step in steps] == [False, True, True]
    assert "test.t" not in script.tables()


def test_renamed_columns_take_the_expressions_about_them_along() -> None:
    script, _ = run(
        "CREATE TABLE t (a INT, b INT, c INT AS (A + b * 2), d INT DEFAULT (a + 1))",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, CHANGE d e INT DEFAULT (a + 2)",
    )
    found = columns_of(script)
    assert found["c"]["generation_expression"] == "`b` + `a` * 2"
    assert found["e"]["default"] == "`a` + 2"


def test_a_partition_becomes_a_table_and_comes_back() -> None:
    script, steps = run(
        "CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1), PARTITION q VALUES IN (2))",
        "ALTER TABLE t CONVERT PARTITION p TO TABLE u",
        "ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES IN (1)",
    )
    assert [{version.name for version in step.versions} for step in steps] == [
        {"test.t"},
        {"test.t", "test.u"},
        {"test.t", "test.u"},
    ]
    assert list(script.tables()) == ["test.t"]


def test_the_row_end_is_part_of_each_unique_key() -> None:
    script, _ = run(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END,"
        " PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
        "CREATE TABLE u (a INT UNIQUE)",
        "ALTER TABLE u ADD SYSTEM VERSIONING",
    )
    assert {name: column["key"] for name, column in columns_of(script).items()} == {
        "a": "PRI",
        "b": "MUL",
        "s": "",
        "e": "PRI",
    }
    assert columns_of(script)["e"]["extra"] == "STORED GENERATED"
    assert columns_of(script, "u")["a"]["key"] == "MUL"
    script.run(9, "ALTER TABLE u DROP SYSTEM VERSIONING")
    assert columns_of(script, "u")["a"]["key"] == "UNI"


@pytest.mark.parametrize(("version", "key"), [(MARIADB, "MUL"), (MYSQL, "MUL"), ("8.0.33", ""), ("10.4.1-MariaDB", "")])
def test_references_behind_a_column_makes_an_index_where_the_server_heeds_it(version: str, key: str) -> None:
    script, _ = run("CREATE TABLE p (a INT PRIMARY KEY)", "CREATE TABLE t (b INT REFERENCES p (a))", version=version)
    assert columns_of(script)["b"]["key"] == key


def test_without_overlaps_puts_the_periods_columns_into_the_key() -> None:
    made = "CREATE TABLE t (id INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))"
    script, steps = run(made, "CREATE TABLE u (id INT, s DATE, e DATE, PERIOD FOR p (s, e))")
    assert {name: column["key"] for name, column in columns_of(script).items()} == dict.fromkeys(
        ("id", "s", "e"), "PRI"
    )
    step = script.run(9, "ALTER TABLE u ADD UNIQUE (id, p WITHOUT OVERLAPS)")
    assert "WITHOUT OVERLAPS" in step.error
    assert not steps[1].error


def test_convert_to_binary_makes_binary_columns_and_beats_what_the_statement_itself_says() -> None:
    script, _ = run(
        "CREATE TABLE t (a CHAR(3), b TEXT, c ENUM('x'))",
        "ALTER TABLE t ADD d VARCHAR(2) CHARACTER SET ascii, CONVERT TO CHARACTER SET binary",
    )
    assert types_of(script) == {"a": "binary(3)", "b": "blob", "c": "enum('x')", "d": "varbinary(2)"}
    script, _ = run("CREATE TABLE t (a INT)", "ALTER TABLE t ADD d NCHAR(2), CONVERT TO CHARACTER SET latin2")
    assert columns_of(script)["d"]["charset"] == "latin2"


@pytest.mark.parametrize(
    ("definition", "mariadb", "mysql"),
    [
        ("INT DEFAULT 5", ("", "5"), ("", "5")),
        ("INT", ("", "NULL"), ("", None)),
        ("INT NOT NULL", ("", None), ("", None)),
        ("DECIMAL(8,2) DEFAULT 1", ("", "1.00"), ("", "1.00")),
        ("CHAR(9) DEFAULT ' x '", ("", "' x'"), ("", " x")),
        ("VARCHAR(9) DEFAULT 'it''s'", ("", "'it''s'"), ("", "it's")),
        ("DATE DEFAULT '2020-1-2'", ("", "'2020-01-02'"), ("", "2020-01-02")),
        ("TIME DEFAULT '1:2:3'", ("", "'01:02:03'"), ("", "01:02:03")),
        ("DOUBLE DEFAULT 1.5e3", ("", "1500"), ("", "1500")),
        ("BIT(8) DEFAULT b'101'", ("", "b'101'"), ("", "b'101'")),
        ("SET('a','b') DEFAULT 'B,a'", ("", "'a,b'"), ("", "a,b")),
        ("VARBINARY(5) DEFAULT 'abc'", ("", "'abc'"), ("", "0x616263")),
        ("INT(5) ZEROFILL DEFAULT 3", ("", "00003"), ("", "00003")),
        (
            "DATETIME(3) DEFAULT NOW(3) ON UPDATE NOW(3)",
            ("on update current_timestamp(3)", "current_timestamp(3)"),
            ("DEFAULT_GENERATED on update CURRENT_TIMESTAMP(3)", "CURRENT_TIMESTAMP(3)"),
        ),
        (
            "DATETIME(3) DEFAULT (CURRENT_TIMESTAMP)",
            ("", "current_timestamp(3)"),
            ("DEFAULT_GENERATED", "CURRENT_TIMESTAMP"),
        ),
        (
            "DATETIME DEFAULT (CURRENT_TIMESTAMP + INTERVAL 1 DAY)",
            ("", "CURRENT_TIMESTAMP + INTERVAL 1 DAY"),
            ("DEFAULT_GENERATED", "CURRENT_TIMESTAMP + INTERVAL 1 DAY"),
        ),
        ("INT DEFAULT (1 + 2)", ("", "1 + 2"), ("DEFAULT_GENERATED", "1 + 2")),
        ("INT DEFAULT 3 INVISIBLE", ("INVISIBLE", "3"), ("INVISIBLE", "3")),
        ("INT AS (k) INVISIBLE", ("VIRTUAL GENERATED, INVISIBLE", "NULL"), ("VIRTUAL GENERATED INVISIBLE", None)),
    ],
)  # fmt: skip
def test_extra_and_default_are_as_each_server_shows_them(
    definition: str, mariadb: tuple[str, str | None], mysql: tuple[str, str | None]
) -> None:
    for version, wanted in ((MARIADB, mariadb), (MYSQL, mysql)):
        script, _ = run(f"CREATE TABLE t (k INT, a {definition})", version=version)
        found = columns_of(script)["a"]
        assert (found["extra"], found["default"]) == wanted, version


# --- the command --------------------------------------------------------------------------------------


def _ddl(*arguments: str) -> tuple[int, list[dict[str, object]], str]:
    done = tidegate("ddl", *arguments)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_trace_says_per_statement_what_changed_and_each_file_starts_afresh(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sql", tmp_path / "b.sql"
    first.write_text(
        "CREATE TABLE t (a INT);\nTRUNCATE t;\nRENAME TABLE t TO u;\nALTER TABLE u\n ADD b FANCY;\nDROP TABLE u;"
    )
    second.write_text("CREATE TABLE IF NOT EXISTS u (c INT);")
    code, rows, _ = _ddl(str(first), str(second), "--trace")
    assert code == 1
    assert [(Path(str(row["file"])).name, row["line"], row["kind"]) for row in rows] == [
        ("a.sql", 1, "table.create"),
        ("a.sql", 2, "table.truncate"),
        ("a.sql", 3, "table.rename"),
        ("a.sql", 4, "unparsed"),
        ("a.sql", 6, "table.drop"),
        ("b.sql", 1, "table.create"),
    ]
    assert [list(dict(row["changed"])) for row in rows] == [["test.t"], [], ["test.u"], [], [], ["test.u"]]  # type: ignore[call-overload]
    assert [row["dropped"] for row in rows] == [[], [], ["test.t"], [], ["test.u"], []]
    assert [bool(row["error"]) for row in rows] == [False, False, False, True, False, False]


def test_a_file_that_is_no_text_is_a_usage_error_of_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "x.sql"
    broken.write_bytes(b"\xff\xfe\x00")
    code, rows, said = _ddl(str(broken))
    assert (code, rows, said.count("\n")) == (2, [], 1)
    assert str(broken) in said
