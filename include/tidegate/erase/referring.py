"""Tables below a person's rows by foreign keys, and the rows of these tables.

In:  control/schema_history; the table that an erasure begins with.
Out: the tables below it, parents first; a condition on the rows of each, made of the keys of its parents.

A foreign key of a table to itself isn't followed: it names other people's rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tidegate import tables
from tidegate.cascades.values import EXACT_KINDS, Doubt, Likeness, likeness
from tidegate.conditions.model import All, Compared, Condition, Literal, OneOf
from tidegate.conditions.model import Any as AnyOf
from tidegate.config import Pipeline
from tidegate.erase.reach import Followed, Pair
from tidegate.erase.subject import Key
from tidegate.errors import UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical


@dataclass(frozen=True, slots=True)
class References:
    """A condition on a child's rows. alike: its columns (in lower case) whose texts a collation compares."""

    condition: Condition
    alike: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key: columns of the child refer to parent_columns."""

    name: str
    child: Pair
    parent: Pair
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]

    def references(self, child: TableVersion, parent: TableVersion, keys: Collection[Key]) -> References:
        """To one of these keys of the parent. Raises UsageError."""
        names = list(map(str.lower, parent.key_names))
        referred = list(map(str.lower, self._referred(parent)))
        if sorted(names) != sorted(referred) or len(self.columns) != len(referred):
            raise self._refused(f"its foreign key {self.name} doesn't refer to the key of {'.'.join(self.parent)}")
        pairs, firsts, rows = self._pairs(parent), list[Literal](), list[Condition]()
        alike = self._alike(child, parent, pairs)
        for key in sorted(keys, key=repr):
            by_name = dict(zip(names, key, strict=True))
            row = [self._literal(by_name[name], alike.get(own)) for own, name in pairs]
            firsts.append(row[0])
            rows.append(All(tuple(map(_equal, self.columns, row))))
        one_column = len(self.columns) == 1
        return References(OneOf(self.columns[0], tuple(firsts)) if one_column else _any_of(rows), frozenset(alike))

    def _referred(self, parent: TableVersion) -> Sequence[str]:
        """MySQL 9 takes a reference without columns for one to the key."""
        return self.parent_columns or parent.key_names

    def _pairs(self, parent: TableVersion) -> list[tuple[str, str]]:
        """Names in lower case: the child's column, the parent's."""
        own, theirs = (map(str.lower, names) for names in (self.columns, self._referred(parent)))
        return list(zip(own, theirs, strict=True))

    def _alike(
        self, child: TableVersion, parent: TableVersion, pairs: Sequence[tuple[str, str]]
    ) -> dict[str, Likeness]:
        """The child's texts, as they compare today. Raises UsageError for two types.

        Equal values of these may be unequal: servers compare those of enums by number.
        """
        own, theirs = ({column.name.lower(): column for column in side.columns} for side in (child, parent))
        alike = dict[str, Likeness]()
        for name, other in pairs:
            column, target = own[name], theirs[other]
            if canonical(column).kind is Kind.TEXT:
                try:
                    alike[name] = likeness(column, target)
                except Doubt as doubt:
                    raise self._refused(f"its foreign key {self.name}: {doubt.why}") from None
            elif _type_of(column) != _type_of(target):
                what = f"{column.name} ({column.type}) refers to {target.name} ({target.type}), another type"
                raise self._refused(f"its foreign key {self.name}: {what}")
        return alike

    def _literal(self, value: Any, how: Likeness | None) -> Literal:
        """The value itself: each version of the child compares it by its own collation."""
        if isinstance(value, int | Decimal):
            return Decimal(value)
        if isinstance(value, datetime):
            return value.replace(tzinfo=None).isoformat(" ", "microseconds")
        if isinstance(value, date):
            return value.isoformat()
        if not isinstance(value, str):
            raise self._refused("its foreign key is binary")
        try:
            (how or Likeness.EXACT).form(value)
        except Doubt as doubt:
            raise self._refused(f"its foreign key {self.name}: {doubt.why}") from None
        return value

    def _refused(self, what: str) -> UsageError:
        return UsageError(what, where=".".join(self.child), remedy="erase from it first, by a --where of its own")


def _type_of(column: Column) -> object:
    """The same for two columns where equal values are equal in silver, too."""
    made = canonical(column)
    return (made.kind, made.arrow) if made.kind in EXACT_KINDS else column.type


def _equal(name: str, literal: Literal) -> Compared:
    return Compared(name, "=", literal)


def _any_of(parts: Sequence[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


@dataclass(frozen=True, slots=True)
class ReferringTables:
    """order: a table and all below it, parents first. links: child -> its foreign keys to tables of these."""

    order: tuple[Pair, ...]
    links: Mapping[Pair, Sequence[Link]] = field(default_factory=dict)

    @classmethod
    def alone(cls, table: Pair) -> ReferringTables:
        return cls((table,))

    @property
    def followed(self) -> frozenset[Followed]:
        """Each child and parent with the columns of a foreign key."""
        every = [link for links in self.links.values() for link in links]
        return frozenset((link.child, link.columns, link.parent, link.parent_columns) for link in every)

    @classmethod
    def below(cls, lake: LakeFiles, pipeline: Pipeline, source: str, table: Pair) -> ReferringTables:
        """Raises UsageError where foreign keys go in a circle."""
        by_parent = _links(lake, pipeline, source)
        reached, left, links = {table}, [table], dict[Pair, list[Link]]()
        while left:
            for link in by_parent.get(left.pop(), ()):
                links.setdefault(link.child, []).append(link)
                if link.child not in reached:
                    reached.add(link.child)
                    left.append(link.child)
        try:
            # Parents come first: a child's condition is made of the keys that its parents lose.
            graph = TopologicalSorter[Pair]()
            for child in sorted(reached):
                graph.add(child, *(link.parent for link in links.get(child, ())))
            return cls(tuple(graph.static_order()), links)
        except CycleError as error:
            circle = " -> ".join(map(".".join, error.args[1]))
            raise UsageError(
                f"foreign keys go in a circle: {circle}",
                where=".".join(table),
                remedy="erase from each of these tables, without --follow-keys",
            ) from None

    def references(
        self, child: TableVersion, parents: Mapping[Pair, tuple[TableVersion, Collection[Key]]]
    ) -> References | None:
        """Those of a table's rows. parents: tables with rows of the person. None: no row refers to these."""
        parts = list[References]()
        for link in self.links.get(child.physical.pair, ()):
            version, keys = parents.get(link.parent, (None, ()))
            if version is not None and keys:
                parts.append(link.references(child, version, keys))
        if not parts:
            return None
        alike = frozenset[str]().union(*(part.alike for part in parts))
        return References(_any_of([part.condition for part in parts]), alike)


def _links(lake: LakeFiles, pipeline: Pipeline, source: str) -> dict[Pair, list[Link]]:
    """Parent -> the foreign keys to it, of the pipeline's tables today."""
    columns = ["source", "database", "table", "version", "status", "foreign_keys"]
    newest: dict[Pair, Mapping[str, Any]] = {}
    for row in control.read(lake, tables.SCHEMA_HISTORY, columns=columns).to_pylist():
        pair = (row["database"], row["table"])
        if row["source"] == source and (pair not in newest or newest[pair]["version"] < row["version"]):
            newest[pair] = row
    links: dict[Pair, list[Link]] = {}
    for child, row in newest.items():
        if not pipeline.tables.keeps(*child) or row["status"] == VersionStatus.DROPPED:
            continue
        for key in json.loads(row["foreign_keys"] or "[]"):
            parent = (key["parent"][0], key["parent"][1])
            own, others = tuple(key.get("columns") or ()), tuple(key.get("parent_columns") or ())
            if parent != child:
                links.setdefault(parent, []).append(Link(key["name"], child, parent, own, others))
    return links
