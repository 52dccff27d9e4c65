"""The replication stream of a server, as bytes.

In:  a connection and where to begin: by GTID or by file and position.
Out: packets in `received`, which packet_walk takes apart; the server's refusals and silences as our
     errors.

COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID (MySQL source docs, "Replication Protocol"). For MariaDB,
session variables ask for a GTID (knowledge base, "5-Slave Registration"). PyMySQL logs in, with TLS
if wanted. Then the socket is ours, and nothing copies a byte between it and the receive buffer.

We always say that we know CRC32: a server without checksums then sends its file as it is. The
FORMAT_DESCRIPTION event says which it is, also if they are switched during the stream.
"""

from __future__ import annotations

import ssl
import struct
import time
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pymysql

from tidegate.compiled import load_all
from tidegate.config import DumpMode, Flavour
from tidegate.errors import (
    Fenced,
    LogTorn,
    PositionLost,
    SourceRefused,
    SourceUnavailable,
    SourceUnwilling,
    StreamCorrupt,
    TidegateError,
)
from tidegate.limits import GATHER_SECONDS, PACKET_BYTES_MAX, RECEIVE_BYTES
from tidegate.mysql.connecting.connection import ConnectionInfo, answer_seconds, connect, named, silence_seconds
from tidegate.mysql.connecting.server_errors import ErrorMeaning, meaning_of_stream
from tidegate.mysql.facts.server_facts import check_is
from tidegate.mysql.stream import packet_walk
from tidegate.mysql.stream.packet_walk import SEMI_SYNC_MARK
from tidegate.position import MysqlGtidSet, Position
from tidegate.remedy import NEW_LAKE
from tidegate.segments.segment import NO_SERVER, Server

_COM_BINLOG_DUMP: Final = 0x12
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_SEND_ANNOTATE_ROWS: Final = 2  # MariaDB: without it the stream has holes where the file has Annotate_rows
_THROUGH_GTID: Final = 4
_FIRST_OFFSET: Final = 4  # after the file's magic number
OFFSET_MAX: Final = 0xFFFFFFFF  # COM_BINLOG_DUMP's offset has 32 bits
_ERR, _EOF = 0xFF, 0xFE
_MASTER_FATAL_ERROR: Final = 1236
_OWN_NUMBER: Final = "stop it, or give this source a server_id of its own in the pipeline file"
_TLS_BYTES: Final = 1 << 20
# A server that sends as it commits wakes us for each packet. After a receive that brought little, this pause lets more
# come together: a quarter less CPU for transactions of one row, and latency doesn't notice.
_LITTLE_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """The request to the server. gtid: executed set or position as text; position: for DumpMode.POSITION. server: which
    one it is for; NO_SERVER: any.
    """

    flavour: Flavour
    mode: DumpMode
    server_id: int
    replica_uuid: str
    heartbeat_seconds: float
    gtid: str = ""
    position: Position | None = None
    semi_sync: bool = False
    server: Server = NO_SERVER

    @property
    def where(self) -> str:
        return f"GTID {self.gtid or '(none)'}" if self.mode is DumpMode.GTID else str(self.position)


class DumpStream:
    """An open stream. `received[read:have]` (the walk's fields) holds bytes not yet walked."""

    def __init__(self, connection: Any, info: ConnectionInfo, request: DumpRequest) -> None:
        self.info = info
        self.request = request
        self.received: np.ndarray[Any, np.dtype[np.uint8]] = np.zeros(RECEIVE_BYTES, np.uint8)
        self._view = memoryview(self.received.data)
        self._connection = connection
        self._socket: Any = connection._sock  # noqa: SLF001  PyMySQL has no public way to its socket
        self._silence_seconds = silence_seconds(request.heartbeat_seconds)
        self._heard_at = time.monotonic()
        self._timeout: float | None = None
        self._little = False

    @classmethod
    def open(cls, info: ConnectionInfo, request: DumpRequest) -> Self:
        """Log in and ask for the stream. Raises SourceRefused, SourceUnavailable."""
        # Before the server is asked: a busy machine takes seconds over it, in which nothing would be read.
        load_all(packet_walk.__name__)
        patience = answer_seconds(request.heartbeat_seconds)
        connection: Any = connect(info, read_timeout=patience, write_timeout=patience)
        try:
            with connection.cursor() as cursor:
                if request.server != NO_SERVER:
                    check_is(request.server, cursor, info)
                for name, value in _session_variables(request).items():
                    cursor.execute(f"SET @{name} = %s", (value,))
            connection._next_seq_id = 0  # noqa: SLF001
            connection.write_packet(command(request))
        except (pymysql.err.MySQLError, OSError) as error:
            connection.close()
            raise named(error, info) from error
        except BaseException:
            connection.close()
            raise
        return cls(connection, info, request)

    def close(self) -> None:
        """End the stream; the server notices at its next write."""
        self._connection._force_close()  # noqa: SLF001

    def receive(self, state: Any, timeout: float) -> int:
        """Bytes received into the buffer after state.have; 0 when none came within timeout seconds.

        Raises SourceUnavailable when the connection ended, or was silent for too long.
        """
        read, have = int(state["read"]), int(state["have"])
        if read:
            self._view[: have - read] = bytes(self._view[read:have])
            have -= read
            state["read"], state["have"] = 0, have
        if self._little and not self.request.semi_sync:  # there a commit waits for each reply
            time.sleep(GATHER_SECONDS)
        count = self._into(self._view[have:], timeout)
        self._little = 0 < count < _LITTLE_BYTES
        if count and isinstance(self._socket, ssl.SSLSocket):
            count += self._more_records(self._view[have + count : have + _TLS_BYTES])
        state["have"] = have + count
        return count

    def _more_records(self, view: memoryview) -> int:
        """TLS gives a record of 16 KiB at a time: take those already here, so a walk is worth it."""
        self._socket.settimeout(0)
        self._timeout = 0
        count = 0
        try:
            while count < len(view) and (more := self._socket.recv_into(view[count:])):
                count += more
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError as error:
            raise named(error, self.info) from error
        return count

    def _into(self, view: memoryview, timeout: float) -> int:
        if timeout != self._timeout:
            self._socket.settimeout(timeout)
            self._timeout = timeout
        try:
            count = int(self._socket.recv_into(view))
        except TimeoutError:
            silent = time.monotonic() - self._heard_at
            if silent > self._silence_seconds:
                raise SourceUnavailable(
                    f"silent for {silent:.0f} s, heartbeats included", where=self.info.where, remedy="check the network"
                ) from None
            return 0
        except OSError as error:
            raise named(error, self.info) from error
        if count == 0:
            raise SourceUnavailable(
                "the server closed the connection", where=self.info.where, remedy="check its error log"
            )
        self._heard_at = time.monotonic()
        return count

    def read_big_event(self, state: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The event at state.read, which doesn't fit the buffer, joined from its packets; they count as read."""
        size, lead = self._packet_size(state), int(state["lead"])
        while state["have"] - state["read"] < lead + 13:  # what stands before the event, and it up to its length
            self.receive(state, self._silence_seconds)
        read, have = int(state["read"]), int(state["have"])
        (length,) = struct.unpack_from("<I", self._view, read + lead + 9)
        event = np.empty(length, np.uint8)
        view, filled, rest = memoryview(event.data), 0, size - (lead - 4)
        at = read + lead
        while True:
            # The rest of a packet: first what is in the buffer, then from the socket.
            if filled + rest > length:
                raise StreamCorrupt(
                    "a packet is longer than its event", where=self.info.where, remedy="check the network"
                )
            held = min(rest, have - at)
            view[filled : filled + held] = self._view[at : at + held]
            at, filled, rest = at + held, filled + held, rest - held
            while rest:
                count = self._into(view[filled : filled + rest], self._silence_seconds)
                filled, rest = filled + count, rest - count
            state["read"] = at
            if size < PACKET_BYTES_MAX:
                break
            while state["have"] - state["read"] < 4:
                self.receive(state, self._silence_seconds)
            size = rest = self._packet_size(state)
            at, have = int(state["read"]) + 4, int(state["have"])
        if filled != length:
            raise StreamCorrupt(
                f"an event of {length} bytes came in packets of {filled}",
                where=self.info.where,
                remedy="check the network",
            )
        return event

    def _packet_size(self, state: Any) -> int:
        return int.from_bytes(self._view[state["read"] : state["read"] + 3], "little")

    def acknowledge(self, position: Position) -> None:
        """Tell a waiting server (semi-synchronous replication) that all up to here is on our disk.

        0xEF, position u64, file name (mysql-server plugin/semisync/semisync_replica.cc). Raises SourceUnavailable.
        """
        reply = struct.pack("<BQ", SEMI_SYNC_MARK, position.offset) + position.file.encode()
        try:
            if self._timeout != self._silence_seconds:
                self._socket.settimeout(self._silence_seconds)
                self._timeout = self._silence_seconds
            self._socket.sendall(len(reply).to_bytes(3, "little") + b"\0" + reply)
        except OSError as error:
            raise named(error, self.info) from error

    def refusal(self, state: Any) -> TidegateError:
        """The EOF or ERR packet at state.read as an error of ours."""
        read = int(state["read"])
        packet = bytes(self._view[read + 4 : read + 4 + self._packet_size(state)])
        if packet[0] == _EOF:
            return SourceUnavailable(
                "the server ended the stream", where=self.info.where, remedy="is it shutting down?"
            )
        if packet[0] != _ERR or len(packet) < 3:
            return StreamCorrupt(
                f"a packet begins with {packet[0]:#x}", where=self.info.where, remedy="check the network"
            )
        (code,) = struct.unpack_from("<H", packet, 1)
        text = packet[9 if packet[3:4] == b"#" else 3 :].decode("utf-8", "replace")
        return self._server_error(code, text)

    def _server_error(self, code: int, text: str) -> TidegateError:
        where = f"{self.info.where} at {self.request.where}"
        number = self.request.server_id
        match meaning_of_stream(code, text):
            case ErrorMeaning.TAKEN_OVER:
                return Fenced(f"another reader uses replica id {number}: {text}", where=where, remedy=_OWN_NUMBER)
            case ErrorMeaning.TAKEN:
                return SourceUnwilling(
                    f"another reader, or a connection of ours that the server hasn't given up yet, uses replica id"
                    f" {number}: {text}",
                    where=where,
                    remedy=_OWN_NUMBER,
                )
            case ErrorMeaning.TORN | ErrorMeaning.DAMAGED as meaning:
                return (LogTorn if meaning is ErrorMeaning.TORN else StreamCorrupt)(
                    f"the server finds its own binlog damaged: {text}",
                    where=where,
                    remedy="restore that file from a copy, or go on at a replica by GTID; nothing of it was captured",
                )
            case ErrorMeaning.LOST:
                return PositionLost(
                    f"the server can't continue from here: {text}",
                    where=where,
                    remedy="the binlog is purged or not this server's: " + NEW_LAKE,
                )
            case ErrorMeaning.REFUSED:
                return SourceRefused(text, where=where, remedy="correct the server's settings")
            case ErrorMeaning.PASSING if code == _MASTER_FATAL_ERROR:
                return SourceUnwilling(text, where=where, remedy="see the server's error log")
        return named(pymysql.err.OperationalError(code, text), self.info)


def _session_variables(request: DumpRequest) -> dict[str, str | int]:
    period_ns = int(request.heartbeat_seconds * 1e9)
    variables: dict[str, str | int] = {
        "master_binlog_checksum": "CRC32",
        "source_binlog_checksum": "CRC32",
        "master_heartbeat_period": period_ns,
        "source_heartbeat_period": period_ns,
        "slave_uuid": request.replica_uuid,
        "replica_uuid": request.replica_uuid,
    }
    if request.semi_sync:  # the name until MySQL 8.0.26 and in MariaDB, and MySQL's since
        variables |= {"rpl_semi_sync_slave": 1, "rpl_semi_sync_replica": 1}
    if request.flavour is Flavour.MARIADB:
        variables["mariadb_slave_capability"] = 4
        if request.mode is DumpMode.GTID:
            variables["slave_connect_state"] = request.gtid
            variables["slave_gtid_strict_mode"] = 1
            variables["slave_gtid_ignore_duplicates"] = 0
    return variables


def command(request: DumpRequest) -> bytes:
    """The packet that asks for the stream. Raises PositionLost for a position that the protocol has no room for."""
    if request.mode is DumpMode.GTID and request.flavour is Flavour.MYSQL:
        data = encode_gtid_set(MysqlGtidSet.parse(request.gtid))
        head = struct.pack("<BHII", _COM_BINLOG_DUMP_GTID, _THROUGH_GTID, request.server_id, 0)
        return head + struct.pack("<QI", _FIRST_OFFSET, len(data)) + data
    flags = _SEND_ANNOTATE_ROWS if request.flavour is Flavour.MARIADB else 0
    file, offset = b"", _FIRST_OFFSET
    if request.mode is DumpMode.POSITION:
        assert request.position is not None, "a dump by position needs one"
        file, offset = request.position.file.encode(), request.position.offset
        if offset > OFFSET_MAX:
            raise PositionLost(
                "a position beyond 4 GiB can't be asked for",
                where=str(request.position),
                remedy="set dump: gtid, and capture into a new lake path when it was that already",
            )
    return struct.pack("<BIHI", _COM_BINLOG_DUMP, offset, flags, request.server_id) + file


def encode_gtid_set(gtids: MysqlGtidSet) -> bytes:
    """The binary form (mysql-server sql/rpl_gtid_set.cc, Gtid_set::encode).

    Without tags: u64 count of uuids; per uuid 16 bytes, u64 count of intervals, u64 first and u64 last + 1 each.
    With a tag anywhere (MySQL 8.3+): the count moves up a byte between two format bytes of 1, and after every
    uuid come its tag's length (as mysql::serialization writes it: doubled, for these) and the tag.
    """
    tagged = any(":" in name for name in gtids.intervals)
    count = len(gtids.intervals)
    parts = [struct.pack("<Q", 1 << 56 | count << 8 | 1 if tagged else count)]
    for name in sorted(gtids.intervals):
        uuid, _, tag = name.partition(":")
        parts.append(bytes.fromhex(uuid.replace("-", "")))
        if tagged:
            parts.append(bytes([len(tag) << 1]) + tag.encode())
        spans = gtids.intervals[name]
        parts.append(struct.pack("<Q", len(spans)))
        parts.extend(struct.pack("<QQ", first, last + 1) for first, last in spans)
    return b"".join(parts)
