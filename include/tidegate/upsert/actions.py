"""Delta actions of a phase: what the one commit removes and adds.

In:  staged files with their losers; probed files with their hits.
Out: removes (files as the log has them) and `add` actions; deletion vectors written.

A file whose rows are replaced in part is removed and added again with a larger deletion vector, one
whose rows are all dead is only removed. Statistics then describe all rows, dead ones included:
bounds aren't tight any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.delta.table.live_file import LiveFile, VectorDescriptor
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files.statistics import loosened
from tidegate.upsert.keys.probe_file import Hits
from tidegate.upsert.keys.resolve import NewFile


@dataclass(slots=True)
class Actions:
    """removes: live files to go. adds: `add` actions. rows_removed: dying live rows, rows_added: new ones."""

    removes: list[LiveFile] = field(default_factory=list)
    adds: list[Mapping[str, Any]] = field(default_factory=list)
    rows_removed: int = 0
    rows_added: int = 0

    def extend(self, other: Actions) -> None:
        self.removes += other.removes
        self.adds += other.adds
        self.rows_removed += other.rows_removed
        self.rows_added += other.rows_added


def with_vector(add: Mapping[str, Any], descriptor: VectorDescriptor, rows: int) -> dict[str, Any]:
    """An `add` of the same file, of so many rows, with (another) deletion vector."""
    changed = {
        **add,
        "dataChange": True,
        "stats": loosened(add.get("stats"), rows),
        "deletionVector": descriptor.as_action(),
    }
    return {name: value for name, value in changed.items() if value is not None}


def replaced(hits: Iterable[Hits], vectors: VectorWriter) -> Actions:
    """The actions for silver's own files: the dead rows of each."""
    actions = Actions()
    for hit in hits:
        if not len(hit.fresh):
            continue
        actions.removes.append(hit.file)
        actions.rows_removed += len(hit.fresh)
        if hit.live_after:
            descriptor = vectors.add(hit.dead_after)
            actions.adds.append(with_vector(hit.file.action, descriptor, hit.rows))
    return actions


def adopted(files: Iterable[NewFile], vectors: VectorWriter) -> Actions:
    """The actions for staged files. Their losers are dead from the start. A file without a winner isn't adopted."""
    actions = Actions()
    for file in files:
        rows = rows_of(file.add)
        live = rows - len(file.losers)
        assert live >= 0, "no more losers than rows"
        if not live:
            continue
        actions.rows_added += live
        losers = len(file.losers)
        actions.adds.append(with_vector(file.add, vectors.add(file.losers), rows) if losers else file.add)
    return actions


def rows_of(add: Mapping[str, Any]) -> int:
    """Rows of a file that we wrote."""
    rows = LiveFile(add).rows
    assert rows is not None, "data_file.write gives statistics"
    return rows
