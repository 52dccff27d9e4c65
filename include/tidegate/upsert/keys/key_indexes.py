"""Indexes of keys in memory, for those files of silver that windows look through again and again.

In:  files that probing looked through, and how many of their rows.
Out: a file's FileIndex, where looking up keys costs less than looking through the file.

An index is made in the background when windows have spent about its cost on looking through the
file. It never more than doubles a file's cost, and a file without changed keys gets none. One
index is made at a time. If memory is short, an index that no window has used lately goes first. If
all are in use, they stay, and the new file gets no index: otherwise a table that is too large for
the memory would make the same indexes again and again.

Nothing is kept on disk. A new application looks through a file some more times, and indexes 100
million rows in 3 seconds of CPU.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.limits import (
    KEY_INDEX_FILE_ROWS_MIN,
    KEY_INDEX_IDLE_SECONDS,
    KEY_INDEX_LOOKUP_ROWS,
    KEY_INDEX_READ_ROWS_MIN,
    KEY_INDEX_WATCHED_FILES_MAX,
)
from tidegate.upsert.keys.file_index import HASH_BYTES, FileIndex, bytes_of, index_of
from tidegate.upsert.keys.hash import Seed
from tidegate.upsert.keys.probe_table import KeyTable

log = logging.getLogger(__name__)

_Name = tuple[str, tuple[str, int, int], tuple[str, ...]]


class KeyIndexes:
    """At most bytes_max of FileIndex, what is being made among them. Its methods may be called from
    any thread.

    seed: of the hashes that windows look for. Those of another seed find no index.
    """

    def __init__(
        self, lake: LakeFiles, seed: Seed, bytes_max: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lake, self._seed, self._clock = lake, seed, clock
        self._room = bytes_max
        self._made: OrderedDict[_Name, tuple[FileIndex, float]] = OrderedDict()  # with when it was used last
        self._looked_through: OrderedDict[_Name, int] = OrderedDict()  # rows, since the file is watched
        self._making = False
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "key-index")

    def __len__(self) -> int:
        return len(self._made)

    def of(self, table_path: str, file: LiveFile, table: KeyTable, rows: int) -> FileIndex | None:
        """The index of a file; None if there is none, or if to look through so many rows costs
        less.
        """
        if table.keys * KEY_INDEX_LOOKUP_ROWS > rows or table.seed != self._seed:
            return None
        name = _name(table_path, file, table)
        with self._lock:
            made = self._made.pop(name, None)
            if made is None:
                return None
            self._made[name] = (made[0], self._clock())
            return made[0]

    def looked_through(self, table_path: str, file: LiveFile, table: KeyTable, rows: int) -> None:
        """Count a file's rows read for keys; an index would have given those keys for less."""
        in_file = file.rows
        if in_file is None or in_file < KEY_INDEX_FILE_ROWS_MIN or table.seed != self._seed:
            return
        if table.keys * KEY_INDEX_LOOKUP_ROWS > rows:
            return
        name, needed = _name(table_path, file, table), bytes_of(in_file, table.key_schema)
        with self._lock:
            so_far = self._looked_through.pop(name, 0) + rows
            if name in self._made or so_far < KEY_INDEX_READ_ROWS_MIN * in_file or self._making:
                self._watch(name, so_far)
                return
            needed_meanwhile = needed + HASH_BYTES * in_file
            if not self._make_room(needed_meanwhile):
                return
            self._room -= needed_meanwhile
            self._making = True
        self._thread.submit(self._make, name, (table_path, file, table), needed_meanwhile)

    def wait(self) -> None:
        """Until the index that is being made is there."""
        self._thread.submit(int).result()

    def _watch(self, name: _Name, rows: int) -> None:
        self._looked_through[name] = rows
        while len(self._looked_through) > KEY_INDEX_WATCHED_FILES_MAX:
            self._looked_through.popitem(last=False)

    def _make(self, name: _Name, of: tuple[str, LiveFile, KeyTable], reserved: int) -> None:
        table_path, file, table = of
        made: FileIndex | None = None
        try:
            made = index_of(self._lake, table_path, file, table.key_schema, self._seed)
        except Exception as error:  # noqa: BLE001 - a window that looks through the file meets it, and says so
            log.info("no index of %s/%s: %s", table_path, file.path, error)
        with self._lock:
            self._making = False
            self._room += reserved
            if made is not None:
                self._room -= made.nbytes
                self._made[name] = (made, self._clock())

    def _make_room(self, needed: int) -> bool:
        """Whether there is room. Idle indexes are dropped for it, the least recently used first, if that is enough."""
        idle_since, room, dropped = self._clock() - KEY_INDEX_IDLE_SECONDS, self._room, list[_Name]()
        for name, (index, used_at) in self._made.items():
            if room >= needed or used_at > idle_since:
                break
            room += index.nbytes
            dropped.append(name)
        if room < needed:
            return False
        self._room = room
        for name in dropped:
            del self._made[name]
        return True


def _name(table_path: str, file: LiveFile, table: KeyTable) -> _Name:
    """The identity of an index: the file, and the columns of the key."""
    return table_path, file.identity, table.key_kinds
