"""A rule of a pipeline file for some tables of silver.

In:  a pattern, as pydantic gets it.
Out: TableRule, frozen, for sections that say more.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from tidegate.config.section import Section
from tidegate.config.table_keys.table_patterns import compile_pattern


class TableRule(Section):
    """A rule with its tables."""

    match: str = Field(description="Pattern database.table of silver tables")

    @field_validator("match")
    @classmethod
    def _pattern(cls, pattern: str) -> str:
        compile_pattern(pattern)
        return pattern
