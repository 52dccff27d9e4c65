"""Rules of a pipeline file that do nothing at its sources as they are: mostly a name that is
mistyped.

In:  the section `tables`, the tables that the sources show.
Out: a text for each pattern of tables.columns, masks, rows and clustering that no table, or no column, has.

A mask that is mistyped leaves values plain, and nothing else would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from tidegate.conditions.model import leaves
from tidegate.config import ClusterRule, ColumnRule, MaskRule, RowRule, Tables, column_pattern, matches
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.tables import SYSTEM_PREFIX

Rule = ClusterRule | ColumnRule | MaskRule | RowRule


def idle_rules(tables: Tables, versions: Iterable[TableVersion]) -> Iterator[str]:
    """versions: of every table that all sources of the pipeline show."""
    columns: dict[Rule, list[Column]] = {}
    for version in versions:
        name = tables.logical(version.database, version.table)[:2]
        kept = tables.columns_of(*name)
        clustered = (rule for rule in tables.clustering if matches((rule.match,), *name))
        own: list[Rule] = [*kept.rules, *kept.masks, *kept.where, *clustered]
        for rule in own:
            columns.setdefault(rule, []).extend(version.columns)
    sections: dict[str, Sequence[Rule]] = {"columns": tables.columns, "masks": tables.masks, "rows": tables.rows}
    sections["clustering"] = tables.clustering
    for section, rules in sections.items():
        for rule in rules:
            if rule not in columns:
                yield f"tables.{section}: no table flows into {rule.match}"
            for shown, has in _patterns(rule) if rule in columns else ():
                if not any(map(has, columns[rule])):
                    yield f"tables.{section}: no column of {rule.match} has {shown}"


def _patterns(rule: Rule) -> Iterator[tuple[str, Callable[[Column], bool]]]:
    """Each pattern of a rule: as people are shown it, and whether a column has it."""
    match rule:
        case ColumnRule():
            yield from map(_named, (*rule.include, *rule.exclude))
        case MaskRule():
            yield from map(_named, rule.columns)
            if rule.comment is not None:
                comment = column_pattern(rule.comment)
                yield f"a comment with {rule.comment}", lambda column: comment.search(column.comment) is not None
        case RowRule():
            for name in sorted({leaf.column for leaf in leaves(rule.condition)}):
                yield f"the name {name}", partial(_is_called, name.lower())

        case ClusterRule():
            for name in rule.columns:
                yield f"the name {name}", partial(_is_in_silver, name)


def _is_in_silver(name: str, column: Column) -> bool:
    return column.silver == name or name.startswith(SYSTEM_PREFIX)


def _is_called(name: str, column: Column) -> bool:
    return column.name.lower() == name


def _named(pattern: str) -> tuple[str, Callable[[Column], bool]]:
    return f"the name {pattern}", lambda column: column_pattern(pattern).fullmatch(column.name) is not None
