"""The keys of a table that the log changes in (after_ts, upto_ts]: bronze, read by the mover's own decoding.

In:  a lake, a physical table, the keys in question.
Out: their changed ones; None when the log can't tell, so any may be.

It only gives keys to read again, and no value of a row. settle.py explains why that is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from tidegate.errors import TidegateError
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.lake.bronze.index import segments_or_damage
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import table_rows
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.renamed import Names, under_names
from tidegate.segment_kinds import changes_of
from tidegate.segments.result import NOTHING_KNOWN, CommitSpan
from tidegate.segments.segment import Segment, may_name
from tidegate.table_names import Physical
from tidegate.tables import SegmentFlag
from tidegate.verify.settle import Key


def changed_keys(
    lake: LakeFiles,
    of: Physical,
    after_ts: int,
    upto_ts: int,
    keys_of: Callable[[pa.Table], Collection[Key]],
    names: Names = MappingProxyType({}),
) -> Collection[Key] | None:
    """The changed keys among those in question; None after a DDL of the table, and if something can't be decoded.
    keys_of: the keys of decoded rows. names: silver's names of columns, by tables.renames.

    A prepared transaction, or the answer to one, also gives None, whichever tables it is about: its
    rows lie elsewhere in the log.
    """
    if after_ts >= upto_ts:
        return ()
    if not after_ts:
        return None
    source, database, table = of
    name = (database, table)
    end_ts, all_refs = backlog(lake, {source: WantedSegments(after_ts)}, upto_ts, sys.maxsize)
    refs = [ref for ref in all_refs if may_name(ref.tables, name)]
    unclear = any(ref.flags & (SegmentFlag.HAS_PREWRITE | SegmentFlag.HAS_ANSWER) for ref in all_refs)
    if end_ts < upto_ts or unclear or any(ref.flags & SegmentFlag.HAS_DDL for ref in refs):
        return None
    if not refs:
        return ()
    rows = [row for row in table_rows(lake, *name) if row["source"] == source]
    versions = [under_names(TableVersion.from_row(row), names) for row in rows]
    if any(after_ts < version.commit_ts <= upto_ts for version in versions):
        return None
    unasked = frozenset(column.silver for version in versions for column in version.columns)  # but for keys
    keys: set[Key] = set()
    for ref, segment in segments_or_damage(lake, refs):
        if not isinstance(segment, Segment):
            return None
        known = replace(NOTHING_KNOWN, rolled_back_ts=ref.rolled_back_ts)
        span = CommitSpan(after_ts, ref.upto(upto_ts), left_out=unasked)
        try:
            for part in changes_of(segment, {name: versions}, {name: span}, known):
                if part.problems:
                    return None
                for changes in part.changes:
                    keys.update(keys_of(pa.Table.from_batches([changes.batch])))
        except TidegateError:
            return None
    return keys
