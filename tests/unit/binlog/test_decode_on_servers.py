"""Values that only a real server can judge: UUID and INET addresses, JSON's text, every character of a charset.

The oracle is the server: what the log gives is what SELECT gives. Rows of all types: test_random_tables.py.
"""

from __future__ import annotations

import random

import pytest

from tests.kit.decoding import ALL_TIME, changed_rows, current_binlog, decode_both, segment_of_file, version_on
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = pytest.mark.server


def test_mariadb_uuid_and_inet_are_the_text_that_select_shows(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mariadb)
    mariadb.query("FLUSH BINARY LOGS")
    path = current_binlog(mariadb)
    r = random.Random(1)
    with mariadb.connect(database).cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, u UUID, a INET6, b INET4)")
        for key in range(60):
            address = r.choice([r.randbytes(16), bytes(12) + r.randbytes(4), bytes(10) + b"\xff\xff" + r.randbytes(4)])
            values = [key, r.randbytes(16), r.choice([address, bytes(14) + b"\x10\x00", bytes(16)]), r.randbytes(4)]
            cursor.execute("INSERT INTO t VALUES (%s, %s, %s, %s)", values)
        cursor.execute("INSERT INTO t VALUES (99, UUID(), '::', '0.0.0.0')")
        cursor.execute("SELECT id, CAST(u AS CHAR), CAST(a AS CHAR), CAST(b AS CHAR) FROM t")
        truth = list(cursor.fetchall())
    name = (database, "t")
    decoded = decode_both(
        segment_of_file(path.read_bytes()), {name: [version_on(mariadb, database, "t")]}, {name: ALL_TIME}
    )
    assert [(row["id"], row["u"], row["a"], row["b"]) for row in changed_rows(decoded)] == truth


def test_json_is_the_servers_own_text(mysql9: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mysql9)
    mysql9.query("FLUSH BINARY LOGS")
    path = current_binlog(mysql9)
    r = random.Random(2)
    numbers = [10.0**e * m for e in range(-30, 31) for m in (1, 1.5, -7.25, 0.1, 1 / 3)]
    numbers += [r.uniform(-1, 1) * 10 ** r.uniform(-320, 300) for _ in range(300)]
    with mysql9.connect(database).cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, j JSON)")
        for number in numbers:
            cursor.execute("INSERT INTO t (j) VALUES (CAST(%s AS JSON))", [repr(number)])
        for text in JSON_TEXTS:
            cursor.execute("INSERT INTO t (j) VALUES (%s)", [text])
        for expression in JSON_EXPRESSIONS:
            cursor.execute(f"INSERT INTO t (j) VALUES ({expression})")
        cursor.execute("SELECT id, j FROM t")
        truth = dict(cursor.fetchall())
    name = (database, "t")
    made = segment_of_file(path.read_bytes())
    decoded = decode_both(made, {name: [version_on(mysql9, database, "t")]}, {name: ALL_TIME})
    assert {row["id"]: row["j"] for row in changed_rows(decoded)} == truth


JSON_TEXTS = [
    "null", "true", "false", "0", "-1", "32767", "65536", "-2147483649", "9223372036854775807", "18446744073709551615",
    '""', '"é中𝄞"', r'"\" \\ \/ \b \f \n \r \t \u0001 \u001f \u007f"', "[]", "{}", '[1, "a", null, {"b": [true]}]',
    '{"zz": 1, "a": 2, "b": {"": []}, "\\n": 3}', "[" + ",".join(str(n) for n in range(0, 70000, 7)) + "]",
    '{"' + "k" * 300 + '": "' + "v" * 70000 + '"}', "[" * 99 + "]" * 99,
]  # fmt: skip
JSON_EXPRESSIONS = [
    "JSON_ARRAY(CAST(1.230 AS DECIMAL(10,3)), CAST(-0.5 AS DECIMAL(3,2)), CAST(0 AS DECIMAL(65,30)))",
    "JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('2024-02-29 12:34:56.789' AS DATETIME(3)))",
    "JSON_ARRAY(CAST('-12:34:56.5' AS TIME(1)), CAST('838:59:59' AS TIME))",
    "JSON_ARRAY(b'101', x'00ff', CAST('abc' AS BINARY))",
    "JSON_ARRAY(CAST(2024 AS YEAR), TIMESTAMP '2024-01-01 00:00:00')",
    "JSON_OBJECT('g', ST_GeomFromText('POINT(1 2)'))",
]
