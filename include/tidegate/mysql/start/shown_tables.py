"""The facts that only SHOW CREATE TABLE says of a table: its partitions in its own words, foreign keys' actions, a
union.

In:  a cursor, the names of base tables with their engines.
Out: per table a Shown. An unreadable part is reported where it matters, never left out.

information_schema.referential_constraints has the actions, too, but MariaDB shows none of it to an account that has
SELECT alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tidegate.ddl_script.settings import mode_bits
from tidegate.errors import DDLError
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.schema.ddl.reader import read
from tidegate.schema.ddl.statement import EventSaid
from tidegate.schema.ddl.tree import CreateTable
from tidegate.schema.model.partitions import Partitioning
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.server_settings import NAMES, ServerSettings
from tidegate.schema.model.unlogged import ForeignKey, action_kept
from tidegate.schema.replay.context import Context
from tidegate.schema.replay.storage import created_storage

Name = tuple[str, str]

_ACTION: Final = re.compile(r"\) ON (?:DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)")


@dataclass(frozen=True, slots=True)
class ShownTable:
    """What SHOW CREATE TABLE says of a table. partitioning: None without partitions. union: the tables
    under a MERGE table.
    """

    partitioning: Partitioning | None
    foreign_keys: tuple[ForeignKey, ...] = ()
    union: tuple[Name, ...] = ()


def server_settings(cursor: Any) -> ServerSettings:
    """The server's settings as they are now."""
    cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({', '.join(['%s'] * len(NAMES))})", NAMES)
    return ServerSettings.of({str(name).lower(): str(value) for name, value in cursor.fetchall()})


def shown_tables(cursor: Any, names: Iterable[Name], settings: ServerSettings) -> dict[Name, ShownTable]:
    """Ask for each of these base tables."""
    cursor.execute("SELECT VERSION(), @@SESSION.sql_mode, @@SESSION.character_set_results")
    version, modes, charset = cursor.fetchone()
    sql_mode, server = mode_bits(str(modes)), ServerVersion.of(str(version))
    shown: dict[Name, ShownTable] = {}
    cursor.execute("SET SESSION character_set_results = binary")
    for name in names:
        cursor.execute(f"SHOW CREATE TABLE {quote_name(*name)}")
        shown[name] = _shown(bytes(cursor.fetchone()[1]), name, sql_mode, server, settings)
    cursor.execute("SET SESSION character_set_results = %s", (charset,))
    return shown


def _shown(shown: bytes, name: Name, sql_mode: int, server: ServerVersion, settings: ServerSettings) -> ShownTable:
    """shown: the answer of SHOW CREATE TABLE. It is UTF-8, but in MariaDB the DEFAULT of a binary column
    stands there as plain bytes.
    """
    text = shown.decode(errors="surrogateescape")
    try:
        statement = read(text, database=name[0], sql_mode=sql_mode, server=server)
    except DDLError as error:
        actions = [action_kept(action) for action in _ACTION.findall(text)]
        keys = tuple(ForeignKey("(its SHOW CREATE TABLE can't be read)", name, action) for action in actions)
        return ShownTable(Partitioning(unknown=f"its SHOW CREATE TABLE can't be read: {error.what}"), keys)
    assert isinstance(statement, CreateTable), "SHOW CREATE TABLE of a base table"
    context = Context(server, ("", ""), lambda: 0, EventSaid(), settings, name)
    keys = created_storage(statement.storage, statement.indexes, context)[1]
    partitioning = statement.partitioning
    if "\\udc" in repr(partitioning):  # repr writes surrogateescape's characters as \\udcXX
        partitioning = Partitioning(unknown="SHOW CREATE TABLE shows bytes that are no text among its partitions")
    return ShownTable(partitioning, keys, statement.storage.union or ())
