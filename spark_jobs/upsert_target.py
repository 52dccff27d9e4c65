"""What the positional writer is told of a table, and what decode staged for it: plain data that travels to workers.

In:  nothing; these are values.
Out: UpsertTarget (made by choose_writers), StagedUpsert (made by decode_changes).
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.upsert.file_layout import FileLayout


@dataclass(frozen=True, slots=True)
class StagePhase:
    """Rows with commit_ts in (after_ts, upto_ts], and what silver looks like for them."""

    after_ts: int
    upto_ts: int
    layout: FileLayout


@dataclass(frozen=True, slots=True)
class UpsertTarget:
    """A logical table that the positional writer takes.

    path: of silver, relative to the lake. phases: its rows phases in order.
    """

    name: str
    path: str
    phases: tuple[StagePhase, ...]


@dataclass(frozen=True, slots=True)
class StagedUpsert:
    """Changes of one logical table in one phase, ready for the positional writer.

    upto_ts: the phase's. keys: path of the key file, relative to the lake. changes: its records. files: paths of the
    data files that it names, relative to the lake; no log names them yet.
    """

    name: str
    upto_ts: int
    keys: str
    changes: int
    files: tuple[str, ...]
