"""The plan for a table in one window: worked out once, by choose_writers, for the steps after it.

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
    LINKED = "linked"  # by MERGE, together with the tables that a rename links it with


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """versions: in force after it, of each physical table; shape: silver's shape then, None of no
    table.

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

    target: the positional writer's orders, for a table it writes. creates: the shape of silver to
    be made first: a table can't be made in a folder with files. describes: the last shape, where
    silver's comments may be others.
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


class MergeOnly(dict[str, str]):
    """Tables given back to an application by the positional writer, and why."""


class MergeOnce(dict[str, str]):
    """Tables with too much for the positional writer even in the smallest window below the cut, and
    why, until MERGE has written it.

    One transaction may be larger than any window.
    """


class TooMuch(dict[str, int]):
    """Tables with too much for the positional writer in the last window below the cut: the window's
    cut_ts.
    """


NOTHING_PLANNED: Final = TablePlan()
