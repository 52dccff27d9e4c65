"""The format of a lake. A release never reads or writes a newer format than it knows.

In:  the log of control/format.
Out: Format; LakeRefused. lake/control/upgrade.py writes control/format.

The log's transaction versions hold the format: the newest begun, and the newest that is done.
A look reads this log, once per LakeFiles object. A process that works while its lake is upgraded
doesn't learn of it here: it meets a table with unknown columns (layout.py), and stops there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tidegate import __version__
from tidegate.errors import LakeRefused
from tidegate.lake.format.migrations import newest_format
from tidegate.lake.format.unfinished import check_is_lake
from tidegate.tables import ALL
from tidegate.tables.format_table import FORMAT

if TYPE_CHECKING:
    from tidegate.delta.table.state import TableState
    from tidegate.lake.format.folder import LakeFolder

log = logging.getLogger(__name__)

BEGUN_ID: Final = "tidegate/format"
DONE_ID: Final = "tidegate/format/done"
_NAMES: Final = {table.path.rpartition("/")[2] for table in ALL if table.path.startswith("control/")}
_said: set[str] = set()  # roots of older lakes that this process has logged


@dataclass(frozen=True, slots=True)
class Format:
    """version: the newest begun format; 0 for a lake without control/format, or a missing lake.

    done: the newest format to which all tables are upgraded. release: the writer of the newest row;
    "" without a row. is_there: whether the lake has any control table.
    """

    version: int = 0
    done: int = 0
    release: str = ""
    is_there: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether there is nothing to upgrade."""
        return self.done == newest_format()

    @property
    def told(self) -> str:
        """The format in a line, for people."""
        if not self.is_there:
            return "no control tables yet"
        by = f" (by tidegate {self.release})" if self.release else ""
        if self.is_ours:
            return f"format {self.version}{by}"
        if self.version == newest_format():
            return (
                f"format {self.version}, its upgrade is under way{by}: apply or `tidegate lake upgrade` goes on with it"
            )
        what = f"this tidegate ({__version__}) writes {newest_format()}: apply or `tidegate lake upgrade` upgrades it"
        return f"format {self.version}{by}; {what}"


def check_format(lake: LakeFolder) -> int:
    """The newest begun format; 0 without one. Raises LakeRefused for a newer lake, or for a folder
    without a lake.
    """
    check_is_lake(lake)
    state = lake.log(FORMAT.path).state()
    version = state.transaction(BEGUN_ID)
    if version > newest_format():
        newest = _newest(lake, state)
        by = newest.release if newest.release != __version__ else ""  # this release may have written the newest row
        raise LakeRefused(
            f"the lake has format {version}, written by {f'tidegate {by}' if by else 'a newer tidegate'};"
            f" this is tidegate {__version__}, which knows formats up to {newest_format()}",
            where=lake.root,
            remedy=f"install tidegate {by} or a newer one" if by else "install a newer tidegate",
        )
    return version


def tell_older(root: str, version: int) -> None:
    """Log once for each lake it is older, and is read nevertheless."""
    if version < newest_format() and root not in _said:
        _said.add(root)
        log.info("%s has format %d; it is read as format %d", root, version, newest_format())


def format_of(lake: LakeFolder) -> Format:
    """As the lake has it now. Raises LakeUnavailable, LakeRefused (a newer one)."""
    check_format(lake)
    return _newest(lake, lake.log(FORMAT.path).state())


def _newest(lake: LakeFolder, state: TableState) -> Format:
    """The format with its release. Only known columns are read: a newer release may have added
    some.
    """
    rows = list[dict[str, Any]]()
    for item in state.files:
        with lake.open(f"{FORMAT.path}/{item.local_path}") as file:
            rows += pq.ParquetFile(file).read(columns=["version", "release", "recorded_at"]).to_pylist()
    last = max(rows, key=lambda row: (row["version"], row["recorded_at"]), default=None)
    return Format(
        state.transaction(BEGUN_ID),
        state.transaction(DONE_ID),
        last["release"] if last else "",
        is_there=state.created or bool(control_tables(lake)),
    )


def control_tables(lake: LakeFolder) -> set[str]:
    """Names of the tables of tables/ that control/ has; none in a new lake."""
    listed = lake.listed("control")
    return _NAMES & {PurePosixPath(info.path).name for info in listed if info.type == pafs.FileType.Directory}
