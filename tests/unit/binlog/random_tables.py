"""Random tables of a real server and random statements about them.

In:  a seeded random.Random, the server's flavour, a number of rows.
Out: RandomTables: CREATE TABLE, statements that insert, update (keys too), replace and delete rows, in transactions of
     every shape, and the SELECT that says what they came to.

Statements say IGNORE: a value that its column refuses becomes another, and a row whose key is taken is left out. The
server decides; SELECT tells.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.unit.binlog.random_columns import RandomColumn, random_column

_SQL_MODES = ("", "STRICT_TRANS_TABLES", "ALLOW_INVALID_DATES", "NO_ZERO_DATE", "STRICT_ALL_TABLES,NO_ZERO_IN_DATE")
# How a session writes its log. A table whose row images lack columns may be held: what isn't logged can't be known.
_SESSIONS = {
    "mysql": (
        "SET SESSION binlog_transaction_compression = ON, binlog_row_value_options = 'PARTIAL_JSON'",
        "SET SESSION binlog_transaction_compression = ON, binlog_row_value_options = ''",
        "SET SESSION binlog_transaction_compression = OFF, binlog_row_value_options = 'PARTIAL_JSON'",
        "SET SESSION binlog_transaction_compression = OFF, binlog_row_value_options = ''",
    ),
    "mariadb": (
        "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10",
        "SET GLOBAL log_bin_compress = OFF",
    ),
}
_IMAGES = ("FULL", "FULL", "FULL", "FULL", "FULL", "FULL", "FULL", "NOBLOB", "MINIMAL")
_KEYS = ("simple", "number", "composite", "composite", "none", "unique", "unique nullable")


class RandomTable:
    """columns: name -> RandomColumn; "n" numbers the rows and stands somewhere among them. image: binlog_row_image."""

    def __init__(self, name: str, r: random.Random, flavour: str, rows: int) -> None:
        self.name = name
        self.random = r
        self.flavour = flavour
        self.rows = rows
        self.image = r.choice(_IMAGES)
        drawn = [random_column(r, flavour) for _ in range(r.choice([1, 2, 5, 8, 9, 12, 17]))]
        self.columns = {f"c{i}": column for i, column in enumerate(drawn)}
        self.key_kind = r.choice(_KEYS)
        self.key = self._key()
        place = r.randrange(len(drawn) + 1)
        self.order = [*list(self.columns)[:place], "n", *list(self.columns)[place:]]
        self.generated = r.random() < 0.3
        self.create = self._create()

    def _key(self) -> list[str]:
        keyable = [name for name, column in self.columns.items() if column.keyable]
        if self.key_kind == "none":
            return []
        if self.key_kind == "number" or not keyable:
            return ["n"]
        if self.key_kind != "composite":
            return [self.random.choice(keyable)]
        return self.random.sample([*keyable, "n"], min(len(keyable) + 1, 2))

    def _create(self) -> str:
        r, parts = self.random, []
        for name in self.order:
            column = "INT" if name == "n" else self.columns[name].type
            null = "NOT NULL" if name == "n" or (name in self.key and self.key_kind != "unique nullable") else "NULL"
            hidden = "INVISIBLE" if name not in {"n", *self.key} and r.random() < 0.1 else ""
            parts.append(f"{name} {column} {null} {hidden}")
        if self.generated:
            how = r.choice(["STORED", "VIRTUAL"])
            parts.insert(r.randrange(len(parts) + 1), f"g INT GENERATED ALWAYS AS (n * 2 + 1) {how}")
        if self.key:
            kind = "UNIQUE KEY u" if self.key_kind.startswith("unique") else "PRIMARY KEY"
            parts.append(f"{kind} ({', '.join(self.key)})")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"

    # --- statements -----------------------------------------------------------------------------------------------

    def statements(self) -> Iterator[str]:
        r = self.random
        yield r.choice(_SESSIONS[self.flavour])
        yield f"SET SESSION sql_mode = '{r.choice(_SQL_MODES)}', binlog_row_image = '{self.image}'"
        left = list(range(self.rows))
        yield from self._transaction(self._inserts("INSERT IGNORE", left))
        yield from self._transaction(self._changes())

    def _transaction(self, statements: Iterator[str]) -> Iterator[str]:
        """In one transaction, each alone, or with a savepoint to which some of it is rolled back."""
        how = self.random.randrange(3)
        if how:
            yield "START TRANSACTION"
        for number, statement in enumerate(statements):
            if how == 2 and number == 1:
                yield "SAVEPOINT s"
                yield f"DELETE FROM {self.name} WHERE n % 3 = 1"
                yield "ROLLBACK TO s"
            yield statement
        if how:
            yield "COMMIT"

    def _row(self, number: int) -> str:
        values = []
        for name in self.order:
            nullable = name != "n" and (name not in self.key or self.key_kind == "unique nullable")
            if name == "n":
                values.append(str(number))
            else:
                null = nullable and self.random.random() < 0.1
                values.append("NULL" if null else self.columns[name].value(self.random))
        return f"({', '.join(values)})"

    def _inserts(self, verb: str, numbers: list[int]) -> Iterator[str]:
        at = 0
        while at < len(numbers):
            count = self.random.choice([1, 7, 50, 200])
            rows = ",".join(self._row(number) for number in numbers[at : at + count])
            yield f"{verb} INTO {self.name} ({', '.join(self.order)}) VALUES {rows}"
            at += count

    def assignment(self, name: str, place: str = "") -> str:
        if self.columns[name].type == "json" and self.random.random() < 0.7:
            return f"{name} = {self._patched(place + name)}"
        null = name not in self.key and self.random.random() < 0.2
        return f"{name} = {'NULL' if null else self.columns[name].value(self.random)}"

    def _patched(self, name: str) -> str:
        """Part of a document is changed: MySQL may log just that."""
        path = self.random.choice(["$.a0", "$.key0", "$.a1", "$[0]", "$[1]", "$.new"])
        function = self.random.choice(["JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
        value = self.random.choice(["1", "'é'", "0.5", "JSON_ARRAY()", "NULL"])
        return f"{function}({name}, '{path}'{'' if function == 'JSON_REMOVE' else f', {value}'})"

    def _changes(self) -> Iterator[str]:
        r, names = self.random, list(self.columns)
        for _ in range(4):
            some = ", ".join(self.assignment(name) for name in r.sample(names, min(len(names), r.randint(1, 3))))
            yield f"UPDATE IGNORE {self.name} SET {some} WHERE n % {r.choice([2, 5, 31])} = 1"
        yield f"UPDATE IGNORE {self.name} SET n = n + 100000 WHERE n % {r.choice([3, 11])} = 2"
        for name in self.key:
            for _ in range(3 if name != "n" else 0):
                yield f"UPDATE IGNORE {self.name} SET {self.assignment(name)} WHERE n = {r.randrange(self.rows)}"
        numbers = [r.randrange(self.rows * 2) for _ in range(5)]
        yield "SET SESSION sql_mode = ''"  # there is no REPLACE IGNORE
        yield from self._inserts("REPLACE", numbers)
        for statement in self._inserts("INSERT IGNORE", numbers[:2]):
            yield f"{statement} ON DUPLICATE KEY UPDATE n = n + 200000"
        yield f"DELETE FROM {self.name} WHERE n % {r.choice([5, 7])} = {r.randrange(5)}"

    # --- truth ----------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> list[tuple[str, RandomColumn | None]]:
        return [(name, self.columns.get(name)) for name in [*self.order, *(["g"] if self.generated else [])]]

    @property
    def select(self) -> str:
        asked = [column.ask.format(name) if column else name for name, column in self.shown]
        return f"SELECT {', '.join(asked)} FROM {self.name}"

    def read(self, answer: tuple[Any, ...]) -> tuple[Any, ...]:
        """A row of select as canonical values, in the order of shown."""
        return tuple(
            value if value is None or column is None else column.read(value)
            for value, (_, column) in zip(answer, self.shown, strict=True)
        )


def both_at_once(one: RandomTable, other: RandomTable) -> str:
    """One statement that changes two tables: their TABLE_MAPs come together."""
    first, second = one.random.choice(list(one.columns)), one.random.choice(list(other.columns))
    assigned = f"a.{one.assignment(first, 'a.')}, b.{other.assignment(second, 'b.')}"
    return f"UPDATE IGNORE {one.name} a JOIN {other.name} b ON a.n = b.n SET {assigned} WHERE a.n % 4 = 1"
