"""The work of one statement on several tables, before any of it is recorded.

In:  the last version of a table, asked for if needed.
Out: the state of each table after the statement, if it differs from before.

A statement may pass a table through states nobody else sees (RENAME a TO x, b TO a, x TO b): only
the last one becomes a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegate.schema.ddl.tree import TableName
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.partitions import RowsMoved
from tidegate.schema.model.unlogged import VIEW
from tidegate.schema.replay.shape import Shape

# What makes a version even when shape and status stay the same: rows changed, or a new lineage began.
_ALWAYS = frozenset({"create", "truncate"})


@dataclass(frozen=True, slots=True)
class TableAfter:
    """A table after the statement, so far. kind: as in schema_history. moved: rows that no row event tells of."""

    shape: Shape
    kind: str
    status: VersionStatus
    moved: RowsMoved | None = None


class Work:
    """Tables as a statement leaves them, over their last versions."""

    def __init__(self, last: Callable[[TableName], TableVersion | None]) -> None:
        self._last = last
        self._after: dict[TableName, TableAfter] = {}

    def _now(self, name: TableName) -> TableAfter | None:
        if name in self._after:
            return self._after[name]
        version = self._last(name)
        return TableAfter(Shape.of(version), version.kind, version.status) if version else None

    def lives(self, name: TableName) -> bool:
        """Whether the table is known and exists."""
        state = self._now(name)
        return state is not None and state.status is not VersionStatus.DROPPED

    def knows(self, name: TableName) -> bool:
        """Whether the name has a version, live or not."""
        return self._now(name) is not None

    def shape(self, name: TableName) -> Shape:
        """The newest version of a known name."""
        state = self._now(name)
        assert state is not None
        return state.shape

    def status(self, name: TableName) -> VersionStatus:
        """The newest version of a live table."""
        state = self._now(name)
        assert state is not None
        return state.status

    def put(
        self, name: TableName, shape: Shape, kind: str, status: VersionStatus, moved: RowsMoved | None = None
    ) -> None:
        self._after[name] = TableAfter(shape, kind, status, moved)

    def drop(self, name: TableName, kind: str, moved: RowsMoved | None = None) -> None:
        """Nothing to do when the table isn't known: DROP ... IF EXISTS, or a table from before our time."""
        state = self._now(name)
        if state is not None and state.status is not VersionStatus.DROPPED:
            self._after[name] = TableAfter(state.shape, kind, VersionStatus.DROPPED, moved)

    def changed(self) -> Iterator[tuple[TableName, TableAfter]]:
        """Tables changed by the statement, in its order."""
        for name, after in self._after.items():
            version = self._last(name)
            if version is None or after.kind in _ALWAYS:
                shape, gone = after.shape, after.status is VersionStatus.DROPPED
                if version is not None or not gone or shape.merged_by or shape.engine == VIEW:
                    yield name, after
            elif (after.shape, after.status) != (Shape.of(version), version.status) or after.moved is not None:
                yield name, after
