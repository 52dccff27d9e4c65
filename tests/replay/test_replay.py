"""The replay of foreign test files: how it reads them, a small run, and that its comparator can see."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.replay.__main__ import arguments, replay
from tests.replay.compare import compare
from tests.replay.player import Player
from tests.replay.scripts import chosen, install, statements, text_of
from tests.support.own_server import own_server
from tests.support.seeds import many, seed
from tests.support.servers import ROOT
from tidegate.binlog.statements.judged import is_dml
from tidegate.local import mariadb
from tidegate.schema.ddl.reader import read
from tidegate.schema.ddl.tree import CreateView, DropViews, Ignored
from tidegate.schema.model.server import ServerVersion


def test_a_file_is_cut_into_what_a_server_understands() -> None:
    text = b"""
--source include/have_innodb.inc
# a comment; not a statement
let $x= 1;
create table t1 (a char(10) default ';'); insert into t1 values ('it''s; \\'one\\'');
--error ER_DUP_ENTRY
insert into t1
  values ("two;");
eval insert into t1 values ($x);
delimiter //;
create procedure p() begin select 1; select 2; end//
delimiter ;//
--perl
insert into nothing;
EOF
if ($x) {
delete from t1;
}
send update t1 set a = 1;
"""
    assert [statement.split(b"\n")[0] for statement in statements(text)] == [
        b"create table t1 (a char(10) default ';')",
        b"insert into t1 values ('it''s; \\'one\\'')",
        b"insert into t1",
        b"create procedure p() begin select 1; select 2; end",
        b"delete from t1",
        b"update t1 set a = 1",
    ]


@pytest.mark.server
def test_a_server_that_crashes_under_a_file_is_started_again_for_the_next_one(tmp_path: Path) -> None:
    def crashing() -> Iterator[bytes]:
        yield b"CREATE TABLE t (a INT)"
        os.kill(server.pid, signal.SIGKILL)  # whoever waits for an answer knows of it before it has ended
        yield b"CREATE TABLE u (a INT)"

    with own_server("mariadb", tmp_path / "server") as server:
        player = Player(server, 1)
        for number in range(3):
            player.play(f"crashed_{number}", crashing())
        player.play("after", [b"CREATE TABLE t (a INT)"])
        assert (player.played.lost_connections, player.played.accepted) == (3, 4)


@pytest.mark.server  # the files are downloaded
def test_no_statement_about_views_triggers_routines_events_or_accounts_holds_a_table() -> None:
    tree = install(ROOT)
    words = rb"view|trigger|procedure|function|event|package(?:\s+body)?|user|role|server"
    others = re.compile(
        rb"(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:(?:aggregate|algorithm\s*=\s*\w+|definer\s*=\s*\S+|"
        rb"sql\s+security\s+\w+)\s+)*(?:%b)\b" % words,
        re.IGNORECASE,
    )
    harmless = (Ignored, CreateView, DropViews)
    seen = 0
    for path in chosen(tree, seed(), many(400, 10_000)):
        for statement in statements(text_of(tree, path)):
            if not others.match(statement):
                continue
            seen += 1
            text = statement.decode("latin-1")
            assert not is_dml(text), text
            for version in ("11.4.5-MariaDB", "9.7.0"):
                assert isinstance(read(text, database="d", server=ServerVersion.of(version)), harmless), text
    assert seen > 100


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("more", [[], pytest.param(["--hostile", "--every", "2"], marks=pytest.mark.long)])
def test_a_few_files_are_equal_and_a_difference_is_seen(spark: SparkSession, tmp_path: Path, more: list[str]) -> None:
    given = arguments(["--seed", "1", "--files", "5", *more])
    with mariadb.MariaDB(tmp_path / "server", mariadb.install(ROOT)) as server:
        found = replay(given, server, spark, tmp_path)
        assert {item.outcome for item in found} <= {"equal", "held", "dropped", "empty"}, found
        equal = [item for item in found if item.outcome == "equal" and item.rows]
        database, table = equal[0].table.split(".")
        server.query(f"DELETE FROM `{database}`.`{table}`")
        gone_database, gone = equal[1].table.split(".")
        server.query(f"DROP TABLE `{gone_database}`.`{gone}`")
        now = {item.table: item.outcome for item in compare(server, tmp_path / "lake")}
        assert now[equal[0].table] == "different"
        assert now[equal[1].table] == "ghost"
