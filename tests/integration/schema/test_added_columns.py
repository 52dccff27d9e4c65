"""existing_row_value against what a real server puts into the rows that are there when a column is added."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from tests.support.servers import FreshDatabase
from tidegate.errors import UnsupportedValue
from tidegate.local.server import Server
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.ddl.statement import DdlStatement, StatementTime
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server

# What is added, and how to SELECT it so that PyMySQL gives what pa.scalar(...).as_py() gives.
ADDED = [
    ("INT", "c"),
    ("INT NOT NULL", "c"),
    ("INT NOT NULL DEFAULT -5", "c"),
    ("INT DEFAULT '7'", "c"),
    ("INT DEFAULT TRUE", "c"),
    ("BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615", "CAST(c AS DECIMAL(20,0))"),
    ("BIGINT UNSIGNED NOT NULL", "CAST(c AS DECIMAL(20,0))"),
    ("DECIMAL(10,3) NOT NULL", "c"),
    ("DECIMAL(10,3) DEFAULT 1.5", "c"),
    ("DECIMAL(50,2) NOT NULL DEFAULT 12", "CAST(c AS CHAR)"),
    ("DECIMAL(50,2) NOT NULL", "CAST(c AS CHAR)"),
    ("FLOAT DEFAULT 0.1", "c + 0e0"),
    ("FLOAT(10,2) DEFAULT 1.1", "c + 0e0"),
    ("DOUBLE NOT NULL", "c"),
    ("DOUBLE DEFAULT 1e-7", "c"),
    ("BIT(1) DEFAULT b'1'", "c = 1"),
    ("BIT(12) NOT NULL DEFAULT b'101'", "c"),
    ("BIT(12) NOT NULL", "c"),
    ("DATE DEFAULT '2020-02-29'", "c"),
    ("DATETIME(3) DEFAULT '2020-02-29 01:02:03.004'", "c"),
    ("TIME(2) NOT NULL", "CAST(c AS CHAR)"),
    ("TIME DEFAULT '-100:00:01'", "CAST(c AS CHAR)"),
    ("YEAR NOT NULL DEFAULT 1999", "c"),
    ("YEAR NOT NULL", "c"),
    ("VARCHAR(9) NOT NULL", "c"),
    ("VARCHAR(9) DEFAULT 'it''s ü'", "c"),
    ("VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ü  '", "c"),
    ("CHAR(9) DEFAULT 'a  '", "c"),
    ("TEXT NOT NULL", "c"),
    ("ENUM('x','y') NOT NULL", "c"),
    ("ENUM('x','Y') DEFAULT 'y'", "c"),
    ("SET('a','b','c') DEFAULT 'c,a'", "c"),
    ("SET('a','b') NOT NULL", "c"),
    ("BINARY(3) NOT NULL", "c"),
    ("BINARY(3) DEFAULT 'a'", "c"),
    ("VARBINARY(9) DEFAULT 0x00FF", "c"),
    ("BLOB NOT NULL", "c"),
    ("JSON", "c"),
    ("JSON NOT NULL", "c"),
]


# Not every server takes each of them. NAME(numbers) is a type's own, without a comma.
OTHERWISE = """
VARCHAR(9) DEFAULT 1e3 | VARCHAR(9) DEFAULT -0 | VARCHAR(9) DEFAULT .5 | VARCHAR(9) DEFAULT 00012
TEXT DEFAULT 1e3 | VARCHAR(9) DEFAULT 5. | VARCHAR(9) DEFAULT 1.50e0 | VARCHAR(9) DEFAULT -0.0
CHAR(9) DEFAULT 012 | CHAR(9) DEFAULT 1.50 | VARCHAR(40) DEFAULT 1e20
VARCHAR(40) DEFAULT 1.5e-20 | VARCHAR(40) DEFAULT -00.50 | VARCHAR(40) DEFAULT 12345678e10
VARCHAR(9) DEFAULT (1e3) | VARCHAR(9) DEFAULT -1e0 | VARCHAR(40) DEFAULT 1e15
VARCHAR(40) DEFAULT 1e14 | VARBINARY(9) DEFAULT 1e3 | VARBINARY(9) DEFAULT '0xff'
BINARY(4) DEFAULT 0012 | VARCHAR(40) DEFAULT 1e-5 | VARCHAR(9) DEFAULT '00012'
VARCHAR(9) DEFAULT '1e3' | VARCHAR(3) DEFAULT 'abc   ' | VARCHAR(40) DEFAULT 0.00000001
VARCHAR(40) DEFAULT -123e-17 | VARCHAR(40) DEFAULT 1e-15 | VARCHAR(40) DEFAULT 0e0
VARCHAR(40) DEFAULT 1.1e14 | VARCHAR(30) DEFAULT DATE'2024-2-3' | VARCHAR(30) DEFAULT TIME'1:2:3'
VARCHAR(30) DEFAULT TIMESTAMP'2024-2-3 4:5:6.7' | INT DEFAULT 2.5e0 | INT DEFAULT 3.5e0
INT DEFAULT 25e-1 | INT DEFAULT 2.5 | INT DEFAULT -2.5 | INT DEFAULT '2.5'
BIGINT DEFAULT 9007199254740993e0 | BIGINT DEFAULT '9007199254740993'
DECIMAL(20) DEFAULT 9007199254740993e0 | DECIMAL(5,2) DEFAULT 1.005e0
DECIMAL(5,2) DEFAULT '1.005e0' | DECIMAL(5,2) DEFAULT 1.005 | TINYINT DEFAULT -1.5e0
BIT(8) DEFAULT '1' | BIT(8) DEFAULT 1.5 | BIT(8) DEFAULT 1 | BIT(16) DEFAULT 'a1'
BIT(8) DEFAULT 25e-1 | BIT(8) DEFAULT ('1') | BIT(8) DEFAULT b'' | BIT(8) DEFAULT TRUE
YEAR DEFAULT '0' | YEAR DEFAULT '00' | YEAR DEFAULT '000' | YEAR DEFAULT '0000'
YEAR DEFAULT ' 0' | YEAR DEFAULT 0 | YEAR DEFAULT 00 | YEAR DEFAULT '70' | YEAR DEFAULT 69
YEAR DEFAULT ('0') | YEAR DEFAULT FALSE | YEAR DEFAULT '0 ' | DOUBLE(7,3) DEFAULT 1.23456
DOUBLE(10,2) DEFAULT 2.675 | DOUBLE(10,2) DEFAULT -2.675 | DOUBLE(10,0) DEFAULT 2.5
FLOAT(5,1) DEFAULT 0.25 | FLOAT(10,2) DEFAULT 123456.785 | DOUBLE(10,1) DEFAULT '0.25'
FLOAT(7,3) DEFAULT -1.23456 | ENUM('X','x') COLLATE utf8mb4_bin DEFAULT 'x'
ENUM('ä','Ä','a') COLLATE utf8mb4_bin DEFAULT 'Ä' | ENUM('b','1') DEFAULT 1
ENUM('2','1') DEFAULT '2' | ENUM('2','1') DEFAULT 1 | SET('a','b') DEFAULT 3
SET('A','a','b') COLLATE utf8mb4_bin DEFAULT 'b,a' | ENUM('a','ä') DEFAULT 'ä'
ENUM('früh') DEFAULT 'FRÜH' | ENUM('a','ä') COLLATE latin1_swedish_ci DEFAULT 'ä'
ENUM('a','b') DEFAULT 'ä' | ENUM('ss','x') DEFAULT 'ß' | DATE DEFAULT '2024-01-01 23:59:59'
DATE DEFAULT '2024-01-01 23:59:59.9999999' | DATE DEFAULT '2024-01-01 1:2:3.9'
VARCHAR(9) DEFAULT _latin1'a' | VARCHAR(9) DEFAULT N'é' | TEXT DEFAULT _binary'é'
VARCHAR(9) DEFAULT -0e0 | CHAR(9) DEFAULT -0e0 | BLOB DEFAULT -0e0 | BINARY(4) DEFAULT 1e-3
CHAR(4) DEFAULT 1e-3 | VARCHAR(4) DEFAULT 1e-20 | VARCHAR(9) DEFAULT '0xff' | TEXT DEFAULT '0b1'
VARCHAR(9) CHARACTER SET ascii DEFAULT 0xFF | DECIMAL(6,2) DEFAULT '0x41' | DECIMAL(50,2) DEFAULT '0x41'
DECIMAL(50,3) DEFAULT -0.0 | DECIMAL(50,3) DEFAULT -0.0001 | BIT(8) DEFAULT 1.5e0 | BIT(33) DEFAULT 15e-1
BIT(1) DEFAULT 0.10 | BIT(1) DEFAULT 0.5 | YEAR DEFAULT 007 | YEAR DEFAULT '007' | YEAR DEFAULT '0007'
YEAR DEFAULT 19995e-1 | YEAR DEFAULT 000 | TIME(2) DEFAULT '-00:00:00' | TIME DEFAULT '-00:00:00.0'
TEXT DEFAULT '' | TEXT NOT NULL DEFAULT '' | BLOB DEFAULT '' | TINYTEXT DEFAULT ('')
VARCHAR(30) DEFAULT DATE'24-2-3' | VARBINARY(9) DEFAULT TIME'4:5' | VARCHAR(30) DEFAULT TIME'4:5'
TIME DEFAULT 0 | TIME(2) DEFAULT '0' | TIME(3) NOT NULL DEFAULT 000 | TIME DEFAULT 12 | TIME DEFAULT -0
UUID NOT NULL | INET6 NOT NULL | INET4 NOT NULL | TIME DEFAULT 0e0
VARCHAR(30) DEFAULT {d '2024-2-3'} | DATETIME DEFAULT {ts '2024-02-03 04:05:06'} | DATE DEFAULT {d '24-2-3'}
"""
KNOWN_OF_THEM_AT_LEAST = 85

NOW = ["TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3)", "TIMESTAMP NOT NULL DEFAULT NOW()"]
RAN_US = 1_600_000_000_987_654


def test_existing_rows_get_what_the_server_gives_them(any_server: Server, fresh_database: FreshDatabase) -> None:
    found = _both(any_server, fresh_database(any_server), ADDED)
    ours = {definition: (value, str(value)) for definition, (value, _) in found.items()}
    truth = {definition: (value, str(value)) for definition, (_, value) in found.items()}
    assert ours == truth


def test_a_literal_is_what_its_type_makes_of_it(any_server: Server, fresh_database: FreshDatabase) -> None:
    """A number isn't the string of the same characters. What isn't known waits for a snapshot."""
    database, wrong, known = fresh_database(any_server), [], 0
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version, history = str(cursor.fetchone()[0]), SchemaHistory("s")
        cursor.execute("SET sql_mode = ''")
        written = [one for line in OTHERWISE.strip().splitlines() for one in line.split(" | ")]
        for ts, definition in enumerate(written, start=1):
            made = f"CREATE TABLE t{ts} (a INT) CHARSET utf8mb4"
            added = f"ALTER TABLE t{ts} ADD c {definition}"
            cursor.execute(made)
            cursor.execute(f"INSERT INTO t{ts} VALUES (1)")
            try:
                cursor.execute(added)
            except pymysql.err.MySQLError:
                continue
            for at, sql in enumerate((made, added), start=2 * ts):
                history.replay(DdlStatement(sql, database, 0, at, "b.1", at, 0, "utf8mb4", version))
            is_real = definition.startswith(("DOUBLE", "FLOAT"))
            cursor.execute(f"SELECT CAST(c AS CHAR), {'c + 0e0' if is_real else 'c'} FROM t{ts}")
            text, truth = cursor.fetchone()
            column = history.versions(database, f"t{ts}")[-1].columns[-1]
            try:
                value = pa.scalar(existing_row_value(column), canonical(column).arrow).as_py()
            except UnsupportedValue:
                continue
            known += 1
            value = bytes([value]) if isinstance(value, bool) else value
            if value != truth and str(value) != text:
                wrong.append((definition, value, truth))
    assert not wrong
    assert known >= KNOWN_OF_THEM_AT_LEAST


def test_current_timestamp_is_when_the_statement_ran(any_server: Server, fresh_database: FreshDatabase) -> None:
    found = _both(any_server, fresh_database(any_server), [(definition, "c") for definition in NOW], RAN_US)
    for value, truth in found.values():
        assert value == truth.replace(tzinfo=dt.UTC)


def _both(server: Server, database: str, added: list[tuple[str, str]], ran_us: int = 0) -> dict[str, tuple[Any, Any]]:
    """Definition -> (our value, through Arrow; the server's own)."""
    found: dict[str, tuple[Any, Any]] = {}
    history = SchemaHistory("s")
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        version = str(cursor.fetchone()[0])
        cursor.execute("SET SESSION time_zone = '+00:00'")
        if ran_us:
            cursor.execute("SET SESSION timestamp = %s", (Decimal(ran_us) / 1_000_000,))

        def run(sql: str, ts: int) -> None:
            cursor.execute(sql)
            history.replay(DdlStatement(sql, database, 1 << 21, ts, "b.1", ts, ran_us, "utf8mb4", version))

        run("CREATE TABLE t (a INT)", 1)
        cursor.execute("INSERT INTO t VALUES (1)")
        for ts, (definition, select) in enumerate(added, start=2):
            run(f"ALTER TABLE t ADD c{ts} {definition}", ts)
            cursor.execute(f"SELECT {select} FROM (SELECT c{ts} AS c FROM t) x")
            truth = cursor.fetchone()[0]
            column = history.versions(database, "t")[-1].columns[-1]
            ran = StatementTime(ran_us) if ran_us else None
            value = pa.scalar(existing_row_value(column, ran), canonical(column).arrow).as_py()
            found[definition] = (int(value) if isinstance(value, bool) else value, truth)
    return found


def test_a_zero_date_is_null(mariadb: Server, fresh_database: FreshDatabase) -> None:
    """PyMySQL shows it as text; silver has null."""
    mode = mariadb.query("SELECT @@GLOBAL.sql_mode")[0][0]
    assert "NO_ZERO_DATE" not in mode
    zeros = {"DATE NOT NULL": "", "DATE DEFAULT 0": "", "DATETIME(3) NOT NULL DEFAULT 0": " 00:00:00.000"}
    zeros |= {"TIMESTAMP NOT NULL DEFAULT 0": " 00:00:00"}
    found = _both(mariadb, fresh_database(mariadb), [(definition, "CAST(c AS CHAR)") for definition in zeros])
    assert found == {definition: (None, f"0000-00-00{clock}") for definition, clock in zeros.items()}


@pytest.mark.parametrize(
    "definition", ["DATETIME DEFAULT CURRENT_TIMESTAMP", "TIMESTAMP NULL DEFAULT '2020-01-01 00:00:00'"]
)
def test_what_depends_on_the_sessions_time_zone_is_not_guessed(
    mariadb: Server, fresh_database: FreshDatabase, definition: str
) -> None:
    with pytest.raises(UnsupportedValue, match="added column c"):
        _both(mariadb, fresh_database(mariadb), [(definition, "c")], RAN_US)


# What information_schema shows of them may be less than there is.
SHOWN = {
    "BIT(12) DEFAULT b'101'": b"\x00\x05",
    "VARBINARY(8) DEFAULT X'00FF'": None,
    "VARBINARY(8) DEFAULT X'0041'": None,
    "BINARY(4) DEFAULT X'FE'": None,
    "VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'é\U0001f600'": None,
    "VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'é漢'": "é漢",
    "ENUM('a','é') DEFAULT 'é'": "é",
}


def test_a_default_of_the_baseline_is_the_servers_or_says_that_it_is_not_known(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    """Rows that are logged without the column have it: a '?' for what isn't shown would be a wrong value."""
    database = fresh_database(any_server)
    columns = ", ".join(f"c{at} {text}" for at, text in enumerate(SHOWN))
    any_server.query(f"CREATE TABLE t ({columns})", database=database)
    with any_server.connect(database) as connection:
        found = read_schema(connection, "s", lambda name, _: name == database, Position.of("b.1", 4))
    (version,) = (version for version in found if version.table)
    for column, (text, expected) in zip(version.columns, SHOWN.items(), strict=True):
        try:
            value = existing_row_value(column)
        except UnsupportedValue:
            assert expected is None, text
            continue
        exact = {"VARBINARY(8) DEFAULT X'0041'": b"\0A"}  # which MariaDB does show
        assert value == (exact.get(text) if expected is None else expected), text
