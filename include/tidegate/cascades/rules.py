"""Foreign keys as rules: whose rows change with whose, and how.

In:  a child's version, its parent's.
Out: Rules; a Doubt that says in a phrase why one can't be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.cascades.values import Doubt, Likeness, likeness
from tidegate.schema.model.columns import Column, Generated, TableVersion, VersionStatus
from tidegate.schema.model.unlogged import ForeignKey

Name = tuple[str, str]
_FOLLOWED: Final = ("", "CASCADE", "SET NULL")


@dataclass(frozen=True, slots=True)
class Rule:
    """A foreign key at work. id: as InnoDB orders them. columns: of the child, parent_columns: which they refer to; all
    by their names in silver, in order. fixed: columns whose values have no spaces at their end (CHAR).
    """

    id: str
    child: Name
    parent: Name
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    likeness: tuple[Likeness, ...]
    fixed: frozenset[str] = frozenset()

    def form(self, cells: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...] | None:
        """The value that two related rows share; None where a NULL matches nothing. Raises Doubt."""
        values = [cells[name] for name in names]
        if any(value is None for value in values):
            return None
        try:
            return tuple(kind.form(value) for kind, value in zip(self.likeness, values, strict=True))
        except Doubt as doubt:
            raise Doubt(doubt.why, self.child) from None


def rules_of(child: TableVersion, parents: Mapping[Name, TableVersion | None]) -> list[Rule]:
    """The foreign keys of a version that act unseen. parents: their versions at that time; a missing one has no rows
    to go. Raises Doubt.
    """
    keys = [key for key in child.foreign_keys if key.acts_unseen]
    if keys:
        _check_child(child)
    with_parent = [(key, parent) for key in keys if (parent := parents.get(key.parent)) is not None]
    return [_rule(child, key, parent) for key, parent in with_parent if parent.status is not VersionStatus.DROPPED]


def links_of(table: TableVersion, parents: Mapping[Name, TableVersion | None]) -> list[Rule]:
    """The keys of a table whose own rows aren't followed: each one tells whether a parent's change may have reached
    them.

    Its key, its partitions and the comparison of values don't matter here. Raises Doubt.
    """
    links = []
    for key in table.foreign_keys:
        parent = parents.get(key.parent)
        if key.acts_unseen and parent is not None and parent.status is not VersionStatus.DROPPED:
            _check_columns(key)
            own_columns, theirs = _columns(table, key, parent)
            likenesses = (Likeness.EXACT,) * len(theirs)
            links.append(_made(table, key, own_columns, theirs, likenesses))
    return links


def check_definition(child: TableVersion) -> None:
    """Whether a version's own keys can be followed at all, whatever their parents are. Raises Doubt."""
    keys = [key for key in child.foreign_keys if key.acts_unseen]
    if keys:
        _check_child(child)
    for key in keys:
        _check_key(key)


def _check_child(child: TableVersion) -> None:
    if child.engine:
        raise Doubt(f"its engine is {child.engine.upper()}")
    if not child.key:
        raise Doubt("it has no key")
    if child.partitioning is not None:
        raise Doubt("it has partitions")
    if any(index.hidden_end for index in child.indexes) or any(
        column.generation_expression.startswith("ROW ") for column in child.columns
    ):
        raise Doubt("it is system-versioned")


def _rule(child: TableVersion, key: ForeignKey, parent: TableVersion) -> Rule:
    named = f"foreign key {key.name}"
    _check_key(key)
    own_columns, theirs = _columns(child, key, parent)
    generated = [column.name for column in child.columns if column.generated is not Generated.NO]
    if generated and (key.on_update or key.on_delete == "SET NULL"):
        raise Doubt(f"{named} changes values, and {generated[0]} is generated")
    likenesses = tuple(likeness(own, other) for own, other in zip(own_columns, theirs, strict=True))
    return _made(child, key, own_columns, theirs, likenesses)


def _columns(child: TableVersion, key: ForeignKey, parent: TableVersion) -> tuple[list[Column], list[Column]]:
    """The columns of the child and of its parent, whose rows the log has. Raises Doubt."""
    named = f"foreign key {key.name}"
    if parent.status is VersionStatus.UNPROVEN:
        raise Doubt(f"the columns of {'.'.join(key.parent)}, the parent of {named}, aren't known")
    if parent.engine:
        raise Doubt(f"the engine of {parent.name}, the parent of {named}, is {parent.engine.upper()}")
    if any(index.hidden_end for index in parent.indexes):
        raise Doubt(f"{parent.name}, the parent of {named}, is system-versioned")
    own_columns = [_column(child, name, named) for name in key.columns]
    return own_columns, [_column(parent, name, named) for name in key.parent_columns]


def _made(
    child: TableVersion, key: ForeignKey, own_columns: list[Column], theirs: list[Column], like: tuple[Likeness, ...]
) -> Rule:
    return Rule(
        f"{child.database}/{key.name}",
        (child.database, child.table),
        key.parent,
        tuple(column.silver for column in own_columns),
        tuple(column.silver for column in theirs),
        key.on_delete,
        key.on_update,
        like,
        frozenset(column.silver for column in own_columns if column.type.startswith("char")),
    )


def _check_columns(key: ForeignKey) -> None:
    if not key.columns or len(key.columns) != len(key.parent_columns):
        raise Doubt(f"which columns foreign key {key.name} is of was never recorded")


def _check_key(key: ForeignKey) -> None:
    _check_columns(key)
    for rule in (key.on_delete, key.on_update):
        if rule not in _FOLLOWED:
            raise Doubt(f"foreign key {key.name} has {rule}")


def _column(version: TableVersion, name: str, named: str) -> Column:
    column = next((candidate for candidate in version.columns if candidate.name.lower() == name.lower()), None)
    if column is None:
        raise Doubt(f"column {name} of {named} isn't a column of {version.name}")
    return column
