"""Lines of one table as changes with both sides, as they were written: the material of a changelog.

In:  whole lines of data files, as rows.py takes them.
Out: Logged; errors as rows_of has them.

In canal-json an UPDATE's old values are looked up line by line: a column that isn't named there is
unchanged, which a parsed NULL wouldn't show. In csv a D that is marked as part of an update and the
I after it are one change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.columnar.decoded import IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT
from tidegate.config import Protocol
from tidegate.ticdc.rows import RawRows, WantedColumns, raw_rows

_KINDS = {"INSERT": IMAGE_INSERT, "UPDATE": IMAGE_BEFORE, "DELETE": IMAGE_DELETE}
_CSV_KINDS = {"I": IMAGE_INSERT, "U": IMAGE_BEFORE, "D": IMAGE_DELETE}


@dataclass(frozen=True, slots=True)
class LoggedLines:
    """Per change: kind, IMAGE_BEFORE for an update; commit_ts; first, the number of its (first)
    line; the texts of the row that it leaves (of a DELETE, of the row that it takes), and of an
    update's row before. has_new, has_old: bool[columns, changes], whether the line has that.
    """

    kind: npt.NDArray[np.int8]
    commit_ts: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    new: list[pa.Array]
    old: list[pa.Array]
    has_new: npt.NDArray[np.bool_]
    has_old: npt.NDArray[np.bool_]


def logged_of(runs: Sequence[bytes], wanted: WantedColumns) -> LoggedLines:
    """runs: each of one file. Raises SchemaMismatch, StreamCorrupt, UnsupportedValue."""
    raw = raw_rows(runs, wanted)
    if wanted.form.protocol is Protocol.CANAL_JSON:
        return _canal(b"".join(runs), raw, wanted)
    return _csv(raw, wanted)


def _canal(data: bytes, raw: RawRows, wanted: WantedColumns) -> LoggedLines:
    words, names = raw.words.to_pylist(), wanted.names
    count = len(words)
    has_new, has_old = np.ones((len(names), count), np.bool_), np.zeros((len(names), count), np.bool_)
    old: list[list[str | None]] = [[None] * count for _ in names]
    keys = [names.index(name) for name in wanted.key]
    # No line has a line end within: JSON escapes them.
    for number, line in enumerate(data.split(b"\n")[:count]):
        if words[number] == "INSERT":
            continue
        said = json.loads(line)
        if words[number] == "DELETE":
            has_new[:, number] = [name in said["data"][0] for name in names]
            continue
        row, before = said["data"][0], (said["old"] or [{}])[0]
        for at, name in enumerate(names):
            if name in before or at in keys:
                old[at][number], has_old[at, number] = before.get(name, row[name]), True
    kind = np.array([_KINDS[word] for word in words], np.int8)
    texts = [pa.array(cells, pa.string()) for cells in old]
    return LoggedLines(kind, raw.commit_ts, np.arange(count), raw.columns, texts, has_new, has_old)


def _csv(raw: RawRows, wanted: WantedColumns) -> LoggedLines:
    words = raw.words.to_pylist()
    half = raw.is_update.to_pylist() if raw.is_update is not None else [False] * len(words)
    first, last = list[int](), list[int]()
    for number, word in enumerate(words):
        if word == "I" and half[number] and number and words[number - 1] == "D" and half[number - 1]:
            last[-1] = number
        else:
            first.append(number)
            last.append(number)
    begin, end = np.array(first, np.int64), np.array(last, np.int64)
    whole = begin != end
    kind = np.array([_CSV_KINDS[words[number]] for number in first], np.int8)
    kind[whole] = IMAGE_BEFORE
    has_old = np.repeat(whole[np.newaxis], len(wanted.names), axis=0)
    for name in wanted.key:
        has_old[wanted.names.index(name)] |= kind == IMAGE_BEFORE
    new, old = ([column.take(pa.array(at)) for column in raw.columns] for at in (end, begin))
    return LoggedLines(kind, raw.commit_ts[begin], begin, new, old, np.ones_like(has_old), has_old)
