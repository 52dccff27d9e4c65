"""The person whose rows they are: a condition, and the keys of all rows that it was ever true of.

In:  row images under a table's versions.
Out: the keys; which images have one of them. Pure.

A row whose key was changed is the same row: keys that an update connects belong together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.logged_rows import LoggedRows
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE
from tidegate.conditions.matching import check_literals, matching
from tidegate.conditions.model import Condition, IsNull, leaves
from tidegate.errors import UsageError
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical

Key: TypeAlias = tuple[Any, ...]
Mask: TypeAlias = npt.NDArray[np.bool_]
_COMPARED = (int, str, bytes, Decimal, date, datetime)


@dataclass(slots=True)
class Subject:
    """newest: the table's version of today, whose columns the condition names. links: key -> keys that it was changed
    to, or was before.
    """

    condition: Condition
    newest: TableVersion
    keys: set[Key] = field(default_factory=set)
    links: dict[Key, set[Key]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_name = {column.name.lower(): column for column in self.newest.columns}
        for leaf in leaves(self.condition):
            column = by_name.get(leaf.column.lower())
            if column is None:
                raise UsageError(f"{self.newest.name} has no column {leaf.column}", remedy="look at --where")
            try:
                check_literals(leaf, canonical(column).arrow)
            except ValueError as error:
                raise UsageError(f"column {leaf.column}: {error}", remedy="look at --where") from None

    def look(self, rows: LoggedRows) -> None:
        """Learn the keys of images that the condition is true of, and which keys were changed to which."""
        if not rows.images.rows.num_rows:
            return
        batch, absent = _whole(rows)
        keys = self.key_columns(batch, rows.version)
        kinds = batch.column(tables.OP).to_numpy()
        for index in np.flatnonzero(self.true_of(batch, rows.version, absent)).tolist():
            self.keys.add(_key(keys, index))
        before = np.flatnonzero(kinds == IMAGE_BEFORE)
        for index in before[_differ(keys, before, before + 1)].tolist():
            old, new = _key(keys, index), _key(keys, index + 1)
            self.links.setdefault(old, set()).add(new)
            self.links.setdefault(new, set()).add(old)

    def look_at(self, batch: pa.RecordBatch, version: TableVersion) -> None:
        """Learn from rows of a chunk."""
        keys = self.key_columns(batch, version)
        for index in np.flatnonzero(self.true_of(batch, version)).tolist():
            self.keys.add(_key(keys, index))

    def close(self) -> None:
        """All keys that updates connect with these."""
        left = list(self.keys)
        while left:
            for other in self.links.get(left.pop(), ()):
                if other not in self.keys:
                    self.keys.add(other)
                    left.append(other)

    def is_of(self, rows: LoggedRows) -> Mask:
        """Per image, whether it has one of the keys."""
        return self.has_key(_whole(rows)[0], rows.version)

    def has_key(self, batch: pa.RecordBatch, version: TableVersion) -> Mask:
        """Per row, whether its key is one of the keys."""
        keys = self.key_columns(batch, version)
        may = np.ones(batch.num_rows, np.bool_)
        for position, column in enumerate(keys):
            wanted = _values_of(column.type, {key[position] for key in self.keys})
            may &= pc.is_in(column, value_set=wanted).to_numpy(zero_copy_only=False)
        for index in np.flatnonzero(may).tolist():
            may[index] = _key(keys, index) in self.keys
        return may

    def true_of(self, batch: pa.RecordBatch, version: TableVersion, absent: Collection[str] = ()) -> Mask:
        """Per row, whether the condition is true of it; a column that it lacks is unknown. absent: those that an image
        may lack. Raises UsageError where a condition asks whether such a column is NULL.
        """
        names = self._names_in(version)
        columns = dict[str, pa.Array]()
        for leaf in leaves(self.condition):
            named = names[leaf.column.lower()]
            if isinstance(leaf, IsNull) and (named in absent or named not in batch.schema.names):
                raise self._unasked(version, f"not all of them say whether {leaf.column} was NULL")
            if named in batch.schema.names:
                columns[leaf.column] = batch.column(named)
            else:
                column = next(c for c in self.newest.columns if c.name.lower() == leaf.column.lower())
                columns[leaf.column] = pa.nulls(batch.num_rows, canonical(column).arrow)
        asked = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        try:
            mask: Mask = matching(self.condition, asked).to_numpy(zero_copy_only=False)
        except ValueError as error:
            raise self._unasked(version, str(error)) from None
        return mask

    def _unasked(self, version: TableVersion, why: str) -> UsageError:
        return UsageError(
            f"the condition can't be asked of rows of version {version.version}: {why}",
            where=self.newest.name,
            remedy="name the rows by their key",
        )

    def key_columns(self, batch: pa.RecordBatch, version: TableVersion) -> list[pa.Array]:
        return [batch.column(name) for name in version.silver_key]

    def _names_in(self, version: TableVersion) -> Mapping[str, str]:
        """Name today, in lower case -> name in silver of the same column under a version."""
        by_id = {column.id: column.silver for column in version.columns}
        return {column.name.lower(): by_id.get(column.id, column.silver) for column in self.newest.columns}


def _whole(rows: LoggedRows) -> tuple[pa.RecordBatch, frozenset[str]]:
    """Its images, where an after image has the cells that it lacks from the one before (binlog_row_image FULL_NODUP);
    the columns that an image lacks nevertheless.
    """
    batch, present = rows.images.rows, rows.images.present
    if present is None:
        return batch, frozenset()
    after = batch.column(tables.OP).to_numpy() == IMAGE_AFTER
    at, absent = np.arange(batch.num_rows, dtype=np.int64), set[str]()
    for name, has in zip(rows.plan.schema.names, present, strict=True):
        number = batch.schema.get_field_index(name)
        filled = np.where(~has & after, at - 1, at)
        if not has[filled].all():
            absent.add(name)
        batch = batch.set_column(number, batch.schema.field(number), batch.column(number).take(pa.array(filled)))
    return batch, frozenset(absent)


def _values_of(kind: pa.DataType, values: Iterable[Any]) -> pa.Array:
    """Those that a type has: an earlier version's may be a narrower one."""
    made = []
    for value in values:
        with suppress(pa.ArrowInvalid, OverflowError):
            made.append(pa.scalar(value, kind).as_py())
    return pa.array(made, kind)


def _key(columns: Sequence[pa.Array], index: int) -> Key:
    values = tuple(column[index].as_py() for column in columns)
    if not all(isinstance(value, _COMPARED) for value in values):
        raise UsageError("a key of this table can't be compared", remedy="such tables can't be erased from")
    return values


def _differ(keys: Sequence[pa.Array], left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> Mask:
    differs = np.zeros(len(left), np.bool_)
    for column in keys:
        unlike = pc.not_equal(column.take(pa.array(left)), column.take(pa.array(right)))
        differs |= pc.fill_null(unlike, fill_value=True).to_numpy(zero_copy_only=False)
    return differs
