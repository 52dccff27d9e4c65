"""Choose the writer of each table of the window, before its changes are laid out for it.

In:  window.tables, the versions beginning in them, silver's snapshots, apply.writer.
Out: a plan for each: its phases with silver's shape in each, its writer and why. Nothing is
     written.

MERGE is right everywhere, so anything unusual goes there. If the shards' columns don't fit
together, the table is held here with its writer's error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from spark_jobs.merge.moves import given_version
from spark_jobs.merge.rewrite import has_columns
from spark_jobs.session.failures import raise_failures
from spark_jobs.window.application import Application
from spark_jobs.window.plan import NOTHING_PLANNED, Change, MergeOnce, MergeOnly, PlannedPhase, TablePlan, TableWriter
from spark_jobs.window.shape.computing import check_same_rules, check_same_values
from spark_jobs.window.shape.filtered import check_same_condition, check_same_rows
from spark_jobs.window.shape.kept import check_moved, check_same, check_silver
from spark_jobs.window.shape.moves import all_partners
from spark_jobs.window.shape.naming import check_same_names
from spark_jobs.window.shape.shapes import check_past_in, goes_on_beside, kept_of, past_in, planned_phases, there_at
from spark_jobs.window.shape.silver_types import check_stamped, check_types
from spark_jobs.window.standing.silver_guard import check
from spark_jobs.window.standing.standings import hold_tied
from spark_jobs.window.window import PrewrittenSegment, TableWindow, Window
from tidegate import config, limits, tables
from tidegate.computed.computed_values import arrow_type
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch, Terminal
from tidegate.lake.silver.as_published import VALUES, ddl_id
from tidegate.lake.silver.silver_tables import described, new_silver
from tidegate.merge.kept import Kept, in_silver, left_out
from tidegate.merge.past import NO_PAST, PASTS, past_of
from tidegate.merge.phases import DdlPhase, Phase, empties
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.upsert import cost
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.fitness import why_not
from tidegate.upsert.target import StagePhase, UpsertTarget, misfit

_RULES: Final = "tables.columns, tables.masks or tables.rows"
_SYSTEM_TYPES: Final = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_()}


def choose_writers(
    app: Application, window: Window, committed: Sequence[PrewrittenSegment], changes: Mapping[str, Sequence[Change]]
) -> dict[str, TablePlan]:
    """The plan of every table of the window; NOTHING_PLANNED if silver has it up to its end
    already.
    """
    plans = dict.fromkeys(window.tables, NOTHING_PLANNED)
    shares, linked = _shares(app, window, committed), all_partners(window.moves)
    entries = [entry for entry in window.tables.values() if entry.after_ts < window.cut_ts]
    done = {
        entry.name: app.pool.submit(
            _planned, app, window, entry, changes[entry.name], shares.get(entry.name, 0), linked.get(entry.name)
        )
        for entry in entries
    }
    failures: dict[str, BaseException] = {}
    for name, future in done.items():
        error = future.exception()
        if error is None:
            plans[name] = future.result()
        elif isinstance(error, Terminal):
            hold_tied(app, window, name, error)
        else:
            failures[name] = error
    raise_failures(failures)
    if any(_by_spark(entry, plans[entry.name]) for entry in entries):
        app.background.begin()  # while the window is decoded
    return plans


def _by_spark(entry: TableWindow, plan: TablePlan) -> bool:
    """Whether Spark is likely to write the table. Files are enough where all rows of a plain one go,
    or come by a rename; where they aren't, it is asked for later (merge/taken_files.py).
    """
    if plan.target is not None:
        return False
    if entry.routed or plan.past is not NO_PAST:
        return True
    return not plan.links and any(planned.shape is not None for planned in plan.phases)


def _shares(app: Application, window: Window, committed: Sequence[PrewrittenSegment]) -> dict[str, int]:
    """Estimated bytes of binlog and chunks of each logical table. A segment's bytes are split evenly among the tables
    that it names.
    """
    shares: dict[str, int] = {}
    for ref in window.refs:
        _share(shares, ref.payload_bytes, [app.names.logical_name(*pair) for pair in app.names.in_segment(ref)])
    for segment in committed:
        _share(shares, segment.ref.payload_bytes, [app.names.logical_name(*pair) for pair in segment.names])
    for name, entry in window.tables.items():
        shares[name] = shares.get(name, 0) + sum(chunk.ref.chunk.payload_bytes for chunk in entry.chunks)
    return shares


def _share(shares: dict[str, int], payload_bytes: int, names: Sequence[str]) -> None:
    for name in names:
        shares[name] = shares.get(name, 0) + payload_bytes // len(names)


def _planned(
    app: Application,
    window: Window,
    entry: TableWindow,
    changes: Sequence[Change],
    share: int,
    linked: frozenset[str] | None,
) -> TablePlan:
    """linked: the tables that moves link with this one; None: no move is about it."""
    snapshot = app.lake.log(tables.silver_path(entry.database, entry.table)).state()
    check(app, entry.name, snapshot)
    phases = planned_phases(app, entry, changes, window.cut_ts)
    last = next((planned.shape for planned in reversed(phases) if planned.shape is not None), None)
    stale = last is not None and snapshot.created and described(snapshot, last) is not None
    links, describes = linked or frozenset(), last if stale else None
    plan = TablePlan(phases, past_in(app, entry), links, changes=changes, describes=describes)
    check_past_in(app, entry, plan)
    _check_rules(app, window, entry, plan, snapshot)
    chosen = plan if app.pipeline.apply.writer == config.Writer.MERGE else _chosen(app, entry, plan, snapshot, share)
    if linked is not None and not _moves_by_position(entry, chosen, snapshot):
        return replace(plan, writer=TableWriter.LINKED, why="renamed in this window")
    return chosen


def _moves_by_position(entry: TableWindow, chosen: TablePlan, snapshot: TableState) -> bool:
    """Whether rows before and behind a rename fit into silver by position. It has its columns, and no
    others, at first, and each move leaves it with its own.
    """
    if chosen.writer is not TableWriter.POSITIONAL or entry.routed or chosen.past is not NO_PAST:
        return False
    first = chosen.phases[0].before or chosen.phases[0].shape
    return first is not None and snapshot.created and has_columns(snapshot, first)


def _check_rules(app: Application, window: Window, entry: TableWindow, plan: TablePlan, snapshot: TableState) -> None:
    """Raise SchemaMismatch if silver can't follow the pipeline file's rules for this table's
    columns and rows.
    """
    rules, kept = app.pipeline.tables, kept_of(app, entry)
    _check_moves(app, window, entry)
    _check_names(entry, plan, (kept, snapshot))
    if kept.rules.hides and rules.keeps_changelog(entry.database, entry.table):
        why = f"its changelog would have what {_RULES} keeps out of silver"
        raise SchemaMismatch(why, where=entry.name, remedy="take it out of tables.changelog, or out of these rules")
    if kept.rules.condition is not None and not plan.past.takes_rows:
        why = f"tables.rows takes rows out of silver, and tables.{plan.past.word} would keep them"
        raise SchemaMismatch(why, where=entry.name, remedy="take it out of one of them")
    for old, new in plan.changes:
        if old is not None:
            check_same(kept, old, new)
            if (kept.rules.condition or kept.rules.more) and not _is_replaced(window, entry, new):
                _check_values(kept, old, new)
    if not plan.phases:
        return
    first, olds = _first(entry, plan), list[TableVersion]()
    before = first.shape
    if isinstance(first.phase, DdlPhase):
        if _is_made_anew(first.phase) and not entry.routed and not plan.past.rows_stay:
            return  # no row stays, and it gets its columns there
        before, olds = first.before, [old for old, _ in first.phase.changes if old is not None]
    if (shape := before or first.shape) is not None:
        due = _due_columns(app, entry, plan, snapshot) if before is not None else frozenset[str]()
        anew = _is_read_anew(app, entry, first.phase)
        lost = anew and snapshot.maps_columns  # the snapshot's phase gives it all columns (merge/retype.py)
        check_silver(shape, left_out(kept, olds or first.versions), snapshot, frozenset() if lost else due)
        if not lost:
            check_same_rules(shape, snapshot)
        if not anew:
            check_stamped(shape, snapshot)
        if not anew and (entry.routed or not _is_made_anew(first.phase)):  # the phase gives it its types
            check_types(shape, snapshot, due)
        check_same_condition(shape, snapshot)


def _check_names(entry: TableWindow, plan: TablePlan, given: tuple[Kept, TableState]) -> None:
    """Raise SchemaMismatch if columns have other names in silver than by the rules. given: the rules, and silver."""
    kept, snapshot = given
    if not plan.phases:
        return
    first = _first(entry, plan)
    if _is_made_anew(first.phase) and not (entry.routed or plan.past.rows_stay):
        return
    versions = [version for planned in plan.phases for version in planned.versions]
    versions += [old for old, _ in plan.changes if old is not None]
    if (shape := first.before or first.shape) is not None:
        check_same_names(shape, kept.rules.names, versions, snapshot)


def _check_values(kept: Kept, old: TableVersion, new: TableVersion) -> None:
    """Raise SchemaMismatch where a DDL changes values of silver's rows on which rules depend."""
    if kept.rules.condition is not None:
        check_same_rows(kept.rules.condition, old, new)
    if kept.rules.more:
        check_same_values(kept.rules.computed, in_silver(kept, old), in_silver(kept, new))


def _is_replaced(window: Window, entry: TableWindow, new: TableVersion) -> bool:
    """Whether a rename brings all rows of this version from another table."""
    return any(move.moved is None and move.taker == entry.name and move.new == new for move in window.moves)


def _first(entry: TableWindow, plan: TablePlan) -> PlannedPhase:
    """The first phase with changes. If snapshots begin a routed table anew, earlier phases don't count."""
    begins = min(map(entry.begins, entry.physical), default=entry.after_ts)
    later = filter(lambda planned: planned.phase.upto_ts > begins, plan.phases)
    return next(later, plan.phases[0])


def _due_columns(app: Application, entry: TableWindow, plan: TablePlan, snapshot: TableState) -> frozenset[str]:
    """The columns that silver must have before the first phase."""
    app_id, first = tables.app_id(app.pipeline.pipeline, entry.name), _first(entry, plan)
    applied = snapshot.transaction(app_id)
    ids = (ddl_id(app_id, new.source, new.name, VALUES) for _, new in plan.changes)
    if max([applied, *map(snapshot.transaction, ids)]) > entry.after_ts:
        return frozenset()  # silver that is ahead may have later statements' columns
    shape = first.before if isinstance(first.phase, DdlPhase) else first.shape
    names = frozenset(column.name for column in shape.columns) if shape is not None else frozenset[str]()
    if _is_made_anew(first.phase):  # columns that came while it waited come to silver with its rows
        names &= {column.silver for version in there_at(app, entry, applied) for column in version.columns}
    return names


def _check_moves(app: Application, window: Window, entry: TableWindow) -> None:
    """Raise SchemaMismatch if rows move to a table whose rules want other rows, or other values."""
    rules = app.pipeline.tables
    for move in window.moves if rules.columns or rules.masks or rules.rows or rules.computed else ():
        if entry.name not in (move.giver, move.taker):
            continue
        names = map(app.names.pair, (move.giver, move.taker))
        before, after = (Kept(rules.columns_of(*name), app.mask_keys) for name in names)
        given, condition = given_version(move), after.rules.condition
        check_moved(before, given, after, move.new)
        if before.rules.condition != condition:
            why = f"rows of {move.giver} become {move.taker}'s, and tables.rows says another thing of them"
            raise SchemaMismatch(why, where=move.new.where, remedy=REFILL)
        if before.rules.computed != after.rules.computed:
            why = f"rows of {move.giver} become {move.taker}'s, and tables.computed has other columns there"
            raise SchemaMismatch(why, where=move.new.where, remedy=REFILL)
        _check_values(after, given, move.new)


def _is_made_anew(phase: Phase) -> bool:
    return isinstance(phase, DdlPhase) and all(empties(new) or new.kind == "create" for _, new in phase.changes)


def _is_read_anew(app: Application, entry: TableWindow, phase: Phase) -> bool:
    """Whether snapshots read every live row of silver from this phase on. Other shards wait for their own snapshots."""
    begins = isinstance(phase, DdlPhase) and any(new.kind == SNAPSHOT for _, new in phase.changes)
    return begins and _is_made_anew(phase) and not goes_on_beside(app, entry, phase.upto_ts)


def _chosen(app: Application, entry: TableWindow, plan: TablePlan, snapshot: TableState, share: int) -> TablePlan:
    known = [planned.shape for planned in plan.phases if planned.shape is not None]
    given_back = app.memory(MergeOnly).get(entry.name) or app.memory(MergeOnce).get(entry.name)
    if why := given_back or _unfit(known):
        return replace(plan, why=why)
    missing = not snapshot.created
    if missing:
        snapshot = new_silver(known[0])
    target = _target(entry, plan, snapshot, kept_of(app, entry))
    if why := why_not(snapshot) or _misfit(snapshot, plan, target):
        return replace(plan, why=why)
    if app.pipeline.apply.writer == config.Writer.POSITIONAL:
        choice = cost.Choice(positional=True, why="by the pipeline file")
    else:
        choice = cost.choose(_load(snapshot, known[-1], share), keys_bytes_max=limits.UPSERT_KEYS_BYTES_MAX)
    keyless = not known[-1].key
    if share > _held_bytes_max(plan, keyless=keyless):
        choice = cost.Choice(positional=False, why=f"{'no key' if keyless else plan.past.word}, and much to change")
    if not choice.positional:
        return replace(plan, why=choice.why)
    writer = TableWriter.COUNTED if keyless else TableWriter.POSITIONAL
    if plan.past.versions:
        writer = TableWriter.VERSIONED
    return replace(plan, writer=writer, why=choice.why, target=target, creates=known[0] if missing else None)


def _held_bytes_max(plan: TablePlan, *, keyless: bool) -> int:
    """The most bytes of binlog whose rows the table's writer holds in the driver."""
    if keyless:
        return limits.HASHED_ROWS_BYTES_MAX
    return limits.VERSIONED_BYTES_MAX if plan.past.versions else sys.maxsize


def _unfit(shapes: list[SilverShape]) -> str:
    if not shapes:
        return "no columns are known"
    keyed = [bool(shape.key) for shape in shapes]
    if shapes[-1].past.rows_stay and not all(keyed):
        return f"no key, and {shapes[-1].past.kept} stay"
    return "" if all(keyed) or not any(keyed) else "its key comes or goes"


def _misfit(snapshot: TableState, plan: TablePlan, target: UpsertTarget) -> str:
    """The difference between silver and the layout of the rows, in a phrase; "" for none. If the
    window has DDL, each phase checks again.
    """
    past = past_of([field["name"] for field in snapshot.schema["fields"]])
    if any(past_of(phase.layout.schema.names) is not past for phase in target.phases):
        return f"{' or '.join(PASTS).replace('_', ' ')} begins or ends"
    if not any(isinstance(planned.phase, DdlPhase) for planned in plan.phases):
        return (misfit(snapshot, target.phases[-1].layout) if target.phases else None) or ""
    return "DDL of a partitioned table" if snapshot.partition_columns else ""


def _load(snapshot: TableState, shape: SilverShape, share: int) -> cost.Load:
    types = {column.name: column.type for column in shape.all_columns}
    return cost.Load(
        target_rows=sum(file.live_rows or 0 for file in snapshot.files),
        target_files=len(snapshot.files),
        change_bytes=share,
        key_bytes=cost.key_bytes([types[name] for name in shape.key or (tables.ROW_HASH,)]),
    )


def _target(entry: TableWindow, plan: TablePlan, snapshot: TableState, kept: Kept) -> UpsertTarget:
    """The table as workers need to know it."""
    stages = []
    for planned in plan.phases:
        phase, shape = planned.phase, planned.shape
        if isinstance(phase, DdlPhase) or shape is None:
            continue
        widest = {column.name: column.type for column in shape.columns}
        arrow = {
            column.silver: kind.arrow
            for version in planned.versions
            for column in in_silver(kept, version).columns
            if (kind := canonical(column)).delta == widest.get(column.silver)  # another shard's may be narrower
        }
        arrow |= {column.name: arrow_type(column.type) for column in kept.rules.computed}
        arrow |= {column.name: _SYSTEM_TYPES[column.type] for column in shape.system}
        columns = {column.name: arrow[column.name] for column in shape.all_columns}
        layout = FileLayout.planned(snapshot, columns, shape.key or (tables.ROW_HASH,))
        stages.append(StagePhase(phase.after_ts, phase.upto_ts, layout))
    return UpsertTarget(entry.name, tables.silver_path(entry.database, entry.table), tuple(stages))
