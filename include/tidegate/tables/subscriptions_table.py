"""The table of readers' places in changelogs, a part of tables/.

In:  nothing; this is data.
Out: its Arrow schema.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field

SUBSCRIPTIONS: Final = Table(
    path="control/subscriptions",
    doc="How far each group of `tidegate tail` has read a changelog; the last row of a group counts.",
    key=("table", "reader_group", "saved_at"),
    schema=pa.schema(
        [
            field("table", pa.string(), "logical table, database.table"),
            field("reader_group", pa.string(), "name of the group"),
            field("commit_ts", pa.int64(), "place of the last change that was read ..."),
            field("source", pa.string(), "... as the changelog's columns of these names say it"),
            field("seq", pa.int64(), "..."),
            field("ordinal", pa.int64(), "..."),
            field("saved_at", pa.timestamp("us", tz="UTC"), "when"),
        ]
    ),
)
