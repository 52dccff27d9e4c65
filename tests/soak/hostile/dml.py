"""Changes of rows composed at random over the tables that are there.

In:  a seeded random.Random, the tables; a folder from which the server loads files.
Out: Dml.statement(): one INSERT, REPLACE, UPDATE, DELETE, LOAD DATA or their like.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.soak.hostile.columns import Column, literal
from tests.soak.hostile.tables import Table

_ROWS_MAX = 4


class Dml:
    """A source of statements; a server refuses some of them, which is fine."""

    def __init__(self, rng: random.Random, loads: Path) -> None:
        self._rng, self._loads = rng, loads
        self._files = 0

    def statement(self, table: Table, other: Table) -> str:
        kinds: dict[Callable[[Table, Table], str], int] = {
            self._insert: 9,
            self._update: 7,
            self._delete: 3,
            self._upsert: 3,
            self._select: 1,
            self._key_moves: 3,
            self._joined: 1,
            self._load: 1,
        }
        return self._rng.choices(list(kinds), list(kinds.values()))[0](table, other)

    def insert(self, table: Table, rows: int) -> str:
        """So many rows with values for all columns."""
        values = ", ".join(self._values(table.written) for _ in range(rows))
        return f"INSERT IGNORE INTO {table.quoted} ({_names(table.written)}) VALUES {values}"

    def _insert(self, table: Table, other: Table) -> str:
        rng, columns = self._rng, table.written
        if rng.random() < 0.3:
            columns = tuple(column for column in columns if column.key == "PRI" or rng.random() < 0.6) or columns
        values = ", ".join(self._values(columns) for _ in range(rng.randint(1, _ROWS_MAX)))
        how = rng.choice(["INSERT", "INSERT", "INSERT IGNORE", "REPLACE"])
        return f"{how} INTO {table.quoted} ({_names(columns)}) VALUES {values}"

    def _upsert(self, table: Table, other: Table) -> str:
        return f"{self._insert(table, other).replace('REPLACE', 'INSERT')} ON DUPLICATE KEY UPDATE {self._set(table)}"

    def _select(self, table: Table, other: Table) -> str:
        pairs = list(zip(table.written, self._rng.sample(other.columns, len(other.columns)), strict=False))
        taken, given = _names([one for one, _ in pairs]), _names([one for _, one in pairs])
        return f"INSERT IGNORE INTO {table.quoted} ({taken}) SELECT {given} FROM {other.quoted} LIMIT 3"

    def _update(self, table: Table, other: Table) -> str:
        ignore = self._rng.choice(["", "", "IGNORE "])
        return f"UPDATE {ignore}{table.quoted} SET {self._set(table)}{self._where(table)}"

    def _delete(self, table: Table, other: Table) -> str:
        return f"DELETE FROM {table.quoted}{self._where(table)}"

    def _key_moves(self, table: Table, other: Table) -> str:
        """Keys that are swapped, shifted, or written as the collation's equal."""
        columns = table.key or table.written[:1]
        if not columns:
            return f"INSERT INTO {table.quoted} () VALUES ()"
        column = self._rng.choice(columns)
        value = self._rng.choice(
            [
                *(f"{column.quoted} + 1", f"{column.quoted} + 1", f"-{column.quoted}", f"UPPER({column.quoted})"),
                *(f"CONCAT({column.quoted}, ' ')", literal(self._rng, column)),
            ]
        )
        order = self._rng.choice(["", " ORDER BY {0} DESC", " ORDER BY {0} DESC LIMIT 2"]).format(column.quoted)
        return f"UPDATE IGNORE {table.quoted} SET {column.quoted} = {value}{order}"

    def _joined(self, table: Table, other: Table) -> str:
        one, two = self._rng.choice(table.columns), self._rng.choice(other.columns)
        condition = f"x.{one.quoted} = y.{two.quoted} OR 1 = {self._rng.randint(0, 1)}"
        joined = f"{table.quoted} x JOIN {other.quoted} y ON {condition}"
        if not table.written or self._rng.random() < 0.5:
            return f"DELETE x{self._rng.choice(['', ', y'])} FROM {joined}"
        column = self._rng.choice(table.written)
        return f"UPDATE IGNORE {joined} SET x.{column.quoted} = {literal(self._rng, column)}"

    def _load(self, table: Table, other: Table) -> str:
        self._files += 1
        path = self._loads / f"load-{self._files}.txt"
        columns = table.written
        lines = [
            "\t".join(literal(self._rng, column).strip("'").replace("\n", " ") for column in columns)
            for _ in range(self._rng.randint(1, _ROWS_MAX))
        ]
        path.write_text("".join(f"{line}\n" for line in lines))
        path.chmod(0o644)
        how = self._rng.choice(["IGNORE", "REPLACE"])
        return f"LOAD DATA INFILE '{path}' {how} INTO TABLE {table.quoted} CHARACTER SET utf8mb4 ({_names(columns)})"

    # --- parts --------------------------------------------------------------------------------------------

    def _values(self, columns: Sequence[Column]) -> str:
        return f"({', '.join(literal(self._rng, column) for column in columns)})"

    def _set(self, table: Table) -> str:
        columns = [column for column in table.written if column.key != "PRI"] or list(table.written)
        some = self._rng.sample(columns, min(len(columns), self._rng.choice([1, 1, 2, 3])))
        return ", ".join(f"{column.quoted} = {literal(self._rng, column)}" for column in some) or "x = 1"

    def _where(self, table: Table) -> str:
        column = self._rng.choice(table.key or table.columns)
        order = f" ORDER BY {column.quoted} {self._rng.choice(['', 'DESC'])} LIMIT {self._rng.randint(1, 3)}"
        return self._rng.choice(
            [
                order,
                order,
                f" WHERE {column.quoted} = {literal(self._rng, column)}",
                f" WHERE {column.quoted} >= {literal(self._rng, column)}{order}",
                f" WHERE {column.quoted} IS NOT NULL AND RAND({self._rng.randrange(99)}) < 0.3",
            ]
        )


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.quoted for column in columns)
