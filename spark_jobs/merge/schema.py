"""Silver follows the DDL of its table: the statements at one commit_ts, on the log alone where no row changes.

In:  a DDL phase with silver's shape behind it.
Out: commits that give silver the columns, or take its rows. SchemaMismatch for what can't be followed.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.merge.partitions import delete_statement
from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.recast import recast_values
from spark_jobs.merge.rewrite import keeps_values, rewrite
from spark_jobs.merge.shard_rows import empty_shard
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.soft_delete import check_marked, follow_soft_delete, mark_all
from spark_jobs.merge.values import literals
from spark_jobs.merge.widen import widen, widened
from spark_jobs.window.plan import PlannedPhase
from spark_jobs.window.shapes import described
from tidegate.errors import REFILL, SchemaMismatch, UnsupportedValue
from tidegate.lake.silver_tables import add_columns, columns_added, describe_columns, empty_silver
from tidegate.merge import silver_sql
from tidegate.merge.phases import DdlPhase, empties
from tidegate.merge.silver_sql import SilverColumn, SilverShape
from tidegate.schema.follow.renames import renamed_here
from tidegate.schema.follow.silver_change import AddSilverColumn, ChangeType, SilverAction, diff
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partitions import DELETED as DELETED_ROWS
from tidegate.schema.model.types import canonical
from tidegate.spark_sql import quote


def change_schema(writer: SilverWriter, planned: PlannedPhase) -> None:
    """Follow the DDL at one commit_ts. Raises SchemaMismatch for what can't be followed yet."""
    phase, shape = planned.phase, planned.shape
    assert isinstance(phase, DdlPhase), "asked of those"
    writer.app.check_claim()
    if planned.before:
        follow_soft_delete(writer, planned.before)
    for old, new in phase.changes:
        if renamed_here(new) or (new.moved is not None and new.moved.takes):
            raise SchemaMismatch(
                f"{new.ddl[:120]}: the table that had the rows isn't in silver",
                where=new.where,
                remedy=REFILL,
            )
        if empties(new) or (new.kind == "create" and old is not None):
            _empty(writer, old, new, shape)
        elif old is None and shape is not None:
            writer.ensure_columns(shape)
        elif old is not None and shape is not None:
            _alter(writer, old, new, shape, phase.upto_ts)
            if new.moved is not None and new.moved.how == DELETED_ROWS:
                _delete_partitions(writer, old, new)
    if shape is not None:
        widen(writer, shape)


def _delete_partitions(writer: SilverWriter, old: TableVersion, new: TableVersion) -> None:
    shard = silver_sql.only_shard(new) if writer.entry.routed else "true"
    if writer.columns() is not None:
        writer.once("partitions", new, lambda it: delete_statement(it.rows(), it.target, shard, old, new))


def _empty(writer: SilverWriter, old: TableVersion | None, version: TableVersion, shape: SilverShape | None) -> None:
    """No live rows (of this shard) from here on, and the columns of `shape`, whatever they were before."""
    if shape is None and writer.columns() is None:
        return
    if shape is not None:
        (writer.ensure_columns if writer.entry.routed else writer.ensure)(shape)
    if writer.entry.plan.keeps_deleted:
        mark_all(writer, old, version, shape)
    elif writer.entry.routed:
        empty_shard(writer, version)
    else:
        done = (writer.ddl_id("rows", version), version.commit_ts)
        empty_silver(writer.log, done, None if writer.is_as(shape, writer.log.state()) else shape)


def _alter(writer: SilverWriter, old: TableVersion, new: TableVersion, shape: SilverShape, upto_ts: int) -> None:
    try:
        _follow(writer, diff(old, new, writer.ddl_times.get((new.source, new.commit_ts))), old, new, shape, upto_ts)
    except (SchemaMismatch, UnsupportedValue):
        if writer.entry.routed or writer.has_rows():
            raise
        _empty(writer, old, new, shape)  # nothing was rewritten; it gets its columns


def _follow(
    writer: SilverWriter,
    actions: Sequence[SilverAction],
    old: TableVersion,
    new: TableVersion,
    shape: SilverShape,
    upto_ts: int,
) -> None:
    if writer.entry.routed and any(isinstance(action, ChangeType) for action in actions):
        widened(writer, shape)  # nothing is begun of what can't be ended
        actions = [action for action in actions if not isinstance(action, ChangeType)]
    only_adds = all(isinstance(action, AddSilverColumn) for action in actions)
    if writer.entry.routed and not only_adds:
        raise SchemaMismatch(
            f"{new.ddl[:120]}: only added and wider columns are followed in routed tables",
            where=new.where,
            remedy=f"bring all shards to one shape; {REFILL}",
        )
    check_marked(writer, writer.rows, writer.log.state(), old, new, shape)
    if actions and writer.columns() is None:
        writer.ensure(shape)
    elif actions and only_adds and shape.key:
        _add(writer, actions, new)
    elif actions:

        def work(private: PrivateLog) -> bool:
            recasts = recast_values(private.rows(), actions, new)
            check_marked(writer, private.rows, private.state, old, new, shape)
            stays = all(keeps_values(private.state, action, recasts) for action in actions)
            if not stays:
                own = silver_sql.only_shard(new) if writer.entry.routed else "true"
                rewrite(private, actions, shape, recasts, own)
            return not stays

        writer.change(work, (writer.app_id, upto_ts))
    _describe(writer, old, new)


def _add(writer: SilverWriter, actions: Sequence[SilverAction], new: TableVersion) -> None:
    """The columns, with the value the server gave to existing rows."""
    added = [action for action in actions if isinstance(action, AddSilverColumn)]
    columns = [SilverColumn(a.column.silver, canonical(a.column).delta, described(a.column)) for a in added]
    values = literals([action for action in added if action.value is not None])
    if not values:
        add_columns(writer.log, columns)
        return
    assign = ", ".join(f"{quote(name)} = {value}" for name, value in values.items())

    def filled(private: PrivateLog) -> str:
        private.apply(columns_added(private.inside, columns))
        return f"UPDATE {private.target} SET {assign}{writer.only(new)}"

    writer.once("values", new, filled)


def _describe(writer: SilverWriter, old: TableVersion, new: TableVersion) -> None:
    """Columns whose type text or comment at the source changed, and silver's column didn't, say so."""
    before = {column.id: described(column) for column in old.columns}
    now = {column.silver: described(column) for column in new.columns}
    changed = {c.silver for c in new.columns if before.get(c.id, now[c.silver]) != now[c.silver]}
    if changed:
        describe_columns(writer.log, {name: text for name, text in now.items() if name in changed})
