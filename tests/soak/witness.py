"""What bronze holds, read without tidegate's decoder: dense, the binlog's own bytes, each transaction once.

In:  bronze, the binlog files on the server's disk, and what soak.txns says was committed.
Out: Witness.look() after each piece of bronze, Witness.settle() when the source is quiet; both raise Wrong.

The counters are read straight from the bytes: a WRITE_ROWS event of txns begins with the same few fields in every
version, and its one row has a fixed length.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tests.soak.source import DATABASE
from tests.support.captures import IN_USE, assert_follows, assert_follows_in_time, part_of
from tidegate.local.server import Server
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS

_FORMAT_DESCRIPTION, _XID, _TABLE_MAP, _MARIADB_GTID, _MYSQL_GTID = 15, 16, 19, 162, 33
_WRITE_ROWS: Final = {23: 8, 30: 10}  # type -> bytes between the header and the column count
_HEADER: Final = 19


class Wrong(Exception):  # noqa: N818
    """Bronze or silver isn't what the source has."""


class Events:
    """Follows the events of consecutive payloads: which counters were committed, under which GTIDs."""

    def __init__(self) -> None:
        self.committed: Counter[tuple[int, int]] = Counter()
        self.gtids: set[bytes] = set()
        self.doubled_gtids = 0
        self._fed = Counter[tuple[int, int]]()
        self._open: list[tuple[int, int]] = []
        self._table_id = b""

    def feed(self, payload: bytes) -> Counter[tuple[int, int]]:
        """The counters committed by it."""
        self._fed, at = Counter[tuple[int, int]](), 0
        while at < len(payload):
            size = int.from_bytes(payload[at + 9 : at + 13], "little")
            self._event(payload[at + 4], payload[at : at + size])
            at += size
        return self._fed

    def _event(self, kind: int, event: bytes) -> None:
        body = event[_HEADER:]
        if kind in (_MARIADB_GTID, _MYSQL_GTID):
            gtid = body[:12] + event[5:9] if kind == _MARIADB_GTID else body[1:25]
            self.doubled_gtids += gtid in self.gtids
            self.gtids.add(gtid)
            self._open, self._table_id = [], b""  # ids of tables are used again
        elif kind == _FORMAT_DESCRIPTION:
            self._open = []  # what a crash tore is not committed
        elif kind == _TABLE_MAP:
            name = body[9 : 9 + body[8]] + b"." + body[11 + body[8] :][: body[10 + body[8]]]
            if name == f"{DATABASE}.txns".encode():
                self._table_id = body[:6]
        elif kind in _WRITE_ROWS and body[:6] == self._table_id:
            row = body[_WRITE_ROWS[kind] + 3 :]  # column count, which columns, which are NULL
            self._open.append((int.from_bytes(row[:4], "little"), int.from_bytes(row[4:12], "little")))
        elif kind == _XID:
            self.committed.update(self._open)
            self._fed.update(self._open)
            self._open = []


def _as_sent(data: bytes, start: int) -> bytes:
    """Without what a server changes in a FORMAT_DESCRIPTION that it sends: in use, when it started, its checksum."""
    if start != 4 or not data:
        return bytes(data)
    masked, size = bytearray(data), int.from_bytes(data[9:13], "little")
    masked[17] &= ~IN_USE
    masked[71:75] = masked[size - 4 : size] = bytes(4)
    return bytes(masked)


def lives(server: Server) -> list[Path]:
    """Folders with its binlog, the newest first: a server that was made anew, as a copy of another one, had others."""
    return [server.data / "data", *sorted((server.data / "lives").glob("*"), reverse=True)]


def _is_of(segment: Segment, file: Path) -> bool:
    if not file.exists():
        return False
    wanted = part_of(file, segment.start_pos, segment.end_pos)
    return _as_sent(segment.payload, segment.start_pos) == _as_sent(wanted, segment.start_pos)


def _brought_up(bronze: DeltaTable) -> None:
    """What was committed since; thousands of commits needn't be read at each look.

    A folder is listed while captures commit to it: the list may have a version and lack the one before.
    """
    for _ in range(100):
        try:
            bronze.update_incremental()
        except DeltaError as error:
            if "contiguous" not in str(error):
                raise
            time.sleep(0.05)
        else:
            return
    raise Wrong("bronze's log has a gap that stays")


@dataclass(frozen=True, slots=True)
class Seen:
    """As far as a witness had looked when a backup began. sums: of payloads, by seq; file: of the server's, where what
    comes behind the backup begins; lives: how many the server has had.
    """

    sums: Mapping[int, int]
    server: Server
    lives: int
    file: str
    line: int


class Witness:
    """Reads each file of bronze once. transactions, lost, doubled: so far. kept: of the backups that there are."""

    def __init__(self, lake: Path, server: Server, source: str, others: Mapping[int, Server] | None = None) -> None:
        """others: all servers of a source that has several, by server_id; server is then the one that is written to."""
        self.server = server
        self._servers = others or {}
        self.transactions = self.lost = self.doubled = 0
        self.position = ("", 0)
        self._root = lake / SEGMENTS.path
        self._source = source
        self._events = Events()
        self._paths: set[str] = set()
        self._bronze: DeltaTable | None = None
        self._before: Segment | None = None
        self._sums: dict[int, int] = {}  # by seq: what upkeep packs must be what was there
        self._settled: dict[int, int] = {}
        self._come_again: dict[int, int] = {}  # what was settled before a lake was put back; it was purged, or comes
        self._before_backup: Mapping[int, int] = {}
        self._committed_by: dict[int, Counter[tuple[int, int]]] = {}  # segment, by seq; of those since it was settled
        self._line = 0  # a lake that was put back goes on with other segments under the same numbers
        self._by_line: dict[int, dict[int, Counter[tuple[int, int]]]] = {}  # what each earlier line had committed
        self.kept: Sequence[Seen] = ()

    def look(self) -> tuple[str, int]:
        """Check what bronze got since; where it ends. Raises Wrong."""
        if self._bronze is None:
            try:
                self._bronze = DeltaTable(str(self._root))
            except TableNotFoundError:  # its folder may be there, and its first commit not
                return self.position
        _brought_up(self._bronze)
        actions = pa.table(self._bronze.get_add_actions(flatten=True))
        actions = actions.filter(pc.equal(actions["partition.source"], self._source))
        self._dense(actions)
        fresh = sorted(set(actions["path"].to_pylist()) - self._paths)
        self._paths.update(fresh)
        rows = []
        for path in fresh:
            table = pq.read_table(self._root / unquote(path), partitioning=None, use_threads=False)
            rows += table.to_pylist()
        segments = [Segment.from_row({**row, "source": self._source}) for row in rows]
        for segment in sorted(segments, key=lambda one: one.seq):
            if segment.seq in self._sums:
                if zlib.crc32(segment.payload) != self._sums[segment.seq]:
                    raise Wrong(f"{segment.where}: packed bytes differ from those that were there")
                continue
            self._check(segment)
            self._sums[segment.seq] = zlib.crc32(segment.payload)
        return self.position

    def seen(self) -> Seen:
        """For a backup that begins now. Somebody else may look meanwhile."""
        file, _ = self.position
        server = self.read_from or self.server
        return Seen(dict(self._sums), server, len(lives(server)), file, self._line)

    def put_back(self, seen: Seen) -> None:
        """The lake is a backup's: read all of its bronze. Of what was looked at before it, the source may have purged
        its own. Raises Wrong.
        """
        self._bronze, self._before, self._events = None, None, Events()
        self._paths, self._sums, self._before_backup = set(), {}, seen.sums
        self._by_line[self._line], self._committed_by = self._committed_by, {}
        self._line += 1
        self.look()
        self._before_backup = {}
        first = min(self._sums, default=0)
        # What upkeep removed before the backup, and was looked at.
        removed = {seq: of for seq, of in self._by_line.get(seen.line, {}).items() if seq < first}
        for committed in removed.values():
            self._events.committed.update(committed)
        self._committed_by |= removed
        if self.seq < (last := max(seen.sums, default=0)):
            raise Wrong(f"bronze ends at seq {self.seq}, and had {last} before it was backed up")
        self._come_again = dict(self._settled)

    def has(self, counter: tuple[int, int]) -> bool:
        """Whether bronze has it, and so all that was committed before; until it is settled."""
        return counter in self._events.committed

    @property
    def seq(self) -> int:
        """Of the last segment that was read."""
        return self._before.seq if self._before else 0

    @property
    def read_from(self) -> Server | None:
        """The server that sent it."""
        return self._servers.get(self._before.server_id) if self._before else None

    def _dense(self, actions: pa.Table) -> None:
        """Each seq is in one live file, whatever upkeep packed; only the oldest ones may be gone."""
        columns = [actions[name].to_pylist() for name in ("min.seq", "max.seq", "num_records")]
        after = None
        for low, high, count in sorted(zip(*columns, strict=True)):
            if high - low + 1 != count or after not in (None, low):
                raise Wrong(f"a file of bronze has {count} segments, seq {low} to {high}, where {after} is due")
            after = high + 1

    def _check(self, segment: Segment) -> None:
        before, server = self._before, self._servers.get(segment.server_id, self.server)
        if segment.seq != self.seq + 1 and (before is not None or not self._may_begin(segment.seq)):
            raise Wrong(f"bronze has seq {segment.seq} after {self.seq}")
        if self._before_backup.get(segment.seq) != zlib.crc32(segment.payload):
            self._compare(before, segment, server)
        self._committed_by[segment.seq] = self._events.feed(segment.payload)
        self._before = segment
        self.position = (segment.file, segment.end_pos)

    def _may_begin(self, seq: int) -> bool:
        """Whether bronze of a backup may: upkeep removes up to the last one that was looked at."""
        return not self._before_backup.keys().isdisjoint((seq, seq - 1))

    @staticmethod
    def _compare(before: Segment | None, segment: Segment, server: Server) -> None:
        """With the binlog."""
        folder = next((one for one in lives(server) if _is_of(segment, one / segment.file)), None)
        if folder is None:
            raise Wrong(f"{segment.where}: bronze differs from the binlog")
        if before is not None:
            try:
                if before.server == segment.server:
                    assert_follows(before, segment, folder)
                else:
                    assert_follows_in_time(before, segment)
            except AssertionError as error:
                message = f"seq {segment.seq} doesn't follow {before.file}:{before.end_pos}: {error}"
                raise Wrong(message) from error

    def settle(self) -> None:
        """The source is quiet and bronze has all of it: compare the counters, then forget them on both sides."""
        there: set[tuple[int, int]] = set()
        for session, n in self.server.query("SELECT session, n FROM txns", database=DATABASE):
            if n > self._settled.get(session, 0):
                there.add((session, n))
        seen = self._events.committed
        lost = there - set(seen)
        doubled = sum(count - 1 for count in seen.values()) + self._events.doubled_gtids
        phantoms = {(session, n) for session, n in seen if n > self._come_again.get(session, 0)} - there
        self.transactions += len(there)
        self.lost += len(lost)
        self.doubled += doubled
        for session, n in there:
            self._settled[session] = max(self._settled.get(session, 0), n)
        self._events.committed, self._committed_by, self._by_line = Counter(), {}, {}
        self._events.doubled_gtids, self._come_again = 0, {}
        if lost or doubled or phantoms:
            some = sorted(lost)[:3] or sorted(phantoms)[:3] or [key for key, count in seen.items() if count > 1][:3]
            raise Wrong(f"{len(lost)} lost, {doubled} doubled, {len(phantoms)} never committed, e.g. {some}")
        for session, n in self._settled.items():
            self.server.query("DELETE FROM txns WHERE session = %s AND n < %s", (session, n), database=DATABASE)
        self._purge()

    def _purge(self) -> None:
        """What bronze and backups of it have, the source needn't keep; by a replica's files nothing can be said of its
        own, nor by those of a server that was made anew.
        """
        if self._servers and self.read_from is not self.server:
            return
        file, life = self.position[0], len(lives(self.server))
        for seen in self.kept:
            if seen.server is not self.server or seen.lives != life:
                return
            file = min(file, seen.file)
        self.server.query("FLUSH BINARY LOGS")
        self.server.query("PURGE BINARY LOGS TO %s", (file,))
