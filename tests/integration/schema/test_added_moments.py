"""Moments that an added column gives to existing rows, against a real server: its own log, its own SELECT.

In:  ALTER TABLE in sessions of several time zones, on servers whose machine has another.
Out: the server's value, or UnsupportedValue where the log doesn't give the zone's offset.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pymysql
import pytest

from tests.kit.decoding import current_binlog, segment_of_file
from tests.support.captures import begin_capture, bronze_segments, capture_to_end
from tests.support.own_server import own_server_or_skip
from tests.support.servers import FreshDatabase
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.errors import UnsupportedValue
from tidegate.local.server import Server
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server

_ZONES: Final = ("+00:00", "+05:30", "-11:30", "SYSTEM")
_BY_ZONE: Final = (
    "DATETIME DEFAULT CURRENT_TIMESTAMP",
    "DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
    "DATETIME(6) DEFAULT NOW(6)",
    "TIMESTAMP NULL DEFAULT '2020-01-01 00:30:00'",
)
_FORMS: Final = (
    "CURRENT_TIMESTAMP",
    "CURRENT_TIMESTAMP(3)",
    "CURRENT_TIMESTAMP(6)",
    "(CURRENT_TIMESTAMP)",
    "(CURRENT_TIMESTAMP())",
    "(CURRENT_TIMESTAMP(0))",
    "(NOW())",
    "(LOCALTIMESTAMP)",
    "(CURRENT_TIMESTAMP(3))",
    "(CURRENT_TIMESTAMP(6))",
    "(CURRENT_TIMESTAMP + INTERVAL 1 DAY)",
)
_A_SECOND: Final = 1.1  # files' and servers' beginnings are whole seconds
_ANYWHERE: Final = ("TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP", "DATETIME DEFAULT '2020-01-01 00:30:00'")


@pytest.mark.parametrize("algorithm", ["DEFAULT", "COPY"])
def test_a_moment_is_the_servers_in_each_zone_whose_offset_the_log_gives(
    any_server: Server, fresh_database: FreshDatabase, algorithm: str
) -> None:
    database = fresh_database(any_server)
    any_server.query("FLUSH BINARY LOGS")
    log = current_binlog(any_server)
    added = list(product(_ZONES, (*_BY_ZONE, *_ANYWHERE)))
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        if any_server.flavour == "mariadb":  # then the end of an ALTER is logged apart from its start
            cursor.execute(f"SET binlog_alter_two_phase = {'ON' if algorithm == 'COPY' else 'OFF'}")
        cursor.execute("CREATE TABLE t (id INT)")
        cursor.execute("INSERT INTO t VALUES (1)")
        for at, (zone, definition) in enumerate(added):
            cursor.execute(f"SET time_zone = '{zone}'")
            cursor.execute(f"ALTER TABLE t ADD c{at} {definition}, ALGORITHM={algorithm}")
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {', '.join(f'c{at}' for at in range(len(added)))} FROM t")
        truth = dict(zip(added, cursor.fetchone(), strict=True))
    known = dict(_known(ddl_statements(segment_of_file(log.read_bytes())), database))
    ours = {what: known[f"c{at}"] for at, what in enumerate(added) if f"c{at}" in known}
    assert set(added) - set(ours) == {("SYSTEM", definition) for definition in _BY_ZONE}
    assert ours == {what: truth[what] for what in ours}


def test_a_moment_of_other_digits_than_its_column_is_the_servers_or_not_known(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database, truth = fresh_database(any_server), dict[str, Any]()
    any_server.query("FLUSH BINARY LOGS")
    log = current_binlog(any_server)
    added = [f"{kind} NULL DEFAULT {form}" for kind in ("DATETIME", "DATETIME(3)", "TIMESTAMP(6)") for form in _FORMS]
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("CREATE TABLE t (id INT)")
        cursor.execute("INSERT INTO t VALUES (1)")
        for at, definition in enumerate(added):
            try:  # by the other column the log has the microseconds
                cursor.execute(f"ALTER TABLE t ADD with{at} DATETIME(6) DEFAULT NOW(6), ADD c{at} {definition}")
            except pymysql.Error:  # MySQL has one number of digits for both, outside of parentheses
                continue
            cursor.execute(f"SELECT c{at} FROM t")
            truth[f"c{at}"] = cursor.fetchone()[0]
    known = dict(_known(ddl_statements(segment_of_file(log.read_bytes())), database))
    assert {name: truth[name] for name in known} == known
    wanted = [f"DATETIME NULL DEFAULT {form}" for form in ("CURRENT_TIMESTAMP", "(NOW())", "(LOCALTIMESTAMP)")]
    wanted += ["DATETIME(3) NULL DEFAULT CURRENT_TIMESTAMP(3)"]
    if any_server.flavour == "mariadb":  # all digits of the column are meant
        forms = [form for form in _FORMS if "INTERVAL" not in form]
        wanted += [f"{kind} NULL DEFAULT {form}" for kind in ("DATETIME(3)", "TIMESTAMP(6)") for form in forms]
    assert {f"c{added.index(definition)}" for definition in wanted} <= known.keys()


@pytest.mark.parametrize("then", ["SET DEFAULT '2020-01-01'", "SET DEFAULT (NOW(1))", "DROP DEFAULT"])
def test_mariadb_keeps_the_moment_of_a_column_whatever_the_same_statement_sets(
    mariadb: Server, fresh_database: FreshDatabase, then: str
) -> None:
    database = fresh_database(mariadb)
    mariadb.query("FLUSH BINARY LOGS")
    log = current_binlog(mariadb)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("CREATE TABLE t (id INT)")
        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.execute(f"ALTER TABLE t ADD c DATETIME(3) DEFAULT NOW(3), ALTER c {then}")
        cursor.execute("SELECT c FROM t")
        truth = cursor.fetchone()[0]
    assert dict(_known(ddl_statements(segment_of_file(log.read_bytes())), database)) == {"c": truth}


@pytest.mark.parametrize("machine", ["UTC", "UTC-3"])  # POSIX: called UTC, and three hours ahead of it
@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_capture_says_where_a_servers_own_zone_is_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str, machine: str
) -> None:
    monkeypatch.setenv("TZ", machine)
    lake = tmp_path / "lake"
    with own_server_or_skip(flavour, tmp_path / "server") as server:
        assert server.query("SELECT @@system_time_zone")[0][0] == "UTC"
        time.sleep(_A_SECOND)
        server.query("FLUSH BINARY LOGS")
        server.query("CREATE DATABASE d")
        begin_capture(server, lake)
        server.query("CREATE TABLE t (id INT)", database="d")
        server.query("INSERT INTO t VALUES (1)", database="d")
        for at, definition in enumerate(_BY_ZONE):
            server.query(f"ALTER TABLE t ADD c{at} {definition}", database="d")
        capture_to_end(server, lake)
        with server.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = IF(%s = 'UTC', '+00:00', '+03:00')", (machine,))
            cursor.execute("SELECT * FROM t")
            truth = {f"c{at}": value for at, value in enumerate(cursor.fetchone()[1:])}
    statements = [statement for segment in bronze_segments(lake) for statement in ddl_statements(segment)]
    assert dict(_known(statements, "d")) == (truth if machine == "UTC" else {})


def _known(statements: list[DdlStatement], database: str) -> Iterator[tuple[str, Any]]:
    """Each added column whose value is known, without a zone, in UTC."""
    history = SchemaHistory("one")
    for statement in statements:
        for version in history.replay(statement):
            if (version.database, version.table) != (database, "t") or version.columns[-1].name == "id":
                continue
            column = version.columns[-1]
            try:
                value = pa.scalar(existing_row_value(column, statement.ran), canonical(column).arrow).as_py()
            except UnsupportedValue:
                continue
            yield column.name, value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
