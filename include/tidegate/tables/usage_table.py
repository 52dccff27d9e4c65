"""control/usage: the CPU of capture and apply over time, and apply's lag and pace; a part of tables/.

In:  nothing; this is data.
Out: its Arrow schema, and what its `work` says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field


class UsedBy(StrEnum):
    """usage.work."""

    CAPTURE = "capture"
    APPLY = "apply"


USAGE: Final = Table(
    path="control/usage",
    doc="What capture and apply used, a row a minute; maintain sums up older rows, and forgets them after eight days.",
    key=("work", "of", "ended_ms"),
    schema=pa.schema(
        [
            field("work", pa.string(), "capture | apply"),
            field("of", pa.string(), "source of capture; pipeline of apply"),
            field("ended_ms", pa.int64(), "end of the time that the row is about, Unix milliseconds"),
            field("seconds", pa.float64(), "length of that time"),
            field("cpu_seconds", pa.float64(), "user and system time of its processes on its machine"),
            field("lag_seconds", pa.float64(), "of apply: the largest lag that a cut ended; else null", nullable=True),
            field("gap_seconds", pa.float64(), "of apply: the longest time between two cuts", nullable=True),
        ]
    ),
)
