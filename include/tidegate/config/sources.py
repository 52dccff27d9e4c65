"""The section `sources` of a pipeline file: what is captured, each of its kind.

In:  one source, as pydantic gets it.
Out: a Source, frozen.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from pydantic import Field

from tidegate.config.section import Section


class Flavour(StrEnum):
    MYSQL = "mysql"
    MARIADB = "mariadb"


class DumpMode(StrEnum):
    GTID = "gtid"
    POSITION = "position"


class Start(StrEnum):
    NOW = "now"
    EARLIEST = "earliest"


class MysqlSource(Section):
    """A MySQL or MariaDB server whose binlog is captured."""

    conn_id: str = Field(
        description="Airflow connection with host, port, login, password; TLS in its extra", min_length=1
    )
    flavour: Flavour = Field(description="mysql or mariadb")
    dump: DumpMode = Field(DumpMode.GTID, description="Ask for the stream by GTID, or by file and position")
    start: Start = Field(
        Start.NOW,
        description="Where the first capture starts: now (a snapshot reads the rows that are there), or the earliest binlog",
    )
    semi_sync: bool = Field(
        False,
        description="Take part in semi-synchronous replication: a commit that waits is acknowledged when it is on our disk."
        " Have another semi-sync replica too: while capture restarts, or is down, it replies",
    )
    server_id: int | None = Field(
        None, ge=1, le=0xFFFFFFFF, description="Replica id shown to the server; derived from the names when empty"
    )


# One class for each kind of source: another one is joined to this by `|`, and pipelines.opened says what reads it.
Source: TypeAlias = MysqlSource
