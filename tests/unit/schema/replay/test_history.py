"""SchemaHistory: versions, ids, idempotence, and what holds a table."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory


class Session:
    """A history and a commit_ts that goes up by 10 with each statement."""

    def __init__(self, version: str = "9.7.4") -> None:
        self.history = SchemaHistory("one")
        self.version = version
        self.ts = itertools.count(10, 10)

    def statement(self, sql: str, ts: int | None = None) -> DdlStatement:
        ts = next(self.ts) if ts is None else ts
        return DdlStatement(sql, "db", 0, ts, "b.000001", ts, 0, "utf8mb4", self.version)

    def run(self, *sql: str) -> list[TableVersion]:
        made: list[TableVersion] = []
        for text in sql:
            made = self.history.replay(self.statement(text))
        return made

    def last(self, table: str) -> TableVersion:
        return self.history.versions("db", table)[-1]

    def ids(self, table: str) -> dict[str, int]:
        return {column.name: column.id for column in self.last(table).columns}


def test_a_version_holds_from_its_own_commit_ts_up_to_the_next_ones() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT")
    found = {ts: s.history.version_at("db", "t", ts) for ts in (9, 10, 19, 20, 99)}
    assert {ts: version and version.version for ts, version in found.items()} == {9: None, 10: 1, 19: 1, 20: 2, 99: 2}


def test_a_renamed_or_changed_column_keeps_its_id_and_a_new_one_gets_a_fresh_one() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT, b INT)")
    before = s.ids("t")
    s.run("ALTER TABLE t RENAME COLUMN a TO x, CHANGE b y BIGINT FIRST, ADD a INT")
    after = s.ids("t")
    assert list(after) == ["y", "x", "a"]
    assert (after["x"], after["y"]) == (before["a"], before["b"])
    assert after["a"] not in before.values()


@pytest.mark.parametrize(
    ("actions", "columns"),
    [
        ("ADD e INT AFTER c, MODIFY c BIGINT AFTER d", "id e d c"),
        ("ADD e INT AFTER c, ADD f INT AFTER c, MODIFY c BIGINT FIRST", "c id f e d"),
        ("MODIFY c BIGINT AFTER id, MODIFY id INT AFTER c", "c id d"),
        ("ADD e INT AFTER f, CHANGE c f BIGINT FIRST", "f id e d"),
        ("ADD e INT AFTER c, MODIFY c BIGINT AFTER e, ADD f INT AFTER c", "id e c f d"),
    ],
)
def test_after_names_a_column_that_the_same_statement_has_still_to_move(actions: str, columns: str) -> None:
    s = Session()
    s.run("CREATE TABLE t (id INT, c INT, d INT)", f"ALTER TABLE t {actions}")
    assert " ".join(s.ids("t")) == columns


@pytest.mark.parametrize(
    ("actions", "columns"),
    [
        ("ADD e INT UNIQUE FIRST, MODIFY e BIGINT DEFAULT 4", "id c e:bigint(20)"),
        ("ADD e INT, CHANGE nothing e BIGINT AFTER id", "id e:bigint(20) c"),
        ("DROP c, ADD c INT, MODIFY c BIGINT", "id c:bigint(20)"),
    ],
)
def test_mariadb_changes_a_column_that_the_same_statement_has_added(actions: str, columns: str) -> None:
    s = Session("11.4.5-MariaDB")
    s.run("CREATE TABLE t (id INT, c INT)")
    before = set(s.ids("t").values())
    s.run(f"ALTER TABLE t {actions}")
    new = {column.id: f":{column.type}" for column in s.last("t").columns if column.id not in before}
    assert " ".join(f"{column.name}{new.get(column.id, '')}" for column in s.last("t").columns) == columns


@pytest.mark.parametrize(
    ("created", "columns"),
    [
        ("my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, a INT", "my_row_id b c a"),
        ("my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT", "b c my_row_id a"),
        ("a INT, my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY", "b c a my_row_id"),
    ],
)
def test_no_column_comes_before_a_key_that_mysql_made_itself(created: str, columns: str) -> None:
    s = Session()
    s.run(f"CREATE TABLE t ({created})", "ALTER TABLE t ADD c INT FIRST, ADD b INT FIRST")
    assert " ".join(s.ids("t")) == columns
    s.run("ALTER TABLE t DROP PRIMARY KEY, DROP my_row_id, ADD d INT FIRST")
    assert next(iter(s.ids("t"))) == "d"


def test_of_two_new_names_in_one_statement_the_last_counts() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)", "ALTER TABLE t RENAME TO u, ADD b INT, RENAME TO t")
    assert (s.last("t").kind, list(s.ids("t"))) == ("alter", ["a", "b"])
    s.run("ALTER TABLE t RENAME TO u, RENAME TO v")
    assert not s.history.versions("db", "u")
    assert s.last("v").status is VersionStatus.ACTIVE


@pytest.mark.parametrize("version", ["9.7.4", "11.4.5-MariaDB"])
def test_a_collation_stays_when_the_same_statement_names_its_character_set_again(version: str) -> None:
    s = Session(version)
    s.run("CREATE TABLE t (a INT)", "ALTER TABLE t COLLATE utf8mb4_bin, DEFAULT CHARACTER SET utf8mb4")
    assert s.last("t").collation == "utf8mb4_bin"
    s.run("ALTER TABLE t DEFAULT CHARACTER SET utf8mb4")
    assert s.last("t").collation != "utf8mb4_bin"


def test_a_default_of_the_same_statement_beats_convert_to_in_mariadb() -> None:
    s = Session("11.4.5-MariaDB")
    s.run("CREATE TABLE t (a TEXT) CHARACTER SET utf8mb4")
    s.run("ALTER TABLE t DEFAULT CHARACTER SET latin1, CONVERT TO CHARACTER SET utf8mb3", "ALTER TABLE t ADD b TEXT")
    assert [column.charset for column in s.last("t").columns] == ["utf8mb3", "latin1"]


def test_an_id_is_never_used_again_not_even_after_a_restart() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT, b INT)", "ALTER TABLE t DROP b")
    gone = s.history.versions("db", "t")[0].columns[1].id
    rows = [version.to_row() for version in s.history.versions("db", "t")]
    again = SchemaHistory("one", rows)
    (version,) = again.replay(s.statement("ALTER TABLE t ADD b INT"))
    assert version.columns[1].id > gone


def test_names_of_columns_swap_at_once() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT, b VARCHAR(5))")
    before = s.ids("t")
    s.run("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    assert s.ids("t") == {"b": before["a"], "a": before["b"]}


def test_a_table_swap_makes_one_version_per_table_and_none_for_the_name_between() -> None:
    s = Session()
    s.run("CREATE TABLE a (x INT)", "CREATE TABLE b (y INT)")
    ids = s.ids("a") | s.ids("b")
    made = s.run("RENAME TABLE a TO tmp, b TO a, tmp TO b")
    assert sorted((v.table, v.kind, v.columns[0].name, v.columns[0].id) for v in made) == [
        ("a", "rename", "y", ids["y"]),
        ("b", "rename", "x", ids["x"]),
    ]


def test_a_rename_ends_one_name_and_goes_on_under_the_other() -> None:
    s = Session()
    s.run("CREATE TABLE a (x INT)")
    ids = s.ids("a")
    s.run("ALTER TABLE a RENAME TO b, ADD z INT")
    assert (s.last("a").status, s.last("b").status) == (VersionStatus.DROPPED, VersionStatus.ACTIVE)
    assert s.ids("b")["x"] == ids["x"]


def test_create_after_drop_is_a_new_lineage() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)")
    ids = s.ids("t")
    s.run("DROP TABLE IF EXISTS t, nothing", "CREATE TABLE t (a INT)")
    assert [v.kind for v in s.history.versions("db", "t")] == ["create", "drop", "create"]
    assert s.ids("t")["a"] != ids["a"]


def test_if_not_exists_on_a_table_that_exists_changes_nothing() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)")
    assert s.run("CREATE TABLE IF NOT EXISTS t (b INT)") == []
    assert s.run("CREATE TABLE IF NOT EXISTS t LIKE t") == []


def test_rename_if_exists_passes_over_what_nobody_knows_but_not_over_what_is_left_out() -> None:
    s = Session()
    s.history.keeps = lambda _database, table: table != "hidden"
    s.run("CREATE TABLE t (a INT)")
    made = s.run("RENAME TABLE IF EXISTS nothing TO other, t TO u")
    assert [(v.table, v.status) for v in made] == [("t", VersionStatus.DROPPED), ("u", VersionStatus.ACTIVE)]
    assert not s.history.held
    for sql in ("RENAME TABLE IF EXISTS hidden TO other", "RENAME TABLE nothing TO others"):
        with pytest.raises(DdlNotRead, match="renamed but not known"):
            s.run(sql)


def test_truncate_is_a_version_with_the_same_columns() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)")
    ids = s.ids("t")
    (version,) = s.run("TRUNCATE TABLE t")
    assert (version.kind, s.ids("t")) == ("truncate", ids)


def test_replaying_again_changes_nothing() -> None:
    s = Session()
    statements = [s.statement(sql) for sql in ("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT", "DROP TABLE t")]
    for statement in statements:
        assert s.history.replay(statement)
    assert [s.history.replay(statement) for statement in statements] == [[], [], []]


def test_an_index_or_engine_alone_makes_no_version_unless_it_is_the_key() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT NOT NULL, b INT)")
    assert s.run("ALTER TABLE t ENGINE=InnoDB, AUTO_INCREMENT=7") == []
    (version,) = s.run("CREATE UNIQUE INDEX u ON t (a)")
    assert version.key_names == ("a",)


def test_a_comment_of_the_table_makes_a_version() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT COMMENT 'of a', KEY k (a) COMMENT 'of k') COMMENT='first' ENGINE=InnoDB")
    assert s.last("t").comment == "first"
    (version,) = s.run("ALTER TABLE t ADD INDEX i (a) COMMENT 'of i'")
    assert version.comment == "first"
    (version,) = s.run("ALTER TABLE t ENGINE=InnoDB COMMENT ''")
    assert version.comment == ""
    s.run("ALTER TABLE t COMMENT 'a', COMMENT='it''s'", "CREATE TABLE l LIKE t", "RENAME TABLE t TO u")
    assert [s.last(name).comment for name in "lu"] == ["it's", "it's"]
    assert s.run("ALTER TABLE u COMMENT = 'it''s'") == []


def test_the_key_is_the_primary_key_else_the_shortest_unique_one_without_null_or_prefix() -> None:
    s = Session()
    s.run(
        "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c INT, d VARCHAR(9) NOT NULL, e INT NOT NULL,"
        " UNIQUE ab (a, b), UNIQUE c (c), UNIQUE d (d(3)), UNIQUE e (e))"
    )
    assert s.last("t").key_names == ("e",)
    s.run("ALTER TABLE t DROP INDEX e")
    assert s.last("t").key_names == ("a", "b")
    s.run("ALTER TABLE t ADD PRIMARY KEY (d)")
    assert s.last("t").key_names == ("d",)
    s.run("ALTER TABLE t DROP PRIMARY KEY, DROP COLUMN b")
    assert s.last("t").key_names == ("a",)


def test_the_databases_charset_is_the_tables_and_the_tables_is_the_columns() -> None:
    s = Session()
    s.run("CREATE DATABASE db CHARACTER SET latin1", "CREATE TABLE t (a CHAR)", "ALTER DATABASE db COLLATE utf8mb4_bin")
    s.run("CREATE TABLE u (a CHAR, b CHAR CHARACTER SET ascii)", "ALTER TABLE t ADD b CHAR")
    assert [c.collation for c in s.last("t").columns] == ["latin1_swedish_ci", "latin1_swedish_ci"]
    assert [c.collation for c in s.last("u").columns] == ["utf8mb4_bin", "ascii_general_ci"]


def test_dropping_a_database_drops_its_tables() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)", "CREATE TABLE other.t (a INT)", "DROP DATABASE db")
    assert s.last("t").status is VersionStatus.DROPPED
    assert s.history.versions("other", "t")[-1].status is VersionStatus.ACTIVE


def test_rows_that_change_unseen_need_a_snapshot_until_the_table_starts_anew() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)", "ALTER TABLE t DROP PARTITION p")
    assert s.last("t").status is VersionStatus.NEEDS_SNAPSHOT
    s.run("ALTER TABLE t ADD b INT")
    assert s.last("t").status is VersionStatus.NEEDS_SNAPSHOT
    s.run("TRUNCATE t")
    assert s.last("t").status is VersionStatus.ACTIVE


def test_one_bad_statement_holds_its_tables_and_no_others() -> None:
    s = Session()
    s.run("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)")
    with pytest.raises(DdlNotRead, match=r"b\.000001:30") as caught:
        s.run("ALTER TABLE t ADD b FANCY")
    assert caught.value.tables == ("db.t",)
    with pytest.raises(DdlNotRead, match="an earlier statement"):
        s.run("ALTER TABLE t ADD c INT")
    assert s.run("ALTER TABLE u ADD c INT")
    assert s.run("DROP TABLE t")
    assert s.run("CREATE TABLE t (z INT)")
    assert s.history.held == {}


def test_a_statement_that_does_not_fit_the_known_columns_is_not_guessed_at() -> None:
    for sql in ("DROP nope", "ADD a INT", "CHANGE nope b INT", "DROP INDEX nope", "ADD b INT AFTER nope"):
        s = Session()
        s.run("CREATE TABLE t (a INT)")
        with pytest.raises(DdlNotRead):
            s.run(f"ALTER TABLE t {sql}")


def test_mariadb_if_exists_is_a_condition_on_each_action() -> None:
    s = Session("11.4.5-MariaDB")
    s.run("CREATE TABLE t (a INT)")
    s.run("ALTER TABLE t ADD COLUMN IF NOT EXISTS a BIGINT, DROP COLUMN IF EXISTS x, ADD COLUMN IF NOT EXISTS b INT")
    assert [(c.name, c.type) for c in s.last("t").columns] == [("a", "int(11)"), ("b", "int(11)")]


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("9.7.4", ["int", "tinyint(1)", "year", "json", "geomcollection", "int(5) unsigned zerofill"]),
        ("5.7.44", ["int(11)", "tinyint(1)", "year(4)", "json", "geometrycollection", "int(5) unsigned zerofill"]),
        (
            "11.4.5-MariaDB",
            ["int(11)", "tinyint(1)", "year(4)", "longtext", "geometrycollection", "int(5) unsigned zerofill"],
        ),
    ],
)
def test_types_are_shown_as_that_server_shows_them(version: str, kinds: list[str]) -> None:
    s = Session(version)
    s.run("CREATE TABLE t (a INTEGER, b BOOL, c YEAR, d JSON, e GEOMETRYCOLLECTION, f INT(5) ZEROFILL)")
    assert [column.type for column in s.last("t").columns] == kinds


def test_before_mysql_8_a_timestamp_is_not_null_unless_it_says_so() -> None:
    s = Session("5.7.44")
    s.run("CREATE TABLE t (a TIMESTAMP, b TIMESTAMP NULL, c DATETIME)")
    assert [column.nullable for column in s.last("t").columns] == [False, True, True]


def test_a_long_history_has_as_many_columns_in_memory_as_different_ones() -> None:
    """Reading 50,000 versions isn't ten times the objects of one table: those that stay are one value."""
    s = Session()
    s.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))")
    s.run(*[f"ALTER TABLE t ADD c{number} INT" for number in range(50)])
    versions = s.history.versions("db", "t")
    read = SchemaHistory("one", [version.to_row() for version in versions]).versions("db", "t")
    assert [version.columns for version in read] == [version.columns for version in versions]
    assert len({id(column) for version in read for column in version.columns}) == 53


def test_a_refused_create_or_replace_is_a_drop() -> None:
    s = Session("11.8.2-MariaDB-log")
    s.run("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)")
    for text in (
        "CREATE OR REPLACE TABLE t (a INT, a INT)",
        "CREATE OR REPLACE TABLE u LIKE t",
        "CREATE TABLE v (a INT)",
    ):
        logged = s.statement(text)
        s.history.replay(replace(logged, said=replace(logged.said, failed=True)))
    assert [s.last(table).status for table in "tuv"] == [*[VersionStatus.DROPPED] * 2, VersionStatus.ACTIVE]
