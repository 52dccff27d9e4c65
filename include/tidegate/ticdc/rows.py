"""Lines of one table as texts: operations, commit_ts, and a column of texts for each of the table's.

In:  whole lines of data files, all with the columns of one table version.
Out: Rows; SchemaMismatch where the lines have other columns, StreamCorrupt where they are no lines
     of the protocol.

pyarrow's readers parse them, every value as text. They read a column that a JSON line lacks as
NULL. Therefore the names in one line of each operation are compared with the version's. That is
enough for a file: TiCDC begins another file for another definition of the table. An UPDATE that
changes the key becomes a delete of the old row, and the new row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from tidegate.config import Protocol
from tidegate.errors import SchemaMismatch, StreamCorrupt, UnsupportedValue
from tidegate.remedy import REFILL, REPORT
from tidegate.tables import OP_DELETE, OP_UPSERT
from tidegate.ticdc.pieces import Form

_INSERT, _UPDATE, _DELETE = "INSERT", "UPDATE", "DELETE"
_TYPE: Final = '"isDdl":false,"type":"'  # as the encoder writes it; no column's value is false without quotes
_OPERATION, _STAMP = "operation", "commit_ts"
_CR, _LF = 13, 10
_BEGIN_NUMBERS: Final = np.isin(np.arange(256), np.frombuffer(b"+-.0123456789", np.uint8))
_BLOCK_BYTES: Final = 1 << 18
_LAST_IMAGE: Final = "leave the table out of {}, or set delete-only-output-handle-key-columns = false"


@dataclass(frozen=True, slots=True)
class Rows:
    """op: OP_UPSERT or OP_DELETE. commit_ts: int64. columns: a string array for each wanted name."""

    op: npt.NDArray[np.int8]
    commit_ts: npt.NDArray[np.int64]
    columns: list[pa.Array]


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """names: the columns that the files have, in their order. key: those of the key. whole_deletes:
    the key of the pipeline file for whole rows in deletes; "" for none.
    """

    form: Form
    names: Sequence[str]
    key: Sequence[str]
    whole_deletes: str


@dataclass(frozen=True, slots=True)
class RawRows:
    """One entry per line. words: INSERT, UPDATE or DELETE; in csv I, U or D. is_update: in csv,
    whether the line is half of an update. old: in canal-json the values before, if any line has
    some.
    """

    words: pa.Array
    commit_ts: npt.NDArray[np.int64]
    columns: list[pa.Array]
    old: list[pa.Array] | None = None
    is_update: pa.Array | None = None


def rows_of(runs: Sequence[bytes], wanted: WantedColumns) -> Rows:
    """runs: each of one file. Raises SchemaMismatch, StreamCorrupt, UnsupportedValue."""
    raw = raw_rows(runs, wanted)
    deleted = pc.is_in(raw.words, pa.array([_DELETE, "D"])).to_numpy(zero_copy_only=False)
    op = np.where(deleted, OP_DELETE, OP_UPSERT).astype(np.int8)
    rows = Rows(op, raw.commit_ts, raw.columns)
    return _split(rows, raw.old, wanted) if raw.old is not None else rows


def raw_rows(runs: Sequence[bytes], wanted: WantedColumns) -> RawRows:
    """The lines, unchanged. Raises what rows_of does."""
    try:
        return _canal(runs, wanted) if wanted.form.protocol is Protocol.CANAL_JSON else _csv(runs, wanted)
    except pa.ArrowInvalid as error:
        what = str(error).splitlines()[0][:200]
        raise StreamCorrupt(f"lines can't be read: {what}", remedy=REFILL.after(REPORT)) from None


# --- canal-json ----------------------------------------------------------------------------------------


def _canal(runs: Sequence[bytes], wanted: WantedColumns) -> RawRows:
    has_old = False
    for run in runs:
        has_old |= _check_names(run, wanted)
    data = b"".join(runs)
    image = pa.list_(pa.struct([(name, pa.string()) for name in wanted.names]))
    fields = [("type", pa.string()), ("data", image), ("_tidb", pa.struct([("commitTs", pa.int64())]))]
    table = pajson.read_json(
        io.BytesIO(data),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema([*fields, ("old", image)] if has_old else fields),
            unexpected_field_behavior="ignore",
        ),
    ).combine_chunks()
    kinds = _one(table["type"])
    known = pc.is_in(kinds, pa.array([_INSERT, _UPDATE, _DELETE]))
    if not pc.all(known).as_py():
        raise StreamCorrupt("a line is neither INSERT, UPDATE nor DELETE", remedy=REPORT)
    stamps = pc.struct_field(_one(table["_tidb"]), "commitTs").to_numpy()
    old = _image(table["old"], wanted.names) if has_old else None
    return RawRows(kinds, stamps, _image(table["data"], wanted.names), old)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _image(column: pa.ChunkedArray, names: Sequence[str]) -> list[pa.Array]:
    """The first object of each list; NULLs where there is no list."""
    lists = _one(column)
    objects = pc.list_element(pc.if_else(pc.equal(pc.list_value_length(lists), 1), lists, _no_object(lists.type)), 0)
    return [pc.struct_field(objects, [at]) for at in range(len(names))]


def _no_object(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar([None], kind)


def _check_names(data: bytes, wanted: WantedColumns) -> bool:
    """Whether the lines have the version's columns; True when an UPDATE among them tells old
    values.

    Raises SchemaMismatch, StreamCorrupt, UnsupportedValue.
    """
    has_old = False
    first = list(_first_of_each(data))
    if not first:
        raise StreamCorrupt("no line is an INSERT, UPDATE or DELETE of a row", remedy=REPORT)
    for line in first:
        message = json.loads(line)
        names = set(message["data"][0])
        bare = message["type"] == _DELETE and names < set(wanted.names) and names >= set(wanted.key)
        if bare and wanted.whole_deletes:
            word = wanted.whole_deletes
            what = f"a deleted row has its key alone (delete-only-output-handle-key-columns), and {word} keeps all"
            raise UnsupportedValue(what, remedy=REFILL.after(_LAST_IMAGE.format(word)))
        if names != set(wanted.names) and not bare:
            raise _other(sorted(names), sorted(wanted.names))
        has_old = has_old or message["type"] == _UPDATE
    return has_old


def _first_of_each(data: bytes) -> Iterator[bytes]:
    for kind in (_INSERT, _UPDATE, _DELETE):
        at = data.find(f"{_TYPE}{kind}".encode())
        if at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            yield data[start : end if end >= 0 else len(data)]


def _other(written: Sequence[str], known: Sequence[str]) -> SchemaMismatch:
    return SchemaMismatch(
        f"lines have columns {', '.join(written)}; schema_history has {', '.join(known)}", remedy=REFILL
    )


def _split(rows: Rows, old: list[pa.Array], wanted: WantedColumns) -> Rows:
    """Deletes of the keys that UPDATEs change, each before its line."""
    moved = np.zeros(len(rows.op), np.bool_)
    for name in wanted.key:
        at = wanted.names.index(name)
        differs = pc.fill_null(pc.not_equal(old[at], rows.columns[at]), fill_value=False)
        moved |= differs.to_numpy(zero_copy_only=False)
    if not moved.any():
        return rows
    if wanted.whole_deletes:
        what = "an UPDATE changes the key, and what was in the old row's other columns isn't sure"
        raise UnsupportedValue(what, remedy=REFILL.after("set output-raw-change-event = false in the changefeed"))
    order = np.sort(np.concatenate([np.arange(len(moved)), np.flatnonzero(moved)]))
    first = np.concatenate([np.ones(1, np.bool_), order[1:] != order[:-1]]) & moved[order]
    take, before = pa.array(order), pa.array(first)
    columns = [
        pc.if_else(before, pc.coalesce(was, now).take(take), now.take(take))
        for was, now in zip(old, rows.columns, strict=True)
    ]
    op = np.where(first, OP_DELETE, rows.op[order]).astype(np.int8)
    return Rows(op, rows.commit_ts[order], columns)


# --- csv -----------------------------------------------------------------------------------------------


def _csv(runs: Sequence[bytes], wanted: WantedColumns) -> RawRows:
    csv = wanted.form.csv
    more = ["is_update"] * csv.old_value + ["handle_key"] * csv.handle_key
    head = [_OPERATION, "table", "schema", _STAMP, *more]
    names = [*head, *(f"c{at}" for at in range(len(wanted.names)))]
    for run in runs:
        _check_width(run, wanted, len(names))
    data = b"".join(runs)
    _check_unquoted(data, wanted)
    types: dict[str, Any] = {**dict.fromkeys(names, pa.string()), _STAMP: pa.int64()}
    table = pacsv.read_csv(
        io.BytesIO(data),
        read_options=pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        parse_options=pacsv.ParseOptions(
            delimiter=csv.delimiter, quote_char=csv.quote, double_quote=True, newlines_in_values=True
        ),
        convert_options=pacsv.ConvertOptions(
            column_types=types, null_values=[csv.null], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    ).combine_chunks()
    columns = [_one(table[name]) for name in names[len(head) :]]
    half = pc.equal(_one(table["is_update"]), "true") if csv.old_value else None
    return RawRows(_one(table[_OPERATION]), _one(table[_STAMP]).to_numpy(), columns, is_update=half)


def _check_width(data: bytes, wanted: WantedColumns, width: int) -> None:
    """Check the first record: pyarrow's own error would give only a count of fields. Raises
    SchemaMismatch.
    """
    csv, fields, quoted = wanted.form.csv, 1, False
    for character in data.decode("utf-8", "replace"):
        if character == csv.quote:
            quoted = not quoted
        elif not quoted and character == csv.delimiter:
            fields += 1
        elif not quoted and character == "\n":
            break
    if fields != width:
        what = f"lines have {fields} fields, {width} are expected for columns {', '.join(wanted.names)}"
        remedy = REFILL.after("say csv.old_value and csv.handle_key as the changefeed's sink.csv does")
        raise SchemaMismatch(what, remedy=remedy)


def _check_unquoted(data: bytes, wanted: WantedColumns) -> None:
    """Check that only NULL, numbers and the update flag are without quotes, as TiCDC writes them:
    another mark of NULL would be taken for a text. Raises StreamCorrupt.

    In blocks: whole, it would take twenty times the data's memory.
    """
    csv, cells = wanted.form.csv, np.frombuffer(data, np.uint8)
    quoted, is_end, is_delimiter = np.uint8(0), True, False  # at the byte before a block
    for start in range(0, len(cells), _BLOCK_BYTES):
        block = cells[start : start + _BLOCK_BYTES]
        quotes = block == ord(csv.quote)
        inside = np.bitwise_xor.accumulate(quotes.view(np.uint8)) ^ quoted
        outside = (inside == 0) & ~quotes
        delimiters = outside & (block == ord(csv.delimiter))
        ends = delimiters | (outside & ((block == _CR) | (block == _LF)))
        begins = outside & ~ends & np.concatenate(([is_end], ends[:-1])) & ~_BEGIN_NUMBERS[block]
        empty = ends & np.concatenate(([is_delimiter], delimiters[:-1]))
        at = start + np.flatnonzero(begins)
        wrong = np.concatenate([start + np.flatnonzero(empty), at[~_are_words(cells, at, (csv.null, "true", "false"))]])
        if len(wrong):
            raise StreamCorrupt(
                f"byte {int(wrong[0])} begins a value without quotes that is neither a number nor NULL, whose mark is"
                f" {csv.null!r} here",
                remedy=REFILL.after("set csv.null, csv.quote and csv.delimiter as in the changefeed's sink.csv"),
            )
        quoted, is_end, is_delimiter = inside[-1], bool(ends[-1]), bool(delimiters[-1])


def _are_words(cells: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], words: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether one of these words begins at each place. (The last byte is a line end, which no word has.)"""
    known = np.zeros(len(at), np.bool_)
    for word in words:
        same = np.ones(len(at), np.bool_)
        for number, byte in enumerate(word.encode()):
            same &= cells[np.minimum(at + number, len(cells) - 1)] == byte
        known |= same
    return known
