"""Silver follows the DDL of its table: the statements at one commit_ts, on the log alone where no row changes.

In:  a DDL phase with silver's shape after it.
Out: commits that change silver's columns, or remove its rows. SchemaMismatch for a statement that
     can't be followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from spark_jobs.merge.kept_actions import actions_in_silver
from spark_jobs.merge.past import check_past, end_all, follow_past
from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.recast import recast_values
from spark_jobs.merge.reshaping import reshape
from spark_jobs.merge.retype import retype
from spark_jobs.merge.rewrite import keeps_values, rewrite
from spark_jobs.merge.shard_rows import empty_of_no_shard, empty_shard
from spark_jobs.merge.silver_partitions import delete_statement
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.values import literals
from spark_jobs.merge.widen import widen, widened
from spark_jobs.window.plan import PlannedPhase
from spark_jobs.window.shape.kept import apart
from spark_jobs.window.shape.shapes import kept_of
from tidegate.binlog.rows.heal import HEALED, REFRESHED
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.lake.silver.as_published import EMPTIED, VALUES
from tidegate.lake.silver.silver_tables import add_columns, columns_added, describe_silver, empty_silver, reshaped
from tidegate.merge import silver_sql
from tidegate.merge.phases import DdlPhase, empties
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.follow.recast import VALUE
from tidegate.schema.follow.renames import leaves, renamed_here
from tidegate.schema.follow.silver_change import (
    AddSilverColumn,
    ChangeType,
    DropSilverColumn,
    KeyChange,
    RenameSilverColumn,
    SilverAction,
    ValuesRewritten,
    diff,
)
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partitions import DELETED as DELETED_ROWS
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.spark_sql import quote
from tidegate.tables import ROW_HASH, SHARDS
from tidegate.upsert.reshape import Reshape, value_of


def change_schema(writer: SilverWriter, planned: PlannedPhase) -> None:
    """Follow the DDL at one commit_ts. Raises SchemaMismatch for what can't be followed yet."""
    phase, shape = planned.phase, planned.shape
    assert isinstance(phase, DdlPhase), "asked of those"
    writer.app.check_claim()
    if planned.before:
        follow_past(writer, planned.before)
    anew = {_name(of): of.version for _, of in phase.changes if of.kind == SNAPSHOT}
    for old, new in phase.changes:
        # A view of a quiet server has the commit_ts of the last statement itself. The rows that were read already
        # follow that statement.
        if new.version < anew.get(_name(new), 0):
            continue
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
        describe_silver(writer.log, shape)


def _name(version: TableVersion) -> tuple[str, str, str]:
    return version.source, version.database, version.table


def _delete_partitions(writer: SilverWriter, old: TableVersion, new: TableVersion) -> None:
    shard = silver_sql.only_shard(new) if writer.entry.routed else "true"
    if writer.columns() is not None:
        writer.once("partitions", new, lambda it: delete_statement(it.rows(), it.target, shard, old, new))


def _empty(writer: SilverWriter, old: TableVersion | None, version: TableVersion, shape: SilverShape | None) -> None:
    """No live rows (of this shard) from here on, and the columns of `shape`, whatever they were before."""
    if shape is None and writer.columns() is None:
        return
    if shape is not None and writer.entry.routed and empty_of_no_shard(writer, version, shape):
        return
    if shape is not None:
        (writer.ensure_columns if writer.entry.routed else writer.ensure)(shape)
        retype(writer, version, shape)
    if writer.work.plan.past.rows_stay:
        end_all(writer, old, version, shape)
    elif writer.entry.routed:
        empty_shard(writer, version)
    else:
        done, sources = (writer.ddl_id(EMPTIED, version), version.commit_ts), writer.sources_of(old)
        columns = None if writer.is_as(shape, writer.log.state()) else shape
        # Rows from before were left out (merge/phases.py). An apply that slept has some, and must write none of them.
        # Not where another table takes them: it reads the version that records less than the rename.
        rows = None if leaves(old, version) else (writer.app_id, version.commit_ts - 1)
        empty_silver(writer.log, done, columns, sources, rows=rows)


def _alter(writer: SilverWriter, old: TableVersion, new: TableVersion, shape: SilverShape, upto_ts: int) -> None:
    try:
        out = apart(kept_of(writer.app, writer.entry), old, new)
        actions = diff(old, new, writer.ddl_times.get((new.source, new.commit_ts)), out)
        _follow(writer, actions_in_silver(writer, actions, old, new), old, new, shape, upto_ts)
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
        widened(writer, shape)  # raises before anything is changed
        actions = [action for action in actions if not isinstance(action, ChangeType)]
    only_adds = all(isinstance(action, AddSilverColumn) for action in actions)
    if writer.entry.routed and not only_adds:
        raise SchemaMismatch(
            f"{new.ddl[:120]}: only added and wider columns are followed in routed tables",
            where=new.where,
            remedy=REFILL.after("bring all shards to one shape"),
        )
    check_past(writer, writer, old, new, shape)
    done = (_done_id(writer, new), upto_ts)
    if actions and writer.columns() is None:
        writer.ensure(shape)
    elif actions and only_adds and (shape.key or not _gives_values(actions)):  # NULL changes no row's hash
        _add(writer, actions, old, new, shape)
    elif actions and not reshape(writer, partial(_reshape_of, writer, actions, old, shape), done):

        def work(private: PrivateLog) -> bool:
            recasts = recast_values(private.rows(), actions, new)
            check_past(writer, private, old, new, shape)
            stays = all(keeps_values(private.state, action, recasts) for action in actions)
            if not stays:
                own = silver_sql.only_shard(new) if writer.entry.routed else "true"
                check_names(writer, private.state, actions, old)
                rewrite(private, actions, shape, recasts, own, writer.sources_of(old))
            return not stays

        writer.change(work, done)


def _done_id(writer: SilverWriter, new: TableVersion) -> str:
    """The application id under which a statement is recorded. Under the id of the rows, silver would have rows of this
    commit_ts already: other shards', or the rows by which the log showed a missing statement.
    """
    beside = writer.entry.routed or new.kind in (HEALED, REFRESHED)
    return writer.ddl_id(VALUES, new) if beside else writer.app_id


def _reshape_of(
    writer: SilverWriter, actions: Sequence[SilverAction], old: TableVersion, shape: SilverShape, state: TableState
) -> Reshape | str | None:
    """The columns after the actions; a phrase where it takes Spark to know, or to look at every row at once."""
    if writer.entry.routed:
        return "other shards' columns are silver's, too"
    recasts = {}
    for action in actions if state.files else ():
        if isinstance(action, KeyChange):
            return "the key changes"
        if isinstance(action, DropSilverColumn) and not shape.key:
            return "rows may be equal now that weren't"
        if isinstance(action, ValuesRewritten):
            if not _keeps(action, state):
                return action.reason
            recasts[action.column.silver] = quote(action.old_name)
    if all(keeps_values(state, action, recasts) for action in actions):
        return None
    check_names(writer, state, actions, old)
    return Reshape(
        facts=lambda read: reshaped(read, shape, writer.sources_of(old)),
        key=shape.key or (ROW_HASH,),
        renamed={a.new_name: a.old_name for a in actions if isinstance(a, RenameSilverColumn)},
        added={name: value_of(value, kind) for name, (value, kind) in _added(actions).items()},
        hashed=() if shape.key else shape.hashed_names,
    )


def check_names(writer: SilverWriter, state: TableState, actions: Sequence[SilverAction], old: TableVersion) -> None:
    """Raise SchemaMismatch if a column gets the name of one that silver's owner has added: the
    owner's values would go, or pass for the source's. Silver that was made just now has the columns
    after the statement, and no rows, so it is left out.
    """
    if not state.files:
        return
    own_columns = {str(field["name"]).lower() for field in state.schema["fields"]}
    own_columns -= {column.silver.lower() for column in old.columns}
    for action in actions:
        match action:
            case RenameSilverColumn():
                name, what = action.new_name, f"column {action.old_name} is {action.new_name} from here on"
            case AddSilverColumn() if not _had(writer, old, action.column.silver):
                name, what = action.column.silver, f"column {action.column.name} is added here"
            case _:
                continue
        if name.lower() in own_columns:
            raise SchemaMismatch(
                f"{what}, and silver has a column of that name",
                where=state.place,
                remedy="rename or drop silver's own column, then `tidegate release`",
            )


def _had(writer: SilverWriter, old: TableVersion, name: str) -> bool:
    """Whether the source may have brought silver's column of this name before: another shard did,
    or an earlier table of the name, whose rows or columns silver keeps (rows of the past, an
    ignored DDL).
    """
    if writer.entry.routed or writer.work.plan.past.rows_stay:
        return True
    versions = writer.app.histories[old.source].versions(old.database, old.table)
    before = (version for version in versions if version.commit_ts <= old.commit_ts)
    return name.lower() in {column.silver.lower() for version in before for column in version.columns}


def _keeps(action: ValuesRewritten, state: TableState) -> bool:
    """Whether every value is certainly what it was, by silver's statistics alone."""
    recast = action.recast
    if recast is None or recast.value != VALUE:
        return False
    return recast.doubt == "false" or (recast.only_nulls and all(f.nulls(action.old_name) == 0 for f in state.files))


def _gives_values(actions: Sequence[SilverAction]) -> bool:
    return any(value is not None for value, _ in _added(actions).values())


def _added(actions: Sequence[SilverAction]) -> dict[str, tuple[Any, pa.DataType]]:
    """Added columns by name: the value for existing rows, None for NULL, and its type."""
    added = [action for action in actions if isinstance(action, AddSilverColumn)]
    return {action.column.silver: (action.value, canonical(action.column).arrow) for action in added}


def _add(
    writer: SilverWriter, actions: Sequence[SilverAction], old: TableVersion, new: TableVersion, shape: SilverShape
) -> None:
    """The columns, with the value the server gave to existing rows."""
    state, ids = writer.log.state(), (writer.app_id, writer.ddl_id(VALUES, new))
    done = any(state.transaction(app_id) >= new.commit_ts for app_id in ids)
    if not done:
        check_names(writer, state, actions, old)
    added = [action for action in actions if isinstance(action, AddSilverColumn)]
    own = {column.name: column for column in shape.columns}
    columns = [replace(own[a.column.silver], type=canonical(a.column).delta) for a in added]
    if not _gives_values(added):
        # Of a routed table silver's version is all shards', and says nothing of a statement on one.
        add_columns(writer.log, columns, None if writer.entry.routed else (_done_id(writer, new), new.commit_ts))
        return
    shard = dict(zip(SHARDS, new.physical, strict=True))
    filled = Reshape(
        facts=lambda read: columns_added(read, columns),
        key=shape.key,
        added={n: None if value is None else value_of(value, kind) for n, (value, kind) in _added(added).items()},
        own=shard if writer.entry.routed else {},
    )
    if reshape(writer, lambda _: filled, (writer.ddl_id(VALUES, new), new.commit_ts)):
        return
    texts = literals([action for action in added if action.value is not None])
    assign = ", ".join(f"{quote(name)} = {text}" for name, text in texts.items())

    def by_spark(private: PrivateLog) -> str:
        private.apply(columns_added(private.inside, columns))
        return f"UPDATE {private.target} SET {assign}{writer.only(new)}"

    writer.once(VALUES, new, by_spark)
