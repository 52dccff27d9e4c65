"""Tables with odd keys and odd rows are read in chunks while they change, and equal the server's own SELECT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading, changing, states
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 260  # some chunks of 100

# The key's columns, and row n's literals of them.
KEYS = {
    "big": ("k BIGINT UNSIGNED", lambda n: str(2**64 - 1 - n * n * 1000)),
    "negative": ("k DECIMAL(30,10)", lambda n: f"{130 - n}.{n:010d}"),
    "bits": ("k BIT(10)", lambda n: f"b'{n * 3:b}'"),
    "years": ("k YEAR, n INT", lambda n: f"{(0, 1901, 2155, 1999)[n % 4]}, {n}"),
    "times": ("k TIME(3)", lambda n: f"'{'-' * (n % 2)}{n * 3}:59:59.{n:03d}'"),
    "dates": ("k DATE, n INT", lambda n: f"'{1000 + n * 34}-02-28', {n % 3}"),
    "moments": ("k DATETIME(6)", lambda n: f"'2024-10-27 02:{n % 60:02d}:00.{n:06d}'"),
    "stamps": ("k TIMESTAMP(2)", lambda n: f"FROM_UNIXTIME({1_700_000_000 + n * 1000} + 0.{n % 100:02d})"),
    "floats": ("k FLOAT", lambda n: f"{(n - 100) / 7:.4f}"),
    "doubles": ("k DOUBLE", lambda n: f"{(n - 100) / 7!r}"),
    "zeros": ("k BINARY(4)", lambda n: f"x'{n:04x}0000'"),
    "bytes": ("k VARBINARY(6)", lambda n: f"x'{n % 130:02x}{'00' * (n // 130)}'"),
    "cased": ("k VARCHAR(20) COLLATE utf8mb4_general_ci", lambda n: f"'{'ÄaßZ'[n % 4]} {n}'"),
    "exact": ("k VARCHAR(20) COLLATE utf8mb4_bin", lambda n: f"'{'aAäÄ'[n % 4]}{n // 4}'"),
    "padded": ("k CHAR(12) CHARACTER SET latin1", lambda n: f"'{'é' * (n % 3)} {n}   '"),
    "quoted": ("k VARCHAR(30)", lambda n: f"'\\'\\\\\"\\n%_{n}'"),
    "chosen": ("k ENUM('b','a','é','zz'), n SMALLINT", lambda n: f"'{('b', 'a', 'é', 'zz')[n % 4]}', {-n}"),
    "sets": ("k SET('x','y','z','w','v','u','t','s','r')", str),
    "pair": ("k VARCHAR(3), n INT", lambda n: f"'{chr(97 + n % 3)}', {n // 3 - 40}"),
}


def filled(server: Server, database: str) -> None:
    for name, (columns, literals) in KEYS.items():
        names = [column.split()[0] for column in columns.split(", ")]
        parts = ", ".join(f"{column} NOT NULL" for column in columns.split(", "))
        key = f"PRIMARY KEY ({', '.join(names)})"
        server.query(f"CREATE TABLE {database}.{name} ({parts}, v INT, {key})")
        rows = ", ".join(f"({literals(n)}, {n})" for n in range(ROWS))
        server.query(f"INSERT INTO {database}.{name} VALUES {rows}")
    server.query(f"CREATE TABLE {database}.holes (k INT, n INT, v INT, UNIQUE (k, n))")  # no key: NULLs are many
    holes = ", ".join(f"({n % 5 or 'NULL'}, {n if n % 3 else 'NULL'}, {n})" for n in range(ROWS))
    server.query(f"INSERT INTO {database}.holes VALUES {holes}")
    server.query(f"CREATE TABLE {database}.one (k INT PRIMARY KEY, v INT)")
    server.query(f"INSERT INTO {database}.one VALUES (-2147483648, 1)")
    server.query(f"CREATE TABLE {database}.none (k INT PRIMARY KEY, v INT)")
    server.query(f"CREATE TABLE {database}.huge (k INT PRIMARY KEY, v INT, b LONGBLOB)")
    server.query("SET GLOBAL max_allowed_packet = 67108864")
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO huge VALUES (1, 1, REPEAT('xyz', 5700000)), (2, 2, ''), (3, 3, NULL)")
        connection.commit()


def changes(number: int) -> Iterator[str]:
    for name in [*KEYS, "holes"]:
        yield f"UPDATE {name} SET v = v + 1000 WHERE v % 50 = {number % 50}"
        yield f"DELETE FROM {name} WHERE v % 1000 = {number * 7 % ROWS}"


@pytest.mark.timeout(1800)
def test_odd_keys_and_rows_are_read_in_chunks_while_they_change(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    packet = any_server.query("SELECT @@global.max_allowed_packet")[0][0]
    filled(any_server, database)
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    any_server.query(f"GRANT LOCK TABLES ON *.* TO '{any_server.user}'@'%'")
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text + "snapshot: {chunk_rows: 100, parallel: 2}\n")
    road.pipeline = config.load(road.file)
    try:
        road.capture()
        with changing(any_server, database, changes, 0.05):
            app = Reading(road, spark).run()
        road.capture()
        road.apply(spark)
        held = {name: state.reason for name, state in app.states.items() if state.state != "active"}
        assert not held
        assert set(states(app)) == {*KEYS, "holes", "one", "huge"}
        found = road.assert_equal()
        assert found.keys() == {*KEYS, "holes", "one", "none", "huge"}
        assert (found["one"], found["none"], found["huge"]) == (1, 0, 3)
    finally:
        any_server.query(f"SET GLOBAL max_allowed_packet = {packet}")
