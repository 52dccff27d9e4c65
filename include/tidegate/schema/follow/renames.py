"""The former table of each renamed table, found by column ids; and which table takes whose rows.

In:  a source's SchemaHistory and a span of commit time.
Out: Renames in commit_ts order; takers. Pure.

A column id is given once per source, and travels with a renamed table. Therefore the table that had these
ids directly before the statement is the renamed one: through chains and swaps, and through an ALTER
that also changes columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.partitions import LEFT
from tidegate.schema.replay.history import SchemaHistory

RENAME = "rename"


@dataclass(frozen=True, slots=True)
class Rename:
    """old: the last version under the old name; None if no table had these columns. new: the first
    under the new.
    """

    old: TableVersion | None
    new: TableVersion


def renamed_here(version: TableVersion) -> bool:
    """Whether a table came to this name by a rename."""
    return version.kind == RENAME and version.status != VersionStatus.DROPPED


def leaves(old: TableVersion | None, new: TableVersion) -> bool:
    """Whether the rows under a name go to another name."""
    converted = new.moved is not None and new.moved.how == LEFT
    return (new.kind == RENAME or converted) and old is not None and old.status != VersionStatus.DROPPED


def gives(old: TableVersion | None, new: TableVersion) -> bool:
    """Whether another name takes rows of this one. Rows of a partition may be only some of them."""
    return leaves(old, new) or (new.moved is not None and new.moved.gives)


def renames(history: SchemaHistory, after_ts: int, upto_ts: int) -> list[Rename]:
    """The renames in (after_ts, upto_ts]."""
    all_renames: list[Rename] = []
    made = [version for version in history.made_in(after_ts, upto_ts) if version.kind == RENAME]
    for commit_ts, together in groupby(made, key=lambda version: version.commit_ts):
        versions = list(together)
        owner: dict[int, TableVersion] = {}
        for version in versions:
            before = history.version_at(version.database, version.table, commit_ts - 1)
            if leaves(before, version):
                assert before is not None, "leaves() says so"
                owner |= {column.id: before for column in before.columns}
        for version in versions:
            if renamed_here(version):
                old = next((owner[column.id] for column in version.columns if column.id in owner), None)
                all_renames.append(Rename(old, version))
    return all_renames


def empties(version: TableVersion) -> bool:
    """Whether nothing from before stays under a table's name, and the statement brought nothing
    there.
    """
    return version.kind in ("create", "truncate") or version.status == VersionStatus.DROPPED


def takers(history: SchemaHistory, old: TableVersion | None, new: TableVersion) -> list[TableVersion]:
    """The tables that took this table's rows by the statement from `old` to `new`, as they are
    after it.
    """
    if not gives(old, new):
        return []
    tables = [rename.new for rename in renames(history, new.commit_ts - 1, new.commit_ts) if rename.old == old]
    if new.moved is not None and new.moved.gives:
        other = history.version_at(*new.moved.other, new.commit_ts)
        tables += [other] if other is not None else []
    return tables
