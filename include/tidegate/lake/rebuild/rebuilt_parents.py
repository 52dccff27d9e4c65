"""The parents by foreign keys a rebuild also takes, and where it begins because of them.

In:  control/schema_history; the physical tables of a rebuilt table.
Out: the parents whose changes reach its rows below the log; the commit_ts at which their rows are
     known; where its windows end.

A parent without such a parent logs all its changes: its rows needn't be known. A table between has
rows the log doesn't show. Therefore the rebuild begins where that table was empty, or read by a snapshot,
before the tables below it begin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.config import Tables
from tidegate.lake.rebuild.rebuild_lake import begin_ts, links_of, with_givers
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.views import RENAMED
from tidegate.table_names import Physical


@dataclass(frozen=True, slots=True)
class TableBetween:
    """A parent that has such parents itself. givers: itself, and all tables that may have given it
    rows. below: its children.
    """

    givers: frozenset[Physical]
    below: frozenset[Physical]


def cascade_parents(
    history: Callable[[], Iterable[pa.Table]], pipeline_tables: Tables, children: Collection[Physical]
) -> tuple[set[Physical], list[TableBetween]]:
    """The kept parents whose rows change rows of `children` below the log, and their parents in
    turn. Then those of them that have such parents themselves, as TableBetween.

    history: as in physical_tables; called anew for each reading.
    """
    parents: dict[Physical, set[Physical]] = {}
    for row in (row for piece in history() for row in piece.to_pylist()):
        if row["table"] and row["foreign_keys"]:  # few tables have any: the columns of the others stay unread
            version = TableVersion.from_row(row)
            for key in version.foreign_keys:
                parent = Physical(version.source, *key.parent)
                if key.acts_unseen and pipeline_tables.keeps(*parent.pair):
                    parents.setdefault(version.physical, set()).add(parent)
    above, between = _above(parents, children)
    if not between:
        return above, []
    links = links_of(history(), {name.source for name in children})
    while not (givers := with_givers(links, between) - set(children)) <= between:
        more, between = _above(parents, [*children, *givers])
        above, between = more | givers, between | givers
    reached = between.union(children)
    tables = list[TableBetween]()
    for name in sorted(between):
        givers = with_givers(links, {name})
        tables.append(TableBetween(frozenset(givers), frozenset(_below(parents, givers) & reached)))
    return above, tables


def _below(parents: Mapping[Physical, set[Physical]], group: Collection[Physical]) -> set[Physical]:
    return {child for child, of in parents.items() if not of.isdisjoint(group)}


def _above(
    parents: Mapping[Physical, set[Physical]], children: Collection[Physical]
) -> tuple[set[Physical], set[Physical]]:
    above, left = set[Physical](), list(children)
    while left:
        for parent in parents.get(left.pop(), ()):
            if parent not in above:
                above.add(parent)
                left.append(parent)
    return above, (above & parents.keys()) - set(children)


def begin_with_parents(
    begin: int,
    at_ts: int,
    children: Collection[Physical],
    parents: Collection[tuple[TableBetween, Sequence[Mapping[str, Any]], bool]],
) -> int:
    """The commit_ts at which all rows that matter at at_ts are known.

    begin: where the rebuilt tables, `children`, begin. parents: each with its versions (as in
    begin_ts), and whether silver has nothing of it from before a CREATE, TRUNCATE or snapshot.
    """
    begins = dict.fromkeys(children, begin)
    moved = True
    while moved:
        moved = False
        for between, versions, emptied in parents:
            of_children = min(map(begins.__getitem__, between.below & begins.keys()), default=None)
            known = None if of_children is None else begin_ts(versions, of_children + 1, emptied=emptied)
            if known is None:  # it didn't exist yet
                known = begin_ts(versions, at_ts, emptied=False)
            if known is None:
                continue
            for name in between.givers:
                if begins.get(name, known + 1) > known:
                    begins[name], moved = known, True
    return min(begins.values())


def reshaped_at(versions: Iterable[Mapping[str, Any]]) -> list[int]:
    """The commit_ts of statements that moved rows between tables, or changed columns or keys, in
    order.

    versions: as in begin_ts. A foreign key isn't followed across such a statement within one
    window.
    """
    last: dict[Physical, TableVersion] = {}
    stamps = set[int]()
    for row in sorted(versions, key=lambda row: (row["commit_ts"], row["version"])):
        version = TableVersion.from_row(row)
        before = last.get(version.physical, version)
        moves = version.kind == RENAMED or version.moved is not None
        if moves or (before.columns, before.key) != (version.columns, version.key):
            stamps.add(version.commit_ts)
        last[version.physical] = version
    return sorted(stamps)
