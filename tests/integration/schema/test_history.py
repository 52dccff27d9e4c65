"""SchemaHistory against what a real server's information_schema says after every statement of a random workload."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pymysql
import pytest

from tests.support.random_ddl import RandomDdl
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.config import OWN_DATABASES, parse
from tidegate.errors import DDLError, SourceUnavailable
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import current_position, read_facts
from tidegate.mysql.start.baseline import baseline_writer, read_baseline, read_schema
from tidegate.position import Position
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.model.columns import IndexKind, TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server

NOWHERE = Position.of("binlog.000001", 4)
STATEMENTS = 220


def _shape(version: TableVersion) -> tuple[object, ...]:
    """What must be the same, without ids: they are this side's own."""
    columns = [(c.name, c.type, c.nullable, c.charset, c.collation, str(c.generated)) for c in version.columns]
    names = {c.id: c.name for c in version.columns}
    # Whether a plain index holds prefixes has no bearing on any key (and MariaDB adds them by itself).
    indexes = {
        (i.name, i.kind, tuple(names.get(p, "") for p in i.parts), i.whole or i.kind is IndexKind.PLAIN)
        for i in version.indexes
    }
    return columns, indexes, version.key_names, version.charset, version.collation


def _statement(sql: str, database: str, ts: int, version: str) -> DdlStatement:
    return DdlStatement(sql, database, 0, ts, "binlog.000001", ts, 0, "utf8mb4", version)


def _live(history: SchemaHistory, ts: int) -> dict[str, TableVersion]:
    found = {}
    for database, table in history.tables():
        version = history.version_at(database, table, ts)
        if version is not None and version.status is not VersionStatus.DROPPED:
            found[table] = version
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_after_each_random_statement_the_history_is_what_information_schema_says(
    any_server: Server, fresh_database: FreshDatabase, seed: int
) -> None:
    database = fresh_database(any_server)
    ddl, accepted, not_read = RandomDdl(seed), 0, 0
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        server_version = str(cursor.fetchone()[0])
        first = read_schema(connection, "s", lambda d, _: d == database, NOWHERE)
        history = SchemaHistory("s", [version.to_row() for version in first])
        history.replay(_statement(f"CREATE DATABASE {database} CHARACTER SET utf8mb4", database, 1, server_version))
        for ts in range(2, 2 + STATEMENTS):
            sql = ddl.statement()
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                continue  # refused: not in any binlog either
            accepted += 1
            try:
                history.replay(_statement(sql, database, ts, server_version))
            except DdlNotRead:
                not_read += 1
            found = {v.table: v for v in read_schema(connection, "s", lambda d, _: d == database, NOWHERE) if v.table}
            known = _live(history, ts)
            held = {table for _, table in history.held}
            assert known.keys() - held == found.keys() - held, f"seed {seed}: {sql}"
            for table in known.keys() - held:
                assert _shape(known[table]) == _shape(found[table]), f"seed {seed}: {sql}"
    assert accepted > STATEMENTS / 5
    assert not_read == 0, "the reader says it doesn't know"
    _assert_ids_are_stable_and_never_used_again(history)


def _assert_ids_are_stable_and_never_used_again(history: SchemaHistory) -> None:
    """An id that left a table's lineage doesn't come back in another column of it."""
    for database, table in history.tables():
        gone: set[int] = set()
        before: set[int] = set()
        for version in history.versions(database, table):
            if version.kind in ("create", "rename"):
                gone, before = set(), set()
            now = {column.id for column in version.columns}
            assert not now & gone
            gone |= before - now
            before = now


def test_a_history_built_from_its_own_rows_goes_on_in_the_same_way(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(mariadb)
    ddl = RandomDdl(7)
    whole = SchemaHistory("s")
    rows: list[dict[str, object]] = []
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for ts in range(1, 150):
            sql = ddl.statement()
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                continue
            statement = _statement(sql, database, ts, "11.4.5-MariaDB")
            again = SchemaHistory("s", rows)
            made = _replayed(whole, statement)
            assert [v.to_row() for v in _replayed(again, statement)] == [v.to_row() for v in made], sql
            rows += [version.to_row() for version in made]
            assert SchemaHistory("s", rows).replay(statement) == [], "replayed twice"


def _replayed(history: SchemaHistory, statement: DdlStatement) -> list[TableVersion]:
    return history.replay(statement)


# --- baseline -----------------------------------------------------------------------------------


def _position(server: Server) -> Position:
    with server.connect() as connection, connection.cursor() as cursor:
        found = current_position(cursor)
    assert found is not None
    return found


def _baseline(server: Server, database: str, position: Position) -> dict[str, TableVersion]:
    with server.connect(user=server.user, password=server.password) as connection:
        versions = read_baseline(connection, "s", lambda d, _: d == database, position)
    return {v.table: v for v in versions if v.table}


def test_a_table_with_rows_needs_a_snapshot_and_an_empty_one_does_not(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    any_server.query("CREATE TABLE full (a INT)", database=database)
    any_server.query("CREATE TABLE bare LIKE full", database=database)
    any_server.query("INSERT INTO full VALUES (1)", database=database)
    found = _baseline(any_server, database, _position(any_server))
    assert {table: v.status for table, v in found.items()} == {
        "full": VersionStatus.NEEDS_SNAPSHOT,
        "bare": VersionStatus.ACTIVE,
    }


def test_a_database_without_a_table_has_its_own_defaults(any_server: Server, fresh_database: FreshDatabase) -> None:
    """Its first table comes later, and a TEXT of it looks like one of any other character set."""
    empty, alike, position = fresh_database(any_server), fresh_database(any_server), _position(any_server)
    ((default,),) = any_server.query("SELECT @@GLOBAL.character_set_server")
    any_server.query(f"ALTER DATABASE {empty} CHARACTER SET latin2")
    any_server.query(f"ALTER DATABASE {alike} CHARACTER SET {default}")
    with any_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
        read = read_baseline(connection, "s", lambda d, _: d in (empty, alike), position)
    history = SchemaHistory("s", [found.to_row() for found in read])
    again = f"CREATE DATABASE IF NOT EXISTS {alike} CHARACTER SET latin5"  # MySQL logs it, and does nothing
    for ts, sql in enumerate((again, f"CREATE TABLE {empty}.t (a TEXT)", f"CREATE TABLE {alike}.t (a TEXT)"), 5):
        history.replay(_statement(sql, "", ts, version))
    assert [history.versions(name, "t")[-1].columns[0].charset for name in (empty, alike)] == ["latin2", default]
    assert not OWN_DATABASES & {found.database for found in read}


def test_partitions_are_read_beside_a_default_that_is_shown_as_bytes(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    """MariaDB's SHOW CREATE TABLE isn't UTF-8 then; capture didn't start."""
    database = fresh_database(any_server)
    columns = "a INT, b VARBINARY(9) DEFAULT X'00FF', c TEXT COMMENT 'é漢'"
    any_server.query(f"CREATE TABLE t ({columns}) PARTITION BY HASH (a) PARTITIONS 2", database=database)
    found = _baseline(any_server, database, _position(any_server))["t"]
    assert found.partitioning is not None
    assert [partition.name for partition in found.partitioning.partitions] == ["p0", "p1"]
    assert found.columns[2].comment == "é漢"


def test_a_ddl_between_the_position_and_the_reading_refuses_the_baseline(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database, other = fresh_database(any_server), fresh_database(any_server)
    any_server.query("CREATE TABLE t (a INT)", database=database)
    position = _position(any_server)
    any_server.query("INSERT INTO t VALUES (1)", database=database)
    any_server.query("CREATE TABLE not_ours (a INT)", database=other)
    any_server.query("CREATE VIEW v AS SELECT 1", database=database)
    assert _baseline(any_server, database, position).keys() == {"t"}
    any_server.query("ALTER TABLE t ADD b INT", database=database)
    with pytest.raises(SourceUnavailable, match=re.escape("ALTER TABLE t ADD b INT")):
        _baseline(any_server, database, position)


def test_a_statement_that_is_compressed_in_the_log_counts_as_well(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(mariadb)
    mariadb.query("CREATE TABLE t (a INT)", database=database)
    position = _position(mariadb)
    mariadb.query("SET GLOBAL log_bin_compress = ON")
    try:
        mariadb.query(f"ALTER TABLE t ADD b INT COMMENT '{'long ' * 100}'", database=database)
    finally:
        mariadb.query("SET GLOBAL log_bin_compress = OFF")
    with pytest.raises(SourceUnavailable, match="ALTER TABLE t ADD b INT"):
        _baseline(mariadb, database, position)


def test_a_table_known_from_nowhere_is_held_and_named(mariadb: Server) -> None:
    history = SchemaHistory("s", keeps=lambda database, _: database == "shop")
    with pytest.raises(DDLError, match=r"`shop\.t` is not known"):
        history.replay(_statement("ALTER TABLE shop.t ADD a INT", "", 5, "11.4.5-MariaDB"))
    assert ("shop", "t") in history.held
    assert history.replay(_statement("ALTER TABLE other.t ADD a INT", "", 6, "11.4.5-MariaDB")) == []


def test_a_baseline_from_which_nothing_was_captured_gives_way_to_the_next(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query("CREATE TABLE t (a INT PRIMARY KEY)", database=database)
    pipeline = parse(
        f"{{pipeline: p, lake: {{path: {tmp_path}}}, sources: {{one: {{conn_id: c, flavour: mariadb}}}},"
        f" tables: {{include: ['{database}.*']}}}}",
        where="test",
    )
    info = ConnectionInfo(mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    with mariadb.connect() as connection:
        facts = read_facts(connection, info)
    assert facts.position is not None
    lake = LakeFiles(str(tmp_path))
    baseline_writer(pipeline, "one", info, lake)(facts, facts.position)
    rows = control.read(lake, tables.SCHEMA_HISTORY).to_pylist()
    # Databases of other tests on this server have their defaults recorded too.
    ours = {(row["database"], row["table"], row["kind"]) for row in rows if row["database"] in ("", database)}
    assert ours == {("", "", "defaults"), (database, "", "defaults"), (database, "t", "baseline")}
    assert {row["kind"] for row in rows if row["database"] not in ("", database)} <= {"defaults"}
    mariadb.query("INSERT INTO t VALUES (1)", database=database)
    mariadb.query("CREATE TABLE u (a INT PRIMARY KEY)", database=database)
    with mariadb.connect() as connection:
        facts = read_facts(connection, info)
    assert facts.position is not None
    baseline_writer(pipeline, "one", info, lake)(facts, facts.position)
    rows = control.read(lake, tables.SCHEMA_HISTORY).to_pylist()
    ids = [json.loads(row["columns"])[0]["id"] for row in rows if row["table"]]
    assert len(ids) == len(set(ids)) == 3
    history = SchemaHistory("one", rows)
    statuses = {name: version.status for name in ("t", "u") if (version := history.version_at(database, name, 1))}
    assert statuses == {"t": VersionStatus.NEEDS_SNAPSHOT, "u": VersionStatus.ACTIVE}
    (version,) = history.replay(_statement("ALTER TABLE t ADD b CHAR(3)", database, 50, facts.version))
    assert [(c.name, c.collation) for c in version.columns] == [("a", ""), ("b", "utf8mb4_general_ci")]
    assert version.key_names == ("a",)
