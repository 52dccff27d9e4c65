"""Silver's columns beside the source's, by the section `tables.computed` of a pipeline file.

In:  patterns of tables, names, types and expressions, as pydantic gets them.
Out: ComputedRule, frozen.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from tidegate.computed.row_expressions import ComputedColumn, check_type, read_expression
from tidegate.config.table_keys.table_rule import TableRule


class ComputedRule(TableRule):
    """One more column of some tables."""

    name: str = Field(description="The column's name in silver", pattern=r"^[A-Za-z]\w*$")
    type: str = Field(
        description="Its type: boolean, int, bigint, double, string, date, timestamp (UTC), timestamp_ntz, decimal(p,s)"
    )
    expression: str = Field(
        "", description="Its value, in DuckDB's SQL, from silver's other columns, e.g. CAST(created_at AS DATE)"
    )
    function: str = Field(
        "",
        description="In place of expression: a function in Python that gives the values, by the name of its entry point"
        " in the group tidegate.functions (docs/computed-functions.md)",
        pattern=r"^([A-Za-z][\w.-]*)?$",
    )
    columns: tuple[str, ...] = Field((), description="Silver's columns that the function takes, in order")

    @field_validator("type")
    @classmethod
    def _type(cls, kind: str) -> str:
        return check_type(kind)

    @field_validator("expression")
    @classmethod
    def _expression(cls, text: str) -> str:
        if text:
            read_expression(text)
        return text

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Its callers ask for the function: Airflow's parser loads none."""
        if bool(self.expression) == bool(self.function):
            raise ValueError("give an expression, or a function with its columns")
        if bool(self.columns) != bool(self.function):
            raise ValueError("a function takes columns" if self.function else "columns are those of a function")
        return self

    @property
    def column(self) -> ComputedColumn:
        return ComputedColumn(self.name, self.type, self.expression, self.function, self.columns)
