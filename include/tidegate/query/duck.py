"""DuckDB with the Delta extension that is installed as a package: nothing is fetched from the internet.

In:  settings of DuckDB.
Out: a connection to a database in memory; SQL texts that it takes.
"""

from __future__ import annotations

import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidegate.errors import HostLacks

if TYPE_CHECKING:
    import duckdb

_OFFLINE: Final = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_PACKAGE: Final = "duckdb_extension_delta"


def delta_extension() -> Path:
    """The extension's file. Raises HostLacks."""
    import duckdb

    package = find_spec(_PACKAGE)
    folder = Path(package.origin if package and package.origin else _PACKAGE).parent
    file = folder / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    if not file.is_file():
        raise HostLacks(
            f"DuckDB {duckdb.__version__} has no Delta extension here",
            where=str(folder),
            remedy="install duckdb and duckdb-extension-delta of the same version",
        )
    return file


def connect(memory_bytes: int) -> duckdb.DuckDBPyConnection:
    """A database in memory whose times are UTC; what doesn't fit goes to the folder for temporary files.

    Raises HostLacks.
    """
    import duckdb

    extension = delta_extension()
    database = duckdb.connect(":memory:", config=dict(_OFFLINE))
    database.execute(f"LOAD {literal(str(extension))}")
    database.execute(f"SET memory_limit = '{memory_bytes:d}B'; SET TimeZone = 'UTC'")
    database.execute(f"SET temp_directory = {literal(f'{tempfile.gettempdir()}/tidegate-duckdb-{uuid.uuid4().hex}')}")
    return database


def scan(address: str, version: int) -> str:
    """A table of one Delta version, as an item of FROM."""
    return f"delta_scan({literal(address)}, version = {version:d})"


def literal(text: str) -> str:
    """A string in DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted name in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'
