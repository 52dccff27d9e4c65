"""The section `tables` of a pipeline file: the kept tables, and their names.

In:  patterns and routes, as pydantic gets them.
Out: a Tables, frozen, which answers for a table's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from tidegate.config.section import Section
from tidegate.config.table_keys.cluster_rules import ClusterRule
from tidegate.config.table_keys.column_rules import ColumnRule
from tidegate.config.table_keys.comment_rules import CommentRule, SilverComments
from tidegate.config.table_keys.computed_rules import ComputedRule
from tidegate.config.table_keys.kept_columns import ALL, GHOST_LOG, KeptColumns, beside, kept_columns
from tidegate.config.table_keys.masks import MaskRule
from tidegate.config.table_keys.rename_rules import RenameRule
from tidegate.config.table_keys.row_rules import RowRule
from tidegate.config.table_keys.table_patterns import (
    OWN_DATABASES,
    as_read,
    check_template,
    compile_pattern,
    filled,
    matches,
    matches_database,
    matching_places,
    may_fill,
    shadowed,
)
from tidegate.table_names import Logical
from tidegate.watermark_table import WATERMARK

_SHOWN = 8


class Route(Section):
    """Many physical tables into one logical table."""

    match: str = Field(description="Pattern database.table of the physical tables")
    to: str = Field(
        description="Name database.table of the logical table. \\1 or \\g<name> in it stands for that group of match",
        pattern=r"^[^.]+\.[^.]+$",
    )

    @model_validator(mode="after")
    def _groups(self) -> Self:
        check_template(self.to, self.match)
        return self

    def target(self, database: str, table: str) -> tuple[str, str] | None:
        """(database, table) of the logical table that a physical one flows into, if this route is its."""
        return filled(self.to, self.match, database, table)


class Tables(Section):
    """The kept tables, by patterns `database.table`: each half a regular expression for the **whole** name, or `*` for
    everything. Between them is the first dot that isn't escaped, bracketed or repeated.
    """

    PASTS: ClassVar[tuple[str, ...]] = ("soft_delete", "history")  # keys of modes: merge/past has the modes

    include: tuple[str, ...] = Field(description="Patterns of the tables to keep: see docs/tables.md", min_length=1)
    exclude: tuple[str, ...] = Field((), description="Patterns of the tables to leave out. They win over include")
    soft_delete: tuple[str, ...] = Field(
        (),
        description="Patterns of silver tables that keep deleted rows, marked by _tg_deleted, after DELETE, TRUNCATE"
        " and DROP TABLE. The log must hold whole rows (binlog_row_image FULL or FULL_NODUP)",
    )
    history: tuple[str, ...] = Field(
        (),
        description="Patterns of silver tables that keep every version of each row, with the commit_ts of its"
        " beginning and end: see docs/history.md. Several changes of a row in one transaction are one version",
    )
    history_by_window: tuple[str, ...] = Field(
        (),
        description="Patterns of tables of history that keep one version of a row per window of apply, its last one."
        " The versions between are left out. You may change it at any time: old versions stay",
    )
    routes: tuple[Route, ...] = Field(
        (), description="Shards into one table, told apart by _tg_source, _tg_database, _tg_table"
    )

    changelog: tuple[str, ...] = Field(
        (),
        description="Patterns of silver tables that also keep every change, in commit order:"
        " changelog/<database>/<table> in the lake. It begins when you first ask for it",
    )

    columns: tuple[ColumnRule, ...] = Field((), description="Columns that silver has of some tables; else it has all")
    masks: tuple[MaskRule, ...] = Field((), description="Columns whose values silver has masked: see docs/masks.md")
    rows: tuple[RowRule, ...] = Field((), description="Rows that silver has of some tables; else it has all")
    computed: tuple[ComputedRule, ...] = Field((), description="Silver's columns beside the source's")
    renames: tuple[RenameRule, ...] = Field((), description="Other names of columns in silver: see docs/renames.md")
    comments: tuple[CommentRule, ...] = Field(
        (), description="Comments of silver's tables and columns; else they are the source's own"
    )
    clustering: tuple[ClusterRule, ...] = Field(
        (), description="Columns that silver's files are ordered by, in some tables; else by the key's"
    )

    @field_validator("include", "exclude", "soft_delete", "history", "history_by_window", "changelog")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            compile_pattern(pattern)
        return patterns

    @property
    def patterns(self) -> tuple[str, ...]:
        """All that are matched with names of the source."""
        return (*self.include, *self.exclude, *(route.match for route in self.routes))

    @property
    def include_as_read(self) -> str:
        """How the patterns of include are understood, the first few, for people."""
        return "; ".join(map(as_read, self.include[:_SHOWN]))

    def keeps(self, database: str, table: str) -> bool:
        """Whether a physical table is in this pipeline. "" is none: so schema_history names a database's own row.

        The table of snapshot marks is captured whatever is kept, and isn't a table of silver.
        """
        if not table or f"{database}.{table}" == WATERMARK:
            return False
        return not matches(self.exclude, database, table) and matches(self.include, database, table)

    def keeps_database(self, database: str) -> bool:
        """Whether tables of a database may be in this pipeline; the server's own never are."""
        if database.lower() in OWN_DATABASES:
            return False
        if any(matches_database(pattern, database, whole=True) for pattern in self.exclude):
            return False
        return any(matches_database(pattern, database) for pattern in self.include)

    def pasts(self, database: str, table: str) -> tuple[str, ...]:
        """The keys of a logical table's modes."""
        return tuple(word for word in self.PASTS if matches(getattr(self, word), database, table))

    def keeps_past(self, database: str, table: str) -> bool:
        """Whether silver has rows of a logical table from the source's past."""
        return bool(self.pasts(database, table))

    def one_version_per_window(self, database: str, table: str) -> bool:
        """Whether a logical table with versions of its rows leaves out those that began and ended in one window."""
        return matches(self.history, database, table) and matches(self.history_by_window, database, table)

    def keeps_changelog(self, database: str, table: str) -> bool:
        """Whether every change of a logical table is kept."""
        return matches(self.changelog, database, table)

    def clustering_of(self, database: str, table: str) -> tuple[str, ...]:
        """The columns to cluster a logical table by, by the first rule that matches; () for the key's."""
        places = matching_places((rule.match for rule in self.clustering), database, table)
        return self.clustering[places[0]].columns if places else ()

    def comments_of(self, database: str, table: str) -> SilverComments:
        """The comments in place of the source's own."""
        if not self.comments:
            return SilverComments()
        places = matching_places((rule.match for rule in self.comments), database, table)
        return SilverComments.of(self.comments[place] for place in sorted(places))

    def columns_of(self, database: str, table: str) -> KeptColumns:
        """The rules for a logical table: also those of the one that a schema change puts it beside."""
        every = KeptColumns(self.columns, self.masks, self.rows, self.computed, self.renames)
        if not every:
            return ALL
        names = {(database, table)}
        for name in beside(table):
            names |= {(database, name), self.logical(database, name)[:2]}
        kept = kept_columns(every, names)
        if table.endswith(GHOST_LOG):  # it has columns of its own, of which no rule of the table knows
            own = kept_columns(replace(every, rules=(), masks=()), [(database, table)])
            kept = replace(kept, where=own.where, more=own.more, renames=own.renames)
        return kept

    def names_of(self, database: str, table: str) -> Mapping[str, str]:
        """Silver's names of a physical table's columns, by the source's in lower case; the others are the source's."""
        if not self.renames:
            return {}
        return self.columns_of(*self.logical(database, table)[:2]).names

    def shadows(self, database: str, table: str) -> bool:
        """Whether it has the name of a table that an online schema change fills to replace a kept one."""
        if matches(self.exclude, database, table):
            return False
        return any(self.keeps(database, name) for name in shadowed(table))

    def logical(self, database: str, table: str) -> Logical:
        """The logical table that a physical one flows into."""
        for place in matching_places((route.match for route in self.routes), database, table) if self.routes else ():
            if (target := self.routes[place].target(database, table)) is not None:
                return Logical(*target, routed=True)
        return Logical(database, table, routed=False)

    def is_target(self, name: str) -> bool:
        """Whether a route may make this logical name `database.table` of some physical table's."""
        return any(may_fill(route.to, name) for route in self.routes)

    def mixes(self, names: Iterable[tuple[str, str]]) -> bool:
        """Whether routes name some of these physical tables, which flow into one logical table, and others not."""
        if not self.routes:
            return False
        return len({self.logical(*name).routed for name in names}) > 1
