"""The control table of prewrites: rows in bronze whose transaction wasn't yet committed or rolled back.

In:  nothing; this is data, a part of tables/.
Out: its Arrow schema, and what its `state` says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field


class PrewriteState(StrEnum):
    """prewrites.state."""

    OPEN = "open"  # nobody has answered yet
    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    UNKNOWN = "unknown"  # an answer that commits what no bronze has, or other than was decided
    PARKED = "parked"  # an orphan: its tables wait until a person decides


PREWRITES: Final = Table(
    path="control/prewrites",
    doc="Where in bronze the rows of transactions lie whose answer comes in a later segment, and what the answer was.",
    key=("source", "id", "start_ts"),
    schema=pa.schema(
        [
            field("source", pa.string(), "name of the source"),
            field(
                "id",
                pa.string(),
                "what the answer calls it: an XA branch's name X'gtrid',X'bqual',format; tidb start_ts",
            ),
            field(
                "start_ts", pa.int64(), "XA: the commit_ts that its rows have in bronze; unknown: that of the answer"
            ),
            field("began_seq", pa.int64(), "segment in which its rows begin; 0 when unknown"),
            field("ended_seq", pa.int64(), "segment in which they end, with XA PREPARE; 0 when unknown"),
            field("tables", pa.list_(pa.string()), "database.table of what it wrote, or more, as in bronze/segments"),
            field(
                "state",
                pa.string(),
                "open | committed | rolled_back | parked (never answered) | unknown (committed, its rows aren't here)",
            ),
            field(
                "answer_ts",
                pa.int64(),
                "commit_ts of the answer, which its rows get in silver; of an orphan where it was found; 0: open",
            ),
            field("answer_file", pa.string(), "binlog file of the answer; '' while open"),
            field("answer_pos", pa.int64(), "start of its event; 0 while open; TiDB's: commit_ts if committed"),
            field(
                "decided_by",
                pa.string(),
                "'' by the log; else the pipeline file's policy, TiDB's DDL history, or a person",
            ),
            field("recorded_at", pa.timestamp("us", tz="UTC"), "when this was recorded; the last row per key counts"),
        ]
    ),
)
