"""Step 4: net changes into silver, one Delta transaction per table and phase, applied_ts inside it.

In:  window.tables with their staged files.
Out: silver at cut_ts; window.delta_versions; tables that can't be written are held.

Tables are independent, so they are written side by side, and one that fails waits alone. Within a table
the phases run in order: rows before a DDL, the DDL, rows after it. Delta skips a transaction whose
txnVersion it has already recorded, so a window can be tried again after a kill at any point.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from spark_jobs.application import Application, TableWindow, Window
from spark_jobs.silver_writer import SilverWriter
from tidegate.errors import Terminal, TidegateError
from tidegate.failpoint import failpoint
from tidegate.lake.silver import delta_version
from tidegate.merge.phases import DdlPhase, phases
from tidegate.schema.columns import TableVersion
from tidegate.tables import silver_path


def merge_into_silver(app: Application, window: Window) -> None:
    """Write every table of the window. A Terminal error holds its table; any other fails the window."""
    entries = []
    for entry in window.tables.values():
        if entry.staged or _changes(app, entry, window.cut_ts):
            entries.append(entry)
        elif entry.after_ts > app.cut_ts:
            # A try that was killed had written it: silver is at this cut already, but no cut names its version yet.
            uri = app.lake.uri(silver_path(entry.database, entry.table))
            window.delta_versions[entry.name] = delta_version(uri, app.lake.storage_options)
    if not entries:
        return
    with ThreadPoolExecutor(app.pipeline.apply.parallel_tables, thread_name_prefix="silver") as pool:
        done = {entry.name: pool.submit(_write, app, entry, window) for entry in entries}
    failures = []
    for name, future in done.items():
        error = future.exception()
        if error is None:
            app.note_applied(name, window.cut_ts)
            window.delta_versions[name] = future.result()
            continue
        app.forget_applied(name)
        if isinstance(error, Terminal):
            window.hold(name, type(error).__name__, str(error), app.applied(name))
        else:
            failures.append((name, error))
    if failures:
        name, error = failures[0]
        if isinstance(error, TidegateError) or not isinstance(error, Exception):
            raise error
        raise TableWriteError(name, error) from error
    failpoint("apply_after_merge")


class TableWriteError(Exception):
    """Spark or Delta failed on one table: name, and the first line of what it said."""

    def __init__(self, name: str, error: Exception) -> None:
        self.table = name
        self.line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        super().__init__(f"{name}: {self.line}")


def _changes(app: Application, entry: TableWindow, cut_ts: int) -> list[tuple[TableVersion | None, TableVersion]]:
    """(version before, version) of every schema version that begins in the table's window."""
    found: list[tuple[TableVersion | None, TableVersion]] = []
    for source, database, table in sorted(entry.physical):
        before: TableVersion | None = None
        for version in app.histories[source].versions(database, table):
            if entry.after_ts < version.commit_ts <= cut_ts:
                found.append((before, version))
            before = version
    return found


def _write(app: Application, entry: TableWindow, window: Window) -> int:
    writer = SilverWriter.of(app, entry, window.ddl_times)
    changes = _changes(app, entry, window.cut_ts)
    for phase in phases(entry.after_ts, window.cut_ts, changes, routed=entry.routed):
        if isinstance(phase, DdlPhase):
            writer.change_schema(phase)
        else:
            writer.write_rows(phase)
        failpoint("apply_in_merge")
    return delta_version(writer.uri, app.lake.storage_options)
