"""Columns that silver's files are ordered by, by the section `tables.clustering` of a pipeline file.

In:  patterns of tables and names of columns, as pydantic gets them.
Out: ClusterRule, frozen.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from tidegate.config.table_keys.table_rule import TableRule


class ClusterRule(TableRule):
    """How some tables are clustered."""

    columns: tuple[str, ...] = Field(
        description="Columns of silver, the most important first, at most 4. maintain orders the files by them, so a"
        " query with a condition on them reads fewer files. They must be among the table's first 32 columns",
        min_length=1,
        max_length=4,
    )

    @field_validator("columns")
    @classmethod
    def _once(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(columns)) < len(columns):
            raise ValueError("a column is named twice")
        return columns
