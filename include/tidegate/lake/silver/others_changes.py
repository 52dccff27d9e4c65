"""Commits of other writers that changed rows of a silver table.

In:  a table's log, our application id, two versions.
Out: a ForeignCommit for each such commit between the two versions.

OPTIMIZE and REORG rewrite rows without a change: their commits say `dataChange: false`
(PROTOCOL.md, "Add File and Remove File"). Our own commits have our transaction, or our engine's
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidegate.delta.log import DeltaLog
from tidegate.delta.table.actions import made_by_us, operation_and_engine
from tidegate.delta.table.state import Action
from tidegate.lake.silver.as_published import is_own
from tidegate.limits import OTHERS_COMMITS_MAX


class ForeignCommit(NamedTuple):
    """operation, engine: as the commit calls them, for people; may be empty."""

    version: int
    operation: str
    engine: str


def changes_by_others(log: DeltaLog, app_id: str, known: int, newest: int) -> list[ForeignCommit]:
    """Such commits after the version `known`, at most the last OTHERS_COMMITS_MAX. known: at least
    0.

    Raises LakeUnavailable, LakeRefused.
    """
    changes = []
    for version in range(max(known, newest - OTHERS_COMMITS_MAX) + 1, newest + 1):
        actions = log.actions(version)
        if actions is not None and _changes_rows(actions) and not _is_ours(actions, app_id):
            changes.append(ForeignCommit(version, *operation_and_engine(actions)))
    return changes


def _changes_rows(actions: Sequence[Action]) -> bool:
    for action in actions:
        body = action.get("add") or action.get("remove")
        if body is not None and body.get("dataChange") is not False:
            return True
    return False


def _is_ours(actions: Sequence[Action], app_id: str) -> bool:
    transactions = (body for each in actions if (body := each.get("txn")))
    return made_by_us(actions) or any(is_own(str(txn.get("appId")), app_id) for txn in transactions)
