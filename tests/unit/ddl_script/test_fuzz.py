"""The DDL reader on statements that nobody wrote: it reads them or refuses them, soon, and never anything else."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator

import pytest

from tests.support.random_definitions import RandomDefinitions
from tests.support.seeds import many, seed
from tidegate.ddl_script.script import Script
from tidegate.ddl_script.shown_columns import shown_columns
from tidegate.schema.ddl.reader import DdlNotRead, read
from tidegate.schema.model.server import ServerVersion

MARIADB, MYSQL = "11.4.5-MariaDB", "9.7.4"
ROUNDS = many(4_000, 40_000)
# What mutations put into a statement: the marks and words that readers stumble over.
PIECES = [
    "'", '"', "`", "(", ")", ",", ";", "/*", "*/", "/*!50100 ", "/*M! ", "/*!999999 ", "--", "-- ", "#", "\\", "\0",
    "\n", ".", "=", "@", "@@", ":=", "NULL", "DEFAULT", "AS", "SELECT", "FIRST", "AFTER", "PRIMARY KEY", "PARTITION BY",
    "IF", "NOT", "EXISTS", "LIKE", "TO", "COLUMN", "CHARACTER SET", "COLLATE", "0x", "1e", "1.", ".5", "\u00a0", "é",
    "💧", "ENUM(", "GENERATED ALWAYS AS (", "REFERENCES", "CONVERT", "RENAME", "999999999999999999999", "b'", "x'1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """It would look through all that the process has, which other tests made large."""
    gc.disable()
    yield
    gc.enable()


def _mutated(source: random.Random, sql: str) -> str:
    for _ in range(source.randrange(1, 4)):
        at, end = sorted(source.randrange(len(sql) + 1) for _ in range(2))
        end = min(end, at + 12)
        way = source.randrange(5)
        if way == 0:
            sql = sql[:at] + sql[end:]
        elif way == 1:
            sql = sql[:at] + " " + source.choice(PIECES) + " " + sql[at:]
        elif way == 2:
            sql = sql[:at] + source.choice(PIECES) + sql[end:]
        elif way == 3:
            sql = sql[:at] + sql[at:end] * 3 + sql[end:]
        else:
            sql = sql[:at]
    return sql


@pytest.mark.parametrize("version", [MARIADB, MYSQL])
def test_a_mutated_statement_is_read_or_refused_in_one_line(version: str) -> None:
    drawn_from = seed()
    source, ddl = random.Random(drawn_from), RandomDefinitions(drawn_from, mariadb=version == MARIADB)
    script, server, slowest = Script("test", version), ServerVersion.of(version), 0.0
    refused = 0
    for line in range(ROUNDS):
        if line % 200 == 0:
            script = Script("test", version)
        sql = ddl.statement()
        sql = sql if line % 4 == 0 else _mutated(source, sql)
        started = time.thread_time()
        step = script.run(line, sql)
        slowest = max(slowest, time.thread_time() - started)
        refused += bool(step.error)
        assert "\n" not in step.error, repr(sql)
        for found in step.versions:
            shown_columns(found, server)
    print(f"refused {refused} of {ROUNDS}, slowest {slowest:.3f} s")
    assert 0 < refused < ROUNDS
    assert slowest < 0.5


# (head, piece, tail): a statement of any length.
LONG = [
    ("CREATE TABLE t (c0 INT", ", c{n} INT", ")"),
    ("CREATE TABLE t (a INT", ", KEY k{n} (a)", ")"),
    ("CREATE TABLE t (a INT, UNIQUE (a)", ", UNIQUE (a)", ")"),
    ("CREATE TABLE t (a ENUM('x'", ",'m{n}'", "))"),
    ("CREATE TABLE t (a INT AS (1", " + {n}", "))"),
    ("CREATE TABLE t (a INT AS (", "(", "1"),
    ("CREATE TABLE t (a INT DEFAULT (1", " or b", "))"),
    ("CREATE TABLE t (a INT) COMMENT '", "''", "'"),
    ("CREATE TABLE t (a INT) COMMENT '", "\\'", ""),
    ("CREATE TABLE t (a INT ", "/*! ", ")"),
    ("CREATE TABLE t (a INT ", "/*!999999 x */", ")"),
    ("CREATE TABLE t (a INT ", "/* */", ")"),
    ("CREATE TABLE t (a INT ", "/*!999999 /* ", ")"),
    ("CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (0", ",{n}", "))"),
    ("ALTER TABLE t ADD c0 INT", ", ADD c{n} INT FIRST", ""),
    ("ALTER TABLE t ADD c0 INT", ", ADD c{n} INT AFTER a", ""),
    ("RENAME TABLE t TO t0", ", t{n} TO u{n}", ""),
    ("DROP TABLE t", ", t{n}", ""),
    ("CREATE TABLE t AS SELECT 1 a", ", {n} c{n}", ""),
    ("", "(", "CREATE TABLE t (a INT)"),
    ("", "/*!", "CREATE TABLE t (a INT)"),
    ("SET sql_mode = CONCAT('a'", ", CONCAT('b')", ")"),
    ("SET sql_mode = ", "CONCAT(", "'a'"),
    ("CREATE TABLE t (a VARCHAR(", "9", "))"),
]


@pytest.mark.parametrize(("head", "piece", "tail"), LONG)
def test_time_is_linear_in_a_statements_length(head: str, piece: str, tail: str) -> None:
    def seconds(times: int) -> float:
        sql = head + "".join(piece.replace("{n}", str(n)) for n in range(times)) + tail
        script = Script("test", MARIADB)
        if not sql.startswith("CREATE"):
            script.run(0, "CREATE TABLE t (a INT)")
        started = time.process_time()
        script.run(1, sql)
        return time.process_time() - started

    # Once more where it took long: the collector's work for the whole test process falls on whoever is measured then.
    small = min(seconds(250) for _ in range(3))
    bound = 16 * 8 * small + 0.2
    assert any(seconds(4_000) < bound for _ in range(3)), f"{small:.4f} s, 16 times as much more than {bound:.4f} s"


@pytest.mark.parametrize("version", [MARIADB, MYSQL])
def test_cut_short_anywhere_a_statement_is_read_or_refused(version: str) -> None:
    for number in range(40):
        sql = RandomDefinitions(number, mariadb=True).statement()
        for end in range(len(sql)):
            try:
                read(sql[:end], database="d", sql_mode=0, server=ServerVersion.of(version))
            except DdlNotRead:
                continue


@pytest.mark.parametrize("length", [".5", "1e3", "0x10", "9" * 5_000, "\u0664"])
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a CHAR({n}))",
        "CREATE TABLE t (a DECIMAL(3,{n}))",
        "CREATE TABLE t (a TEXT, KEY (a({n})))",
    ],
)
def test_a_length_that_is_no_whole_number_is_refused(sql: str, length: str) -> None:
    with pytest.raises(DdlNotRead):
        read(sql.replace("{n}", length), database="d", sql_mode=0, server=ServerVersion.of(MARIADB))
