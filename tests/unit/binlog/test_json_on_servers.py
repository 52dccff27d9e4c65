"""JSON text is the server's own: random documents, and documents that differences made, against SELECT."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.kit.decoding import (
    ALL_TIME,
    changed_rows,
    current_binlog,
    decode_both,
    segment_of_file,
    version_on,
)
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

CHARACTERS = "ab\"\\/\b\f\n\r\t\x01\x1f\x7f é中𝄞\u2028'"
OPAQUE = [
    "CAST({} AS DECIMAL(20,6))", "TIMESTAMP('2024-02-29', SEC_TO_TIME({}))", "SEC_TO_TIME({})", "b'10101'",
    "CAST('2024-02-29' + INTERVAL {} DAY AS DATE)", "CAST(HEX({}) AS BINARY)", "CAST(YEAR('2024-01-01') AS YEAR)",
    "CAST({} AS UNSIGNED)", "CAST({} AS DECIMAL(65,30))", "ST_GeomFromText('POINT(1 {})')",
]  # fmt: skip


def number(r: random.Random) -> Any:
    return r.choice(
        [
            r.randrange(-9, 9),
            r.choice([-1, 1]) * r.choice([1 << 15, 1 << 16, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 14]),
            r.randrange(1 << 63, 1 << 64),
            r.uniform(-1, 1) * 10.0 ** r.randrange(-40, 40),
            float(r.randrange(-(10**6), 10**6)) / r.choice([1, 2, 8, 10, 1000]),
            r.uniform(-1, 1) * 10.0 ** r.randrange(-320, 300),
            float(10 ** r.randrange(0, 22)),
        ]
    )


def text(r: random.Random) -> str:
    length = r.choice([0, 1, 3, 20, 127, 128, 300]) if r.random() < 0.3 else r.randrange(8)
    return "".join(r.choice(CHARACTERS) for _ in range(length))


def document(r: random.Random, depth: int = 0) -> Any:
    kind = r.randrange(8 if depth < 4 else 5)
    if kind < 2:
        return number(r)
    if kind < 4:
        return text(r)
    if kind == 4:
        return r.choice([None, True, False])
    count = r.choice([0, 1, 2, 5, 40]) if depth < 2 else r.randrange(4)
    if kind == 5:
        return [document(r, depth + 1) for _ in range(count)]
    return {text(r): document(r, depth + 1) for _ in range(count)}


@pytest.mark.parametrize("seed", range(2))
def test_random_documents_are_the_text_that_select_shows(
    mysql9: Server, fresh_database: FreshDatabase, seed: int
) -> None:
    database = fresh_database(mysql9)
    mysql9.query("FLUSH BINARY LOGS")
    path = current_binlog(mysql9)
    r = random.Random(seed)
    with mysql9.connect(database).cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, j JSON)")
        for _ in range(10):
            documents = [(json.dumps(document(r), ensure_ascii=False),) for _ in range(90)]
            cursor.executemany("INSERT INTO t (j) VALUES (%s)", documents)
            for _ in range(10):
                parts = ", ".join(r.choice(OPAQUE).format(r.randrange(-80000, 80000)) for _ in range(r.randrange(1, 5)))
                cursor.execute(f"INSERT INTO t (j) VALUES (JSON_ARRAY({parts}))")
        cursor.execute("SELECT id, CAST(j AS CHAR) FROM t")
        truth = dict(cursor.fetchall())
    assert len(truth) == 1000
    name = (database, "t")
    made = segment_of_file(path.read_bytes())
    decoded = decode_both(made, {name: [version_on(mysql9, database, "t")]}, {name: ALL_TIME})
    ours = {row["id"]: row["j"] for row in changed_rows(decoded)}
    for key, expected in truth.items():
        assert ours[key] == expected
