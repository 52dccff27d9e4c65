"""control/cuts: what a reader of one instant reads of each silver table, and how large that is.

In:  nothing; this is data.
Out: the table, for tables/.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field

CUTS: Final = Table(
    path="control/cuts",
    doc="A consistent view over all tables at one instant of the sources: cut_ts -> Delta version per table.",
    key=("cut_ts", "table"),
    schema=pa.schema(
        [
            field("cut_ts", pa.int64(), "every table below holds all changes up to it, and none after"),
            field("table", pa.string(), "logical table; '' is the row of the cut itself"),
            field("delta_version", pa.int64(), "silver version to read; -1 when the table has no silver yet"),
            field("applied_ts", pa.int64(), "applied_ts of that version"),
            field("state", pa.string(), "State, but for left: held and released ones are behind the cut"),
            field("published_at", pa.timestamp("us", tz="UTC"), "when"),
            field("silver_id", pa.string(), "the Delta table's id; null without silver", nullable=True),
            field("silver_ts", pa.int64(), "the newest commit_ts recorded in it by a commit of ours", nullable=True),
            field("silver_rows", pa.int64(), "rows of that version, those marked as deleted included", nullable=True),
            field("silver_files", pa.int64(), "its files", nullable=True),
            field("silver_bytes", pa.int64(), "bytes of its files", nullable=True),
        ]
    ),
)
