"""The Delta tables of a lake: name, columns, keys, meaning. Jobs share nothing else.

In:  nothing; this is data.
Out: Arrow schemas of what capture and jobs write. People read it with any reader of Delta.

A lake belongs to one pipeline. Under its path: bronze/<table>, control/<table>, silver/<database>/<table>.
Bronze stays plain (no deletion vectors, no clustering), so that every reader can read it; capture only appends to it,
and maintain packs files and takes whole ones out. Control tables can be rebuilt from bronze; tidegate alone writes them
(lake/control/rows.py). To change one: lake/format.
"""

from __future__ import annotations

import hashlib
from enum import IntFlag, StrEnum
from functools import lru_cache
from typing import Final

import pyarrow as pa

from tidegate.tables.actions_table import ACTIONS
from tidegate.tables.cuts_table import CUTS
from tidegate.tables.form import Table
from tidegate.tables.form import field as _field
from tidegate.tables.format_table import FORMAT
from tidegate.tables.prewrites_table import PREWRITES
from tidegate.tables.snapshot_tables import CHUNKS, SNAPSHOTS, VERIFICATION
from tidegate.tables.subscriptions_table import SUBSCRIPTIONS
from tidegate.tables.usage_table import USAGE
from tidegate.watermark_table import WATERMARK, WATERMARK_DATABASE, WATERMARK_TABLE

__all__ = [
    "CHUNKS",
    "CUTS",
    "FORMAT",
    "PREWRITES",
    "SNAPSHOTS",
    "WATERMARK",
    "WATERMARK_DATABASE",
    "WATERMARK_TABLE",
    "Table",
]


class SegmentKind(StrEnum):
    """The content of a bronze row."""

    BINLOG = "binlog"
    TIDB = "tidb"
    TICDC = "ticdc"  # lines of a changefeed's files; all of each commit_ts up to resolved_ts
    HEARTBEAT = "heartbeat"  # no payload: moves resolved_ts only
    PREPARED = "prepared"  # no payload: what the source had prepared, asked before its log was at this place
    GAP = "gap"  # no payload: a person accepted that what stands before it at the source is lost


class SegmentFlag(IntFlag):
    """Facts of a segment for planners, which don't open the payload."""

    HAS_DDL = 1  # at least one QUERY event that isn't BEGIN/COMMIT/SAVEPOINT
    HAS_PREWRITE = 2  # XA PREPARE or a TiDB prewrite
    OPEN_AT_END = 8  # the last transaction isn't finished in this segment
    OPEN_AT_START = 16  # starts in mid-transaction: `context` carries its GTID and TABLE_MAP events
    GAP = 32  # of SegmentKind.GAP: its tables may lack changes from here on
    ROLLED_BACK = 64  # the transaction that it starts in ends in here, with ROLLBACK
    HAS_PREPARED = 256  # of SegmentKind.PREPARED
    SYSTEM_IS_UTC = 512  # where a session's time zone is SYSTEM, that is UTC
    HAS_ANSWER = 128  # XA COMMIT or XA ROLLBACK: what a prewrite became, of this segment or an earlier one


SEGMENTS: Final = Table(
    path="bronze/segments",
    doc="A run of whole raw events exactly as the server sent them; exactly once, in order, per source.",
    key=("source", "seq"),
    partition_by=("source", "day"),
    schema=pa.schema(
        [
            _field("source", pa.string(), "name of the source in the pipeline file"),
            _field("day", pa.date32(), "UTC day of captured_at"),
            _field("seq", pa.int64(), "dense per source, from 1"),
            _field("kind", pa.string(), "binlog | tidb | ticdc | heartbeat"),
            _field("server_id", pa.int64(), "server_id of the server that sent the stream"),
            _field(
                "server_uuid", pa.string(), "server_uuid (MySQL), server_uid (MariaDB), TiDB's cluster id; '' for none"
            ),
            _field("file", pa.string(), "binlog file of the payload; all of it from one file"),
            _field("start_pos", pa.int64(), "offset of the first byte in file, 64-bit"),
            _field("end_pos", pa.int64(), "offset after the last byte in file"),
            _field(
                "gtid_executed",
                pa.string(),
                "GTIDs executed at the end, the open transaction excluded; of ticdc where the last lines are",
            ),
            _field("prev_commit_ts", pa.int64(), "commit_ts before the first transaction that is, or goes on, in here"),
            _field("min_commit_ts", pa.int64(), "smallest commit_ts of a transaction in here; 0 when none"),
            _field(
                "max_commit_ts", pa.int64(), "largest one in here, that of an open transaction included; 0 when none"
            ),
            _field("resolved_ts", pa.int64(), "no transaction at or below it arrives from this source after this row"),
            _field("min_start_ts", pa.int64(), "tidb: smallest start_ts", nullable=True),
            _field("max_start_ts", pa.int64(), "tidb: largest start_ts", nullable=True),
            _field(
                "tables", pa.list_(pa.string()), "database.table of each TABLE_MAP, and of DDL as far as it names one"
            ),
            _field("flags", pa.int32(), "SegmentFlag bits"),
            _field("event_count", pa.int64(), "events in payload"),
            _field("txn_count", pa.int64(), "transactions that end in payload"),
            _field("context", pa.large_binary(), "what decoding needs: FORMAT_DESCRIPTION, open GTID and TABLE_MAPs"),
            _field("payload", pa.large_binary(), "the bytes as the server sent them, checksums included"),
            _field("payload_crc32c", pa.int64(), "CRC-32C of payload"),
            _field("captured_at", pa.timestamp("us", tz="UTC"), "when the segment was cut"),
            _field(
                "ceiling_ms",
                pa.int64(),
                "the source's clock, Unix milliseconds: transactions in here that say they are later got it instead; 0"
                " when none does",
            ),
        ]
    ),
)

SCHEMA_HISTORY: Final = Table(
    path="control/schema_history",
    doc="One row per version of a physical table: its columns from commit_ts on.",
    key=("source", "database", "table", "version"),
    schema=pa.schema(
        [
            _field("source", pa.string(), "name of the source"),
            _field("database", pa.string(), "as the server spells it"),
            _field("table", pa.string(), "as the server spells it"),
            _field("version", pa.int64(), "1, 2, ... per (source, database, table)"),
            _field("commit_ts", pa.int64(), "valid from this commit_ts on, up to the next version's"),
            _field("file", pa.string(), "binlog file of the DDL; of the baseline's position"),
            _field("pos", pa.int64(), "end position of the DDL event; the baseline's position"),
            _field(
                "kind",
                pa.string(),
                "baseline | create | alter | drop | truncate | rename | healed (by the log's own metadata) | refreshed"
                " (asked of the server) | snapshot (empty here, then filled) | defaults (table is '': of the database)",
            ),
            _field("ddl", pa.string(), "the statement; '' where none was seen"),
            _field(
                "columns",
                pa.string(),
                "JSON list of columns (schema/model/columns.py), in table order: id, name, type, nullable, and what isn't usual",
            ),
            _field("key_columns", pa.string(), "JSON list of column ids of the key; [] when the table has none"),
            _field("charset", pa.string(), "default character set of the table"),
            _field("fingerprint", pa.string(), "of columns and key: equal versions have equal fingerprints"),
            _field("status", pa.string(), "active | dropped | needs_snapshot | unproven"),
            _field("collation", pa.string(), "default collation of the table"),
            _field("indexes", pa.string(), "JSON list of indexes: name, kind, column ids, in order of name"),
            _field("last_column_id", pa.int64(), "largest id of its columns; 0 without columns"),
            _field(
                "partitioning",
                pa.string(),
                "JSON: method, expressions, partitions in order (schema/model/partitions.py); '' when it has none",
                nullable=True,
            ),
            _field(
                "moved",
                pa.string(),
                "JSON: rows that the statement moved or deleted without row events; null when none",
                nullable=True,
            ),
            _field(
                "began",
                pa.string(),
                "JSON: where capture of the source began; of a baseline's row of the server's defaults, null elsewhere",
                nullable=True,
            ),
            _field(
                "engine", pa.string(), "storage engine in lower case, null: InnoDB; or view, no view", nullable=True
            ),
            _field(
                "foreign_keys",
                pa.string(),
                "JSON: constraints that change its rows when a parent's change (schema/model/unlogged.py); null when none",
                nullable=True,
            ),
            _field("merged_by", pa.list_(pa.string()), "database and table of the MERGE table over it", nullable=True),
            _field("settings", pa.string(), "JSON: server settings that its log depends on; else null", nullable=True),
            _field("origin", pa.string(), "JSON: TiDB's own description, with its ids; else null", nullable=True),
            _field("comment", pa.string(), "the table's comment; null where nobody has said it", nullable=True),
        ]
    ),
)

TABLE_STATES: Final = Table(
    path="control/table_states",
    doc="Why a silver table is held or was released, as events; the last one per table counts.",
    key=("pipeline", "table", "recorded_at"),
    schema=pa.schema(
        [
            _field("pipeline", pa.string(), "pipeline"),
            _field("table", pa.string(), "logical table, database.table"),
            _field("state", pa.string(), "State: active | held | released | dropped | left | snapshot"),
            _field("reason", pa.string(), "one line for people: what, where, what to do; '' when active"),
            _field("commit_ts", pa.int64(), "all changes up to here are in silver; left: and none after"),
            _field("recorded_at", pa.timestamp("us", tz="UTC"), "when this was recorded"),
            _field("place_source", pa.string(), "held: where in which source's log the trouble is", nullable=True),
            _field("place_database", pa.string(), "... of which physical table", nullable=True),
            _field("place_table", pa.string(), "... of which physical table", nullable=True),
            _field("place_file", pa.string(), "... binlog file", nullable=True),
            _field("place_pos", pa.int64(), "... end of the DDL's event, or start of a rows event", nullable=True),
            _field("place_at_ts", pa.int64(), "... its commit_ts", nullable=True),
            _field("place_ddl", pa.string(), "... the statement; '' when it is none", nullable=True),
            _field("cause", pa.string(), "held: why (standing/causes.py)", nullable=True),
            _field("fault", pa.string(), "held: class of the exception that it met", nullable=True),
            _field("needs", pa.string(), "held: nothing | rows | columns | judgement", nullable=True),
            _field("times", pa.int64(), "how often in a row it couldn't be written", nullable=True),
            _field("partner", pa.string(), "waits_with: the table that it waits with", nullable=True),
            _field("source", pa.string(), "released: the source that it goes on with", nullable=True),
            _field("snapshot", pa.string(), "snapshot: which; null of a table whose shards lack rows", nullable=True),
            _field("approved_ts", pa.int64(), "held, released: its DDL is approved up to here", nullable=True),
            _field("unread", pa.bool_(), "held, released: a statement about it isn't followed yet", nullable=True),
        ]
    ),
)


class State(StrEnum):
    """table_states.state, and that of control/cuts."""

    ACTIVE = "active"
    HELD = "held"  # waits for a person, or for a pause; bronze keeps what comes
    RELEASED = "released"  # catches up from bronze
    DROPPED = "dropped"  # at the source
    LEFT = "left"  # the pipeline file no longer keeps it
    SNAPSHOT = "snapshot"  # takes every window, and lacks rows until its snapshot has ended

    @property
    def waits(self) -> bool:
        """Whether the table stands where its state says: held, or not yet caught up."""
        return self in (State.HELD, State.RELEASED)


FOLLOWED: Final = Table(
    path="control/followed",
    doc="Which sources and tables the pipeline file kept, as events: what joined or left, and from which commit_ts on.",
    key=("number", "kind", "source", "database", "table"),
    schema=pa.schema(
        [
            _field("number", pa.int64(), "1, 2, ...: all rows of one commit have the same"),
            _field("pipeline", pa.string(), "pipeline"),
            _field("kind", pa.string(), "selection (what the pipeline file says) | source | table"),
            _field("selection", pa.string(), "JSON of sources, include, exclude and routes; '' but for selection"),
            _field("source", pa.string(), "name of the source"),
            _field("database", pa.string(), "physical table's; '' of a source"),
            _field("table", pa.string(), "physical table's; '' of a source"),
            _field("logical", pa.string(), "silver table that it flows, or flowed, into; '' of a source"),
            _field("state", pa.string(), "followed | catching_up (behind the cut) | left | released | held"),
            _field("commit_ts", pa.int64(), "its changes up to here are in silver; of a selection the cut then"),
            _field("reason", pa.string(), "one line"),
            _field("recorded_at", pa.timestamp("us", tz="UTC"), "when"),
            _field("whole", pa.bool_(), "left: false when silver lacks rows at or below commit_ts", nullable=True),
            _field("needs", pa.string(), "held: nothing | rows | columns | judgement", nullable=True),
        ]
    ),
)

JUDGEMENTS: Final = Table(
    path="control/judgements",
    doc="What a person said of a place in a log that could not be followed (`tidegate schema judge`); the last one counts.",
    key=("source", "file", "pos", "commit_ts", "judged_at"),
    schema=pa.schema(
        [
            _field("source", pa.string(), "name of the source"),
            _field("file", pa.string(), "binlog file"),
            _field("pos", pa.int64(), "as the held tables' place says it"),
            _field("commit_ts", pa.int64(), "of what stands there"),
            _field("tables", pa.list_(pa.string()), "database.table at the source of all that it changes; none: []"),
            _field("reason", pa.string(), "why a table was held there"),
            _field("judged_by", pa.string(), "who said so"),
            _field("judged_at", pa.timestamp("us", tz="UTC"), "when"),
        ]
    ),
)

LEDGER: Final = Table(
    path="control/ledger",
    doc="Every payload byte accounted for: decoded + ignored + quarantined = payload_bytes, per segment and apply window.",
    key=("source", "seq", "cut_ts"),
    schema=pa.schema(
        [
            _field("source", pa.string(), "name of the source"),
            _field("seq", pa.int64(), "segment"),
            _field("cut_ts", pa.int64(), "the window that accounted for it"),
            _field("payload_bytes", pa.int64(), "length of payload"),
            _field("decoded_bytes", pa.int64(), "row events that became changes in this window"),
            _field("ignored_bytes", pa.int64(), "events that a named rule ignores"),
            _field("quarantined_bytes", pa.int64(), "events of tables that are held"),
            _field("ignored_by_rule", pa.string(), "JSON object: rule -> bytes"),
            _field("rows", pa.int64(), "changes decoded"),
            _field("null_dates", pa.int64(), "zero and impossible dates in them that became null", nullable=True),
        ]
    ),
)

MAINTENANCE: Final = Table(
    path="control/maintenance",
    doc="What maintain did, or why it left a table alone.",
    key=("at", "table", "step"),
    schema=pa.schema(
        [
            _field("at", pa.timestamp("us", tz="UTC"), "when the step ended"),
            _field("table", pa.string(), "silver table, database.table; or the path of another table"),
            _field("step", pa.string(), "retain | cluster | purge | vacuum | compact | forget"),
            _field("outcome", pa.string(), "done | gave way (to another writer) | left (detail says why)"),
            _field("files_before", pa.int64(), "live files; rows, for forget"),
            _field("files_after", pa.int64(), "live files; rows, for forget"),
            _field("bytes_before", pa.int64(), "bytes of the live files"),
            _field("bytes_after", pa.int64(), "bytes of the live files"),
            _field("seconds", pa.float64(), "how long it took"),
            _field("detail", pa.string(), "one line"),
        ]
    ),
)

LATENCY: Final = Table(
    path="control/latency",
    doc="How long a commit at the source took to be visible in silver: one row per marker (see `tidegate latency`).",
    key=("written_us",),
    schema=pa.schema(
        [
            _field("written_us", pa.int64(), "the source's clock when the marker was written, Unix microseconds"),
            _field("visible_us", pa.int64(), "this machine's clock when the marker's cut was published"),
            _field("seconds", pa.float64(), "from written to visible, the difference between the two clocks taken off"),
            _field("cut_ts", pa.int64(), "the cut that made it visible"),
        ]
    ),
)

ALL: Final = (
    *(SEGMENTS, CHUNKS, SCHEMA_HISTORY, TABLE_STATES, FOLLOWED, SNAPSHOTS, VERIFICATION, PREWRITES, JUDGEMENTS),
    *(ACTIONS, LEDGER, CUTS, MAINTENANCE, LATENCY, SUBSCRIPTIONS, USAGE, FORMAT),
)

# --- the marker, a table at the source ------------------------------------------------------------
# A row of it says when it was written, so that apply can say how long it took. It is captured like any other table.
MARKER_DATABASE: Final = "tidegate"
MARKER_TABLE: Final = "latency_marker"
MARKER: Final = f"{MARKER_DATABASE}.{MARKER_TABLE}"

# --- silver -------------------------------------------------------------------------------------
# System columns of silver tables; a source's column that starts with this has another name there (silver_names.py).
SYSTEM_PREFIX: Final = "_tg_"
COMMIT_TS: Final = "_tg_commit_ts"  # long: commit_ts of the change that wrote the row
ROW_HASH: Final = "_tg_row_hash"  # string: tables without a key only
OCCURRENCE: Final = "_tg_occurrence"  # long, from 1: which of the equal rows; tables without a key only
DELETED: Final = "_tg_deleted"  # boolean: the source has deleted the row; tables under soft_delete only
# Of tables under history: a version is valid in [from, to) of commit_ts; to is NULL in the current one. Whether a
# change made it at `from`.
VALID_FROM, VALID_TO, IS_CURRENT, FROM_KNOWN = "_tg_valid_from", "_tg_valid_to", "_tg_is_current", "_tg_from_known"
SHARD_SOURCE, SHARD_DATABASE, SHARD_TABLE = "_tg_source", "_tg_database", "_tg_table"  # string: routed tables only
SHARDS: Final = (SHARD_SOURCE, SHARD_DATABASE, SHARD_TABLE)

# --- changes: what decode hands to merge ----------------------------------------------------------
OP: Final = "_tg_op"  # int8: 1 upsert (the row's new image), 3 delete (the row's last image)
OP_UPSERT: Final = 1
OP_DELETE: Final = 3
ORDINAL: Final = "_tg_ordinal"  # int64: order of changes inside one segment (a key change is delete, then upsert)
SEQ: Final = "_tg_seq"  # int64: segment

# In a segment's `tables`, names that nobody can give: look at it for every table; its rows name tables by ids.
EVERY_TABLE: Final = "*"
TABLES_BY_ID: Final = "#"


def app_id(pipeline: str, table: str) -> str:
    """Delta application id under which silver records applied_ts as its transaction version."""
    return f"tidegate/{pipeline}/{table}"


def taken_id(pipeline: str, table: str) -> str:
    """Delta application id under which silver of shards records the last rename whose rows it has taken."""
    return f"{app_id(pipeline, table)}/taken"


def capture_app_id(source: str) -> str:
    """Delta application id under which bronze records the last seq of a source."""
    return f"tidegate/capture/{source}"


SILVER_FOLDER: Final = "silver"


def silver_path(database: str, table: str) -> str:
    """Path under the lake of a logical table; odd characters become ~hex~, so that every name fits every store."""
    return f"{SILVER_FOLDER}/{_safe(database)}/{_safe(table)}"


@lru_cache(maxsize=4096)
def _safe(name: str) -> str:
    made = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"~{ord(c):x}~" for c in name)
    made = f"~5f~{made[1:]}" if made == "_delta_log" else made  # readers look for a table above such a folder
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return made if len(made) <= _PART_BYTES_MAX else f"{made[: _PART_BYTES_MAX - 34]}~~{digest}"


_PART_BYTES_MAX: Final = 200  # a folder's name on a local disk has 255 at most
