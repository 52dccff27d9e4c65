"""A rename copies silver's files as they are, without Spark.

In:  a rename of a whole table, and the giver's silver at the version given by moves.py.
Out: one commit of the taker, as moves.take_rows makes it: copies in place of its own files, and its
     columns. None where rows change on their way, or files aren't all of a table's rows: Spark moves
     these.

The cut-over of an online schema change replaces a table of any size. Its shadow has the new columns
already, so no row needs to be decoded. Copies have names of their own: neither table's VACUUM or
history knows of the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.merge.moves import NO_TABLE, actions_of, check_given
from spark_jobs.merge.rewrite import has_columns
from spark_jobs.merge.silver_writer import SilverWriter
from spark_jobs.window.shape.computing import computed_by, computed_of
from spark_jobs.window.shape.kept import masks_of
from spark_jobs.window.window import Move
from tidegate import config, tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, Overtaken
from tidegate.failpoint import failpoint
from tidegate.lake.silver.silver_tables import reshaped
from tidegate.lake.storage.store_error import StoreError
from tidegate.limits import COMMIT_SECONDS_MAX
from tidegate.merge.past import NO_PAST, past_of
from tidegate.merge.silver_sql import SilverShape
from tidegate.upsert.files import copied
from tidegate.upsert.files.abandoned import delete_added
from tidegate.upsert.fitness import why_not

log = logging.getLogger(__name__)
OPERATION = "RENAME"


@dataclass(frozen=True, slots=True)
class GivenFiles:
    """The live files of a giver. path: of its silver, relative to the lake."""

    path: str
    state: TableState


def given_files(
    writer: SilverWriter, shape: SilverShape, moves: Sequence[Move], versions: Mapping[str, int]
) -> GivenFiles | None:
    """The files with the taker's rows; None where Spark has to read rows.

    versions: as moves.version_before gives them. Raises as moves.taken_rows does.
    """
    move, app = moves[0], writer.app
    version = versions[move.giver]
    if len(moves) > 1 or move.moved is not None or version == NO_TABLE or not _is_plain(writer, shape, move):
        return None
    given = check_given(app, move, version)
    path = tables.silver_path(*app.names.pair(move.giver))
    fits = _same_columns(given, shape, move) and not actions_of(writer, move) and _takes_files(given)
    return GivenFiles(path, given) if fits and copied.can_copy(app.lake, given.files) else None


def _is_plain(writer: SilverWriter, shape: SilverShape, move: Move) -> bool:
    """Whether both tables have a key and no shards, and the taker live rows alone."""
    app, own = writer.app, writer.log.state()
    routed = shape.routed or app.names.logical(move.old.database, move.old.table)[2]
    if routed or not shape.key or shape.past is not NO_PAST or app.pipeline.apply.writer is config.Writer.MERGE:
        return False
    return not own.created or _takes_files(own)


def _takes_files(state: TableState) -> bool:
    """Whether its live files are its rows, and other files may replace them."""
    live_alone = past_of([field["name"] for field in state.schema["fields"]]) is NO_PAST
    return live_alone and not state.partition_columns and why_not(state) is None


def _same_columns(given: TableState, shape: SilverShape, move: Move) -> bool:
    """Whether both tables have the same columns in silver: types, masks, rules, and the source's columns."""
    wanted = shape.all_columns
    if not has_columns(given, shape):
        return False
    if masks_of(given) != {column.name: column.mask for column in wanted} or computed_of(given) != computed_by(shape):
        return False
    before = {column.id: column.silver for column in move.old.columns}
    after = {column.silver: column.id for column in move.new.columns}
    ours = {column.name for column in shape.columns if not column.computed}
    return all(before.get(after.get(name, 0)) == name for name in ours)


def take_files(
    writer: SilverWriter, at: tuple[SilverShape, int], given: GivenFiles, by_spark: Callable[[], Callable[[], None]]
) -> None:
    """Commit copies of the files in place of all rows of the taker.

    at: its shape, and the rename's commit_ts. by_spark: gives the step of moves.take_rows, for a copy
    that takes too long: files without a commit aren't safe for ever. It is also for a store that doesn't
    copy. That may want other rights than to read and write, or be slower than its client waits.
    """
    shape, commit_ts = at
    writer.ensure(shape)
    if writer.has_taken(commit_ts):
        return
    lake, pool = writer.app.lake, writer.app.pool
    try:
        adds = copied.copies(lake, given.path, writer.path, given.state.files, pool, seconds=COMMIT_SECONDS_MAX / 2)
    except (StoreError, copied.TooSlow) as error:
        log.warning("%s: the store doesn't copy its files, so Spark moves its rows: %s", writer.path, error)
        by_spark()()
        return

    late = False  # another application was first

    def decide(read: TableState) -> Change | None:
        nonlocal late
        writer.check(read)
        if late := read.transaction(writer.take_id) >= commit_ts:
            return None
        if not _takes_files(read):
            raise CommitConflict("its properties have changed: the next try asks Spark", where=read.place)
        actions = [*reshaped(read, shape), *moved(read.files, adds, data_change=True)]
        return Change(actions, OPERATION, {writer.take_id: commit_ts})

    failpoint("copied_before_commit")
    try:
        writer.app.check_claim()
        writer.log.update(decide)
    except (CommitConflict, Overtaken):  # certainly in no commit
        delete_added(lake, writer.path, adds)
        raise
    if late:
        delete_added(lake, writer.path, adds)
