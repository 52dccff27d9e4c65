"""Random histories of tables of every kind of key, as decoded changes and as a plain dict.

In:  a seed.
Out: History: DDL and changes in commit order; rows_at(): what each table holds at a commit_ts, from a dict alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tidegate import tables

Row = dict[str, Any]
Change = tuple[int, int, Row]  # commit_ts, op, row
UP, DEL = tables.OP_UPSERT, tables.OP_DELETE

ODD = [
    *(
        "",
        " ",
        "a",
        "A",
        "a ",
        "\u00e4",
        "a\u0308",
        "\u00df",
        "ss",
        "\u0000",
        "\U0001f600",
        "'\"\\`;--",
        "\n\r\t",
        "NULL",
    ),
    *("x" * 32, "x" * 32 + "y", "x" * 32 + "z", "\U0001f600" * 33, "\u200b", "\uffff", "\u007f"),
]
BYTES = [b"", b"\0", b"\0\0", b"\xff" * 16, b"abc", b"\x80", b"\xc3\x28", *(bytes([i, 0]) for i in range(12))]


@dataclass(frozen=True)
class Kind:
    """ddl: the key's columns and the PRIMARY KEY clause. key: a random key. Small spaces, so that keys come again."""

    ddl: str
    names: tuple[str, ...]
    key: Callable[[random.Random], tuple[Any, ...]]


def _decimal(rng: random.Random) -> tuple[Any, ...]:
    return (rng.choice([Decimal("0.0001"), Decimal("-0.0001"), Decimal("9999999999999999.9999")]),)


_REALS = [0.0, -0.0, 1e300, -1e-300, 5e-324, *map(float, range(1, 20))]

KINDS: dict[str, Kind] = {
    "whole": Kind("id INT, {} , PRIMARY KEY (id)", ("id",), lambda r: (r.randrange(-20, 60),)),
    "pair": Kind(
        "a SMALLINT UNSIGNED, b VARCHAR(60) COLLATE utf8mb4_bin, {}, PRIMARY KEY (a, b)",
        ("a", "b"),
        lambda r: (r.choice([0, 1, 65535]), r.choice(ODD)),
    ),
    "text": Kind("name VARCHAR(60), {}, PRIMARY KEY (name)", ("name",), lambda r: (r.choice(ODD),)),
    "money": Kind(
        "m DECIMAL(20,4), {}, PRIMARY KEY (m)",
        ("m",),
        lambda r: _decimal(r) if r.random() < 0.3 else (Decimal(r.randrange(-30, 30)).scaleb(-4),),
    ),
    "huge": Kind(
        "h BIGINT UNSIGNED, {}, PRIMARY KEY (h)",
        ("h",),
        lambda r: (Decimal(r.choice([*range(20), 2**63 - 1, 2**63, 2**64 - 1])),),
    ),
    "raw": Kind("k VARBINARY(16), {}, PRIMARY KEY (k)", ("k",), lambda r: (r.choice(BYTES),)),
    "moment": Kind(
        "at DATETIME(6), {}, PRIMARY KEY (at)",
        ("at",),
        lambda r: (datetime(1969, 12, 31, 23, 59, 59) + timedelta(microseconds=r.randrange(40) * 333_333),),  # noqa: DTZ001
    ),
    "real": Kind(
        "f DOUBLE, {}, PRIMARY KEY (f)",
        ("f",),
        lambda r: (r.choice(_REALS),),
    ),
    "bag": Kind("{}", (), lambda r: ()),
}
_REST = "v VARCHAR(60), n INT"


@dataclass
class Table:
    """One table as it goes: rows by key (or a count of equal rows), and the columns it has besides its key."""

    kind: Kind
    extra: list[str] = field(default_factory=lambda: ["v", "n"])
    rows: dict[tuple[Any, ...], tuple[int, Row]] = field(default_factory=dict)
    bag: list[Row] = field(default_factory=list)
    gone: dict[tuple[Any, ...], tuple[int, Row]] = field(default_factory=dict)  # deleted, by key
    gone_bag: list[Row] = field(default_factory=list)

    def every_row(self) -> Iterator[Row]:
        yield from (*self.bag, *self.gone_bag)
        yield from (row for _, row in (*self.rows.values(), *self.gone.values()))


@dataclass
class History:
    """ddl: (commit_ts, SQL). changes: table -> changes in log order. kept: tables whose deleted rows stay, marked."""

    seed: int
    ddl: list[tuple[int, str]] = field(default_factory=list)
    changes: dict[str, list[Change]] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    now: int = 10
    kept: set[str] = field(default_factory=set)

    def final(self, name: str) -> Counter[tuple[Any, ...]]:
        """The rows at the end, as shown() shows those of a reader; keyed tables with their commit_ts."""
        table = self.tables[name]
        found = [(row, ts, False) for ts, row in table.rows.values()] + [(row, 0, False) for row in table.bag]
        if name in self.kept:
            found += [(row, ts, True) for ts, row in table.gone.values()] + [(row, 0, True) for row in table.gone_bag]
        return Counter(
            shown(
                row
                | ({tables.COMMIT_TS: ts} if table.kind.names else {})
                | ({tables.DELETED: mark} if name in self.kept else {})
            )
            for row, ts, mark in found
        )


def shown(row: Row) -> tuple[Any, ...]:
    """A row that compares by its values' own text: -0.0 is not 0.0, '1' is not 1."""
    return tuple(sorted((name, repr(value)) for name, value in row.items()))


def history(seed: int, kinds: Iterable[str] = KINDS, transactions: int = 60) -> History:
    """A random history; the same for the same seed."""
    rng = random.Random(seed)
    made = History(seed)
    for name in kinds:
        made.tables[name] = Table(KINDS[name])
        made.changes[name] = []
        made.ddl.append((made.now, f"CREATE TABLE {name} ({KINDS[name].ddl.format(_REST)})"))
        made.now += 1
    altered = set(rng.sample(sorted(made.tables), k=max(1, len(made.tables) // 3)))
    made.kept = {name for name in sorted(made.tables) if rng.random() < 0.5}
    emptied = rng.randrange(transactions // 3, transactions)
    for number in range(transactions):
        made.now += rng.choice([1, 1, 2, 50])
        if altered and number > transactions // 3 and rng.random() < 0.2:
            _add_column(rng, made, altered.pop())
            continue
        if number == emptied:
            _truncate(made, rng.choice(sorted(made.tables)))
            continue
        for name in rng.sample(sorted(made.tables), k=rng.randrange(1, len(made.tables) + 1)):
            for _ in range(rng.choice([1, 1, 2, 5])):
                _change(rng, made, name)
    return made


def _add_column(rng: random.Random, made: History, name: str) -> None:
    table, default = made.tables[name], rng.choice([None, 7])
    made.ddl.append((made.now, f"ALTER TABLE {name} ADD COLUMN c1 INT" + (f" DEFAULT {default}" if default else "")))
    table.extra.append("c1")
    for row in table.every_row():
        row["c1"] = default


def _truncate(made: History, name: str) -> None:
    table = made.tables[name]
    made.ddl.append((made.now, f"TRUNCATE TABLE {name}"))
    table.gone |= {key: (made.now, row) for key, (_, row) in table.rows.items()}
    table.gone_bag += table.bag
    table.rows, table.bag = {}, []


def _row(rng: random.Random, table: Table, key: tuple[Any, ...]) -> Row:
    small = not table.kind.names  # rows without a key should be equal now and then
    row: Row = dict(zip(table.kind.names, key, strict=True))
    row["v"] = rng.choice([None, "", "w"] if small else [None, "", *ODD, "v" * 40])
    row["n"] = rng.choice([None, 0, 1] if small else [None, 0, -(2**31), rng.randrange(1000)])
    return row | ({"c1": rng.choice([None, 1, 7])} if "c1" in table.extra else {})


def _change(rng: random.Random, made: History, name: str) -> None:
    table, out, now = made.tables[name], made.changes[name], made.now
    if not table.kind.names:
        _change_bag(rng, table, out, now)
        return
    held = sorted(table.rows, key=repr)
    what = rng.random()
    if held and what < 0.25:
        key = rng.choice(held)
        out.append((now, DEL, _delete(table, now, key)))
    elif held and what < 0.4:  # a key change: its old key goes, its new one comes
        old, new = rng.choice(held), table.kind.key(rng)
        if new not in table.rows:
            out.append((now, DEL, _delete(table, now, old)))
            _put(rng, table, out, now, new)
    else:
        key = table.kind.key(rng)
        _put(rng, table, out, now, key)
        if what > 0.9:  # said twice
            out.append((now, UP, dict(table.rows[key][1])))


def _delete(table: Table, now: int, key: tuple[Any, ...]) -> Row:
    _, row = table.rows.pop(key)
    table.gone[key] = (now, row)
    return dict(row)


def _put(rng: random.Random, table: Table, out: list[Change], now: int, key: tuple[Any, ...]) -> None:
    row = _row(rng, table, key)
    table.rows[key] = (now, row)
    table.gone.pop(key, None)
    out.append((now, UP, dict(row)))


def _change_bag(rng: random.Random, table: Table, out: list[Change], now: int) -> None:
    if table.bag and rng.random() < 0.4:
        row = table.bag.pop(rng.randrange(len(table.bag)))
        table.gone_bag.append(row)
        out.append((now, DEL, dict(row)))
    else:
        row = _row(rng, table, ())
        table.bag.append(row)
        if row in table.gone_bag:  # one of its equals comes back
            table.gone_bag.remove(row)
        out.append((now, UP, dict(row)))
