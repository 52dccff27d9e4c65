"""Silver's folders: tables made by `tidegate rebuild` beside the live ones.

In:  a lake and its databases.
Out: paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tidegate import tables

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles

# Between a table's name and the cut in the names that `tidegate rebuild` gives, unless --to names the new table.
REBUILT: Final = "__rebuilt_"
STAGING: Final = "staging"  # the folder in which a window's changes wait for their commit


def rebuilt_tables(lake: LakeFiles, databases: Iterable[str]) -> list[str]:
    """Paths of tables that `tidegate rebuild` made beside the live ones, under names it chose.
    Nothing removes them.
    """
    paths = []
    for database in databases:
        folder = tables.silver_path(database, "")
        names = (info.base_name for info in lake.listed(folder.rstrip("/")))
        paths += [f"{folder}{name}" for name in names if REBUILT in name]
    return sorted(paths)
