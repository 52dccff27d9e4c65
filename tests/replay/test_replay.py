"""The replay of foreign test files: how it reads them, a small run, and that its comparator can see."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.replay.__main__ import arguments, replay
from tests.replay.compare import compare
from tests.replay.scripts import statements
from tests.support.servers import ROOT
from tidegate.local import mariadb


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
@pytest.mark.spark
def test_a_few_files_are_equal_and_a_difference_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    given = arguments(["--seed", "1", "--files", "5"])
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
