"""The tables that a hostile run has at its source now, as information_schema tells.

In:  a server.
Out: Table and its columns; HOSTILE, the databases; table_of(): which table a folder of the lake is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.soak.hostile.columns import Column
from tidegate.local.server import Server

HOSTILE: Final = ("hostile", "hostile_2")
TABLES_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Table:
    """One base table. partitions: their names."""

    database: str
    name: str
    engine: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...]
    foreign_keys: tuple[str, ...]

    @property
    def quoted(self) -> str:
        return f"{self.database}.`{self.name}`"

    @property
    def dotted(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def written(self) -> tuple[Column, ...]:
        """Columns that a statement may give values."""
        return tuple(column for column in self.columns if not column.generated)

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.key == "PRI")


def tables_at(server: Server) -> list[Table]:
    """In order of their names."""
    with server.connect() as connection, connection.cursor() as cursor:

        def rows(select: str) -> list[tuple[str, ...]]:
            cursor.execute(select, (HOSTILE,))
            return [tuple(_text(value) for value in row) for row in cursor]

        names = rows(
            "SELECT table_schema, table_name, engine FROM information_schema.tables WHERE table_schema IN %s"
            " AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1, 2"
        )
        columns = rows(
            "SELECT table_schema, table_name, column_name, data_type, column_type, is_nullable, extra, column_key"
            " FROM information_schema.columns WHERE table_schema IN %s ORDER BY 1, 2, ordinal_position"
        )
        partitions = rows(
            "SELECT table_schema, table_name, partition_name FROM information_schema.partitions"
            " WHERE table_schema IN %s AND partition_name IS NOT NULL ORDER BY partition_ordinal_position"
        )
        keys = rows(
            "SELECT table_schema, table_name, constraint_name FROM information_schema.table_constraints"
            " WHERE table_schema IN %s AND constraint_type = 'FOREIGN KEY' ORDER BY 3"
        )
    return [
        Table(
            database,
            name,
            engine,
            tuple(
                Column(
                    column,
                    kind.lower(),
                    whole.lower() if "enum" not in whole and "set" not in whole else whole,
                    nullable == "YES",
                    extra,
                    key,
                )
                for at, of, column, kind, whole, nullable, extra, key in columns
                if (at, of) == (database, name)
            ),
            tuple(dict.fromkeys(part for at, of, part in partitions if (at, of) == (database, name))),
            tuple(key for at, of, key in keys if (at, of) == (database, name)),
        )
        for database, name, engine in names
    ]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else "" if value is None else str(value)


def table_of(path: str) -> str:
    """`database.table` of a folder in the lake, in whose name ~hex~ are odd characters."""
    return ".".join(map(_unfolded, path.split("/")[-2:]))


def _unfolded(name: str) -> str:
    parts = name.split("~")
    return "".join(part if at % 2 == 0 else chr(int(part, 16)) for at, part in enumerate(parts))
