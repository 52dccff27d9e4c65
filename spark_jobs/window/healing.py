"""Heal schema_history by what the log itself says of a table (binlog_row_metadata=FULL).

In:  the TABLE_MAPs of a window that schema_history contradicts.
Out: versions of kind `healed` in control/schema_history, and their tables released: they catch up from bronze with the
     new version. Or why a table isn't healed.

Rows before the healed version's commit_ts keep the version that fitted them. A table whose later DDL was replayed onto
the wrong columns already is not healed: what that DDL made is wrong too.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.window.application import Application
from spark_jobs.window.holds import release
from spark_jobs.window.window import Trouble, Window
from tidegate import tables
from tidegate.binlog.heal import Mismatch, heal
from tidegate.errors import RECREATE, SchemaMismatch, TidegateError, Transient, unexpected
from tidegate.failpoint import failpoint
from tidegate.lake.followed import Physical
from tidegate.schema.model.columns import TableVersion, VersionStatus


def heal_tables(app: Application, window: Window, troubles: Iterable[Trouble]) -> dict[str, str]:
    """Release whom the log tells the columns of; of the others with such a trouble, by logical name, why it doesn't."""
    made: list[TableVersion] = []
    doubts: dict[str, str] = {}
    for (source, database, table), found in sorted(_mismatches(troubles).items()):
        name = app.logical_name(database, table)
        try:
            made.append(_healed(app, (source, database, table), found))
        except Transient:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours at one table's event is that table's
            doubts[name] = error.what if isinstance(error, TidegateError) else unexpected(error).what
    if made:
        app.history_written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in made]))
        failpoint("apply_after_healed")
    for version in made:
        app.histories[version.source].add([version])
        what = f"{version.name} at {version.file}:{version.pos}: healed from the log"
        print(what, flush=True)
        name = app.logical_name(version.database, version.table)
        if name not in doubts:
            release(app, window, name, f"{what}; it catches up")
    return doubts


def _mismatches(troubles: Iterable[Trouble]) -> dict[Physical, Mismatch]:
    """The first of each physical table."""
    found: dict[Physical, Mismatch] = {}
    for trouble in troubles:
        problem = trouble.problem
        name = (trouble.source, problem.database, problem.table)
        if problem.table_map and (name not in found or problem.commit_ts < found[name].commit_ts):
            place = (problem.commit_ts, problem.file, problem.pos)
            found[name] = Mismatch(problem.table_map, problem.mariadb, *place)
    return found


def _healed(app: Application, physical: Physical, found: Mismatch) -> TableVersion:
    source, database, table = physical
    history = app.histories[source]
    versions = history.versions(database, table)
    last = versions[-1] if versions else None
    if last is None or last.status is not VersionStatus.ACTIVE:
        raise SchemaMismatch("rows from before may be missing", remedy=RECREATE)
    if last.commit_ts >= found.commit_ts:
        raise SchemaMismatch(f"a later DDL at {last.file}:{last.pos} was followed already", remedy=RECREATE)
    return heal(found, last, history.new_id, added_are_null=app.pipeline.apply.unlogged_columns == "null")
