"""A table's indexes: the key of a row, and the server's additions to the written form.

In:  indexes as they are, IndexDefinitions to add, the columns.
Out: new indexes; the given ones are left as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tidegate.errors import DDLError
from tidegate.remedy import RECREATE
from tidegate.schema.ddl.tree import (
    Action,
    AddColumn,
    AddIndex,
    ChangeColumn,
    DropIndex,
    IndexDefinition,
    RenameColumn,
    RenameIndex,
    SetNotNull,
)
from tidegate.schema.model.charsets import bytes_per_character
from tidegate.schema.model.columns import Column, Generated, Index, IndexKind
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.type_table import GEOMETRIES, SET_MEMBERS_MAX
from tidegate.schema.model.types import TypeText, enum_members, parse_type

# Of these a key may hold a prefix; for any other type the server takes only its full length.
_PREFIXED = frozenset({"char", "varchar", "binary", "varbinary"})
_UNBOUNDED = frozenset(
    {"tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob", "json"}
)

_OF_MEMBERS = ("enum(", "set(")
_SET_BYTES = (1, 2, 3, 4, 8)

_MADE_KEY = "my_row_id"
_MADE_KEYS_SINCE = 80030

_Named = TypeVar("_Named", Column, Index)


def find(items: Iterable[_Named], name: str) -> _Named | None:
    """Names of columns and indexes are compared as the server does: without regard to case."""
    low = name.lower()
    return next((item for item in items if item.name.lower() == low), None)


def key_of(columns: Iterable[Column], indexes: Iterable[Index]) -> tuple[int, ...]:
    """The primary key, else the shortest unique key of whole, stored, NOT NULL columns (then by
    name), else ().
    """
    usable = {c.id for c in columns if not c.nullable and c.generated is not Generated.VIRTUAL}
    unique: list[tuple[int, str, tuple[int, ...]]] = []
    for index in indexes:
        if index.whole and usable.issuperset(index.parts):
            if index.kind is IndexKind.PRIMARY:
                return index.parts
            if index.kind is IndexKind.UNIQUE:
                unique.append((len(index.parts), index.name.lower(), index.parts))
    return min(unique)[2] if unique else ()


def first_place(
    columns: Sequence[Column], before: Sequence[Column], indexes: Iterable[Index], server: ServerVersion
) -> int:
    """Where FIRST is among columns: behind a primary key of MySQL's own making, while it is invisible.

    In sql_table.cc mysql_prepare_alter_table, is_generated_invisible_primary_key_column_name. before: the table's.
    """
    if server.mariadb or server.number < _MADE_KEYS_SINCE or columns[:1] == []:
        return 0
    key, first = before[0], columns[0]
    made = key.name.lower() == _MADE_KEY and key.type == "bigint unsigned" and key.auto_increment and key.invisible
    return int(made and first.id == key.id and key_of(before, indexes) == (key.id,))


def with_row_end(indexes: tuple[Index, ...], columns: Iterable[Column], *, versioned: bool) -> tuple[Index, ...]:
    """The server puts the row end of a system-versioned table after the columns of each unique key."""
    end = next((c.id for c in columns if c.generation_expression == "ROW END"), 0)
    if not (end or versioned or any(index.hidden_end for index in indexes)):
        return indexes
    return tuple(
        index
        if index.kind is IndexKind.PLAIN or end in index.parts
        else replace(index, parts=(*index.parts, end))
        if end
        else replace(index, hidden_end=versioned)
        for index in indexes
    )


def with_indexes(
    indexes: tuple[Index, ...], added: Iterable[IndexDefinition], columns: list[Column], period: Iterable[str] = ()
) -> tuple[Index, ...]:
    """All indexes, the added ones named and resolved to column ids.

    period: columns of the statement's periods; WITHOUT OVERLAPS puts those of the one that isn't
    the system's into a key.
    """
    all_indexes = list(indexes)
    by_name = {column.name.lower(): column.id for column in columns}
    by_id = {column.id: column for column in columns}
    names, made_for_keys = _Names(all_indexes), any(index.made_for_key for index in all_indexes)
    # What a foreign key needs comes last: an index that covers its columns makes its own superfluous.
    for definition in sorted(added, key=lambda d: d.made_for_key):
        parts = tuple(by_name.get(name.lower(), 0) for name in definition.columns)
        if definition.period:
            between = [c.id for name in period if (c := find(columns, name)) and not c.generation_expression]
            # An earlier statement may have made the period, and no version keeps it. No such index is a row's key, so
            # it does no harm that nobody knows two of its columns.
            parts = (*parts[:-1], *(between if len(between) == 2 else (0,)))
        if definition.made_for_key and any(index.parts[: len(parts)] == parts for index in all_indexes):
            continue
        if made_for_keys:
            all_indexes = [i for i in all_indexes if not (i.made_for_key and parts[: len(i.parts)] == i.parts)]
            names = _Names(all_indexes)
        name = names.take(definition)
        whole = not definition.period and all(
            part and _is_whole(by_id[part], prefix) for part, prefix in zip(parts, definition.prefixes, strict=False)
        )
        all_indexes.append(Index(name, definition.kind, parts, whole, definition.made_for_key))
        made_for_keys = made_for_keys or definition.made_for_key
    return tuple(all_indexes)


def check_periods(actions: Collection[Action]) -> None:
    """For a script, which shows the columns of each key. Raises DDLError where an earlier statement made the period."""
    over = any(isinstance(action, AddIndex) and action.definition.period for action in actions)
    if over and not any(isinstance(action, SetNotNull) for action in actions):
        raise DDLError("WITHOUT OVERLAPS of a period that an earlier statement made", remedy=RECREATE)


def _is_whole(column: Column, prefix: int) -> bool:
    """Whether a key part holds all of its column. In a geometry the server indexes the first bytes."""
    if column.type in GEOMETRIES:
        return False
    text = parse_type(column.type)
    if not prefix or text.base not in _PREFIXED:
        return not prefix or text.base not in _UNBOUNDED
    return prefix >= text.numbers[0]


class _Names:
    """Names of a table's indexes: the server calls one that has none after its first column (make_unique_key_name)."""

    def __init__(self, indexes: Iterable[Index]) -> None:
        self._taken = {index.name.lower() for index in indexes}
        self._next: dict[str, int] = {}  # the first number that may be free

    def take(self, definition: IndexDefinition) -> str:
        name = definition.name or self._free(definition.columns[0] or "functional_index")
        self._taken.add(name.lower())
        return name

    def _free(self, column: str) -> str:
        low = column.lower()
        if low not in self._taken and low != "primary":
            return column
        number = self._next.get(low, 2)
        while f"{low}_{number}" in self._taken:
            number += 1
        self._next[low] = number + 1
        return f"{column}_{number}"


def kept_indexes(
    before: Sequence[Column],
    old: Sequence[Index],
    actions: Sequence[Action],
    columns: Sequence[Column],
    became_text: set[int],
) -> tuple[Index, ...]:
    """Old indexes without what is dropped; an index goes with the last of its columns.

    The servers find a key's columns again by name: one that is dropped and added in one statement stays in its keys.
    """
    kept = {column.id: column.id for column in columns}
    added = {action.definition.name.lower() for action in actions if isinstance(action, AddColumn)}
    if added:
        new = {column.name.lower(): column.id for column in columns if column.name.lower() in added}
        kept |= {c.id: new[c.name.lower()] for c in before if c.id not in kept and c.name.lower() in new}
    dropped: set[str] = set()
    renamed: dict[str, str] = {}
    for action in actions:
        if isinstance(action, DropIndex):
            if find(old, action.name) is None:
                raise DDLError(f"the table has no index {action.name!r}", remedy=RECREATE)
            dropped.add(action.name.lower())
        elif isinstance(action, RenameIndex):
            renamed[action.old.lower()] = action.new
    indexes: list[Index] = []
    for index in old:
        parts = tuple(kept.get(part, 0) for part in index.parts if part == 0 or part in kept)
        if index.name.lower() not in dropped and parts:
            name = renamed.get(index.name.lower(), index.name)
            whole = index.whole and became_text.isdisjoint(parts)
            indexes.append(replace(index, name=name, parts=parts, whole=whole))
    return tuple(indexes)


def members_became_text(old: Sequence[Column], columns: Sequence[Column]) -> set[int]:
    """Ids of columns that were ENUM or SET and are text now, and of whose key MySQL makes a prefix.

    It takes the bytes that a value has in a row for the bytes of a text's beginning (sql_table.cc,
    mysql_prepare_alter_table). The key stays whole where they are no whole character of the old charset, as many as the
    longest value may have, or all of the new column.
    """
    before = {column.id: column for column in old if column.type.startswith(_OF_MEMBERS)}
    return {c.id for c in columns if c.id in before and _is_prefix(before[c.id], parse_type(c.type))}


def _is_prefix(was: Column, now: TypeText) -> bool:
    if now.base not in _PREFIXED | _UNBOUNDED:
        return False
    members, width = enum_members(was.type), bytes_per_character(was.charset)
    lengths = [len(member) for member in members]
    if was.type.startswith("set("):
        key_bytes = next(size for size in _SET_BYTES if min(len(members), SET_MEMBERS_MAX) <= 8 * size)
        longest = sum(lengths) + len(members) - 1
    else:
        key_bytes, longest = (1 if len(members) < 256 else 2), max(lengths)
    characters = key_bytes // width
    bounded = now.base in _PREFIXED
    return longest * width != key_bytes and characters > 0 and not (bounded and characters >= now.numbers[0])


def renamed_columns(actions: Iterable[Action]) -> frozenset[str]:
    """Old and new names of columns that get another one, in lower case."""
    pairs = [(action.old, action.new) for action in actions if isinstance(action, RenameColumn)]
    pairs += [(action.old, action.definition.name) for action in actions if isinstance(action, ChangeColumn)]
    return frozenset(name.lower() for old, new in pairs for name in (old, new) if old.lower() != new.lower())
