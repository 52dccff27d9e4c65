"""The plan for a table in one window. choose_writers makes it once, for the steps after it.

In:  nothing; these are the values.
Out: TablePlan: the phases with silver's shape in each, the tables linked with it by renames, and
     its writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidegate.merge.past import NO_PAST, Past
from tidegate.merge.phases import Phase
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import TableVersion
from tidegate.upsert.target import UpsertTarget

Change = tuple[TableVersion | None, TableVersion]  # a version before it, and one that begins in the window


class TableWriter(StrEnum):
    """The writer of a table in a window. Each writer's commits equal MERGE's."""

    MERGE = "merge"
    POSITIONAL = "positional"  # changes are staged as rows in silver's folder, and keys
    COUNTED = "counted"  # by position, of a table without a key; staged as for MERGE
    VERSIONED = "versioned"  # by position, of a table with versions of rows; staged as for MERGE
    LINKED = "linked"  # by MERGE, of a table whose rows a rename or a partition moves


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """versions: in force after it, one of each physical table. shape: silver's shape then; None
    without any table.

    before: of a DDL, silver's shape when it begins.
    """

    phase: Phase
    versions: tuple[TableVersion, ...]
    shape: SilverShape | None
    before: SilverShape | None = None


@dataclass(frozen=True, slots=True)
class TablePlan:
    """past: silver's mode. changes: versions beginning in the window (judge_ddl). links: the tables linked with it by
    moves of the window. why: the reason for its writer, in one phrase.

    target: for the positional writer: the layouts of the table that it writes. creates: the shape
    of a silver table to create first, since a table can't be created in a folder that has files.
    describes: the last shape, if silver's comments differ from it.
    """

    phases: tuple[PlannedPhase, ...] = ()
    past: Past = NO_PAST
    links: frozenset[str] = frozenset()
    writer: TableWriter = TableWriter.MERGE
    why: str = ""
    target: UpsertTarget | None = None
    creates: SilverShape | None = None
    changes: Sequence[Change] = ()
    describes: SilverShape | None = None

    @property
    def is_linked(self) -> bool:
        """Whether it is written phase by phase together with its links."""
        return self.writer is TableWriter.LINKED or bool(self.links)


class MergeOnly(dict[str, str]):
    """Tables that the positional writer gave back for as long as the application lives -> why."""


class MergeOnce(dict[str, str]):
    """Tables with too many changes for the positional writer even in the smallest window below the
    cut -> why. An entry stays until MERGE has written that window.

    One transaction may be larger than any window.
    """


class TooMuch(dict[str, int]):
    """Tables with too many changes for the positional writer in their last window below the cut ->
    cut_ts of that window.
    """


NOTHING_PLANNED: Final = TablePlan()
