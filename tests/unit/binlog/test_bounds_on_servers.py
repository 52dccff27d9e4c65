"""Every type at its bounds, on both servers: the log says what SELECT says."""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any

import pytest

from tests.kit.decoding import changed_rows
from tests.support.servers import FreshDatabase
from tests.unit.binlog.on_servers import Kind, assert_same, log_of, written
from tidegate.local.server import Server

pytestmark = pytest.mark.server

Column = tuple[Kind, list[str]]
BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}


def check(server: Server, database: str, columns: list[Column]) -> None:
    """Each column's values, one after the other, and NULL."""
    count = max(len(values) for _, values in columns)
    rows = [[values[n % len(values)] for _, values in columns] for n in range(count)]
    assert_same(server, database, [kind for kind, _ in columns], [*rows, ["NULL"] * len(columns)])


def test_integers(any_server: Server, fresh_database: FreshDatabase) -> None:
    columns: list[Column] = []
    for name, bits in BITS.items():
        half = 1 << (bits - 1)
        columns.append((Kind(name), [str(n) for n in (-half, half - 1, 0, -1, 1)]))
        shown = "CAST({} AS DECIMAL(20))" if name == "BIGINT" else "{}"
        columns.append((Kind(f"{name} UNSIGNED", shown), [str(n) for n in (0, 2 * half - 1, half, half - 1)]))
        columns.append((Kind(f"{name}(3) ZEROFILL", shown + " + 0"), ["0", "7", str(2 * half - 1)]))
    check(any_server, fresh_database(any_server), columns)


FLOATS = ["3.402823466e38", "-3.402823466e38", "1.175494351e-38", "1.4e-45", "0", "-0.0", "0.1", "16777217"]
DOUBLES = ["1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "0.1", "1e15"]


def test_floats(any_server: Server, fresh_database: FreshDatabase) -> None:
    columns: list[Column] = [(Kind("FLOAT", "{} + 0e0"), FLOATS), (Kind("DOUBLE"), DOUBLES)]
    positive = [value for value in FLOATS if value[0] != "-"]
    columns += [
        (Kind("FLOAT UNSIGNED", "{} + 0e0"), positive),
        (Kind("DOUBLE UNSIGNED"), ["1.7976931348623157e308", "0"]),
    ]
    columns += [(Kind("FLOAT(7,3)", "{} + 0e0"), ["9999.999", "-0.001"]), (Kind("REAL"), ["1e100"])]
    check(any_server, fresh_database(any_server), columns)


DECIMALS = [
    (65, 30),
    (65, 0),
    (39, 0),
    (38, 0),
    (38, 30),
    (38, 10),
    (30, 30),
    (19, 9),
    (18, 18),
    (18, 0),
    (10, 0),
    (9, 9),
]
DECIMALS += [(9, 0), (5, 2), (1, 1), (1, 0)]


def test_decimals(any_server: Server, fresh_database: FreshDatabase) -> None:
    columns: list[Column] = []
    for digits, scale in DECIMALS:
        most = "9" * (digits - scale) + (f".{'9' * scale}" if scale else "")
        least = ("0." + "0" * (scale - 1) if scale else "") + "1"
        kind = Kind(f"DECIMAL({digits},{scale})", "CAST({} AS CHAR)" if digits > 38 else "{}")
        columns.append((kind, [most, f"-{most}", least, f"-{least}", "0"]))
    columns.append((Kind("DECIMAL"), ["9999999999", "-9999999999"]))
    columns.append((Kind("DECIMAL(20,10) UNSIGNED ZEROFILL", "{} + 0"), ["0", "1.5", "9999999999.9999999999"]))
    check(any_server, fresh_database(any_server), columns)


def test_bits_years_sets_and_enums(any_server: Server, fresh_database: FreshDatabase) -> None:
    columns: list[Column] = [
        (Kind(f"BIT({n})"), ["0", str((1 << n) - 1), str(1 << (n - 1)), "1"]) for n in (2, 7, 8, 9, 31, 63, 64)
    ]
    columns.append((Kind("BIT", "{} + 0"), ["0", "1"]))
    columns.append((Kind("YEAR"), ["0", "1901", "2155", "2000"]))
    for count in (1, 8, 9, 16, 17, 24, 25, 33, 64):
        members = ",".join(f"'m{n}'" for n in range(count))
        values = ["''", "'m0'", f"'m{count - 1}'", "'" + members.replace("'", "") + "'"]
        columns.append((Kind(f"SET({members})"), values))
    for count in (1, 255, 256, 300, 3000):
        members = ",".join(f"'m{n}'" for n in range(count))
        columns.append((Kind(f"ENUM({members})"), ["'m0'", f"'m{count - 1}'", f"'m{min(count - 1, 254)}'", "''"]))
    check(any_server, fresh_database(any_server), columns)


TIMES = ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:00.1'", "'-00:00:00.000001'", "'100:00:00.5'"]
TIMES += ["'-838:59:58.999999'", "'838:59:58.999999'", "'23:59:59.999999'", "'-23:59:59.000001'"]
MOMENTS = ["'0001-01-01'", "'9999-12-31 23:59:59'", "'9999-12-31 23:59:58.999999'", "'1969-12-31 23:59:59.999999'"]
MOMENTS += ["'1970-01-01'", "'2024-02-29 12:00:00.000001'", "'1000-01-01 00:00:00'", "'1900-02-28 23:59:59.5'"]
STAMPS = ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2038-01-19 03:14:06.999999'", "'2000-01-01 00:00:00.9'"]


def test_temporals(any_server: Server, fresh_database: FreshDatabase) -> None:
    kinds = [Kind("DATE"), *(Kind(f"TIME({n})", "CAST({} AS CHAR)") for n in range(7))]
    kinds += [Kind(f"DATETIME({n})") for n in range(7)] + [Kind(f"TIMESTAMP({n}) NULL") for n in range(7)]
    values = [[f"DATE({moment})" for moment in MOMENTS], *[TIMES] * 7, *[MOMENTS] * 7, *[STAMPS] * 7]
    rows = [[column[n % len(column)] for column in values] for n in range(10)]
    found, truth = written(any_server, fresh_database(any_server), kinds, rows)

    def naive(value: Any) -> Any:
        return (
            value.astimezone(dt.UTC).replace(tzinfo=None) if isinstance(value, dt.datetime) and value.tzinfo else value
        )

    for number, row in enumerate(rows):
        for kind, value, ours, theirs in zip(kinds, row, found[number], truth[number], strict=True):
            assert naive(ours) == theirs, f"{kind.definition}: {value}"


IMPOSSIBLE = ["0000-00-00", "2024-00-00", "2024-12-00", "2023-02-29", "2024-02-31", "0000-01-01", "2024-04-31"]


def test_impossible_dates_are_null_and_counted(any_server: Server, fresh_database: FreshDatabase) -> None:
    statements = ["SET sql_mode = 'ALLOW_INVALID_DATES'", "CREATE TABLE t (id INT PRIMARY KEY, a DATE, b DATETIME(3))"]
    statements += [f"INSERT INTO t VALUES ({n}, '{day}', '{day} 01:02:03')" for n, day in enumerate(IMPOSSIBLE)]
    database = fresh_database(any_server)
    decoded = log_of(any_server, database, statements)
    stored = any_server.query("SELECT CAST(a AS CHAR) FROM t ORDER BY id", database=database)
    assert [day for (day,) in stored] == IMPOSSIBLE
    assert [(row["a"], row["b"]) for row in changed_rows(decoded)] == [(None, None)] * len(IMPOSSIBLE)
    assert decoded.ledger.null_dates == 2 * len(IMPOSSIBLE)


def test_texts_and_bytes(any_server: Server, fresh_database: FreshDatabase) -> None:
    widest = "'𝄞'"
    columns: list[Column] = [
        (Kind(f"CHAR({n})"), ["''", f"REPEAT({widest}, {n})", "'a'", "'a '"]) for n in (1, 63, 64, 127, 255)
    ]
    columns += [(Kind(f"{name}(0)"), ["''"]) for name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")]
    columns += [(Kind("CHAR(255) CHARACTER SET latin1"), ["REPEAT('ÿ', 255)", "''"])]
    columns += [(Kind("CHAR(255) CHARACTER SET utf32"), [f"REPEAT({widest}, 255)", "''"])]
    columns += [(Kind(f"BINARY({n})"), ["''", "x'00'", "x'ff'", f"REPEAT(x'ff', {n})"]) for n in (1, 20, 255)]
    columns += [(Kind(f"VARBINARY({n})"), ["''", "x'0000'", f"REPEAT(x'00', {n})"]) for n in (2, 255, 256)]
    for size in (255, 256):
        columns.append((Kind(f"VARCHAR({size}) CHARACTER SET latin1"), ["''", f"REPEAT('é', {size})", "'a '"]))
    columns += [(Kind("VARCHAR(63)"), [f"REPEAT({widest}, 63)"]), (Kind("VARCHAR(64)"), [f"REPEAT({widest}, 64)"])]
    for name, size in (("TINY", 255), ("", 65535), ("MEDIUM", 70000), ("LONG", 70000)):
        columns.append((Kind(f"{name}TEXT"), ["''", f"REPEAT('x', {size})", "'\\0'"]))
        columns.append((Kind(f"{name}BLOB"), ["''", f"REPEAT(x'00', {size})", "x'00'"]))
    check(any_server, fresh_database(any_server), columns)


def test_vectors(mysql9: Server, fresh_database: FreshDatabase) -> None:
    most = "[" + ",".join(["1e38", "-1.2e-38", "0"] * 1000) + "]"
    rows = [
        ["TO_VECTOR('[1]')", f"TO_VECTOR('{most}')"],
        ["TO_VECTOR('[1,2,3]')", "TO_VECTOR('[0]')"],
        ["NULL", "NULL"],
    ]
    kinds = [Kind("VECTOR(3)", "HEX({})"), Kind("VECTOR(16383)", "HEX({})")]
    found, truth = written(mysql9, fresh_database(mysql9), kinds, rows)
    for number in range(len(rows)):
        packed = tuple(v and struct.pack(f"<{len(v)}f", *v).hex().upper() for v in found[number])
        assert packed == truth[number]


UUIDS = ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"]
UUIDS += [
    f"'12345678-9abc-{version:x}def-{variant:x}123-456789abcdef'" for version in range(16) for variant in (0, 8, 15)
]
ADDRESSES = ["'::'", "'::1'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'", "'::ffff:1.2.3.4'", "'1::'", "'::1.2.3.4'"]


def test_mariadbs_uuid_and_addresses(mariadb: Server, fresh_database: FreshDatabase) -> None:
    columns = [(Kind("UUID", "CAST({} AS CHAR)"), UUIDS), (Kind("INET6", "CAST({} AS CHAR)"), ADDRESSES)]
    columns.append((Kind("INET4", "CAST({} AS CHAR)"), ["'0.0.0.0'", "'255.255.255.255'", "'1.2.3.4'"]))
    columns.append((Kind("JSON"), ["'{\"b\": [1, null]}'", "'null'"]))
    check(mariadb, fresh_database(mariadb), columns)


MEMBERS = "ENUM('é', '😀', 'a?', '?') CHARACTER SET utf8mb4"


def test_members_that_information_schema_cannot_show(any_server: Server, fresh_database: FreshDatabase) -> None:
    statements = [
        f"CREATE TABLE t (id INT PRIMARY KEY, c {MEMBERS})",
        "INSERT INTO t VALUES (1, '😀'), (2, 'a?'), (3, '?')",
    ]
    decoded = log_of(any_server, fresh_database(any_server), statements)
    assert [row["c"] for row in changed_rows(decoded)] == ["😀", "a?", "?"]
    any_server.query("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        decoded = log_of(any_server, fresh_database(any_server), statements)
    finally:
        any_server.query("SET GLOBAL binlog_row_metadata = FULL")
    assert "set binlog_row_metadata=FULL" in decoded.problems[0].message


HIDDEN = [
    "id INT PRIMARY KEY, a INT, KEY ((a + 1)), UNIQUE KEY ((a * 2), id)",
    "id INT PRIMARY KEY, a INT, j JSON, KEY ((CAST(j->'$.z' AS UNSIGNED ARRAY)))",
    "a INT, id INT AS (a + 1) VIRTUAL, s INT AS (a + 2) STORED, i INT DEFAULT 3 INVISIBLE",
]


@pytest.mark.parametrize("columns", HIDDEN)
def test_mysqls_hidden_and_invisible_columns(mysql9: Server, fresh_database: FreshDatabase, columns: str) -> None:
    database = fresh_database(mysql9)
    insert = "INSERT INTO t (a) VALUES (1)" if "VIRTUAL" in columns else "INSERT INTO t (id, a) VALUES (1, 1)"
    decoded = log_of(mysql9, database, [f"CREATE TABLE t ({columns})", insert, "UPDATE t SET a = 5"])
    assert decoded.problems == ()
    last = {name: value for name, value in changed_rows(decoded)[-1].items() if not name.startswith("_tg_")}
    names = ", ".join(last)
    assert tuple(last.values()) == mysql9.query(f"SELECT {names} FROM t", database=database)[0]


def test_mysqls_invisible_primary_key(mysql9: Server, fresh_database: FreshDatabase) -> None:
    statements = ["SET sql_generate_invisible_primary_key = ON", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)"]
    decoded = log_of(mysql9, fresh_database(mysql9), statements)
    assert [(row["my_row_id"], row["a"]) for row in changed_rows(decoded)] == [(1, 7)]
