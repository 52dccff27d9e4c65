"""A column and a version of a table, as schema_history keeps them.

In:  information_schema (baseline) or a parsed DDL.
Out: frozen values with a JSON form (the `columns` cell of control/schema_history) and a fingerprint.

A column's id is given once and survives renames; silver follows ids, never names or positions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, Self

from tidegate.schema.model.partitions import (
    Partitioning,
    RowsMoved,
    from_text,
    moved_from_text,
    moved_to_text,
    to_text,
)
from tidegate.schema.model.server_settings import ServerSettings
from tidegate.schema.model.unlogged import ForeignKey
from tidegate.silver_names import silver_column
from tidegate.table_names import Physical


class Generated(StrEnum):
    NO = ""
    STORED = "stored"  # MariaDB PERSISTENT too; in the row image
    VIRTUAL = "virtual"


class VersionStatus(StrEnum):
    ACTIVE = "active"
    DROPPED = "dropped"
    NEEDS_SNAPSHOT = "needs_snapshot"  # held rows before capture started, or its rows can't be known from the log
    UNPROVEN = "unproven"  # nor can its columns: a statement about it wasn't followed, or may have found it there

    @property
    def waits(self) -> bool:
        """Whether the log doesn't tell a table's rows."""
        return self in (VersionStatus.NEEDS_SNAPSHOT, VersionStatus.UNPROVEN)

    @property
    def emptied(self) -> VersionStatus:
        """After TRUNCATE, which says nothing of columns."""
        return self if self is VersionStatus.UNPROVEN else VersionStatus.ACTIVE

    @property
    def without_rows(self) -> VersionStatus:
        """The status of a table of which not all rows are known any more."""
        return self if self is VersionStatus.UNPROVEN else VersionStatus.NEEDS_SNAPSHOT


LEFT_OUT: Final = "left_out"  # kind of a version from which on silver lacks a shard's rows
WAITING: Final = tuple(status for status in VersionStatus if status.waits)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table version.

    type: the server's column_type in lower case as information_schema shows it, e.g. "int(10) unsigned",
    "decimal(12,2)", "enum('a','b')", "datetime(6)". charset and collation are "" for types without one.
    default: the literal's text without quotes, or the expression's text; None when there is none or it is NULL;
    default_is_expression tells CURRENT_TIMESTAMP, UUID() and the like from literals. no_default: not even NULL (ALTER
    COLUMN ... DROP DEFAULT). on_update: "CURRENT_TIMESTAMP(3)", or "". generation_expression: as the server shows it,
    as far as we understand it; "ROW START" and "ROW END" in a system-versioned table. alias: its name in silver by the
    pipeline file, "" for none; schema_history doesn't keep it (renamed.py).
    """

    id: int
    name: str
    type: str
    nullable: bool = True
    charset: str = ""
    collation: str = ""
    default: str | None = None
    default_is_expression: bool = False
    generated: Generated = Generated.NO
    generation_expression: str = ""
    auto_increment: bool = False
    invisible: bool = False
    comment: str = ""
    on_update: str = ""
    no_default: bool = False
    alias: str = ""

    @property
    def silver(self) -> str:
        """Its name in silver."""
        return self.alias or silver_column(self.name)


# What a column's JSON always says; the rest only where it isn't what most columns have.
_ALWAYS_SAID: Final = frozenset({"id", "name", "type", "nullable"})
_USUAL: Final = {item.name: item.default for item in fields(Column) if item.name != "alias"}


def _cell(column: Column) -> dict[str, Any]:
    """JSON of a column: a million versions are kept, and most of what there is to say is usual."""
    cells = {name: getattr(column, name) for name in _USUAL}
    return {name: cell for name, cell in cells.items() if name in _ALWAYS_SAID or cell != _USUAL[name]}


class IndexKind(StrEnum):
    PRIMARY = "primary"
    UNIQUE = "unique"
    PLAIN = "plain"  # also fulltext, spatial, vector: none of them identifies a row


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table version: a DROP INDEX or DROP COLUMN may change which key identifies a row.

    parts: ids of its columns in order; 0 stands for an expression. whole: no part is a prefix or an expression.
    made_for_key: the server made it for a foreign key, and drops it when another index covers the same columns.
    hidden_end: unique together with the row end of a system-versioned table, which nobody sees.
    """

    name: str
    kind: IndexKind
    parts: tuple[int, ...]
    whole: bool = True
    made_for_key: bool = False
    hidden_end: bool = False


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The columns of a physical table for transactions with this commit_ts or a larger one, up to the next version's.

    key: ids of the primary key's columns in key order, else of the first unique key whose columns are all
    NOT NULL (shortest wins, then the name; no prefix lengths), else (). charset and collation: the table's defaults.

    moved: rows moved or deleted by the statement without row events. engine: in lower case, "" for InnoDB.
    foreign_keys: those with changes of this table's rows. merged_by: the MERGE table over it. origin: the source's own
    description, where rows refer to it (TiDB's ids of tables and columns); its reader's business. comment: the
    table's; None where nobody has said it.

    A row with table "" is not a table: it holds the defaults of its database (of the server, when database is "" too:
    then also its settings).
    """

    source: str
    database: str
    table: str
    version: int
    commit_ts: int
    file: str
    pos: int
    kind: str
    ddl: str
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    charset: str
    status: VersionStatus = VersionStatus.ACTIVE
    collation: str = ""
    indexes: tuple[Index, ...] = ()
    partitioning: Partitioning | None = None
    moved: RowsMoved | None = None
    engine: str = ""
    foreign_keys: tuple[ForeignKey, ...] = ()
    merged_by: tuple[str, ...] = ()
    settings: ServerSettings | None = None
    origin: str = ""
    comment: str | None = None

    @property
    def physical(self) -> Physical:
        return Physical(self.source, self.database, self.table)

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def where(self) -> str:
        """For errors: the table, and where the DDL that made this version ends."""
        return f"{self.source} {self.name} at {self.file}:{self.pos}"

    @property
    def key_names(self) -> tuple[str, ...]:
        by_id = {column.id: column.name for column in self.columns}
        return tuple(by_id[i] for i in self.key)

    @property
    def key_index(self) -> str:
        """The name of the index that is the key; "" where none is known."""
        return next((index.name for index in self.indexes if index.whole and index.parts == self.key), "")

    @property
    def silver_key(self) -> tuple[str, ...]:
        """key_names as silver has them."""
        by_id = {column.id: column.silver for column in self.columns}
        return tuple(by_id[i] for i in self.key)

    @property
    def plain(self) -> TableVersion:
        """The version under the source's own names."""
        if not any(column.alias for column in self.columns):
            return self
        return replace(self, columns=tuple(replace(column, alias="") for column in self.columns))

    @property
    def aliases(self) -> dict[str, str]:
        """The names in silver by the pipeline file, by what they are without it."""
        return {silver_column(column.name): column.alias for column in self.columns if column.alias}

    @property
    def fingerprint(self) -> str:
        """32 hex digits of columns (comments and defaults left out: they change no byte of a row) and key."""
        shape = [
            [c.id, c.name, c.type, c.nullable, c.charset, c.collation, str(c.generated), c.invisible]
            for c in self.columns
        ]
        text = json.dumps([shape, list(self.key), str(self.status)], ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def to_row(self) -> dict[str, Any]:
        """The row of control/schema_history."""
        return {
            "source": self.source,
            "database": self.database,
            "table": self.table,
            "version": self.version,
            "commit_ts": self.commit_ts,
            "file": self.file,
            "pos": self.pos,
            "kind": self.kind,
            "ddl": self.ddl,
            "columns": json.dumps([_cell(c) for c in self.columns], ensure_ascii=False),
            "key_columns": json.dumps(list(self.key)),
            "charset": self.charset,
            "fingerprint": self.fingerprint,
            "status": str(self.status),
            "collation": self.collation,
            "indexes": json.dumps([asdict(i) for i in self.indexes], ensure_ascii=False),
            "last_column_id": max((c.id for c in self.columns), default=0),
            "partitioning": to_text(self.partitioning),
            "moved": moved_to_text(self.moved),
            "engine": self.engine or None,
            "foreign_keys": json.dumps([asdict(k) for k in self.foreign_keys]) if self.foreign_keys else None,
            "merged_by": list(self.merged_by) or None,
            "settings": self.settings.to_text() if self.settings else None,
            "origin": self.origin or None,
            "comment": self.comment,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        return cls(
            source=row["source"],
            database=row["database"],
            table=row["table"],
            version=row["version"],
            commit_ts=row["commit_ts"],
            file=row["file"],
            pos=row["pos"],
            kind=row["kind"],
            ddl=row["ddl"],
            columns=tuple(_COLUMNS.decode(row["columns"])),
            key=tuple(json.loads(row["key_columns"])),
            charset=row["charset"],
            status=VersionStatus(row["status"]),
            collation=row["collation"],
            indexes=tuple(
                Index(**{**cell, "kind": IndexKind(cell["kind"]), "parts": tuple(cell["parts"])})
                for cell in json.loads(row["indexes"])
            ),
            partitioning=from_text(row.get("partitioning")),
            moved=moved_from_text(row.get("moved")),
            engine=row.get("engine") or "",
            foreign_keys=tuple(
                ForeignKey(
                    **{**cell, **{name: tuple(value) for name, value in cell.items() if isinstance(value, list)}}
                )
                for cell in json.loads(row.get("foreign_keys") or "[]")
            ),
            merged_by=tuple(row.get("merged_by") or ()),
            settings=ServerSettings.from_text(row.get("settings")),
            origin=row.get("origin") or "",
            comment=row.get("comment"),
        )


@lru_cache(maxsize=4096)
def _column(cell: tuple[tuple[str, Any], ...]) -> Column:
    """A column from its names and values. Nearly all columns of a version are those of the one before: they are one
    value in memory, and a long history is no more objects than it has different columns.
    """
    fields = dict(cell)
    return Column(**{**fields, "generated": Generated(fields.get("generated", ""))})


_COLUMNS: Final = json.JSONDecoder(object_pairs_hook=lambda pairs: _column(tuple(pairs)))


def why_unproven(version: TableVersion) -> str:
    """The columns in doubt of a version with that status, in a phrase."""
    match version.kind:
        case "create":
            return f"{version.ddl[:120]} may have found it there, with columns and rows that the binlog doesn't show"
        case "unfollowed":
            return f"{version.ddl[:120]} couldn't be followed, so its columns aren't known"
        case _:
            return f"its columns aren't known, which {version.kind} ({version.ddl[:120]}) doesn't change"


def was_there(versions: Sequence[TableVersion], commit_ts: int) -> bool:
    """Whether a table may have been there: unless it is known that it came later, or was dropped before."""
    before = [version for version in versions if version.commit_ts <= commit_ts]
    last = max(before, key=lambda version: version.commit_ts, default=None)
    return not versions or (last is not None and last.status is not VersionStatus.DROPPED)
