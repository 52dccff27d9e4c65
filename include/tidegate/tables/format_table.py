"""The table with the format of a lake, a part of tables/.

In:  nothing; this is data.
Out: its Arrow schema.

Every release reads it, newer and older ones: its columns stay as they are. The version itself stands as application
transactions in its log, too (lake/format/version.py), where it is read without opening a file.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field

FORMAT: Final = Table(
    path="control/format",
    doc="Which format the lake has, and which release of tidegate gave it that; the newest row counts.",
    key=("version", "event", "recorded_at"),
    schema=pa.schema(
        [
            field("version", pa.int64(), "the format"),
            field("release", pa.string(), "tidegate's, that wrote this row"),
            field(
                "event", pa.string(), "made (with the lake) | begun (tables are being upgraded) | done (all of them)"
            ),
            field("what", pa.string(), "one line: what was upgraded"),
            field("recorded_at", pa.timestamp("us", tz="UTC"), "when"),
        ]
    ),
)
