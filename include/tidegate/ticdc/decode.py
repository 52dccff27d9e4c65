"""A segment's changes, table by table: lines in, Arrow batches out.

In:  a segment of kind ticdc, the table versions of schema_history, the windows of commit time that
     are wanted.
Out: one DecodedSegment. A table that can't be decoded becomes a Problem and its changes are left
     out; others go on.

Order: a table's rows may come from several files, of partitions or of several writers, each ordered
by itself. They are sorted by commit_ts, deletes first. A transaction changes a key once, or deletes
its row and then inserts it; TiCDC splits an UPDATE of a key into these two. A line that TiCDC
writes again after a restart equals the first, so its place doesn't matter for a table with a key. A
table without one is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate import tables
from tidegate.errors import SchemaMismatch, Terminal, UnsupportedValue, unexpected
from tidegate.remedy import RECREATE, REFILL
from tidegate.schema.model.columns import Generated, TableVersion, VersionStatus
from tidegate.segments.result import CommitSpan, DecodedSegment, Known, Ledger, Problem, TableChanges
from tidegate.segments.segment import Segment
from tidegate.ticdc.cells import cells
from tidegate.ticdc.layout import has_partition
from tidegate.ticdc.lines import split
from tidegate.ticdc.pieces import Form, Placed, form_of, pieces_of
from tidegate.ticdc.rows import Rows, WantedColumns, rows_of

Name = tuple[str, str]
Versions = Mapping[Name, Sequence[TableVersion]]

SYSTEM_FIELDS: Final = (
    pa.field(tables.OP, pa.int8(), nullable=False),
    pa.field(tables.COMMIT_TS, pa.int64(), nullable=False),
    pa.field(tables.SEQ, pa.int64(), nullable=False),
    pa.field(tables.ORDINAL, pa.int64(), nullable=False),
)


class RefusalRule(StrEnum):
    """Why bytes aren't decoded."""

    SCHEMA_FILE = "schema file"
    NOT_ASKED = "table not asked for"
    OUTSIDE = "outside the window"


@dataclass(slots=True)
class TableLines:
    """A table's lines in its window, by version. at: the place of the first one in the payload."""

    at: int
    runs: dict[int, list[bytes]] = field(default_factory=dict)
    places: dict[int, list[npt.NDArray[np.int64]]] = field(default_factory=dict)  # of each line, in the payload
    first_ts: dict[int, int] = field(default_factory=dict)
    taken_bytes: int = 0
    mixed: bool = False  # whether some come from a folder that partitions would share


def decode_in_pieces(
    segment: Segment, versions: Versions, windows: Mapping[Name, CommitSpan], *, known: Known
) -> Iterator[DecodedSegment]:
    """A Decoder (capture/source.py). Raises StreamCorrupt."""
    assert known.answers is None, "a changefeed's files have no prewrites"
    form, ledger = form_of(segment), Ledger(len(segment.payload))
    by_name: dict[Name, TableLines] = {}
    for placed in pieces_of(segment):
        name = placed.piece.name
        if placed.piece.schema:
            ledger.ignore(RefusalRule.SCHEMA_FILE, placed.piece.length)
        elif name not in windows and name in known.held:
            ledger.quarantined_bytes += placed.piece.length
        elif name not in windows:
            ledger.ignore(RefusalRule.NOT_ASKED, placed.piece.length)
        else:
            table = by_name.setdefault(name, TableLines(placed.at))
            in_force = sorted(versions.get(name, ()), key=lambda version: version.commit_ts)
            sort_in(table, placed, form, windows[name], in_force, ledger)
    yield _decoded(segment, form, versions, windows, by_name, ledger)


def sort_in(
    table: TableLines, placed: Placed, form: Form, window: CommitSpan, versions: Sequence[TableVersion], ledger: Ledger
) -> None:
    """The lines of a piece that lie in the window, with those of their version."""
    table.mixed |= not has_partition(placed.piece.path)
    lines = split(form, placed.data, placed.piece.path)
    inside = (lines.commit_ts > window.after_ts) & (lines.commit_ts <= window.upto_ts)
    sizes = np.diff(lines.starts)
    ledger.ignore(RefusalRule.OUTSIDE, int(sizes[~inside].sum()))
    table.taken_bytes += int(sizes[inside].sum())
    begins = np.array([version.commit_ts for version in versions], np.int64)
    which = np.where(inside, np.searchsorted(begins, lines.commit_ts, side="right") - 1, -2)
    edges = np.flatnonzero(np.diff(which, prepend=-3, append=-3))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        number = int(which[start])
        if number < -1:
            continue
        data = placed.data[int(lines.starts[start]) : int(lines.starts[end])]
        table.runs.setdefault(number, []).append(data)
        table.places.setdefault(number, []).append(placed.at + lines.starts[start:end])
        first = int(lines.commit_ts[start:end].min())
        table.first_ts[number] = min(first, table.first_ts.get(number, first))


def _decoded(
    segment: Segment,
    form: Form,
    versions: Versions,
    windows: Mapping[Name, CommitSpan],
    lines: Mapping[Name, TableLines],
    ledger: Ledger,
) -> DecodedSegment:
    changes: list[TableChanges] = []
    problems: list[Problem] = []
    ordinal = 0
    for name, table in sorted(lines.items()):
        made: list[TableChanges] = []
        nulled, at_ts = 0, 0
        try:
            in_force = sorted(versions.get(name, ()), key=lambda known: known.commit_ts)
            for number, runs in sorted(table.runs.items()):
                at_ts = table.first_ts[number]
                version = version_of(in_force, number, table)
                batch, nulls = _batch(runs, version, form, windows[name], (segment.seq, ordinal))
                made.append(TableChanges(*name, version.version, batch))
                ordinal += batch.num_rows
                nulled += nulls
        except (OSError, MemoryError):
            raise
        except Exception as fault:  # noqa: BLE001 - a fault of ours at one table's rows is that table's
            error = fault if isinstance(fault, Terminal) else unexpected(fault)
            problems.append(_problem(segment, name, table, at_ts, error))
            ledger.quarantined_bytes += table.taken_bytes
            continue
        changes += made
        ledger.decoded_bytes += table.taken_bytes
        ledger.rows += sum(change.batch.num_rows for change in made)
        ledger.null_dates += nulled
    ledger.check()
    return DecodedSegment(tuple(changes), tuple(problems), ledger)


def _problem(segment: Segment, name: Name, table: TableLines, at_ts: int, error: Terminal) -> Problem:
    pos = segment.start_pos + table.at
    placed = type(error)(error.what, where=f"{name[0]}.{name[1]} at {segment.file}:{pos}", remedy=error.remedy)
    return Problem.of(name, placed, (segment.file, pos, at_ts))


def version_of(versions: Sequence[TableVersion], number: int, table: TableLines) -> TableVersion:
    """The version in force. Raises what holds the table."""
    if number < 0:
        at_ts = table.first_ts[number]
        known = "no version" if not versions else f"its first version at commit_ts {versions[0].commit_ts}"
        raise SchemaMismatch(
            f"rows at commit_ts {at_ts}, but schema_history has {known}", remedy=REFILL if versions else RECREATE
        )
    version = versions[number]
    if version.status is VersionStatus.DROPPED:
        raise SchemaMismatch(
            f"rows of a table that schema_history version {version.version} says was dropped", remedy=RECREATE
        )
    check_followed(version)
    if version.partitioning is not None and table.mixed:
        raise UnsupportedValue(
            "its partitions share a folder, where their rows aren't in order of commit_ts: what was captured of them"
            " isn't certain",
            remedy="set enable-partition-separator = true in the changefeed, and let it write to a new path for a new"
            " lake; or leave the table out",
        )
    return version


def check_followed(version: TableVersion) -> None:
    """Raises UnsupportedValue for a table that can't be followed by a changefeed's files."""
    virtual = [column.name for column in version.columns if column.generated is Generated.VIRTUAL]
    if virtual:
        raise UnsupportedValue(
            f"TiCDC doesn't write columns that are generated VIRTUAL ({', '.join(virtual)})",
            remedy="make them STORED, or leave the table out",
        )
    if not version.key:
        raise UnsupportedValue(
            "the table has no key, and TiCDC writes rows again after a restart: nobody can tell which ones are new",
            remedy=REFILL.after("give it a primary key"),
        )


def _batch(
    runs: Sequence[bytes], version: TableVersion, form: Form, window: CommitSpan, place: tuple[int, int]
) -> tuple[pa.RecordBatch, int]:
    """place: the segment's seq, and the ordinal of the first row. Raises Terminal."""
    names = [column.name for column in version.columns]
    rows = rows_of(runs, WantedColumns(form, names, version.key_names, window.whole_deletes))
    order = _order(rows)
    take, nulled = pa.array(order), 0
    arrays, fields = [], list(SYSTEM_FIELDS)
    for texts, column in zip(rows.columns, version.columns, strict=True):
        done = cells(texts.take(take), column, form, window.zero_dates)
        if done.null_dates and column.id in version.key:
            what = f"column {column.name} belongs to the key, and has an impossible date: two rows would be one"
            raise UnsupportedValue(what, remedy="change such values at the source, or leave the table out")
        nulled += done.null_dates
        arrays.append(done.values)
        fields.append(pa.field(column.silver, done.values.type))
    count = len(order)
    seq, ordinal = place
    system = [
        pa.array(rows.op[order]),
        pa.array(rows.commit_ts[order]),
        pa.array(np.full(count, seq, np.int64)),
        pa.array(np.arange(ordinal, ordinal + count, dtype=np.int64)),
    ]
    return pa.RecordBatch.from_arrays([*system, *arrays], schema=pa.schema(fields)), nulled


def _order(rows: Rows) -> npt.NDArray[np.int64]:
    """The rows' order: by commit_ts, deletes first, else as they stand."""
    return np.lexsort((rows.op != tables.OP_DELETE, rows.commit_ts)).astype(np.int64)
