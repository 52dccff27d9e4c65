"""The data files of one folder by one writer, as a stream of lines.

In:  the folder's files, in order of their numbers; the commit_ts up to which all is captured.
Out: the next lines with their commit_ts, some megabytes at a time; runs of them as pieces of a
     segment.

TiCDC writes a table's rows in order of commit_ts, and after a restart begins again somewhere at or
below its checkpoint. Where one line is at or below a commit_ts and the next one is above it, all
later lines therefore stand after that place, once or more often: capture needs no other memory
than its commit_ts. A run that begins finds the place by the first lines of some files.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.changefeed.storage_path import Storage
from tidegate.errors import SourceRefused, StreamCorrupt
from tidegate.limits import TICDC_COMMIT_BYTES_MAX, TICDC_FIRST_LINE_BYTES
from tidegate.remedy import REPORT
from tidegate.ticdc.layout import DataName, data_name
from tidegate.ticdc.lines import Lines, split, unended_ts
from tidegate.ticdc.pieces import Form, Piece

LINE_ENDS: Final = "sink.terminator of the changefeed has to end with a line break, as it does when it isn't set"
_EMPTY: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    number: int
    size: int


@dataclass(slots=True)
class _Chunk:
    """Whole lines of one file; given: lines that were taken, or are captured."""

    path: str
    offset: int
    data: bytes
    lines: Lines
    given: npt.NDArray[np.bool_]


class Stream:
    """folder: below the path of the changefeed. name: of its table."""

    def __init__(self, storage: Storage, form: Form, folder: str, writer: str, name: tuple[str, str]) -> None:
        self.folder, self.writer, self.name = folder, writer, name
        self._storage, self._form = storage, form
        self._files: list[_File] = []  # the one that is read, and those after it
        self._width = 0
        self._offset = 0  # of the first byte of the first file that wasn't read
        self._chunks: list[_Chunk] = []
        self._began = False
        self.unended_ts = 0  # of a last line that has no end; 0: none

    @property
    def where(self) -> str:
        return f"{self._storage.where}/{self.folder}"

    @property
    def last_name(self) -> str:
        """Files are asked for from this name on, exclusive: the last known one may have grown. "" for all."""
        if not self._files or DataName("", self._files[-1].number, self._width).last_of_width:
            return ""
        return self._files[-1].name.rpartition(".")[0]

    def stands_in(self, files: Mapping[str, int]) -> bool:
        """Whether the last known file is one of these."""
        return not self._files or self._files[-1].name in files

    def check_stands_in(self, files: Mapping[str, int]) -> None:
        """Raises SourceRefused where the last known file is gone, and others are there: they aren't its successors."""
        others = [name for name in sorted(files) if (said := data_name(name)) and said.writer == self.writer]
        if others and not self.stands_in(files):
            raise SourceRefused(
                f"data file {self._files[-1].name} is gone, and {others[0]} is there: it was removed, and another"
                " changefeed may write here now",
                where=f"{self._storage.where}/{self.folder}",
                remedy="give a changefeed that begins anew a new path and a new lake",
            )

    def found(self, files: dict[str, int], captured_ts: int) -> None:
        """Take in what a look has found. Raises SourceRefused when a file is missing."""
        known = {file.number: at for at, file in enumerate(self._files)}
        for name, size in sorted(files.items(), key=lambda named: _number(named[0])):
            said = data_name(name)
            if said is None or said.writer != self.writer or not size:
                continue
            self._width = max(self._width, said.width)
            file = _File(name, said.number, size)
            if said.number in known:
                self._files[known[said.number]] = file
            elif not self._files or said.number > self._files[-1].number:
                self._check_follows(file)
                self._files.append(file)
        if not self._began and self._files:
            self._begin(captured_ts)

    def _check_follows(self, file: _File) -> None:
        if self._files and file.number != self._files[-1].number + 1:
            raise self._missing(self._files[-1].number + 1)

    def _missing(self, number: int) -> SourceRefused:
        return SourceRefused(
            f"data file {number} is missing, and later ones are there",
            where=f"{self._storage.where}/{self.folder}",
            remedy="nobody but TiCDC may remove files that aren't captured: give it a new path and a new lake",
        )

    def _begin(self, captured_ts: int) -> None:
        """Leave out files before the last one that begins at or below the captured position."""
        self._began = True
        at = bisect_left(self._files, captured_ts + 1, key=self._first_ts)
        if at == 0 and self._files[0].number != 1:
            raise self._missing(self._files[0].number - 1)
        self._files = self._files[max(at - 1, 0) :]

    def _first_ts(self, file: _File) -> int:
        path, size = f"{self.folder}/{file.name}", TICDC_FIRST_LINE_BYTES
        while True:
            data = self._storage.part(path, 0, min(size, file.size))
            stamps = split(self._form, data, path).commit_ts
            stamps = stamps[stamps > 0]
            if len(stamps) or size >= file.size:
                return int(stamps[0]) if len(stamps) else 0
            size *= 4

    # --- lines -------------------------------------------------------------------------------------

    @property
    def more(self) -> bool:
        """Whether there are bytes that weren't read."""
        return bool(self._files) and (len(self._files) > 1 or self._offset < self._files[0].size)

    @property
    def held_bytes(self) -> int:
        return sum(len(chunk.data) for chunk in self._chunks)

    @property
    def is_done(self) -> bool:
        """Whether all that was found is given."""
        return not self._chunks and not self.more

    @property
    def last_ts(self) -> int:
        """The largest commit_ts read so far: unread lines are there or above, unless they are repeated ones."""
        return max((int(chunk.lines.commit_ts.max()) for chunk in self._chunks), default=0)

    def waiting(self, after_ts: int, upto_ts: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """commit_ts and sizes of the lines in (after_ts, upto_ts]."""
        stamps, sizes = [_EMPTY], [_EMPTY]
        for chunk in self._chunks:
            wanted = _inside(chunk, after_ts, upto_ts)
            stamps.append(chunk.lines.commit_ts[wanted])
            sizes.append(np.diff(chunk.lines.starts)[wanted])
        return np.concatenate(stamps), np.concatenate(sizes)

    def fill(self, size: int) -> None:
        """Read some more bytes, at least a line. Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
        while len(self._files) > 1 and self._offset >= self._files[0].size:
            del self._files[0]
            self._offset = 0
        file = self._files[0]
        path, size = f"{self.folder}/{file.name}", max(size, 1)
        self.unended_ts = 0
        while self._offset < file.size:
            end = min(self._offset + size, file.size)
            data = self._storage.part(path, self._offset, end)
            lines = split(self._form, data, f"{self._storage.where}/{path}")
            if lines.used:
                chunk = _Chunk(path, self._offset, data[: lines.used], lines, np.zeros(len(lines.commit_ts), np.bool_))
                self._chunks.append(chunk)
                self._offset += lines.used
                return
            if end == file.size:
                if len(self._files) > 1:
                    raise StreamCorrupt("its last line is cut off", where=path, remedy=f"{REPORT}; {LINE_ENDS}")
                self.unended_ts = unended_ts(self._form, data)
                self._files[0] = _File(file.name, file.number, self._offset)  # it is being written: looked at again
                return
            if size >= TICDC_COMMIT_BYTES_MAX:
                raise StreamCorrupt("a line is longer than 1 GiB", where=path, remedy="leave its table out")
            size *= 4

    def take(self, after_ts: int, upto_ts: int) -> list[tuple[Piece, bytes]]:
        """The lines in (after_ts, upto_ts], in runs as they stand; what is at or below upto_ts is forgotten."""
        pieces: list[tuple[Piece, bytes]] = []
        for chunk in self._chunks:
            wanted = _inside(chunk, after_ts, upto_ts)
            edges = np.flatnonzero(np.diff(wanted.astype(np.int8), prepend=0, append=0))
            for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                start, end = int(chunk.lines.starts[first]), int(chunk.lines.starts[last])
                pieces.append((Piece(chunk.path, chunk.offset + start, end - start, *self.name), chunk.data[start:end]))
            chunk.given |= chunk.lines.commit_ts <= upto_ts
        self._chunks = [chunk for chunk in self._chunks if not chunk.given.all()]
        return pieces


def _inside(chunk: _Chunk, after_ts: int, upto_ts: int) -> npt.NDArray[np.bool_]:
    stamps = chunk.lines.commit_ts
    return (stamps > after_ts) & (stamps <= upto_ts) & ~chunk.given


def _number(name: str) -> int:
    said = data_name(name)
    return said.number if said else 0
