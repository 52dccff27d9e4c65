"""A segment: a run of whole raw events of a source, with all that is needed to decode it alone.

In:  capture cuts it.
Out: one row of bronze/segments. Apply reads it back, and decodes it with only schema_history beside
     it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Self, TypeAlias

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REFILL
from tidegate.segments.crc32c import crc32c
from tidegate.tables import EVERY_TABLE, SegmentFlag, SegmentKind

# (id, uuid) of the server that a segment's place belongs to
Server: TypeAlias = tuple[int, str]
NO_SERVER: Final[Server] = (0, "")


# Kinds of segments whose readers promise that they hold transactions whole (SegmentRef.whole). Only TiDB's binlog has
# the rows of a transaction and its commit apart.
WHOLE_KINDS: Final = frozenset(SegmentKind) - {SegmentKind.TIDB}


def may_name(names: Collection[str], table: tuple[str, str]) -> bool:
    """Whether the names in a segment's `tables` may mean this (database, table)."""
    return EVERY_TABLE in names or ".".join(table) in names


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of bronze/segments; tables.SEGMENTS says what each field means.

    server_id, server_uuid, file, start_pos, end_pos and gtid_executed are a place at the source:
    only code of its kind of source compares or orders them. Other code uses `server`, `start`,
    `end` and the count of bytes.
    """

    source: str
    seq: int
    kind: SegmentKind
    server_id: int
    server_uuid: str
    file: str
    start_pos: int
    end_pos: int
    gtid_executed: str
    prev_commit_ts: int
    min_commit_ts: int
    max_commit_ts: int
    resolved_ts: int
    tables: tuple[str, ...]
    flags: SegmentFlag
    event_count: int
    txn_count: int
    context: bytes | memoryview
    payload: bytes | memoryview
    payload_crc32c: int
    captured_at: datetime
    ceiling_ms: int = 0

    @property
    def where(self) -> str:
        """The place for error messages."""
        return f"{self.source} at {self.start}"

    @property
    def server(self) -> Server:
        return self.server_id, self.server_uuid

    @property
    def start(self) -> str:
        """The place where it begins, as a person finds it at the source."""
        return f"{self.file}:{self.start_pos}"

    @property
    def end(self) -> str:
        return f"{self.file}:{self.end_pos}"

    @property
    def has_bytes(self) -> bool:
        """Whether it stands for bytes of the source, also if its payload was left out. A heartbeat
        doesn't.
        """
        return self.end_pos > self.start_pos

    def verify(self) -> None:
        """Raise StreamCorrupt if the payload has changed since it was cut."""
        checksum = crc32c(self.payload)
        if checksum != self.payload_crc32c:
            raise StreamCorrupt(
                f"payload of segment {self.seq} has CRC-32C {checksum:#010x}, its row in bronze says"
                f" {self.payload_crc32c:#010x}: its bytes were changed after they were captured",
                where=self.where,
                remedy=REFILL.after("restore bronze's file from a copy, then `tidegate release`"),
            )

    def to_row(self) -> dict[str, Any]:
        """The row of bronze/segments. The tidb columns are null for a binlog segment."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        row |= {
            "day": self.captured_at.date(),
            "flags": int(self.flags),
            "kind": str(self.kind),
            "tables": list(self.tables),
        }
        return row | {"min_start_ts": None, "max_start_ts": None}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        cells = {field.name: row[field.name] for field in fields(cls)}
        cells |= {"kind": SegmentKind(row["kind"]), "flags": SegmentFlag(row["flags"]), "tables": tuple(row["tables"])}
        return cls(**cells)
