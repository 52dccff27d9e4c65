"""The section `sources` of a pipeline file: what is captured, each of its kind.

In:  one source, as pydantic gets it.
Out: a Source, frozen.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from tidegate.config.connection_names import ConnId
from tidegate.config.section import Section
from tidegate.config.source_keys.any_source import AnySourceSection, Flavour
from tidegate.config.source_keys.source_traits import SourceTraits, as_named, lower_database
from tidegate.config.source_keys.ticdc import TicdcSource
from tidegate.limits import (
    PUMP_FAKE_SECONDS_DEFAULT,
    PUMP_ORPHAN_SECONDS_DEFAULT,
    PUMP_PAYLOAD_BYTES_DEFAULT,
    SECONDS_MAX,
)

_PD_URL: Final = re.compile(r"https?://[^\s/@?#]+/?")
_NODE_ID: Final = re.compile(r"[A-Za-z0-9._:-]+")  # a key in PD, and one part of it


class DumpMode(StrEnum):
    GTID = "gtid"
    POSITION = "position"


class Start(StrEnum):
    NOW = "now"
    EARLIEST = "earliest"


class MysqlSource(AnySourceSection):
    """A MySQL or MariaDB server whose binlog is captured."""

    conn_id: ConnId = Field(
        description="Airflow connection with host, port, login, password. Its extra has the TLS settings", min_length=1
    )
    flavour: Literal[Flavour.MYSQL, Flavour.MARIADB] = Field(
        description="mysql or mariadb; for TiDB ticdc or tidb, see docs/tidb.md"
    )
    dump: DumpMode = Field(DumpMode.GTID, description="How to request the stream: by GTID, or by file and position")
    start: Start = Field(
        Start.NOW,
        description="Where the first capture starts: now (a snapshot reads the existing rows), or earliest (the"
        " oldest binlog)",
    )
    semi_sync: bool = Field(
        False,
        description="Take part in semi-synchronous replication: capture acknowledges a waiting commit when it is on"
        " our disk. Run another semi-sync replica too: it replies while capture restarts or is down",
    )
    replica_conn_id: ConnId | None = Field(
        None,
        min_length=1,
        description="Airflow connection of a replica. Snapshots watch its lag (snapshot.replica_lag_seconds_max)",
    )
    server_id: int | None = Field(
        None,
        ge=1,
        le=0xFFFFFFFF,
        description="Replica id that the server sees. Empty: derived from the names of pipeline and source",
    )

    @property
    def traits(self) -> SourceTraits:
        return SourceTraits(
            log=f"conn_id {self.conn_id}", sql_conn_id=self.conn_id, replica_conn_id=self.replica_conn_id,
            cluster=None, pushed_seconds=None,
            watched_conn_id=None if self.semi_sync else self.conn_id, paths=(), files=(), in_silver=as_named,
            has_positions=True, bounds_timestamps=True, shows_past=False, leaves_out_tables=True,
            logs_own_tables=False, changefeed=False, leaves_out_generated=self.flavour is Flavour.MARIADB,
            erases_rows=True, reader="tidegate.mysql.capturing.reader", heartbeats_prove=True,
        )  # fmt: skip


class TidbSource(AnySourceSection):
    """A Pump that a TiDB up to 8.3 writes its binlog to."""

    conn_id: ConnId = Field(
        description="Airflow connection of TiDB's SQL port: for timestamps, DDL, snapshots, verification", min_length=1
    )
    flavour: Literal[Flavour.TIDB] = Field(description="tidb")
    listen: tuple[str, ...] = Field(
        description="Address that TiDB writes to: unix:/path/pump.sock, or host:port", min_length=1
    )
    node: str | None = Field(
        None,
        description="Name of this Pump. Empty: the name of the source. Never change it for the same source",
        min_length=1,
    )
    cluster: str | None = Field(
        None,
        description="Pumps with the same word here belong to one TiDB. Empty: Pumps with the same conn_id do",
        min_length=1,
    )
    tls_certificate: Path | None = Field(None, description="PEM file. TCP addresses then accept only TLS")
    tls_key: Path | None = Field(None, description="PEM file with the certificate's key")
    tls_ca: Path | None = Field(None, description="PEM file. TiDB must show a certificate that this CA signed")
    cluster_id: int | None = Field(
        None, description="Id of TiDB's cluster. The Pump refuses writes of another cluster", ge=0
    )
    status_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s/@]+(/[^\s@]*)?$",
        description="TiDB's status port, http://host:10080. The Pump asks it for the result of transactions whose"
        " Commit or Rollback got lost. Empty: these transactions wait, and all later ones too",
    )
    pd: tuple[str, ...] = Field(
        (),
        description="Client URLs of PD, http://host:2379. The Pump registers there, and TiDB finds it. Empty: give"
        " TiDB the address. https uses tls_certificate, tls_key and tls_ca",
    )
    advertise: str | None = Field(
        None,
        pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+):[0-9]+$",
        description="With pd: host:port of the Pump as TiDB reaches it. PD tells TiDB",
    )
    orphan_seconds: float = Field(
        PUMP_ORPHAN_SECONDS_DEFAULT,
        gt=0,
        le=SECONDS_MAX,
        description="Age of an unanswered prewrite, in TiDB's timestamps, at which the Pump asks for its result. TiDB"
        " must say twice, this far apart, that it has nothing of it",
    )
    fake_seconds: float = Field(
        PUMP_FAKE_SECONDS_DEFAULT, gt=0, le=SECONDS_MAX, description="How often a quiet cluster proves its resolved_ts"
    )
    payload_bytes_max: int = Field(
        PUMP_PAYLOAD_BYTES_DEFAULT,
        gt=0,
        le=(1 << 31) - 1,
        description="Largest binlog of one transaction",
    )

    @property
    def traits(self) -> SourceTraits:
        return SourceTraits(
            log=None, sql_conn_id=self.conn_id, replica_conn_id=None, cluster=self.cluster or self.conn_id,
            pushed_seconds=self.fake_seconds, watched_conn_id=None, paths=(), in_silver=lower_database,
            files=("tls_certificate", "tls_key", "tls_ca"), has_positions=False, bounds_timestamps=False, shows_past=True,
            leaves_out_tables=False, logs_own_tables=True, changefeed=False,
            leaves_out_generated=False, erases_rows=False, reader="tidegate.pump.opened", heartbeats_prove=False,
        )  # fmt: skip

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None) or (self.tls_ca and not self.tls_key):
            raise ValueError("tls_certificate and tls_key go together, and tls_ca with both")
        return self

    @model_validator(mode="after")
    def _pd_is_whole(self) -> Self:
        if bool(self.pd) != (self.advertise is not None):
            raise ValueError("pd and advertise go together")
        if self.pd and all(address.startswith("unix:") for address in self.listen):
            raise ValueError("whom PD tells of the Pump comes by TCP: listen at a host:port too")
        for url in self.pd:
            if not _PD_URL.fullmatch(url):
                raise ValueError(f"pd: {url.rpartition('@')[2]} isn't http://host:port or https://host:port")
        if self.pd and self.node and not _NODE_ID.fullmatch(self.node):
            raise ValueError("with pd, node is made of letters, digits and . _ : -")
        return self


# One class for each kind of source: another one is joined to this by `|`, and pipelines.opened says what reads it.
AnySource: TypeAlias = MysqlSource | TidbSource | TicdcSource
# The mark by which pydantic tells them apart -> class; config.file leaves the mark out of errors.
KINDS: Final[dict[str, type[Section]]] = {
    "(a server's binlog)": MysqlSource,
    "(a pump)": TidbSource,
    "(a changefeed)": TicdcSource,
}
_SERVER, _PUMP, _CHANGEFEED = KINDS
_KIND_OF: Final = {Flavour.TIDB: _PUMP, Flavour.TICDC: _CHANGEFEED}


def kind_of(data: Any) -> str:
    """The mark of a source's kind. An unknown kind counts as a server, and the error names the missing keys."""
    flavour = data.get("flavour") if isinstance(data, dict) else getattr(data, "flavour", None)
    return next((mark for kind, mark in _KIND_OF.items() if kind == flavour), _SERVER)


Source = Annotated[
    Annotated[MysqlSource, Tag(_SERVER)] | Annotated[TidbSource, Tag(_PUMP)] | Annotated[TicdcSource, Tag(_CHANGEFEED)],
    Discriminator(kind_of),
]
