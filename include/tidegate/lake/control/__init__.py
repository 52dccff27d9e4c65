"""Control tables: records of apply, maintain, snapshots and people, as Delta tables of tables/.

In:  a lake, a table of tables/, rows as dicts.
Out: rows.py: commits, and Arrow tables. files.py: one table's Parquet files. upgrade.py,
     lake_upgrade.py: tables of older releases. upkeep.py: needless rows and files go.
"""

from tidegate.lake.control.rows import (
    ControlTables,
    append,
    append_if,
    append_new,
    append_once,
    application_version,
    current,
    exists,
    last_of,
    load,
    newest,
    pack,
    pieces,
    read,
    read_above,
    rows_of,
    version,
)

__all__ = [
    "ControlTables",
    "append",
    "append_if",
    "append_new",
    "append_once",
    "application_version",
    "current",
    "exists",
    "last_of",
    "load",
    "newest",
    "pack",
    "pieces",
    "read",
    "read_above",
    "rows_of",
    "version",
]
