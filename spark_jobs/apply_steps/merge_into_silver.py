"""Net changes into silver, one Delta transaction per table and phase, applied_ts inside it.

In:  window.tables with their staged files.
Out: silver at cut_ts; window.delta_versions; tables that can't be written are held.

Tables are independent, so they are written side by side, and one that fails waits alone. Within a table
the phases run in order: rows before a DDL, the DDL, rows after it. A transaction whose txnVersion is already
recorded is skipped, so a window can be tried again after a kill at any point.

Tables that a rename links are written as one (spark_jobs/merge/linked.py).
Tables of the positional writer without DDL, which are nearly all, are written together: they share their probing.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from spark_jobs.merge.linked import LinkedWriter
from spark_jobs.merge.rows import write_rows
from spark_jobs.merge.schema import change_schema
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.sweep import sweep_whole_tables
from spark_jobs.positional.rows import write_counted
from spark_jobs.positional.writer import GivenBack, Outcome, upsert_of, write_upserts
from spark_jobs.session.failures import raise_failures
from spark_jobs.window.abandoned import remove_abandoned
from spark_jobs.window.application import Application
from spark_jobs.window.plan import MergeOnly, PlannedPhase, TableWriter
from spark_jobs.window.standing.standings import hold_for_error, send_below
from spark_jobs.window.window import TableWindow, Window
from tidegate.errors import Terminal
from tidegate.failpoint import failpoint
from tidegate.merge.phases import DdlPhase
from tidegate.tables import silver_path


def merge_into_silver(app: Application, window: Window) -> None:
    """Write every table of the window. A Terminal error holds its table; any other fails the window, all together.

    A table that the positional writer gives back is released: it catches up by MERGE.
    """
    entries, written = [], list[TableWindow]()
    for entry in window.tables.values():
        if entry.staged or entry.upserts or entry.changes:
            entries.append(entry)
        elif entry.after_ts > app.cut_ts:
            # A try that was killed had written it: silver is at this cut already, but no cut names its version yet.
            written.append(entry)
    found = _kept(app, _write_all(app, window, entries))
    for entry in written:
        if (silver := app.positions.silver(entry.name)) is not None:
            window.delta_versions[entry.name] = silver.version
        else:
            found[entry.name] = app.positions.unread[entry.name]
    failures: dict[str, BaseException] = {}
    for name, outcome in found.items():
        if isinstance(outcome, int):
            app.positions.note_applied(name, window.cut_ts)
            window.delta_versions[name] = outcome
            continue
        app.positions.forget_applied(name)
        if isinstance(outcome, GivenBack):
            app.memory(MergeOnly)[name] = outcome.why
            send_below(app, window, name, f"{name}: MERGE takes it from here on: {outcome.why}")
        elif isinstance(outcome, Terminal):
            hold_for_error(app, window, name, outcome)
        else:
            failures[name] = outcome
    for name, outcome in sweep_whole_tables(app, window).items():
        if isinstance(outcome, int):
            window.delta_versions[name] = outcome
        elif isinstance(outcome, Terminal):
            hold_for_error(app, window, name, outcome)
        else:
            failures[name] = outcome
    remove_abandoned(app.lake, window)
    raise_failures(failures)
    if found:
        failpoint("apply_after_merge")


def _kept(app: Application, found: dict[str, Outcome]) -> dict[str, Outcome]:
    """The same outcomes; a table whose commit another writer has overwritten meanwhile has that as its outcome."""

    def look(name: str) -> None:
        app.lake.log(silver_path(*app.names.pair(name))).check_kept()

    looks = {name: app.pool.submit(look, name) for name, outcome in found.items() if isinstance(outcome, int)}
    return found | {name: error for name, done in looks.items() if (error := done.exception()) is not None}


def _write_all(app: Application, window: Window, entries: Sequence[TableWindow]) -> dict[str, Outcome]:
    """The Delta version that each table came to, or why it didn't."""
    together, apart, groups = list[TableWindow](), list[TableWindow](), dict[str, list[TableWindow]]()
    for entry in entries:
        match entry.plan.writer:
            case TableWriter.LINKED:
                groups.setdefault(min(entry.plan.links | {entry.name}), []).append(entry)
            case TableWriter.POSITIONAL if not entry.changes:
                together.append(entry)
            case _:
                apart.append(entry)
    upserts = [upsert_of(app, entry, window.cut_ts) for entry in together]
    found = write_upserts(app, window, [upsert for upsert in upserts if upsert is not None])
    if apart or groups:
        with ThreadPoolExecutor(app.pipeline.apply.parallel_tables, thread_name_prefix="silver") as pool:
            done = {entry.name: pool.submit(_write, app, entry, window) for entry in apart}
            runs = [(group, pool.submit(LinkedWriter(app, window, group).run)) for group in groups.values()]
        found |= {name: future.exception() or future.result() for name, future in done.items()}
        for group, run in runs:
            error = run.exception()
            found |= dict.fromkeys((entry.name for entry in group), error) if error else run.result()
    return found


def _write(app: Application, entry: TableWindow, window: Window) -> int:
    """One table's phases, one after the other."""
    writer = SilverWriter(app, entry, window.ddl_times)
    for planned in entry.plan.phases:
        if isinstance(planned.phase, DdlPhase):
            change_schema(writer, planned)
        else:
            _write_rows(app, window, writer, planned)
        failpoint("apply_in_merge")
    return app.lake.log(writer.path).state().version


def _write_rows(app: Application, window: Window, writer: SilverWriter, planned: PlannedPhase) -> None:
    entry, upto_ts = writer.entry, planned.phase.upto_ts
    match entry.plan.writer:
        case TableWriter.COUNTED:
            write_counted(app, entry, upto_ts)
        case TableWriter.POSITIONAL:
            if upsert := upsert_of(app, entry, upto_ts):
                outcome = write_upserts(app, window, [upsert])[entry.name]
                if not isinstance(outcome, int):
                    raise outcome
        case _:
            write_rows(writer, planned)
