"""The rows of control/schema_history that coming windows need, however many rows there are.

In:  a lake, and applied_ts per table.
Out: per source, the versions in force then or later, and the facts about all other rows for the
     replay. On demand, tables that are gone since, for windows below the cut.

No window needs a table's old versions once silver is past them. Names, numbers and commit_ts of all
rows are read as columns (some 40 bytes per row). Columns, keys and statements are nearly all of the
bytes: they are read of needed rows only, with a few thousand rows of a file in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.commit_ts import FOREVER
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import layout_of
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import BASELINE, UNFOLLOWED
from tidegate.tables import SCHEMA_HISTORY

_NAMES: Final = ("source", "database", "table")
_ENCODED: Final = (*_NAMES, "kind", "status")
_LIGHT: Final = (*_NAMES, "version", "commit_ts", "kind", "status", "last_column_id")
_BATCH_ROWS: Final = 4096
_ALL_NULL: Final[dict[str, Any]] = dict.fromkeys(SCHEMA_HISTORY.schema.names)  # an older file lacks later columns

# (source, database, table) -> a commit_ts: nobody asks for versions that ended at or below it
FloorOf = Callable[[str, str, str], int]
Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class SourceRows:
    """rows: the needed rows of control/schema_history. next_id: larger than every column id so far.

    floor: the newest baseline's commit_ts, 0 without one. standing: existing table -> since when it
    exists without a DROP.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    next_id: int = 1
    floor: int = 0
    standing: dict[tuple[str, str], int] = field(default_factory=dict)


def needed_rows(lake: LakeFiles, sources: Collection[str], floor_of: FloorOf) -> dict[str, SourceRows]:
    """The input of each source's SchemaHistory. Raises LakeUnavailable."""
    by_source = {source: SourceRows() for source in sources}
    files = _files(lake)
    parts = [file.light() for file in files]
    if not sum(part.num_rows for part in parts):
        return by_source
    light = pa.concat_tables(parts, promote_options="default").unify_dictionaries().combine_chunks()
    _note_bounds(light, by_source)
    ordered = _in_order(light)
    _note_standing(light, ordered, by_source)
    wanted = np.sort(_needed(light, ordered, by_source.keys(), floor_of))
    for row in _numbered(files, parts, wanted):
        by_source[row["source"]].rows.append(row)
    return by_source


def ended(lake: LakeFiles, source: str, after_ts: int) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Tables of a source that went above after_ts, whatever came there later -> for each time
    (commit_ts of its coming, commit_ts of its going). Raises LakeUnavailable.
    """
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    parts = [file.light() for file in _files(lake)]
    if not sum(part.num_rows for part in parts):
        return spans
    light = pa.concat_tables(parts, promote_options="default").unify_dictionaries().combine_chunks()
    ordered = _in_order(light)
    commit_ts, gone = light["commit_ts"].to_numpy()[ordered.order], _gone(light)[ordered.order]
    begins = np.ones(len(gone), np.bool_)  # rows at which a table begins to exist
    begins[1:] = gone[:-1] | (ordered.table[1:] != ordered.table[:-1])
    begun = np.maximum.accumulate(np.where(begins, np.arange(len(gone)), 0))
    for at in np.flatnonzero(gone & (commit_ts > after_ts) & ~begins).tolist():
        of, *name = ordered.names[ordered.table[at]]
        if of == source and name[1]:
            spans.setdefault((name[0], name[1]), []).append((int(commit_ts[begun[at]]), int(commit_ts[at])))
    return spans


def table_rows(lake: LakeFiles, database: str, table: str) -> list[dict[str, Any]]:
    """Every version of one table, in order of (source, commit_ts, version). Raises LakeUnavailable."""
    versions: list[dict[str, Any]] = []
    for file in _files(lake):
        part = file.light().select(["database", "table"])
        wanted = pc.and_(pc.equal(part["database"], database), pc.equal(part["table"], table))
        versions += file.rows(np.flatnonzero(wanted.to_numpy()).astype(np.int64))
    return sorted(versions, key=lambda row: (row["source"], row["commit_ts"], row["version"]))


def newest_rows(
    lake: LakeFiles, kinds: Collection[str], count: int
) -> list[tuple[dict[str, Any] | None, dict[str, Any]]]:
    """The newest versions of these kinds, the newest first, each with its table's version before
    it. Raises LakeUnavailable.
    """
    files = _files(lake)
    parts = [file.light() for file in files]
    if not sum(part.num_rows for part in parts):
        return []
    light = pa.concat_tables(parts, promote_options="default").unify_dictionaries().combine_chunks()
    ordered = _in_order(light)
    codes, known = _codes(light, "kind")
    is_kind = np.isin(codes, [number for number, kind in enumerate(known) if kind in kinds])[ordered.order]
    places = np.flatnonzero(is_kind)
    newest = np.argsort(-light["commit_ts"].to_numpy()[ordered.order][places], kind="stable")[:count]
    pairs = list[tuple[int, int]]()
    for place in places[newest].tolist():
        follows = place > 0 and ordered.table[place - 1] == ordered.table[place]
        pairs.append((int(ordered.order[place - 1]) if follows else -1, int(ordered.order[place])))
    wanted = np.unique(np.array([number for pair in pairs for number in pair if number >= 0], np.int64))
    rows = dict(zip(wanted.tolist(), _numbered(files, parts, wanted), strict=True))
    return [(rows.get(before), rows[at]) for before, at in pairs]


def _numbered(files: Sequence[_File], parts: Sequence[pa.Table], wanted: Numbers) -> Iterator[dict[str, Any]]:
    """Rows by their numbers, counted over all files, in ascending order. parts: light() of each
    file.
    """
    start = 0
    for file, part in zip(files, parts, strict=True):
        end = start + part.num_rows
        yield from file.rows(wanted[(wanted >= start) & (wanted < end)] - start)
        start = end


def known_tables(lake: LakeFiles) -> set[tuple[str | None, ...]]:
    """Source, database and table of every table that has ever had a version. Raises LakeUnavailable."""
    known: set[tuple[str | None, ...]] = set()
    for file in _files(lake):
        names = file.light().select(_NAMES).group_by(_NAMES).aggregate([])
        known.update(zip(*(names[name].to_pylist() for name in _NAMES), strict=True))
    return known


@dataclass(frozen=True, slots=True)
class _File:
    """One file of the table, read as it is. older: of a table with another layout, all its rows,
    converted.
    """

    lake: LakeFiles
    path: str
    older: Callable[[], pa.Table] | None = None

    def light(self) -> pa.Table:
        """The small columns; names as numbers of a dictionary."""
        if self.older is not None:
            rows = self.older().select(_LIGHT)
            for at, name in enumerate(_LIGHT):
                if name in _ENCODED:
                    rows = rows.set_column(at, name, rows[name].dictionary_encode())
            return rows
        with self.lake.open(self.path) as file:
            parquet = pq.ParquetFile(file, read_dictionary=list(_ENCODED))
            return parquet.read(columns=list(_LIGHT), use_threads=False).select(_LIGHT)

    def rows(self, wanted: Numbers) -> Iterator[dict[str, Any]]:
        """Rows by their ascending numbers."""
        if not len(wanted):
            return
        if self.older is not None:
            yield from self.older().take(pa.array(wanted)).to_pylist()
            return
        with self.lake.open(self.path) as file:
            parquet = pq.ParquetFile(file)
            start = 0
            for group in range(parquet.num_row_groups):
                end = start + parquet.metadata.row_group(group).num_rows
                if np.searchsorted(wanted, start) < np.searchsorted(wanted, end):
                    for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=[group], use_threads=False):
                        low, high = np.searchsorted(wanted, [start, start + batch.num_rows])
                        for row in batch.take(pa.array(wanted[low:high] - start)).to_pylist():
                            yield row if len(row) == len(_ALL_NULL) else _ALL_NULL | row
                        start += batch.num_rows
                start = end


def _files(lake: LakeFiles) -> list[_File]:
    """The files of the newest state, in order of their paths."""
    state = control.load(lake, SCHEMA_HISTORY)
    if state is None:
        return []
    is_older = bool(layout_of(state, SCHEMA_HISTORY).steps)
    made = []
    for file in sorted(state.files, key=lambda file: file.local_path):
        converted = partial(control.rows_of, lake, SCHEMA_HISTORY, state, files=[file])
        made.append(_File(lake, f"{SCHEMA_HISTORY.path}/{file.local_path}", converted if is_older else None))
    return made


def _codes(light: pa.Table, name: str) -> tuple[Numbers, list[str]]:
    """A number per row, and the text of each number."""
    column = light[name].chunk(0)
    return column.indices.to_numpy().astype(np.int64), column.dictionary.to_pylist()


def _note_bounds(light: pa.Table, by_source: dict[str, SourceRows]) -> None:
    """next_id and floor of each source, over all rows."""
    codes, sources = _codes(light, "source")
    kinds, kind_names = _codes(light, "kind")
    last_ids = light["last_column_id"].to_numpy()
    commit_ts = light["commit_ts"].to_numpy()
    baselines = kinds == (kind_names.index(BASELINE) if BASELINE in kind_names else -1)
    for code, source in enumerate(sources):
        if source in by_source:
            own_rows = codes == code
            by_source[source].next_id = int(last_ids[own_rows].max(initial=0)) + 1
            by_source[source].floor = int(commit_ts[own_rows & baselines].max(initial=0))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """order: numbers of the rows, ordered by table, commit_ts and version. table: the table's
    number, in this order. names: of each table: source, database, table.
    """

    order: Numbers
    table: Numbers
    names: list[tuple[str, str, str]]


def _in_order(light: pa.Table) -> _Ordered:
    texts = [_codes(light, name) for name in _NAMES]
    combined = np.zeros(light.num_rows, np.int64)
    for codes, known in texts:
        combined = combined * len(known) + codes
    _, first, table = np.unique(combined, return_index=True, return_inverse=True)
    sources, databases, tables = ([known[code] for code in codes[first].tolist()] for codes, known in texts)
    order = np.lexsort((light["version"].to_numpy(), light["commit_ts"].to_numpy(), table))
    return _Ordered(order, table[order], list(zip(sources, databases, tables, strict=True)))


def _note_standing(light: pa.Table, ordered: _Ordered, by_source: dict[str, SourceRows]) -> None:
    """Since when each table exists: from the row after its last row that says it is gone, or no
    table.
    """
    commit_ts = light["commit_ts"].to_numpy()[ordered.order]
    starts = np.searchsorted(ordered.table, np.arange(len(ordered.names)))
    until = np.append(starts[1:], light.num_rows)
    gone = np.flatnonzero(_gone(light)[ordered.order])
    np.maximum.at(starts, ordered.table[gone], gone + 1)
    for number in np.flatnonzero(starts < until).tolist():
        source, *name = ordered.names[number]
        if source in by_source and name[1]:
            by_source[source].standing[name[0], name[1]] = int(commit_ts[starts[number]])


def _gone(light: pa.Table) -> npt.NDArray[np.bool_]:
    """Rows that say that a table is gone, or may be no table."""
    gone = np.zeros(light.num_rows, np.bool_)
    for column, value in (("status", VersionStatus.DROPPED), ("kind", UNFOLLOWED)):
        codes, known = _codes(light, column)
        if value in known:
            gone |= codes == known.index(value)
    return gone


def _needed(light: pa.Table, ordered: _Ordered, sources: Collection[str], floor_of: FloorOf) -> Numbers:
    """Numbers of the rows in force at some commit_ts above their table's floor."""
    order, table = ordered.order, ordered.table
    floors = np.array([floor_of(*name) if name[0] in sources else FOREVER for name in ordered.names], np.int64)
    commit_ts = light["commit_ts"].to_numpy()
    until = np.full(len(order), FOREVER, np.int64)
    follows = table[1:] == table[:-1]
    until[:-1][follows] = commit_ts[order][1:][follows]
    version = light["version"].to_numpy()[order]
    # A commit whose answer was lost for minutes may leave a row twice: it counts once.
    until[:-1][follows & (version[1:] == version[:-1])] = 0
    ours = np.array([name[0] in sources for name in ordered.names], np.bool_)[table]
    return np.asarray(order[ours & (until > floors[table])], np.int64)
