"""Rules of a pipeline file without any effect at its sources as they are: mostly a mistyped name.

In:  the section `tables`, the tables of the sources.
Out: a text for each pattern of `tables` without a table or a column. tables.exclude and routes
     aren't checked: they may be for tables yet to come.

A mistyped mask leaves values plain, and nothing else would report it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from tidegate.config import (
    ClusterRule,
    ColumnRule,
    CommentRule,
    ComputedRule,
    MaskRule,
    RenameRule,
    RowRule,
    TableNames,
    Tables,
    column_pattern,
    matches,
    matching_places,
    near_table,
)
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.renamed import under_names
from tidegate.tables import MARKER, SYSTEM_PREFIX

_NEAR_MAX: Final = 20
Rule = ClusterRule | ColumnRule | ComputedRule | MaskRule | RowRule
Named = CommentRule | RenameRule  # with columns by their names, of the source or of silver


def idle_patterns(tables: Tables, versions: Iterable[TableVersion]) -> list[str]:
    """Those of tables.include that none of these tables has."""
    names = TableNames((version.database, version.table) for version in versions)
    return [pattern for pattern in tables.include if pattern != MARKER and not names.any_of(pattern)]


def idle_rules(
    tables: Tables,
    versions: Sequence[TableVersion],
    idle: Iterable[str],
    shown: Collection[tuple[str, str]] = (),
) -> Iterator[str]:
    """versions: of every kept table of all sources. idle: the patterns of include without a table. shown: the names of
    all tables, kept or not, if there is such a pattern.
    """
    if versions:  # no table at all is another line's matter
        yield from _said("include", idle, shown)
        yield from _idle_lists(tables, versions)
    versions = [under_names(version, tables.names_of(version.database, version.table)) for version in versions]
    yield from _idle_names(tables, versions, "comments", tables.comments)
    yield from _idle_names(tables, versions, "renames", tables.renames)
    columns: dict[Rule, list[Column]] = {}
    by = tuple(rule.match for rule in tables.clustering)
    for version in versions:
        name = tables.logical(version.database, version.table)[:2]
        kept = tables.columns_of(*name)
        clustered = map(tables.clustering.__getitem__, matching_places(by, *name))
        own: list[Rule] = [*kept.rules, *kept.masks, *kept.where, *kept.more, *clustered]
        for rule in own:
            columns.setdefault(rule, []).extend(version.columns)
    made = {rule.name for rule in tables.computed}
    sections: dict[str, Sequence[Rule]] = {"columns": tables.columns, "masks": tables.masks, "rows": tables.rows}
    sections |= {"computed": tables.computed, "clustering": tables.clustering}
    for section, rules in sections.items():
        for rule in rules:
            if rule not in columns:
                yield f"tables.{section}: no table flows into {rule.match}"
            for asked, has in _patterns(rule, made) if rule in columns else ():
                if not any(map(has, columns[rule])):
                    yield f"tables.{section}: no column of {rule.match} has {asked}"


def _idle_names(
    tables: Tables, versions: Sequence[TableVersion], section: str, rules: Sequence[Named]
) -> Iterator[str]:
    """Rules of a section without a table, or with names that no column has. A computed column has its own."""
    by, known = tuple(rule.match for rule in rules), dict[int, set[str]]()
    for version in versions if rules else ():
        for place in matching_places(by, *tables.logical(version.database, version.table)[:2]):
            names = known.setdefault(place, {rule.name.lower() for rule in tables.computed})
            names.update((c.name if section == "renames" else c.silver).lower() for c in version.columns)
    for place, rule in enumerate(rules):
        if place not in known:
            yield f"tables.{section}: no table flows into {rule.match}"
        for name in rule.columns if place in known else ():
            if name.lower() not in known[place]:
                yield f"tables.{section}: no column of {rule.match} has the name {name}"


def _idle_lists(tables: Tables, versions: Sequence[TableVersion]) -> Iterator[str]:
    """Patterns of silver's tables, in the lists of modes and changelogs."""
    logical = {tables.logical(version.database, version.table)[:2] for version in versions}
    names = TableNames(logical)
    for section in (*Tables.PASTS, "changelog"):
        idle = [pattern for pattern in getattr(tables, section) if not names.any_of(pattern)]
        yield from _said(section, idle, logical)
    versioned = {name for name in logical if matches(tables.history, *name)}
    names = TableNames(versioned)
    idle = [pattern for pattern in tables.history_by_window if not names.any_of(pattern)]
    yield from _said("history_by_window", idle, versioned, "table with history")


def _said(
    section: str, patterns: Iterable[str], names: Collection[tuple[str, str]], kind: str = "table"
) -> Iterator[str]:
    """One line for each pattern. The search for a near name compares all names, so only the first
    patterns get one.
    """
    rest = iter(patterns)
    for pattern in islice(rest, _NEAR_MAX):
        yield f"tables.{section}: no {kind} matches {pattern}" + "".join(
            f", near {name}" for name in near_table(pattern, names)
        )
    for pattern in rest:
        yield f"tables.{section}: no {kind} matches {pattern}"


def _patterns(rule: Rule, made: Collection[str]) -> Iterator[tuple[str, Callable[[Column], bool]]]:
    """Each pattern of a rule: as people are shown it, and whether a column has it. made: names of
    computed columns. A condition or a computed column without its columns holds: another line says so.
    """
    match rule:
        case ColumnRule():
            yield from map(_named, (*rule.include, *rule.exclude))
        case MaskRule():
            yield from map(_named, rule.columns)
            if rule.comment is not None:
                comment = column_pattern(rule.comment)
                yield f"a comment with {rule.comment}", lambda column: comment.search(column.comment) is not None
        case ClusterRule():
            for name in rule.columns:
                if name not in made:
                    yield f"the name {name}", partial(_is_in_silver, name)


def _is_in_silver(name: str, column: Column) -> bool:
    return column.silver == name or name.startswith(SYSTEM_PREFIX)


def _named(pattern: str) -> tuple[str, Callable[[Column], bool]]:
    return f"the name {pattern}", lambda column: column_pattern(pattern).fullmatch(column.name) is not None
