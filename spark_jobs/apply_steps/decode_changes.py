"""Raw bytes -> typed columns, per table, in parallel.

In:  the window's segments and chunks (as places in bronze: payload bytes never pass through the
     JVM) and the table versions in force.
Out: staged files, net of changes per key within a task, in the layout of the table's writer:
     Parquet files of changes per table version for MERGE, rows in silver's folder and key files for
     the positional writer (spark_jobs/positional/staging.py); problems; the ledger.

A worker reads its own row groups with pyarrow, decodes them with the compiled kernel, keeps the
last change per key of each table before anything is shuffled, and writes the rest. A problem holds
its table only. If schema_history is wrong and the event has the right columns, schema_history is
healed, and the table catches up. Windows of up to apply.driver_decode_bytes are decoded in the
driver by the same function, in a few threads: the kernels, Arrow and Parquet don't hold Python's
lock, and no worker has to start.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.positional.changes_stage import ChangesStage, InDriver
from spark_jobs.window.application import Application
from spark_jobs.window.density import ChangeDensity, DensityBelow, FollowedBelow, FollowedDensity, ImagesBelow
from spark_jobs.window.life.healing import heal_tables
from spark_jobs.window.made import StagedChanges, StagedTable
from spark_jobs.window.pairing.prewritten import Run, prewritten_changes
from spark_jobs.window.plan import MergeOnce, TablePlan
from spark_jobs.window.shape.decode_plan import Decoded, DecodePlan, plan_decode
from spark_jobs.window.standing.standings import hold, met_in, send_below
from spark_jobs.window.window import (
    Accounted,
    DamagedChunk,
    DamagedWaves,
    PrewrittenSegment,
    StagedFile,
    Trouble,
    WaveChunk,
    Window,
)  # fmt: skip
from tidegate import limits
from tidegate.errors import StreamCorrupt, Terminal, Transient, UnsupportedValue, unexpected
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.index import segments_or_damage
from tidegate.limits import DRIVER_THREADS_MAX
from tidegate.schema.model.columns import was_there
from tidegate.segment_kinds import changes_of
from tidegate.segments.result import NOTHING_KNOWN, CommitSpan, Ledger, Problem, TableChanges
from tidegate.segments.segment import Segment, may_name
from tidegate.segments.window import SegmentRef, split_evenly
from tidegate.snapshot.chunks import chunk as snapshot_chunk
from tidegate.snapshot.chunks.chunk_table import ChunkFiles
from tidegate.standing.causes import cause_of
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place
from tidegate.table_names import Physical
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.target import NotStaged, StagedUpsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OUT = "found binary"

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lacks:
    """Rows of a table lack values that are asked for (TableChanges.lacks)."""

    table: Physical


Found = StagedFile | StagedUpsert | NotStaged | Trouble | Accounted | DamagedChunk | Lacks | ImagesBelow


def decode_changes(
    app: Application, window: Window, later: Sequence[PrewrittenSegment], plans: Mapping[str, TablePlan]
) -> Decoded:
    """Stage the window's changes, and account for its bytes. If a table's changes can't be read, it
    is held.

    later: prewrites committed by the window.
    """
    plan = plan_decode(app, window, later, plans)
    tables, ledger, here = dict[str, StagedTable](), list[Accounted](), InDriver(KeyFilesAtHand(), app.pool)
    lacking = set[Physical]()
    decoded = Decoded(plan, StagedChanges(tables, here.key_files), ledger, lacking)
    whole = [ref for ref in window.refs if ref.whole]  # of the others each row waits for its pair
    refs = [ref for ref in whole if plan.windows.get(ref.source) or plan.known[ref.source].held]
    chunks = [chunk for entry in window.tables.values() for chunk in entry.chunks]
    if not refs and not chunks and not later:
        return decoded
    payloads = (*(ref.payload_bytes for ref in refs), *(segment.ref.payload_bytes for segment in later))
    payload_bytes = sum(payloads) + sum(chunk.ref.chunk.payload_bytes for chunk in chunks)
    if plan.stays_here or _fits_driver(app, payload_bytes):
        outcomes = chain(
            in_driver(refs, plan, here) if refs else (),
            decode_prewritten(later, plan, here),
            decode_chunks(chunks, plan, here),
        )
    else:
        outcomes = chain(in_workers(app.spark, refs, plan, chunks, later))
    troubles, below = list[Trouble | NotStaged](), ImagesBelow()
    for outcome in outcomes:
        match outcome:
            case Accounted():
                ledger.append(outcome)
            case StagedUpsert():
                tables.setdefault(outcome.name, StagedTable()).take(outcome)
            case StagedFile():
                name = app.names.logical_name(outcome.database, outcome.table)
                tables.setdefault(name, StagedTable()).take(outcome)
            case Lacks():
                lacking.add(outcome.table)
            case ImagesBelow():
                below += outcome
            case DamagedChunk():
                _send_below(app, window, outcome)
            case _:
                troubles.append(outcome)
    app.memory(ChangeDensity if window.main else DensityBelow).note(payload_bytes, _changes(app, tables))
    if plan.below:
        app.memory(FollowedDensity if window.main else FollowedBelow).note(payload_bytes, below.changes)
    _hold(app, window, troubles)
    failpoint("apply_after_decode")
    if any(table.upserts for table in tables.values()):
        failpoint("apply_after_stage")
    return decoded


def _changes(app: Application, tables: Mapping[str, StagedTable]) -> int:
    """Number of changes whose keys the positional writer holds in memory, or would hold if
    MergeOnce didn't send them to MERGE.
    """
    once, changes = app.memory(MergeOnce), 0
    for name, table in tables.items():
        changes += sum(upsert.changes for upsert in table.upserts)
        if name in once:
            changes += sum(file.rows for file in table.files)
    return changes


def _fits_driver(app: Application, payload_bytes: int) -> bool:
    """Whether the driver decodes this window. Spark's settings are read only if they decide."""
    given = app.pipeline.apply.driver_decode_bytes
    if given is not None:
        return payload_bytes <= given
    if payload_bytes <= limits.DRIVER_DECODE_CLUSTER_BYTES:
        return True
    return payload_bytes <= limits.DRIVER_DECODE_LOCAL_BYTES and app.background.is_local()


def in_driver(refs: Sequence[SegmentRef], plan: DecodePlan, here: InDriver) -> Iterator[Found]:
    """decode_refs() in several threads, as many as the work needs. Together they hold no more rows than one worker."""
    work = sum(ref.payload_bytes for ref in refs) // limits.DRIVER_DECODE_THREAD_BYTES
    runs = split_evenly(refs, max(1, min(work, os.cpu_count() or 1, DRIVER_THREADS_MAX)))
    if len(runs) == 1:
        yield from decode_refs(refs, plan, here)
        return
    share = limits.STAGE_BYTES // len(runs)

    def decoded(run: list[SegmentRef]) -> list[Found]:
        return list(decode_refs(run, plan, here, share))

    with ThreadPoolExecutor(len(runs), thread_name_prefix="decode") as pool:
        for outcomes in pool.map(decoded, runs):
            yield from outcomes


def decode_refs(
    refs: Iterable[SegmentRef],
    plan: DecodePlan,
    here: InDriver | None = None,
    stage_bytes: int = limits.STAGE_BYTES,
) -> Iterator[Found]:
    """Decode segments in order; yields staged files, and problems.

    here: None in a worker. stage_bytes: decoded rows held before they are written out.
    """
    if here is None:
        plan.lake.make_folder(plan.folder)
    stage = ChangesStage(plan, here, stage_bytes)
    for ref, segment in segments_or_damage(plan.lake, refs):
        if isinstance(segment, StreamCorrupt):
            yield from _damaged(ref, plan, segment)
            continue
        try:
            yield from _decoded(ref, segment, plan, stage)
        except (OSError, MemoryError, Transient):
            raise
        except Terminal as error:
            yield from _damaged(ref, plan, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one segment is that segment's
            yield from _damaged(ref, plan, unexpected(error))
        failpoint("apply_in_decode")
    yield from stage.flush()
    yield stage.below


def decode_prewritten(
    segments: Sequence[PrewrittenSegment], plan: DecodePlan, here: InDriver | None = None
) -> Iterator[Found]:
    """Rows of prewrites committed by the window, as decode_refs gives changes.

    Never in one stage with the log's changes, as decode_chunks.
    """
    if here is None:
        plan.lake.make_folder(plan.folder)
    stage = ChangesStage(plan, here, limits.STAGE_BYTES)
    for change in prewritten_changes(segments, plan):
        if not isinstance(change, Run):
            yield change
            continue
        for source, changes in change.changes:
            yield from _added(stage, source, changes)
        yield from stage.flush()
    yield stage.below


def decode_chunks(chunks: Sequence[WaveChunk], plan: DecodePlan, here: InDriver | None = None) -> Iterator[Found]:
    """Rows of chunks, as decode_refs gives changes; a chunk other than the landed one as
    DamagedChunk.

    Never in one stage with the log's changes. A stage keeps the last change of a key, so a change
    of the log would always win over a chunk's row.
    """
    if here is None:
        plan.lake.make_folder(plan.folder)
    stage, has_versions = ChangesStage(plan, here, limits.STAGE_BYTES), plan.has_versions
    with ChunkFiles(plan.lake) as files:
        for chunk in sorted(chunks, key=lambda by: by.low_ts):
            source, database, table = chunk.physical
            if has_versions and chunk.read_upto_ts != stage.read_upto_ts:
                yield from stage.flush()
                stage.read_upto_ts = chunk.read_upto_ts
            name = (database, table)
            out = plan.left_out.get((source, name, chunk.version), frozenset())
            try:
                names = plan.aliases.get((source, name, chunk.version), {})
                batches = snapshot_chunk.changes_of(files.read(chunk.ref), chunk.low_ts, out, names)
            except UnsupportedValue as error:
                yield Trouble(source, Problem.of(name, error, ("", 0, chunk.low_ts)))
                continue
            except StreamCorrupt as error:
                yield DamagedChunk(chunk.ref.chunk.low_token, chunk.physical, str(error))
                continue
            for batch in batches:
                yield from stage.add(source, TableChanges(database, table, chunk.version, batch))
            failpoint("apply_in_chunks")
    yield from stage.flush()
    yield stage.below


def _added(stage: ChangesStage, source: str, changes: TableChanges) -> Iterator[Found]:
    if changes.lacks:
        yield Lacks(Physical(source, changes.database, changes.table))
    yield from stage.add(source, changes)


def _decoded(ref: SegmentRef, segment: Segment, plan: DecodePlan, stage: ChangesStage) -> Iterator[Found]:
    """The results of an undamaged segment. Raises StreamCorrupt, UnknownEvent."""
    ledger = Ledger(payload_bytes=0)
    known = replace(plan.known.get(ref.source, NOTHING_KNOWN), rolled_back_ts=ref.rolled_back_ts)
    versions = plan.versions.get(ref.source, {})
    for done in changes_of(segment, versions, _windows_of(ref, plan), known):
        for changes in done.changes:
            yield from _added(stage, ref.source, changes)
        for problem in done.problems:
            yield Trouble(ref.source, problem)
        ledger.add(done.ledger)
    yield Accounted(ref.source, ref.seq, ledger)


def _windows_of(ref: SegmentRef, plan: DecodePlan) -> dict[Name, CommitSpan]:
    """An unfinished transaction, which the stream gave up, lies outside of every window."""
    windows = plan.windows.get(ref.source, {})
    if not ref.given_up_ts:
        return windows
    return {name: replace(window, upto_ts=ref.upto(window.upto_ts)) for name, window in windows.items()}


def _damaged(ref: SegmentRef, plan: DecodePlan, error: Terminal) -> Iterator[Found]:
    """A problem for each table that the damaged segment may have changed in its window. All bytes
    of the segment are quarantined.
    """
    known = plan.known.get(ref.source, NOTHING_KNOWN)
    judged = known.judged.get((ref.file, ref.start_pos, ref.max_commit_ts))
    for (database, table), wanted in plan.windows.get(ref.source, {}).items():
        named = may_name(ref.tables, (database, table))
        if judged is not None:
            named = (database, table) in judged
        versions = plan.versions.get(ref.source, {}).get((database, table), ())
        existed = was_there(versions, ref.min_commit_ts) or was_there(versions, ref.max_commit_ts)
        if named and existed and ref.overlaps(wanted.after_ts, wanted.upto_ts):
            place = (ref.file, ref.start_pos, ref.max_commit_ts)
            yield Trouble(ref.source, Problem.of((database, table), error, place))
    ledger = Ledger(payload_bytes=ref.payload_bytes, quarantined_bytes=ref.payload_bytes)
    yield Accounted(ref.source, ref.seq, ledger)


def in_workers(
    spark: SparkSession,
    refs: Sequence[SegmentRef],
    plan: DecodePlan,
    chunks: Sequence[WaveChunk] = (),
    later: Sequence[PrewrittenSegment] = (),
) -> Iterator[Found]:
    """decode_refs() in a Spark job, a task per run of segments or chunks; key files go to the staging folder."""
    tasks = 3 * spark.sparkContext.defaultParallelism
    packed = [pickle.dumps((decode_refs, run)) for run in split_evenly(refs, tasks)]
    packed += [pickle.dumps((decode_chunks, chunks[at::tasks])) for at in range(min(tasks, len(chunks)))]
    packed += [pickle.dumps((decode_prewritten, later[at::tasks])) for at in range(min(tasks, len(later)))]
    plan_packed = pickle.dumps(plan)
    plan.lake.make_folder(plan.folder)  # what workers leave in it is removed by this process

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        own_work = [pickle.loads(packed[number]) for number in numbers]  # noqa: S301  (our own driver's bytes)
        known = pickle.loads(plan_packed)  # noqa: S301
        for outcome in (made for work, items in own_work for made in work(items, known)):
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(outcome)])], names=["found"])

    # One task per run: a range of n numbers in n partitions has one in each.
    for row in spark.range(0, len(packed), 1, len(packed)).mapInArrow(run, _OUT).collect():
        yield pickle.loads(row.found)  # noqa: S301


def _send_below(app: Application, window: Window, chunk: DamagedChunk) -> None:
    app.memory(DamagedWaves)[chunk.token, chunk.physical] = chunk.reason
    what = f"{chunk.physical.shown}: it catches up without a wave that can't be taken: {chunk.reason}"
    send_below(app, window, app.names.logical_name(*chunk.physical.pair), what)


def _hold(app: Application, window: Window, troubles: Sequence[Trouble | NotStaged]) -> None:
    """Their tables wait, but for those mended by the log itself."""
    doubts = heal_tables(app, window, (trouble for trouble in troubles if isinstance(trouble, Trouble)))
    for trouble in troubles:
        if isinstance(trouble, NotStaged):
            cause, place = cause_of(trouble.error), met_in(app, window, trouble.name)
            hold(
                app,
                window,
                trouble.name,
                Refused(cause, trouble.message, place, needs=trouble.needs, fault=trouble.error),
            )
            continue
        problem = trouble.problem
        name = app.names.logical_name(problem.database, problem.table)
        doubt = f" (not healed from the log: {doubts[name]})" if problem.table_map and name in doubts else ""
        place = Place(trouble.source, problem.database, problem.table, problem.file, problem.pos, problem.commit_ts)
        line, cause = problem.message + doubt, cause_of(problem.error)
        hold(app, window, name, Refused(cause, line, place, needs=problem.needs, fault=problem.error))
