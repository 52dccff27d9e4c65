"""Rows of one silver table become another's, as a rename at the source says.

In:  Moves at one commit_ts, the silver tables that give rows.
Out: one Delta transaction per taker, with the rename's commit_ts as its txnVersion (SilverWriter.take_id).

Why it is exact after a kill: a taker reads the giver's silver at its last version without anything
of the rename's commit_ts, or later. The giver's own log tells which version that is. Both tables
of a swap read the rows from before either was written, however often the window is tried. Rows are
copied, not shared: neither table's VACUUM or history knows of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from spark_jobs.merge.kept_actions import actions_in_silver
from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.recast import recast_values
from spark_jobs.merge.rewrite import overwrite, types_of
from spark_jobs.merge.silver_partitions import partial_taker, partition_given, partition_replaced
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.merge.values import literals, numbered
from spark_jobs.window.application import Application
from spark_jobs.window.shape.computing import check_same_rules, computed_by
from spark_jobs.window.shape.filtered import check_same_condition
from spark_jobs.window.shape.kept import apart, check_silver
from spark_jobs.window.shape.naming import check_same_names
from spark_jobs.window.shape.shapes import kept_of, shape_of
from spark_jobs.window.standing import silver_guard
from spark_jobs.window.window import Move
from tidegate import tables
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import LakeRefused, SchemaMismatch
from tidegate.merge import silver_sql
from tidegate.merge.column import SilverColumn
from tidegate.merge.given import given_version_at
from tidegate.merge.kept import Kept, left_out
from tidegate.merge.past import past_of
from tidegate.merge.silver_sql import SilverShape
from tidegate.merge.widening import wider
from tidegate.remedy import REFILL
from tidegate.schema.follow.silver_change import AddSilverColumn, SilverAction, diff
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import BASELINE
from tidegate.spark_sql import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_TABLE = -1


def version_before(app: Application, name: str, commit_ts: int) -> int:
    """The Delta version of a silver table that has everything below commit_ts and nothing from it
    on; -1: no table.

    Everything below must have been written. Raises LakeRefused when the log no longer says.
    """
    app_ids = [tables.app_id(app.pipeline.pipeline, name), tables.taken_id(app.pipeline.pipeline, name)]
    log = app.lake.log(tables.silver_path(*app.names.pair(name)))
    state = log.state()
    version = state.version
    # If nothing of the rename, or later, is recorded yet, the newest version is read.
    if version == NO_TABLE or max(map(state.transaction, app_ids)) < commit_ts:
        return version

    def recorded(at: int) -> int | None:
        actions = log.actions(at)
        if actions is None:
            raise _gone(at, log.place)
        return _recorded(actions, app_ids)

    return given_version_at(version, recorded, commit_ts)


def _gone(version: int, place: str) -> LakeRefused:
    return LakeRefused(
        f"version {version} of the table's log is gone, and with it how the table was before a rename",
        where=place,
        remedy=REFILL,
    )


def _recorded(actions: Sequence[Action], app_ids: Collection[str]) -> int | None:
    """The newest transaction version that a commit records for one of these applications."""
    transactions = (action["txn"] for action in actions if "txn" in action)
    return max((int(txn["version"]) for txn in transactions if txn["appId"] in app_ids), default=None)


def taken_rows(
    writer: SilverWriter, shape: SilverShape, moves: Sequence[Move], versions: Mapping[str, int]
) -> DataFrame:
    """The new rows of a taker: the givers' rows with its own columns. versions: as version_before
    gives them, by giver.

    Raises SchemaMismatch for an ALTER ... RENAME that rewrites values.
    """
    parts = [_rows_of(writer, shape, move, versions[move.giver]) for move in moves]
    return numbered(reduce(lambda left, other: left.unionByName(other), parts), shape)


def actions_of(writer: SilverWriter, move: Move) -> Sequence[SilverAction]:
    """The effects of a rename on the columns of its rows. Raises SchemaMismatch for unknown ones."""
    old, new = given_version(move), move.new
    out = apart(kept_of(writer.app, writer.entry), old, new)
    plain = diff(old, new, writer.ddl_times.get((new.source, new.commit_ts)), out)
    return actions_in_silver(writer, plain, old, new)


def _rows_of(writer: SilverWriter, shape: SilverShape, move: Move, version: int) -> DataFrame:
    app, old, new = writer.app, given_version(move), move.new
    actions = actions_of(writer, move)
    shards = zip(tables.SHARDS, new.physical, strict=True) if shape.routed else ()
    fixed = {name: literal(value) for name, value in shards} | {tables.COMMIT_TS: tables.COMMIT_TS}
    # A giver without silver gives no rows. It must never have had any: otherwise they would be lost unnoticed.
    if version == NO_TABLE:
        _never_had_rows(app, old)
        nothing = ", ".join(f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in _plain(shape))
        return writer.session.sql(f"SELECT {nothing} WHERE false")
    check_given(app, move, version)
    source = app.lake.spark_uri(tables.silver_path(*app.names.pair(move.giver)))
    rows = writer.session.read.format("delta").option("versionAsOf", str(version)).load(source)
    if app.names.logical(old.database, old.table)[2]:
        rows = rows.where(silver_sql.only_shard(old))
    rows = partition_given(rows, move)
    past = past_of(rows.columns)
    along = past is shape.past and past.moves_along
    # Ended rows belong to the giver's name. They go along only if both tables have a mode that says so.
    if past.rows_stay and not along:
        rows = rows.where(past.live)
    _refuse_more_columns(app, rows, move, computed_by(shape))
    recasts = recast_values(rows, actions, new)
    names, given = {column.id: column.silver for column in old.columns}, set(rows.columns)
    ids = {column.silver: column.id for column in new.columns}
    added = literals([action for action in actions if isinstance(action, AddSilverColumn)])
    begun = shape.past.begun
    taken = {name: value.format(commit_ts=move.commit_ts) for name, value in shape.past.taken.items()}
    fixed |= {name: name for name in begun} if along else {**begun, **taken}
    select = []
    for column in _plain(shape):
        before = column.name if column.computed else names.get(ids.get(column.name, 0), "")
        known = quote(before) if before in given else "NULL"
        # The first one that there is: a system column's value, an added column's, a rewritten one, the giver's own.
        value = fixed.get(column.name) or added.get(column.name) or recasts.get(column.name) or known
        select.append(f"CAST({value} AS {column.type}) AS {quote(column.name)}")
    return rows.selectExpr(*select)


def check_given(app: Application, move: Move, version: int) -> TableState:
    """The giver's silver at that version. Raises SchemaMismatch if its rows were made by other rules
    than the pipeline file's: the taker's silver would name the new ones beside them. Raises as
    silver_guard.check, too.

    The giver's plan doesn't check it: the rename may be its first phase, which only takes rows away.
    """
    database, table = app.names.pair(move.giver)
    log = app.lake.log(tables.silver_path(database, table))
    if (state := log.state_at(version)) is None:
        raise _gone(version, log.place)
    if (newest := log.state()).version == version:  # others may have written since it was planned
        silver_guard.check(app, move.giver, newest)
    kept = Kept(app.pipeline.tables.columns_of(database, table), app.mask_keys)
    routed = app.names.logical(move.old.database, move.old.table)[2]
    shape = shape_of(
        [move.old], routed=routed, past=past_of([field["name"] for field in state.schema["fields"]]), kept=kept
    )
    check_silver(shape, left_out(kept, [move.old]), state, frozenset())
    check_same_rules(shape, state)
    check_same_condition(shape, state)
    check_same_names(shape, kept.rules.names, [move.old], state)
    return state


def given_version(move: Move) -> TableVersion:
    """The giver's version, with the taker's column ids."""
    return move.old if move.moved is None else _aligned(move.old, move.new)


def _aligned(old: TableVersion, new: TableVersion) -> TableVersion:
    """The server took rows over as they stood, column by column."""
    columns = tuple(replace(column, id=own.id) for column, own in zip(old.columns, new.columns, strict=True))
    return replace(old, columns=columns, key=())


def _refuse_more_columns(app: Application, rows: DataFrame, move: Move, computed: Collection[str]) -> None:
    """Raise SchemaMismatch for columns that only silver has (its owner's, or left by an ignored DDL): nobody said what
    a rename does to them. computed: the computed columns, which both tables have.
    """
    if app.names.logical(move.old.database, move.old.table)[2]:
        return  # those of other shards
    known = {column.silver for column in move.old.columns}.union(computed)
    more = [name for name in rows.columns if name not in known and not name.startswith(tables.SYSTEM_PREFIX)]
    if more:
        raise SchemaMismatch(
            f"{move.new.ddl[:120]}: silver of {move.giver} has columns that the source hasn't: {', '.join(more)}",
            where=move.new.where,
            remedy="drop them from silver, then: `tidegate release`",
        )


def _never_had_rows(app: Application, version: TableVersion) -> None:
    """Raise SchemaMismatch unless a table without silver was empty when capture began: a created one has silver."""
    first = app.histories[version.source].versions(version.database, version.table)[0]
    if first.kind != BASELINE or first.status != VersionStatus.ACTIVE:
        raise SchemaMismatch(
            f"{version.name} was renamed, but isn't in silver",
            where=f"{version.source} at {version.file}:{version.pos}",
            remedy=REFILL,
        )


def _plain(shape: SilverShape) -> list[SilverColumn]:
    """The columns that aren't computed from others."""
    return [column for column in shape.all_columns if column.name not in (tables.ROW_HASH, tables.OCCURRENCE)]


def only_shards(versions: Sequence[TableVersion]) -> str:
    """SQL condition: the rows of these physical tables in a routed one."""
    return " OR ".join(f"({silver_sql.only_shard(version)})" for version in versions)


def replaced_rows(versions: Sequence[TableVersion], *, routed: bool) -> str:
    """SQL condition: the takers' rows that the new rows replace."""
    return " OR ".join(f"({_replaced(version, routed=routed)})" for version in versions)


def _replaced(version: TableVersion, *, routed: bool) -> str:
    """SQL condition: the rows of a taker that go as others come."""
    own = silver_sql.only_shard(version) if routed else "true"
    return f"{own} AND {partition_replaced(version)}" if partial_taker(version) else own


def take_rows(
    writer: SilverWriter,
    shape: SilverShape,
    rows: Callable[[DataFrame], DataFrame],
    replaced: Sequence[TableVersion],
    commit_ts: int,
) -> None:
    """Commit the rows. They replace all rows of an unrouted table, or the rows of the `replaced`
    shards or partitions.

    rows: what the taker gets, given its own rows; of a plain table with versions of rows, all. In a routed one the
    replaced versions end here.
    """
    partly = any(partial_taker(version) for version in replaced)
    whole = not shape.routed and (shape.past.versions or not partly)
    (writer.ensure if whole else writer.ensure_columns)(shape)
    where = replaced_rows(replaced, routed=shape.routed)

    def work(private: PrivateLog) -> None:
        taken = rows(private.rows())
        if whole:
            overwrite(private, taken, shape)
            return
        held = dict(types_of(private.state))  # maybe wider ones, of a shard that is gone
        wide = ((quote(c.name), wider(held.get(c.name, c.type), c.type) or c.type) for c in shape.all_columns)
        taken = taken.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, kind in wide))
        if not shape.past.versions:
            taken.write.format("delta").mode("overwrite").option("replaceWhere", where).save(private.uri)
            return
        ended = shape.past.assigned(commit_ts)
        writer.session.sql(f"UPDATE {private.target} SET {ended} WHERE {shape.past.live} AND ({where})")
        taken.write.format("delta").mode("append").save(private.uri)

    writer.change(work, (writer.take_id, commit_ts))
