"""Row images as NDJSON: one line per row change, built column by column.

In:  Images of one table (batch.decode_images), and what stands on every line.
Out: a large_string array of lines, newline included, in log order; the ordinal of each.

A line: {"op","database","table","commit_ts","file","pos","before","after"}, and "srid" last where a
geometry has one.
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
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT, Images
from tidegate.log_files.as_json.column import TEXT, ShownJson, json_column
from tidegate.log_files.as_json.geometry import NONE, srid_keys, without_srid
from tidegate.schema.model.type_table import Kind

_OPS: Final = {IMAGE_INSERT: "insert", IMAGE_BEFORE: "update", IMAGE_AFTER: "", IMAGE_DELETE: "delete"}
_SYSTEM_COLUMNS: Final = 4
_EMPTY: Final = pa.scalar("", TEXT)
_NULL: Final = pa.scalar("null", TEXT)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """ordinals: of the (first) image of each line."""

    texts: pa.Array
    ordinals: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LineHead:
    """The common facts of the lines of one table; positions: of the rows event of each image."""

    database: str
    table: str
    file: str


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Per change: IMAGE_INSERT, IMAGE_BEFORE (an update) or IMAGE_DELETE; its first image; both sides as JSON objects,
    null where there is none. ending: the end of a line.
    """

    op: npt.NDArray[np.int8]
    first: npt.NDArray[np.int64]
    before: Any
    after: Any
    ending: Any


def row_changes(images: Images, columns: tuple[ShownJson, ...], *, srids_apart: bool = True) -> RowChanges:
    """columns: the plan's, or the first of them. An object has the columns of its image. srids_apart: the end of a
    line has the SRIDs, and geometries are without; else they are as in silver.
    """
    values, srids = _values(images, columns, srids_apart=srids_apart)
    objects = _objects(images, columns, values)
    codes = images.rows.column(tables.OP).to_numpy()
    first = np.flatnonzero(codes != IMAGE_AFTER)
    op = codes[first]
    last = first + (op == IMAGE_BEFORE)
    before, after = (first, op != IMAGE_INSERT), (last, op != IMAGE_DELETE)
    ending = _ending(srids, before, after)
    return RowChanges(op, first, _side(objects, *before), _side(objects, *after), ending)


def lines_of(
    images: Images, columns: tuple[ShownJson, ...], head: LineHead, positions: npt.NDArray[np.int64]
) -> JsonLines:
    """positions: per image, where its rows event starts in the file."""
    rows = images.rows
    changes = row_changes(images, columns)
    first = changes.first
    names = pa.DictionaryArray.from_arrays(pa.array(changes.op, pa.int8()), pa.array(list(_OPS.values()), TEXT))
    place = f',"database":{_text(head.database)},"table":{_text(head.table)},"commit_ts":'
    texts = pc.binary_join_element_wise(
        pa.scalar('{"op":"', TEXT),
        names.dictionary_decode(),
        pa.scalar('"' + place, TEXT),
        _number(rows.column(tables.COMMIT_TS).to_numpy()[first]),
        pa.scalar(f',"file":{_text(head.file)},"pos":', TEXT),
        _number(positions[first]),
        pa.scalar(',"before":', TEXT),
        changes.before,
        pa.scalar(',"after":', TEXT),
        changes.after,
        changes.ending,
        _EMPTY,
    )
    return JsonLines(texts, rows.column(tables.ORDINAL).to_numpy()[first])


def _side(objects: pa.Array, at: npt.NDArray[np.int64], present: npt.NDArray[np.bool_]) -> Any:
    """The objects at these numbers, `null` where there is none."""
    if not present.any():
        return _NULL
    if len(at) == len(objects) and present.all():
        return objects
    return pc.fill_null(pc.take(objects, pa.array(at, mask=~present)), _NULL)


def _values(
    images: Images, columns: tuple[ShownJson, ...], *, srids_apart: bool
) -> tuple[list[pa.Array], dict[str, npt.NDArray[np.int64]]]:
    """(each column's values; the SRIDs of each geometry column, which its values are without)."""
    values, srids = [], {}
    for i, shown in enumerate(columns):
        array = images.rows.column(_SYSTEM_COLUMNS + i)
        if srids_apart and shown.column.type.kind is Kind.GEOMETRY:
            array, numbers = without_srid(array)
            srids[shown.column.name] = numbers if images.present is None else np.where(images.present[i], numbers, NONE)
        values.append(array)
    return values, srids


def _ending(
    srids: dict[str, npt.NDArray[np.int64]],
    before: tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]],
    after: tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]],
) -> Any:
    """The end of each line. before, after: numbers of the images, and whether they are there."""
    if srids:
        sides = [
            {name: np.where(present, numbers[at], NONE) for name, numbers in srids.items()}
            for at, present in (before, after)
        ]
        keys = srid_keys(*sides)
        if keys is not None:
            return pa.array([key + "}\n" for key in keys], TEXT)
    return pa.scalar("}\n", TEXT)


def _objects(images: Images, columns: tuple[ShownJson, ...], values: list[pa.Array]) -> pa.Array:
    """Each image as a JSON object of the columns that are present in it."""
    pieces: list[Any] = [pa.scalar("{", TEXT)]
    begun = np.zeros(images.rows.num_rows, np.bool_)  # images of which a column was written
    for i, shown in enumerate(columns):
        key, value = _text(shown.column.name) + ":", json_column(shown, values[i])
        if images.present is None:
            pieces += [pa.scalar("," + key if i else key, TEXT), value]
            continue
        present = images.present[i]
        keys = pc.if_else(pa.array(begun), pa.scalar("," + key, TEXT), pa.scalar(key, TEXT))
        pieces.append(pc.if_else(pa.array(present), pc.binary_join_element_wise(keys, value, _EMPTY), _EMPTY))
        begun = begun | present
    return pc.binary_join_element_wise(*pieces, pa.scalar("}", TEXT), _EMPTY)


def _number(values: npt.NDArray[np.int64]) -> pa.Array:
    return pc.cast(pa.array(values), TEXT)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def in_order(parts: list[JsonLines]) -> JsonLines:
    """Lines of several tables, in log order."""
    if len(parts) == 1:
        return parts[0]
    ordinals = np.concatenate([part.ordinals for part in parts])
    order = np.argsort(ordinals, kind="stable")
    texts = pa.concat_arrays([part.texts for part in parts])
    return JsonLines(pc.take(texts, pa.array(order)), ordinals[order])


def as_bytes(texts: pa.Array) -> memoryview:
    """The lines one after the other: the array's own bytes."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if data is None or not len(texts):
        return memoryview(b"")
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
