"""Rows of prewrites committed by a window, read from where they were prepared.

In:  PrewrittenSegments; a decode plan's versions, windows and sources.
Out: runs of changes in the order of their answers, with the answers' commit_ts; problems; the
     accounted bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_jobs.window.shape.decode_plan import DecodePlan
from spark_jobs.window.window import Accounted, PrewrittenSegment, Trouble
from tidegate import limits, tables
from tidegate.errors import StreamCorrupt, Terminal, Transient, unexpected
from tidegate.lake.bronze.index import segments_or_damage
from tidegate.schema.model.columns import TableVersion
from tidegate.segment_kinds import changes_of
from tidegate.segments.result import CommitSpan, Known, Ledger, Problem, TableChanges
from tidegate.segments.segment import Segment, may_name

_LOG_ORDER = (tables.COMMIT_TS, tables.SEQ, tables.ORDINAL)

Name = tuple[str, str]
_Owner = tuple[str, str, str, int]  # source, physical table and version


@dataclass(frozen=True, slots=True)
class Run:
    """(source, changes of a table) of some segments, in order among themselves. Two runs have no
    order between them.
    """

    changes: Sequence[tuple[str, TableChanges]]


def prewritten_changes(
    segments: Sequence[PrewrittenSegment], plan: DecodePlan, run_bytes: int = limits.STAGE_BYTES
) -> Iterator[Run | Trouble | Accounted]:
    """Each segment is read once for all of its prewrites. run_bytes: decoded rows held before they are given."""
    waiting: dict[_Owner, list[TableChanges]] = {}
    waiting_bytes = 0
    by_place = {(segment_rows.ref.source, segment_rows.ref.seq): segment_rows for segment_rows in segments}
    for ref, segment in segments_or_damage(plan.lake, [segment_rows.ref for segment_rows in segments]):
        prewritten = by_place[ref.source, ref.seq]
        ledger = Ledger(payload_bytes=0)
        try:
            for done in changes_of(*_asked(prewritten, segment, plan)):
                for changes in done.changes:
                    owner = (prewritten.source, changes.database, changes.table, changes.version)
                    waiting.setdefault(owner, []).append(changes)
                    waiting_bytes += changes.batch.nbytes
                yield from (Trouble(prewritten.source, problem) for problem in done.problems)
                ledger.add(done.ledger)
                if waiting_bytes >= run_bytes:
                    yield _run(waiting)
                    waiting_bytes = 0
        except (OSError, MemoryError, Transient):
            raise
        except Terminal as error:
            yield from _lost(prewritten, plan, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one segment is that segment's
            yield from _lost(prewritten, plan, unexpected(error))
        else:
            yield Accounted(ref.source, ref.seq, ledger, prewritten=True)
    if waiting:
        yield _run(waiting)


def _asked(
    prewritten: PrewrittenSegment, segment: Segment | StreamCorrupt, plan: DecodePlan
) -> tuple[Segment, Mapping[Name, Sequence[TableVersion]], Mapping[Name, CommitSpan], Known]:
    if isinstance(segment, StreamCorrupt):
        raise segment
    source = prewritten.source
    known = replace(plan.known[source], answers=prewritten.answers)
    return segment, plan.versions.get(source, {}), plan.windows.get(source, {}), known


def _run(waiting: dict[_Owner, list[TableChanges]]) -> Run:
    """The versions of a table in their order, the rows of each in the order of their answers."""
    changes = []
    for source, database, table, version in sorted(waiting):
        of_table = waiting[source, database, table, version]
        rows, lacks = pa.Table.from_batches([part.batch for part in of_table]), any(part.lacks for part in of_table)
        ordered = rows.sort_by([(name, "ascending") for name in _LOG_ORDER]).combine_chunks()
        changes += [(source, TableChanges(database, table, version, batch, lacks)) for batch in ordered.to_batches()]
    waiting.clear()
    return Run(changes)


def _lost(prewritten: PrewrittenSegment, plan: DecodePlan, error: Terminal) -> Iterator[Trouble]:
    """A problem for each table of the segment whose window has one of the answers."""
    ref = prewritten.ref
    for (database, table), window in plan.windows.get(prewritten.source, {}).items():
        due = [answer_ts for answer_ts in prewritten.answers.values() if answer_ts in window]
        if due and (may_name(ref.tables, (database, table)) or (database, table) in prewritten.names):
            place = (ref.file, ref.start_pos, max(due))
            yield Trouble(prewritten.source, Problem.of((database, table), error, place))
