"""The traits of a source that other rooms ask for, so that no room asks for its kind.

In:  nothing; these are the values.
Out: SourceTraits; each kind of source gives its own (sources.py, ticdc.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.table_names import folded


def as_named(database: str, table: str) -> tuple[str, str]:
    """Silver has both names as the source does."""
    return database, table


def lower_database(database: str, table: str) -> tuple[str, str]:
    return database.lower(), table


def lower_both(database: str, table: str) -> tuple[str, str]:
    return folded(database), folded(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTraits:
    """No field has a default: a new kind of source answers each."""

    log: str | None  # the key that names its log, and its value; None: no two sources can have one log
    sql_conn_id: str | None  # of the server that shows its tables by SQL; None: none is known
    replica_conn_id: str | None  # of the replica whose lag snapshots watch
    watched_conn_id: str | None  # of the server that says whether it wrote, so that capture may sleep
    cluster: str | None  # a transaction's rows and its commit may come by any source of this cluster
    pushed_seconds: float | None  # how often it writes to capture by itself; None: capture reads it
    paths: tuple[str, ...]  # keys with a path or URL, as of a lake
    files: tuple[str, ...]  # keys with a file of capture's machine, or None
    in_silver: Callable[[str, str], tuple[str, str]]  # database and table, as silver names them
    has_positions: bool  # its log is of one host of its connection, and no other host knows a place in it
    bounds_timestamps: bool  # by its server's clock: no commit_ts is from the future
    shows_past: bool  # its SQL shows tables as they were at a cut
    leaves_out_tables: bool  # the log's beginning names no tables but the kept ones
    logs_own_tables: bool  # the server's own tables are in the log, too
    changefeed: bool  # its rows are lines of a TiDB's changefeed, without columns' ids, comments, members
    leaves_out_generated: bool  # its log may lack the values of generated columns, and its SQL shows them
    erases_rows: bool  # a person's rows can be taken out of its bronze
    reader: str  # the module that captures it
    heartbeats_prove: bool  # that it is quiet; another source says so at the first look

    @property
    def pushes(self) -> bool:
        """Whether it sends its log by itself, once: nobody asks it where it is, or for older log."""
        return self.pushed_seconds is not None
