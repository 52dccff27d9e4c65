"""DuckDB with the extensions that are installed as Python packages: nothing is fetched from the
internet.

In:  settings of DuckDB; a lake's root and storage options.
Out: a connection to a database in memory, which can read an object store with the lake's keys; SQL
     texts for it.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tidegate.errors import HostLacks, LakeRefused
from tidegate.lake.storage.storage_options import delta_options, store_of

if TYPE_CHECKING:
    import duckdb

_OFFLINE: Final = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_S3_SECRET: Final = {
    "KEY_ID": ("aws_access_key_id",),
    "SECRET": ("aws_secret_access_key",),
    "SESSION_TOKEN": ("aws_session_token",),
    "REGION": ("aws_region", "aws_default_region"),
}
_ENDPOINTS: Final = ("aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint")


def extension_file(name: str) -> Path:
    """The file of an extension. Raises HostLacks."""
    import duckdb

    package = find_spec(f"duckdb_extension_{name}")
    folder = Path(package.origin if package and package.origin else name).parent
    file = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not file.is_file():
        raise HostLacks(
            f"DuckDB {duckdb.__version__} has no extension {name} here",
            where=str(folder),
            remedy=f"install duckdb and duckdb-extension-{name} of the same version",
        )
    return file


def connect(memory_bytes: int) -> duckdb.DuckDBPyConnection:
    """A database in memory whose times are UTC; what doesn't fit goes to the folder for temporary files.

    Raises HostLacks.
    """
    import duckdb

    extension = extension_file("delta")
    database = duckdb.connect(":memory:", config=dict(_OFFLINE))
    database.execute(f"LOAD {literal(str(extension))}")
    database.execute(f"SET memory_limit = '{memory_bytes:d}B'; SET TimeZone = 'UTC'")
    database.execute(f"SET temp_directory = {literal(f'{tempfile.gettempdir()}/tidegate-duckdb-{uuid.uuid4().hex}')}")
    return database


def reach(database: duckdb.DuckDBPyConnection, root: str, options: Mapping[str, str]) -> None:
    """Let the database read a lake of an object store: with the lake's keys, else the environment's, under its root.

    Raises HostLacks.
    """
    import duckdb

    if store_of(root) != "s3":
        remedy = "read the cut by Polars or Spark, or --views where DuckDB has the store's extension"
        raise HostLacks("DuckDB reaches no store but S3 from here", where=root, remedy=remedy)
    given = delta_options({name: value for name, value in os.environ.items() if name.startswith("AWS_")}, options)
    if not given.get("aws_access_key_id") or not given.get("aws_secret_access_key"):
        remedy = "give them in the lake's connection, or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise HostLacks("DuckDB needs the store's keys, and finds none", where=root, remedy=remedy)
    database.execute(f"LOAD {literal(str(extension_file('httpfs')))}")
    try:
        database.execute(_s3_secret(root, given))
    except duckdb.Error:  # its message may hold the statement, and with it the keys
        remedy = "look at the options of the lake and its connection"
        raise HostLacks("DuckDB doesn't take the store's options", where=root, remedy=remedy) from None


def s3_place(options: Mapping[str, str]) -> dict[str, str]:
    """Where the store is, as clauses of CREATE SECRET; {} for Amazon's own."""
    options = delta_options(options, {})
    address = next((options[name] for name in _ENDPOINTS if options.get(name)), None)
    if address is None:
        return {}
    parts = urlsplit(address if "://" in address else f"https://{address}")
    by_host = options.get("aws_virtual_hosted_style_request", "").lower() in ("true", "1")
    return {
        "ENDPOINT": literal(parts.netloc + parts.path.rstrip("/")),
        "URL_STYLE": literal("vhost" if by_host else "path"),
        "USE_SSL": "false" if parts.scheme == "http" else "true",
    }


def _s3_secret(root: str, options: Mapping[str, str]) -> str:
    given = {
        clause: literal(options[option])
        for clause, names in _S3_SECRET.items()
        if (option := next((name for name in names if options.get(name)), None)) is not None
    }
    clauses = {"TYPE": "s3", **given, **s3_place(options), "SCOPE": literal(root)}
    return f"CREATE SECRET lake ({', '.join(f'{name} {value}' for name, value in clauses.items())})"


def scan(address: str, version: int | None) -> str:
    """A table of one Delta version, or of the newest one, as an item of FROM.

    Raises LakeRefused where DuckDB takes an address for another folder: it reads %20 as a blank.
    """
    if odd := next((character for character in "%\\" if character in address), ""):
        raise LakeRefused(
            f"DuckDB reads a path with {odd} in it as another one",
            where=address,
            remedy="move the lake to a path without it: `tidegate lake move`",
        )
    return f"delta_scan({literal(address)}{'' if version is None else f', version = {version:d}'})"


def literal(text: str) -> str:
    """A string in DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted name in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'
