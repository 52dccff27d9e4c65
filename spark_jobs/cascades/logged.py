"""Row changes as they were logged, of parents and of children whose foreign keys act unseen.

In:  a window's segments, the spans in which tables' changes count.
Out: Logged changes in any order, with the cells that rules look at; whole rows stay where they were
     decoded (Store).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.window.application import Application
from spark_jobs.window.named_segments import NamedSegment, read_segments, segments_naming
from spark_jobs.window.window import PrewrittenSegment, Window
from tidegate import tables
from tidegate.binlog.rows.row_images import NO_FOREIGN_KEYS, TableImages, row_images
from tidegate.binlog.rows.table_rows import HeldError
from tidegate.cascades.follow import Logged, Row
from tidegate.cascades.rules import Rule
from tidegate.cascades.values import Doubt
from tidegate.columnar.decoded import IMAGE_BEFORE, IMAGE_INSERT, RowsError
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import StreamCorrupt, Terminal
from tidegate.limits import CASCADE_BYTES_MAX, CASCADE_LOGGED_ROWS_MAX
from tidegate.schema.model.columns import Generated, TableVersion
from tidegate.segment_kinds import changes_of
from tidegate.segments.result import CommitSpan, Known
from tidegate.segments.segment import Segment

Name = tuple[str, str]
IN_SILVER = -1  # number of the version of rows that silver has: their columns say it
TOO_MUCH = "the window changes more rows of its parents, or of its own, than are followed in memory"


@dataclass(slots=True)
class Store:
    """Whole rows: (version's number, rows in silver's columns)."""

    parts: list[tuple[int, pa.Table]] = field(default_factory=list)
    bytes: int = 0

    def add(self, version: int, rows: pa.Table, table: Name) -> int:
        """The part's number. Raises Doubt when they become too many."""
        self.bytes += rows.nbytes
        if self.bytes > CASCADE_BYTES_MAX:
            raise Doubt(TOO_MUCH, table)
        self.parts.append((version, rows))
        return len(self.parts) - 1


@dataclass(frozen=True, slots=True)
class Looked:
    """A table whose changes are read. begin_ts: above it. cells: the columns that rules look at.
    key: of a table whose rows are followed, which are kept whole. left_out: columns missing in silver.
    """

    begin_ts: int
    cells: tuple[str, ...]
    key: tuple[str, ...] | None = None
    left_out: frozenset[str] = frozenset()


class LoggedChanges:
    """The logged changes of one source in one window."""

    def __init__(self, app: Application, window: Window, committed: Sequence[PrewrittenSegment], source: str) -> None:
        self._app, self._window, self._committed, self._source = app, window, committed, source
        self.count = 0
        self.keeps_places = False  # True: the reader also wants these two:
        self.files: dict[int, str] = {}  # seq -> binlog file
        self.gtids: dict[int, str] = {}  # commit_ts -> GTID

    def _parts(self, wanted: set[Name]) -> Iterator[NamedSegment]:
        return segments_naming(self._app.names, self._window, self._committed, self._source, wanted)

    def read(self, looked: Mapping[Name, Looked], store: Store, *, inserts: bool) -> Iterator[Logged]:
        """Raises Doubt if a logged change can't be read."""
        versions = {name: self._app.histories[self._source].versions(*name) for name in looked}
        for part, segment in read_segments(self._app.lake, self._parts({*looked})):
            self.files[part.ref.seq] = part.ref.file
            if isinstance(segment, StreamCorrupt):
                raise self._damaged(part, looked, segment)
            yield from self._of_segment(part, segment, (versions, looked), store, inserts)

    def _damaged(self, part: NamedSegment, looked: Collection[Name], error: StreamCorrupt) -> Doubt:
        """A doubt about one of the tables that the segment names. If its children are left out, the next try names
        another one.
        """
        named = {*self._app.names.kept(self._source, part.ref.tables), *part.names}
        name = min(named.intersection(looked), default=None)
        return Doubt(f"a segment with changes of its parents, or of its own, is damaged: {error}", name)

    def _of_segment(
        self,
        part: NamedSegment,
        segment: Segment,
        asked: tuple[Mapping[Name, Sequence[TableVersion]], Mapping[Name, Looked]],
        store: Store,
        inserts: bool,
    ) -> Iterator[Logged]:
        versions, looked = asked
        upto_ts, known = part.upto(self._window.cut_ts), part.known
        spans = {
            name: CommitSpan(columns.begin_ts, upto_ts, left_out=columns.left_out) for name, columns in looked.items()
        }
        try:
            for images in row_images(segment, versions, spans, known=known, inserts=inserts):
                yield from self._of_images(images, segment.seq, looked[images.name], store)
        except (HeldError, RowsError) as error:
            name = _whose(segment, versions, spans, known, inserts)
            raise Doubt(f"changes of its parents, or of its own, can't be read: {error.error.line}", name) from error
        except Terminal as error:
            name = _whose(segment, versions, spans, known, inserts)
            raise Doubt(f"changes of its parents, or of its own, can't be read: {error.line}", name) from error

    def _of_images(self, logged: TableImages, seq: int, looked: Looked, store: Store) -> Iterator[Logged]:
        if looked.key is None:
            logged = _telling(logged, looked)
        rows = logged.images.rows
        if looked.key is not None:
            self.count += rows.num_rows
            if self.count > CASCADE_LOGGED_ROWS_MAX:
                raise Doubt(TOO_MUCH, logged.name)
        cells = _Cells(logged, looked, self._untold(logged))
        part = -1
        if looked.key is not None:
            part = store.add(logged.version.version, pa.Table.from_batches([rows]), logged.name)
        ops, stamps = rows.column(tables.OP).to_pylist(), rows.column(tables.COMMIT_TS).to_pylist()
        ordinals = logged.ordinals.tolist()
        positions = logged.positions.tolist()
        if self.keeps_places:
            self.gtids |= {stamp: logged.gtids[stamp] for stamp in {*stamps} if stamp in logged.gtids}
        checked = ((logged.flags & NO_FOREIGN_KEYS) == 0).tolist()
        at = 0
        while at < len(ops):
            updates = ops[at] == IMAGE_BEFORE
            before = None if ops[at] == IMAGE_INSERT else cells.row(at, (part, at))
            after = None
            if updates:
                after = cells.row(at + 1, (part, at + 1), before)
            elif ops[at] == IMAGE_INSERT:
                after = cells.row(at, (part, at))
            order = (stamps[at], seq, ordinals[at + updates])
            if looked.key is not None or (before is not None and (after is None or before.cells != after.cells)):
                yield Logged(order, logged.name, before, after, checked[at], positions[at])
            at += 1 + updates

    def _untold(self, logged: TableImages) -> frozenset[str]:
        """Generated columns of MariaDB (11.8.9): an update leaves them out though they change."""
        if logged.images.present is None:
            return frozenset()
        computed = frozenset(c.silver for c in logged.version.columns if c.generated is not Generated.NO)
        if computed and self._app.pipeline.sources[self._source].traits.leaves_out_generated:
            return computed
        return frozenset()

    def check_readable(self, parents: Mapping[Name, int], known: Known) -> None:
        """Raises Doubt if the log changes parents other than by rows: by a statement, or by
        something unreadable. parents: those outside the window, since no other step looks at them
        -> from which commit_ts on.
        """
        versions = {name: self._app.histories[self._source].versions(*name) for name in parents}
        whole = (part for part in self._parts({*parents}) if part.answers is None)
        for part, segment in read_segments(self._app.lake, whole):
            if isinstance(segment, StreamCorrupt):
                raise self._damaged(part, parents, segment)
            upto_ts = part.upto(self._window.cut_ts)
            spans = {name: CommitSpan(begin_ts, upto_ts) for name, begin_ts in parents.items()}
            known_there = replace(known, rolled_back_ts=part.ref.rolled_back_ts)
            for done in changes_of(segment, versions, spans, known_there):
                for problem in done.problems:
                    name = (problem.database, problem.table)
                    what = f"changes of its parent {'.'.join(name)} can't be read: {problem.message}"
                    raise Doubt(what, parent=name)


def _whose(
    segment: Segment,
    versions: Mapping[Name, Sequence[TableVersion]],
    spans: Mapping[Name, CommitSpan],
    known: Known,
    inserts: bool,
) -> Name | None:
    """The first table whose changes alone can't be read; None where they can."""
    for name, span in spans.items():
        try:
            for _ in row_images(segment, {name: versions[name]}, {name: span}, known=known, inserts=inserts):
                pass
        except (HeldError, RowsError, Terminal):
            return name
    return None


def _telling(logged: TableImages, looked: Looked) -> TableImages:
    """The images without updates that leave the looked-at columns unchanged. For most parents nothing remains."""
    rows, present = logged.images.rows, logged.images.present
    ops = rows.column(tables.OP).to_numpy()
    before = np.flatnonzero(ops == IMAGE_BEFORE)
    if not before.size:
        return logged
    tells = np.zeros(before.size, np.bool_)
    for name in looked.cells:
        at = rows.schema.get_field_index(name)
        if at < 0 or (present is not None and not present[at - len(tables_of_system())].all()):
            return logged  # told by whoever looks at single rows
        old, other = (rows.column(at).take(pa.array(where)) for where in (before, before + 1))
        differs = pc.fill_null(pc.not_equal(old, other), fill_value=False)
        differs = pc.or_(differs, pc.xor(pc.is_null(old), pc.is_null(other)))
        tells |= differs.to_numpy(zero_copy_only=False)
    keeps = np.ones(ops.size, np.bool_)
    keeps[before], keeps[before + 1] = tells, tells
    kept = replace(
        logged.images, rows=rows.filter(pa.array(keeps)), present=None if present is None else present[:, keeps]
    )
    return replace(
        logged,
        images=kept,
        positions=logged.positions[keeps],
        ordinals=logged.ordinals[keeps],
        flags=logged.flags[keeps],
    )


class _Cells:
    """The looked-at cells of images, by column."""

    def __init__(self, logged: TableImages, looked: Looked, untold: Collection[str]) -> None:
        rows, present = logged.images.rows, logged.images.present
        self._name, self._key, self._untold = logged.name, looked.key, untold
        self._columns: dict[str, list[Any]] = {}
        self._absent: dict[str, np.ndarray] = {}
        for name in looked.cells:
            at = rows.schema.get_field_index(name)
            if at < 0:
                raise Doubt(f"column {name} of {'.'.join(logged.name)} isn't in the log", logged.name)
            self._columns[name] = rows.column(at).to_pylist()
            if present is not None:
                self._absent[name] = ~present[at - len(tables_of_system())]
        whole = looked.key is None or present is None or _is_whole(logged, present, looked.cells)
        if not whole:
            raise Doubt("its rows aren't logged whole (binlog_row_image is not FULL)", logged.name)

    def row(self, at: int, origin: tuple[int, int], before: Row | None = None) -> Row:
        cells = {name: values[at] for name, values in self._columns.items()}
        for name, absent in self._absent.items():
            if not absent[at]:
                continue
            if before is None:  # of an update's before image it matters only where the value changed
                cells[name] = _ABSENT
            else:
                cells[name] = _UNTOLD if name in self._untold else before.cells[name]
        known = [name for name, value in cells.items() if not isinstance(value, _Absent)]
        if before is not None and any(before.cells[name] is _ABSENT for name in known):
            whose = f"rows of its parent {'.'.join(self._name)}"
            raise Doubt(f"{whose} aren't logged whole (binlog_row_image is not FULL)", parent=self._name)
        key = tuple(cells[name] for name in self._key) if self._key is not None else ()
        return Row(key, cells, origin)


def _is_whole(logged: TableImages, present: npt.NDArray[np.bool_], cells: Collection[str]) -> bool:
    """Whether the images have whole rows. The hidden hash, and columns that silver leaves out, may
    be absent. cells: the columns that rules look at.
    """
    names = logged.images.rows.schema.names[len(tables_of_system()) :]
    unasked = logged.plan.marks[:, L.MARK_UNASKED].tolist()
    needed = [at for at, name in enumerate(names) if name in cells or not unasked[at]]
    return bool(present[needed].all())


class _Absent:
    """Stands for a value that an image doesn't have."""


_ABSENT = _Absent()
_UNTOLD = _Absent()  # the same, and the value may have changed


def tables_of_system() -> tuple[str, ...]:
    """The columns before a version's own."""
    return (tables.OP, tables.COMMIT_TS, tables.SEQ, tables.ORDINAL)


def acts_on(rule: Rule, change: Logged) -> bool:
    """Whether a parent's change may change children. Raises Doubt if its image doesn't tell."""
    before, after = change.before, change.after
    assert before is not None, "inserts weren't asked for"
    names = rule.parent_columns
    if not (rule.on_delete if after is None else rule.on_update):
        return False
    if after is not None and all(before.cells[name] == after.cells[name] for name in names):
        return False
    if after is not None and any(after.cells[name] is _UNTOLD for name in names):
        why = "it refers to a generated column, which MariaDB logs in inserts alone"
        raise Doubt(why, rule.child)
    if any(before.cells[name] is _ABSENT for name in names):
        raise Doubt("rows of its parent aren't logged whole (binlog_row_image is not FULL)", rule.child)
    return True
