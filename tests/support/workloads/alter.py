"""Actions of ALTER TABLE, drawn at random, and what a table has afterwards.

In:  a seeded random.Random, ColumnTypes by name, a Shape.
Out: the action's text; the Shape is changed. "" when it has no column for such an action.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.support.workloads.types import ColumnType


@dataclass
class Shape:
    """What a table has. columns: name -> name of its type, without id and computed ones. partitions: names."""

    key: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()

    def copy(self) -> Shape:
        return replace(self, columns=dict(self.columns))


class Actions:
    """Of one workload: a new column's name is never used again."""

    def __init__(self, rng: random.Random, types: Mapping[str, ColumnType]) -> None:
        self.rng = rng
        self.types = types
        self.count = 0

    def draw(self, shape: Shape) -> list[str]:
        """One to four actions of one statement, in this order."""
        makers: tuple[Callable[[Shape], str], ...] = (
            self._add, self._add, self._drop, self._rename_column, self._retype, self._retype, self._change,
            self._swap_columns, self._index, self._id,
        )  # fmt: skip
        found = [self.rng.choice(makers)(shape) for _ in range(self.rng.choice((1, 1, 2, 3, 4)))]
        return [action for action in found if action]

    def column(self) -> str:
        self.count += 1
        return self.rng.choice(("c{}", "C{}", "`c é{}`", "c{}")).format(self.count).replace(" ", "_")

    def kind(self) -> str:
        return self.rng.choice(list(self.types))

    def _place(self, shape: Shape) -> str:
        return self.rng.choice(("", "", " FIRST", " AFTER id", *(f" AFTER {name}" for name in shape.columns)))

    def picked(self, shape: Shape) -> str | None:
        free = sorted(name for name in shape.columns if name not in shape.key)
        return self.rng.choice(free) if free else None

    def _add(self, shape: Shape) -> str:
        kind, column = self.kind(), self.column()
        default, text = self.types[kind].default, self.types[kind].sql
        choices = ["", f" DEFAULT {default}", f" NOT NULL DEFAULT {default}"] if default else [""]
        if "NULL" in text:
            choices = ["", f" DEFAULT {default}"]
        place = self._place(shape)
        shape.columns[column] = kind
        return f"ADD COLUMN {column} {text}{self.rng.choice(choices)}{place}"

    def _drop(self, shape: Shape) -> str:
        column = self.picked(shape)
        if column is None:
            return ""
        del shape.columns[column]
        return f"DROP COLUMN {column}"

    def _rename_column(self, shape: Shape) -> str:
        column = self.picked(shape)
        if column is None:
            return ""
        new = column.swapcase() if self.rng.random() < 0.2 else self.column()
        self._renamed(shape, column, new)
        return f"RENAME COLUMN {column} TO {new}"

    @staticmethod
    def _renamed(shape: Shape, old: str, new: str) -> None:
        shape.columns = {new if name == old else name: kind for name, kind in shape.columns.items()}

    def _swap_columns(self, shape: Shape) -> str:
        free = sorted(name for name in shape.columns if name not in shape.key)
        if len(free) < 2:
            return ""
        one, two = self.rng.sample(free, 2)
        shape.columns[one], shape.columns[two] = shape.columns[two], shape.columns[one]
        return f"RENAME COLUMN {one} TO {two}, RENAME COLUMN {two} TO {one}"

    def _retyped(self, shape: Shape) -> tuple[str, str] | None:
        found = sorted(n for n, kind in shape.columns.items() if self.types[kind].becomes and n not in shape.key)
        if not found:
            return None
        column = self.rng.choice(found)
        return column, self.rng.choice(self.types[shape.columns[column]].becomes)

    def _retype(self, shape: Shape) -> str:
        """To a type that all values fit; the log shows none of them."""
        found = self._retyped(shape)
        if found is None:
            return ""
        column, kind = found
        shape.columns[column] = kind
        place = self._place(replace(shape, columns={n: k for n, k in shape.columns.items() if n != column}))
        return f"MODIFY {column} {self.types[kind].sql}{place}"

    def _change(self, shape: Shape) -> str:
        found = self._retyped(shape)
        if found is None:
            return ""
        column, kind = found
        new = self.column()
        shape.columns[column] = kind
        self._renamed(shape, column, new)
        return f"CHANGE {column} {new} {self.types[kind].sql} COMMENT 'was {column}'"

    def _index(self, shape: Shape) -> str:
        self.count += 1
        return f"ADD INDEX i{self.count} (id)"

    def _id(self, shape: Shape) -> str:
        """Without NOT NULL a unique key is none any more."""
        null = self.rng.choice(("", " NOT NULL"))
        return f"MODIFY id {self.rng.choice(('INT', 'BIGINT'))}{null}{self.rng.choice(('', ' FIRST'))}"
