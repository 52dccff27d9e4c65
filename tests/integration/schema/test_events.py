"""What QUERY events of real servers say beside the statement, and the history that follows from it."""

from __future__ import annotations

import pytest

from tests.kit.decoding import current_binlog
from tests.support.servers import FreshDatabase
from tidegate.binlog.format.events import EventType
from tidegate.binlog.format.query import parse_query
from tidegate.local.server import Server
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server


def replayed(server: Server, statements: list[str], database: str) -> SchemaHistory:
    """A history of what these statements put into the binlog, from nothing."""
    server.query("FLUSH BINARY LOGS")
    with server.connect(database) as connection, connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
    content, at = current_binlog(server).read_bytes(), 4
    history = SchemaHistory("one")
    while at < len(content):
        size = int.from_bytes(content[at + 9 : at + 13], "little")
        if content[at + 4] == EventType.QUERY:
            query = parse_query(content[at : at + size], 4)
            if query.sql not in ("BEGIN", "COMMIT"):
                history.replay(
                    DdlStatement(
                        query.sql, query.database, query.sql_mode, at, "b.1", at, query.timestamp_us, query.charset,
                        version, said=query.said,
                    )
                )  # fmt: skip
        at += size
    return history


def test_the_history_is_the_servers_where_settings_and_not_the_text_decide(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    other = f"{database}_other"
    any_server.query("CREATE TABLE old (id INT PRIMARY KEY)", database=database)
    any_server.query("INSERT INTO old VALUES (1)", database=database)
    done = [
        "CREATE TABLE IF NOT EXISTS old (id INT PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS fresh (id INT PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS alike LIKE fresh",
        "CREATE TABLE IF NOT EXISTS taken AS SELECT 1 AS a",
        "SET explicit_defaults_for_timestamp = OFF",
        "ALTER TABLE fresh ADD a TIMESTAMP",
        "SET explicit_defaults_for_timestamp = ON",
        "ALTER TABLE alike ADD a TIMESTAMP",
        "SET collation_server = latin1_swedish_ci",
        f"CREATE DATABASE {other}",
        f"CREATE TABLE {other}.t (a CHAR(3))",
        "CREATE PROCEDURE refill() BEGIN CREATE TEMPORARY TABLE x AS SELECT 2 AS a; TRUNCATE TABLE taken; END",
        "CALL refill()",
    ]
    try:
        history = replayed(any_server, done, database)
        shown = any_server.query(
            "SELECT table_name, is_nullable, column_default FROM information_schema.columns"
            " WHERE table_schema = %s AND column_name = 'a' AND table_name IN ('fresh', 'alike')",
            (database,),
        )
    finally:
        any_server.query(f"DROP DATABASE IF EXISTS {other}")
    last = {name[1]: history.versions(*name)[-1] for name in history.tables()}
    assert last.keys() - {"old"} == {"fresh", "alike", "taken", "t"}
    if "old" in last:  # MySQL logs it all the same
        assert last.pop("old").status is VersionStatus.UNPROVEN
    assert {version.status for version in last.values()} == {VersionStatus.ACTIVE}
    for table, nullable, default in shown:
        column = last[str(table)].columns[1]
        assert column.nullable == (str(nullable) == "YES")
        assert bool(column.default) == str(default).lower().startswith("current_timestamp")
    assert last["t"].columns[0].charset == "latin1"
    assert last["taken"].kind == "truncate"


def test_where_a_column_comes_in_a_table_whose_key_mysql_made(mysql9: Server, fresh_database: FreshDatabase) -> None:
    """FIRST is behind such a key, for as long as nobody sees it."""
    database = fresh_database(mysql9)
    first = "ADD c BIGINT UNSIGNED NOT NULL FIRST"
    done = [
        "SET sql_generate_invisible_primary_key = ON",
        "CREATE TABLE added (a INT, b INT)",
        f"ALTER TABLE added {first}",
        "CREATE TABLE moved (a INT, b BIGINT UNSIGNED)",
        "ALTER TABLE moved MODIFY b BIGINT UNSIGNED FIRST",
        "CREATE TABLE shown (a INT)",
        f"ALTER TABLE shown ALTER COLUMN my_row_id SET VISIBLE, {first}",
        "ALTER TABLE shown ADD d INT FIRST",
        "CREATE TABLE lost (a INT NOT NULL)",
        f"ALTER TABLE lost DROP PRIMARY KEY, DROP my_row_id, ADD PRIMARY KEY (a), {first}",
        "CREATE TABLE own (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, a INT)",
        f"ALTER TABLE own {first}",
    ]
    history = replayed(mysql9, done, database)
    for _, table in history.tables():
        shown = mysql9.query(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
            " ORDER BY ordinal_position",
            (database, table),
        )
        assert [column.name for column in history.versions(database, table)[-1].columns] == [n for (n,) in shown]
