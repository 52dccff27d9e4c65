"""One table's Delta log: its newest state, and commits at exactly the version after the state read.

In:  a table's place (local folder or store URL), its store's options; actions. Out: TableStates; commit files.

Why no commit is lost and none is made twice, whoever else writes to the table, on whatever machine:
1. A commit is one object named by its version (PROTOCOL.md, "Delta Log Entries"), made by put-if-absent (store.py).
   One of all candidates for a version wins, and its object is whole and durable.
2. It is tried at the version after the state on which its actions were decided, and nowhere else. If another writer
   has that version, the state has changed under the decision: CommitConflict. The caller reads and decides again.
   Nothing is ever rebased.
3. The log shows whether an attempt was made, and not an answer: each commit carries the id of its attempt
   (commitInfo.txnId). If the store says "taken" or gives an error, that version is read back: a client may have sent
   the same request twice, or its answer may be lost. If it can't be read either: LakeUnavailable, not known.
4. An attempt whose fate isn't known may still arrive later, but only at its own version. A writer that tries again
   looks for the ids of all its attempts in the commits since (update()), or records a transaction version with its
   actions. Both find it.
5. Not every writer uses put-if-absent. Delta's own stores look whether a version is free and then write it, so they may
   overwrite ours in between. At each later look, the writer of the newest version checks whether it is still its own:
   CommitOverwritten, never silence.
6. Before a commit the known version is looked for. A table dropped and made again starts at 0: a commit after
   the old one's last version would leave a gap in its log.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.delta.checkpoints import checkpoint
from tidegate.delta.commit_file import read_commit, read_commits
from tidegate.delta.object_names import commit_name, commit_version
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import Entry, LogStore
from tidegate.delta.table.actions import commit_info, info_of, lines, now_ms, transaction
from tidegate.delta.table.features import check_readable, check_writable
from tidegate.delta.table.state import NO_TABLE, Action, Keep, TableState
from tidegate.errors import CommitConflict, CommitOverwritten, LakeRefused, LakeUnavailable, TidegateError
from tidegate.failpoint import failpoint
from tidegate.limits import COMMIT_ATTEMPTS_MAX, COMMIT_BACKOFF_SECONDS

Beside = Callable[[TableState], Mapping[str, int]]  # the state before a commit -> transactions beside its own
_IN_COMMIT_TIMESTAMPS: Final = "delta.enableInCommitTimestamps"


@dataclass(frozen=True, slots=True)
class Change:
    """The content of a commit. transactions: application id -> version to record. operation: its name in the history.

    checked: the maker of the actions has done everything the table's protocol demands of a writer, as Spark does.
    """

    actions: Sequence[Action]
    operation: str
    transactions: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    checked: bool = False


class DeltaLog:
    """A table's log. Many threads and processes may use it at once. Each object remembers what it has read."""

    def __init__(
        self,
        place: str,
        options: Mapping[str, str] | None = None,
        store: LogStore | None = None,
        *,
        keep: Keep | None = None,
    ) -> None:
        """keep: which live files its states hold; None: all."""
        self.place = place
        self._nothing = TableState(place, keep=keep)
        self._store = store or log_store(f"{place.rstrip('/')}/_delta_log", options or {})
        self._lock = threading.Lock()
        self._known = self._nothing
        self._seen: Entry | None = None  # the known version's commit file
        self._own = ""  # the attempt that made the known version, if it was ours
        self.beside: Beside | None = None  # transactions of each commit of ours from here on, beside its own
        self._lost: CommitOverwritten | None = None

    @property
    def store(self) -> LogStore:
        """The folder of its commits."""
        return self._store

    @property
    def held_bytes(self) -> int:
        """About how much memory the known state takes."""
        return self._known.bytes

    @property
    def known(self) -> TableState:
        """The state of the last read, or after our own commit. Nothing is read."""
        return self._known

    def forget(self) -> None:
        """Drop the state. The next look reads the log from its checkpoint."""
        with self._lock:
            self._known, self._seen, self._own = self._nothing, None, ""

    # --- reading ------------------------------------------------------------------------------------

    def state(self) -> TableState:
        """The newest version; `created` is False without a table. An unchanged table costs two looks at its log.

        Raises LakeUnavailable, LakeRefused (a log that contradicts itself), DeltaUnsupported, CommitOverwritten (until
        accept_loss).
        """
        with self._lock:
            self._raise_lost()
            unchanged = self._is_there()
            state, last = self._forward(self._known if unchanged else self._load())
            if not unchanged:
                state, last = self._whole(state, last)
            lost = None if unchanged else self._overwritten(state)
            self._keep(state, last)
            self._lost = lost
            self._raise_lost()
            return self._known

    def check_kept(self) -> None:
        """Raise CommitOverwritten if another writer has replaced our own newest commit. One look at the log."""
        if self._own and not self._is_there():
            self.state()

    def accept_loss(self) -> None:
        """The caller has recorded our commit was overwritten, and continues with the table as it is."""
        self._lost = None

    def state_at(self, version: int) -> TableState | None:
        """The table at a version; None if the log doesn't reach back so far."""
        before = NO_TABLE
        while True:
            state = first = self._load(version)
            state, _ = self._forward(state, version)
            # Otherwise the log may have been cleaned up after the checkpoint was read, behind a newer one: look again.
            if state.version == version or first.version <= before:
                return state if state.version == version else None
            before = first.version

    def actions(self, version: int) -> list[dict[str, Any]] | None:
        """A commit's actions; None if the log has no such file."""
        return read_commit(self._store, version)

    def _is_there(self) -> bool:
        """Whether the known version is still the same commit."""
        if self._known.version == NO_TABLE:
            return False
        entry = self._store.stat(commit_name(self._known.version))
        return entry is not None and entry.is_same(self._seen)

    def _load(self, upto: int | None = None) -> TableState:
        """The table by its newest checkpoint (not newer than `upto`), or from its first commit."""
        newest = checkpoint.newest(self._store, upto, self._nothing.keep)
        return self._nothing if newest is None else self._after(self._nothing, *newest)

    def _forward(self, state: TableState, upto: int | None = None) -> tuple[TableState, list[dict[str, Any]] | None]:
        """The state after all commits that exist, and the last one's actions; None for these if there was none."""
        last = None
        for actions in read_commits(self._store, state.version + 1, upto):
            state, last = self._after(state, state.version + 1, actions), actions
        return state, last

    def _after(self, state: TableState, version: int, actions: Sequence[Action]) -> TableState:
        try:
            return state.after(version, actions)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LakeRefused(
                f"version {version} of its log doesn't follow the protocol: {type(error).__name__}: {error}",
                where=self.place,
                remedy="restore that file",
            ) from error

    def _whole(
        self, state: TableState, last: list[dict[str, Any]] | None
    ) -> tuple[TableState, list[dict[str, Any]] | None]:
        """The newest state and its last actions. If the log was cleaned up during the reading, it
        is read again, from the newer checkpoint.
        """
        while True:
            try:
                self._check_whole(state)
            except LakeRefused:
                again, last = self._forward(self._load())
                if again.version <= state.version:
                    raise
                state = again
            else:
                return state, last

    def _check_whole(self, state: TableState) -> None:
        """Raise LakeRefused if there are objects after the readable part: a log with lost commits
        isn't shorter.

        No reader would find a commit into the gap.
        """
        first = commit_name(state.version + 1)
        if state.created:
            later = [e.name for e in self._store.names(first) if commit_version(e.name) is not None]
        else:
            later = [e.name for e in self._store.names() if e.name[:1].isdigit()]
        if later and first not in later and self._store.stat(first) is None:  # it didn't come during the listing
            why = "without a usable checkpoint" if not state.created else f"after version {state.version}"
            raise LakeRefused(
                f"its log {'goes on' if state.created else 'begins'} at {later[0]} {why}",
                where=self.place,
                remedy="restore its files",
            )

    def _keep(self, state: TableState, last: Sequence[Action] | None) -> None:
        check_readable(state)
        if state is not self._known:
            self._known, self._seen, self._own = state, None, ""
            if state.created:
                self._seen = self._entry(state.version, lambda actions: last is None or actions == last)

    def _entry(self, version: int, is_it: Callable[[Sequence[Action]], bool]) -> Entry | None:
        """The entry of a commit we know; None if it is another one by now: then the next look reads
        the log again.

        The look comes before the actions: a commit that replaces it afterwards has another entry
        than this one.
        """
        entry = self._store.stat(commit_name(version))
        actions = self.actions(version)
        return entry if actions is not None and is_it(actions) else None

    def _overwritten(self, state: TableState) -> CommitOverwritten | None:
        """An error if our newest commit is another writer's now. state: the table's newest."""
        before, own = self._known, self._own
        if not own or state.table_id != before.table_id:
            return None  # or the table was dropped and made again
        actions = self.actions(before.version)
        if actions is None or _made_by(actions, own):
            return None
        return CommitOverwritten(
            f"version {before.version}, which tidegate had committed, was overwritten by "
            f"{_operation(actions)}: its rows aren't in the table",
            where=self.place,
            remedy="write to it by Spark or others only while tidegate doesn't; then release the table",
        )

    def _raise_lost(self) -> None:
        if self._lost is not None:
            raise self._lost

    # --- committing ---------------------------------------------------------------------------------

    def commit(self, read: TableState, change: Change, *, attempt: str = "") -> TableState:
        """Commit at version read.version + 1. Returns the state after it.

        attempt: an id the caller uses for all tries of one change. If an earlier try has this
        version after all, nothing is written again (update() looks for it at all versions since).
        Raises CommitConflict if somebody else has that version, LakeUnavailable (it isn't known
        whether it was made), LakeRefused, DeltaUnsupported.
        """
        attempt = attempt or uuid.uuid4().hex
        version = read.version + 1
        self._check_same_table(read)
        actions = self._complete(read, change, attempt)
        after = read.after(version, actions)
        if "schemaString" not in after.metadata:  # no reader could open it, not even we
            raise LakeRefused(
                f"{change.operation}: there is no table here", where=self.place, remedy="look at it again"
            )
        check_writable(after, change.actions, checked=change.checked)
        failpoint("delta_before_commit")
        made, mark, trouble = self._put(version, data := lines(actions))
        if not made:
            # It may be an earlier try of this change. Then the log's actions count, not those decided now.
            after = read.after(version, self._ours(version, attempt, trouble))
        failpoint("delta_after_commit")
        seen = Entry(commit_name(version), len(data), 0, mark) if mark else None
        with suppress(LakeUnavailable, LakeRefused):  # the commit is made; the next look reports any trouble
            seen = seen or self._entry(version, lambda logged: _made_by(logged, attempt))
        with self._lock:
            self._known, self._seen, self._own = after, seen, attempt
        return after

    def _check_same_table(self, read: TableState) -> None:
        """Raise CommitConflict if the version read isn't there as it was."""
        if not read.created:
            return
        with self._lock:
            known, seen = self._known, self._seen
        if read is known:
            entry = self._store.stat(commit_name(read.version))
            same = entry is not None and entry.is_same(seen)
        else:
            newest = self.state()
            same = newest.version >= read.version and newest.table_id == read.table_id
        if not same:
            raise CommitConflict(f"version {read.version} is no longer in its log", where=self.place)

    def update(
        self, decide: Callable[[TableState], Change | None], *, attempts: int = COMMIT_ATTEMPTS_MAX, attempt: str = ""
    ) -> TableState:
        """Commit what `decide` makes of the newest state. If others come first, it decides on the
        next one again.

        decide: returns None if there is nothing to do (any more). attempts: how often others may
        come first. attempt: an id by which the caller finds the commit in the log, if its fate
        stays unknown. Raises CommitConflict if others came first every time, LakeUnavailable if the
        store failed COMMIT_ATTEMPTS_MAX times.
        """
        attempt, first = attempt or uuid.uuid4().hex, None
        left: dict[type[TidegateError], int] = {CommitConflict: attempts, LakeUnavailable: COMMIT_ATTEMPTS_MAX}
        for number in itertools.count(1):
            try:
                read = self.state()
                first = read.version if first is None else first
                if self._made_since(first, read, attempt):
                    return read
            except LakeUnavailable as error:
                _count(error, left)
            else:
                change = decide(read)
                if change is None:
                    return read
                try:
                    return self.commit(read, change, attempt=attempt)
                except (CommitConflict, LakeUnavailable) as error:
                    _count(error, left)
            time.sleep(COMMIT_BACKOFF_SECONDS * 2 ** min(number, 6) * random.uniform(0.5, 1.5))  # noqa: S311 - no secret

        raise AssertionError("the loop returns or raises")

    def _complete(self, read: TableState, change: Change, attempt: str) -> list[Action]:
        """All lines of the commit, commitInfo first: readers take the in-commit timestamp from the
        first line.
        """
        info = commit_info(change.operation, attempt, parameters=change.parameters)
        if read.configuration.get(_IN_COMMIT_TIMESTAMPS, "").lower() == "true":
            info["commitInfo"]["inCommitTimestamp"] = max(now_ms(), self._timestamp(read) + 1)
        transactions = {**change.transactions, **(self.beside(read) if self.beside is not None else {})}
        marks = [transaction(app_id, version) for app_id, version in transactions.items()]
        return [info, *marks, *change.actions]

    def _timestamp(self, read: TableState) -> int:
        """The in-commit timestamp of the version read (PROTOCOL.md, "In-Commit Timestamps")."""
        if timestamp := info_of(self.actions(read.version) or ()).get("inCommitTimestamp"):
            return int(timestamp)
        raise LakeRefused(
            f"version {read.version} has no in-commit timestamp", where=self.place, remedy="restore that file"
        )

    def _put(self, version: int, data: bytes) -> tuple[bool, str, LakeUnavailable | None]:
        try:
            return *self._store.make(commit_name(version), data), None
        except LakeUnavailable as error:
            return False, "", error

    def _ours(self, version: int, attempt: str, trouble: LakeUnavailable | None) -> list[dict[str, Any]]:
        """After "taken" or an error: that version's actions, if they are of this very attempt."""
        try:
            actions = self.actions(version)
        except LakeUnavailable as error:
            raise LakeUnavailable(
                f"a commit failed ({(trouble or error).what}), and whether it is there isn't known: {error.what}",
                where=self.place,
                remedy="check the lake's store; it is tried again and counts once",
            ) from error
        if actions is None:
            if trouble is not None:
                raise trouble
            raise LakeUnavailable(f"version {version} was taken and is gone", where=self.place)
        if not _made_by(actions, attempt):
            raise CommitConflict(
                f"{_operation(actions)} changed the table after version {version - 1}",
                where=self.place,
                remedy="it is read and decided again",
            ) from trouble
        return actions

    def _made_since(self, first: int, read: TableState, attempt: str) -> bool:
        """Whether an earlier try of this change has arrived after all."""
        versions = range(first + 1, read.version + 1)
        return any(_made_by(self.actions(version) or (), attempt) for version in versions)


def _operation(actions: Sequence[Action]) -> str:
    return str(info_of(actions).get("operation", "another commit"))


def _made_by(actions: Sequence[Action], attempt: str) -> bool:
    return info_of(actions).get("txnId") == attempt


def _count(error: TidegateError, left: dict[type[TidegateError], int]) -> None:
    """Raise the error if it has come too often."""
    left[type(error)] -= 1
    if not left[type(error)]:
        raise error
