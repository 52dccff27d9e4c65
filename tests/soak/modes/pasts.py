"""What a table has held: its rows, each with its versions, those that are gone, its changes; and statements about it.

In:  changes of rows, statements, in the order of the log.
Out: Past, as the source has it; follow(): what a statement does to pasts.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from tests.soak.modes.tables import DEFAULT, Table
from tests.soak.witness import Wrong

PARTITION_ROWS: Final = 100  # of each partition but the last one, of keys that begin at 0
PARTITIONS: Final = 3
_ALTER: Final = re.compile(r"ALTER TABLE (\w+) ")
_ACTION: Final = re.compile(
    r"(ADD) COLUMN (\w+) .*?DEFAULT '?(\w+)|(DROP) COLUMN (\w+)|(RENAME) COLUMN (\w+) TO (\w+)|(MODIFY) COLUMN "
    r"|(?:TRUNCATE|DROP) (PARTITION) p(\d)|(?:ADD PARTITION|PARTITION BY) "
)
_CREATE: Final = re.compile(r"CREATE TABLE `?(\w+)`? ")
_EMPTIES: Final = re.compile(r"(?:TRUNCATE TABLE|DROP TABLE) `?(\w+)`?")
_RENAME: Final = re.compile(r"(\w+) TO (\w+)")


class Moment(NamedTuple):
    """A commit: its number in the order of the log, and the server's clock."""

    number: int
    second: int


_Rows: TypeAlias = dict[tuple[Any, ...], dict[str, Any]]


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
    rows: _Rows = field(default_factory=dict)
    versions: dict[tuple[Any, ...], list[Version]] = field(default_factory=lambda: defaultdict(list))
    gone: _Rows = field(default_factory=dict)
    changes: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.table.key)

    def change(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        if self.table.has("changelog"):
            op = "insert" if before is None else "delete" if after is None else "update"
            self.changes.append((op, before, after))
        if not self.table.key:
            return
        if before is not None and _texts(self.rows.pop(self.key(before), {})) != _texts(before):
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
                if now is not None and _texts(last.row) == _texts(now):
                    continue
                last.end = moment
            if now is not None:
                self.versions[key].append(Version(dict(now), moment))

    def empty(self, moment: Moment, partition: int | None = None) -> None:
        """Of a partition, or all."""
        first = 0 if partition is None else partition * PARTITION_ROWS
        last = first + PARTITION_ROWS if partition is not None and partition < PARTITIONS - 1 else math.inf
        stays = {} if partition is None else {k: row for k, row in self.rows.items() if not first <= k[0] < last}
        self.take(stays, moment)

    def take(self, rows: _Rows, moment: Moment) -> None:
        """In place of its own."""
        touched = {*self.rows, *rows}
        self.gone |= {key: row for key, row in self.rows.items() if key not in rows}
        self.rows = rows
        self.end_transaction(touched, moment)

    def alter(self, action: str, column: str, value: Any = DEFAULT) -> None:
        """Old versions follow, as rows do. value: of the column that is added, or its new name."""
        held = [version.row for versions in self.versions.values() for version in versions]
        for row in [*held, *self.rows.values(), *self.gone.values()]:
            if action == "ADD":
                row[column] = value
            elif action == "RENAME":
                row[value] = row.pop(column)
            else:
                row.pop(column, None)
        if action != "ADD":
            self.added.remove(column)
        if action != "DROP":
            self.added.append(column if action == "ADD" else value)

    def follow(self, columns: Sequence[str]) -> None:
        """Another table has its name now. What it has had before loses columns that this one lacks."""
        for column in {*self.added} - {*columns}:
            self.alter("DROP", column)
        for column in {*columns} - {*self.added}:
            self.alter("ADD", column, None)

    def forget(self, key: tuple[Any, ...]) -> None:
        """It is erased."""
        self.versions.pop(key, None)
        self.gone.pop(key, None)
        images = ((before, after) for _, before, after in self.changes)
        theirs = [any(image is not None and self.key(image) == key for image in both) for both in images]
        self.changes = [change for change, is_theirs in zip(self.changes, theirs, strict=True) if not is_theirs]


def _texts(row: dict[str, Any]) -> dict[str, str]:
    """A changed type shows the same values in other words: 7 and '7'."""
    return {name: str(value) for name, value in row.items()}


def follow(pasts: Mapping[str, Past], text: str, moment: Moment) -> None:
    """What a statement does to those tables that are known. Raises Wrong: it isn't one of the soaks' own."""
    if altered := _ALTER.match(text):
        if altered[1] in pasts:
            _alter(pasts[altered[1]], text[altered.end() :], moment)
    elif emptied := _EMPTIES.match(text):
        if emptied[1] in pasts:
            pasts[emptied[1]].empty(moment)
    elif created := _CREATE.match(text):
        if created[1] in pasts:
            pasts[created[1]].follow(())
    elif text.startswith("RENAME TABLE "):
        _rename(pasts, _RENAME.findall(text), moment)
    else:
        raise Wrong(f"the soak's reader of the log doesn't know this statement: {text[:200]}")


def _alter(past: Past, text: str, moment: Moment) -> None:
    for action in text.split(", "):
        if (read := _ACTION.match(action)) is None:
            raise Wrong(f"the soak's reader of the log doesn't know this change of a table: {action[:200]}")
        match [word for word in read.groups() if word is not None]:
            case ["PARTITION", number]:
                past.empty(moment, int(number))
            case ["MODIFY"] | []:
                pass
            case words:
                past.alter(*words)


def _rename(pasts: Mapping[str, Past], pairs: Sequence[tuple[str, str]], moment: Moment) -> None:
    """Rows go to their new names; what a name has had before stays its own."""
    moved: dict[str, tuple[_Rows, list[str]] | None] = {}
    for old, new in pairs:
        rows = {key: dict(row) for key, row in pasts[old].rows.items()} if old in pasts else {}
        moved[new] = moved.get(old) or (rows, [*pasts[old].added])
        moved[old] = None
    for name, content in moved.items():
        if name in pasts:
            rows, columns = content or ({}, pasts[name].added)
            pasts[name].take({}, moment)
            pasts[name].follow(columns)
            pasts[name].take(rows, moment)
