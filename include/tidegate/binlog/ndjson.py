"""Row images as NDJSON, one line per row change, built column by column.

In:  Images of one table (batch.decode_images), and what stands on every line.
Out: a large_string array of lines, newline included, in log order; the ordinal of each.

A line: {"op","database","table","commit_ts","file","pos","before","after"}, and "srid" last where a geometry has one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.binlog.json_column import TEXT, json_column
from tidegate.binlog.log_images import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images
from tidegate.binlog.plan import Plan

_OPS: Final = {IMAGE_INSERT: "insert", IMAGE_BEFORE: "update", IMAGE_AFTER: "", IMAGE_DELETE: "delete"}
_SYSTEM_COLUMNS: Final = 4
_EMPTY: Final = pa.scalar("", TEXT)
_NULL: Final = pa.scalar("null", TEXT)


@dataclass(frozen=True, slots=True)
class Lines:
    """ordinals: of the (first) image of each line."""

    texts: pa.Array
    ordinals: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Head:
    """What the lines of one table share; positions: of the rows event of each image."""

    database: str
    table: str
    file: str


def lines_of(
    images: Images, plan: Plan, guessed: frozenset[int], head: Head, positions: npt.NDArray[np.int64]
) -> Lines:
    """positions: per image, where its rows event starts in the file."""
    rows = images.rows
    objects = _objects(images, plan, guessed)
    codes = rows.column(tables.OP).to_numpy()
    first = np.flatnonzero(codes != IMAGE_AFTER)
    op = codes[first]
    before = _side(objects, first, op != IMAGE_INSERT)
    after = _side(objects, first + (op == IMAGE_BEFORE), op != IMAGE_DELETE)
    names = pa.DictionaryArray.from_arrays(pa.array(op, pa.int8()), pa.array(list(_OPS.values()), TEXT))
    place = f',"database":{_text(head.database)},"table":{_text(head.table)},"commit_ts":'
    texts = pc.binary_join_element_wise(
        pa.scalar('{"op":"', TEXT),
        names.dictionary_decode(),
        pa.scalar('"' + place, TEXT),
        _number(rows.column(tables.COMMIT_TS).to_numpy()[first]),
        pa.scalar(f',"file":{_text(head.file)},"pos":', TEXT),
        _number(positions[first]),
        pa.scalar(',"before":', TEXT),
        before,
        pa.scalar(',"after":', TEXT),
        after,
        pa.scalar("}\n", TEXT),
        _EMPTY,
    )
    return Lines(texts, rows.column(tables.ORDINAL).to_numpy()[first])


def _side(objects: pa.Array, at: npt.NDArray[np.int64], there: npt.NDArray[np.bool_]) -> Any:
    """The objects at these numbers, `null` where there is none."""
    if not there.any():
        return _NULL
    if len(at) == len(objects) and there.all():
        return objects
    return pc.fill_null(pc.take(objects, pa.array(at, mask=~there)), _NULL)


def _objects(images: Images, plan: Plan, guessed: frozenset[int]) -> pa.Array:
    """Each image as a JSON object of the columns that are present in it."""
    pieces: list[Any] = [pa.scalar("{", TEXT)]
    if not plan.columns:
        return pa.array(["{}"] * images.rows.num_rows, TEXT)
    for i, column in enumerate(plan.columns):
        key = pa.scalar(("," if i and images.present is None else "") + _text(column.name) + ":", TEXT)
        value = json_column(column, images.rows.column(_SYSTEM_COLUMNS + i), guessed=i in guessed)
        if images.present is None:
            pieces += [key, value]
        else:
            member = pc.binary_join_element_wise(pa.scalar(",", TEXT), key, value, _EMPTY)
            pieces.append(pc.if_else(pa.array(images.present[i]), member, _EMPTY))
    if images.present is None:
        return pc.binary_join_element_wise(*pieces, pa.scalar("}", TEXT), _EMPTY)
    members = pc.binary_join_element_wise(*pieces[1:], _EMPTY)
    members = pc.cast(pc.binary_slice(pc.cast(members, pa.large_binary()), 1), TEXT)  # without the first comma
    return pc.binary_join_element_wise(pa.scalar("{", TEXT), members, pa.scalar("}", TEXT), _EMPTY)


def _number(values: npt.NDArray[np.int64]) -> pa.Array:
    return pc.cast(pa.array(values), TEXT)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def in_order(parts: list[Lines]) -> Lines:
    """Lines of several tables, in log order."""
    if len(parts) == 1:
        return parts[0]
    ordinals = np.concatenate([part.ordinals for part in parts])
    order = np.argsort(ordinals, kind="stable")
    texts = pa.concat_arrays([part.texts for part in parts])
    return Lines(pc.take(texts, pa.array(order)), ordinals[order])


def as_bytes(texts: pa.Array) -> memoryview:
    """The lines one after the other: the array's own bytes."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if data is None or not len(texts):
        return memoryview(b"")
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
