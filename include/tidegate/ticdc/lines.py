r"""Where the lines of a data file begin and end, and the commit_ts of each.

In:  bytes of a file from a line's beginning on.
Out: Lines: those that are whole. StreamCorrupt for one without a commit_ts.

In canal-json a line is an object; in csv a record, perhaps with line breaks in quotes. Only the
commit_ts of a line is read: segments are cut by it. It is found by its key `"_tidb":{"commitTs":`.
No row's text contains that: there each quote has a backslash before it, and no column has an object
as its value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.config import Csv, Protocol
from tidegate.errors import StreamCorrupt
from tidegate.ticdc.pieces import Form

Numbers = npt.NDArray[np.int64]

_LINE_END: Final = 10
_CANAL_TS: Final = re.compile(rb'"_tidb":\{"commitTs":(\d{1,19})[,}]')
_HEADER: Final = b"ticdc-meta$operation"
_CSV_REMEDY: Final = (
    "set include-commit-ts = true in sink.csv of the changefeed, a delimiter and a quote of one character each, and say"
    " them as csv.delimiter and csv.quote in the pipeline file"
)
HEADER_TS: Final = 0  # given to a csv file's first line, if it names the columns


@dataclass(frozen=True, slots=True)
class Lines:
    """Line n is data[starts[n]:starts[n + 1]], with its end mark: starts has one number more than there are lines."""

    starts: Numbers
    commit_ts: Numbers

    @property
    def used(self) -> int:
        """Bytes of whole lines."""
        return int(self.starts[-1])


def split(form: Form, data: bytes, where: str) -> Lines:
    """where: the file, for errors. Raises StreamCorrupt."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_END) + 1
    if form.protocol is Protocol.CANAL_JSON:
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        return Lines(starts, _canal(data, starts, where))
    # A record ends with the line before whose end the number of quotes is even: a quote within a text is doubled.
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(form.csv.quote))
    ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    return Lines(starts, _csv(form.csv, data, starts, where))


def unended_ts(form: Form, data: bytes) -> int:
    """The commit_ts of a line without an end; 0 if it has none."""
    match = _CANAL_TS.search(data) if form.protocol is Protocol.CANAL_JSON else head_pattern(form.csv).match(data)
    return int(match[match.re.groups]) if match else 0


def _canal(data: bytes, starts: Numbers, where: str) -> Numbers:
    stamps = [(match.start(), int(match[1])) for match in _CANAL_TS.finditer(data, 0, int(starts[-1]))]
    at = np.array([place for place, _ in stamps], np.int64)
    if len(at) != len(starts) - 1 or bool(np.any((at < starts[:-1]) | (at >= starts[1:]))):
        having = set((np.searchsorted(starts, at, side="right") - 1).tolist())
        number = next((n for n in range(len(starts) - 1) if n not in having), 0)
        raise _untimed(starts, number, where, "set enable-tidb-extension=true in the sink URI of the changefeed")
    return np.array([commit_ts for _, commit_ts in stamps], np.int64)


def _csv(csv: Csv, data: bytes, starts: Numbers, where: str) -> Numbers:
    head = head_pattern(csv)
    stamps = np.empty(len(starts) - 1, np.int64)
    for number in range(len(starts) - 1):
        match = head.match(data, int(starts[number]), int(starts[number + 1]))
        if match is not None:
            stamps[number] = int(match[4])
        elif number == 0 and data.startswith(_HEADER):
            stamps[number] = HEADER_TS
        else:
            raise _untimed(starts, number, where, _CSV_REMEDY)
    return stamps


@lru_cache(maxsize=16)
def head_pattern(csv: Csv) -> re.Pattern[bytes]:
    """The beginning of a record: operation, table, database, commit_ts."""
    quote, delimiter = re.escape(csv.quote.encode()), re.escape(csv.delimiter.encode())
    name = rb"%b((?:[^%b]|%b%b)*)%b" % (quote, quote, quote, quote, quote)
    return re.compile(
        rb"%b([IUD])%b" % (quote, quote) + (delimiter + name) * 2 + delimiter + rb"(\d{1,19})" + delimiter
    )


def _untimed(starts: Numbers, number: int, where: str, remedy: str) -> StreamCorrupt:
    count = int(starts[number + 1]) - int(starts[number])
    return StreamCorrupt(
        f"line {number + 1}, of {count} bytes, has no commit_ts",
        where=where,
        remedy=f"{remedy}, and let it write to a new path for a new lake",
    )
