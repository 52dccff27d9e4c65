"""The value log: segments on this machine's disk, durable before anything else is done with them.

In:  segments in order of seq.
Out: the same segments after a crash, up to the last complete record: by pointer, or from one on.

Files 000001.vlog, 000002.vlog ... (record.py: their bytes; file.py: reading one). append writes. sync makes all
appends since the last sync durable; only then a segment counts as captured. Opening reads the footers of full
files, and scans the last file for its true end: a torn end is cut off, since nothing after the last sync was
promised. Reading needs no lock: synced records don't change, and gc only deletes records that bronze
has.

A file is completed by size or by age, so rows of a quiet source leave this disk soon after they landed.

The disk is never filled: a record beyond the budget, or into the free reserve, isn't begun.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from tidegate.capture.value_log.appender import Appender, Bytes
from tidegate.capture.value_log.file import REMEDY, Damage, End, Pointer, Record, Torn, file_number, opened
from tidegate.capture.value_log.folder import LOCK, fenced, log_id, make_folder
from tidegate.capture.value_log.kept_head import keep_tail, kept_tail
from tidegate.capture.value_log.record import FOOTER_BYTES, Footer, commit_ts_of, encode, encode_footer
from tidegate.delta.stores.store import sync
from tidegate.errors import ValueLogError, ValueLogFull
from tidegate.failpoint import failpoint
from tidegate.limits import VALUE_LOG_FILE_BYTES, VALUE_LOG_FILE_SECONDS
from tidegate.segments.segment import Segment

log = logging.getLogger(__name__)

_GO_ON: Final = (
    "nothing that was captured is lost: bring the lake back, or make room here, or raise capture.value_log_bytes_max;"
    " capture then goes on by itself, if the source still has its binlog"
)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Budget:
    """The log's budget: at most bytes_max (None: no bound), and only while reserve_bytes of the disk stay free."""

    bytes_max: int | None = None
    reserve_bytes: int = 0


@dataclass(slots=True)
class _File:
    """A file of the log, and what gc must know of its content.

    begun_at: when its first segment was cut. tail: the head of its newest segment with bytes. Both
    are None if there is none, or if only the file's footer was read.
    """

    path: Path
    number: int
    bytes: int = 0
    synced_bytes: int = 0
    max_commit_ts: int = 0
    last_seq: int = 0
    complete: bool = False
    newest: Segment | None = None  # of the last file, as found when it was opened; without context and payload
    begun_at: datetime | None = None
    tail: Segment | None = None

    def take(self, segment: Segment) -> None:
        """This segment is in the file now."""
        self.max_commit_ts = max(self.max_commit_ts, commit_ts_of(segment))
        self.last_seq = segment.seq
        self.begun_at = self.begun_at or segment.captured_at
        if segment.has_bytes:
            self.tail = replace(segment, context=b"", payload=b"")

    def is_old(self, at: datetime) -> bool:
        """Whether it has had its rows for too long. A clock that was set back makes it old, too."""
        return self.begun_at is not None and abs((at - self.begun_at).total_seconds()) >= VALUE_LOG_FILE_SECONDS


class ValueLog:
    """One source's value log; at most one process has it open (flock)."""

    def __init__(self, folder: Path, *, file_bytes: int = VALUE_LOG_FILE_BYTES, budget: Budget | None = None) -> None:
        self.folder = folder
        self.budget = budget or Budget()
        # gc frees whole files, so the budget must hold several.
        self._file_bytes = min(file_bytes, (self.budget.bytes_max or 8 * file_bytes) // 8)
        try:
            make_folder(folder)
            self._lock = (folder / LOCK).open("a")
        except OSError as error:
            raise ValueLogError(
                f"can't be opened: {error.strerror}",
                where=str(folder),
                remedy="set capture.value_log_path to a writable folder",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise fenced(folder) from error
        try:
            self.id = _id_of(folder)
            self._files = _open_files(folder)
            self._current = self._open_last()
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close files and lock. Unsynced records were never promised."""
        self._current.close()
        self._lock.close()

    @property
    def bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.bytes for file in self._files)

    @property
    def max_commit_ts(self) -> int:
        """The largest commit_ts in here; 0 if empty."""
        return max((file.max_commit_ts for file in self._files), default=0)

    @property
    def last_seq(self) -> int:
        """The newest segment's seq; 0 if empty."""
        return max((file.last_seq for file in self._files), default=0)

    def newest(self) -> Segment | None:
        """The newest segment when the log was opened, without context and payload; None if there
        was none.
        """
        for file in reversed(self._files):
            if file.newest is None and file.last_seq:
                with opened(file.path) as log_file:
                    for record in log_file.heads():
                        file.newest = record.segment
            if file.newest is not None:
                return file.newest
        return None

    @property
    def end(self) -> Pointer:
        """Where the next record will be (bytes 0), unless a new file is begun for it."""
        return Pointer(self._files[-1].number, self._files[-1].bytes, 0)

    def room_bytes(self) -> int:
        """How many bytes of records it may still take."""
        disk = os.statvfs(self.folder)
        free = disk.f_bavail * disk.f_frsize - self.budget.reserve_bytes
        return free if self.budget.bytes_max is None else min(free, self.budget.bytes_max - self.bytes)

    def append(self, segment: Segment) -> Pointer:
        """Write a record. Returns its place. Raises ValueLogFull before it begins; ValueLogError:
        then open the log anew.
        """
        file = self._files[-1]
        ends = file.bytes >= self._file_bytes or file.is_old(segment.captured_at)
        at = 0 if ends else file.bytes
        parts = encode(segment, at if self._current.goes_direct(segment.payload) else None)
        size = sum(len(part) for part in parts)
        if self.room_bytes() < size + FOOTER_BYTES:
            raise ValueLogFull(self._full(), where=str(self.folder), remedy=_GO_ON)
        if ends:
            self._rotate()
        file = self._files[-1]
        self._write(parts)
        file.bytes += size
        file.take(segment)
        return Pointer(file.number, at, size)

    def sync(self) -> None:
        """Make every append so far durable (fdatasync)."""
        file = self._files[-1]
        try:
            self._current.sync()
        except OSError as error:
            self._fail("synced", error, file.synced_bytes)
        file.synced_bytes = file.bytes

    def read(self, after_seq: int = 0) -> Iterator[Segment]:
        """Segments with a larger seq, in order. Raises ValueLogError on a damaged record."""
        for record in self.heads(after_seq):
            yield self.segment(record.pointer)

    def heads(self, after_seq: int = 0) -> Iterator[Record]:
        """Records of segments with a larger seq, in order: their places and heads, without context
        and payload.
        """
        for file in self._files:
            if file.last_seq > after_seq:
                with opened(file.path) as log_file:
                    for record in log_file.heads():
                        if record.segment.seq > after_seq:
                            yield record

    def segment(self, pointer: Pointer) -> Segment:
        """The segment at a pointer. Raises ValueLogError if it isn't there, or is damaged."""
        with opened(_path(self.folder, pointer.file)) as file:
            return file.segment(pointer)

    def segments_from(self, pointer: Pointer, last: Pointer | None = None) -> Iterator[tuple[Pointer, Segment]]:
        """Segments from one on, up to `last` (None: up to the present end).

        Another thread than the appending one may call it, up to a synced record.
        """
        last = last or self.end
        offset = pointer.offset
        for number in range(pointer.file, last.file + 1):
            with opened(_path(self.folder, number)) as file:
                for record in file.heads(offset):
                    if (number, record.pointer.offset) > (last.file, last.offset):
                        return
                    yield record.pointer, file.segment(record.pointer)
            offset = 0

    def gc(self, whole_seq: int) -> int:
        """Delete full files whose segments all come before whole_seq. Returns the bytes freed.

        whole_seq: bronze's newest segment that ends between transactions. A start without the lake
        continues from it. It isn't a commit_ts, since a transaction given up has a larger one than
        its successors.

        A file of some size that bronze has completely is completed first, so the next call can
        delete it. append completes a file by its age.
        """
        last = self._files[-1]
        if last.last_seq <= whole_seq and last.bytes >= max(self._file_bytes // 8, 1):
            self._rotate()
        count = 0
        while count < len(self._files) - 1 and self._files[count].last_seq < whole_seq:
            count += 1
        if not count:
            return 0
        self._keep_tail(count)
        freed = 0
        # The oldest first: after a kill the remaining files have no gap.
        for _ in range(count):
            failpoint("capture_before_log_file_goes")
            file = self._files.pop(0)
            file.path.unlink()
            freed += file.bytes
        return freed

    def tail(self) -> Segment | None:
        """The head of the newest segment with bytes a gc has kept; None without one."""
        return kept_tail(self.folder)

    def _keep_tail(self, count: int) -> None:
        """If the newest segment with bytes is in the first `count` files, keep its head before they are deleted."""
        for number in range(len(self._files) - 1, -1, -1):
            tail = _tail_of(self._files[number])
            if tail is not None:
                if number < count:
                    try:
                        keep_tail(self.folder, tail)
                    except OSError as error:
                        raise _error("written", error, self.folder) from error
                return

    # --- files --------------------------------------------------------------------------------------------

    def _open_last(self) -> Appender:
        last = self._files[-1] if self._files else None
        if last is None or last.complete:
            number = last.number + 1 if last else 1
            last = _File(_path(self.folder, number), number)
        try:
            file = Appender(last.path)
            sync(str(self.folder))
        except OSError as error:
            raise _error("opened", error, last.path) from error
        if not self._files or self._files[-1] is not last:
            # Only once the file exists: a reader in another thread opens what is listed.
            self._files.append(last)
        return file

    def _rotate(self) -> None:
        last = self._files[-1]
        # Synced before the next file begins: opening scans only the last file, and reads footers of the others.
        self._write([encode_footer(Footer(last.max_commit_ts, last.last_seq))])
        last.bytes += FOOTER_BYTES
        self.sync()
        self._current.close()
        last.complete = True
        self._current = self._open_last()

    def _write(self, parts: Sequence[Bytes]) -> None:
        try:
            self._current.write(parts, self._files[-1].bytes)
        except OSError as error:
            self._fail("written", error, self._files[-1].bytes)

    def _fail(self, what: str, error: OSError, good_bytes: int) -> None:
        """Remove the half-written record, and raise the fault."""
        try:
            self._current.cut_off(good_bytes)
        except OSError:
            log.warning("the torn end of %s is cut off when it is opened again", self._files[-1].path)
        raise _error(what, error, self._files[-1].path) from error

    def _full(self) -> str:
        if self.budget.bytes_max is not None and self.bytes >= self.budget.bytes_max // 2:
            return f"the value log has {self.bytes} bytes, its budget is {self.budget.bytes_max}"
        return f"less than {self.budget.reserve_bytes} bytes of its disk are free beside {self.bytes} of value log"


def _id_of(folder: Path) -> str:
    try:
        return log_id(folder)
    except OSError as error:
        raise _error("given an id", error, folder) from error


def log_files(folder: Path) -> list[Path]:
    """A log's files in order. Raises ValueLogError if one between two others is missing."""
    paths = sorted(folder.glob("*.vlog"), key=file_number)
    for before, after in pairwise(paths):
        if file_number(after) != file_number(before) + 1:
            raise ValueLogError(
                f"isn't there, {after.name} is", where=str(_path(folder, file_number(before) + 1)), remedy=REMEDY
            )
    return paths


def _open_files(folder: Path) -> list[_File]:
    """The files with their content, oldest first. A torn end of the last one is cut off."""
    paths = log_files(folder)
    files = []
    for path in paths[:-1]:
        with opened(path) as log_file:
            footer = log_file.footer()
            files.append(
                _File(
                    path, log_file.number, log_file.bytes, log_file.bytes, footer.max_commit_ts, footer.last_seq, True
                )
            )
    return [*files, *(_scan(path) for path in paths[-1:])]


def _scan(path: Path) -> _File:
    """Find the true end of the last file, and read its content."""
    file = _File(path, file_number(path))
    with opened(path) as log_file:
        for part in log_file.walk(last=True):
            if isinstance(part, Damage):
                raise part.error()
            if isinstance(part, Record):
                file.take(part.segment)
                file.newest = part.segment
            elif isinstance(part, Torn):
                log.warning("%s: a crash left %d bytes after the last record; they are cut off", path, part.bytes)
                with path.open("r+b") as torn:
                    torn.truncate(part.offset)
                    os.fsync(torn.fileno())
            elif isinstance(part, End):
                file.bytes, file.complete = part.offset, part.footer is not None
    try:
        # A killed process may have left data only in memory. It counts as captured from here on.
        sync(str(path))
    except OSError as error:
        raise _error("synced", error, path) from error
    file.synced_bytes = file.bytes
    return file


def _tail_of(file: _File) -> Segment | None:
    """The head of its newest segment with bytes. If only its footer was read, its heads are read
    now.
    """
    if file.tail is None and file.begun_at is None and file.last_seq:
        with opened(file.path) as log_file:
            for record in log_file.heads():
                file.begun_at = file.begun_at or record.segment.captured_at
                file.tail = record.segment if record.segment.has_bytes else file.tail
    return file.tail


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.vlog"


def _error(what: str, error: OSError, path: Path) -> ValueLogError | ValueLogFull:
    if error.errno in _FULL:
        return ValueLogFull(f"can't be {what}: {error.strerror}", where=str(path), remedy=_GO_ON)
    return ValueLogError(f"can't be {what}: {error.strerror}", where=str(path), remedy="check this disk")
