"""The writer of a table's window: the positional upsert or MERGE, by their costs.

In:  a silver table's snapshot, about how many bytes of binlog its changes are, its key, what the
     pipeline file says.
Out: a Choice with its reason in one phrase, for the window's log.

fitness.why_not names the tables that the positional writer can't write: cost doesn't matter there.
If both writers can write a table, the figures below count: CPU seconds on one x86 core of 2026,
fitted to 1 M and 10 M rows with 100,000 and 1 M changes (benchmarks/). Only their ratio matters. It
is 8 or more for nearly every table with a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Bytes of a row event of a narrow table. The number of changes is estimated before they are decoded, so the estimate is
# rather too high.
_CHANGE_BYTES: Final = 60
# Key bytes of one row, when a column's type doesn't say: text and binary.
_TEXT_KEY_BYTES: Final = 24
_FIXED_KEY_BYTES: Final = 8
# Bytes of the driver's memory per change while its phase is resolved, measured with a key of one column: 56 in its key
# file, a copy of its order, and twice 16 to 32 for its slot in the table. Each further column of the key takes 25.
KEY_RECORD_BYTES: Final = 168


@dataclass(frozen=True, slots=True)
class Choice:
    """positional: or MERGE. why: one phrase."""

    positional: bool
    why: str


@dataclass(frozen=True, slots=True)
class Load:
    """A window's changes for a table: target_rows live rows in target_files files, change_bytes of binlog."""

    target_rows: int
    target_files: int
    change_bytes: int
    key_bytes: int

    @property
    def changes(self) -> int:
        return self.change_bytes // _CHANGE_BYTES


def key_bytes(types: Sequence[str]) -> int:
    """Bytes of one row's key by its columns' Delta types."""
    return sum(_TEXT_KEY_BYTES if t in ("string", "binary") else _FIXED_KEY_BYTES for t in types)


def positional_seconds(load: Load) -> float:
    """CPU seconds to open and probe the files, to hash and write the changes, and to commit once."""
    probed = load.target_files * 2e-3 + load.target_rows * (3e-8 + 6e-9 * load.key_bytes)
    return 0.05 + probed + load.changes * 4e-6


def merge_seconds(load: Load) -> float:
    """CPU seconds to plan and run two joins, and to rewrite or mark rows. The shuffle grows with the target's rows and
    the changes.
    """
    return 1.5 + load.target_files * 2e-2 + load.target_rows * 1e-6 + load.changes * 3e-5


def choose(load: Load, *, keys_bytes_max: int) -> Choice:
    """The cheaper writer; but never positional when the changes' keys would not fit into keys_bytes_max."""
    keys = load.changes * KEY_RECORD_BYTES
    if keys > keys_bytes_max:
        return Choice(positional=False, why=f"keys of about {load.changes:,} changes need {keys >> 20} MiB")
    ours, theirs = positional_seconds(load), merge_seconds(load)
    return Choice(ours <= theirs, f"about {ours:.2f} CPU-s by position, {theirs:.2f} by MERGE")
