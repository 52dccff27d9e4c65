"""The server's log, read by mysql-replication: what each table has held, from which second to which, by which changes.

In:  a server's binlog files on its disk, from a position on.
Out: Replay.advance() up to the log's end; then rows, versions and changes of each table, as the source has them.

Several changes of a row in one transaction make one version. DDL is that of the soaks alone, which comes in few forms
(pasts.py). Anything else stops it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.soak.modes.pasts import Moment, Past, follow
from tests.soak.modes.tables import NAMED, Table
from tests.soak.source import DATABASE
from tests.soak.witness import Wrong
from tests.support.captures import binlog_end
from tests.support.third_opinion import changes_of
from tidegate.local.server import Server

_QUERY, _FORMAT_DESCRIPTION, _XID, _GTID, _ANONYMOUS_GTID, _XA_PREPARE = 2, 15, 16, 33, 34, 38
# Flags, the server's UUID, a number, and the two of logical clocks with their kind come before it.
_COMMIT_TIME: Final = slice(42, 49)
_COMMIT_TIME_BITS: Final = 55
_ROWS: Final = frozenset((19, 23, 24, 25, 30, 31, 32))  # TABLE_MAP and what follows it
_HEADER, _CHECKSUM, _MAGIC = 19, 4, 4
_ANSWER: Final = re.compile(r"XA (COMMIT|ROLLBACK) X'(\w+)'")
_SILENT: Final = re.compile(r"XA (START|END)|CREATE (?!TABLE)|GRANT|SET|FLUSH|BEGIN|SAVEPOINT|INSERT INTO mysql|/\*")


class Replay:
    """pasts: by the table's name."""

    def __init__(self, server: Server, tables: Mapping[str, Table] = NAMED) -> None:
        self.pasts = {name: Past(table) for name, table in tables.items()}
        self._server = server
        self._flavour = "mysql" if server.flavour == "mysql" else "mariadb"
        self._file, self._at = binlog_end(server)
        self._commits = 0
        self._second = 0  # of the newest commit: they come in order, whenever their statements began
        self._commit_second = 0  # of the transaction at hand, by its GTID event; 0: a MariaDB has none
        self._open: list[bytes] = []  # TABLE_MAP and rows of a transaction
        self._prepared: dict[str, list[bytes]] = {}  # the same, of branches that nobody has answered

    def advance(self) -> None:
        """The server is quiet. Raises Wrong."""
        last, end = binlog_end(self._server)
        folder = Path(self._server.data) / "data"
        while True:
            for event in self._events(folder / self._file):
                self._take(event)
            if self._file == last:
                break
            self._file, self._at = _after(self._file), _MAGIC
        if self._at != end:
            raise Wrong(f"the log ends at {self._file}:{self._at}, and the server says {last}:{end}")

    def _events(self, file: Path) -> Iterator[bytes]:
        """Whole ones; a crash may have torn the last one of a file."""
        with file.open("rb") as log:
            log.seek(self._at)
            while len(header := log.read(_HEADER)) == _HEADER:
                size = int.from_bytes(header[9:13], "little")
                event = header + log.read(size - _HEADER)
                if len(event) < size:
                    return
                self._at += size
                yield event

    def _take(self, event: bytes) -> None:
        # The header of an event has the second in which its statement began: a busy server commits seconds later.
        kind, second = event[4], self._commit_second or int.from_bytes(event[:4], "little")
        if kind == _FORMAT_DESCRIPTION:
            self._open.clear()  # of a server that died
        elif kind in (_GTID, _ANONYMOUS_GTID):
            self._commit_second = _commit_second(event[_HEADER:])
        elif kind in _ROWS:
            self._open.append(event)
        elif kind == _XID:
            self._commit(second)
        elif kind == _XA_PREPARE:
            self._prepare(event[_HEADER:], second)
        elif kind == _QUERY:
            self._statement(event, second)

    def _prepare(self, body: bytes, second: int) -> None:
        """One phase or not, a number, two lengths, the name."""
        if body[0]:
            self._commit(second)
            return
        self._prepared[body[13 : 13 + int.from_bytes(body[5:9], "little")].hex()] = [*self._open]
        self._open.clear()

    def _commit(self, second: int) -> None:
        touched: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        for name, before, after in changes_of(self._open, flavour=self._flavour):
            if (past := self.pasts.get(name)) is None:
                continue
            past.change(before, after)
            touched[name].update(past.key(image) for image in (before, after) if image is not None)
        self._open.clear()
        moment = self._moment(second)
        for name, keys in touched.items():
            self.pasts[name].end_transaction(keys, moment)

    def _moment(self, second: int) -> Moment:
        self._commits += 1
        self._second = max(self._second, second)
        return Moment(self._commits, self._second)

    def _statement(self, event: bytes, second: int) -> None:
        """QUERY_EVENT: https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binary__log_1_1Query__event.html"""
        body = event[_HEADER:-_CHECKSUM]
        at = 13 + int.from_bytes(body[11:13], "little")
        database, text = body[at : at + body[8]].decode(), body[at + body[8] + 1 :].decode()
        if text == "ROLLBACK":
            self._open.clear()
        elif text == "COMMIT":
            self._commit(second)
        elif answer := _ANSWER.match(text):
            rows = self._prepared.pop(answer[2])
            if answer[1] == "COMMIT":
                self._open = rows
                self._commit(second)
        elif database == DATABASE and not _SILENT.match(text):
            follow(self.pasts, text, self._moment(second))


def _commit_second(body: bytes) -> int:
    """immediate_commit_timestamp, which is in microseconds:
    https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Gtid__event.html
    """
    return (int.from_bytes(body[_COMMIT_TIME], "little") & ((1 << _COMMIT_TIME_BITS) - 1)) // 1_000_000


def _after(file: str) -> str:
    stem, _, number = file.rpartition(".")
    return f"{stem}.{int(number) + 1:0{len(number)}d}"
