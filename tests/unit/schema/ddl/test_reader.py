"""The DDL reader: what it reads, what it steps over, what it says it can't read."""

from __future__ import annotations

import pickle

import pytest

from tidegate.schema.ddl.reader import DdlNotRead, read, tables_named
from tidegate.schema.ddl.tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from tidegate.schema.ddl.tree import (
    AlterTable,
    ColumnDefinition,
    CreateTable,
    DropTables,
    Ignored,
    RenameTables,
    RowsChanged,
    Statement,
    Truncate,
)
from tidegate.schema.model.columns import Generated, IndexKind
from tidegate.schema.model.server import ServerVersion

MARIADB = ServerVersion.of("11.4.5-MariaDB-log")
MYSQL = ServerVersion.of("9.7.4")


def _read(sql: str, server: ServerVersion = MARIADB, sql_mode: int = 0) -> Statement:
    return read(sql, database="db", sql_mode=sql_mode, server=server)


def _columns(sql: str, server: ServerVersion = MARIADB, sql_mode: int = 0) -> dict[str, ColumnDefinition]:
    statement = _read(sql, server, sql_mode)
    assert isinstance(statement, CreateTable)
    return {column.name: column for column in statement.columns}


@pytest.mark.parametrize(
    ("version", "mariadb", "number"),
    [("5.5.5-10.6.12-MariaDB-log", True, 100612), ("11.4.5-MariaDB", True, 110405), ("8.0.33", False, 80033)],
)
def test_a_server_is_known_by_its_version(version: str, mariadb: bool, number: int) -> None:
    assert ServerVersion.of(version) == ServerVersion(mariadb, number)


def test_a_word_in_quotes_is_never_a_keyword() -> None:
    found = _columns("CREATE TABLE t (`primary` INT, `key` INT DEFAULT 1, `a``b` INT COMMENT 'PRIMARY KEY (x), y INT')")
    assert list(found) == ["primary", "key", "a`b"]
    assert found["a`b"].comment == "PRIMARY KEY (x), y INT"


def test_ansi_quotes_decide_what_double_quotes_are() -> None:
    assert list(_columns('CREATE TABLE t ("a b" INT)', sql_mode=ANSI_QUOTES)) == ["a b"]
    default = _columns('CREATE TABLE t (a VARCHAR(9) DEFAULT "it""s")')["a"].default
    assert default is not None
    assert default.text == 'it"s'


def test_a_backslash_escapes_unless_the_mode_says_otherwise() -> None:
    escaped = _columns(r"CREATE TABLE t (a VARCHAR(9) DEFAULT 'x\'y', b INT)")
    plain = _columns(r"CREATE TABLE t (a VARCHAR(9) DEFAULT 'x\', b INT)", sql_mode=NO_BACKSLASH_ESCAPES)
    assert list(escaped) == list(plain) == ["a", "b"]


@pytest.mark.parametrize(
    ("sql", "mysql", "mariadb"),
    [
        ("CREATE TABLE t (a INT /*!80000 , b INT */)", ["a", "b"], ["a"]),
        ("CREATE TABLE t (a INT /*!50000 , b INT */)", ["a", "b"], ["a", "b"]),
        ("CREATE TABLE t (a INT /*!99999 , b INT */)", ["a"], ["a"]),
        ("CREATE TABLE t (a INT /*!999999 , b INT */)", ["a"], ["a"]),
        ("CREATE TABLE t (a INT /*M!100000 , b INT */)", ["a"], ["a", "b"]),
        ("CREATE TABLE t (a INT /*T! , b INT */)", ["a"], ["a"]),
        ("CREATE TABLE t (a INT /*! , b INT */)", ["a", "b"], ["a", "b"]),
        ("CREATE TABLE t (a INT /* , b INT */) /*!50100 PARTITION BY HASH (a) /* x */ */", ["a"], ["a"]),
    ],
)
def test_a_versioned_comment_opens_where_its_server_opens_it(sql: str, mysql: list[str], mariadb: list[str]) -> None:
    assert list(_columns(sql, MYSQL)) == mysql
    assert list(_columns(sql, MARIADB)) == mariadb


def test_a_references_clause_does_not_leak_its_words_into_the_column() -> None:
    column = _columns("CREATE TABLE t (a INT REFERENCES p (x) ON DELETE SET NULL ON UPDATE CASCADE NOT NULL)")["a"]
    assert (column.nullable, column.default, column.on_update) == (False, None, "")


@pytest.mark.parametrize(
    ("text", "expected", "is_expression"),
    [
        ("DEFAULT -1.50", "-1.50", False),
        ("DEFAULT 1e-3", "1e-3", False),
        ("DEFAULT .5", ".5", False),
        ("DEFAULT 'a' 'b'", "ab", False),
        ("DEFAULT _utf8mb4'x'", "x", False),
        ("DEFAULT x'41'", "0x41", False),
        ("DEFAULT b'101'", "0b101", False),
        ("DEFAULT TRUE", "1", False),
        ("DEFAULT NULL", None, False),
        ("DEFAULT now(3)", "CURRENT_TIMESTAMP(3)", True),
        ("DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", True),
        ("DEFAULT (uuid())", "uuid()", True),
        ("DEFAULT concat('a', 'b)')", "concat('a', 'b)')", True),
        ("DEFAULT NEXT VALUE FOR `s`.`q`", "NEXT VALUE FOR `s`.`q`", True),
        ("DEFAULT DATE '2020-01-01'", "2020-01-01", False),
    ],
)
def test_a_default_is_a_literal_or_an_expression(text: str, expected: str | None, is_expression: bool) -> None:
    columns = _columns(f"CREATE TABLE t (a VARCHAR(20) {text} COMMENT 'c', b INT)")
    assert columns["a"].default is not None
    assert (columns["a"].default.text, columns["a"].default.is_expression) == (expected, is_expression)
    assert columns["a"].comment == "c"
    assert list(columns) == ["a", "b"]


def test_generated_columns_are_told_from_plain_ones() -> None:
    found = _columns(
        "CREATE TABLE t (a INT, b INT AS (a + (1)) STORED, c INT GENERATED ALWAYS AS (a) VIRTUAL, d INT AS (1))"
    )
    assert [c.generated for c in found.values()] == [
        Generated.NO,
        Generated.STORED,
        Generated.VIRTUAL,
        Generated.VIRTUAL,
    ]
    assert found["b"].generation_expression == "a + (1)"


def test_every_form_of_key_is_read() -> None:
    statement = _read(
        "CREATE TABLE t (a INT, b VARCHAR(9), CONSTRAINT pk PRIMARY KEY USING BTREE (a DESC), UNIQUE INDEX u (b(3), a),"
        " CONSTRAINT c UNIQUE (b), FULLTEXT KEY f (b), KEY ((a + 1)), CHECK (a > 0), FOREIGN KEY (a) REFERENCES p (x))"
    )
    assert isinstance(statement, CreateTable)
    found = [(i.kind, i.name, i.columns, i.prefixes) for i in statement.indexes]
    assert found == [
        (IndexKind.PRIMARY, "PRIMARY", ("a",), (0,)),
        (IndexKind.UNIQUE, "u", ("b", "a"), (3, 0)),
        (IndexKind.UNIQUE, "c", ("b",), (0,)),
        (IndexKind.PLAIN, "f", ("b",), (0,)),
        (IndexKind.PLAIN, "", ("",), (0,)),
        (IndexKind.PLAIN, "", ("a",), (0,)),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE TABLE t SELECT 1 AS a",
        "CREATE TABLE t (a INT) IGNORE SELECT 1 AS a",
        "CREATE TABLE t (SELECT 1 AS a)",
        "CREATE TABLE t ((SELECT 1 AS a))",
        "CREATE TABLE t ENGINE=InnoDB AS WITH x AS (SELECT 1) SELECT * FROM x",
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) SELECT 1 AS a",
    ],
)
def test_create_select_is_seen_in_each_of_its_forms(sql: str) -> None:
    statement = _read(sql)
    assert isinstance(statement, CreateTable)
    assert statement.query_at is not None


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE t (a INT) COMMENT='AS SELECT 1'",
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5) COMMENT 'x')",
        "CREATE TABLE t (a INT) START TRANSACTION",
        "CREATE TABLE t (a INT) UNION=(x, y) ENGINE MERGE",
    ],
)
def test_what_only_looks_like_create_select_is_not(sql: str) -> None:
    statement = _read(sql)
    assert isinstance(statement, CreateTable)
    assert statement.query_at is None


@pytest.mark.parametrize("action", ["IMPORT TABLESPACE", "DISCARD PARTITION p TABLESPACE", "TRUNCATE PARTITION"])
def test_an_action_that_changes_rows_unseen_says_so(action: str) -> None:
    statement = _read(f"ALTER TABLE t {action}")
    assert isinstance(statement, AlterTable)
    (found,) = statement.actions
    assert isinstance(found, RowsChanged)


@pytest.mark.parametrize(
    "action",
    [
        "ADD PARTITION (PARTITION p VALUES LESS THAN (9))",
        "REORGANIZE PARTITION p INTO (PARTITION a VALUES LESS THAN (1))",
        "REMOVE PARTITIONING",
        "ENGINE = InnoDB ROW_FORMAT=DYNAMIC",
        "COMMENT 'DROP COLUMN a'",
        "ADD FOREIGN KEY (a) REFERENCES p (x), ALGORITHM=INPLACE, LOCK=NONE",
        "DROP CHECK c",
        "ADD CONSTRAINT c CHECK (a > 0)",
        "ORDER BY a",
        "FORCE",
    ],
)
def test_an_action_without_bearing_on_columns_changes_none(action: str) -> None:
    statement = _read(f"ALTER TABLE t {action}")
    assert isinstance(statement, AlterTable)
    assert not any(hasattr(found, "name") or isinstance(found, RowsChanged) for found in statement.actions)


def test_statements_of_other_objects_are_ignored_by_name() -> None:
    kinds = {
        "CREATE DEFINER=`root`@`%` TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1": "CREATE TRIGGER",
        "CREATE VIEW (a) AS SELECT 1": "CREATE VIEW",
        "ALTER ALGORITHM=MERGE SQL SECURITY INVOKER VIEW v AS SELECT 1": "ALTER VIEW",
        "CREATE PROCEDURE p() BEGIN CREATE TABLE t (a INT); END": "CREATE PROCEDURE",
        "DROP USER u": "DROP USER",
        "ALTER USER u IDENTIFIED BY 'x'": "ALTER USER",
        "GRANT ALL ON *.* TO u": "GRANT",
        "ANALYZE TABLE t": "ANALYZE",
        "FLUSH TABLES": "FLUSH",
    }
    assert {sql: _read(sql) for sql in kinds} == {sql: Ignored(kind) for sql, kind in kinds.items()}
    assert all(tables_named(sql, "db") == [] for sql in kinds)


def test_names_come_with_their_database() -> None:
    assert _read("DROP TABLE IF EXISTS a, `x.y`.`z`, .c CASCADE") == DropTables(
        (("db", "a"), ("x.y", "z"), ("db", "c"))
    )
    assert _read("RENAME TABLE a TO b, c TO d.e") == RenameTables(
        ((("db", "a"), ("db", "b")), (("db", "c"), ("d", "e")))
    )
    assert _read("RENAME TABLE IF EXISTS a TO b") == RenameTables(((("db", "a"), ("db", "b")),), if_exists=True)
    assert _read("TRUNCATE `t`;") == Truncate(("db", "t"))
    assert tables_named("ALTER TABLE s.t RENAME TO u, ADD a INT", "db") == ["s.t", "db.u"]
    assert tables_named("CREATE TEMPORARY TABLE t (a INT)", "db") == []


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("CREATE TABLE t (a FANCY)", ("db.t",)),
        ("ALTER TABLE t ADD a INT DEFAULT", ("db.t",)),
        ("CREATE TABLE t (a INT", ("db.t",)),
        ("INSERT INTO t VALUES (1)", ("db.t",)),
        ("UPDATE a, b SET a.x = b.x", ()),
        ("FROBNICATE t", ()),
        ("CREATE TABLE t (a VARCHAR(5) COMMENT 'never ends)", ()),
    ],
)
def test_what_cannot_be_read_names_its_tables_where_it_can(sql: str, tables: tuple[str, ...]) -> None:
    with pytest.raises(DdlNotRead) as caught:
        _read(sql)
    assert caught.value.tables == tables
    assert "\n" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.tables) == (str(caught.value), tables)


def test_a_memory_table_emptied_by_the_server_is_a_truncate() -> None:
    assert _read("DELETE FROM `db`.`m`") == Truncate(("db", "m"))


def test_a_create_or_replace_without_columns_has_dropped_the_old_table_and_failed() -> None:
    assert _read("create or replace table t1") == DropTables((("db", "t1"),))
    assert _read("CREATE OR REPLACE TABLE x.t1 COMMENT='no engine'") == DropTables((("x", "t1"),))
    for sql in ("CREATE TABLE t1", "CREATE OR REPLACE TABLE t1 ENGINE=CONNECT TABLE_TYPE=CSV"):
        with pytest.raises(DdlNotRead, match="the engine finds them"):
            _read(sql)


@pytest.mark.parametrize(
    "words", ["vector (v)", "VECTOR(v) m=5 distance=euclidean", "vector index (v)", "VECTOR KEY x (v)"]
)
def test_an_index_of_vectors_needs_neither_a_name_nor_the_word_index(words: str) -> None:
    for sql in (f"ALTER TABLE t ADD {words}", f"CREATE TABLE t (v VECTOR(3) NOT NULL, {words})"):
        statement = _read(sql)
        assert isinstance(statement, AlterTable | CreateTable)
        indexes = statement.indexes if isinstance(statement, CreateTable) else [statement.actions[0].definition]  # type: ignore[union-attr]
        assert [index.columns for index in indexes] == [("v",)]


def test_a_column_may_be_called_vector() -> None:
    assert list(_columns("CREATE TABLE t (vector INT, v VECTOR(3))")) == ["vector", "v"]


def test_cut_short_anywhere_a_statement_is_read_or_refused_but_nothing_else() -> None:
    sql = (
        "CREATE TABLE IF NOT EXISTS `d`.`t` (`a` INT(5) UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'x', b ENUM('q','r')"
        " CHARACTER SET latin1 DEFAULT 'q', c DECIMAL(10,2) GENERATED ALWAYS AS (a * 2) STORED, PRIMARY KEY (a),"
        " UNIQUE KEY u (b, c)) DEFAULT CHARSET=utf8mb4 /*!50100 PARTITION BY HASH (a) */"
    )
    outcomes = set()
    for end in range(len(sql)):
        try:
            outcomes.add(type(_read(sql[:end])).__name__)
        except DdlNotRead:
            outcomes.add("refused")
    assert outcomes == {"refused", "CreateTable", "Ignored"}
