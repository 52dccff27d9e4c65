"""Reads one file of the value log: by footer, by pointer, or from end to end.

In:  a path. Nothing is written, and no lock is needed: synced records don't change.
Out: records and their places; a torn end, told apart from damage.

A crash leaves a torn end after the last sync. Either the file ends before its last record does, or
its last sectors were never written (zeros). Everything else is damage, and an error with file and
offset: to cut it off would throw promised segments away.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from tidegate.capture.value_log.record import (
    FOOTER_BYTES,
    RECORD,
    RECORD_MAGIC,
    Footer,
    commit_ts_of,
    decode,
    decode_footer,
    decode_head,
    encode_footer,
    head_bytes,
)
from tidegate.errors import ValueLogError
from tidegate.limits import RECORD_HEAD_BYTES_MAX
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment

REMEDY: Final = (
    "check this disk; `tidegate vlog check` tells what else is damaged; restore the file, or move the log's folder"
    " away: capture then asks the source again for what bronze lacks"
)
_SECTOR_BYTES: Final = 512
_REST_BYTES_MIN: Final = 64  # of a last, incomplete sector: fewer zeros may belong to a payload
_CHUNK_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 8192  # most records have their whole head in here, with its spaces
_MAGIC: Final = RECORD_MAGIC.to_bytes(4, "little")


class Pointer(NamedTuple):
    """The place of a record: number of its file, offset in it, bytes with the 16 bytes of its
    frame.
    """

    file: int
    offset: int
    bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a file that aren't the written ones. next: where the next good record begins."""

    path: Path
    offset: int
    what: str
    next: int

    def error(self) -> ValueLogError:
        return ValueLogError(self.what, where=f"{self.path}:{self.offset}", remedy=REMEDY)


@dataclass(frozen=True, slots=True)
class Torn:
    """Torn bytes after the last record, from a crash. They are cut off when the log is opened."""

    path: Path
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Record:
    """A good record. Its segment has context and payload only if they were asked for."""

    pointer: Pointer
    segment: Segment


@dataclass(frozen=True, slots=True)
class End:
    """The end of a file: the footer of a full file."""

    offset: int
    footer: Footer | None


class LogFile:
    """A file of the log, open for reading."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.number = file_number(path)
        self.bytes = os.fstat(descriptor).st_size
        self._descriptor = descriptor

    def at(self, offset: int, count: int) -> bytes:
        """Up to count bytes. Raises ValueLogError if the disk can't read them."""
        try:
            return os.pread(self._descriptor, count, offset)
        except OSError as error:
            raise ValueLogError(
                f"can't be read: {error.strerror}", where=f"{self.path}:{offset}", remedy=REMEDY
            ) from error

    def footer(self) -> Footer:
        """The footer of a full file. Raises ValueLogError."""
        footer = decode_footer(self.at(max(self.bytes - FOOTER_BYTES, 0), FOOTER_BYTES))
        if footer is None:
            at = max(self.bytes - FOOTER_BYTES, 0)
            raise Damage(self.path, at, "the file isn't the last one, and its footer is damaged", at).error()
        return footer

    def segment(self, pointer: Pointer) -> Segment:
        """The segment at a pointer, with all its bytes. Raises ValueLogError if they aren't the
        written ones.
        """
        judged = self._judge(pointer.offset, whole=True, last=False)
        if not isinstance(judged, Record) or judged.pointer != pointer:
            damage = judged if isinstance(judged, Damage) else None
            what = damage.what if damage else "no record of this length begins here"
            raise Damage(self.path, pointer.offset, what, pointer.end).error()
        return judged.segment

    def heads(self, offset: int = 0) -> Iterator[Record]:
        """Records from an offset on, without context and payload, and without a checksum test: to
        find places. Raises ValueLogError.
        """
        while offset < self.bytes:
            if self.bytes - offset == FOOTER_BYTES and decode_footer(self.at(offset, FOOTER_BYTES)):
                return
            head = self._head(offset)
            if isinstance(head, Torn):
                return
            if isinstance(head, Damage):
                raise head.error()
            yield head
            offset = head.pointer.end

    def walk(self, *, last: bool, whole: bool = False) -> Iterator[Record | Damage | Torn | End]:
        """Everything in the file, with every checksum compared, then an End. last: this is the last
        file, so it may lack a footer, or be torn.
        """
        offset, newest, seq, damaged = 0, 0, 0, False
        while True:
            part = self._judge(offset, whole=whole, last=last, newest=newest, seq=0 if damaged else seq)
            yield part
            if isinstance(part, End):
                return
            if isinstance(part, Torn):
                yield End(part.offset, None)
                return
            if isinstance(part, Damage):
                offset, damaged = part.next, True
                if offset >= self.bytes:
                    yield End(offset, None)
                    return
            else:
                offset = part.pointer.end
                newest, seq = max(newest, commit_ts_of(part.segment)), part.segment.seq

    # --- one place of the file ----------------------------------------------------------------------------

    def _judge(
        self, offset: int, *, whole: bool, last: bool, newest: int = 0, seq: int = 0
    ) -> Record | Damage | Torn | End:
        """The record at an offset, checksum compared."""
        rest = self.bytes - offset
        if rest == 0:
            return End(offset, None) if last else self._damage(offset, "the file isn't the last one, and has no footer")
        if 0 < rest <= FOOTER_BYTES:
            return self._tail(offset, last=last, newest=newest, seq=seq)
        head = self._head(offset)
        if isinstance(head, Torn | Damage):
            if last and isinstance(head, Damage) and self._unwritten(offset):
                return Torn(self.path, offset, rest)
            return head if last or isinstance(head, Damage) else self._damage(offset, "a record is cut short")
        payload = self.at(offset + RECORD.size, head.pointer.bytes - RECORD.size)
        if crc32c(payload) != RECORD.unpack(self.at(offset, RECORD.size))[2]:
            if last and self._unwritten(offset):
                return Torn(self.path, offset, rest)
            return self._damage(offset, "a record's checksum is wrong")
        return Record(head.pointer, decode(payload)) if whole else head

    def _head(self, offset: int) -> Record | Damage | Torn:
        """The record at an offset, by its two lengths. Torn if the file ends before the record
        does.
        """
        rest = self.bytes - offset
        start = self.at(offset, RECORD.size + _HEAD_BYTES)
        if len(start) < RECORD.size:
            return Torn(self.path, offset, rest)
        magic, length, _ = RECORD.unpack_from(start)
        if magic != RECORD_MAGIC:
            return self._damage(offset, "no record begins here")
        start = start[RECORD.size :]
        if len(start) >= 4 and head_bytes(start) > len(start):
            start = self.at(offset + RECORD.size, min(head_bytes(start), RECORD_HEAD_BYTES_MAX))
        try:
            head = decode_head(start)
        except ValueError:
            return self._damage(offset, "a record's header is damaged")
        if head is None:
            # Is it the file that ends in here, or is a length wrong?
            ends = rest < RECORD.size + 4 or rest - RECORD.size < head_bytes(start) <= RECORD_HEAD_BYTES_MAX
            if ends and length > rest - RECORD.size:
                return Torn(self.path, offset, rest)
            return self._damage(offset, "a record's length is damaged")
        if head.bytes != length:
            return self._damage(offset, "a record's length is damaged")
        if RECORD.size + length > rest:
            return Torn(self.path, offset, rest)
        return Record(Pointer(self.number, offset, RECORD.size + length), head.segment)

    def _tail(self, offset: int, *, last: bool, newest: int, seq: int) -> Damage | Torn | End:
        """The last bytes, too few for a record: a footer, or the beginning of one or of a record."""
        data = self.at(offset, FOOTER_BYTES)
        footer = decode_footer(data)
        if footer is not None:
            if seq and footer != Footer(newest, seq):
                return self._damage(offset, "the footer isn't this file's")
            return End(self.bytes, footer)
        cut = len(data) < FOOTER_BYTES and any(
            whole.startswith(data) for whole in (encode_footer(Footer(newest, seq)), _MAGIC)
        )
        if last and (cut or data.startswith(_MAGIC) or not any(data)):
            return Torn(self.path, offset, len(data))
        return self._damage(offset, "the footer is damaged")

    def _unwritten(self, offset: int) -> bool:
        """Whether a sector after offset was never written, and no good record follows: a crash before the sync."""
        if self._next_record(offset + 1) < self.bytes:
            return False
        first = offset // _SECTOR_BYTES * _SECTOR_BYTES
        data = np.frombuffer(self.at(first, self.bytes - first), np.uint8)
        whole = data[: data.size // _SECTOR_BYTES * _SECTOR_BYTES].reshape(-1, _SECTOR_BYTES)
        rest = data[whole.size :]
        return bool((~whole.any(axis=1)).any()) or (rest.size >= _REST_BYTES_MIN and not rest.any())

    def _damage(self, offset: int, what: str) -> Damage:
        return Damage(self.path, offset, what, self._next_record(offset + 1))

    def _next_record(self, offset: int) -> int:
        """Where the next good record or the footer begins, or where the file ends."""
        end = self.bytes
        if end - FOOTER_BYTES >= offset and decode_footer(self.at(end - FOOTER_BYTES, FOOTER_BYTES)):
            end -= FOOTER_BYTES
        at = offset
        while at < end:
            chunk = self.at(at, _CHUNK_BYTES + len(_MAGIC) - 1)
            hit = chunk.find(_MAGIC)
            if hit < 0:
                at += _CHUNK_BYTES
                continue
            at += hit
            if self._good(at):
                return at
            at += 1
        return end

    def _good(self, offset: int) -> bool:
        """Whether a record with the right checksum lies here."""
        start = self.at(offset, RECORD.size)
        if len(start) < RECORD.size:
            return False
        _, length, crc = RECORD.unpack(start)
        if length > self.bytes - offset - RECORD.size:
            return False
        return crc32c(self.at(offset + RECORD.size, length)) == int(crc)


def file_number(path: Path) -> int:
    """The number in `000042.vlog`. Raises ValueLogError for another name."""
    try:
        return int(path.stem)
    except ValueError as error:
        raise ValueLogError(
            "isn't a file of a value log", where=str(path), remedy="they are called 000001.vlog, 000002.vlog ..."
        ) from error


@contextmanager
def opened(path: Path) -> Iterator[LogFile]:
    """Raises ValueLogError."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise ValueLogError(f"can't be opened: {error.strerror}", where=str(path), remedy=REMEDY) from error
    try:
        yield LogFile(path, descriptor)
    finally:
        os.close(descriptor)
