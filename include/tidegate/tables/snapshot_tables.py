"""The tables of snapshots and verifications: chunks in bronze, events and results in control.

In:  nothing; this is data, a part of tables/.
Out: Arrow schemas.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field

CHUNKS: Final = Table(
    path="bronze/chunks",
    doc="Rows read from a source's table by SELECT: a chunk is a transaction that rewrote its rows at its low watermark.",
    key=("source", "low_token", "database", "table", "chunk"),
    partition_by=("source", "day"),
    schema=pa.schema(
        [
            field("source", pa.string(), "name of the source in the pipeline file"),
            field("day", pa.date32(), "UTC day of read_at"),
            field("snapshot", pa.string(), "the snapshot that it is of: 32 hex digits"),
            field("database", pa.string(), "as the server spells it"),
            field("table", pa.string(), "as the server spells it"),
            field("wave", pa.int64(), "1, 2, ... per snapshot: what was read between two watermarks"),
            field("chunk", pa.int64(), "1, 2, ... per table and wave"),
            field("low_token", pa.string(), "names the low watermark: its uuid as 32 hex digits, or a GTID set"),
            field("high_token", pa.string(), "names the high watermark; the same uuid where watermarks are written"),
            field(
                "key_after",
                pa.string(),
                "JSON list of literals: rows have keys above it; null: from the first key",
                nullable=True,
            ),
            field(
                "key_upto",
                pa.string(),
                "JSON list of literals: up to and including it; null: to the last key",
                nullable=True,
            ),
            field("rows", pa.int64(), "rows in payload"),
            field("version", pa.int64(), "version in control/schema_history that the reader knew; 0: none"),
            field("shape", pa.string(), "of the columns as they were read: names and types (snapshot/chunks/chunk.py)"),
            field(
                "payload",
                pa.large_binary(),
                "Arrow IPC stream, zstd: the columns as decode yields them, without its own",
            ),
            field("payload_bytes", pa.int64(), "length of payload"),
            field("payload_crc32c", pa.int64(), "CRC-32C of payload; the high watermark has the XOR of a wave's"),
            field("null_dates", pa.int64(), "zero and impossible dates in it that became null"),
            field("server_id", pa.int64(), "server_id of the server that it was read from"),
            field("server_uuid", pa.string(), "its server_uuid (MySQL) or server_uid (MariaDB); '' when it has none"),
            field("read_at", pa.timestamp("us", tz="UTC"), "when its last row was read"),
            field(
                "deletes", pa.bool_(), "of a repair: rows as silver had them that the source hasn't; apply deletes them"
            ),
        ]
    ),
)

SNAPSHOTS: Final = Table(
    path="control/snapshots",
    doc="What happens to snapshots, as events: asked for, waves read, applied or refused, paused, done.",
    key=("snapshot", "database", "table", "recorded_at"),
    schema=pa.schema(
        [
            field("snapshot", pa.string(), "32 hex digits"),
            field("pipeline", pa.string(), "pipeline"),
            field("source", pa.string(), "name of the source"),
            field("database", pa.string(), "physical table's; '' of an event of the whole snapshot"),
            field("table", pa.string(), "physical table's; '' of an event of the whole snapshot"),
            field(
                "event",
                pa.string(),
                "requested | ranges | view | wave | marked | placed | opened | applied | refused | ended | done | paused | resumed"
                " | cancelled | failed",
            ),
            field("wave", pa.int64(), "of view, wave, opened, applied, refused; 0 elsewhere"),
            field("token", pa.string(), "the wave's low_token; '' elsewhere"),
            field(
                "low_ts",
                pa.int64(),
                "opened and applied: commit_ts of the low watermark, which the rows have; opened with a table: where silver"
                " was emptied; marked: all at or below it was visible; view: the table is read at it",
                nullable=True,
            ),
            field(
                "high_ts",
                pa.int64(),
                "applied, refused, placed: commit_ts of the high watermark; marked: all that was read is at or below it",
                nullable=True,
            ),
            field(
                "spans",
                pa.string(),
                "JSON list of [after, upto]: ranges: what the table was divided into; wave: what it read",
                nullable=True,
            ),
            field("chunks", pa.int64(), "wave: chunks of the table"),
            field("rows", pa.int64(), "wave: rows read"),
            field("bytes", pa.int64(), "wave: bytes of payloads"),
            field("seconds", pa.float64(), "wave: from its low to its high watermark"),
            field(
                "options",
                pa.string(),
                "requested: JSON of what was asked for; ranges: by which columns; marked: of the mark",
                nullable=True,
            ),
            field(
                "definition",
                pa.string(),
                "wave: JSON of a row of control/schema_history as the server had the table, where apply may not know it",
                nullable=True,
            ),
            field("reason", pa.string(), "one line; '' when there is none"),
            field("recorded_at", pa.timestamp("us", tz="UTC"), "when"),
        ]
    ),
)

VERIFICATION: Final = Table(
    path="control/verification",
    doc="What `tidegate verify` found: a row per range of a table's key, and after them one of the table.",
    key=("verification", "source", "database", "table", "chunk"),
    schema=pa.schema(
        [
            field("verification", pa.string(), "32 hex digits, one run"),
            field("pipeline", pa.string(), "pipeline"),
            field("source", pa.string(), "name of the source; '' of a silver table that no source has"),
            field("database", pa.string(), "physical table's"),
            field("table", pa.string(), "physical table's"),
            field("silver", pa.string(), "logical table, database.table"),
            field("chunk", pa.int64(), "1, 2, ... in the order of the key; 0: the whole table"),
            field(
                "key_after", pa.string(), "JSON list of literals: keys above it; null: from the first", nullable=True
            ),
            field("key_upto", pa.string(), "JSON list of literals: up to it; null: to the last", nullable=True),
            field("source_rows", pa.int64(), "rows as the source had them when the range was read"),
            field("silver_rows", pa.int64(), "rows of silver at cut_ts with the same keys; of the table: all"),
            field("source_hash", pa.string(), "16 hex digits over keys and values, in any order"),
            field(
                "silver_hash", pa.string(), "the same of silver; it differs where rows changed between both reads, too"
            ),
            field(
                "outcome",
                pa.string(),
                "of the table: equal | different | unsettled | held | waits | dropped | unverified; '' of a range",
            ),
            field("seemed", pa.int64(), "keys that seemed to differ at first"),
            field("different", pa.int64(), "rows that differ"),
            field("unsettled", pa.int64(), "keys that changed between each two reads"),
            field("cut_ts", pa.int64(), "the cut of the first comparison"),
            field("verified_through", pa.int64(), "no fault from at or below this commit_ts is left in what is equal"),
            field("reason", pa.string(), "one line; '' when there is none"),
            field("recorded_at", pa.timestamp("us", tz="UTC"), "when"),
        ]
    ),
)
