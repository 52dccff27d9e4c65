"""Random partitioned tables: definitions, and rows that lie in all corners of them. Drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

Draw = Callable[[random.Random], object]


@dataclass(frozen=True)
class Definition:
    """columns: name -> (type, how a value is drawn). clause: PARTITION BY ... nulls: whether values may be NULL."""

    columns: dict[str, tuple[str, Draw]]
    clause: str
    nulls: bool = True


def _int(low: int, high: int) -> Draw:
    edges = [low, high, 0, 1, 9, 10, 11, 19, 20, 21]
    return lambda rng: rng.choice([n for n in edges if low <= n <= high] + [rng.randint(low, high), rng.randint(0, 40)])


def _moment(rng: random.Random) -> datetime:
    if rng.random() < 0.3:
        return datetime.fromisoformat(f"{rng.choice((2019, 2020, 2021))}-{rng.choice((1, 2, 12)):02}-01")
    return datetime.fromisoformat("2018-01-01") + timedelta(
        seconds=rng.randrange(4 * 366 * 86400), microseconds=rng.randrange(10**6)
    )


def _early(rng: random.Random) -> str:
    return f"{rng.choice((1, 99, 999, 1582, 1900, 9999)):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("aAbBzZ019") for _ in range(rng.randint(0, 3)))


DATE: tuple[str, Draw] = ("DATE", lambda rng: _moment(rng).date() if rng.random() < 0.8 else _early(rng))
DATETIME: tuple[str, Draw] = ("DATETIME(6)", lambda rng: _moment(rng) if rng.random() < 0.8 else _early(rng))
TIMESTAMP: tuple[str, Draw] = ("TIMESTAMP", lambda rng: _moment(rng).replace(microsecond=0))
INT: tuple[str, Draw] = ("INT", _int(-(2**31), 2**31 - 1))
SMALL: tuple[str, Draw] = ("SMALLINT", _int(-50, 50))
UNSIGNED: tuple[str, Draw] = ("BIGINT UNSIGNED", _int(0, 2**63 - 1))
WIDE: tuple[str, Draw] = ("BIGINT UNSIGNED", _int(0, 2**64 - 1))
COLLATIONS = ("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_swedish_ci", "ascii_general_ci")
MARIADB_COLLATIONS = ("utf8mb4_uca1400_ai_ci", "utf8mb4_nopad_bin")
MYSQL_COLLATIONS = ("utf8mb4_0900_ai_ci", "utf8mb4_0900_bin")


def _ranges(rng: random.Random, low: int, high: int, expression: str) -> str:
    bounds = sorted(rng.sample(range(low, high), 4))
    parts = [f"PARTITION p{n} VALUES LESS THAN ({bound})" for n, bound in enumerate(bounds)]
    return f"PARTITION BY RANGE ({expression}) ({', '.join(parts)}, PARTITION pm VALUES LESS THAN MAXVALUE)"


def _days(rng: random.Random, function: str) -> str:
    bounds = sorted(rng.sample(["2018-06-01", "2019-01-01", "2020-02-01", "2021-12-28", "1582-10-15", "0099-03-01"], 3))
    parts = [f"PARTITION p{n} VALUES LESS THAN ({function}('{bound}'))" for n, bound in enumerate(bounds)]
    return f"PARTITION BY RANGE ({function}(d)) ({', '.join(parts)}, PARTITION pm VALUES LESS THAN MAXVALUE)"


def _numbers(rng: random.Random, expression: str, low: int, high: int) -> str:
    """LIST over all numbers that there can be."""
    values: list[str] = [str(n) for n in range(low, high + 1)]
    rng.shuffle(values)
    values.insert(rng.randrange(len(values)), "NULL")
    at = rng.randrange(1, len(values))
    lists = (values[:at], values[at:])
    parts = [f"PARTITION p{n} VALUES IN ({', '.join(part)})" for n, part in enumerate(lists)]
    return f"PARTITION BY LIST ({expression}) ({', '.join(parts)})"


def _text_ranges(rng: random.Random) -> str:
    """Bounds in an order that all collations of COLLATIONS share."""
    return (
        "PARTITION BY RANGE COLUMNS (s, a) (PARTITION p0 VALUES LESS THAN ('0', 5),"
        f" PARTITION p1 VALUES LESS THAN ('A{rng.choice('01')}', 10), PARTITION p2 VALUES LESS THAN ('B', MAXVALUE),"
        " PARTITION p3 VALUES LESS THAN ('b', MAXVALUE), PARTITION p4 VALUES LESS THAN (MAXVALUE, MAXVALUE))"
    ).replace("'b'", "'z'")


def definitions(rng: random.Random, *, mariadb: bool) -> list[Definition]:
    """One of each kind."""
    collations = COLLATIONS + (MARIADB_COLLATIONS if mariadb else MYSQL_COLLATIONS)
    text: tuple[str, Draw] = (f"VARCHAR(8) COLLATE {rng.choice(collations)}", _word)
    found = [
        Definition({"a": INT}, _ranges(rng, -20, 40, "a")),
        Definition({"a": UNSIGNED}, _ranges(rng, 0, 50, "a")),
        Definition({"a": WIDE}, "PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (9223372036854775809),"
                                " PARTITION p1 VALUES LESS THAN MAXVALUE)"),
        Definition({"a": SMALL, "b": SMALL}, _ranges(rng, -900, 900, "a * 10 + b - 3")),
        Definition({"a": SMALL}, _ranges(rng, -8, 8, f"a {rng.choice(('DIV', 'MOD'))} {rng.choice((-7, 3, 7))}")),
        Definition({"a": SMALL}, _ranges(rng, 0, 50, "ABS(a)")),
        Definition({"a": SMALL}, _numbers(rng, "MOD(a, 5)", -4, 4)),
        Definition({"d": DATE}, _ranges(rng, 1500, 2030, "YEAR(d)")),
        Definition({"d": DATETIME}, _ranges(rng, 190000, 202200, "YEAR(d) * 100 + MONTH(d)")),
        Definition({"d": rng.choice((DATE, DATETIME))}, _days(rng, "TO_DAYS")),
        Definition({"d": DATETIME}, _days(rng, "TO_SECONDS")),
        Definition({"d": DATETIME}, _numbers(rng, "HOUR(d)", 0, 23)),
        Definition({"d": DATE}, _numbers(rng, rng.choice(("DAYOFWEEK(d)", "WEEKDAY(d)", "QUARTER(d)")), 0, 7)),
        Definition({"d": DATE}, _ranges(rng, 1, 366, "DAYOFYEAR(d)")),
        Definition({"d": DATETIME}, _ranges(rng, 0, 86400, "TIME_TO_SEC(d)")),
        Definition({"d": TIMESTAMP}, _ranges(rng, 1514764800, 1640995200, "UNIX_TIMESTAMP(d)")),
        Definition({"a": INT}, f"PARTITION BY HASH (a) PARTITIONS {rng.choice((3, 5))}"),  # of which NULL isn't in p0
        Definition({"a": UNSIGNED}, f"PARTITION BY HASH (a) PARTITIONS {rng.randint(1, 9)}"),
        Definition({"d": DATE}, "PARTITION BY HASH (YEAR(d)) PARTITIONS 3", nulls=False),
        Definition({"d": DATE, "a": SMALL}, "PARTITION BY RANGE COLUMNS (d, a) (PARTITION p0 VALUES LESS THAN"
                   " ('2019-01-01', 10), PARTITION p1 VALUES LESS THAN ('2020-01-01', MAXVALUE), PARTITION p2"
                   " VALUES LESS THAN ('2021-02-28', -3), PARTITION p3 VALUES LESS THAN (MAXVALUE, 0))"),
        Definition({"d": DATETIME}, "PARTITION BY RANGE COLUMNS (d) (PARTITION p0 VALUES LESS THAN ('2019-01-01'),"
                   " PARTITION p1 VALUES LESS THAN ('2020-02-28 00:00:00'), PARTITION p2 VALUES LESS THAN (MAXVALUE))"),
        Definition({"s": text, "a": SMALL}, _text_ranges(rng)),
        Definition({"a": SMALL}, "PARTITION BY RANGE (a) SUBPARTITION BY KEY (a) SUBPARTITIONS 2"
                   " (PARTITION p0 VALUES LESS THAN (0), PARTITION p1 VALUES LESS THAN (99))"),
    ]  # fmt: skip
    if mariadb:
        found += [
            Definition({"a": INT}, "PARTITION BY LIST (a) (PARTITION p0 VALUES IN (1, 9, 10), PARTITION p1 VALUES IN"
                       " (20, NULL), PARTITION pd DEFAULT)"),
            Definition({"s": text, "a": SMALL}, "PARTITION BY LIST COLUMNS (s, a) (PARTITION p0 VALUES IN (('', 0),"
                       " ('a', 1), ('B', NULL)), PARTITION p1 VALUES IN (('a0', 1)), PARTITION pd DEFAULT)"),
        ]  # fmt: skip
    return found


def rows(rng: random.Random, definition: Definition, count: int) -> list[tuple[object, ...]]:
    """Values of its columns; NULL now and then."""
    return [
        tuple(
            None if definition.nulls and rng.random() < 0.05 else draw(rng) for _, draw in definition.columns.values()
        )
        for _ in range(count)
    ]
