"""One Delta transaction from given actions, by Delta's own OptimisticTransaction, on exactly the version that was read.

In:  a table's URI as Spark wants it; then the files to remove and the actions to add.
Out: a SilverSnapshot; then a committed version, or CommitConflict (do it again on a new snapshot).

Why no change can get lost: a commit of changed data is attempted once, at the version after the snapshot's. When any
other commit has that version, whatever it did, nothing is written and CommitConflict is raised. A commit that only
moves rows (data_change=False) may go behind others that Delta's conflict check finds harmless: appends, and removals of
other files. When an attempt raised, the log is searched for the attempt's own id before anything is said.

An unchanged table costs two looks at files of its log, however long that is; a commit 0.07 CPU seconds without a Spark
job, and as much again on a local disk, where Hadoop forks chmod for each file. Checkpoints are written apart from them
(spark_jobs/checkpoints.py). Commits are read once, by their few lines (spark_jobs/delta_state.py), whoever wrote them.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_jobs.delta_create import create_table
from spark_jobs.delta_jvm import DeltaClasses
from spark_jobs.delta_state import LogState, checkpoint_actions
from spark_jobs.session import fit_to_size
from tidegate.delta.live_file import LiveFile
from tidegate.errors import CommitConflict, LakeRefused, LakeUnavailable
from tidegate.limits import LOG_CHECKPOINT_BYTES_MAX, LOG_STATES_BYTES_MAX
from tidegate.merge.silver_sql import SilverShape
from tidegate.upsert.snapshot import SilverSnapshot

# More commits than this are left to Delta to reconcile.
_TAIL_COMMITS_MAX = 200
# What a table takes in memory besides its files: schema, properties, handles into the JVM.
_ENTRY_BYTES = 16 << 10
# A commit that moves rows may find other commits before it; each is checked by Delta.
_MOVES_ATTEMPTS_MAX = 20
_SETTINGS = {
    # A concurrent ALTER or a new feature is never resolved for us: what was checked before is checked again.
    "spark.databricks.delta.featureEnablement.conflictResolution.enabled": "false",
    "spark.databricks.delta.commitInfo.enabled": "true",  # carries the attempt's id
    # To list a small table's files again in its checksum Delta plans a query in each commit, a third of all it costs.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}

_LIVE = "add IS NOT NULL OR txn IS NOT NULL OR metaData IS NOT NULL OR protocol IS NOT NULL"


@dataclass(slots=True)
class _Entry:
    """What is known of one table. log: its DeltaLog. snapshot: Delta's, of `state.version`.

    commit_time: of that version's file in the log, Unix milliseconds.
    """

    log: Any
    snapshot: Any
    state: LogState
    commit_time: int | None = None

    @property
    def bytes(self) -> int:
        return self.state.bytes + _ENTRY_BYTES


class DeltaCommitter:
    """Snapshots of tables, and commits to them. One per application; its methods may run in many threads at once."""

    def __init__(self, spark: SparkSession, classes: DeltaClasses, states_bytes: int) -> None:
        self._classes = classes
        self._changes = _session(spark, attempts=0)
        self._moves = _session(spark, attempts=_MOVES_ATTEMPTS_MAX)
        self._states_bytes = states_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # least recently used first
        self._held_bytes = 0
        self._lock = threading.Lock()

    @classmethod
    def of(cls, spark: SparkSession, states_bytes: int = LOG_STATES_BYTES_MAX) -> DeltaCommitter:
        """states_bytes: what all tables' file lists may take in memory. Raises ConfigError for an unknown Delta."""
        return cls(spark, DeltaClasses.of(spark), states_bytes)

    # --- snapshots ----------------------------------------------------------------------------------

    def snapshot(self, uri: str, app_id: str) -> SilverSnapshot:
        """The table as it is now. uri: as LakeFiles.spark_uri gives it."""
        with self._classes.active(self._changes):
            try:
                return self._refresh(uri).state.snapshot(uri, app_id)
            except Py4JJavaError as error:
                raise _unreadable(uri, error) from error

    def _refresh(self, uri: str) -> _Entry:
        with self._lock:
            known = self._entries.get(uri)
        log = known.log if known else self._classes.log.forTable(self._changes, uri)
        snapshot = self._held(known) or log.update(False, self._classes.none, self._classes.none)
        version = snapshot.version()
        if known and known.state.version == version and known.snapshot.equals(snapshot):
            entry = known
        else:
            state = self._carried(known, log, snapshot, version) or self._loaded(log, snapshot, version)
            entry = _Entry(log, snapshot, state, commit_time=self._commit_time(log, version) if version >= 0 else None)
        self._remember(uri, entry)
        return entry

    def _held(self, known: _Entry | None) -> Any:
        """Delta's snapshot that this process holds, when it is the newest still; None when that must be asked.

        Two looks at files: its commit is there as it was, and no commit comes after it. Delta's update() lists all of
        the log that lies there (40 microseconds a file, and four files a commit on a local disk): a table that is
        written every other second has 170,000 of them after a day.
        """
        if known is None or known.commit_time is None:
            return None
        snapshot = known.log.unsafeVolatileSnapshot()
        version = snapshot.version()
        at = self._commit_time(known.log, version)
        if at is None or (version == known.state.version and at != known.commit_time):
            return None  # dropped, perhaps made again
        following = self._classes.commit_path(known.log.logPath(), version + 1)
        return None if self._files(known.log, following).exists(following) else snapshot

    def _commit_time(self, log: Any, version: int) -> int | None:
        """When a commit's file was written, Unix milliseconds; None when it isn't there."""
        path = self._classes.commit_path(log.logPath(), version)
        try:
            return int(self._files(log, path).getFileStatus(path).getModificationTime())
        except Py4JJavaError as error:
            if "FileNotFoundException" in _kinds(error):
                return None
            raise

    def _files(self, log: Any, path: Any) -> Any:
        """The file system of the log."""
        return path.getFileSystem(log.newDeltaHadoopConf())

    def _remember(self, uri: str, entry: _Entry) -> None:
        with self._lock:
            before = self._entries.pop(uri, None)
            self._held_bytes += entry.bytes - (before.bytes if before else 0)
            self._entries[uri] = entry
            while self._held_bytes > self._states_bytes and len(self._entries) > 1:
                self._held_bytes -= self._entries.popitem(last=False)[1].bytes

    def _carried(self, known: _Entry | None, log: Any, snapshot: Any, version: int) -> LogState | None:
        """The known state, carried forward by the commits since; None when it can't be."""
        if known is None or not 0 <= known.state.version <= version <= known.state.version + _TAIL_COMMITS_MAX:
            return None
        if known.state.table_id != snapshot.metadata().id():
            return None
        state = known.state.copy()
        return state if self._read_commits(log, state, version) else None

    def _loaded(self, log: Any, snapshot: Any, version: int) -> LogState:
        """The state from the log itself: its last checkpoint and the commits after it."""
        state = LogState()
        if version < 0:
            return state
        provider = snapshot.logSegment().checkpointProvider()
        start = provider.version()
        if version - start <= _TAIL_COMMITS_MAX:
            actions = [] if start < 0 else _read_checkpoint(log, provider)
            if actions is not None:
                state.restore(start, actions)
                if self._read_commits(log, state, version):
                    return state
        return self._reconstructed(snapshot, version)

    def _read_commits(self, log: Any, state: LogState, version: int) -> bool:
        """Carry the state to `version`; False when a commit's file is no longer there."""
        for number in range(state.version + 1, version + 1):
            lines = self._commit_lines(log, number)
            if lines is None:
                return False
            state.apply(number, lines)
        return True

    def _commit_lines(self, log: Any, version: int) -> list[str] | None:
        path = self._classes.commit_path(log.logPath(), version)
        try:
            return str(log.store().read(path, log.newDeltaHadoopConf()).mkString("\n")).split("\n")
        except Py4JJavaError as error:
            if "FileNotFoundException" in _kinds(error):
                return None
            raise

    def _reconstructed(self, snapshot: Any, version: int) -> LogState:
        """The state as Delta reconstructs it, by a Spark job."""
        rows = snapshot.stateDF().where(_LIVE).toJSON().collectAsList()
        state = LogState()
        state.restore(version, (json.loads(row) for row in self._classes.joined(rows).split("\n")))
        snapshot.uncache()
        return state

    # --- checkpoints --------------------------------------------------------------------------------

    def checkpoint_version(self, uri: str) -> int:
        """The version of the last checkpoint that this process knows of; -1 when none."""
        with self._classes.active(self._moves):
            return int(self._log(uri).unsafeVolatileSnapshot().logSegment().checkpointProvider().version())

    def checkpoint(self, uri: str) -> int:
        """Write a checkpoint of the table as it is now, and clean its log up as Delta does; its version."""
        with self._classes.active(self._moves):
            log = self._log(uri)
            snapshot = log.update(False, self._classes.none, self._classes.none)
            log.checkpoint(snapshot, self._classes.none)
            log.update(False, self._classes.none, self._classes.none)  # what is held here starts at it from now on
            return int(snapshot.version())

    def _log(self, uri: str) -> Any:
        with self._lock:
            entry = self._entries.get(uri)
        return entry.log if entry else self._classes.log.forTable(self._moves, uri)

    def create(self, uri: str, shape: SilverShape) -> None:
        """Make a silver table when it isn't there. Raises what Delta raises."""
        create_table(self._classes, self._changes, uri, shape)

    # --- commits ------------------------------------------------------------------------------------

    def commit(
        self,
        snapshot: SilverSnapshot,
        *,
        removes: Sequence[LiveFile],
        adds: Sequence[Mapping[str, Any]],
        transaction: tuple[str, int] | None,
        operation: str,
        data_change: bool,
    ) -> int:
        """Commit the removal of live files and `add` actions on top of the snapshot; returns the new version.

        transaction: (app id, version) recorded with it; when the snapshot has that version or a later one
        (snapshot.applied_ts), nothing is written and the snapshot's own version is returned. operation: its name in
        the table's history. Raises CommitConflict when another commit came first.
        """
        if transaction is not None and snapshot.applied_ts >= transaction[1]:
            return snapshot.version
        session = self._changes if data_change else self._moves
        with self._classes.active(session):
            entry = self._pinned(snapshot)
            begun = entry.log.startTransaction(self._classes.none, self._classes.some(entry.snapshot))
            begun.readWholeTable() if data_change else None
            if transaction is not None:
                begun.updateSetTransaction(*transaction, self._classes.some(int(time.time() * 1000)))
            actions = self._classes.seq(_lines(removes, adds, data_change=data_change))
            try:
                return self._attempt(begun, actions, self._classes.operation(operation, self._classes.none))
            except Py4JJavaError as error:
                return self._settle(entry, snapshot, str(begun.txnId()), error)

    def _attempt(self, begun: Any, actions: Any, operation: Any) -> int:
        return int(begun.commit(actions, operation))

    def _pinned(self, snapshot: SilverSnapshot) -> _Entry:
        """Delta's own snapshot of the very version, and its log."""
        with self._lock:
            entry = self._entries.get(snapshot.uri)
        if entry is not None and entry.state.version == snapshot.version:
            return entry
        log = self._log(snapshot.uri)
        found = log.update(False, self._classes.none, self._classes.none)
        if found.version() != snapshot.version:
            raise _conflict(snapshot, "another commit")
        return _Entry(log, found, LogState(snapshot.version))

    def _settle(self, entry: _Entry, snapshot: SilverSnapshot, attempt: str, error: Py4JJavaError) -> int:
        """How an attempt that raised has ended: by the log, not by the exception."""
        try:
            latest = entry.log.update(False, self._classes.none, self._classes.none).version()
            other = ""
            for version in range(snapshot.version + 1, latest + 1):
                info = _commit_info(self._commit_lines(entry.log, version) or [])
                if info.get("txnId") == attempt:
                    return version
                other = other or str(info.get("operation", "another commit"))
        except Py4JJavaError as unknown:
            raise LakeUnavailable(
                f"the commit failed ({_first_line(error)}) and whether it is there isn't known: {_first_line(unknown)}",
                where=snapshot.uri,
                remedy="the window is tried again; it is applied once",
            ) from error
        if latest > snapshot.version:
            raise _conflict(snapshot, other) from error
        if "IOException" in _kinds(error):
            raise LakeUnavailable(f"the commit failed: {_first_line(error)}", where=snapshot.uri) from error
        raise LakeRefused(
            f"Delta refuses the commit: {_first_line(error)}", where=snapshot.uri, remedy="use apply.writer: merge"
        ) from error


def _session(spark: SparkSession, *, attempts: int) -> Any:
    """A session (of the JVM) whose settings no statement of ours or of a user's changes."""
    session = spark.newSession()
    fit_to_size(session, large=False)  # of checkpoints: to compile their queries costs more than to run them
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    session.conf.set("spark.databricks.delta.maxCommitAttempts", str(attempts))
    return session._jsparkSession  # noqa: SLF001


def _lines(removes: Sequence[LiveFile], adds: Sequence[Mapping[str, Any]], *, data_change: bool) -> list[str]:
    """Actions as in the log's JSON (PROTOCOL.md, "Add File and Remove File")."""
    now = int(time.time() * 1000)
    lines = [json.dumps({"remove": _remove(file.action, now, data_change=data_change)}) for file in removes]
    lines += [json.dumps({"add": {**add, "dataChange": data_change}}) for add in adds]
    return lines


_KEPT_IN_REMOVE = ("path", "partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")


def _remove(add: Mapping[str, Any], now: int, *, data_change: bool) -> dict[str, Any]:
    """The tombstone of a live file: what names it, and what change feeds and VACUUM ask of it."""
    kept = {name: add[name] for name in (*_KEPT_IN_REMOVE, "stats") if add.get(name) is not None}
    return kept | {"deletionTimestamp": now, "dataChange": data_change, "extendedFileMetadata": True}


def _read_checkpoint(log: Any, provider: Any) -> list[dict[str, Any]] | None:
    """A classic checkpoint's actions; None when it is large or of another kind: then Delta reads it, as a Spark job."""
    statuses = provider.topLevelFiles()
    files = [statuses.apply(index) for index in range(statuses.size())]
    if sum(file.getLen() for file in files) > LOG_CHECKPOINT_BYTES_MAX:
        return None
    tables = []
    for file in files:
        path = file.getPath()
        if not str(path.getName()).endswith(".parquet"):
            return None
        stream = path.getFileSystem(log.newDeltaHadoopConf()).open(path)
        try:
            tables.append(pq.read_table(io.BytesIO(stream.readAllBytes())))
        finally:
            stream.close()
    return checkpoint_actions(pa.concat_tables(tables, promote_options="permissive")) if tables else None


def _commit_info(lines: Sequence[str]) -> Mapping[str, Any]:
    for line in lines:
        if line.startswith('{"commitInfo"'):
            info: Mapping[str, Any] = json.loads(line)["commitInfo"]
            return info
    return {}


def _conflict(snapshot: SilverSnapshot, other: str) -> CommitConflict:
    return CommitConflict(
        f"{other} changed the table after version {snapshot.version}",
        where=snapshot.uri,
        remedy="the window is applied to the new version",
    )


def _unreadable(uri: str, error: Py4JJavaError) -> LakeUnavailable | LakeRefused:
    if "IOException" in _kinds(error):
        return LakeUnavailable(f"the table's log can't be read: {_first_line(error)}", where=uri)
    return LakeRefused(
        f"the table's log can't be read: {_first_line(error)}", where=uri, remedy="see the table with DESCRIBE HISTORY"
    )


def _kinds(error: Py4JJavaError) -> frozenset[str]:
    """Simple names of the exception's classes and of its causes'."""
    names, cause = set(), error.java_exception
    for _ in range(10):
        if cause is None:
            break
        kind = cause.getClass()
        while kind is not None:
            names.add(str(kind.getSimpleName()))
            kind = kind.getSuperclass()
        cause = cause.getCause()
    return frozenset(names)


def _first_line(error: Py4JJavaError) -> str:
    return str(error.java_exception.toString()).split("\n", 1)[0][:500]
