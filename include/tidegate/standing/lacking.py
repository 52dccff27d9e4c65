"""Why not all rows of a table are known, by a version of it.

In:  a version that waits.
Out: one line with fault and place; the table's needs.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus, why_unproven

_SHOWN = 120


def lacks_since(versions: Iterable[TableVersion], version: TableVersion) -> TableVersion:
    """The version at which a table began to lack rows: later versions only carry it on. versions: the table's."""
    since = version
    for before in sorted(versions, key=_order, reverse=True):
        if _order(before) < _order(version):
            if not before.status.waits:
                break
            since = before
    return since


def _order(version: TableVersion) -> tuple[int, int]:
    return version.commit_ts, version.version


def lacking(version: TableVersion) -> tuple[str, Needs]:
    """The line and the needs of a version whose status waits."""
    place, ddl = f"{version.name} at {version.file}:{version.pos} of {version.source}", version.ddl[:_SHOWN]
    if version.status is VersionStatus.UNPROVEN:
        return f"{place}: {why_unproven(version)}", Needs.COLUMNS
    if version.kind == "create":
        what = f"it was there with rows that the source's log doesn't tell ({ddl})"
    elif version.kind == "rename":
        what = f"renamed from another table ({ddl})"
    elif version.kind == "baseline":
        what = "held rows before capture started"
    elif version.moved is not None and version.moved.why:
        what = f"{ddl} changed rows that the binlog does not show: {version.moved.why}"
    else:
        what = f"{version.kind} changed rows that the binlog does not show ({ddl})"
    return f"{place}: {what}", Needs.ROWS
