"""Verify while sessions write to the source and apply goes on: what was planted is found, all of it and nothing else.

What is planted is changed at the source without a word in its log: silver misses rows, has some that are gone, and has
others with old values.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.typed_values import ONLY_MARIADB, ONLY_MYSQL, SAME
from tidegate import tables
from tidegate.lake import control
from tidegate.local.server import Server
from tidegate.repair import verify_and_repair
from tidegate.tables import WATERMARK_DATABASE
from tidegate.tables.snapshot_tables import VERIFICATION
from tidegate.verify.report import Outcome, Report
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]

EACH = 20  # differences of each kind
CHURNED = range(5000, 5200)  # ids that sessions write to
# Of each type another value than its own.
OTHERS = {"DATE": "'1999-12-31'", "TIME": "'01:02:03'", "YEAR": "2001", "POINT": "ST_GeomFromText('POINT(7 7)')"}
# name -> columns of a key over a number n, and a value for each
KEYS = {
    "k_text": ("a VARCHAR(40) COLLATE utf8mb4_general_ci", "CONCAT(CHAR(65 + {n} % 26), 'ß ', {n})"),
    "k_latin": ("a VARCHAR(40) CHARACTER SET latin1", "CONCAT('é', {n})"),
    "k_binary": ("a VARBINARY(20)", "UNHEX(LPAD(HEX({n} * 7919), 12, 'F0'))"),
    "k_decimal": ("a DECIMAL(20,4)", "-{n} / 16"),
    "k_moment": ("a DATETIME(6)", "TIMESTAMPADD(MICROSECOND, {n} * 1000003, '1969-12-31 23:59:00')"),
    "k_enum": ("a ENUM('z','y','x') NOT NULL, b INT", "1 + {n} % 3, {n}"),
    "k_double": ("a DOUBLE", "{n} / 3e0"),
    "k_bit": ("a BIT(20)", "{n} + 5"),
}


class Sessions(threading.Thread):
    """Writes to the churned ids of all tables until it is told to stop; id 5000 of `t` all the time."""

    def __init__(self, server: Server, database: str) -> None:
        super().__init__(daemon=True)
        self._connection, self._random, self._done = server.connect(database), random.Random(11), threading.Event()
        self.transactions = 0

    def run(self) -> None:
        with self._connection.cursor() as cursor:
            while not self._done.wait(0.02):
                n = self._random.choice(CHURNED)
                table = self._random.choice(["t", "t", "bare", *KEYS])
                try:
                    for sql in self._changes(table, n):
                        cursor.execute(sql)
                    self._connection.commit()
                    self.transactions += 1
                except (pymysql.err.IntegrityError, pymysql.err.OperationalError):  # a key that is there; a deadlock
                    self._connection.rollback()

    def _changes(self, table: str, n: int) -> list[str]:
        if table == "t":
            return [
                f"UPDATE t SET n = n + 1 WHERE id IN ({n}, {CHURNED[0]})",
                self._random.choice(
                    [f"DELETE FROM t WHERE id = {n} + 1", f"INSERT IGNORE INTO t (id) VALUES ({n} + 1)"]
                ),
            ]
        if table == "bare":
            return [f"INSERT INTO bare VALUES ({n}, 1.5), ({n}, 1.5)", f"DELETE FROM bare WHERE a = {n - 1} LIMIT 1"]
        key = KEYS[table][1].format(n=n)
        return [f"REPLACE INTO {table} VALUES ({key}, {self._random.randint(0, 3)})"]

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._connection.close()


def stocked(server: Server, database: str) -> list[str]:
    """Tables with rows; the types of t's columns."""
    cases = SAME + (ONLY_MYSQL if server.flavour == "mysql" else ONLY_MARIADB)
    columns = ", ".join(f"c{n} {kind} NULL" for n, (kind, *_) in enumerate(cases))
    last = 3 * EACH + EACH * len(cases)
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, n INT NOT NULL DEFAULT 0, {columns})")
        cursor.execute(f"INSERT INTO t VALUES (0, 0, {', '.join(sql for _, sql, _, _ in cases)})")
        names = ", ".join(f"c{n}" for n in range(len(cases)))
        cursor.execute("CREATE TABLE numbers (n INT PRIMARY KEY)")
        numbers = [*range(1, last + 1), *CHURNED]
        cursor.execute(f"INSERT INTO numbers VALUES {', '.join(f'({n})' for n in numbers)}")
        cursor.execute(f"INSERT INTO t SELECT numbers.n, 0, {names} FROM t JOIN numbers ON true")
        cursor.execute("CREATE TABLE bare (a INT, b DOUBLE)")
        cursor.execute("INSERT INTO bare SELECT n, n / 7e0 FROM numbers WHERE n <= 100")
        for name, (declared, value) in KEYS.items():
            key = ", ".join(part.split()[0] for part in declared.replace("'z','y','x'", "").split(", "))
            cursor.execute(f"CREATE TABLE {name} ({declared}, v INT, PRIMARY KEY ({key}))")
            cursor.execute(f"INSERT INTO {name} SELECT {value.format(n='n')}, 9 FROM numbers WHERE n <= 100")
        connection.commit()
    return [kind for kind, *_ in cases]


def plant(server: Server, database: str, kinds: list[str]) -> None:
    """EACH differences of each kind, and of each type, in ids that nobody writes to."""
    gone = f"BETWEEN 1 AND {EACH}"
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'")
        cursor.execute(f"DELETE FROM t WHERE id {gone}")
        cursor.execute(f"INSERT INTO t (id) SELECT -n FROM numbers WHERE n {gone}")
        for number, kind in enumerate(kinds):
            first = 3 * EACH + EACH * number + 1
            other = next((sql for name, sql in OTHERS.items() if kind.startswith(name)), "NULL")
            other = "NULL" if number % 2 and kind != "DATE" else other  # NULL differs from every value, too
            cursor.execute(f"UPDATE t SET c{number} = {other} WHERE id BETWEEN {first} AND {first + EACH - 1}")
        cursor.execute("DELETE FROM bare WHERE a BETWEEN 1 AND 5")
        cursor.execute("INSERT INTO bare SELECT a, b FROM bare WHERE a BETWEEN 6 AND 10")
        cursor.execute("UPDATE bare SET b = b + 1e-9 WHERE a BETWEEN 11 AND 15")
        for name, (_, value) in KEYS.items():
            for n in range(1, 6):
                cursor.execute(f"DELETE FROM {name} WHERE {_is(name, value, n)}")
            for n in range(6, 11):
                cursor.execute(f"UPDATE {name} SET v = 8 WHERE {_is(name, value, n)}")
            for n in range(2000, 2005):
                cursor.execute(f"INSERT INTO {name} VALUES ({value.format(n=n)}, 9)")
        connection.commit()


def _is(name: str, value: str, n: int) -> str:
    told = value.format(n=n)
    return (
        f"b = {n}"
        if name == "k_enum"
        else f"a = CAST({told} AS DECIMAL(20,4))"
        if name == "k_decimal"
        else f"a = {told}"
    )


def meanwhile(road: Road, spark: SparkSession, work: Callable[[], Report]) -> Report:
    """Run it in a thread, capture and apply until it has ended."""
    found: list[Report | BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        road.capture(seconds=2)  # a window each time costs more than the rows in it
        road.apply(spark)
    (told,) = found
    if isinstance(told, BaseException):
        raise told
    return told


@pytest.mark.timeout(900)
def test_what_was_planted_is_found_and_mended_under_load_and_nothing_else(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    kinds = stocked(any_server, database)
    road.capture()
    road.apply(spark)
    sessions = Sessions(any_server, database)
    sessions.start()
    options = VerifyOptions(timeout_seconds=300, chunk_rows=100, rounds_max=3, record=True)
    connections = {"one": road.info}
    said: list[str] = []

    def mend() -> Report:
        return verify_and_repair(road.pipeline, road.lake, connections, options, repair=True, report=said.append)

    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    try:
        plant(any_server, database, kinds)
        report = meanwhile(road, spark, mend)
    finally:
        sessions.stop()
    assert sessions.transactions > 100
    assert {one.table for one in report.tables if one.different} == {f"{database}.bare"}, said
    assert [line for line in said if "has no key" in line]
    planted = {"t": EACH * (2 + len(kinds)), "bare": 15, "numbers": 0, **dict.fromkeys(KEYS, 15)}
    rows = control.read(road.lake, VERIFICATION).to_pylist()
    first = next(row["verification"] for row in rows if row["outcome"] == "different")
    whole = {row["table"]: row for row in rows if row["verification"] == first and not row["chunk"]}
    assert {name: row["different"] for name, row in whole.items()} == planted
    assert sum(row["seemed"] for row in whole.values()) > sum(planted.values()), "sessions wrote meanwhile"
    assert all(0 < row["verified_through"] <= row["cut_ts"] for row in whole.values())
    assert len({row["key_upto"] for row in rows if row["table"] == "t"}) > len(kinds) / 5
    landed = control.read(road.lake, tables.CHUNKS, columns=["table", "rows"]).to_pylist()
    copied = {name: sum(row["rows"] for row in landed if row["table"] == name) for name in planted}
    assert copied == planted | {"bare": 0}, "rows that didn't differ aren't touched"
    road.capture()
    road.apply(spark)
    report = verify(road.pipeline, connections, road.lake.root, {}, options)
    assert {one.table.split(".")[1] for one in report.tables if one.outcome is not Outcome.EQUAL} == {"bare"}
    if any_server.flavour == "mariadb":  # what it reads is the lake's alone, and knows no flavour
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=said.append) == 0, said
