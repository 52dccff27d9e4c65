"""A connection for reads of a snapshot, and the tables as its server shows them.

In:  where a source is reached.
Out: WorkerConnection: rows of one server, of a TiDB at one timestamp; TableVersions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Self

import pymysql

from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.facts.server_facts import SERVER_IDS, check_is, server_of
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.pump.at_timestamp import seen_at
from tidegate.pump.cluster import History
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.segment import Server
from tidegate.snapshot.reading.result.plan import SESSION
from tidegate.snapshot.reading.tidb_definitions import Definitions


class WorkerConnection:
    """A connection with the session needed by reads. Its server is the same as long as it is
    open.
    """

    def __init__(self, info: ConnectionInfo, *, changefeed: bool = False) -> None:
        """changefeed: the server is the TiDB of one. Raises SourceRefused, SourceUnavailable."""
        self.info, self.changefeed = info, changefeed
        self.raw: Any = connect(info)
        try:
            self.raw.query(SESSION)
            variables = {str(_text(name)).lower(): _text(value) for name, value in self.ask(SERVER_IDS)}
            version = variables.get("version", "").lower()
            self.is_mariadb, self.is_tidb = "mariadb" in version, "tidb" in version
            if changefeed:
                self._check_is_tidb(version)
            if self.is_tidb:  # which has all text in UTF-8, and else says it as the column is declared
                self.ask("SET SESSION character_set_results = utf8mb4")
        except BaseException:
            self.close()
            raise
        # A TiDB's servers are one, and nothing that a Pump writes down is of one of them.
        self.server_id, self.server_uuid = (0, "") if self.is_tidb else server_of(variables)
        self.at_ts = 0
        self._definitions = Definitions(History(info), lower_tables=changefeed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.raw._force_close()  # noqa: SLF001  it may stand in the middle of a result

    def _check_is_tidb(self, version: str) -> None:
        if not self.is_tidb:
            raise SourceRefused(
                f"this must be the SQL port of a changefeed's TiDB, but the server calls itself {version}",
                where=self.info.where,
                remedy="give sql_conn_id the address of the TiDB that the changefeed is of",
            )

    @property
    def server(self) -> Server:
        return self.server_id, self.server_uuid

    def another(self) -> WorkerConnection:
        """A second connection to the same server. Raises SourceRefused, SourceUnavailable (another server answers)."""
        made = WorkerConnection(self.info, changefeed=self.changefeed)
        try:
            made.check_is(self.server)
        except BaseException:
            made.close()
            raise
        return made

    def check_is(self, server: Server) -> None:
        """Raises SourceUnavailable at another server."""
        if self.server != server:
            raise SourceUnavailable(
                f"a different server answers now: {self.server_id} {self.server_uuid}, and {server[0]} {server[1]} is"
                " read",
                where=self.info.where,
                remedy="it is tried again; give the connection the address of one server",
            )

    def see(self, at_ts: int) -> None:
        """Read a TiDB as it was at a timestamp from here on; 0: as it is. Raises SourceRefused, SourceUnavailable."""
        if self.at_ts != at_ts:
            self.ask(f"SET SESSION {seen_at(at_ts)}")
            self.at_ts = at_ts

    def versions(self, source: str, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], TableVersion]:
        """The tables as the server has them where it is read. Raises SourceRefused, SourceUnavailable."""
        if self.is_tidb:
            return self._definitions.at(source, set(names), self.at_ts)
        return self._shown_versions(source, set(names))

    def _shown_versions(self, source: str, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], TableVersion]:
        """The versions as a MySQL or MariaDB shows them. Raises SourceRefused, SourceUnavailable."""
        if not wanted:
            return {}
        try:
            with connect(self.info) as connection:
                with connection.cursor() as cursor:
                    check_is(self.server, cursor, self.info)
                place = Position.of(f"{self.server_id}.0", 0)
                read = read_schema(connection, source, lambda *name: name in wanted, place, only=wanted)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error
        return {(version.database, version.table): version for version in read if version.table}

    def ask(self, sql: str, values: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        """All rows. Raises SourceRefused, SourceUnavailable."""
        try:
            with self.raw.cursor() as cursor:
                cursor.execute(sql, values)
                return [tuple(_text(cell) for cell in row) for row in cursor.fetchall()]
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error


def _text(cell: Any) -> Any:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
