"""What a schema file's statement does is compared with the columns that the file says; a database that it doesn't say
is not guessed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.changefeed_writer import CREATE_PLAIN, ID, PLAIN, Changefeed, ts
from tests.unit.changefeed.test_reader import given, opened, source
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segment_kinds import statements_of
from tidegate.tables import SegmentFlag

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
