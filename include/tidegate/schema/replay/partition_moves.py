"""The effects of statements about partitions on the rows of tables: vanishing rows, moving rows.

In:  the tables of one statement (Work), before and after its other effects; which of them are followed.
Out: versions with RowsMoved. Those that can't be followed need a snapshot, and say why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.tree import Action, RowsChanged, TableName
from tidegate.schema.model.columns import Column
from tidegate.schema.model.partition_rows import rows_where
from tidegate.schema.model.partitions import (
    DELETED,
    EXCHANGED,
    GIVEN,
    GROWN,
    LEFT,
    SPLIT,
    SYSTEM_TIME,
    DropPartitions,
    ExchangePartition,
    PartitionToTable,
    RowsMoved,
    TableToPartition,
    TruncatePartitions,
)
from tidegate.schema.replay.shape import Shape, copy
from tidegate.schema.replay.work import Work


class PartitionMoves:
    """Follows the actions of one ALTER TABLE. before: the table's shape before it; work has it after it.

    known: whether a table's columns are known (raises DDLError when they should be). keeps: whether silver has it.
    """

    def __init__(
        self,
        work: Work,
        known: Callable[[TableName], bool],
        keeps: Callable[[str, str], bool],
        new_id: Callable[[], int],
    ) -> None:
        self._work = work
        self._known = known
        self._keeps = keeps
        self._new_id = new_id

    def follow(self, table: TableName, before: Shape, actions: Sequence[Action]) -> None:
        """All of the statement's actions that move rows."""
        for action in actions:
            match action:
                case RowsChanged(reason):
                    self._put(table, RowsMoved(DELETED, (), why=reason))
                case TruncatePartitions(()):
                    self._work.put(table, self._work.shape(table), "truncate", self._work.status(table).emptied)
                case DropPartitions(names, if_exists):
                    partitioning = before.partitioning
                    if if_exists and partitioning is not None and partitioning.method != SYSTEM_TIME:
                        names = tuple(
                            name for name in names if partitioning.unknown or partitioning.find(name) is not None
                        )
                    if names:
                        self._put(table, RowsMoved(DELETED, names, why=_doubt(before, names)))
                case TruncatePartitions(names):
                    self._put(table, RowsMoved(DELETED, names, why=_doubt(before, names)))
                case ExchangePartition():
                    self._exchange(table, before, action)
                case PartitionToTable():
                    self._split(table, before, action)
                case TableToPartition():
                    self._grow(table, action)

    def follow_unknown(self, table: TableName, actions: Sequence[Action]) -> None:
        """The same for an excluded table: its effects on others."""
        for action in actions:
            if isinstance(action, PartitionToTable | ExchangePartition) and self._known(action.other):
                why = f"rows came from {'.'.join(table)}, which isn't followed"
                self._put(action.other, RowsMoved(GIVEN, (), table, why=why))
            elif isinstance(action, TableToPartition):
                self._work.drop(action.other, "drop")

    def _put(self, table: TableName, moved: RowsMoved, kind: str = "alter") -> None:
        status = self._work.status(table)
        status = status.without_rows if moved.why else status
        self._work.put(table, self._work.shape(table), kind, status, moved)

    def _exchange(self, table: TableName, before: Shape, action: ExchangePartition) -> None:
        other, names = action.other, (action.name,)
        known = self._known(other)
        why = _doubt(before, names, moves=True) or self._unfollowed(table, other, known=known)
        why = why or self._unfollowed(other, table, known=True)
        if known and not why:
            why = _unlike(before.columns, self._work.shape(other).columns)
        self._put(table, RowsMoved(EXCHANGED, names, other, action.validated, why))
        if known:
            self._put(other, RowsMoved(GIVEN, names, table, action.validated, why))

    def _split(self, table: TableName, before: Shape, action: PartitionToTable) -> None:
        names = (action.name,)
        why = _doubt(before, names, moves=True)
        shape = replace(copy(self._work.shape(table), self._new_id), partitioning=None)
        followed = why or self._unfollowed(action.other, table, known=True)
        status = self._work.status(table).emptied  # as the new table has its columns
        status = status.without_rows if followed else status
        self._put(table, RowsMoved(DELETED, names, action.other, why=why))
        self._work.put(action.other, shape, "create", status, RowsMoved(SPLIT, names, table, why=followed))

    def _grow(self, table: TableName, action: TableToPartition) -> None:
        other, known = action.other, self._known(action.other)
        after = self._work.shape(table)
        names = (action.partition.name,) if action.partition else ()
        why = "" if names else "its new partition can't be read"
        why = why or _doubt(after, names, moves=True) or self._unfollowed(table, other, known=known)
        if known and not why:
            why = _unlike(after.columns, self._work.shape(other).columns)
        self._put(table, RowsMoved(GROWN, names, other, action.validated, why))
        self._work.drop(other, "drop", None if why else RowsMoved(LEFT, names, table))

    def _unfollowed(self, taker: TableName, giver: TableName, *, known: bool) -> str:
        """Why rows that come from a table aren't known; "" when they are, or nobody wants them."""
        if not known or (self._keeps(*taker) and not self._keeps(*giver)):
            return f"rows came from {'.'.join(giver)}, which isn't followed"
        if self._work.status(giver).waits:
            return f"rows came from {'.'.join(giver)}, which needs a snapshot"
        return ""


def _doubt(shape: Shape, names: Sequence[str], *, moves: bool = False) -> str:
    """Why nobody can say which rows lie in these partitions. moves: whether history goes with them."""
    if moves and shape.partitioning is not None and shape.partitioning.method == SYSTEM_TIME:
        return "rows of its history became rows of a table"
    try:
        rows_where(shape.columns, shape.partitioning, names)
    except UnsupportedValue as error:
        return error.what
    return ""


def _unlike(columns: Sequence[Column], other: Sequence[Column]) -> str:
    """Why rows of one table can't simply be another's."""
    if [_place(column) for column in columns] == [_place(column) for column in other]:
        return ""
    return "the two tables don't have the same columns"


def _place(column: Column) -> tuple[object, ...]:
    return column.name.lower(), column.type, column.charset, column.nullable, column.generated
