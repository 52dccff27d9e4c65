"""The versions of rows, as a phase's changes make them: the commit_ts of the beginning and end of each.

In:  a phase's changes in any order: a number for the key of each, and its place.
Out: Spans: the counting changes in order, with the commit_ts of the end of each.

When a transaction changes a row several times, the last change counts, so no version is empty. A row that a snapshot
read counts at the low mark, and was read before the high mark. If a change lies between, the row may have that change's
values already, so the row that was read doesn't count. Changes that silver has already don't count, either: they come
again because of a wave. Nor does a row that was read before such a change, since silver has the later row. Pure.

One version per window (Spans.last_of_each): a killed window that is repeated over a larger part of the log leaves no
version of its own. One commit of silver holds the rows of a part of the log and the end of that part (applied_ts), so a
window that was killed before its commit left nothing. After its commit, the changes up to applied_ts don't count any
more (spans_of), and the repeated window adds the last of each key's later ones. That version begins where silver's
current one ends. Therefore the versions are those of consecutive parts of the log, one part per commit, whether one
large window or two made them. A part that is read again from below applied_ts, for a wave's rows, changes nothing of
that: its changes don't count, either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

OPEN: Final = np.iinfo(np.int64).max  # the end of a version that is valid


@dataclass(frozen=True, slots=True)
class Places:
    """n changes. codes: equal for equal keys. read_upto: 0; of a row read by a snapshot, when its reading ended."""

    codes: Int64s
    commit_ts: Int64s
    seq: Int64s
    ordinal: Int64s
    read_upto: Int64s


@dataclass(frozen=True, slots=True)
class Spans:
    """The m counting changes, by key and commit_ts. at: index of the change. ends: OPEN, or the commit_ts of the
    key's next one. first: whether it is the key's first one, and ends silver's version. seen: commit_ts of the
    change, or of the last row read that was equal to it.
    """

    at: Int64s
    ends: Int64s
    first: npt.NDArray[np.bool_]
    seen: Int64s

    def without(self, again: npt.NDArray[np.bool_]) -> Spans:
        """The spans without repeated rows. again: bool per span: a snapshot read the row as the key's change before it
        left it, so that change's version continues. Always False for a key's first span.
        """
        begins = np.flatnonzero(~again)
        last = np.append(begins, len(again))[1:] - 1
        return Spans(self.at[begins], self.ends[last], self.first[begins], self.seen[last])

    def last_of_each(self) -> Spans:
        """The last one of each key alone: silver's version ends with it, and versions between are left out.

        After `without`: a row read as its change left it is no later state of it.
        """
        is_last = np.ones(len(self.at), np.bool_)
        is_last[:-1] = self.first[1:]
        at = self.at[is_last]
        return Spans(at, self.ends[is_last], np.ones(len(at), np.bool_), self.seen[is_last])


def spans_of(places: Places, applied_ts: int | Int64s) -> Spans:
    """applied_ts: silver has the changes up to there; one for all, or one for each."""
    is_change = places.read_upto == 0
    order = np.lexsort((places.ordinal, places.seq, is_change, places.commit_ts, places.codes))
    at = order[_last_of(places.codes[order], places.commit_ts[order])]
    upto, stamps = places.read_upto[at], places.commit_ts[at]
    behind = _next(places.codes[at], stamps)
    applied = np.broadcast_to(applied_ts, len(places.codes))[at]
    counts = np.where(upto == 0, stamps > applied, behind > np.maximum(upto, applied))
    at = at[counts]
    codes = places.codes[at]
    first = np.ones(len(at), np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    return Spans(at, _next(codes, places.commit_ts[at]), first, places.commit_ts[at])


def _last_of(*sorted_columns: Int64s) -> npt.NDArray[np.bool_]:
    """Whether a row is the last of several with equal values in all columns."""
    last = np.ones(len(sorted_columns[0]), np.bool_)
    same: Any = np.True_
    for column in sorted_columns:
        same = same & (column[1:] == column[:-1])
    last[:-1] = ~same
    return last


def _next(codes: Int64s, stamps: Int64s) -> Int64s:
    """commit_ts of the key's next row; OPEN after the last."""
    behind = np.full(len(codes), OPEN, np.int64)
    same = codes[1:] == codes[:-1]
    behind[:-1][same] = stamps[1:][same]
    return behind
