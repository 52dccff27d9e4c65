"""The names of a table: at its source, and in silver.

In:  nothing; these are the values.
Out: splits(), folded(); Physical, Logical. They are tuples: a plain tuple of the same texts is equal to them, and
     finds them.
"""

from __future__ import annotations

from typing import NamedTuple


class Physical(NamedTuple):
    """A table at a source."""

    source: str
    database: str
    table: str

    @property
    def pair(self) -> tuple[str, str]:
        """Database and table: its name within the source."""
        return self.database, self.table

    @property
    def shown(self) -> str:
        return f"{self.database}.{self.table}"


class Logical(NamedTuple):
    """The silver table that physical ones flow into. routed: several may, by `tables.routes`."""

    database: str
    table: str
    routed: bool

    @property
    def name(self) -> str:
        """`database.table`: the key of states and windows."""
        return f"{self.database}.{self.table}"


def splits(text: str) -> list[tuple[str, str]]:
    """Every way to read `database.table`; only names that hold a dot themselves have more than one."""
    parts = text.split(".")
    return [(".".join(parts[:i]), ".".join(parts[i:])) for i in range(1, len(parts))]


def folded(name: str) -> str:
    """In lower case as the servers make it: one character for one."""
    return "".join(low if len(low := character.lower()) == 1 else character for character in name)
