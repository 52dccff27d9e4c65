"""Many small files of bronze become few, with the same rows in the same order.

In:  BronzeFiles; how large files may become, and how much one run may rewrite.
Out: runs of neighbours to be packed (pure); one new file per run, and its commit.

A packed file holds exactly the rows of its originals, in order of seq, in row groups as small as
capture's own. The commit says dataChange false and touches no transaction version, so capture
doesn't notice it. The replaced files stay on disk until VACUUM: a job that planned with them reads
them to the end. A kill before the commit leaves a file no log names; after it, nothing is left to
do.

At most three row groups are in memory: one being read, one being filled, one being written.

delta-rs's optimize.compact isn't used. It takes 0.6 of the time, but it reversed the order of 4,041
files, made one row group of them, and packs every small file, also the newest.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import LakeUnavailable, StreamCorrupt
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.file import (
    ROW_GROUP_BYTES,
    STATISTICS,
    added,
    as_written,
    created,
    opened,
    reading,
    statistics_of,
)
from tidegate.lake.bronze.log import BronzeFile, BronzeLog
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_GROUP_ROWS_MAX, BRONZE_RUN_FILES_MAX, BRONZE_RUN_FILES_MIN
from tidegate.segments.crc32c import crc32c
from tidegate.tables import SEGMENTS


@dataclass(frozen=True, slots=True)
class Limits:
    """file_bytes: the size to pack up to. run_bytes: how much one run of maintain rewrites at most.

    young_ms: files written at or after this time (Unix milliseconds) are left alone.
    """

    file_bytes: int
    run_bytes: int
    young_ms: int


def choose_runs(files: Mapping[str, Sequence[BronzeFile]], limits: Limits) -> list[list[BronzeFile]]:
    """Runs of neighbouring small files of one source and day that are worth packing, the oldest
    first.

    files: per source, in order of seq. A small file has less than half of file_bytes. A run is
    worth packing if it has many files, or fills half of file_bytes: then it isn't packed again, so
    a segment is rewritten a few times in its life, not daily.
    """
    runs: list[list[BronzeFile]] = []
    for own_files in files.values():
        run: list[BronzeFile] = []
        for file in own_files[:-1]:  # not the newest: capture reads it when it starts
            if run and not _goes_on(run, file, limits):
                runs.append(run)
                run = []
            if file.bytes < limits.file_bytes // 2 and file.modified_ms < limits.young_ms:
                run.append(file)
        runs.append(run)
    taken = 0
    chosen: list[list[BronzeFile]] = []
    for run in sorted((run for run in runs if _worth(run, limits)), key=lambda run: run[0].modified_ms):
        taken += sum(file.bytes for file in run)
        if taken > limits.run_bytes and chosen:
            break
        chosen.append(run)
    return chosen


def _goes_on(run: Sequence[BronzeFile], file: BronzeFile, limits: Limits) -> bool:
    small = file.bytes < limits.file_bytes // 2 and file.modified_ms < limits.young_ms
    fits = sum(member.bytes for member in run) + file.bytes <= limits.file_bytes and len(run) < BRONZE_RUN_FILES_MAX
    return small and fits and file.day == run[-1].day and file.min_seq == run[-1].max_seq + 1


def _worth(run: Sequence[BronzeFile], limits: Limits) -> bool:
    fills = sum(file.bytes for file in run) >= limits.file_bytes // 2
    return len(run) >= BRONZE_RUN_FILES_MIN or (len(run) > 1 and fills)


def compact_run(log: BronzeLog, run: Sequence[BronzeFile], compression: str = "zstd") -> dict[str, Any]:
    """Pack one run and commit; the new file's `add` body. compression: as write_file takes it.

    Raises CommitConflict, LakeUnavailable, StreamCorrupt (nothing is committed then).
    """
    packed = pack(log.lake, run, compression)
    failpoint("bronze_before_compaction")
    log.commit(run, [packed], data_change=False)
    failpoint("bronze_after_compaction")
    return packed


def pack(lake: LakeFiles, run: Sequence[BronzeFile], compression: str) -> dict[str, Any]:
    """Write the rows of a run into one new file; its `add` body.

    Raises StreamCorrupt if they contradict the log.
    """
    first = run[0]
    path = f"source={first.source}/day={first.day.isoformat()}/{first.min_seq:012d}-{uuid.uuid4().hex}.parquet"
    bounds: dict[str, tuple[int, int]] = {}
    rows = 0
    try:
        with created(lake, f"{SEGMENTS.path}/{path}") as sink:
            with opened(sink, compression) as writer:
                for group in _groups(_pieces(lake, run)):
                    writer.write_table(group, row_group_size=group.num_rows)
                    widen(bounds, group)
                    rows += group.num_rows
                    failpoint("bronze_in_compaction")
            size = sink.tell()
    except (OSError, pa.ArrowException) as error:
        raise LakeUnavailable(f"can't be packed: {error}", where=lake.uri(SEGMENTS.path)) from error
    return added(path, size, first.partition, statistics_of(rows, bounds))


def _pieces(lake: LakeFiles, run: Sequence[BronzeFile]) -> Iterator[pa.Table]:
    """The run's rows in order of seq, verified, a row group of a file at a time."""
    wanted = run[0].min_seq
    for file in run:
        with reading(lake, file.path) as parquet:
            for number in range(parquet.num_row_groups):
                rows = as_written(parquet.read_row_group(number, use_threads=False))
                wanted = _verified(rows, file, wanted)
                yield rows
    if wanted != run[-1].max_seq + 1:
        raise _not_as_logged(run[-1], f"ends at seq {wanted - 1}, the log says {run[-1].max_seq}")


def _verified(rows: pa.Table, file: BronzeFile, wanted: int) -> int:
    """Check order and bytes of a row group from seq `wanted` on; the seq after it."""
    for seq, payload, crc in zip(rows["seq"], rows["payload"], rows["payload_crc32c"], strict=True):
        if seq.as_py() != wanted:
            raise _not_as_logged(file, f"has seq {seq.as_py()} where {wanted} is due")
        if crc32c(payload.as_buffer()) != crc.as_py():
            raise _not_as_logged(file, f"payload of segment {wanted} isn't what was captured")
        wanted += 1
    return wanted


def _not_as_logged(file: BronzeFile, what: str) -> StreamCorrupt:
    return StreamCorrupt(f"{file.path} {what}", where=file.source, remedy="restore bronze's file from a copy")


def _groups(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in row groups of at most ROW_GROUP_BYTES of payload (or one segment) and BRONZE_GROUP_ROWS_MAX."""
    held: list[pa.Table] = []
    rows = size = 0
    for piece in pieces:
        for part in _cut(piece):
            more = part["payload"].nbytes
            if held and (rows + part.num_rows > BRONZE_GROUP_ROWS_MAX or size + more > ROW_GROUP_BYTES):
                yield pa.concat_tables(held)
                held, rows, size = [], 0, 0
            held.append(part)
            rows += part.num_rows
            size += more
    if held:
        yield pa.concat_tables(held)


def _cut(piece: pa.Table) -> Iterator[pa.Table]:
    for at in range(0, piece.num_rows, BRONZE_GROUP_ROWS_MAX):
        yield piece.slice(at, BRONZE_GROUP_ROWS_MAX)


def widen(bounds: dict[str, tuple[int, int]], group: pa.Table) -> None:
    """Take the statistics of a row group of bronze/segments into those of its file."""
    for name in STATISTICS:
        extremes = pc.min_max(group[name]).as_py()
        low, high = bounds.get(name, (extremes["min"], extremes["max"]))
        bounds[name] = (min(low, extremes["min"]), max(high, extremes["max"]))
