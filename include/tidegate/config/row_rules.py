"""Rows that silver has of a table, by the section `tables.rows` of a pipeline file.

In:  patterns of tables, conditions as text, as pydantic gets them.
Out: RowRule, frozen.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.model import Condition
from tidegate.config.section import Section
from tidegate.config.table_patterns import compile_pattern


class RowRule(Section):
    """Some rows of some tables."""

    match: str = Field(description="Pattern database.table of silver tables")
    where: str = Field(
        description="A condition on the row's columns, e.g. region IN ('EU', 'UK') AND price >= 10: silver has the rows"
        " that it is true of"
    )

    @field_validator("match")
    @classmethod
    def _pattern(cls, pattern: str) -> str:
        compile_pattern(pattern)
        return pattern

    @field_validator("where")
    @classmethod
    def _condition(cls, text: str) -> str:
        read_condition(text)
        return text

    @property
    def condition(self) -> Condition:
        return read_condition(self.where)
