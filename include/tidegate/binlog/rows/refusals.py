"""Rows that can't be taken, whatever their columns are: no reader knows their kind, or servers log
them wrongly.

In:  a rows event of an index, or the version of its table.
Out: the error that holds the table.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.binlog.format.events import type_name
from tidegate.binlog.index.event_index import EventIndex
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.errors import Terminal, UnsupportedValue
from tidegate.schema.model.columns import Generated, TableVersion


def unlogged(index: EventIndex, version: TableVersion) -> Terminal | None:
    """An error for a table its server is known to log wrongly."""
    server = index.format.mariadb_version
    virtual = [column.name for column in version.columns if column.generated is Generated.VIRTUAL]
    if not virtual or not server or server >= _VIRTUAL_LOGGED_SINCE:
        return None
    return UnsupportedValue(
        f"MariaDB {'.'.join(map(str, server))} logs NULL for virtual columns when rows are updated: {virtual[0]}",
        remedy="make the column PERSISTENT, upgrade the server to 10.5, or leave the table out",
    )


# 10.2.11 logs NULL instead of the value; 10.5.23 logs the value. Versions in between weren't tried.
_VIRTUAL_LOGGED_SINCE: Final = (10, 5)


def refusal(event: npt.NDArray[np.int64]) -> Terminal:
    """The error for a rows event that can't be taken as it is."""
    return UnsupportedValue(
        f"rows events of type {type_name(int(event[K.TYPE]))} can't be decoded", remedy="upgrade the source"
    )
