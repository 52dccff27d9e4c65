"""Silver's columns beside the source's, by the section `tables.computed` of a pipeline file.

In:  patterns of tables, names, types and expressions, as pydantic gets them.
Out: ComputedRule, frozen.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from tidegate.config.table_rule import TableRule
from tidegate.row_expressions import ComputedColumn, check_type, read_expression


class ComputedRule(TableRule):
    """One more column of some tables."""

    name: str = Field(description="The column's name in silver", pattern=r"^[A-Za-z]\w*$")
    type: str = Field(
        description="Its type: boolean, int, bigint, double, string, date, timestamp (UTC), timestamp_ntz, decimal(p,s)"
    )
    expression: str = Field(
        description="Its value, in DuckDB's SQL, from silver's other columns, e.g. CAST(created_at AS DATE)"
    )

    @field_validator("type")
    @classmethod
    def _type(cls, kind: str) -> str:
        return check_type(kind)

    @field_validator("expression")
    @classmethod
    def _expression(cls, text: str) -> str:
        read_expression(text)
        return text

    @property
    def column(self) -> ComputedColumn:
        return ComputedColumn(self.name, self.type, self.expression)
