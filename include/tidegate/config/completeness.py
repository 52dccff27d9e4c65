"""The section `completeness` of a pipeline file: assets that tell other DAGs which hours are complete, and how far
silver is.

In:  the section, as pydantic gets it.
Out: a Completeness, frozen.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from tidegate import limits
from tidegate.config.section import Section
from tidegate.config.table_keys.table_patterns import compile_pattern


class Completeness(Section):
    """Assets with a partition for each hour of commit time at the sources."""

    hourly: bool = Field(
        False,
        description="Makes the DAG <name>__complete. When every commit of an hour is in silver, it adds the hour to the"
        " partitions of the asset <name>__complete",
    )
    tables: tuple[str, ...] = Field(
        (),
        max_length=limits.COMPLETE_TABLES_MAX,
        description="Tables of silver (database.table, no patterns) that have an asset <name>__complete__<table> of"
        " their own, besides the one of all tables",
    )
    include: tuple[str, ...] = Field(
        (),
        description="Patterns as in tables.include, of tables of silver. Each matching table has an asset, too, as soon as"
        " a DAG names it: Asset('<name>__complete__<table>')",
    )
    verified: bool = Field(
        False,
        description="Also makes assets <name>__verified__<table>: an hour is added when verify has shown that it is"
        " equal. Needs verify.each_table_hours",
    )

    each_minute: bool = Field(
        False,
        description="Makes the DAG <name>__progress: the asset <name>__silver gets an event with each minute of"
        " progress, besides the end of a run of apply",
    )

    @field_validator("tables")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            database, dot, table = name.partition(".")
            if not (database and dot and table) or "*" in name:
                raise ValueError(f"{name!r} is no table of silver: write database.table")
        if len(set(names)) < len(names):
            raise ValueError("a table stands here twice")
        return names

    @field_validator("include")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            compile_pattern(pattern)
        return patterns

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if (self.tables or self.include or self.verified) and not self.hourly:
            raise ValueError("tables, include and verified have an effect with hourly: true alone")
        if self.verified and not (self.tables or self.include):
            raise ValueError("verified is of the tables that are named: name some")
        return self
