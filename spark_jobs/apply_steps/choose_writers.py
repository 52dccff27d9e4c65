"""Step 5: which writer takes each table of the window, before its changes are laid out for it.

In:  window.tables after the window's DDL was replayed, silver's snapshots, apply.writer.
Out: entry.writer with the reason in entry.why; for the positional writer entry.target, and silver created when it
     isn't there: decode writes rows straight into its folder.

MERGE is right everywhere, so anything unusual goes there. A table whose columns can't be brought together is held here
with the error that its writer would give.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from spark_jobs.session.failures import raise_failures
from spark_jobs.window.application import Application
from spark_jobs.window.holds import hold_for_error, take_along
from spark_jobs.window.shapes import shape_at, versions_at, window_phases
from spark_jobs.window.window import TableWindow, Window
from tidegate import config, limits, tables
from tidegate.delta.state import TableState
from tidegate.errors import Terminal
from tidegate.lake.silver_tables import create_silver
from tidegate.merge.phases import DdlPhase, Phase
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.types import canonical
from tidegate.upsert import cost
from tidegate.upsert.file_layout import FileLayout
from tidegate.upsert.fitness import why_not
from tidegate.upsert.target import StagePhase, UpsertTarget, misfit

_SYSTEM_TYPES: Final = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_()}


def choose_writers(app: Application, window: Window) -> None:
    """Fill entry.writer and entry.why of every table of the window."""
    if app.pipeline.apply.writer == config.Writer.MERGE or not window.tables:
        return
    shares = _shares(app, window)
    entries = [entry for entry in window.tables.values() if entry.after_ts < window.cut_ts]
    done = [app.pool.submit(_choose, app, window, entry, shares.get(entry.name, 0)) for entry in entries]
    failures: dict[str, BaseException] = {}
    for entry, future in zip(entries, done, strict=True):
        error = future.exception()
        if isinstance(error, Terminal):
            hold_for_error(app, window, entry.name, error)
            take_along(app, window, [entry.name])
        elif error is not None:
            failures[entry.name] = error
    raise_failures(failures)
    if any(entry.target is None for entry in entries):
        app.background.begin()  # while the window is decoded


def _shares(app: Application, window: Window) -> dict[str, int]:
    """About how many bytes of binlog and chunks each logical table has: a segment's are split among those it names."""
    shares: dict[str, int] = {}
    for ref in window.refs:
        names = [app.logical_name(*pair) for pair in app.names_in(ref)]
        for name in names:
            shares[name] = shares.get(name, 0) + ref.payload_bytes // len(names)
    for name, entry in window.tables.items():
        shares[name] = shares.get(name, 0) + sum(one.ref.chunk.payload_bytes for one in entry.chunks)
    return shares


def _choose(app: Application, window: Window, entry: TableWindow, share: int) -> None:
    phases = window_phases(app, entry, window.cut_ts)
    shapes = [shape_at(app, entry, phase.upto_ts) for phase in phases]
    known = [shape for shape in shapes if shape is not None]
    entry.why = app.merge_only.get(entry.name) or _unfit(known) or _renamed(window, entry)
    if entry.why:
        return
    snapshot = _snapshot(app, entry, known[0])
    target = _target(app, entry, phases, snapshot)
    entry.why = why_not(snapshot) or _misfit(snapshot, phases, target)
    if entry.why:
        return
    if app.pipeline.apply.writer == config.Writer.POSITIONAL:
        choice = cost.Choice(positional=True, why="by the pipeline file")
    else:
        choice = cost.choose(_load(snapshot, known[-1], share), keys_bytes_max=limits.UPSERT_KEYS_BYTES_MAX)
    if target.hashed and share > limits.HASHED_ROWS_BYTES_MAX:
        choice = cost.Choice(positional=False, why="no key, and much to change")
    entry.why = choice.why
    if choice.positional:
        entry.writer = config.Writer.POSITIONAL
        entry.target = target


def _unfit(shapes: list[SilverShape]) -> str:
    if not shapes:
        return "no columns are known"
    keyed = [bool(shape.key) for shape in shapes]
    if shapes[-1].keeps_deleted and not all(keyed):
        return "no key, and deleted rows stay"
    return "" if all(keyed) or not any(keyed) else "its key comes or goes"


def _renamed(window: Window, entry: TableWindow) -> str:
    linked = any(entry.name in (move.giver, move.taker) for move in window.moves)
    return "renamed in this window" if linked else ""


def _misfit(snapshot: TableState, phases: list[Phase], target: UpsertTarget) -> str:
    """How silver differs from what rows would be laid out for; with DDL in the window it is seen at each phase."""
    marks = any(field["name"] == tables.DELETED for field in snapshot.schema["fields"])
    if any((tables.DELETED in phase.layout.schema.names) != marks for phase in target.phases):
        return "soft delete begins or ends"
    if not any(isinstance(phase, DdlPhase) for phase in phases):
        return (misfit(snapshot, target.phases[-1].layout) if target.phases else None) or ""
    return "DDL of a partitioned table" if snapshot.partition_columns else ""


def _snapshot(app: Application, entry: TableWindow, shape: SilverShape) -> TableState:
    """Silver as it is now; created first when it isn't there, for a table can't be made in a folder with files."""
    log = app.lake.log(tables.silver_path(entry.database, entry.table))
    snapshot = log.state()
    return snapshot if snapshot.created else create_silver(log, shape)


def _load(snapshot: TableState, shape: SilverShape, share: int) -> cost.Load:
    types = {column.name: column.type for column in shape.all_columns}
    return cost.Load(
        target_rows=sum(file.live_rows or 0 for file in snapshot.files),
        target_files=len(snapshot.files),
        change_bytes=share,
        key_bytes=cost.key_bytes([types[name] for name in shape.key or (tables.ROW_HASH,)]),
    )


def _target(app: Application, entry: TableWindow, phases: list[Phase], snapshot: TableState) -> UpsertTarget:
    """What workers need to know of the table."""
    path = tables.silver_path(entry.database, entry.table)
    found, hashed = [], False
    for phase in phases:
        shape = shape_at(app, entry, phase.upto_ts)
        if isinstance(phase, DdlPhase) or shape is None:
            continue
        arrow = {c.silver: canonical(c).arrow for v in versions_at(app, entry, phase.upto_ts) for c in v.columns}
        arrow |= {c.name: _SYSTEM_TYPES[c.type] for c in shape.system}
        columns = {column.name: arrow[column.name] for column in shape.all_columns}
        layout = FileLayout.planned(snapshot, columns, shape.key or (tables.ROW_HASH,))
        found.append(StagePhase(phase.after_ts, phase.upto_ts, layout))
        hashed = not shape.key
    return UpsertTarget(entry.name, path, tuple(found), hashed)
