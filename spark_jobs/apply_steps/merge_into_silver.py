"""Net changes into silver, one Delta transaction per table and phase, applied_ts inside it.

In:  window.tables, their plans, their staged changes.
Out: silver at cut_ts; the Delta versions of written tables; unwritable tables are held.

Tables are independent, so they are written side by side, and a failing one waits alone. Within a
table the phases run in order: rows before a DDL, the DDL, rows after it. A transaction whose
txnVersion is already recorded is skipped, so a window can be tried again after a kill at any point.

Tables linked by a rename are written as one (spark_jobs/merge/linked.py). Tables of the positional
writer without DDL, nearly all, are written together: they share their probing. Tables tied unseen
by foreign keys are written in turns (spark_jobs/cascades/turns.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from spark_jobs.cascades.turns import write_in_turns
from spark_jobs.merge.linked import LinkedWriter
from spark_jobs.merge.rows import write_rows
from spark_jobs.merge.schema import change_schema
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.sweep import sweep_whole_tables
from spark_jobs.positional.rows import write_counted
from spark_jobs.positional.versions import write_versions
from spark_jobs.positional.writer import Outcome, upsert_of, write_upserts
from spark_jobs.session.failures import raise_failures
from spark_jobs.window.abandoned import remove_abandoned
from spark_jobs.window.application import Application
from spark_jobs.window.made import DdlTimes, GivenBack, StagedChanges, StagedTable, TableToWrite
from spark_jobs.window.plan import MergeOnce, MergeOnly, PlannedPhase, TablePlan, TableWriter, TooMuch
from spark_jobs.window.standing.complete_history import recording_histories
from spark_jobs.window.standing.silver_guard import version_for_cut
from spark_jobs.window.standing.standings import hold_for_error, send_below
from spark_jobs.window.window import Sweep, Window
from tidegate.errors import Terminal
from tidegate.failpoint import failpoint
from tidegate.lake.silver.silver_tables import describe_silver
from tidegate.merge.phases import DdlPhase
from tidegate.tables import silver_path
from tidegate.upsert.keys.at_hand import KeyFilesAtHand


def merge_into_silver(
    app: Application,
    window: Window,
    ddl_times: DdlTimes,
    sweeps: Sequence[tuple[str, Sweep]],
    plans: Mapping[str, TablePlan],
    staged: StagedChanges,
) -> dict[str, int]:
    """Write every table of the window. A Terminal error holds its table; any other fails the
    window, all together.

    If the positional writer gives a table back, the table is released, and catches up below the
    cut.
    """
    works, versions, outcomes = list[TableToWrite](), dict[str, int](), dict[str, Outcome]()
    for name, entry in window.tables.items():
        work = TableToWrite(entry, plans[name], staged.tables.get(name, StagedTable()))
        if work.staged.files or work.staged.upserts or work.plan.changes:
            works.append(work)
        elif entry.after_ts > app.cut_ts:
            # A try that was killed had written it: silver is at this cut already, but no cut names its version yet.
            silver = app.positions.silver(name)
            made = app.positions.unread[name] if silver is None else version_for_cut(app, name, silver)
            if isinstance(made, int):
                versions[name] = made
            else:
                outcomes[name] = made
    with recording_histories(app, window, works):
        written, along = write_in_turns(app, works, partial(_write_all, app, window, ddl_times, staged.key_files))
    outcomes |= {name: _described(app, name, plans[name], outcome) for name, outcome in _kept(app, written).items()}
    failures: dict[str, BaseException] = {}
    for name, outcome in outcomes.items():
        if isinstance(outcome, int):
            app.memory(MergeOnce).pop(name, None)
            app.memory(TooMuch).pop(name, None)
            app.positions.note_applied(name, window.cut_ts)
            versions[name] = outcome
            continue
        app.positions.forget_applied(name)
        if isinstance(outcome, GivenBack):
            send_below(app, window, name, _given_back(app, window, name, outcome))
        elif isinstance(outcome, Terminal):
            hold_for_error(app, window, name, outcome)
        else:
            failures[name] = outcome
    for name, below in along.items():
        app.positions.forget_applied(name)
        send_below(app, window, name, f"{name}: rows of {below} go with its own, and that table catches up first")
    for name, outcome in sweep_whole_tables(app, window, ddl_times, sweeps).items():
        if isinstance(outcome, int):
            versions[name] = outcome
        elif isinstance(outcome, Terminal):
            hold_for_error(app, window, name, outcome)
        else:
            failures[name] = outcome
    remove_abandoned(app.lake, staged.tables.values())
    raise_failures(failures)
    if outcomes:
        failpoint("apply_after_merge")
    return versions


def _given_back(app: Application, window: Window, name: str, outcome: GivenBack) -> str:
    """The table's next writer, for people.

    The next window below the cut is smaller, since ChangeDensity now knows how many changes this
    one had. If it can't be smaller, or wasn't the last time, MERGE writes it. Windows above the cut
    come in between, and may hold fewer changes.
    """
    if not outcome.window_only:
        app.memory(MergeOnly)[name] = outcome.why
        return f"{name}: MERGE takes it from here on: {outcome.why}"
    if not window.main:
        before = app.memory(TooMuch).get(name)
        app.memory(TooMuch)[name] = window.cut_ts
        if not window.has_parts or (before is not None and window.cut_ts >= before):
            app.memory(MergeOnce)[name] = outcome.why
            return f"{name}: MERGE takes its next window: {outcome.why}"
    return f"{name}: it catches up in smaller windows: {outcome.why}"


def _described(app: Application, name: str, plan: TablePlan, outcome: Outcome) -> Outcome:
    """Bring silver's comments up to date: the pipeline file may have changed them. Returns the Delta version after
    that.
    """
    if plan.describes is None or not isinstance(outcome, int):
        return outcome
    state = describe_silver(app.lake.log(silver_path(*app.names.pair(name))), plan.describes)
    return version_for_cut(app, name, state)


def _kept(app: Application, outcomes: dict[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes. If another writer has overwritten a table's commit meanwhile, the error takes
    its place.
    """

    def look(name: str) -> None:
        app.lake.log(silver_path(*app.names.pair(name))).check_kept()

    looks = {name: app.pool.submit(look, name) for name, outcome in outcomes.items() if isinstance(outcome, int)}
    return outcomes | {name: error for name, done in looks.items() if (error := done.exception()) is not None}


def _write_all(
    app: Application, window: Window, ddl_times: DdlTimes, keys: KeyFilesAtHand, works: Sequence[TableToWrite]
) -> dict[str, Outcome]:
    """The Delta version of each table, or why it has none."""
    together, apart, groups = list[TableToWrite](), list[TableToWrite](), dict[str, list[TableToWrite]]()
    for work in works:
        if work.plan.is_linked:
            groups.setdefault(min(work.plan.links | {work.name}), []).append(work)
        elif work.plan.writer is TableWriter.POSITIONAL and not work.plan.changes:
            together.append(work)
        else:
            apart.append(work)
    upserts = [upsert_of(app, work, window.cut_ts) for work in together]
    outcomes = write_upserts(app, keys, [upsert for upsert in upserts if upsert is not None])
    if apart or groups:
        with ThreadPoolExecutor(app.pipeline.apply.parallel_tables, thread_name_prefix="silver") as pool:
            writers = {work.name: SilverWriter(app, work, ddl_times) for work in apart}
            done = {name: pool.submit(_write, writer, keys) for name, writer in writers.items()}
            rows = partial(_write_rows, keys)
            linked = [(group, LinkedWriter(app, window, ddl_times, group, rows)) for group in groups.values()]
            runs = [(group, pool.submit(writer.run)) for group, writer in linked]
        outcomes |= {name: future.exception() or future.result() for name, future in done.items()}
        for group, run in runs:
            error = run.exception()
            outcomes |= dict.fromkeys((work.name for work in group), error) if error else run.result()
    return outcomes


def _write(writer: SilverWriter, keys: KeyFilesAtHand) -> Outcome:
    """One table's phases, one after the other."""
    for planned in writer.work.plan.phases:
        if isinstance(planned.phase, DdlPhase):
            change_schema(writer, planned)
        else:
            _write_rows(keys, writer, planned)
        failpoint("apply_in_merge")
    return version_for_cut(writer.app, writer.entry.name, writer.state)


def _write_rows(keys: KeyFilesAtHand, writer: SilverWriter, planned: PlannedPhase) -> None:
    app, work, upto_ts = writer.app, writer.work, planned.phase.upto_ts
    match work.plan.writer:
        case TableWriter.COUNTED:
            write_counted(app, work, upto_ts)
        case TableWriter.VERSIONED:
            write_versions(app, work, upto_ts, keys)
        case TableWriter.POSITIONAL:
            if upsert := upsert_of(app, work, upto_ts):
                outcome = write_upserts(app, keys, [upsert])[work.name]
                if not isinstance(outcome, int):
                    raise outcome
        case _:
            write_rows(writer, planned)
