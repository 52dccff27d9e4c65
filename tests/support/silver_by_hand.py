"""A lake with a silver table written by hand: nothing of tidegate stands between a server and what verify compares.

In:  a server, a database, silver's rows as Arrow tables.
Out: the fixture `lake`: a Lake.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.config import Pipeline, parse
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import SERVER_IDS, server_of
from tidegate.verify.report import Report, TableResult
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

__all__ = ["CUT", "UTC", "Lake", "lake"]

CUT = 5
UTC = dt.UTC


class Lake:
    """A lake with what verify reads of it: silver, cuts, table_states, and one segment up to the server's position."""

    def __init__(self, root: str, server: Server, database: str, options: dict[str, str] | None = None) -> None:
        self.root, self.server, self.database, self.options = root, server, database, options
        self.cuts: list[dict[str, Any]] = [{"table": "", "delta_version": -1, "state": "active"}]

    def silver(self, table: str, rows: pa.Table, *, state: str = "active", database: str | None = None) -> None:
        path = f"{self.root}/{tables.silver_path(database or self.database, table)}"
        stamped = rows.append_column(tables.COMMIT_TS, pa.array([1] * rows.num_rows, pa.int64()))
        write_deltalake(path, stamped, mode="overwrite", storage_options=self.options)
        self.cuts.append({"table": f"{database or self.database}.{table}", "delta_version": 0, "state": state})

    def state(self, table: str, state: str, reason: str) -> None:
        row = {"pipeline": "p", "table": f"{self.database}.{table}", "state": state, "reason": reason}
        row |= {"commit_ts": 0, "recorded_at": dt.datetime.now(UTC)}
        self._append(tables.TABLE_STATES, [row])

    def publish(self) -> None:
        """Say that everything the server has written up to now is in the cut."""
        binlog = "SHOW BINARY LOG STATUS" if self.server.flavour == "mysql" else "SHOW MASTER STATUS"
        file, position = self.server.query(binlog)[0][:2]
        segment: dict[str, Any] = {field.name: _nothing(field.type) for field in tables.SEGMENTS.schema}
        segment |= {"source": "one", "file": file, "end_pos": int(position), "resolved_ts": CUT}
        ids = {str(name): value for name, value in self.server.query(SERVER_IDS)}
        segment["server_id"], segment["server_uuid"] = server_of(ids)
        self._append(tables.SEGMENTS, [segment])
        now = dt.datetime.now(UTC)
        self._append(tables.CUTS, [{"cut_ts": CUT, "applied_ts": CUT, "published_at": now} | row for row in self.cuts])

    def _append(self, table: tables.Table, rows: list[dict[str, Any]]) -> None:
        data = pa.Table.from_pylist(rows, schema=table.schema)
        where = f"{self.root}/{table.path}"
        by = list(table.partition_by) or None
        write_deltalake(where, data, mode="append", partition_by=by, storage_options=self.options)

    def pipeline(self, **more: str) -> Pipeline:
        routes = more.get("routes", "[]")
        text = f"""
pipeline: p
lake: {{path: {self.root}}}
sources: {{one: {{conn_id: one, flavour: {self.server.flavour}}}}}
tables: {{include: ['{self.database}.*'], routes: {routes}}}
"""
        return parse(text, where="test")

    def verify(self, timeout: float = 5, table: str | None = None, **more: str) -> Report:
        user = {"user": self.server.user, "password": self.server.password}
        info = ConnectionInfo(host=self.server.host, port=self.server.port, **user)
        return verify(
            self.pipeline(**more), {"one": info}, self.root, self.options, VerifyOptions(table and [table], timeout)
        )

    def result(self, table: str, **more: str) -> TableResult:
        return next(r for r in self.verify(**more).tables if r.table == f"{self.database}.{table}")


def _nothing(kind: pa.DataType) -> Any:
    empty = {pa.string(): "", pa.date32(): dt.date(2020, 1, 1), pa.large_binary(): b""}
    if pa.types.is_timestamp(kind):
        return dt.datetime(2020, 1, 1, tzinfo=UTC)
    return [] if pa.types.is_list(kind) else empty.get(kind, 0)


@pytest.fixture
def lake(any_server: Server, fresh_database: FreshDatabase, tmp_path: Path) -> Lake:
    return Lake(str(tmp_path), any_server, fresh_database(any_server))
