"""How a table is partitioned: read, changed by ALTER TABLE, stored; and which rows a statement moves."""

from __future__ import annotations

import itertools

import pytest

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.partition_rows import rows_where
from tidegate.schema.model.partitions import Partition, Partitioning
from tidegate.schema.model.version_changes import changes
from tidegate.schema.replay.history import SchemaHistory

RANGE = "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20) COMMENT 'x,)')"


class Session:
    """A history that statements are replayed onto."""

    def __init__(self) -> None:
        self.history = SchemaHistory("one")
        self.ts = itertools.count(10, 10)

    def run(self, *sql: str) -> None:
        for text in sql:
            ts = next(self.ts)
            self.history.replay(DdlStatement(text, "db", 0, ts, "b.1", ts, 0, "utf8mb4", "11.4.5-MariaDB"))

    def last(self, table: str = "t") -> TableVersion:
        return self.history.versions("db", table)[-1]

    def names(self, table: str = "t") -> str:
        """Partitions and bounds, as one text."""
        partitioning = self.last(table).partitioning
        assert partitioning is not None
        assert not partitioning.unknown
        return " ".join(f"{p.name}{''.join(str(v[0]) for v in p.values)}" for p in partitioning.partitions)


def started(clause: str = RANGE, columns: str = "id INT, d DATE") -> Session:
    session = Session()
    session.run(f"CREATE TABLE t ({columns}) ENGINE=InnoDB {clause}")
    return session


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER TABLE t ADD PARTITION (PARTITION c VALUES LESS THAN (30), PARTITION d VALUES LESS THAN MAXVALUE)",
         "a10 b20 c30 d('max',)"),
        ("ALTER TABLE t ADD PARTITION IF NOT EXISTS (PARTITION b VALUES LESS THAN (30))", "a10 b20"),
        ("ALTER TABLE t DROP PARTITION A", "b20"),
        ("ALTER TABLE t DROP PARTITION IF EXISTS a, zz", "b20"),
        ("ALTER TABLE t TRUNCATE PARTITION a", "a10 b20"),
        ("ALTER TABLE t REORGANIZE PARTITION a INTO (PARTITION x VALUES LESS THAN(5), PARTITION y VALUES LESS THAN(9))",
         "x5 y9 b20"),
        ("ALTER TABLE t REORGANIZE PARTITION a, b INTO (PARTITION x VALUES LESS THAN (20))", "x20"),
        ("ALTER TABLE t ADD COLUMN x INT", "a10 b20"),
        ("ALTER TABLE t ADD COLUMN x INT PARTITION BY HASH (id) PARTITIONS 3", "p0 p1 p2"),
        ("ALTER TABLE t PARTITION BY LIST (id) (PARTITION n VALUES IN (-1, NULL, (2)))", "n-1None2"),
        ("ALTER TABLE t CONVERT PARTITION b TO TABLE u", "a10"),
        ("RENAME TABLE t TO x, x TO t", "a10 b20"),
        ("ALTER TABLE t REBUILD PARTITION ALL", "a10 b20"),
    ],
)  # fmt: skip
def test_alter_table_changes_the_partitions(statement: str, expected: str) -> None:
    session = started()
    session.run(statement)
    assert session.names() == expected


def test_hash_partitions_come_and_go_by_number_and_remove_partitioning_leaves_none() -> None:
    session = started("PARTITION BY HASH (id) PARTITIONS 4")
    session.run("ALTER TABLE t COALESCE PARTITION 2", "ALTER TABLE t ADD PARTITION PARTITIONS 1")
    assert session.names() == "p0 p1 p2"
    session.run("CREATE TABLE u LIKE t", "ALTER TABLE t REMOVE PARTITIONING")
    assert session.last("t").partitioning is None
    assert session.names("u") == "p0 p1 p2"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD PARTITION (PARTITION a VALUES LESS THAN (30))",
        "ALTER TABLE t REORGANIZE PARTITION zz INTO (PARTITION x VALUES LESS THAN (5))",
        "ALTER TABLE t RENAME COLUMN id TO x",
        "ALTER TABLE t CHANGE id x INT",
        "ALTER TABLE t PARTITION BY RANGE (SOMETHING(id)) (PARTITION a VALUES LESS THAN (1))",
        f"ALTER TABLE t PARTITION BY RANGE ({'(' * 5000}id{')' * 5000}) (PARTITION a VALUES LESS THAN (1))",
    ],
)
def test_what_does_not_fit_what_is_known_makes_the_partitions_unknown(statement: str) -> None:
    session = started()
    session.run(statement)
    partitioning = session.last().partitioning
    assert partitioning is not None
    assert partitioning.unknown
    session.run("ALTER TABLE t DROP PARTITION b")
    assert session.last().status is VersionStatus.NEEDS_SNAPSHOT
    assert session.last().moved is not None
    session.run("CREATE OR REPLACE TABLE t (id INT)")
    assert session.last().partitioning is None


@pytest.mark.parametrize(
    "clause",
    [
        RANGE,
        "",
        "PARTITION BY LIST COLUMNS (id, d) (PARTITION a VALUES IN ((1, '2020'), (NULL, NULL)), PARTITION x DEFAULT)",
        "PARTITION BY RANGE (TO_DAYS(d) * 2 - 1) (PARTITION a VALUES LESS THAN (TO_DAYS('2020-01-01')))",
        "PARTITION BY KEY ALGORITHM=2 () PARTITIONS 2",
        "PARTITION BY RANGE (FOO(d)) (PARTITION a VALUES LESS THAN (1))",
        "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 10 (PARTITION p0 HISTORY, PARTITION pn CURRENT)",
    ],
)
def test_a_version_is_read_back_as_it_was_stored(clause: str) -> None:
    session = started(clause)
    session.run("ALTER TABLE t DROP PARTITION a")
    for version in session.history.versions("db", "t"):
        assert TableVersion.from_row(version.to_row()) == version


@pytest.mark.parametrize(
    ("columns", "clause", "why"),
    [
        ("id INT", "PARTITION BY KEY (id) PARTITIONS 2", "KEY"),
        ("id INT", "PARTITION BY LINEAR HASH (id) PARTITIONS 2", "LINEAR HASH"),
        ("s CHAR(3) COLLATE utf8mb4_czech_ci", "PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('a'))", "czech"),
        ("s CHAR(3) COLLATE utf8mb4_general_ci", "PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('é'))", "é"),
        ("s VARBINARY(3)", "PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('a'))", "varbinary"),
        ("d TIMESTAMP",
         "PARTITION BY RANGE (UNIX_TIMESTAMP(d)) (PARTITION p0 VALUES LESS THAN (UNIX_TIMESTAMP('2020-01-01')))",
         "time zone"),
        ("d TIME", "PARTITION BY RANGE (HOUR(d)) (PARTITION p0 VALUES LESS THAN (5))", "HOUR"),
        ("d DATE", "PARTITION BY RANGE COLUMNS (d) (PARTITION p0 VALUES LESS THAN ('2020-02-31'))", "2020-02-31"),
        ("d DATE", "PARTITION BY RANGE COLUMNS (d) (PARTITION p0 VALUES LESS THAN ('20200201'))", "20200201"),
        ("a BIGINT UNSIGNED, b INT", "PARTITION BY RANGE (a + b) (PARTITION p0 VALUES LESS THAN (5))", "signed"),
        ("a INT", "PARTITION BY RANGE (a) (PARTITION p1 VALUES LESS THAN (5))", "p0"),
        ("a INT", "", "isn't known to have partitions"),
    ],
)  # fmt: skip
def test_where_rows_lie_is_refused_where_it_is_not_certain(columns: str, clause: str, why: str) -> None:
    version = started(clause, columns).last()
    with pytest.raises(UnsupportedValue, match=why):
        rows_where(version.columns, version.partitioning, ["p0"])


@pytest.mark.parametrize(
    ("columns", "bound", "plain"),
    [
        ("v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "0x6d", "'m'"),
        ("v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "X'4142', x'6d'", "'AB', 'm'"),
        ("v VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci", "_latin1 0x6d, _latin1 x'6E'", "'m', 'n'"),
        ("v DATE", "0x323032302d30312d3031", "'2020-01-01'"),
    ],
)
def test_a_hexadecimal_bound_is_the_text_that_the_server_shows_for_it(columns: str, bound: str, plain: str) -> None:
    where = [
        rows_where(version.columns, version.partitioning, ["p0"])
        for values in (bound, plain)
        if (version := started(f"PARTITION BY LIST COLUMNS (v) (PARTITION p0 VALUES IN ({values}))", columns).last())
    ]
    assert where[0] == where[1]


@pytest.mark.parametrize(
    ("columns", "bound"),
    [
        ("v VARCHAR(9) CHARACTER SET utf16 COLLATE utf16_general_ci", "0x6161"),
        ("v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "_utf16 0x006d"),
        ("v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "0xc3b6"),
        ("v VARBINARY(9)", "0x00ff"),
        ("v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "x'g6'"),
    ],
)
def test_a_hexadecimal_bound_whose_text_is_not_certain_leaves_a_doubt(columns: str, bound: str) -> None:
    version = started(f"PARTITION BY LIST COLUMNS (v) (PARTITION p0 VALUES IN ({bound}))", columns).last()
    with pytest.raises(UnsupportedValue):
        rows_where(version.columns, version.partitioning, ["p0"])


def test_history_partitions_hold_no_row_that_silver_has() -> None:
    clause = "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 9 (PARTITION p0 HISTORY, PARTITION pn CURRENT)"
    version = started(clause).last()
    assert rows_where(version.columns, version.partitioning, ["p0"]).condition == "(false)"
    assert rows_where(version.columns, version.partitioning, ["pn"]).condition == "(true)"


def test_truncate_partition_all_is_a_truncate() -> None:
    session = started("PARTITION BY KEY (id) PARTITIONS 2")
    session.run("ALTER TABLE t TRUNCATE PARTITION ALL")
    assert (session.last().kind, session.last().status) == ("truncate", VersionStatus.ACTIVE)


def test_a_column_named_like_its_function_is_a_column() -> None:
    partitioning = started("PARTITION BY RANGE (`year`) (PARTITION a VALUES LESS THAN (1))", "`year` INT").last()
    expected = Partitioning("range", (("column", "year"),), (Partition("a", ((1,),)),))
    assert partitioning.partitioning == expected
    named = started(
        "PARTITION BY LIST COLUMNS (`0x61`, x) (PARTITION a VALUES IN ((1, 2)))", "`0x61` INT, x INT"
    ).last()
    assert named.partitioning is not None
    assert named.partitioning.expressions == (("column", "0x61"), ("column", "x"))


def moved(session: Session, table: str) -> tuple[str, VersionStatus, str]:
    version = session.last(table)
    assert version.moved is not None
    return version.moved.how, version.status, version.moved.why


def test_exchange_and_convert_name_both_tables_and_what_each_gets() -> None:
    session = started()
    session.run("CREATE TABLE u (id INT, d DATE)", "ALTER TABLE t EXCHANGE PARTITION a WITH TABLE u")
    active = VersionStatus.ACTIVE
    assert (moved(session, "t"), moved(session, "u")) == (("exchanged", active, ""), ("given", active, ""))
    session.run("ALTER TABLE t CONVERT PARTITION a TO TABLE v")
    assert (moved(session, "t"), moved(session, "v")) == (("deleted", active, ""), ("split", active, ""))
    assert session.last("v").partitioning is None
    session.run("ALTER TABLE t CONVERT TABLE u TO PARTITION z VALUES LESS THAN (30)")
    assert (moved(session, "t"), moved(session, "u")) == (("grown", active, ""), ("left", VersionStatus.DROPPED, ""))
    assert session.names() == "b20 z30"


@pytest.mark.parametrize(
    ("setup", "statement", "why"),
    [
        ("CREATE TABLE u (id BIGINT, d DATE)", "ALTER TABLE t EXCHANGE PARTITION a WITH TABLE u", "same columns"),
        ("CREATE TABLE u (d DATE, id INT)", "ALTER TABLE t EXCHANGE PARTITION a WITH TABLE u", "same columns"),
        ("CREATE TABLE u (id INT, d DATE)", "ALTER TABLE t EXCHANGE PARTITION zz WITH TABLE u", "zz"),
        ("CREATE TABLE u (id INT, d DATE)", "ALTER TABLE t CONVERT TABLE u TO PARTITION z VALUES IN (F(1))", "be read"),
        ("ALTER TABLE t PARTITION BY KEY (id)", "ALTER TABLE t CONVERT PARTITION p0 TO TABLE u", "KEY"),
        ("ALTER TABLE t PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pn CURRENT)",
         "ALTER TABLE t CONVERT PARTITION p0 TO TABLE u", "history"),
    ],
)  # fmt: skip
def test_a_move_that_is_not_certain_needs_a_snapshot_and_says_why(setup: str, statement: str, why: str) -> None:
    session = started()
    session.run(setup, statement)
    how, status, said = moved(session, "t")
    assert how in ("exchanged", "deleted", "grown")
    assert status is VersionStatus.NEEDS_SNAPSHOT
    assert why in said


def test_rows_that_come_from_a_table_that_is_not_kept_need_a_snapshot() -> None:
    session = started()
    session.history = SchemaHistory("one", keeps=lambda _, table: table == "t")
    session.run(f"CREATE TABLE t (id INT) {RANGE}", "CREATE TABLE u (id INT)")
    session.run("ALTER TABLE t EXCHANGE PARTITION a WITH TABLE u")
    assert "u, which isn't followed" in moved(session, "t")[2]


def test_a_table_that_nobody_knows_changes_rows_of_one_that_is_followed() -> None:
    session = started()
    session.history = SchemaHistory("one", keeps=lambda _, table: table != "other")
    session.run("CREATE TABLE u (id INT)", "ALTER TABLE other EXCHANGE PARTITION a WITH TABLE u")
    assert "other, which isn't followed" in moved(session, "u")[2]
    session.run("ALTER TABLE other CONVERT TABLE u TO PARTITION p VALUES IN (1)")
    assert session.last("u").status is VersionStatus.DROPPED
    with pytest.raises(DdlNotRead, match="is not known"):
        session.run("ALTER TABLE other CONVERT PARTITION p TO TABLE u")


def test_people_are_told_which_partitions_came_and_which_rows_went() -> None:
    session = started()
    session.run("ALTER TABLE t DROP PARTITION a")
    old, new = session.history.versions("db", "t")
    assert changes(old, new) == ["partitions range (a, b) -> range (b)", "rows deleted: a"]
    session.run("CREATE TABLE u (id INT, d DATE)", "ALTER TABLE t EXCHANGE PARTITION b WITH TABLE u")
    assert changes(new, session.last()) == ["rows exchanged: b with db.u"]
    many = ", ".join(f"PARTITION q{n} VALUES IN ({n})" for n in range(9))
    before = session.last()
    session.run(f"ALTER TABLE t PARTITION BY LIST (id) ({many})")
    assert changes(before, session.last()) == ["partitions range (b) -> list (q0 ... q8, 9 in all)"]
