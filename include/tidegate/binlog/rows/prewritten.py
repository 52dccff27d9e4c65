"""Prepared rows. They are passed over in their own place, and are read from there again once they
are committed.

In:  an index; the wanted answers (Known.answers), None if a segment is read for its own window.
Out: which events this reading passes over, with their fates; rows of committed prewrites, with the
     commit_ts of their answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.index.fates import FATE_OF_RULE, Fates
from tidegate.binlog.index.outcome import UNDONE
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.transaction_scan import ROWS
from tidegate.errors import SchemaMismatch
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.segments.answers import Answers

# Kinds of versions that only state a table's columns again. After `snapshot`, the same rows are read again.
_SAME_ROWS: Final = ("healed", "refreshed", "snapshot")

Times = npt.NDArray[np.int64]


def passed_over(index: EventIndex, answers: Answers | None, fates: Fates) -> npt.NDArray[np.bool_]:
    """Mask of the events this reading doesn't take as rows."""
    bits = index.events[:, K.BITS]
    prepared = (bits & ROWS != 0) & (bits & K.XA_BIT != 0)
    if answers is None:
        fates[prepared & (bits & UNDONE == 0)] = FATE_OF_RULE["prewrite"]
        return np.asarray(prepared, np.bool_)
    wanted = prepared & answers.among(index.events[:, K.COMMIT_TS])
    fates[~wanted] = FATE_OF_RULE["outside the window"]
    return np.asarray(~wanted, np.bool_)


def answered(index: EventIndex, answers: Answers) -> Times:
    """The commit_ts each event had. From here on the index has that of its answer."""
    started = index.events[:, K.COMMIT_TS].copy()
    inside = answers.among(started)
    index.events[inside, K.COMMIT_TS] = answers.stamps_of(started[inside])
    return started


def check_same_table(versions: Sequence[TableVersion], started: Times, ended: Times) -> int:
    """Position of the first row whose table has changed between the prepare and the answer; -1 if
    there is none.

    Servers keep a table's definition locked while a branch is prepared, but some lose the lock in a
    restart. versions: in order of commit_ts.
    """
    starts = np.array([version.commit_ts for version in versions], np.int64)
    before = np.searchsorted(starts, started, side="right") - 1
    after = np.searchsorted(starts, ended, side="right") - 1
    for first, last in sorted({*zip(before.tolist(), after.tolist(), strict=True)}):
        if first != last and not _same(versions[max(first, 0) : last + 1], known=first >= 0):
            return int(np.flatnonzero((before == first) & (after == last))[0])
    return -1


def changed_meanwhile() -> SchemaMismatch:
    return SchemaMismatch("rows of a prepared transaction that was committed after a DDL of their table", remedy=REFILL)


def _same(versions: Sequence[TableVersion], *, known: bool) -> bool:
    """Whether all versions after the first only state it again."""
    return known and all(
        version.kind in _SAME_ROWS
        and version.status is VersionStatus.ACTIVE
        and version.fingerprint == versions[0].fingerprint
        for version in versions[1:]
    )
