"""The person whose rows are erased: a condition, and the keys of all rows of which it was ever
true.

In:  row images under a table's versions.
Out: the keys; which images have one of them. Pure.

If an update changes a row's key, it is still the same row: both keys belong together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.rows.logged_rows import LoggedRows
from tidegate.cascades.values import Doubt, Likeness, collated
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE
from tidegate.commit_ts import FOREVER
from tidegate.conditions.matching import check_literals, matching, typed
from tidegate.conditions.model import All, Compared, Condition, IsNull, Literal, Not, OneOf, leaves, literals_of
from tidegate.conditions.model import Any as AnyOf
from tidegate.errors import UsageError
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical

Key: TypeAlias = tuple[Any, ...]
Mask: TypeAlias = npt.NDArray[np.bool_]
_COMPARED = (int, str, bytes, Decimal, date, datetime)


@dataclass(slots=True)
class Subject:
    """newest: the table's version of today, whose columns the condition names. alike: columns, in lower case, that the
    condition compares by the collation which they had in a row's version. links: key -> keys that it was changed to, or
    was before. unsure: keys of images without a column that the condition hangs on. upto_ts: rows
    of later commits are another's: the source had none of the person.
    """

    condition: Condition
    newest: TableVersion
    alike: Collection[str] = ()
    keys: set[Key] = field(default_factory=set)
    links: dict[Key, set[Key]] = field(default_factory=dict)
    unsure: set[Key] = field(default_factory=set)
    upto_ts: int = FOREVER

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

    @property
    def named(self) -> set[Key] | None:
        """The keys in the condition itself (`id = 4711`); None where it is about other columns, ranges or forms."""
        if self.alike:
            return None
        types = {column.name.lower(): canonical(column).arrow for column in self.newest.columns}
        names = [name.lower() for name in self.newest.key_names]
        choices = _choices(self.condition, types)
        # A part of the key stands for many rows, and another column names no key.
        if choices is None or any(choice.keys() != set(names) for choice in choices):
            return None
        return {tuple(choice[name] for name in names) for choice in choices}

    def look(self, rows: LoggedRows) -> None:
        """Learn the keys of images that the condition is true of, and which keys were changed to which."""
        if not rows.images.rows.num_rows:
            return
        batch, absent = _whole(rows)
        keys = self.key_columns(batch, rows.version)
        kinds = batch.column(tables.OP).to_numpy()
        is_true = self.true_of(batch, rows.version, absent)
        for index in np.flatnonzero(is_true).tolist():
            self.keys.add(_key(keys, index))
        if absent:
            is_unsure = self._unsure(rows, batch, absent) & ~is_true
            self.unsure.update(_key(keys, index) for index in np.flatnonzero(is_unsure).tolist())
        # An update's after image is the row after its before image. A changed key links both ways: if a row is found by
        # one of the two keys, the other key is the same person's.
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
        # Along the links until no new key comes: a row may have had many keys.
        left = list(self.keys)
        while left:
            for other in self.links.get(left.pop(), ()):
                if other not in self.keys:
                    self.keys.add(other)
                    left.append(other)
        self.unsure -= self.keys

    def _unsure(self, rows: LoggedRows, batch: pa.RecordBatch, absent: Mapping[str, Mask]) -> Mask:
        """Per image that isn't known to be the person's, whether it may be: the condition isn't false
        of it either, and it lacks a column of it.
        """
        names = self._names_in(rows.version)
        asked = {names[leaf.column.lower()] for leaf in leaves(self.condition)}
        lacks = np.zeros(batch.num_rows, np.bool_)
        for name in asked & absent.keys():
            lacks |= absent[name]
        # Where the opposite is true in spite of the missing column, the condition is certainly false.
        if lacks.any():
            opposite = Subject(Not(self.condition), self.newest, self.alike)
            lacks &= ~opposite.true_of(batch, rows.version, absent)
        return lacks

    def is_of(self, rows: LoggedRows) -> Mask:
        """Per image, whether it has one of the keys."""
        return self.has_key(_whole(rows)[0], rows.version)

    def has_key(self, batch: pa.RecordBatch, version: TableVersion) -> Mask:
        """Per row, whether its key is one of the keys."""
        keys = self.key_columns(batch, version)
        # First column by column, in Arrow: it leaves few rows to be looked up as whole keys in Python.
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
            else:  # this version doesn't have it: NULLs, so no comparison with it is true
                column = next(c for c in self.newest.columns if c.name.lower() == leaf.column.lower())
                columns[leaf.column] = pa.nulls(batch.num_rows, canonical(column).arrow)
        try:
            how = self._alike_in(version)
            asked = pa.RecordBatch.from_arrays(
                [how.get(name.lower(), Likeness.EXACT).forms(values) for name, values in columns.items()],
                names=list(columns),
            )
            mask: Mask = matching(_formed(self.condition, how), asked).to_numpy(zero_copy_only=False)
        except ValueError as error:
            raise self._unasked(version, str(error)) from None
        except Doubt as doubt:
            remedy = "erase from this table first, by a --where of its own"
            raise UsageError(doubt.why, where=self.newest.name, remedy=remedy) from None
        return mask

    def _alike_in(self, version: TableVersion) -> Mapping[str, Likeness]:
        """How a version compares the columns of alike: by its collations, not by today's. Raises Doubt."""
        by_id = {column.id: column for column in version.columns}
        today = {column.name.lower(): column.id for column in self.newest.columns}
        return {name: collated(by_id[today[name]]) for name in self.alike if today[name] in by_id}

    def _unasked(self, version: TableVersion, why: str) -> UsageError:
        return UsageError(
            f"the condition can't be checked on rows of version {version.version}: {why}",
            where=self.newest.name,
            remedy="name the rows by their key",
        )

    def key_columns(self, batch: pa.RecordBatch, version: TableVersion) -> list[pa.Array]:
        return [batch.column(name) for name in version.silver_key]

    def _names_in(self, version: TableVersion) -> Mapping[str, str]:
        """Name today, in lower case -> name in silver of the same column under a version."""
        by_id = {column.id: column.silver for column in version.columns}
        return {column.name.lower(): by_id.get(column.id, column.silver) for column in self.newest.columns}


def _formed(condition: Condition, alike: Mapping[str, Likeness]) -> Condition:
    """A condition of equalities about the forms of values. Raises Doubt."""
    match condition:
        case Compared() if condition.column.lower() in alike:
            return replace(condition, literal=alike[condition.column.lower()].form(condition.literal))
        case OneOf() if condition.column.lower() in alike:
            form = alike[condition.column.lower()].form
            return replace(condition, literals=tuple(map(form, condition.literals)))
        case All() | AnyOf():
            return replace(condition, parts=tuple(_formed(part, alike) for part in condition.parts))
        case Not():
            return Not(_formed(condition.part, alike))
        case _:
            return condition


def _choices(condition: Condition, types: Mapping[str, pa.DataType]) -> list[dict[str, Any]] | None:
    """All values of columns that make a condition true, as name in lower case -> value; None: there are others."""
    match condition:
        case Compared(sign="=") | OneOf():
            name = condition.column.lower()
            literals = literals_of(condition)
            return [{name: typed(text, types[name]).as_py()} for text in literals if _is_of(text, types[name])]
        case AnyOf():
            choices = list[dict[str, Any]]()
            for part in condition.parts:
                if (more := _choices(part, types)) is None:
                    return None
                choices += more
            return choices
        case All():
            made: list[dict[str, Any]] = [{}]
            for part in condition.parts:
                if (more := _choices(part, types)) is None:
                    return None
                made = [{**left, **right} for left in made for right in more if _agree(left, right)]
            return made
        case _:
            return None


def _agree(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.items() >= {name: right[name] for name in left.keys() & right.keys()}.items()


def _is_of(literal: Literal, kind: pa.DataType) -> bool:
    """Whether a literal may be a value of a type: no integer is 1.5."""
    return not (isinstance(literal, Decimal) and pa.types.is_integer(kind)) or literal == int(literal)


def _whole(rows: LoggedRows) -> tuple[pa.RecordBatch, dict[str, Mask]]:
    """Its images, where an after image has the cells that it lacks from the one before
    (binlog_row_image FULL_NODUP); the columns that an image lacks nevertheless, with these images.
    """
    batch, present = rows.images.rows, rows.images.present
    if present is None:
        return batch, {}
    # FULL_NODUP leaves equal values out of the after image: they are in the before image, the row above.
    after = batch.column(tables.OP).to_numpy() == IMAGE_AFTER
    at, absent = np.arange(batch.num_rows, dtype=np.int64), dict[str, Mask]()
    for name, has in zip(rows.plan.schema.names, present, strict=True):
        number = batch.schema.get_field_index(name)
        filled = np.where(~has & after, at - 1, at)
        if not has[filled].all():
            absent[name] = ~has[filled]
        batch = batch.set_column(number, batch.schema.field(number), batch.column(number).take(pa.array(filled)))
    return batch, absent


def key_types(version: TableVersion) -> list[pa.DataType]:
    """The types of a key's values, in its order."""
    by_id = {column.id: canonical(column).arrow for column in version.columns}
    return list(map(by_id.__getitem__, version.key))


def as_arrays(keys: Iterable[Key], version: TableVersion) -> list[pa.Array]:
    """Per column of a version's key the values of those keys that its types have."""
    kinds, fit = key_types(version), list[Key]()
    for key in keys:
        if all(len(_values_of(kind, [value])) for kind, value in zip(kinds, key, strict=True)):
            fit.append(key)
    columns = list(zip(*fit, strict=True)) or [()] * len(kinds)
    return list(map(pa.array, columns, kinds))


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
