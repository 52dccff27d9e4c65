"""The columns and rows that silver has of a table, by tables.columns, masks, rows, computed and renames of a file.

In:  rules, the name of a silver table.
Out: KeptColumns: the rules of one table, which answer for a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tidegate.computed.row_expressions import ComputedColumn
from tidegate.conditions.model import All, Condition
from tidegate.config.table_keys.column_rules import ColumnRule
from tidegate.config.table_keys.computed_rules import ComputedRule
from tidegate.config.table_keys.masks import MaskKind, MaskRule
from tidegate.config.table_keys.rename_rules import RenameRule, names_by
from tidegate.config.table_keys.row_rules import RowRule
from tidegate.config.table_keys.table_patterns import matching_places
from tidegate.config.table_keys.table_rule import TableRule

R = TypeVar("R", bound=TableRule)


@dataclass(frozen=True, slots=True)
class KeptColumns:
    """The rules of one silver table; without a rule it has all columns, as they are."""

    rules: tuple[ColumnRule, ...] = ()
    masks: tuple[MaskRule, ...] = ()
    where: tuple[RowRule, ...] = ()
    more: tuple[ComputedRule, ...] = ()
    renames: tuple[RenameRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.hides or self.more or self.renames)

    @property
    def hides(self) -> bool:
        """Whether silver lacks something of the source's rows."""
        return bool(self.rules or self.masks or self.where)

    @property
    def computed(self) -> tuple[ComputedColumn, ...]:
        """The columns beside the source's. The first of two rules with one name counts."""
        columns: dict[str, ComputedColumn] = {}
        for rule in self.more:
            columns.setdefault(rule.name.lower(), rule.column)
        return tuple(columns.values())

    @property
    def names(self) -> Mapping[str, str]:
        """Silver's names by the source's, in lower case; of all other columns they are the source's."""
        return names_by(self.renames)

    @property
    def condition(self) -> Condition | None:
        """True of the rows that silver has; None: it has all."""
        parts = tuple(rule.condition for rule in self.where)
        return All(parts) if len(parts) > 1 else parts[0] if parts else None

    def take(self, column: str, *, of_key: bool) -> bool:
        """Whether silver has a column of this name at the source: the key's, unless excluded, too."""
        return all(rule.takes(column) or (of_key and bool(rule.include)) for rule in self.rules)

    def has_plain(self, column: str, comment: str, *, of_key: bool) -> bool:
        """Whether silver has a column's values as they are."""
        return self.take(column, of_key=of_key) and self.mask(column, comment) is None

    def mask(self, column: str, comment: str) -> MaskRule | None:
        """The rule that masks a column of this name, with this comment at the source."""
        rule = self._first(column, comment)
        return None if rule is None or rule.how is MaskKind.PLAIN else rule

    def is_said_plain(self, column: str, comment: str) -> bool:
        """Whether a rule says of a column that it stays as it is."""
        rule = self._first(column, comment)
        return rule is not None and rule.how is MaskKind.PLAIN

    @property
    def goes_by_comment(self) -> bool:
        return any(rule.comment is not None for rule in self.masks)

    def _first(self, column: str, comment: str) -> MaskRule | None:
        return next((rule for rule in self.masks if rule.takes(column, comment)), None)


def kept_columns(every: KeptColumns, names: Iterable[tuple[str, str]]) -> KeptColumns:
    """The rules whose pattern is one of these silver tables'."""
    names = tuple(names)
    parts = _of(every.rules, names), _of(every.masks, names), _of(every.where, names), _of(every.more, names)
    return KeptColumns(*parts, _of(every.renames, names))


def _of(rules: tuple[R, ...], names: Iterable[tuple[str, str]]) -> tuple[R, ...]:
    places = set[int]()
    if rules:
        patterns = tuple(rule.match for rule in rules)
        for name in names:
            places.update(matching_places(patterns, *name))
    return tuple(map(rules.__getitem__, sorted(places)))


def beside(table: str) -> list[str]:
    """The tables beside which an online schema change may have put this one: both have the same rows."""
    name = _BESIDE.fullmatch(table)
    return ["_" * count + name["of"] for count in range(len(name["more"]))] if name else []


ALL = KeptColumns()
GHOST_LOG = "_ghc"  # ends the name of a table in which gh-ost writes how far it is
# gh-ost's and pt-online-schema-change's tables: those that they fill, and those that they leave.
_BESIDE = re.compile(r"(?P<more>_+)(?P<of>.+?)(_\d{8,14})?_(gho|ghc|del|new|old)", re.DOTALL)
