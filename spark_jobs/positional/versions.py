"""Tables with history, written by position: the current version of each changed row ends, and new versions are added.

In:  a phase's staged changes (decode_changes), few enough for the driver.
Out: one Delta commit, data and applied_ts together, as by merge/version_sql.py.

Ended and current versions get separate files, unless they are few (joined.py). The statistics show a file without a
current version, so later windows don't search it for their keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.positional.joined import NewVersions, joined
from spark_jobs.positional.phase import Replacement, staged_rows, write_phase
from spark_jobs.positional.probe import Probe, key_table, probe_all
from spark_jobs.window.application import Application
from spark_jobs.window.made import TableToWrite
from tidegate import limits, tables
from tidegate.delta.table.state import TableState
from tidegate.merge.versions import OPEN, Int64s, Places, Spans, spans_of
from tidegate.upsert import few_rows
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import rows_at
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.keys.candidates import candidates
from tidegate.upsert.keys.hash import Hashes, key_hashes
from tidegate.upsert.keys.probe_file import Hits
from tidegate.upsert.target import StagePhase

_READ_UPTO: Final = "_tg_read_upto"
_OWN: Final = (tables.COMMIT_TS, tables.VALID_FROM, tables.VALID_TO, tables.IS_CURRENT, tables.FROM_KNOWN)


@dataclass(frozen=True, slots=True)
class _Changes:
    """n changes in silver's columns, with op, seq, ordinal and read_upto. codes: int64[n], equal for equal keys.
    words: of each code, ascending, its key's hash. begun: whether silver has nothing of its shard yet.
    """

    rows: pa.Table
    codes: Int64s
    words: Hashes
    begun: npt.NDArray[np.bool_]

    def numbers(self, name: str, at: Int64s | None = None) -> Int64s:
        """A column's values, of all rows or of some."""
        values: Int64s = self.rows.column(name).to_numpy().astype(np.int64, copy=False)
        return values if at is None else values[at]


@dataclass(frozen=True, slots=True)
class _Current:
    """Silver's current versions of changed keys. hits: the place of each. span: of each, the index of its key's first
    change in Spans. whole: all rows of small files, by path.
    """

    hits: list[Hits]
    rows: pa.Table
    span: Int64s
    whole: dict[str, pa.Table]


def write_versions(app: Application, work: TableToWrite, upto_ts: int, at_hand: KeyFilesAtHand) -> None:
    """Write a phase, if anything is staged for it. at_hand: staged changes in memory. Raises as write_upserts'
    outcomes.
    """

    def read(phase: StagePhase) -> _Changes:
        return _read(app, work, phase, at_hand)

    def replacement(changes: _Changes, phase: StagePhase, snapshot: TableState) -> Replacement:
        return _replacement(app, work, changes, phase, snapshot)

    write_phase(app, work, upto_ts, read, replacement, bytes_max=limits.VERSIONED_DECODED_BYTES_MAX)


def _read(app: Application, work: TableToWrite, phase: StagePhase, at_hand: KeyFilesAtHand) -> _Changes:
    parts, begun = [], list[npt.NDArray[np.bool_]]()
    for file, rows in staged_rows(app.lake, work.staged.files, phase, at_hand):
        begun.append(np.full(rows.num_rows, file.physical in work.entry.begun))
        read_upto = pa.array(np.full(rows.num_rows, file.read_upto_ts, np.int64))
        parts.append(rows.append_column(_READ_UPTO, read_upto))
    changes = pa.concat_tables(parts).combine_chunks()
    return _Changes(changes, *_numbered(_hashes(changes, phase.layout, app)), np.concatenate(begun))


def _hashes(rows: pa.Table, layout: FileLayout, app: Application) -> Hashes:
    hashes: Hashes = key_hashes([rows.column(name) for name in layout.key], app.key_seed)
    return hashes


def _numbered(hashes: Hashes) -> tuple[Int64s, Hashes]:
    """A number for each hash, equal for equal hashes; and the distinct hashes in the order of these
    numbers, ascending.
    """
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    ordered = hashes[order]
    begins = np.ones(len(ordered), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    codes = np.empty(len(ordered), np.int64)
    codes[order] = np.cumsum(begins) - 1
    return codes, ordered[begins]


def _codes(words: Hashes, hashes: Hashes) -> Int64s:
    """The number of each hash in words. words: ascending, and holds all of the hashes."""
    codes = np.searchsorted(words[:, 0], hashes[:, 0])
    while len(wrong := np.flatnonzero(words[codes, 1] != hashes[:, 1])):  # two with an equal first half
        codes[wrong] += 1
    return codes


def _replacement(
    app: Application, work: TableToWrite, changes: _Changes, phase: StagePhase, snapshot: TableState
) -> Replacement:
    applied = snapshot.transaction(tables.app_id(app.pipeline.pipeline, work.name))
    order = (changes.numbers(name) for name in (tables.COMMIT_TS, tables.SEQ, tables.ORDINAL, _READ_UPTO))
    again_ts = np.where(changes.begun, phase.after_ts, work.applied_again(phase.after_ts, applied))
    spans = spans_of(Places(changes.codes, *order), again_ts)
    spans = spans.without(_read_after_change(changes, spans, phase.layout))
    if app.pipeline.tables.one_version_per_window(work.entry.database, work.entry.table):
        spans = spans.last_of_each()
    current = _current(app, work, changes, spans, phase, snapshot)
    same = _read_again(changes, spans, current)
    ended, goes_on = _ended(changes, spans, current, same)
    again = np.zeros(len(spans.at), np.bool_)
    again[current.span[same]] = True
    is_open = spans.ends == OPEN
    past = [*_chosen(ended, ~goes_on), _made(changes, spans, phase.layout, ~again & ~is_open)]
    now = [*_chosen(ended, goes_on), _made(changes, spans, phase.layout, ~again & is_open)]
    path = tables.silver_path(work.entry.database, work.entry.table)
    new = NewVersions(past, now, current.hits, current.whole)
    return joined(app.lake, path, phase.layout, snapshot.files, new)


def _chosen(rows: pa.Table, wanted: npt.NDArray[np.bool_]) -> list[pa.Table]:
    """The wanted rows. All or none is the usual case, and copies nothing."""
    if wanted.all():
        return [rows]
    return [rows.filter(pa.array(wanted))] if wanted.any() else []


def _current(
    app: Application,
    work: TableToWrite,
    changes: _Changes,
    spans: Spans,
    phase: StagePhase,
    snapshot: TableState,
) -> _Current:
    """Find silver's current versions by the keys of the changes that count."""
    layout, path = phase.layout, tables.silver_path(work.entry.database, work.entry.table)
    none = _Current([], layout.schema.empty_table(), np.zeros(0, np.int64), {})
    first = np.flatnonzero(spans.first)
    if not len(first):
        return none
    keys = changes.rows.select(layout.key).take(pa.array(spans.at[first])).combine_chunks()
    files = [file for file in snapshot.files if file.nulls(tables.VALID_TO) != 0]
    table = key_table(keys, app.key_seed)
    probe = Probe(path, table, candidates(files, table))
    probe_all(app, [probe])
    if probe.error is not None:
        raise probe.error
    span_of = np.full(len(changes.words), -1, np.int64)
    span_of[changes.codes[spans.at[first]]] = first
    hits, parts, whole = list[Hits](), list[pa.Table](), dict[str, pa.Table]()
    for hit in probe.hits:
        # A file of a partitioned table isn't joined with others: its changed rows are enough.
        all_rows = None if layout.partition_columns else few_rows.whole(app.lake, path, hit.file, layout)
        if all_rows is not None:
            whole[hit.file.path] = all_rows
            rows = all_rows.take(pa.array(hit.fresh))
        else:
            rows = pa.concat_tables(rows_at(app.lake, path, hit.file, layout, hit.fresh))
        # Another writer may have left a row without its mark: a row that hasn't ended is current.
        marked = rows.column(tables.IS_CURRENT).combine_chunks().fill_null(False)
        is_current = pc.or_(marked, pc.is_null(rows.column(tables.VALID_TO).combine_chunks()))
        hits.append(replace(hit, fresh=hit.fresh[is_current.to_numpy(zero_copy_only=False)]))
        parts.append(rows.filter(is_current))
    if not parts:
        return none
    held = pa.concat_tables(parts).combine_chunks()
    codes = _codes(changes.words, _hashes(held, layout, app))
    return _Current(hits, held, span_of[codes], whole)


def _read_after_change(changes: _Changes, spans: Spans, layout: FileLayout) -> npt.NDArray[np.bool_]:
    """A bool per span: a snapshot read the row with the same values that the change before it in this
    phase left.
    """
    stays = changes.numbers(tables.OP, spans.at) != tables.OP_DELETE
    again: npt.NDArray[np.bool_] = ~spans.first & stays & (changes.numbers(_READ_UPTO, spans.at) > 0)
    again[1:] &= stays[:-1]
    which = np.flatnonzero(again)
    if len(which):
        read, before = (changes.rows.take(pa.array(spans.at[at])) for at in (which, which - 1))
        again[which] = _alike(read, before, layout.schema.names)
    return again


def _read_again(changes: _Changes, spans: Spans, current: _Current) -> npt.NDArray[np.bool_]:
    """A bool per current version: a snapshot read the same values, so the version continues. If another writer has
    added a second current version, both end.
    """
    at = spans.at[current.span]
    alone = np.bincount(current.span, minlength=1)[current.span] == 1
    reads: npt.NDArray[np.bool_] = (
        alone & (changes.numbers(_READ_UPTO, at) > 0) & (changes.numbers(tables.OP, at) != tables.OP_DELETE)
    )
    if not reads.any():
        return reads
    which = pa.array(np.flatnonzero(reads))
    silver, source = current.rows.take(which), changes.rows.take(pa.array(at)).take(which)
    same = np.zeros(len(at), np.bool_)
    same[np.flatnonzero(reads)[_alike(silver, source, current.rows.column_names)]] = True
    return same


def _alike(left: pa.Table, other: pa.Table, names: list[str]) -> npt.NDArray[np.bool_]:
    """Per row: whether the source's values are the same."""
    columns = (_equal(left.column(name), other.column(name)) for name in names if name not in _OWN)
    return reduce(np.logical_and, columns)


def _equal(left: pa.ChunkedArray, other: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Per row; NULL and NULL are equal, and so are NaN and NaN."""
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), other.to_pylist(), strict=True)
        return np.fromiter((one_side == its for one_side, its in pairs), np.bool_, len(left))
    equal = pc.fill_null(pc.equal(left, other), False)
    both = pc.and_(pc.is_null(left, nan_is_null=True), pc.is_null(other, nan_is_null=True))
    return np.asarray(pc.or_(equal, both).to_numpy(zero_copy_only=False), np.bool_)


def _ended(
    changes: _Changes, spans: Spans, current: _Current, same: npt.NDArray[np.bool_]
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Silver's current versions with their ends; and, per version, whether it continues."""
    stamps = changes.numbers(tables.COMMIT_TS, spans.at[current.span])
    ends = np.where(same, spans.ends[current.span], stamps)
    before = pc.fill_null(current.rows.column(tables.COMMIT_TS), 0)  # none by another writer: 0, and stays an integer
    seen = np.where(same, spans.seen[current.span], before.to_numpy())
    kept = current.rows.column(tables.VALID_FROM), current.rows.column(tables.FROM_KNOWN)
    return _with(current.rows, pa.array(seen), kept[0], ends, kept[1]), ends == OPEN


def _made(changes: _Changes, spans: Spans, layout: FileLayout, wanted: npt.NDArray[np.bool_]) -> pa.Table:
    """New versions, in the order of the log. wanted: bool per change in spans; a delete never makes a version."""
    which = np.flatnonzero(wanted & (changes.numbers(tables.OP, spans.at) != tables.OP_DELETE))
    which = which[np.argsort(spans.at[which])]
    rows = changes.rows.take(pa.array(spans.at[which]))
    begins, known = rows.column(tables.COMMIT_TS), pc.equal(rows.column(_READ_UPTO), 0)
    return _with(rows.select(layout.schema.names), pa.array(spans.seen[which]), begins, spans.ends[which], known)


def _with(rows: pa.Table, stamps: Any, begins: Any, ends: Int64s, known: Any) -> pa.Table:
    is_open = ends == OPEN
    values = (stamps, begins, pa.array(ends, mask=is_open), pa.array(is_open), known)
    for name, column in zip(_OWN, values, strict=True):
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows
