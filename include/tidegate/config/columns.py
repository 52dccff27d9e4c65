"""Columns that silver has of a table, by the section `tables.columns` of a pipeline file.

In:  patterns of tables and of columns, as pydantic gets them.
Out: ColumnRule, frozen.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from tidegate.config.column_names import check_names, column_pattern
from tidegate.config.section import Section
from tidegate.config.table_patterns import compile_pattern


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
        return check_names(names)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if bool(self.include) == bool(self.exclude):
            raise ValueError("give include or exclude")
        return self

    def takes(self, column: str) -> bool:
        """Whether silver has a column of this name, as far as this rule says."""
        listed = any(column_pattern(name).fullmatch(column) for name in self.include or self.exclude)
        return listed == bool(self.include)
