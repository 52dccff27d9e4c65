"""Check that all rows of a person can be erased from a table. A table that can't be is refused before anything is
changed.

In:  a pipeline, its lake, a table as it is called at the source.
Out: Reach, the table with its versions; or an error that names the reason.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tidegate import tables
from tidegate.changelog.changelog_table import changelog
from tidegate.config import Pipeline, near_table
from tidegate.erase.subject import key_types
from tidegate.errors import UsageError
from tidegate.lake import control
from tidegate.lake.cuts.published import cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import known_tables, table_rows
from tidegate.lake.silver.folders import REBUILT, rebuilt_tables
from tidegate.schema.follow.renames import RENAME, renamed_here
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.unlogged import VIEWS
from tidegate.table_names import Physical, splits
from tidegate.tables.form import Table
from tidegate.upsert.fitness import why_not

BY_AGE: Final = "set the times of docs/runbooks/erase-a-person.md, and let maintain erase by age"

Pair = tuple[str, str]
Names = tuple[str, ...]
Followed = tuple[Pair, Names, Pair, Names]  # a child, its columns, the parent, the parent's


@dataclass(frozen=True, slots=True)
class Reach:
    """versions: all of the table's, oldest first. logical: silver's name; path: silver's, within the lake. changelog:
    None where the lake has none. plain: columns at the source, in lower case, whose values silver has as they are.
    known: database and table of all tables of the source, views aside.
    """

    table: Physical
    versions: Sequence[TableVersion]
    logical: str
    path: str
    changelog: Table | None
    plain: frozenset[str]
    known: frozenset[Pair]

    @property
    def newest(self) -> TableVersion:
        return self.versions[-1]


def table_of(pipeline: Pipeline, lake: LakeFiles, name: str) -> Physical:
    """name: database.table as at the source. Raises UsageError."""
    return _versions(pipeline, lake, name)[-1].physical


def reach_of(pipeline: Pipeline, lake: LakeFiles, name: str, followed: Collection[Followed] = ()) -> Reach:
    """followed: foreign keys whose tables lose the rows which refer to a parent's. Raises UsageError."""
    versions = _versions(pipeline, lake, name)
    table = versions[-1].physical
    logical = pipeline.tables.logical(*table.pair)
    _check_versions(name, versions)
    if not pipeline.sources[table.source].traits.erases_rows:
        raise _refused(name, "its source isn't a MySQL or MariaDB")
    _check_foreign_keys(lake, versions, followed)
    cut = cut_at(lake, pipeline.pipeline)
    kept = cut.tables.get(logical.name)
    if kept is None:
        why = cut.missing.get(logical.name, "no cut has it")
        raise UsageError(f"its silver isn't complete: {why}", where=name, remedy="see `tidegate status`")
    beside = [path for path in rebuilt_tables(lake, [kept.database]) if path.startswith(kept.path + REBUILT)]
    if beside:
        remedy = "remove its folder, or swap it in (tidegate rebuild --swap)"
        raise UsageError(f"a rebuilt table may have the rows: {beside[0]}", where=name, remedy=remedy)
    if (other := why_not(lake.log(kept.path).state())) is not None:
        raise _refused(name, f"its silver can't be written by position: {other}")
    changes, plain = changelog(logical.database, logical.table), _plain(pipeline, versions[-1])
    known = _known(lake, table.source)
    if not lake.log(changes.path).state().created:
        return Reach(table, versions, logical.name, kept.path, None, plain, known)
    if not plain.issuperset(map(str.lower, versions[-1].key_names)):
        raise _refused(name, "it has a changelog, and its key is masked")
    return Reach(table, versions, logical.name, kept.path, changes, plain, known)


def renamed_since(lake: LakeFiles, reach: Reach) -> list[str]:
    """A phrase if the table got another name after the reach was made. Raises LakeUnavailable, LakeRefused."""
    rows = [row for row in table_rows(lake, *reach.table.pair) if row["source"] == reach.table.source]
    newer = [row for row in map(TableVersion.from_row, rows) if row.commit_ts > reach.newest.commit_ts]
    if not any(version.kind == RENAME for version in newer):
        return []
    return [f"{reach.newest.name} was renamed meanwhile: the copies of its files have deleted rows, which go by age"]


def _plain(pipeline: Pipeline, version: TableVersion) -> frozenset[str]:
    kept = pipeline.tables.columns_of(*pipeline.tables.logical(version.database, version.table)[:2])
    key = version.key_names
    names = [c.name for c in version.columns if kept.has_plain(c.name, c.comment, of_key=c.name in key)]
    return frozenset(map(str.lower, names))


def _versions(pipeline: Pipeline, lake: LakeFiles, name: str) -> list[TableVersion]:
    rows = [row for database, table in splits(name) for row in table_rows(lake, database, table)]
    rows = [
        row
        for row in rows
        if row["source"] in pipeline.sources and pipeline.tables.keeps(row["database"], row["table"])
    ]
    sources = {row["source"] for row in rows}
    if not rows:
        kept = {(str(d), str(t)) for s, d, t in known_tables(lake) if s in pipeline.sources}
        near = near_table(name, {pair for pair in kept if pair[1] and pipeline.tables.keeps(*pair)})
        remedy = f"did you mean {near[0]}?" if near else "give database.table as at the source"
        if pipeline.tables.is_target(name):
            remedy += ": its rows come from several tables (tables.routes), and each is erased from by itself"
        raise UsageError(f"there is no table {name}", where=pipeline.pipeline, remedy=remedy)
    if len(sources) > 1 or len({(row["database"], row["table"]) for row in rows}) > 1:
        raise _refused(name, f"several tables are called so, of {', '.join(sorted(sources))}")
    return list(map(TableVersion.from_row, rows))


def _known(lake: LakeFiles, source: str) -> frozenset[Pair]:
    """Names that were never a view's: a statement about one of them changes no other table by itself."""
    columns = ["database", "table", "engine"]
    rows = control.read(lake, tables.SCHEMA_HISTORY, columns=columns, filters=[("source", "==", source)]).to_pylist()
    views = {(row["database"], row["table"]) for row in rows if row["engine"] in VIEWS}
    return frozenset({(row["database"], row["table"]) for row in rows if row["table"]} - views)


def _check_versions(name: str, versions: Sequence[TableVersion]) -> None:
    if versions[-1].status is VersionStatus.DROPPED:
        raise _refused(name, "the source has dropped it")
    if not versions[-1].key:
        raise _refused(name, "it has no key")
    for version in versions:
        if version.kind == RENAME or renamed_here(version) or version.moved is not None:
            raise _refused(name, f"rows came to it, or went, by {version.ddl[:80] or version.kind}")
        if version.status.waits and version.kind == "unfollowed":
            raise _refused(name, f"a statement about it wasn't followed: {version.ddl[:80]}")
    keyed = [version for version in versions if version.key]
    for before, after in pairwise(keyed):
        if _compared_as(before) != _compared_as(after):
            raise _refused(name, f"its key was another one before {after.ddl[:80] or after.kind}")


def _compared_as(version: TableVersion) -> list[str]:
    """The types that the key's values compare as: integers of any width are the same."""
    types = map(str, key_types(version))
    return ["int" if kind.startswith(("int", "uint")) else kind for kind in types]


def _check_foreign_keys(lake: LakeFiles, versions: Sequence[TableVersion], followed: Collection[Followed]) -> None:
    """Refuse tables whose foreign keys change rows without a row event.

    A rebuild computes these changes from the parent's rows in bronze, so these must stay, unless the children's rows go
    as well. Such a foreign key may also change keys of children, and then the log doesn't tell which rows are the
    person's.
    """
    table = versions[-1].physical
    keys = {name.lower() for version in versions for name in version.key_names}
    columns = ["source", "database", "table", "foreign_keys"]
    for row in control.read(lake, tables.SCHEMA_HISTORY, columns=columns).to_pylist():
        if row["source"] != table.source:
            continue
        child = (row["database"], row["table"])
        for key in json.loads(row["foreign_keys"] or "[]"):
            if key.get("logged"):
                continue
            acts = (key.get("on_delete") or key.get("on_update")) and tuple(key["parent"]) == table.pair
            own, others = tuple(key.get("columns") or ()), tuple(key.get("parent_columns") or ())
            if acts and (child, own, table.pair, others) not in followed:
                why = f"a foreign key of {'.'.join(child)} changes rows that the log doesn't show"
                raise _refused(table.shown, why)
            moved = keys.intersection(map(str.lower, key.get("columns") or keys))
            if key.get("on_update") and child == table.pair and moved:
                raise _refused(table.shown, "a foreign key changes keys of its rows, and the log doesn't show it")


def _refused(name: str, why: str) -> UsageError:
    return UsageError(f"can't be erased from: {why}", where=name, remedy=BY_AGE)
