"""The facts in a silver table's own log, for a comparison with control/cuts (standing/silver.py).

In:  a table's log, its application id, its row in control/cuts.
Out: Shown, from the log; Said, from rows of control/cuts.

How much is read: if nobody else wrote to the log since its row of control/cuts, only the newest
state. Otherwise the commits since, the newest first, up to our own newest one. They are few, since
maintain records its commits in a row of its own. When an apply starts, `is_quiet` finds an
untouched table by one listing after the published version (two looks on a disk).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import commit_name, commit_version
from tidegate.delta.stores.store import Entry, LocalStore
from tidegate.delta.table.actions import info_of
from tidegate.delta.table.state import Action, TableState
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.rewrites import worst_rewrite
from tidegate.standing.silver import NO_SILVER, Answer, Said, Shown, answer, is_same_log
from tidegate.tables import CUTS

EMPTIED: Final = "rows"  # the work of a statement that removes all rows, in its ddl_id
VALUES: Final = "values"  # of one that changes columns, where the rows' own id would hide rows of its commit_ts
_DDL: Final = "/ddl/"
RESTORE: Final = "RESTORE"  # as Spark and delta-rs call it in a commit
_COLUMNS: Final = ["table", "delta_version", "silver_id", "silver_ts", "published_at"]
_CLOCKS_MS: Final = 1000  # a row is stamped directly after its commit, perhaps by another clock


def said_of_all(lake: LakeFiles) -> dict[str, Said]:
    """Logical table -> its silver as the newest row of control/cuts says. Raises LakeUnavailable,
    LakeRefused.
    """
    rows = control.newest(
        lake, CUTS, by=["table"], order=["cut_ts", "published_at"], columns=_COLUMNS, filters=[("table", "!=", "")]
    )
    return {row["table"]: said_by(row) for row in rows.to_pylist()}


def said_by(row: Mapping[str, Any]) -> Said:
    """A row of control/cuts, as Said."""
    at = row.get("published_at")
    at_ms = int(at.timestamp() * 1000) if at is not None else 0
    return Said(row["delta_version"], row.get("silver_id") or "", row.get("silver_ts") or 0, at_ms)


def own_ts(state: TableState, app_id: str) -> int:
    """The newest commit_ts our commits recorded in the table: of rows, of a DDL, or of a
    sweep.
    """
    return max((at for name, at in state.transactions.items() if is_own(name, app_id)), default=0)


def ddl_id(app_id: str, source: str, name: str, what: str) -> str:
    """The application id of one kind of work for a table's DDL. name: of the table at the source.

    The rows after a statement are another commit, under app_id itself.
    """
    return f"{app_id}{_DDL}{source}.{name}/{what}"


def emptied_ts(state: TableState, app_id: str, name: str) -> int:
    """The newest statement on a plain table to leave silver without rows; 0 for none. name: of the
    table at the source. Its commit says up to where rows count as written; of 0.3.0 it didn't.
    """
    begin, end = f"{app_id}{_DDL}", f".{name}/{EMPTIED}"  # of any source: the file may have renamed it
    ours = (at for of, at in state.transactions.items() if of.startswith(begin) and of.endswith(end))
    return max(ours, default=0)


def is_quiet(log: DeltaLog, said: Said) -> bool:
    """Whether the published version has stayed the newest, unchanged since it was published. One
    listing; two looks on a disk.

    If the commit's file is newer than its row, somebody replaced it, or put the log back: False,
    and the log is read. After a whole lake was moved that is so for each table, until its next row.
    A replacement within a second of the row isn't seen here, nor one a store's slow clock dates
    before it. The table's next write sees it.
    """
    if isinstance(log.store, LocalStore):
        newest = log.store.changed_ms(commit_name(said.version))
        return 0 < newest <= said.published_ms + _CLOCKS_MS and log.store.stat(commit_name(said.version + 1)) is None
    return is_newest(log.store.names(commit_name(said.version)), said)


def is_newest(listed: Iterable[Entry], said: Said) -> bool:
    """Whether the published commit is the last one, and its file no newer than its row of
    control/cuts.

    listed: the log's entries from the published version on.
    """
    commits = [entry for entry in listed if commit_version(entry.name) is not None]
    if [commit_version(entry.name) for entry in commits] != [said.version]:
        return False
    return commits[0].modified_ms <= said.published_ms + _CLOCKS_MS


def shown_by(lake: LakeFiles, log: DeltaLog, state: TableState, app_id: str, said: Said | None) -> Shown:
    """The facts in the table's own log. state: the newest. Raises LakeUnavailable, LakeRefused."""
    if not state.created:
        return Shown()
    newest = own_ts(state, app_id)
    has_rows = not newest and any(file.live_rows != 0 for file in state.files)  # asked only if no commit is ours
    shown = Shown(state.version, state.table_id, newest, state.transaction(app_id), has_rows)
    if said is None or said.never_filled:
        return shown
    same = is_same_log(said, shown)
    others, is_whole = _others(log, app_id, state.version, said.version if same else NO_SILVER)
    if _restored(others):
        shown = replace(shown, restored=True)
    elif not is_whole:
        shown = replace(shown, cleaned=True)
    elif same:
        shown = replace(shown, rewrite=worst_rewrite(lake, log, others))
    return replace(shown, born=said.table_id not in ("", state.table_id) and _born(log, state))


def compared(lake: LakeFiles, log: DeltaLog, app_id: str, said: Said) -> Answer:
    """The newest state of a table against its row of control/cuts. A job asks this before naming a
    newer version there: others' acts below it count as seen then.

    Raises LakeUnavailable, LakeRefused.
    """
    return answer(said, shown_by(lake, log, log.state(), app_id, said))


def was_restored(log: DeltaLog, app_id: str, newest: int, known: int = NO_SILVER) -> bool | None:
    """Whether a RESTORE comes after our newest commit and after the known version. None if entries
    from there on are no longer in the log.

    A RESTORE takes rows back, but keeps our transaction versions.
    """
    others, is_whole = _others(log, app_id, newest, known)
    return _restored(others) or (False if is_whole else None)


def _others(log: DeltaLog, app_id: str, newest: int, known: int) -> tuple[dict[int, Sequence[Action]], bool]:
    """The commits after our newest one and after the known version, the newest first; whether the
    log has all of them: a lost entry means that all earlier ones are lost.
    """
    others: dict[int, Sequence[Action]] = {}
    for version in range(newest, known, -1):
        actions = log.actions(version)
        if actions is None:
            return others, False
        if any(is_own(str(txn.get("appId")), app_id) for action in actions if (txn := action.get("txn"))):
            break
        others[version] = actions
    return others, True


def _restored(others: Mapping[int, Iterable[Action]]) -> bool:
    return any(info_of(actions).get("operation") == RESTORE for actions in others.values())


def _born(log: DeltaLog, state: TableState) -> bool:
    return _first_id(log.actions(0) or ()) == state.table_id


def _first_id(actions: Iterable[Action]) -> str:
    return next((str(metadata["id"]) for action in actions if (metadata := action.get("metaData"))), "")


def is_own(name: str, app_id: str) -> bool:
    """Whether an application id belongs to the table: to its rows, a DDL or a sweep."""
    return name == app_id or name.startswith(f"{app_id}/")
