"""Sets a table's properties by a commit.

In:  a table's log; names and values as text.
Out: a commit, if there is a table and some property differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.state import TableState


def set_properties(log: DeltaLog, wanted: Mapping[str, str]) -> TableState:
    """The state with these properties. wanted: none that turns a feature on: that would need a
    protocol action, too.
    """

    def decide(read: TableState) -> Change | None:
        configuration = read.configuration
        if not read.created or all(configuration.get(name) == value for name, value in wanted.items()):
            return None
        return Change(
            [{"metaData": {**read.metadata, "configuration": configuration | dict(wanted)}}], "SET TBLPROPERTIES"
        )

    return log.update(decide)
