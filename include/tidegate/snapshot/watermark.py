"""The marks of a wave's beginning and end in the log.

In:  a reader's marks; apply's findings in the log.
Out: the text of a mark, the SQL to write it, the table version for decoding its rows.

There is one row per pipeline and source. Each mark is an UPDATE of it with its own commit. All
facts of a mark are in one column, whose value is new each time. Therefore an image without unchanged
columns (binlog_row_image=MINIMAL) still has all of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import xor
from typing import Final, Protocol, Self

from tidegate.errors import DecodeError
from tidegate.schema.model.columns import Column, Index, IndexKind, TableVersion
from tidegate.tables import WATERMARK_DATABASE, WATERMARK_TABLE

_PLACE: Final = f"`{WATERMARK_DATABASE}`.`{WATERMARK_TABLE}`"
# Of names as UTF-8; a key of two such columns fits every server's index.
NAME_BYTES_MAX: Final = 255

CREATE: Final = (
    f"CREATE DATABASE IF NOT EXISTS `{WATERMARK_DATABASE}`",
    (
        f"CREATE TABLE IF NOT EXISTS {_PLACE} (pipeline VARBINARY({NAME_BYTES_MAX}) NOT NULL,"
        f" source VARBINARY({NAME_BYTES_MAX}) NOT NULL, mark MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL,"
        " PRIMARY KEY (pipeline, source)) ENGINE = InnoDB"
    ),
)
# Values to bind: pipeline, source; and mark, pipeline, source.
BEGIN: Final = f"INSERT IGNORE INTO {_PLACE} (pipeline, source, mark) VALUES (%s, %s, '')"
WRITE: Final = f"UPDATE {_PLACE} SET mark = %s WHERE pipeline = %s AND source = %s"


class MarkKind(StrEnum):
    """The content of a mark."""

    LOW = "low"  # what was committed before it is visible to every read of the wave
    HIGH = "high"  # the wave's reads have ended, and its chunks are in bronze
    END = "end"  # these tables have been read as a whole


class Summed(Protocol):
    """The part of a chunk in a manifest."""

    @property
    def payload_crc32c(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """A wave's share of one table. crc: XOR of its payloads' CRC-32C; chunks may come in any order."""

    database: str
    table: str
    chunks: int = 0
    crc: int = 0

    @classmethod
    def of(cls, name: tuple[str, str], chunks: Collection[Summed]) -> Self:
        """The manifest of a table's chunks."""
        return cls(*name, len(chunks), reduce(xor, (chunk.payload_crc32c for chunk in chunks), 0))

    @property
    def name(self) -> tuple[str, str]:
        return self.database, self.table


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark. token: 32 hex digits, the same in a wave's low and high mark. tables: () in a low
    one.

    at: of a high mark: the place in the log (`file:offset`) up to which the wave's single view sees
    it; "" if the low mark is that place, or if the wave has many views. exact: of a high mark: the
    view lies exactly there also for unlogged changes by foreign keys (snapshot/by_view.py).
    """

    snapshot: str
    wave: int
    kind: MarkKind
    token: str
    tables: tuple[Manifest, ...] = ()
    at: str = ""
    exact: bool = False

    def to_text(self) -> str:
        """JSON, as the column `mark` holds it."""
        tables = [[manifest.database, manifest.table, manifest.chunks, manifest.crc] for manifest in self.tables]
        fields = {
            "snapshot": self.snapshot,
            "wave": self.wave,
            "kind": self.kind,
            "token": self.token,
            "tables": tables,
        }
        fields |= {"at": self.at} | ({"exact": True} if self.exact else {})
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """The inverse; None for a reader's first row. Raises DecodeError for text of no reader."""
        if not text:
            return None
        try:
            fields = json.loads(text)
            tables = tuple(Manifest(str(d), str(t), int(chunks), int(crc)) for d, t, chunks, crc in fields["tables"])
            return cls(
                str(fields["snapshot"]),
                int(fields["wave"]),
                MarkKind(fields["kind"]),
                str(fields["token"]),
                tables,
                str(fields["at"]),
                bool(fields.get("exact", False)),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise DecodeError(
                f"a mark of {WATERMARK_DATABASE}.{WATERMARK_TABLE} isn't one of tidegate's: {text[:120]!r}",
                remedy="leave that table to tidegate; the snapshot goes on with its next wave",
            ) from error


def watermark_version(source: str) -> TableVersion:
    """The table as tidegate makes it, whatever schema_history knows of it; at every commit_ts."""
    names = Column(1, "pipeline", f"varbinary({NAME_BYTES_MAX})", nullable=False)
    key = (1, 2)
    columns = (
        names,
        Column(2, "source", names.type, nullable=False),
        Column(3, "mark", "mediumtext", nullable=False, charset="utf8mb4"),
    )
    return TableVersion(
        source=source,
        database=WATERMARK_DATABASE,
        table=WATERMARK_TABLE,
        version=1,
        commit_ts=0,
        file="",
        pos=0,
        kind="create",
        ddl=CREATE[1],
        columns=columns,
        key=key,
        charset="utf8mb4",
        indexes=(Index("PRIMARY", IndexKind.PRIMARY, key),),
    )
