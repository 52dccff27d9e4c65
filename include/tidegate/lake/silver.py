"""Silver as delta-rs sees it: which version a table has, and what it has applied.

In:  a silver table's path or URL.
Out: its Delta version, applied_ts, size and columns. No rows are read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tidegate import tables

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles

# What `tidegate rebuild` puts between a table's name and the cut, unless --to names the new table.
REBUILT: Final = "__rebuilt_"


def applied_ts(uri: str, storage_options: Mapping[str, str], app_id: str) -> int:
    """Transaction version that silver recorded with its data; 0 when the table or the record doesn't exist."""
    try:
        table = DeltaTable(uri, storage_options=dict(storage_options))
    except TableNotFoundError:
        return 0
    return int(table.transaction_version(app_id) or 0)


def delta_version(uri: str, storage_options: Mapping[str, str]) -> int:
    """The newest Delta version; -1 when the table doesn't exist."""
    try:
        return int(DeltaTable(uri, storage_options=dict(storage_options)).version())
    except TableNotFoundError:
        return -1


def data_bytes(uri: str, storage_options: Mapping[str, str]) -> int:
    """Bytes of the data files of the newest version; 0 when the table doesn't exist."""
    try:
        table = DeltaTable(uri, storage_options=dict(storage_options))
    except TableNotFoundError:
        return 0
    return sum(pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist())


def column_names(uri: str, storage_options: Mapping[str, str]) -> list[str] | None:
    """Column names in order; None when the table doesn't exist."""
    try:
        table = DeltaTable(uri, storage_options=dict(storage_options))
    except TableNotFoundError:
        return None
    return [field.name for field in table.schema().fields]


def rebuilt_tables(lake: LakeFiles, databases: Iterable[str]) -> list[str]:
    """Paths of tables that `tidegate rebuild` made beside the live ones under its own names; nothing removes them."""
    found = []
    for database in databases:
        folder = tables.silver_path(database, "")
        selector = pafs.FileSelector(lake.local(folder.rstrip("/")), allow_not_found=True)
        names = (info.base_name for info in lake.filesystem.get_file_info(selector))
        found += [f"{folder}{name}" for name in names if REBUILT in name]
    return sorted(found)
