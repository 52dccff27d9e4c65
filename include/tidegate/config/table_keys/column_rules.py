"""Columns that silver has of a table, by the section `tables.columns` of a pipeline file.

In:  patterns of tables and of columns, as pydantic gets them.
Out: ColumnRule, frozen.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from tidegate.config.table_keys.column_names import check_names, column_pattern
from tidegate.config.table_keys.table_rule import TableRule


class ColumnRule(TableRule):
    """Some columns of some tables."""

    include: tuple[str, ...] = Field(
        (),
        description="Regular expressions for the whole name of a column: silver has these columns and the key's only",
    )
    exclude: tuple[str, ...] = Field(
        (), description="Regular expressions for the whole name of a column: silver has all columns but these"
    )

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
