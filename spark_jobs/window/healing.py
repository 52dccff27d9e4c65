"""Heal schema_history by what the log itself says of a table (binlog_row_metadata=FULL), then run the window again.

In:  the TABLE_MAPs of a window that schema_history contradicts.
Out: versions of kind `healed` in control/schema_history, and WindowHealed; or the table stays held, both sides printed.

Rows before the healed version's commit_ts keep the version that fitted them. A table whose later DDL was replayed onto
the wrong columns already is not healed: what that DDL made is wrong too.
"""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.window.abandoned import remove_abandoned
from spark_jobs.window.application import Application, Place, Window
from tidegate import tables
from tidegate.binlog.heal import Mismatch, heal
from tidegate.errors import RECREATE, SchemaMismatch, TidegateError, Transient, unexpected
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.tables import NEEDS_SNAPSHOT, UNLOGGED_CHANGES


class WindowHealed(Exception):  # noqa: N818 - nothing went wrong
    """schema_history has new versions inside the window: its steps have to run again."""


def note_mismatch(window: Window, place: Place, body: bytes, *, mariadb: bool) -> None:
    """Keep the first mismatch of each physical table; nothing when body is empty."""
    name = (place.source, place.database, place.table)
    known = window.mismatches.get(name)
    if body and (known is None or place.at_ts < known.commit_ts):
        window.mismatches[name] = Mismatch(body, mariadb, place.at_ts, place.file, place.pos)


def heal_tables(app: Application, window: Window) -> None:
    """Raises WindowHealed when a version was recorded."""
    made: list[TableVersion] = []
    for (source, database, table), found in sorted(window.mismatches.items()):
        name = app.logical_name(database, table)
        try:
            made.append(_healed(app, (source, database, table), found))
        except Transient:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours at one table's event is that table's
            what = error.what if isinstance(error, TidegateError) else unexpected(error).what
            state = window.held.get(name)
            if state is not None:
                window.held[name] = replace(state, reason=f"{state.reason} (not healed from the log: {what})")
    if made:
        app.history_written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in made]))
        for version in made:
            app.histories[version.source].add([version])
            print(f"{version.name} at {version.file}:{version.pos}: healed from the log", flush=True)
        raise WindowHealed


def _healed(app: Application, physical: tuple[str, str, str], found: Mismatch) -> TableVersion:
    source, database, table = physical
    history = app.histories[source]
    versions = history.versions(database, table)
    last = versions[-1] if versions else None
    if last is None or last.status is not VersionStatus.ACTIVE:
        raise SchemaMismatch("rows from before may be missing", remedy=RECREATE)
    if last.commit_ts >= found.commit_ts:
        raise SchemaMismatch(f"a later DDL at {last.file}:{last.pos} was followed already", remedy=RECREATE)
    return heal(found, last, history.new_id, added_are_null=app.pipeline.apply.unlogged_columns == "null")


def begin_again(app: Application, window: Window) -> Window:
    """The same window from its first step. What a step holds only when it sees a DDL for the first time stays held."""
    for entry in window.tables.values():
        window.abandoned += entry.upserts
    remove_abandoned(app, window)
    kept = {name: state for name, state in window.held.items() if state.error in (NEEDS_SNAPSHOT, UNLOGGED_CHANGES)}
    app.record_states(kept)
    fresh = window.again()
    fresh.held = kept
    return fresh
