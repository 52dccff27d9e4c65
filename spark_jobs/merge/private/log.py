"""A private log: where Spark writes a silver table without committing to the table's own log.

In:  a table of the lake, statements of Spark.
Out: one commit of all that they did, on exactly the version that they saw; or nothing, and CommitConflict.

On a local disk Delta's log stores in the JVM don't keep two processes from committing the same version, and nowhere do
they arbitrate between Spark and tidegate. Therefore Spark gets a copy of the log in a folder of the table (copy.py),
and tidegate.delta commits the result. A rewrite also reads its rows from the copy: exactly these rows are replaced by
the commit.

After the commit the folder's `_delta_log` is deleted, and its data files stay: VACUUM removes them when they are dead.
Without a commit a new folder is deleted as a whole. A killed process leaves a folder with a `_delta_log`, which VACUUM
doesn't see. It is known by its age (folders.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.merge.private.copy import PrivateCopy
from spark_jobs.merge.private.folders import PrivateFolders, new_name
from tidegate.delta.exchange import exchange
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.object_names import LOG, commit_name, commit_version
from tidegate.delta.stores.by_place import log_store
from tidegate.delta.stores.store import LogStore
from tidegate.delta.table.actions import lines, parsed
from tidegate.delta.table.state import Action, TableState, file_key
from tidegate.errors import CommitConflict, DeltaUnsupported, LakeRefused, LakeUnavailable
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.spark_sql import table_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW_TRACKING: Final = "rowTracking"
_FOLDERS: Final = PrivateFolders()


@dataclass(slots=True)
class PrivateLog:
    """A copy of a table's log that is open. keeps: whether the folder may hold data files of the table."""

    lake: LakeFiles
    session: SparkSession
    path: str
    copy: PrivateCopy
    keeps: bool

    @property
    def folder(self) -> str:
        """Relative to the lake."""
        return f"{self.path}/{self.copy.name}"

    @property
    def uri(self) -> str:
        """The copy as Spark takes a table."""
        return f"{self.lake.spark_uri(self.path)}/{self.copy.name}"

    @property
    def target(self) -> str:
        """The copy in a SQL statement."""
        return table_at(self.uri)

    @property
    def state(self) -> TableState:
        """The table that was copied."""
        return self.copy.state

    @property
    def inside(self) -> TableState:
        """The copy as it began: apply() takes actions that were decided on it."""
        return self.copy.inside

    @property
    def version(self) -> int:
        """The copy's newest one."""
        return len(self._names()) - 1

    def rows(self) -> DataFrame:
        """The table as the copy has it by now."""
        return self.session.read.format("delta").load(self.uri)

    def apply(self, actions: Sequence[Action]) -> None:
        """A commit of the copy for which Spark isn't needed. Spark's next statement sees it."""
        if actions:
            self._write(len(self._names()), actions)

    def begin(self) -> None:
        """Write the copy."""
        self.lake.make_folder(f"{self.folder}/{LOG}")
        self._write(0, self.copy.first)

    def undo(self) -> None:
        """Put the copy back to its beginning. Files that Spark wrote meanwhile are in no commit:
        VACUUM removes them.
        """
        self.lake.delete_folder(f"{self.folder}/{LOG}")
        _forget(self.session, self.uri)
        self.begin()

    def end(self) -> None:
        """Delete the copy. An error here changes nothing about the outcome."""
        with suppress(Exception):  # maintain and VACUUM take what stays
            self.lake.delete_folder(f"{self.folder}/{LOG}" if self.keeps else self.folder)
            _forget(self.session, self.uri)
            if self.keeps:
                _FOLDERS.give(self.lake.uri(self.path), self.copy.name)

    def _write(self, version: int, actions: Sequence[Action]) -> None:
        self.lake.write(f"{self.folder}/{LOG}/{commit_name(version)}", [lines(actions)])

    def commit(self, transactions: Mapping[str, int] | None = None) -> TableState:
        """One commit of all that was done on the copy; the table's state after it.

        transactions: recorded with it, also when nothing else was done; without any nothing is committed then. Raises
        CommitConflict when another commit came first, LakeUnavailable when it isn't known whether it is there.
        """
        commits = self._commits()
        change = Change(self.copy.translated(commits), _operation(commits), transactions or {}, checked=True)
        if not change.actions and not change.transactions:
            return self.state
        return self._committed(change.actions, lambda log: log.commit(self.state, change))

    def exchange(self) -> TableState:
        """As commit, for statements that only moved rows. Other commits may come in between, if they leave those files
        as they are.

        Raises CommitConflict when one of them changed.
        """
        if _ROW_TRACKING in self.state.features:  # files say in which version they came
            return self.commit()
        commits = self._commits()
        actions = self.copy.translated(commits)
        removes = [self.state.live[file_key(action["remove"])] for action in actions if "remove" in action]
        adds = [action["add"] for action in actions if "add" in action]
        if len(removes) + len(adds) < len(actions) or any(add["dataChange"] for add in adds) or not actions:
            return self.commit()
        name = _operation(commits)
        return self._committed(actions, lambda log: exchange(log, removes, adds, operation=name))

    def _committed(self, actions: Sequence[Action], attempt: Callable[[DeltaLog], TableState]) -> TableState:
        failpoint("private_before_commit")
        before, files = self.keeps, self.copy.files(actions)
        self.lake.settle_files(self.path, files)  # Spark leaves them to the system
        self.keeps = before or bool(files)
        try:
            return attempt(self.lake.log(self.path))
        except (CommitConflict, DeltaUnsupported):
            self.keeps = before
            raise

    def _commits(self) -> list[Sequence[Action]]:
        """The commits to the copy, in order. Raises LakeUnavailable when not all of it is there."""
        names = self._names()
        commits = [self._store.get(name) for name in names]
        if not names or names != [commit_name(version) for version in range(len(names))] or None in commits:
            raise LakeUnavailable("a private log isn't whole", where=self.uri, remedy="it is made again")
        return [parsed(data) for data in commits[1:] if data is not None]

    def _names(self) -> list[str]:
        return [entry.name for entry in self._store.names("0") if commit_version(entry.name) is not None]

    @property
    def _store(self) -> LogStore:
        return log_store(f"{self.lake.uri(self.folder)}/{LOG}", self.lake.storage_options)


@contextmanager
def private_log(
    lake: LakeFiles, session: SparkSession, path: str, read: TableState | None = None
) -> Iterator[PrivateLog]:
    """A copy of a table's log. path: relative to the lake. session: whose statements follow. read: its newest state.

    Raises LakeRefused when there is no such table.
    """
    state = lake.log(path).state() if read is None else read
    if not state.created:
        raise LakeRefused("there is no table to be written", where=lake.uri(path), remedy="make it first")
    private = _opened(lake, session, path, state)
    try:
        private.begin()
        yield private
    finally:
        private.end()


def _opened(lake: LakeFiles, session: SparkSession, path: str, state: TableState) -> PrivateLog:
    """In a folder that this process has already, or in a new one."""
    name = _FOLDERS.take(lake.uri(path))
    if name is not None and log_store(f"{lake.uri(path)}/{name}/{LOG}", lake.storage_options).names():
        name = None  # its log is still there: the deletion failed
    copy = PrivateCopy(state, lake.spark_uri(path), name or new_name())
    return PrivateLog(lake, session, path, copy, keeps=name is not None)


def change_table(
    lake: LakeFiles,
    session: SparkSession,
    path: str,
    work: Callable[[PrivateLog], bool | None],
    transaction: tuple[str, int] | None = None,
    *,
    check: Callable[[TableState], None] = lambda _: None,
) -> TableState:
    """The effect of `work` on a private log in one commit; again on the newer state when another commit came first.

    work: returns False to leave the table as it is. transaction: (application id, version); when the table has that
    version or a later one, nothing is done. check: raises what keeps a state from being written to. Raises
    CommitConflict when others came first every time.
    """
    for attempt in range(1, COMMIT_ATTEMPTS_MAX + 1):
        state = lake.log(path).state()
        if transaction is not None and state.transaction(transaction[0]) >= transaction[1]:
            return state
        check(state)
        try:
            with private_log(lake, session, path, state) as private:
                if work(private) is False:
                    return state
                return private.commit(dict([transaction]) if transaction else {})
        except CommitConflict:
            if attempt == COMMIT_ATTEMPTS_MAX:
                raise
    raise AssertionError("the loop returns or raises")


def _operation(commits: Sequence[Sequence[Action]]) -> str:
    names = [
        str(action["commitInfo"]["operation"]) for commit in commits for action in commit if "commitInfo" in action
    ]
    return names[-1] if names else "WRITE"


def _forget(session: SparkSession, uri: str) -> None:
    """Remove the copy from Delta's cache. A window makes a copy for each table, and nobody reads it again."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - Delta has no Python word for it
    place = jvm.org.apache.hadoop.fs.Path(uri)
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(session._jsparkSession, place)  # noqa: SLF001
