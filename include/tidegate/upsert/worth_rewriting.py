"""The files of a silver table worth rewriting after a window, to keep the next windows cheap.

In:  the live files of a snapshot, and how many bytes may be rewritten now.
Out: groups of files; each becomes one file or a few, with the same live rows. Pure: the log's
     figures decide.

Every window leaves a small file and a few deletion vectors. Files are in tiers by the bytes of
their live rows; each tier is eight times the one below. Eight files of one tier become one of the
next. Therefore a row is rewritten about once per tier, and a table has at most seven small files per tier.
All files below the first tier's bound count as one tier, however small they are, because to open a
file costs more than its rows. A file with many dead rows is rewritten alone: probes read its dead
rows for nothing. If these are few bytes, to read them costs less than the rewrite, and the file's
tier takes it soon.

A file's bytes are those on the disk, or those that its rows take in memory at least, if these are more: a rewrite costs
by rows, and cuts its files by bytes in memory. Otherwise, files of narrow rows that pack well would never be full, and
apply would rewrite the whole table again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.delta.table.live_file import LiveFile
from tidegate.limits import MIB

# This many files of one tier are rewritten into the next; each tier is as many times larger.
TIER_FILES: Final = 8
FIRST_TIER_BYTES: Final = MIB // 2
# Larger files are left as they are, however many: clustering makes larger ones (maintain).
FULL_BYTES: Final = FIRST_TIER_BYTES * TIER_FILES**2
# Part of a file's rows that may be dead: below it, reading them costs less than rewriting the others.
DEAD_SHARE_MAX: Final = 0.3
# Fewer dead bytes than this are no reason. A rewrite is a file more, and a commit: some milliseconds of CPU.
DEAD_BYTES_MIN: Final = MIB // 16


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files of one partition whose live rows go into a new file. bytes: of the files, as a budget counts them."""

    files: tuple[LiveFile, ...]
    bytes: int


def choose(
    files: Sequence[LiveFile], budget_bytes: int, key: Sequence[str] = (), ended_in: str = "", row_bytes: int = 0
) -> list[Rewrite]:
    """The files to rewrite now, at most budget_bytes in all; smallest tiers first, then the files that are most dead.

    key: names of the key; files come in the order of its first column, so a split stays in order. ended_in: null in
    live rows alone. Files without one stay apart, so windows needn't look through them. row_bytes: of a row in
    memory, at least.
    """
    chosen: list[Rewrite] = []
    left = budget_bytes
    for group in _tiers(files, ended_in, row_bytes):
        if len(group) < TIER_FILES:
            continue
        taken = _fitting(group, left, row_bytes)
        if len(taken) > 1:
            chosen.append(Rewrite(_in_order(taken, key), sum(_bytes(file, row_bytes) for file in taken)))
            left -= chosen[-1].bytes
    done = {id(file) for rewrite in chosen for file in rewrite.files}
    for file in sorted(filter(_is_too_dead, files), key=lambda file: (-dead_share(file), file.path)):
        size = _bytes(file, row_bytes)
        if id(file) not in done and size <= left:
            chosen.append(Rewrite((file,), size))
            left -= size
    return chosen


def _bytes(file: LiveFile, row_bytes: int) -> int:
    return max(file.size, row_bytes * (file.rows or 0))


def dead_share(file: LiveFile) -> float:
    """Part of the file's rows that its deletion vector takes away; 0 when the log doesn't say how many it has."""
    vector, rows = file.deletion_vector, file.rows
    return vector.cardinality / rows if vector and rows else 0.0


def _is_too_dead(file: LiveFile) -> bool:
    return dead_share(file) > DEAD_SHARE_MAX and file.size - live_bytes(file) >= DEAD_BYTES_MIN


def live_bytes(file: LiveFile, row_bytes: int = 0) -> int:
    return round(_bytes(file, row_bytes) * (1 - dead_share(file)))


def tier(size: int) -> int:
    """0 below FIRST_TIER_BYTES, 1 below eight times that, and so on."""
    number, bound = 0, FIRST_TIER_BYTES
    while size >= bound:
        number, bound = number + 1, bound * TIER_FILES
    return number


def _tiers(files: Sequence[LiveFile], ended_in: str, row_bytes: int) -> list[list[LiveFile]]:
    """Files that aren't full, by tier and partition; the lowest tier first."""
    by_tier: dict[tuple[int, str, bool], list[LiveFile]] = {}
    for file in files:
        size = live_bytes(file, row_bytes)
        if size < FULL_BYTES:
            apart = str(sorted(file.partition_values.items())), bool(ended_in) and file.nulls(ended_in) == 0
            by_tier.setdefault((tier(size), *apart), []).append(file)
    return [by_tier[name] for name in sorted(by_tier)]


def _fitting(group: Sequence[LiveFile], budget_bytes: int, row_bytes: int) -> list[LiveFile]:
    """As many files as the budget allows, smallest first: so the fewest bytes are rewritten per
    removed file.
    """
    taken: list[LiveFile] = []
    for file in sorted(group, key=lambda file: (_bytes(file, row_bytes), file.path)):
        size = _bytes(file, row_bytes)
        if size > budget_bytes:
            break
        taken.append(file)
        budget_bytes -= size
    return taken


def _in_order(files: Sequence[LiveFile], key: Sequence[str]) -> tuple[LiveFile, ...]:
    def place(file: LiveFile) -> tuple[str, float, str, str]:
        bounds = file.bounds(key[0]) if key else None
        low = bounds[0] if bounds else None
        number = float(low) if isinstance(low, int | float) else 0.0
        return type(low).__name__, number, low if isinstance(low, str) else "", file.path

    return tuple(sorted(files, key=place))
