"""One SELECT's rows as record batches, straight from the socket.

In:  an open PyMySQL connection whose session is SESSION's, a ReadPlan, a statement.
Out: record batches, each good until the next is asked for; the newest row's key as literals.

COM_STMT_PREPARE, COM_STMT_EXECUTE (MySQL source docs, "Command Phase"): PyMySQL logs in, with TLS
when asked; then the socket is ours until the result has ended, and nothing copies a byte between it
and the receive buffer.
"""

from __future__ import annotations

import ssl
import struct
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pymysql

from tidegate.columnar.column_plan import OUT_BYTES, VARIABLE
from tidegate.columnar.dates import refused_date
from tidegate.columnar.finish import finish_column
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.errors import SourceUnavailable, StreamCorrupt, Terminal, UnsupportedValue
from tidegate.limits import (
    GATHER_BYTES,
    GATHER_FROM_BYTES,
    GATHER_SECONDS,
    PACKET_BYTES_MAX,
    RECEIVE_BYTES,
)
from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.remedy import REPORT
from tidegate.snapshot.chunks.spans import Key
from tidegate.snapshot.reading.result import kernel as K  # noqa: N812 - a page of constants
from tidegate.snapshot.reading.result.literals import key_literals
from tidegate.snapshot.reading.result.plan import ReadPlan

_COM_STMT_PREPARE: Final = 0x16
_COM_STMT_EXECUTE: Final = 0x17
_COM_STMT_CLOSE: Final = 0x19
_ERR: Final = 0xFF
_ALIGN: Final = 64
_BATCH_BYTES: Final = 4 << 20
_BATCH_ROWS: Final = 1 << 14
_TEXT_ROOM: Final = 96  # the most that is made of a value that doesn't come as bytes

Words = npt.NDArray[np.int64]


class Receiver:
    """The bytes from a connection's socket while a result is read."""

    def __init__(self, connection: Any, info: ConnectionInfo) -> None:
        self.connection = connection
        self.info = info
        self.buffer: npt.NDArray[np.uint8] = np.zeros(RECEIVE_BYTES, np.uint8)
        self.view = memoryview(self.buffer.data)
        self.read = 0
        self.have = 0
        # TLS gives a record of 16 KiB at a time, however much has come.
        self._gathers = not isinstance(connection._sock, ssl.SSLSocket)  # noqa: SLF001
        self._came = 0  # since the command
        self._is_short = False  # the newest bytes: less than is worth waking up for

    def command(self, code: int, data: bytes) -> None:
        """Send a command whose answer is to be read here."""
        self._came, self._is_short = 0, False
        self.connection._next_seq_id = 0  # noqa: SLF001  PyMySQL has no public way to its socket
        try:
            self.connection.write_packet(bytes([code]) + data)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error

    def more(self) -> None:
        """At least one more byte after `have`; the unread ones move to the front. Raises SourceUnavailable."""
        if self.read:
            self.view[: self.have - self.read] = bytes(self.view[self.read : self.have])
            self.have -= self.read
            self.read = 0
        if self._gathers and self._is_short and self._came > GATHER_FROM_BYTES:
            time.sleep(GATHER_SECONDS)  # the server is slower than this end
        room = self.view[self.have :]
        count = self.into(room)
        self._is_short = count < min(GATHER_BYTES, len(room))
        self._came += count
        self.have += count

    def into(self, view: memoryview) -> int:
        """Bytes from the socket. Raises SourceUnavailable."""
        try:
            count = int(self.connection._sock.recv_into(view))  # noqa: SLF001
        except OSError as error:
            raise named(error, self.info) from error
        if count == 0:
            raise SourceUnavailable(
                "the server closed the connection", where=self.info.where, remedy="check its error log"
            )
        return count

    def packet(self) -> bytes:
        """The next packet, a short one. Raises the error of an ERR packet."""
        while self.have - self.read < 4 or self.have - self.read < 4 + self.size():
            self.more()
        at = self.read + 4
        payload = bytes(self.view[at : at + self.size()])
        self.read = at + len(payload)
        if payload[:1] == bytes([_ERR]):
            said = _error(payload)
            raise named(said, self.info) from said
        return payload

    def size(self) -> int:
        return int.from_bytes(self.view[self.read : self.read + 3], "little")

    def long_row(self) -> bytearray:
        """The row at `read`, joined from its packets (they don't fit the buffer, or are
        several).
        """
        row = bytearray()
        while True:
            while self.have - self.read < 4:
                self.more()
            size = self.size()
            self.read += 4
            start = len(row)
            row += bytes(size)
            held = min(size, self.have - self.read)
            row[start : start + held] = self.view[self.read : self.read + held]
            self.read += held
            with memoryview(row) as view:
                filled = start + held
                while filled < len(row):
                    filled += self.into(view[filled:])
            if size < PACKET_BYTES_MAX:
                return row


def _error(packet: bytes) -> pymysql.err.MySQLError:
    (code,) = struct.unpack_from("<H", packet, 1)
    return pymysql.err.OperationalError(code, packet[9 if packet[3:4] == b"#" else 3 :].decode("utf-8", "replace"))


class ResultStream:
    """Rows of statements of one plan, over one connection. For one thread; a failed one's connection is closed."""

    def __init__(self, connection: Any, info: ConnectionInfo, plan: ReadPlan) -> None:
        self.plan = plan
        self.last_key: Key | None = None  # of the newest row of the newest batch
        self.null_dates = 0  # of the newest statement, as the next two
        self.null_dates_before = 0  # the newest batch
        self.bytes = 0
        self._receiver = Receiver(connection, info)
        self._info = info
        self._last_row: bytes = b""
        self._arena = _Arena(plan, _BATCH_ROWS, _BATCH_BYTES)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Run a SELECT of the plan's columns. To the end, or the connection must be closed.

        Raises SourceRefused, SourceUnavailable, SchemaMismatch, UnsupportedValue, StreamCorrupt.
        """
        receiver = self._receiver
        self.null_dates = self.null_dates_before = self.bytes = 0
        self.last_key = None
        receiver.command(_COM_STMT_PREPARE, sql.encode())
        number, columns, parameters = struct.unpack_from("<IHH", receiver.packet(), 1)
        for count in (parameters, columns):
            for _ in range(count + 1 if count else 0):  # definitions, and an EOF after them
                receiver.packet()
        receiver.command(_COM_STMT_EXECUTE, struct.pack("<IBI", number, 0, 1))
        receiver.packet()  # how many columns
        self.plan.check([_type_code(receiver.packet()) for _ in range(columns)])
        receiver.packet()
        stop, arena = K.Stop.MORE, self._arena
        while stop is not K.Stop.END:
            arena.clear()
            stop = self._fill(arena)
            if stop is K.Stop.BIG:
                if arena.rows:
                    yield self._batch(arena)
                yield self._long(receiver.long_row())
            elif arena.rows:
                yield self._batch(arena)
        receiver.packet()  # an EOF, or the error that ended the rows
        receiver.command(_COM_STMT_CLOSE, struct.pack("<I", number))

    def _fill(self, arena: _Arena) -> K.Stop:
        receiver, state = self._receiver, arena.state
        state[K.ROOM] = len(receiver.buffer)
        while True:
            state[K.READ], state[K.HAVE] = receiver.read, receiver.have
            stop = K.Stop(K.walk(receiver.buffer.ctypes.data, arena.words.ctypes.data, state.ctypes.data))
            if int(state[K.READ]) > receiver.read:
                at = int(state[K.LAST]) + 4
                size = int.from_bytes(receiver.view[at - 4 : at - 1], "little")
                self._last_row = bytes(receiver.view[at : at + size])
            self.bytes += int(state[K.READ]) - receiver.read
            receiver.read = int(state[K.READ])
            if stop is K.Stop.BAD:
                raise self._bad(arena)
            if stop is not K.Stop.MORE:
                return stop
            receiver.more()

    def _long(self, row: bytearray) -> pa.RecordBatch:
        """A batch of one row, up to max_allowed_packet long."""
        arena = _Arena(self.plan, 1, len(row))
        data = np.frombuffer(row, np.uint8)
        outcome = K.take_row(data.ctypes.data, len(row), arena.words.ctypes.data, arena.state.ctypes.data)
        if outcome < 0:
            raise self._bad(arena)
        self.bytes += len(row)
        self._last_row = bytes(row)
        return self._batch(arena)

    def _batch(self, arena: _Arena) -> pa.RecordBatch:
        self.null_dates_before = self.null_dates
        self.null_dates += int(arena.words[:, L.NULL_DATES].sum())
        self.last_key = key_literals(self.plan, self._last_row)
        return arena.batch()

    def _bad(self, arena: _Arena) -> Terminal:
        column = self.plan.columns[int(arena.state[K.ERROR_COLUMN])].name
        place = self.plan.version.name
        match int(arena.state[K.ERROR]):
            case L.ERROR_DATE:
                key = column in self.plan.version.key_names
                error = refused_date(column, "a zero or impossible date", key=key)
                return type(error)(error.what, where=place, remedy=error.remedy)
            case L.ERROR_BATCH:
                return UnsupportedValue(f"column {column} has more than 2 GiB", where=place, remedy=REPORT)
        return StreamCorrupt(
            f"a row of the result isn't what its columns say, at column {column}", where=place, remedy=REPORT
        )


def _type_code(definition: bytes) -> int:
    """In a column definition packet: catalog, schema, two tables, two names, 0x0c, charset 2, length 4, type."""
    at = 0
    for _ in range(6):
        first = definition[at]
        size = 1 if first < 251 else 3
        at += size + (first if size == 1 else int.from_bytes(definition[at + 1 : at + 3], "little"))
    while definition[at] != 0x0C:  # MariaDB's extended type, when it was asked for
        at += 1 + definition[at]
    return definition[at + 7]


class _Arena:
    """Room for a batch: every column of bytes could have all of them. An untouched part costs nothing."""

    def __init__(self, plan: ReadPlan, rows_max: int, bytes_max: int) -> None:
        self._plan = plan
        self._empty = plan.words.copy()
        self._rows_max, self._bytes_max = rows_max, bytes_max
        taken = 0

        def take(count: int) -> int:
            nonlocal taken
            at = taken
            taken += (count + _ALIGN - 1) // _ALIGN * _ALIGN
            return at

        variable = []
        for column, described in zip(plan.columns, self._empty, strict=True):
            if column.plan is None:
                continue
            described[L.VALID] = take(rows_max // 8 + 1)
            cell = column.plan.cell
            described[L.VALUES] = take(4 * (rows_max + 1) if cell in VARIABLE else OUT_BYTES[cell] * rows_max)
            if cell in VARIABLE:
                more = _TEXT_ROOM * (rows_max + 1) if column.read_as in (K.TIME, K.DECIMAL_TEXT) else 0
                described[L.BYTES_MAX] = bytes_max + more
                described[L.BYTES] = take(bytes_max + more)
                variable.append(described)
        self.buffer: pa.Buffer = pa.allocate_buffer(taken)
        self._empty[:, [L.VALUES, L.VALID, L.BYTES]] += self.buffer.address
        out = np.frombuffer(self.buffer, np.uint8)
        for described in variable:
            at = int(described[L.VALUES]) - self.buffer.address
            out[at : at + 4] = 0  # Arrow's first offset
        self.clear()

    def clear(self) -> None:
        """Without rows. The memory serves again: touching fresh memory costs more than the rows do."""
        self.words: Words = self._empty.copy()
        self.state: Words = np.zeros(K.STATE_WORDS, np.int64)
        self.state[K.ROWS_ROOM], self.state[K.TAKEN_ROOM] = self._rows_max, self._bytes_max
        self.state[K.COLUMNS] = len(self._plan.columns)

    @property
    def rows(self) -> int:
        return int(self.state[K.ROWS])

    def batch(self) -> pa.RecordBatch:
        """The rows. Raises UnsupportedValue for bytes outside their character set.

        A left-out column with such bytes is null, and said in the batch's metadata.
        """
        arrays, schema = list[pa.Array](), self._plan.schema
        unread: dict[str, str] = {}
        for column, described in zip(self._plan.columns, self.words, strict=True):
            if column.plan is None:
                continue
            try:
                arrays.append(finish_column(column.plan, described, self.rows, self.buffer))
            except Terminal as error:
                if column.name in self._plan.left_out:
                    field = schema.field(len(arrays))
                    arrays.append(pa.nulls(self.rows, field.type))
                    unread[field.name] = error.what
                    continue
                named_error = type(error)(f"column {column.name}: {error.what}", remedy=error.remedy)
                named_error.where = self._plan.version.name
                raise named_error from None
        return pa.RecordBatch.from_arrays(arrays, schema=schema.with_metadata(unread or None))
