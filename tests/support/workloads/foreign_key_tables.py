"""Tables of a random schema of foreign keys, and statements that change them.

In:  a generator of random numbers.
Out: CREATE TABLEs; DDL, and what the schema is once the server took it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

# What a table's name begins with: a usual one, one that keeps deleted rows, one without a key, one that is left out.
KINDS: Final = {"t": 0.86, "soft": 0.08, "bare": 0.03, "out": 0.03}
_ACTIONS: Final = ("CASCADE", "CASCADE", "CASCADE", "SET NULL", "RESTRICT")
_NUMBERS: Final = ("INT", "INT", "BIGINT UNSIGNED", "SMALLINT", "DECIMAL(10,2)")
_TEXTS: Final = ("VARCHAR(8)", "VARCHAR(8)", "CHAR(8)")
_COLLATIONS: Final = {
    "mariadb": ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_nopad_ci", "utf8mb4_uca1400_ai_ci"),
    "mysql": ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs"),
}
_KEYS: Final = (
    "PRIMARY KEY ({id})",
    "PRIMARY KEY ({id})",
    "PRIMARY KEY ({id})",
    "PRIMARY KEY ({a}, {id}), UNIQUE KEY ({id})",
    "PRIMARY KEY ({code}), UNIQUE KEY ({id})",
    "UNIQUE KEY ({id})",
)


@dataclass(slots=True)
class TableDrawn:
    """A table as it is now. keys: names of its constraints."""

    name: str
    id: str = "id"
    a: str = "a"
    code: str = "code"
    a_needed: bool = False
    code_needed: bool = False
    keys: list[str] = field(default_factory=list)


class Drawn:
    """tables: as they are called now. elsewhere: a database whose tables may be parents."""

    def __init__(self, draw: random.Random, flavour: str, elsewhere: str) -> None:
        self._draw, self._elsewhere = draw, elsewhere
        self._number, self._text = draw.choice(_NUMBERS), draw.choice(_TEXTS)
        self._collations = draw.sample(_COLLATIONS[flavour], 2)
        kinds = draw.choices(list(KINDS), list(KINDS.values()), k=draw.randint(3, 6))
        self.tables = [TableDrawn(f"{kind}{number}") for number, kind in enumerate(kinds)]
        self._next = len(self.tables)

    def creates(self) -> list[str]:
        return [self._created(table, self.tables[: number + 1]) for number, table in enumerate(self.tables)]

    def _created(self, table: TableDrawn, parents: list[TableDrawn]) -> str:
        draw = self._draw
        bare = table.name.startswith("bare")
        key = "KEY ({id})" if bare else draw.choice(_KEYS)
        table.a_needed, table.code_needed = "({a}" in key, "({code}" in key
        needed = " NOT NULL" if table.code_needed else ""
        columns = [
            f"{table.id} {self._number}{'' if bare else ' NOT NULL'}",
            f"{table.a} {self._number}{' NOT NULL' if table.a_needed else ''}",
            "b INT",
            f"{table.code} {self._text} COLLATE {draw.choice(self._collations)}{needed}",
            "v VARCHAR(20) DEFAULT 'v'",
            key.format(id=table.id, a=table.a, code=table.code),
            f"{'' if bare or draw.random() < 0.3 else 'UNIQUE '}KEY code ({table.code})",
            f"{'' if bare else 'UNIQUE '}KEY ab ({table.id}, b)",
        ]
        columns += [self._key(table, parents, of) for of in ("a", "a", "b", "code", "ab") if draw.random() < 0.4]
        return f"CREATE TABLE {table.name} ({', '.join(columns)})"

    def _key(self, table: TableDrawn, parents: list[TableDrawn], of: str) -> str:
        draw = self._draw
        parent = draw.choice(parents)
        mine = {"a": table.a, "b": "b", "code": table.code, "ab": f"{table.a}, b"}[of]
        theirs = {"code": parent.code, "ab": f"{parent.id}, b"}.get(of, parent.id)
        where = parent.name
        if self._elsewhere and draw.random() < 0.1:
            where, theirs = f"{self._elsewhere}.t0", {"code": "code", "ab": "id, b"}.get(of, "id")
        needed = (table.a_needed and of in ("a", "ab")) or (table.code_needed and of == "code")
        actions = [action for action in _ACTIONS if not needed or action != "SET NULL"]
        name = f"{draw.choice(['Z', 'k', 'm'])}_{table.name}_{draw.randint(1, 999)}"
        named = draw.random() < 0.4
        if named:
            table.keys.append(name)
        return (
            f"{f'CONSTRAINT {name} ' if named else ''}FOREIGN KEY ({mine}) REFERENCES {where} ({theirs})"
            f" ON DELETE {draw.choice(actions)} ON UPDATE {draw.choice(actions)}"
        )

    def ddl(self) -> tuple[bool, list[str], Callable[[], None]]:
        """Whether it goes without checks, the statements, and what to call once they all are done."""
        draw = self._draw
        table = draw.choice(self.tables)
        number, kind = draw.randint(1, 99), draw.random()

        def nothing() -> None:
            return None

        if kind < 0.2:
            return False, [f"ALTER TABLE {table.name} ADD x{number} INT DEFAULT {number}"], nothing
        if kind < 0.4:
            key = draw.choice([*table.keys, f"{table.name}_ibfk_1"])
            return False, [f"ALTER TABLE {table.name} DROP FOREIGN KEY {key}"], nothing
        if kind < 0.55:
            what = self._key(table, self.tables, draw.choice(["a", "code", "ab"]))
            return draw.random() < 0.5, [f"ALTER TABLE {table.name} ADD {what}"], nothing
        if kind < 0.62:
            return False, [f"ALTER TABLE {table.name} CHANGE v v VARCHAR({20 + number})"], nothing
        if kind < 0.75:
            return self._renamed(table)
        if kind < 0.87:
            return self._column_renamed(table, number)
        if kind < 0.93:
            return True, [f"TRUNCATE TABLE {table.name}"], nothing
        again = TableDrawn(table.name)
        made = self._created(again, self.tables)

        def took() -> None:
            self.tables[self.tables.index(table)] = again

        return True, [f"DROP TABLE {table.name}", made], took

    def _renamed(self, table: TableDrawn) -> tuple[bool, list[str], Callable[[], None]]:
        new = f"{table.name.rstrip('0123456789')}{self._next}"
        self._next += 1

        def took() -> None:
            table.name = new

        return False, [f"RENAME TABLE {table.name} TO {new}"], took

    def _column_renamed(self, table: TableDrawn, number: int) -> tuple[bool, list[str], Callable[[], None]]:
        which = self._draw.choice(["id", "a", "code"])
        old, new = getattr(table, which), f"{which}{number}"

        def took() -> None:
            setattr(table, which, new)

        return False, [f"ALTER TABLE {table.name} RENAME COLUMN {old} TO {new}"], took
