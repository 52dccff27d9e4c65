"""Heal schema_history by the log's own metadata of a table (binlog_row_metadata=FULL).

In:  the TABLE_MAPs of a window in conflict with schema_history.
Out: versions of kind `healed` in control/schema_history, and their tables released: they catch up
     from bronze with the new version. Or why a table isn't healed.

Rows before the healed version's commit_ts keep the version that fits them. A table isn't healed if
a later DDL was already replayed onto the wrong columns: its result is wrong, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from spark_jobs.window.application import Application
from spark_jobs.window.standing.standings import send_below
from spark_jobs.window.waves.shards import is_left_out, is_shard, leave_out
from spark_jobs.window.window import Trouble, Window
from tidegate import tables
from tidegate.binlog.rows.heal import REFRESH, Mismatch, heal
from tidegate.errors import SchemaMismatch, TidegateError, Transient, unexpected
from tidegate.failpoint import failpoint
from tidegate.remedy import RECREATE
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.table_names import Physical

log = logging.getLogger(__name__)


def heal_tables(app: Application, window: Window, troubles: Iterable[Trouble]) -> dict[str, str]:
    """Release the tables whose columns the log itself defines. Returns, by logical name, why other tables with such a
    trouble can't be healed.
    """
    troubles = list(troubles)
    _leave_out(app, window, troubles)
    made: list[TableVersion] = []
    doubts: dict[str, str] = {}
    for (source, database, table), mismatch in sorted(_mismatches(troubles).items()):
        name = app.names.logical_name(database, table)
        try:
            made.append(_healed(app, Physical(source, database, table), mismatch))
        except Transient:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours at one table's event is that table's
            doubts[name] = error.what if isinstance(error, TidegateError) else unexpected(error).what
    if made:
        app.histories.written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in made]))
        failpoint("apply_after_healed")
    for version in made:
        app.histories[version.source].add([version])
        what = f"{version.name} at {version.file}:{version.pos}: healed from the log"
        place = {"source": version.source, "file": version.file, "position": version.pos, "table": version.name}
        log.info("%s", what, extra=place)
        name = app.names.logical_name(version.database, version.table)
        if name not in doubts:
            send_below(app, window, name, f"{what}; it catches up")
    return doubts


def _leave_out(app: Application, window: Window, troubles: Iterable[Trouble]) -> None:
    """Leave a shard out if only a new read of its rows mends it: the other shards catch up. An
    unknown shard is left out, too: it is older than the followed log, and wasn't kept at that time.
    """
    left_out: dict[Physical, str] = {}
    for trouble in troubles:
        physical = Physical(trouble.source, trouble.problem.database, trouble.problem.table)
        unknown = not app.histories[physical.source].versions(*physical.pair)
        reread = trouble.problem.needs.rows and not trouble.problem.table_map  # else it may be healed
        if is_shard(app, physical) and (unknown or reread):
            left_out.setdefault(physical, trouble.problem.text)
    later = {app.names.logical_name(*shard[1:]) for shard in leave_out(app, sorted(left_out))}
    for physical, why in sorted(left_out.items()):
        name = app.names.logical_name(*physical.pair)
        # It may be left out from above this window on alone: then its table waits, or this would never end.
        if name not in window.held and name not in later and is_left_out(app, window, physical):
            send_below(app, window, name, f"{name}: {physical.shown} of {physical.source} is left out: {why}")


def _mismatches(troubles: Iterable[Trouble]) -> dict[Physical, Mismatch]:
    """The first of each physical table."""
    first: dict[Physical, Mismatch] = {}
    for trouble in troubles:
        problem = trouble.problem
        name = Physical(trouble.source, problem.database, problem.table)
        if problem.table_map and (name not in first or problem.commit_ts < first[name].commit_ts):
            place = (problem.commit_ts, problem.file, problem.pos)
            first[name] = Mismatch(problem.table_map, problem.mariadb, *place)
    return first


def _healed(app: Application, physical: Physical, mismatch: Mismatch) -> TableVersion:
    source, database, table = physical
    history = app.histories[source]
    versions = history.versions(database, table)
    last = versions[-1] if versions else None
    if last is None or last.status is not VersionStatus.ACTIVE:
        raise SchemaMismatch("rows from before may be missing", remedy=RECREATE)
    if last.commit_ts >= mismatch.commit_ts:
        raise SchemaMismatch(f"a later DDL at {last.file}:{last.pos} was followed already", remedy=RECREATE)
    made = heal(mismatch, last, history.new_id, added_are_null=app.pipeline.apply.unlogged_columns == "null")
    names = app.pipeline.tables
    came = {column.id for column in made.columns}.difference(column.id for column in last.columns)
    if came and names.columns_of(*names.logical(database, table)[:2]).goes_by_comment:
        raise SchemaMismatch("a column came whose comment nobody knows, and tables.masks goes by it", remedy=REFRESH)
    return made
