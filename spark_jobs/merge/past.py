"""Rows of the past in a silver table, by its mode: their columns come and go, and a statement ends all live rows.

In:  a table with a mode's key in the pipeline file, or once with one.
Out: the columns, rows ended; SchemaMismatch where rows of the past can't stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from spark_jobs.merge.private.log import PrivateLog
from spark_jobs.merge.rewrite import rewrite, types_of
from spark_jobs.merge.silver_writer import SilverWriter
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, SchemaMismatch
from tidegate.merge.past import past_of
from tidegate.merge.silver_sql import SilverShape, only_shard
from tidegate.merge.widening import wider
from tidegate.schema.follow.silver_change import RenameSilverColumn
from tidegate.schema.model.columns import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SilverRows(Protocol):
    """Silver as it is, or as a private log has it."""

    @property
    def state(self) -> TableState: ...
    def rows(self) -> DataFrame | None:
        """None when there is none."""


def follow_past(writer: SilverWriter, shape: SilverShape) -> None:
    """Add the mode's columns if the pipeline file now names the table. Drop them if it doesn't, and silver keeps no
    rows of the past.
    """

    def fits(columns: Sequence[str] | None) -> bool:
        return columns is None or past_of(columns) is shape.past

    def work(private: PrivateLog) -> bool:
        rows = private.rows()
        if fits(rows.columns):
            return False
        had = past_of(rows.columns)
        if count := _ended(rows):
            raise SchemaMismatch(
                f"silver keeps {count} {had.kept}, and {had.word} doesn't name the table any more",
                where=writer.entry.name,
                remedy=f"name it again, or delete the rows that aren't live ({had.live}); then release it",
            )
        rewrite(private, (), as_wide(shape, private.state), {})
        return True

    if not fits(writer.columns()):
        writer.change(work)


def as_wide(shape: SilverShape, state: TableState) -> SilverShape:
    """The shape of a routed table with silver's own types: a shard that waits, or is gone, may have had wider ones."""
    if not shape.routed:
        return shape
    held = dict(types_of(state))
    wide = ((column, wider(held.get(column.name, column.type), column.type)) for column in shape.columns)
    return replace(shape, columns=tuple(replace(column, type=both or column.type) for column, both in wide))


def end_all(writer: SilverWriter, old: TableVersion | None, version: TableVersion, shape: SilverShape | None) -> None:
    """End every live row (of this shard) at a TRUNCATE or DROP TABLE. Rows that ended before keep their time.

    They end even if silver can't take the new shape: then a person is asked to delete ended rows, and finds them
    marked. A table that is read anew may have waited below several DDLs. Ended rows keep their values under the
    columns' new names.
    """
    past, at_ts = writer.work.plan.past, version.commit_ts
    own = writer.only(version) or " WHERE true"

    def marks(private: PrivateLog) -> str:
        live, is_later = past.live, writer.reached(private.state) >= at_ts
        # A killed window may have written more of a shard than its last cut has, and left it out since.
        if writer.entry.routed and is_later and past.came_since:
            writer.session.sql(f"DELETE FROM {private.target}{own} AND {past.came_since.format(commit_ts=at_ts)}")
            live = past.was_live.format(commit_ts=at_ts)
        return f"UPDATE {private.target} SET {past.assigned(at_ts)}{own} AND {live}"

    if not _nothing_ended(writer, version):
        writer.once("marks", version, marks)
    if shape is None:
        return

    written = writer.written(old)
    renames = _renames(written, old)

    def work(private: PrivateLog) -> bool:
        check_past(writer, private, written, version, shape, renames)
        fits = writer.is_as(shape, private.state)
        if not fits:
            rewrite(private, renames, shape, {}, sources=writer.sources_of(old))
        return not fits

    done = (writer.ddl_id("shape", version), version.commit_ts)
    if writer.state.transaction(done[0]) >= done[1]:
        return
    check_past(writer, writer, written, version, shape, renames)
    if not writer.is_as(shape, writer.state):
        writer.change(work, done)


def _renames(written: TableVersion | None, old: TableVersion | None) -> list[RenameSilverColumn]:
    """The columns of silver's version that have other names in a later one."""
    if written is None or old is None:
        return []
    names = {column.id: column.silver for column in old.columns}
    pairs = [(column.silver, names.get(column.id, column.silver)) for column in written.columns]
    return [RenameSilverColumn(name, later) for name, later in pairs if name != later]


def _nothing_ended(writer: SilverWriter, version: TableVersion) -> bool:
    """Record the statement without Spark if the table has no rows. False: it may have some."""
    state, done = writer.log.state(), (writer.ddl_id("marks", version), version.commit_ts)
    if state.files or state.transaction(done[0]) >= done[1]:
        return False
    try:
        writer.log.commit(state, Change([], "UPDATE", dict([done])))
    except CommitConflict:
        return False
    return True


def check_past(
    writer: SilverWriter,
    silver: SilverRows,
    old: TableVersion | None,
    new: TableVersion,
    shape: SilverShape,
    renames: Sequence[RenameSilverColumn] = (),
) -> None:
    """Raises SchemaMismatch when marked rows can't stay beside rows of another key or of other types.

    Silver's rows are read only when there is a doubt. renames: of old's columns, which the rows follow.
    """
    past = shape.past
    if not past.rows_stay:
        return
    later = {rename.old_name: rename.new_name for rename in renames}
    fits = old is not None and tuple(later.get(name, name) for name in writer.shape_of(old).key) == shape.key
    if new.kind != "alter":
        types = {later.get(name, name): kind for name, kind in types_of(silver.state)}
        held = [(types.get(column.name, column.type), column.type) for column in shape.columns]
        # A routed table has, or is about to have, types that fit all its shards, gone ones too (merge/widen.py).
        fits = fits and all(has == due or (shape.routed and wider(has, due)) for has, due in held)
    if not fits and (own := silver.rows()) is not None and (count := _ended(_of_shard(writer, own, new))):
        raise SchemaMismatch(
            f"{new.ddl[:120]}: silver keeps {count} {past.kept}, which have another key or other types",
            where=new.where,
            remedy=f"delete the rows that aren't live ({past.live}), then release the table",
        )


def _of_shard(writer: SilverWriter, rows: DataFrame, version: TableVersion) -> DataFrame:
    """The rows that a statement is about: other shards' have what they had."""
    if not writer.entry.routed or tables.SHARD_SOURCE not in rows.columns:
        return rows
    return rows.where(only_shard(version))


def _ended(rows: DataFrame) -> int:
    past = past_of(rows.columns)
    return rows.where(f"NOT ({past.live})").count() if past.rows_stay else 0
