"""The beginning of a table's known history, recorded in silver's log together with the rows.

In:  a table's log and a state of it.
Out: KnownHistory by the log; transactions for a commit of ours.

Two transaction versions stand under names with the table's id. `since` is a commit_ts: the versions tell all from there
on; 0: nobody knows. `seen` is the Delta version of the commit with this record. Each commit of ours to such a table
finds the valid record of the state before, and records both anew. A kill can't part the record from the rows.

Others' commits have no record, so all commits after `seen` are looked at. A new or removed file, a column that is
another one or gone, or an entry lost from the log ends the knowledge. The same goes for RESTORE, in spite of its kept
transactions, and for a commit of an older release. A clone has another id. Rewrites without a change say
`dataChange: false`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidegate.delta.log import Beside, Change, DeltaLog
from tidegate.delta.table.actions import info_of
from tidegate.delta.table.state import Action, TableState
from tidegate.lake.silver.as_published import RESTORE
from tidegate.limits import HISTORY_LOOKS_COMMITS_MAX

_SINCE: Final = "since"
_SEEN: Final = "seen"
_PHYSICAL: Final = "delta.columnMapping.physicalName"


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """since_ts: its versions tell the rows at each commit_ts from there on; 0: nobody knows. seen: the version of its
    commit; all later ones are harmless.
    """

    since_ts: int
    seen: int


def known_history(log: DeltaLog, state: TableState, name: str) -> KnownHistory | None:
    """The valid record for a state; None without one. name: history_name().

    Raises LakeUnavailable, LakeRefused: of the log.
    """
    since_ts, seen = (state.transaction(_id(state, name, what)) for what in (_SINCE, _SEEN))
    if not seen or seen > state.version or state.version - seen > HISTORY_LOOKS_COMMITS_MAX:
        return None
    is_described = False
    for version in range(state.version, seen, -1):
        actions = log.actions(version)
        if actions is None or not _is_harmless(actions, state):
            return None
        is_described = is_described or any("metaData" in action for action in actions)
    if is_described and not _has_columns_of(log.state_at(seen), state):
        return None
    return KnownHistory(since_ts, seen)


def recorded(state: TableState, name: str, since_ts: int) -> dict[str, int]:
    """The transactions of the commit after a state."""
    return {_id(state, name, _SINCE): since_ts, _id(state, name, _SEEN): state.version + 1}


def history_name(pipeline: str, table: str) -> str:
    """The name of a table's record. It marks no commit as one of ours with rows (is_own)."""
    return f"tidegate-history/{pipeline}/{table}"


def forget_history(log: DeltaLog, name: str) -> None:
    """Nothing is known from here on, until it begins anew. Callers forget first, and then record a standing without a
    part of the source's log: after a kill in between too little is known, never too much.

    Raises as DeltaLog.update.
    """

    def decide(read: TableState) -> Change | None:
        if not read.created or not read.transaction(_id(read, name, _SINCE)):
            return None
        return _word("FORGET HISTORY", read, name, 0)

    log.update(decide)


def renew_history(log: DeltaLog, name: str) -> None:
    """The record stands in the newest commit: entries before it may leave the log. Raises as DeltaLog.update."""

    def decide(read: TableState) -> Change | None:
        if read.transaction(_id(read, name, _SEEN)) in (0, read.version):
            return None
        known = known_history(log, read, name)
        return None if known is None else _word("KEEP HISTORY", read, name, known.since_ts)

    log.update(decide)


def _word(operation: str, read: TableState, name: str, since_ts: int) -> Change:
    """A commit of a record alone. No feature demands anything of it: it has neither files nor metadata."""
    return Change([], operation, recorded(read, name, since_ts), checked=True)


def keeping(log: DeltaLog, decide: Callable[[TableState, KnownHistory | None], int], name: str) -> Beside:
    """A DeltaLog's `beside`. decide gives since_ts of the next commit, by a state and its valid record."""

    def beside(read: TableState) -> Mapping[str, int]:
        if not read.created:
            return {}  # it has no id yet
        return recorded(read, name, decide(read, known_history(log, read, name)))

    return beside


def _id(state: TableState, name: str, what: str) -> str:
    return f"{name}/{state.table_id}/{what}"


def _is_harmless(actions: Sequence[Action], state: TableState) -> bool:
    """Whether a commit has left all rows as they were, and the columns as the state has them."""
    if info_of(actions).get("operation") == RESTORE:
        return False
    for action in actions:
        body = action.get("add") or action.get("remove")
        if body is not None and body.get("dataChange") is not False:
            return False
        if (metadata := action.get("metaData")) and _columns(metadata) != _columns(state.metadata):
            return False
    return True


def _has_columns_of(before: TableState | None, state: TableState) -> bool:
    """Whether each column of an earlier state is still there. Others may have come beside them."""
    return before is not None and set(_columns(before.metadata)) <= set(_columns(state.metadata))


def _columns(metadata: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    fields = TableState("").after(0, [{"metaData": metadata}]).schema["fields"]
    return [(str(f["name"]), str(f["type"]), str((f.get("metadata") or {}).get(_PHYSICAL, ""))) for f in fields]
