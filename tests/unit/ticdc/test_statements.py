"""What a schema file's statement does is compared with the columns that the file says; a database that it doesn't say
is not guessed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.changefeed_writer import CREATE_PLAIN, ID, PLAIN, Change, Changefeed, plain, ts
from tests.unit.changefeed.test_reader import given, opened, source
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segment_kinds import statements_of
from tidegate.tables import EVERY_TABLE, SegmentFlag

NARROW = {"id": ID}


@pytest.fixture
def feed(tmp_path: Path) -> Changefeed:
    return Changefeed(tmp_path / "feed")


def replayed(feed: Changefeed, upto_ts: int) -> tuple[SchemaHistory, list[DdlNotRead]]:
    """The history of everything up to a commit_ts, and what couldn't be followed."""
    feed.checkpoint(upto_ts)
    history, held = SchemaHistory("one"), []
    for segment in given(opened(source(feed)), upto_ts):
        for statement in statements_of(segment) if segment.flags & SegmentFlag.HAS_DDL else ():
            try:
                history.replay(statement)
            except DdlNotRead as error:
                held.append(error)
    return history, held


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        (NARROW, "replayed are id, word"),
        ({**PLAIN, "id": {**ID, "ColumnType": "INT"}}, "its column id is int, replayed is bigint"),
        ({**PLAIN, "id": {**ID, "ColumnIsPk": "false"}}, "its primary key is of"),
        ({"word": PLAIN["word"], "id": ID}, "it has columns word, id"),
    ],
)
def test_a_table_that_is_not_as_its_file_says_is_held(
    feed: Changefeed, columns: dict[str, dict[str, str]], what: str
) -> None:
    """`USE db1; CREATE TABLE db2.t LIKE t1` names a table of db1; the file is of db2."""
    feed.ddl("db2.t1", ts(1), CREATE_PLAIN.format("db2", "t1"), 3, PLAIN)
    feed.ddl("db2.t", ts(2), "CREATE TABLE db2.t LIKE db2.t1", 3, columns)
    history, (held,) = replayed(feed, ts(3))
    assert what in held.what
    assert held.tables == ("db2.t",)
    assert not history.versions("db2", "t")


def test_a_table_that_is_as_its_file_says_goes_on(feed: Changefeed) -> None:
    """A hidden column of an index over an expression is TiDB's own."""
    feed.ddl("shop.t", ts(1), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    hidden = {**PLAIN, "_V$_i_0": {"ColumnType": "VARCHAR", "ColumnPrecision": "40"}}
    feed.ddl("shop.t", ts(2), "ALTER TABLE t ADD INDEX i ((LOWER(word)))", 7, hidden)
    feed.ddl("shop.t", ts(3), "ALTER TABLE t MODIFY COLUMN word TEXT", 12, {**hidden, "word": {"ColumnType": "TEXT"}})
    feed.ddl("shop.t", ts(4), "DROP TABLE t", 4)
    _, held = replayed(feed, ts(5))
    assert not held


RENAMES = ("RENAME TABLE a TO db2.b", "ALTER TABLE a RENAME TO db2.b")


@pytest.mark.parametrize("sql", RENAMES)
def test_a_rename_out_of_a_database_that_nobody_says_holds_all_that_it_may_be(feed: Changefeed, sql: str) -> None:
    """`USE db1; RENAME TABLE a TO db2.b`, where db2 has a table a as well."""
    for database in ("db1", "db2"):
        feed.ddl(f"{database}.a", ts(1), CREATE_PLAIN.format(database, "a"), 3, PLAIN)
    feed.ddl("db2.b", ts(2), sql, 14, PLAIN)
    history, (held,) = replayed(feed, ts(3))
    assert set(held.tables) == {"db1.a", "db2.a", "db2.b"}
    assert {name for name in history.tables() if history.standing.get(name)} == {("db1", "a"), ("db2", "a")}
    (segment,) = given(opened(source(feed)), ts(3))
    assert segment.tables == (EVERY_TABLE,)


@pytest.mark.parametrize("sql", RENAMES)
def test_a_rename_of_the_only_table_of_that_name_goes_on(feed: Changefeed, sql: str) -> None:
    """Tables of that name that are gone, or came later, are no others; it may be replayed again at any time."""
    feed.ddl("db3.a", ts(1), CREATE_PLAIN.format("db3", "a"), 3, PLAIN)
    feed.ddl("db1.a", ts(2), CREATE_PLAIN.format("db1", "a"), 3, PLAIN)
    feed.ddl("db3.a", ts(3), "DROP TABLE a", 4)
    feed.ddl("db2.b", ts(4), sql, 14, PLAIN)
    feed.ddl("db2.a", ts(5), CREATE_PLAIN.format("db2", "a"), 3, PLAIN)
    history, held = replayed(feed, ts(6))
    assert not held
    assert set(history.standing) == {("db2", "a"), ("db2", "b")}
    (segment,) = given(opened(source(feed)), ts(6))
    assert [history.replay(statement) for statement in statements_of(segment)] == [[]] * 5


def test_a_rename_of_a_table_with_other_columns_than_the_file_says_holds_both(feed: Changefeed) -> None:
    """db1.a isn't known; db2.a is, and is another one."""
    feed.ddl("db2.a", ts(1), CREATE_PLAIN.format("db2", "a"), 3, PLAIN)
    feed.ddl("db2.b", ts(2), RENAMES[0], 14, NARROW)
    _, (held,) = replayed(feed, ts(3))
    assert set(held.tables) == {"db2.a", "db2.b"}


def test_a_table_that_is_made_like_one_of_a_database_that_nobody_says_is_held_alone(feed: Changefeed) -> None:
    for database in ("db1", "db2"):
        feed.ddl(f"{database}.a", ts(1), CREATE_PLAIN.format(database, "a"), 3, PLAIN)
    feed.ddl("db2.b", ts(2), "CREATE TABLE db2.b LIKE a", 3, PLAIN)
    _, (held,) = replayed(feed, ts(3))
    assert held.tables == ("db2.b",)


def test_an_exchanged_partition_may_hold_rows_of_other_ones(feed: Changefeed) -> None:
    """TiCDC's text of an EXCHANGE PARTITION ... WITHOUT VALIDATION may lack these words."""
    made = CREATE_PLAIN.format("shop", "p") + " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))"
    feed.ddl("shop.p", ts(1), made, 3, PLAIN)
    feed.ddl("shop.t", ts(2), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.rows("shop.t", Change(ts(3), plain(50, "not of p0")))
    feed.ddl("shop.p", ts(4), "ALTER TABLE `shop`.`p` EXCHANGE PARTITION `p0` WITH TABLE `shop`.`t`", 42)
    history, held = replayed(feed, ts(5))
    assert not held
    moved = history.versions("shop", "p")[-1].moved
    assert moved is not None
    assert not moved.validated
