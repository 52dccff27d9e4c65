"""The effects of foreign keys, as changes in the form of decode's.

In:  effects, the whole rows that they come from, the version in force at each.
Out: TableChanges of the last effect per key and version; images of every effect, for changelogs.
     Raises Doubt where a row can't be told whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_jobs.cascades.logged import IN_SILVER, Store
from tidegate import tables
from tidegate.cascades.follow import Effect, Key, Row, last_changes
from tidegate.cascades.values import Doubt
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, SYSTEM_FIELDS
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.segments.result import TableChanges

Name = tuple[str, str]
_Change = tuple[Key, Effect]
# Rows as they were logged -> as silver has them.
Masked = Callable[[TableVersion, pa.Table], pa.Table]


def changes_made(
    effects: Sequence[Effect],
    version_at: Callable[[Name, int], TableVersion],
    store: Store,
    whole_deletes: Callable[[Name], bool],
    masked: Masked,
) -> Iterator[TableChanges]:
    """The changes of each table, by version, in the order of the log."""
    by_version: dict[tuple[Name, int], tuple[TableVersion, list[Effect]]] = {}
    for effect in effects:
        version = version_at(effect.table, effect.order[0])
        by_version.setdefault((effect.table, version.version), (version, []))[1].append(effect)
    for (table, _), (version, own_effects) in by_version.items():
        last = [(key, effect) for _, key, effect in last_changes(own_effects)]
        batch = _batch(last, version, store, whole_deletes(table), masked)
        yield TableChanges(*table, version.version, batch)


@dataclass(frozen=True, slots=True)
class MadeImages:
    """Images of a version in the order of the log. effects: per image its own."""

    version: TableVersion
    batch: pa.RecordBatch
    effects: list[Effect]


def images_made(
    numbered: Sequence[tuple[int, Effect]], version_at: Callable[[Name, int], TableVersion], store: Store
) -> Iterator[MadeImages]:
    """Every effect with both its sides, whole. numbered: with the ordinal of each. Raises Doubt."""
    by_version: dict[tuple[Name, int], tuple[TableVersion, list[tuple[int, Effect]]]] = {}
    for ordinal, effect in numbered:
        version = version_at(effect.table, effect.order[0])
        by_version.setdefault((effect.table, version.version), (version, []))[1].append((ordinal, effect))
    for version, own_effects in by_version.values():
        rows, ops, ordinals, effects = list[Row](), list[int](), list[int](), list[Effect]()
        for ordinal, effect in own_effects:
            sides = [(effect.before, IMAGE_DELETE)]
            if effect.after is not None:
                sides = [(effect.before, IMAGE_BEFORE), (effect.after, IMAGE_AFTER)]
            rows += [row for row, _ in sides]
            ops += [op for _, op in sides]
            ordinals += [ordinal] * len(sides)
            effects += [effect] * len(sides)
        fields = [pa.field(column.silver, canonical(column).arrow) for column in version.columns]
        columns = _columns(rows, [True] * len(rows), fields, version, store, _as_logged)
        places = (
            [effect_made.order[0] for effect_made in effects],
            [effect_made.order[1] for effect_made in effects],
            ordinals,
        )
        system = [pa.array(ops, pa.int8()), *(pa.array(place, pa.int64()) for place in places)]
        batch = pa.RecordBatch.from_arrays([*system, *columns], schema=pa.schema([*SYSTEM_FIELDS, *fields]))
        yield MadeImages(version, batch, effects)


def _as_logged(_: TableVersion, rows: pa.Table) -> pa.Table:
    """A changelog's tables have no masks."""
    return rows


def _batch(
    changes: Sequence[_Change], version: TableVersion, store: Store, whole_deletes: bool, masked: Masked
) -> pa.RecordBatch:
    changes = sorted(changes, key=lambda change: change[1].order)
    fields = [pa.field(column.silver, canonical(column).arrow) for column in version.columns]
    kept = [_left(key, effect) for key, effect in changes]
    rows = [left or effect.before for left, (_, effect) in zip(kept, changes, strict=True)]
    ops = [tables.OP_DELETE if left is None else tables.OP_UPSERT for left in kept]
    needed = [left is not None or whole_deletes for left in kept]
    columns = _columns(rows, needed, fields, version, store, masked)
    orders = [effect.order for _, effect in changes]
    system = [pa.array(ops, pa.int8()), *(pa.array([order[at] for order in orders], pa.int64()) for at in range(3))]
    return pa.RecordBatch.from_arrays([*system, *columns], schema=pa.schema([*SYSTEM_FIELDS, *fields]))


def _left(key: Key, effect: Effect) -> Row | None:
    """The row that an effect leaves under a key; None if it leaves none."""
    return effect.after if effect.after is not None and effect.after.key == key else None


def _columns(
    rows: Sequence[Row],
    needed: Sequence[bool],
    fields: Sequence[pa.Field],
    version: TableVersion,
    store: Store,
    masked: Masked,
) -> list[pa.Array]:
    """One array per field. needed: per row whether it must be whole; for the others the key is
    enough.
    """
    order: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        order.setdefault(row.origin[0], []).append(at)
    pieces, places = [], list[int]()
    for part, own_rows in order.items():
        number, table = store.parts[part]
        taken = table.take(pa.array([rows[at].origin[1] for at in own_rows]))
        whole = any(needed[at] for at in own_rows)
        _check_same(number, taken, fields, version, whole)
        if number != IN_SILVER:
            taken = masked(version, taken)
        pieces.append(pa.table([_fitted(taken, field) for field in fields], names=[field.name for field in fields]))
        places += own_rows
    joined = pa.concat_tables(pieces)
    back = [0] * len(places)
    for at, place in enumerate(places):
        back[place] = at
    joined = joined.take(pa.array(back))
    return [_changed(joined.column(at), field, rows) for at, field in enumerate(fields)]


def _check_same(number: int, table: pa.Table, fields: Sequence[pa.Field], version: TableVersion, whole: bool) -> None:
    name = (version.database, version.table)
    if whole and number not in (IN_SILVER, version.version):
        raise Doubt("its columns changed between a row and what a foreign key did to it", name)
    if whole and any(field.name not in table.column_names for field in fields):
        raise Doubt("its columns changed between a row and what a foreign key did to it", name)


def _fitted(table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    column = table.column(field.name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column if column.type == field.type else column.cast(field.type)


def _changed(column: pa.ChunkedArray, field: pa.Field, rows: Sequence[Row]) -> pa.Array:
    """With the values that foreign keys gave."""
    over: dict[int, Any] = {at: row.changed[field.name] for at, row in enumerate(rows) if field.name in row.changed}
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], field.type)
    if not over:
        return whole
    values = whole.to_pylist()
    for at, value in over.items():
        values[at] = value
    return pa.array(values, field.type)
