"""The rows of one table, found by what their binlog says of them.

In:  rows' cells by column id.
Out: the same, inserted, found and deleted. StreamCorrupt when a row that changes isn't there, or is another one.

A row with a clustered key is found by the key's own values: a change's old side has them as they are stored. Another
one is found by _tidb_rowid; where TiDB gave rows new ones in silence (REORGANIZE PARTITION), by all that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tidegate.errors import StreamCorrupt
from tidegate.tidb.codec.datum import Cells
from tidegate.tidb.jobs import ROWID, TableInfo
from tidegate.tidb.values.stored import cell, comparable

Key: TypeAlias = tuple[object, ...]


class ReplayedRows:
    """where: the table's name, for messages."""

    def __init__(self, table: TableInfo) -> None:
        self._rows: dict[int, Cells] = {}
        self._next = 0
        self._by_key: dict[Key, list[int]] = {}
        self._by_image: dict[Key, list[int]] | None = None
        self._table = table

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Cells]:
        return iter(self._rows.values())

    def describe(self, table: TableInfo) -> None:
        """The table's columns or its key are others now; so may be the rows' cells."""
        self._table = table
        self._by_image = None
        self._by_key = {}
        for number, cells in self._rows.items():
            self._by_key.setdefault(self._key(cells), []).append(number)

    def insert(self, cells: Cells) -> None:
        key = self._key(cells)
        numbers = self._by_key.setdefault(key, [])
        if numbers and self._table.handle:
            raise self._strange("an inserted row is there already")
        numbers.append(self._next)
        self._rows[self._next] = cells
        if self._by_image is not None:
            self._by_image.setdefault(self._image(cells), []).append(self._next)
        self._next += 1

    def delete(self, before: Cells) -> Cells:
        """The row as it was stored."""
        number = self._find(before)
        cells = self._rows.pop(number)
        _drop(self._by_key, self._key(cells), number)
        if self._by_image is not None:
            _drop(self._by_image, self._image(cells), number)
        return cells

    def take_where(self, test: Callable[[Cells], bool]) -> list[Cells]:
        """Rows with a true condition, no longer here."""
        taken = [cells for cells in self._rows.values() if test(cells)]
        kept = [cells for cells in self._rows.values() if not test(cells)] if taken else None
        if kept is not None:
            self._rows = dict(enumerate(kept, self._next))
            self._next += len(kept)
            self.describe(self._table)
        return taken

    def forget_rowids(self, test: Callable[[Cells], bool]) -> None:
        """TiDB gave these rows other ones, and doesn't tell which."""
        for cells in self._rows.values():
            if test(cells):
                cells[ROWID] = None
        self.describe(self._table)

    def _key(self, cells: Cells) -> Key:
        return tuple(comparable(cells.get(id_)) for id_ in self._table.handle or (ROWID,))

    def _image(self, cells: Cells) -> Key:
        return tuple(comparable(cell(column, cells)) for column in self._table.columns if not column.is_virtual)

    def _find(self, before: Cells) -> int:
        numbers = self._by_key.get(self._key(before), ())
        alike = [number for number in numbers if self._is(self._rows[number], before)]
        if alike:
            return alike[0]
        if self._table.handle:
            raise self._strange("a changed row isn't the one that is there" if numbers else "a changed row isn't there")
        if self._by_image is None:
            self._by_image = {}
            for number, cells in self._rows.items():
                self._by_image.setdefault(self._image(cells), []).append(number)
        unnumbered = [n for n in self._by_image.get(self._image(before), ()) if self._rows[n].get(ROWID) is None]
        if not unnumbered:
            raise self._strange("a changed row isn't there")
        return unnumbered[0]

    def _is(self, cells: Cells, before: Cells) -> bool:
        """Whether all known columns of a change's old side agree with the stored row."""
        return all(
            comparable(cell(column, cells)) == comparable(before[column.id])
            for column in self._table.columns
            if column.id in before and not column.is_virtual
        )

    def _strange(self, what: str) -> StreamCorrupt:
        return StreamCorrupt(
            f"{what}: TiDB's binlog tells of another row than the one that its changes so far made",
            where=f"table {self._table.name} (id {self._table.id})",
            remedy="UPDATE IGNORE that changes a key does so; report anything else",
        )


def _drop(index: dict[Key, list[int]], key: Key, number: int) -> None:
    numbers = index[key]
    numbers.remove(number)
    if not numbers:
        del index[key]
