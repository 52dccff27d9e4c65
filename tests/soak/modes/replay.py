"""The server's log, read by mysql-replication: what each table has held, from which second to which, by which changes.

In:  a server's binlog files on its disk, from a position on.
Out: Replay.advance() up to the log's end; then rows, versions and changes of each table, as the source has them.

Several changes of a row in one transaction make one version. DDL is that of the soak alone: columns that are added with
a default and dropped, TRUNCATE, DROP and CREATE. Anything else stops it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.soak.modes.tables import DEFAULT, NAMED, Table
from tests.soak.source import DATABASE
from tests.soak.witness import Wrong
from tests.support.captures import binlog_end
from tests.support.third_opinion import changes_of
from tidegate.local.server import Server

_QUERY, _FORMAT_DESCRIPTION, _XID, _TABLE_MAP = 2, 15, 16, 19
_ROWS: Final = frozenset((19, 23, 24, 25, 30, 31, 32))  # TABLE_MAP and what follows it
_HEADER, _CHECKSUM, _MAGIC = 19, 4, 4
_ALTER: Final = re.compile(r"ALTER TABLE (\w+) (ADD|DROP) COLUMN (\w+)")
_EMPTIES: Final = re.compile(r"(?:TRUNCATE TABLE|DROP TABLE) `?(\w+)`?")
_CREATE: Final = re.compile(r"CREATE TABLE `?(\w+)`? ")
_SILENT: Final = re.compile(r"CREATE|GRANT|SET|FLUSH|BEGIN|SAVEPOINT|INSERT INTO mysql|/\*")


class Moment(NamedTuple):
    """A commit: its number in the order of the log, and the server's clock."""

    number: int
    second: int


@dataclass(slots=True)
class Version:
    """A row from a commit to another one; end: None, it is there."""

    row: dict[str, Any]
    begin: Moment
    end: Moment | None = None


@dataclass(slots=True)
class Past:
    """rows: key -> row; versions: key -> all that there were, the oldest first; gone: key -> the row that went last,
    also within its own transaction; changes: op, before, after; added: columns that the CREATE doesn't have.
    """

    table: Table
    rows: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    versions: dict[tuple[Any, ...], list[Version]] = field(default_factory=lambda: defaultdict(list))
    gone: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    changes: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.table.key)

    def change(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        if self.table.is_logged:
            op = "insert" if before is None else "delete" if after is None else "update"
            self.changes.append((op, before, after))
        if not self.table.key:
            return
        if before is not None and self.rows.pop(self.key(before), None) != before:
            raise Wrong(f"the log changes a row of {self.table.name} that it doesn't have: {before}")
        if before is not None:
            self.gone[self.key(before)] = dict(before)
        if after is not None:
            self.rows[self.key(after)] = dict(after)

    def end_transaction(self, touched: set[tuple[Any, ...]], moment: Moment) -> None:
        for key in touched:
            last = self.versions[key][-1] if self.versions[key] else None
            now = self.rows.get(key)
            if last is not None and last.end is None:
                if last.row == now:
                    continue
                last.end = moment
            if now is not None:
                self.versions[key].append(Version(dict(now), moment))

    def empty(self, moment: Moment) -> None:
        touched = set(self.rows)
        self.gone |= self.rows
        self.rows = {}
        self.end_transaction(touched, moment)

    def alter(self, action: str, column: str) -> None:
        """Old versions follow, as rows do."""
        held = [version.row for versions in self.versions.values() for version in versions]
        for row in [*held, *self.rows.values(), *self.gone.values()]:
            if action == "ADD":
                row[column] = DEFAULT
            else:
                row.pop(column, None)
        (self.added.append if action == "ADD" else self.added.remove)(column)

    def create(self) -> None:
        """The new table lacks columns that the one before had got. Old versions and deleted rows follow."""
        for column in [*self.added]:
            self.alter("DROP", column)


class Replay:
    """pasts: by the table's name."""

    def __init__(self, server: Server) -> None:
        self.pasts = {name: Past(table) for name, table in NAMED.items()}
        self._server = server
        self._flavour = "mysql" if server.flavour == "mysql" else "mariadb"
        self._file, self._at = binlog_end(server)
        self._commits = 0
        self._open: list[bytes] = []  # TABLE_MAP and rows of a transaction

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
        kind, second = event[4], int.from_bytes(event[:4], "little")
        if kind == _FORMAT_DESCRIPTION:
            self._open.clear()  # of a server that died
        elif kind in _ROWS:
            self._open.append(event)
        elif kind == _XID:
            self._commit(second)
        elif kind == _QUERY:
            self._statement(event, second)

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
        return Moment(self._commits, second)

    def _statement(self, event: bytes, second: int) -> None:
        """QUERY_EVENT: https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binary__log_1_1Query__event.html"""
        body = event[_HEADER:-_CHECKSUM]
        at = 13 + int.from_bytes(body[11:13], "little")
        database, text = body[at : at + body[8]].decode(), body[at + body[8] + 1 :].decode()
        if text == "ROLLBACK":
            self._open.clear()
        elif text == "COMMIT":
            self._commit(second)
        elif database == DATABASE and (created := _CREATE.match(text)):
            if created[1] in self.pasts:
                self.pasts[created[1]].create()
        elif database == DATABASE and not _SILENT.match(text):
            self._ddl(text, second)

    def _ddl(self, text: str, second: int) -> None:
        if altered := _ALTER.match(text):
            name, action, column = altered.groups()
            if name in self.pasts:
                self.pasts[name].alter(action, column)
        elif emptied := _EMPTIES.match(text):
            if emptied[1] in self.pasts:
                self.pasts[emptied[1]].empty(self._moment(second))
        else:
            raise Wrong(f"the soak's reader of the log doesn't know this statement: {text[:200]}")


def _after(file: str) -> str:
    stem, _, number = file.rpartition(".")
    return f"{stem}.{int(number) + 1:0{len(number)}d}"
