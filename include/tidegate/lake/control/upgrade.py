"""The part of a commit to a control table before its own rows: the table is made or upgraded, and
the lake's format is recorded.

In:  a lake, a table of tables/, the state the commit is decided on.
Out: actions for the commit; rows of control/format, written before it.

An upgrade is decided on a state like any append (rows.py), and is one commit. All files go, the
same rows come in files with the new columns, and the schema comes with them. Transaction versions
stay. A kill before the commit leaves files no log names (VACUUM removes them). After it the table
is current, and a second upgrader has nothing to do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from tidegate import __version__
from tidegate.delta.log import Change
from tidegate.delta.table.actions import add, moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action, TableState
from tidegate.failpoint import failpoint
from tidegate.lake.control.files import PROPERTIES, added, check, creation, write_file, write_pieces
from tidegate.lake.control.reading import nullable, parts
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import layout_of
from tidegate.lake.format.migrations import newest_format
from tidegate.lake.format.version import BEGUN_ID, DONE_ID, check_format, control_tables
from tidegate.limits import CONTROL_COMMIT_ATTEMPTS_MAX
from tidegate.tables import Table
from tidegate.tables.format_table import FORMAT

log = logging.getLogger(__name__)

MADE: Final = "made"
BEGUN: Final = "begun"
DONE: Final = "done"
_MARKS: Final = {MADE: (BEGUN_ID, DONE_ID), BEGUN: (BEGUN_ID,), DONE: (BEGUN_ID, DONE_ID)}
# How much of the old files goes into one new file. Memory holds one new file, and a piece of its rows.
_FILE_BYTES: Final = 16 << 20
_GROUP_ROWS: Final = 1 << 16


@dataclass(slots=True)
class Preparation:
    """Prepares one commit to one table. If the commit is decided again, the converted rows are used
    again.
    """

    lake: LakeFiles
    table: Table
    upgrade: str = ""  # the upgrade in the last actions, in words
    _written: dict[tuple[str, ...], Mapping[str, Any]] = field(default_factory=dict)  # paths of old files -> new file

    def actions(self, state: TableState) -> list[Action]:
        """The actions before a commit's own rows; [] for a table with our layout. Raises
        LakeRefused for a table we would misread.
        """
        check(state, self.table)
        self.upgrade = ""
        if not state.created:
            if self.table.path != FORMAT.path:
                _mark_made(self.lake)
            return creation(self.table, PROPERTIES)
        layout = layout_of(state, self.table)
        if layout.is_current:
            return []
        self.upgrade = layout.told
        begin(self.lake)
        schema = added(state, self.table)
        if not layout.steps:
            return schema
        groups = _groups(sorted(state.files, key=lambda file: file.path))
        return [*schema, *moved(state.files, [self._converted(state, group) for group in groups], data_change=True)]

    def _converted(self, state: TableState, files: Sequence[LiveFile]) -> Mapping[str, Any]:
        """The `add` body of a new file with the rows of some old ones; no commit names it yet."""
        names = tuple(file.path for file in files)
        if names not in self._written:
            schema = nullable(self.table.schema)
            rows = parts(self.lake, self.table, state, schema, files=files)
            self._written[names] = write_pieces(self.lake, self.table, _in_groups(rows, schema))
        return self._written[names]


def _groups(files: Sequence[LiveFile]) -> Iterator[list[LiveFile]]:
    group, size = list[LiveFile](), 0
    for file in files:
        group.append(file)
        size += file.size
        if size >= _FILE_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _in_groups(pieces: Iterator[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Pieces large enough for row groups; one empty piece if there are no rows."""
    kept, rows, is_first = list[pa.Table](), 0, True
    for piece in pieces:
        kept.append(piece)
        rows += piece.num_rows
        if rows >= _GROUP_ROWS:
            yield pa.concat_tables(kept)
            kept, rows, is_first = [], 0, False
    if kept or is_first:
        yield pa.concat_tables([schema.empty_table(), *kept])


def upgrade_table(lake: LakeFiles, table: Table) -> str:
    """Upgrade a table. Returns what was done, in a line; "" for nothing. Raises LakeUnavailable,
    LakeRefused, CommitConflict.
    """
    preparation = Preparation(lake, table)

    def decide(state: TableState) -> Change | None:
        actions = preparation.actions(state) if state.created else []
        return Change(actions, "UPGRADE") if actions else None

    lake.log(table.path).update(decide, attempts=CONTROL_COMMIT_ATTEMPTS_MAX)
    if preparation.upgrade:
        log.info("%s: upgraded: %s", lake.uri(table.path), preparation.upgrade)
    return preparation.upgrade


def _mark_made(lake: LakeFiles) -> None:
    """A lake without any control table gets our format. This is recorded before its first table, so
    a reader of the table finds it.
    """
    if not lake.log(FORMAT.path).state().created and not control_tables(lake):
        record(lake, MADE, "")


def begin(lake: LakeFiles) -> None:
    """Recorded before the first table is upgraded: from here on older releases keep out."""
    if record(lake, BEGUN, f"to format {newest_format()}"):
        failpoint("format_after_begun")


def record(lake: LakeFiles, event: str, what: str) -> bool:
    """Record an event in control/format, once. Returns whether this call did. Raises
    LakeUnavailable, LakeRefused (a newer release was here).
    """
    version, is_new = newest_format(), False
    row = {"version": version, "release": __version__, "event": event, "what": what, "recorded_at": datetime.now(UTC)}
    written = list[Mapping[str, Any]]()

    def decide(state: TableState) -> Change | None:
        nonlocal is_new
        check_format(lake)
        is_new = any(state.transaction(mark) < version for mark in _MARKS[event])
        if not is_new:
            return None
        if not written:
            written.append(write_file(lake, FORMAT, pa.Table.from_pylist([row], schema=FORMAT.schema)))
        made = [] if state.created else creation(FORMAT, PROPERTIES)
        adds = [add(body, data_change=True) for body in written]
        return Change([*made, *adds], "WRITE", dict.fromkeys(_MARKS[event], version), {"mode": "Append"})

    lake.log(FORMAT.path).update(decide)
    return is_new
