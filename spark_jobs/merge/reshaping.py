"""Follow a statement that adds, changes or drops columns without Spark: new files, in one commit.

In:  a table's writer, what the statement asks of silver.
Out: True: silver has it. False: nothing was done, and Spark has to do it. A killed one leaves files that no commit
     names.

Spark takes seconds to start and seconds for a statement, and the other tables of the window wait for the cut. A commit
is based on exactly the state that was rewritten. If another commit came first, the new files of files that are still
live are used again, and only the others are written anew.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final

import pyarrow as pa

from spark_jobs.merge.silver_writer import SilverWriter
from tidegate import config, limits
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved, now_ms
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState, file_key
from tidegate.errors import CommitConflict, SchemaMismatch, TidegateError, UnsupportedValue
from tidegate.failpoint import failpoint
from tidegate.upsert.files.abandoned import delete_added
from tidegate.upsert.reshape import Reshape, Reshaping

log = logging.getLogger(__name__)

OPERATION: Final = "REPLACE COLUMNS"
Decide = Callable[[TableState], Reshape | str | None]


class Rewriters:
    """The threads that rewrite files, shared by all tables of an application. Their number bounds
    the files in memory.
    """

    def __init__(self) -> None:
        threads = max(1, min(os.cpu_count() or 1, limits.DRIVER_THREADS_MAX))
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="reshape")


def reshape(writer: SilverWriter, decide: Decide, transaction: tuple[str, int] | None) -> bool:
    """Do the work that `decide` finds on the newest state. If another commit comes first, try again on the next state.

    decide: a phrase says why it is for Spark; None: there is nothing to do. transaction: (application id, version),
    recorded with it; when the table has that version or a later one, nothing is done. Raises CommitConflict when others
    came first every time, and as silver_guard.check: behind this commit nobody would see a RESTORE any more.
    """
    made = _Made(writer)
    for attempt in range(1, limits.COMMIT_ATTEMPTS_MAX + 1):
        state = writer.log.state()
        if transaction is not None and state.transaction(transaction[0]) >= transaction[1]:
            made.drop()
            return True
        made.check(state)
        turn = _turn(writer, decide(state), state)
        if not isinstance(turn, Reshaping):
            made.drop()
            return turn is None or _for_spark(writer, turn)
        try:
            adds = made.of(turn)
        except (SchemaMismatch, UnsupportedValue) as error:  # of another writer's file: Spark may be able to read it
            made.drop()
            return _for_spark(writer, str(error))
        if made.old():
            made.drop()
            return _for_spark(writer, "its files took longer than they are safe without a commit")
        actions = [*turn.facts, *moved(turn.files, adds, data_change=True)]
        failpoint("reshape_before_commit")
        try:
            writer.log.commit(state, Change(actions, OPERATION, dict([transaction]) if transaction else {}))
        except CommitConflict:
            if attempt == limits.COMMIT_ATTEMPTS_MAX:
                made.drop()
                raise
        else:
            return True
    raise AssertionError("the loop returns or raises")


def _turn(writer: SilverWriter, decided: Reshape | str | None, state: TableState) -> Reshaping | str | None:
    """The work on this state; None: nothing; or why it is for Spark."""
    if not isinstance(decided, Reshape):
        return decided
    if writer.app.pipeline.apply.writer == config.Writer.MERGE:
        return "apply.writer is merge"
    try:
        turn = Reshaping(decided, state)
    except UnsupportedValue as error:
        return error.what
    return turn.why_not() or (turn if _is_small(writer, turn.files) else "it is large")


def _for_spark(writer: SilverWriter, why: str) -> bool:
    name = writer.entry.name
    log.info("%s: Spark follows its ALTER: %s", name, why, extra={"table": name})
    return False


def _is_small(writer: SilverWriter, files: Sequence[LiveFile]) -> bool:
    """Spark's settings are asked only when the answer hangs on them."""
    size = sum(max(file.size, limits.RESHAPE_FILE_BYTES) for file in files)
    if size <= limits.RESHAPE_CLUSTER_BYTES:
        return True
    return size <= limits.RESHAPE_LOCAL_BYTES and writer.app.background.is_local()


class _Made:
    """The new files of a reshape, none of which is in a commit yet."""

    def __init__(self, writer: SilverWriter) -> None:
        self._writer = writer
        self._columns: tuple[pa.Schema, pa.Schema] | None = None
        self._adds: dict[tuple[str, str], Mapping[str, Any] | None] = {}

    def of(self, turn: Reshaping) -> list[Mapping[str, Any]]:
        """The `add` actions of its files, written side by side; what was made of others is deleted."""
        wanted = {file_key(file.action): file for file in turn.files}
        same = self._columns == turn.columns
        self._drop([key for key in self._adds if not same or key not in wanted])
        self._columns = turn.columns
        lake, path = self._writer.app.lake, self._writer.path
        pool = self._writer.app.memory(Rewriters).pool
        running = {key: pool.submit(_one, turn, lake, path, f) for key, f in wanted.items() if key not in self._adds}
        wait(running.values())
        self._adds |= {key: done.result() for key, done in running.items() if done.exception() is None}
        for done in running.values():
            if (error := done.exception()) is not None:
                self.drop()
                raise error
        return [add for key in wanted if (add := self._adds[key]) is not None]

    def check(self, state: TableState) -> None:
        """As SilverWriter.check; after an error no file stays."""
        try:
            self._writer.check(state)
        except TidegateError:
            self.drop()
            raise

    def old(self) -> bool:
        """Whether one of them has waited for so long that a VACUUM may have deleted it."""
        since = min((int(add["modificationTime"]) for add in self._adds.values() if add is not None), default=now_ms())
        return now_ms() - since > limits.COMMIT_SECONDS_MAX * 1000

    def drop(self) -> None:
        """Delete them all: certainly no commit names them."""
        self._drop(list(self._adds))

    def _drop(self, keys: Sequence[tuple[str, str]]) -> None:
        gone = [add for key in keys if (add := self._adds.pop(key)) is not None]
        delete_added(self._writer.app.lake, self._writer.path, gone)


def _one(turn: Reshaping, lake: Any, path: str, file: LiveFile) -> Mapping[str, Any] | None:
    written = turn.written(lake, path, file)
    failpoint("reshape_after_file")
    return written
