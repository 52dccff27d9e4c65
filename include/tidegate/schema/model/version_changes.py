"""The changes of a version, in words for people: one phrase per column.

In:  two versions of a table, one after the other; None before the first.
Out: lines such as "+ note varchar(20)", "total renamed amount", "a int -> bigint", "key (id) -> (id, day)".
"""

from __future__ import annotations

from typing import Final

from tidegate.schema.model.columns import Column, TableVersion, VersionStatus
from tidegate.schema.model.partitions import RowsMoved
from tidegate.text_layout import counted

_SHOWN_MAX: Final = 8
_STATUS: Final = {
    VersionStatus.ACTIVE: "all its rows are known",
    VersionStatus.DROPPED: "dropped",
    VersionStatus.NEEDS_SNAPSHOT: "its rows need a snapshot",
    VersionStatus.UNPROVEN: "its columns are no longer certain",
}


def changes(old: TableVersion | None, new: TableVersion) -> list[str]:
    """Empty when no column and no key changed; of a first version one line that counts its columns."""
    if old is None:
        key = ", ".join(new.key_names) or "none"
        return [f"{counted(len(new.columns), 'column', 'columns')}, key: {key}"] if new.columns else []
    before = {column.id: column for column in old.columns}
    after = {column.id for column in new.columns}
    lines = [f"- {column.name}" for column in old.columns if column.id not in after]
    for column in new.columns:
        was = before.get(column.id)
        lines += [f"+ {column.name} {column.type}"] if was is None else _differences(was, column)
    shared = [c.id for c in old.columns if c.id in after]
    if shared != [c.id for c in new.columns if c.id in before]:
        lines.append("columns in another order")
    if old.key != new.key:
        lines.append(f"key ({', '.join(old.key_names)}) -> ({', '.join(new.key_names)})")
    if old.comment != new.comment and new.comment is not None:
        lines.append(f"comment {_shown(old.comment or '')} -> {_shown(new.comment)}")
    if old.partitioning != new.partitioning:
        lines.append(f"partitions {_partitions(old)} -> {_partitions(new)}")
    if new.moved is not None:
        lines.append(_moved(new.moved))
    if old.status is not new.status:
        lines.append("created again" if old.status is VersionStatus.DROPPED else _STATUS[new.status])
    return lines


def _partitions(version: TableVersion) -> str:
    """How many, or the few there are by name: a table may have thousands."""
    partitioning = version.partitioning
    if partitioning is None:
        return "none"
    if partitioning.unknown:
        return "unknown"
    names = [partition.name for partition in partitioning.partitions]
    shown = ", ".join(names) if len(names) <= _SHOWN_MAX else f"{names[0]} ... {names[-1]}, {len(names)} in all"
    return f"{partitioning.method} ({shown})"


def _moved(moved: RowsMoved) -> str:
    where = ", ".join(moved.partitions) or "unknown partitions"
    other = f" with {'.'.join(moved.other)}" if moved.links else ""
    return f"rows {moved.how}: {where}{other}"


def _differences(was: Column, now: Column) -> list[str]:
    lines = [f"{was.name} renamed {now.name}"] if was.name != now.name else []
    for name in ("type", "charset", "collation", "default", "generation_expression", "comment"):
        old, new = getattr(was, name), getattr(now, name)
        if old != new:
            what = "" if name == "type" else f" {name.replace('_', ' ')}"
            lines.append(f"{now.name}{what} {_shown(old)} -> {_shown(new)}")
    if was.nullable != now.nullable:
        lines.append(f"{now.name} {'NULL' if now.nullable else 'NOT NULL'}")
    return lines


def _shown(value: str | None) -> str:
    return "NULL" if value is None else value or "''"
