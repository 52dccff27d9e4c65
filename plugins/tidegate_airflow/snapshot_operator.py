"""Ask for snapshots inside an Airflow task, and read them.

In:  a pipeline file, the run's params: those of its part `snapshot`, and tables.
Out: rows in bronze/chunks, marks at the sources. The task ends well when every open table is read and marked, and
     fails with the library's own error (retries.py has the rule for new tries).

Airflow keeps no state of it. After a kill the next try goes on from control/snapshots. It requests no table twice,
because the request has the run's id.
"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidegate import pipelines
from tidegate.errors import Terminal, Transient
from tidegate.text_layout import counted
from tidegate_airflow.connections import lake_connection, source_connection
from tidegate_airflow.params import with_params

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.snapshot.progress.events import TableProgress


class SnapshotStopped(Transient):
    """The task was told to end; the next try reads what is left."""


class SnapshotIncomplete(Terminal):
    """Tables could not be read; or, in a run by hand, a person paused or cancelled them."""


def _is_a_persons(table: TableProgress) -> bool:
    """Whether a person paused or cancelled it: no fault of a run that began by itself."""
    from tidegate.snapshot.progress.events import SnapshotState

    return table.by_hand or table.state is SnapshotState.PAUSED


class SnapshotOperator(BaseOperator):
    """Reads the snapshots of a pipeline: those of the param `tables`, or of all waiting tables, and the open ones."""

    shallow_copy_attrs = ("_stop",)  # Airflow copies operators; a lock can't be copied

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self._stop = threading.Event()

    def execute(self, context: Context) -> None:
        """Read until all is marked. Raises what the reader raises, SnapshotStopped, or SnapshotIncomplete."""
        from tidegate.snapshot.work import SnapshotWork, is_read, logical_name  # numba, pyarrow

        file = pipelines.load(Path(self.pipeline_file))
        part = with_params(file.snapshot, context["params"], where=str(context["run_id"]), beside=("tables",))
        pipeline = file.model_copy(update={"snapshot": part})
        lake = pipelines.open_lake(pipeline, lake_connection)
        work = SnapshotWork(
            pipeline,
            lake,
            lambda source: pipelines.sql_info(pipeline, source, source_connection, lake),
            lambda line: self.log.info("%s", line),
            self._stop,
            lambda source: pipelines.replica_info(pipeline, source, source_connection),
        )
        asked = uuid.uuid5(uuid.NAMESPACE_URL, f"{self.dag_id}/{context['run_id']}").hex
        # A run that started by itself requests only due tables. About the others a person has decided.
        by_itself = bool(context.get("triggering_asset_events"))
        new = work.ask() if by_itself else work.request(context["params"].get("tables") or (), snapshot=asked)
        count = counted(len(new), "table is", "tables are")
        self.log.info("%s requested; open snapshots continue", count)
        left = [table for table in work.read(snapshot=asked) if not is_read(table)]
        if self._stop.is_set() and left:
            raise SnapshotStopped("the snapshot was told to end", where=pipeline.pipeline)
        if by_itself:
            for table in filter(_is_a_persons, left):
                self.log.info("%s is %s by a person", logical_name(pipeline, table), table.state)
            left = [table for table in left if not _is_a_persons(table)]
        if left:
            unread = "; ".join(
                f"{logical_name(pipeline, table)} is {table.state} {table.reason}".strip() for table in left
            )
            raise SnapshotIncomplete(
                f"not read: {unread}", where=pipeline.pipeline, remedy="end what the line says, then trigger it again"
            )
        if by_itself and work.unasked:  # only this finds quiet tables that a changed pipeline file keeps
            raise work.unasked[0]

    def on_kill(self) -> None:
        """Called from SIGTERM's handler: the reader ends after its wave."""
        # Not in this thread: it may hold the lock that set() takes.
        threading.Thread(target=self._stop.set).start()
