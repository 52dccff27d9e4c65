"""Places in a lake that name keys, and that an erasure leaves as they are: bounds of ranges that were read or compared.

In:  a lake, a table, keys.
Out: path of a table -> how many of its cells name one of the keys.

A snapshot goes on after its last bound, so bounds can't be taken out; they go by age (maintain.keep_records_days).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from tidegate.erase.subject import Key
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.chunks.chunk_table import chunks_in
from tidegate.snapshot.chunks.spans import key_from_text, spans_from_text
from tidegate.table_names import Physical
from tidegate.tables.snapshot_tables import CHUNKS, SNAPSHOTS, VERIFICATION

Bound = tuple[str, ...]  # SQL literals of a key's columns
_NAMES = ["source", "database", "table"]


def named_keys(lake: LakeFiles, table: Physical, keys: Collection[Key]) -> Mapping[str, int]:
    """Raises LakeUnavailable, StreamCorrupt."""
    counts: dict[str, int] = {}
    for path, bound in _bounds(lake, table):
        if bound is not None and any(_is_of(bound, key) for key in keys):
            counts[path] = counts.get(path, 0) + 1
    return counts


def _bounds(lake: LakeFiles, table: Physical) -> Iterator[tuple[str, Bound | None]]:
    for row in _rows(lake, SNAPSHOTS, table, ["spans"]):
        for span in spans_from_text(row["spans"]):
            yield SNAPSHOTS.path, span.after
            yield SNAPSHOTS.path, span.upto
    for row in _rows(lake, VERIFICATION, table, ["key_after", "key_upto"]):
        yield VERIFICATION.path, key_from_text(row["key_after"])
        yield VERIFICATION.path, key_from_text(row["key_upto"])
    state = lake.log(CHUNKS.path).state()
    for file in state.files if state.created else ():
        if file.action["partitionValues"]["source"] == table.source:
            for chunk in chunks_in(lake, table.source, unquote(file.path)):
                if chunk.name == table.pair:
                    yield CHUNKS.path, chunk.key_after
                    yield CHUNKS.path, chunk.key_upto


def _rows(lake: LakeFiles, of: Any, table: Physical, columns: list[str]) -> list[dict[str, Any]]:
    filters = [(name, "=", value) for name, value in zip(_NAMES, table, strict=True)]
    rows: list[dict[str, Any]] = control.read(lake, of, columns=[*_NAMES, *columns], filters=filters).to_pylist()
    return rows


def _is_of(bound: Bound, key: Key) -> bool:
    return len(bound) == len(key) and all(map(means, bound, key))


def means(literal: str, value: Any) -> bool:
    """Whether a SQL literal may be a value; texts stand in it as they are, or their bytes in hexadecimal digits."""
    if isinstance(value, bytes):
        return value.hex() in literal.lower()
    if isinstance(value, str):
        return value in literal or value.encode().hex() in literal.lower()
    return literal.strip("'").startswith(str(value)) if not isinstance(value, int) else literal == str(value)
