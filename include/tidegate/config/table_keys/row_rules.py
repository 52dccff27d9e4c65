"""Rows that silver has of a table, by the section `tables.rows` of a pipeline file.

In:  patterns of tables, conditions as text, as pydantic gets them.
Out: RowRule, frozen.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from tidegate.conditions.condition_text import read_condition
from tidegate.conditions.model import Condition
from tidegate.config.table_keys.table_rule import TableRule


class RowRule(TableRule):
    """Some rows of some tables."""

    where: str = Field(
        description="A condition on the row's columns, e.g. region IN ('EU', 'UK') AND price >= 10: silver has the rows"
        " that it is true of"
    )

    @field_validator("where")
    @classmethod
    def _condition(cls, text: str) -> str:
        read_condition(text)
        return text

    @property
    def condition(self) -> Condition:
        return read_condition(self.where)
