"""A table's window, cut where its schema changes.

In:  (after_ts, upto_ts] of a logical table, and the schema versions that begin inside it.
Out: phases in order: rows up to a DDL, the DDL, rows after it ... Each is one Delta transaction whose
     txnVersion is the phase's upto_ts, so a killed window goes on at the phase where it stopped.

Rows are applied with the columns in force at their commit_ts, so a phase never mixes rows from both sides of a DDL.
Phases before a TRUNCATE or DROP of all rows are left out, with their schema changes: the emptying phase gives the table
its columns. But phases up to a rename, or to a partition that changes tables, must stay, because there another name
takes the rows over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from tidegate.schema.follow.renames import gives, leaves
from tidegate.schema.model.columns import TableVersion, VersionStatus


@dataclass(frozen=True, slots=True)
class RowsPhase:
    """Changes with commit_ts in (after_ts, upto_ts]."""

    after_ts: int
    upto_ts: int


@dataclass(frozen=True, slots=True)
class DdlPhase:
    """Schema changes at one commit_ts: (version before or None, version from then on) per physical table."""

    upto_ts: int
    changes: tuple[tuple[TableVersion | None, TableVersion], ...]


Phase = RowsPhase | DdlPhase


def phases(
    after_ts: int, upto_ts: int, changes: Iterable[tuple[TableVersion | None, TableVersion]], *, rows_stay: bool
) -> list[Phase]:
    """Split (after_ts, upto_ts] at the commit_ts of each change.

    rows_stay: whether silver still has rows when a physical table is empty: those of other shards, or deleted ones.
    """
    inside = sorted(
        (change for change in changes if after_ts < change[1].commit_ts <= upto_ts),
        key=lambda change: change[1].commit_ts,
    )
    made: list[Phase] = []
    at = after_ts
    for commit_ts, group in groupby(inside, key=lambda change: change[1].commit_ts):
        together = tuple(group)
        if commit_ts - 1 > at:
            made.append(RowsPhase(at, commit_ts - 1))
        if not rows_stay and any(empties(new) and not leaves(old, new) for old, new in together):
            made = _given_away(made)
        made.append(DdlPhase(commit_ts, together))
        at = commit_ts
        # A CREATE ... SELECT commits its rows at the DDL's own commit_ts: they belong after it.
        made.append(RowsPhase(commit_ts - 1, commit_ts))
    if upto_ts > at:
        made.append(RowsPhase(at, upto_ts))
    return _joined(made)


def empties(version: TableVersion) -> bool:
    """Whether a version starts with no rows: all rows before it are gone."""
    return version.kind in ("truncate", "snapshot") or version.status == VersionStatus.DROPPED


def _given_away(begun: list[Phase]) -> list[Phase]:
    """The phases up to the last one in which rows of the table go on under another name."""
    given = [isinstance(phase, DdlPhase) and any(gives(*change) for change in phase.changes) for phase in begun]
    return begun[: len(given) - given[::-1].index(True)] if any(given) else []


def _joined(apart: list[Phase]) -> list[Phase]:
    """Neighbouring row phases become one."""
    joined: list[Phase] = []
    for phase in apart:
        last = joined[-1] if joined else None
        if isinstance(phase, RowsPhase) and isinstance(last, RowsPhase):
            joined[-1] = RowsPhase(last.after_ts, phase.upto_ts)
        else:
            joined.append(phase)
    return joined
