"""Tables that change without row events: by a foreign key's action, or because their engine keeps rows elsewhere.

In:  clauses of a statement: foreign keys, ENGINE, UNION.
Out: ForeignKey, EngineOptions; hidden_changes.py says in words what the log lacks.

InnoDB carries out ON DELETE and ON UPDATE actions by itself, below the binlog: MariaDB and MySQL before 9.6 log the
parent's rows alone. MySQL 9.6 and later carry them out in the SQL layer, and log the child's rows too, unless
innodb_native_foreign_keys is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

TableName = tuple[str, str]

SEQUENCE: Final = "sequence"  # MariaDB's CREATE SEQUENCE: kept like a table of one row, but it is none
# A view has no rows of its own: its version says that no table has its name. A rename may give the name to another.
VIEW: Final = "view"
NO_VIEW: Final = "no view"  # it was one, and is gone
VIEWS: Final = frozenset({VIEW, NO_VIEW})
MERGES: Final = frozenset({"mrg_myisam", "merge"})
# Of all other engines the server may have put InnoDB in the place (NO_ENGINE_SUBSTITUTION).
_WITHOUT_KEYS: Final = frozenset({"myisam", "aria", "maria", "memory", "heap", "csv", "archive", "rocksdb", *MERGES})
_CHANGES_ROWS: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A constraint that changes this table's rows when the parent's change.

    on_delete, on_update: "" for an action without changes (RESTRICT, NO ACTION). logged: whether the server logs the
    changes. columns: of this table, in order, and parent_columns, the referenced ones; () where unknown, as in records
    of earlier releases.
    """

    name: str
    parent: TableName
    on_delete: str = ""
    on_update: str = ""
    logged: bool = False
    columns: tuple[str, ...] = ()
    parent_columns: tuple[str, ...] = ()

    @property
    def acts_unseen(self) -> bool:
        """Whether it changes rows that no row event tells of."""
        return bool(self.on_delete or self.on_update) and not self.logged


@dataclass(frozen=True, slots=True)
class Reference:
    """The content of REFERENCES. parent: its database is "" when none is written. name: of the constraint, "" for
    none.

    on_delete, on_update: in capitals, as written; "" when nothing is. columns: of the parent.
    """

    parent: TableName
    on_delete: str = ""
    on_update: str = ""
    name: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    name: str


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """ENGINE=, in lower case, "" when it isn't written; UNION=, the tables under a MERGE table, None likewise."""

    engine: str = ""
    union: tuple[TableName, ...] | None = None

    def __bool__(self) -> bool:
        return bool(self.engine) or self.union is not None


def action_kept(written: str) -> str:
    """The part of a referential action that counts."""
    return written if written in _CHANGES_ROWS else ""


def has_foreign_keys(engine: str) -> bool:
    """Whether tables of an engine (in lower case, "" for InnoDB) may have them; the others take and forget them."""
    return engine not in _WITHOUT_KEYS


def engine_kept(engine: str) -> str:
    """An engine's name as versions have it: "" for InnoDB."""
    low = engine.lower()
    return "" if low == "innodb" else low


def logged_as(keys: Iterable[ForeignKey], logged: bool) -> tuple[ForeignKey, ...]:
    """The same keys on a server with or without a log of their changes."""
    return tuple(replace(key, logged=logged) for key in keys)


def generated_name(table: str, keys: Iterable[ForeignKey]) -> str:
    """The servers' name for a constraint without a name: `table_ibfk_1`, one more than the largest there is."""
    start = f"{table}_ibfk_".lower()
    tails = (key.name[len(start) :] for key in keys if key.name.lower().startswith(start))
    return f"{table}_ibfk_{max((int(tail) for tail in tails if tail.isdigit()), default=0) + 1}"


def repointed_keys(
    keys: Iterable[ForeignKey], old: TableName, new: TableName, columns: Mapping[str, str]
) -> tuple[ForeignKey, ...]:
    """Keys whose parent, or columns of it, get another name. columns: old names in lower case -> new ones."""
    return tuple(
        replace(key, parent=new, parent_columns=_renamed(key.parent_columns, columns)) if key.parent == old else key
        for key in keys
    )


def keys_with_columns(keys: Iterable[ForeignKey], columns: Mapping[str, str]) -> tuple[ForeignKey, ...]:
    """Keys of a table whose own columns get other names."""
    return tuple(replace(key, columns=_renamed(key.columns, columns)) for key in keys) if columns else tuple(keys)


def _renamed(names: tuple[str, ...], columns: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(columns.get(name.lower(), name) for name in names)


def renamed_keys(keys: Iterable[ForeignKey], old: TableName, new: TableName) -> tuple[ForeignKey, ...]:
    """The keys of a table that gets another name: those whose names the server made from the old one, with it."""
    start = f"{old[1]}_ibfk_".lower()
    return tuple(
        replace(
            key,
            name=f"{new[1]}_ibfk_{key.name[len(start) :]}" if key.name.lower().startswith(start) else key.name,
            parent=new if key.parent == old else key.parent,
        )
        for key in keys
    )
