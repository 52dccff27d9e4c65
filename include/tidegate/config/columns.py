"""Columns that silver has of a table, by the section `tables.columns` of a pipeline file.

In:  patterns of tables and of columns, as pydantic gets them.
Out: ColumnRule, frozen. KeptColumns: the rules of one table, which answer for a column's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from pydantic import Field, field_validator, model_validator

from tidegate.config.section import Section
from tidegate.config.table_patterns import compile_pattern, matches


class ColumnRule(Section):
    """Some columns of some tables."""

    match: str = Field(description="Pattern database.table of silver tables")
    include: tuple[str, ...] = Field(
        (),
        description="Regular expressions for the whole name of a column: silver has these columns and the key's only",
    )
    exclude: tuple[str, ...] = Field(
        (), description="Regular expressions for the whole name of a column: silver has all columns but these"
    )

    @field_validator("match")
    @classmethod
    def _pattern(cls, pattern: str) -> str:
        compile_pattern(pattern)
        return pattern

    @field_validator("include", "exclude")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            try:
                _compiled(name)
            except re.error as error:
                raise ValueError(f"{name}: not a regular expression: {error}") from None
        return names

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if bool(self.include) == bool(self.exclude):
            raise ValueError("give include or exclude")
        return self

    def takes(self, column: str) -> bool:
        """Whether silver has a column of this name, as far as this rule says."""
        listed = any(_compiled(name).fullmatch(column) for name in self.include or self.exclude)
        return listed == bool(self.include)


@dataclass(frozen=True, slots=True)
class KeptColumns:
    """The rules of one silver table; without a rule it has all columns."""

    rules: tuple[ColumnRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules)

    def take(self, column: str, *, of_key: bool) -> bool:
        """Whether silver has a column. It has those of the key, unless a rule excludes them."""
        return all(rule.takes(column) or (of_key and bool(rule.include)) for rule in self.rules)


def kept_columns(rules: tuple[ColumnRule, ...], database: str, table: str) -> KeptColumns:
    """The rules whose pattern is a silver table's, or the table's that an online schema change puts it beside."""
    if not rules:
        return ALL
    beside = _BESIDE.fullmatch(table)
    names = (table, beside["of"]) if beside else (table,)
    return KeptColumns(tuple(rule for rule in rules if any(matches((rule.match,), database, name) for name in names)))


ALL = KeptColumns()
# gh-ost's and pt-online-schema-change's tables: those that they fill, and those that they leave. The same rows are in them.
_BESIDE = re.compile(r"_+(?P<of>.+?)(_\d{8,14})?_(gho|ghc|del|new|old)")


@lru_cache(maxsize=1024)
def _compiled(name: str) -> re.Pattern[str]:
    """Names of columns don't tell case apart at the source."""
    return re.compile(name, re.IGNORECASE)
