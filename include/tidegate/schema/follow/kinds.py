"""The kinds of a version, with the names of the pipeline file's policies.

In:  two versions of a table, one after the other.
Out: names of fields of config.Ddl. No policy is about a new table, an index or a
     comment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.schema.follow.computed import computes_the_same, renamed_between
from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.model.partitions import DELETED


def ddl_kinds(old: TableVersion | None, new: TableVersion, apart: Collection[int] = ()) -> list[str]:
    """Kinds of the change from old to new, each at most once.

    apart: ids of columns that silver lacks.
    """
    if new.moved is not None:
        alone = new.moved.how == DELETED and new.moved.other == ("", "")
        return ["drop_partition" if alone else "move_partition"]
    if new.kind == "rename":
        return ["rename_table"]
    if new.status is VersionStatus.DROPPED:
        return ["drop_table"]
    if new.kind == "truncate":
        return ["truncate"]
    if old is None or new.kind in ("create", "snapshot") or old.status is VersionStatus.DROPPED:
        return []
    return column_kinds(old, new, apart)


def column_kinds(old: TableVersion, new: TableVersion, apart: Collection[int] = ()) -> list[str]:
    """Kinds of the change of columns and key only: an ALTER ... RENAME may have some beside its
    rename.
    """
    before = {column.id: column for column in old.columns}
    after = {column.id for column in new.columns}
    shared = [(before[column.id], column) for column in new.columns if column.id in before]
    names = renamed_between(shared)
    shared = [(was, now) for was, now in shared if now.id not in apart]
    kinds = {
        "add_column": any(c.id not in before and c.id not in apart for c in new.columns),
        "drop_column": any(c.id not in after and c.id not in apart for c in old.columns),
        "rename_column": any(was.name != now.name for was, now in shared),
        "change_type": any(_changed(was, now, names) for was, now in shared),
        "change_key": old.key != new.key,
    }
    return [kind for kind, is_one in kinds.items() if is_one]


def _changed(was: Column, now: Column, names: Mapping[str, str]) -> bool:
    return (was.type, was.charset) != (now.type, now.charset) or not computes_the_same(was, now, names)
