"""What a Pump asks of its cluster: a timestamp, and what became of a prewrite.

In:  TiDB's SQL connection; the address of its status port.
Out: a TSO of PD, by way of TiDB; a commit_ts, ROLLED_BACK, or None while it isn't known. SourceUnavailable.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import pymysql

from tidegate.errors import SourceUnavailable
from tidegate.limits import ANSWER_SECONDS_MAX
from tidegate.mysql.connection import ConnectionInfo, connect, named
from tidegate.tidb.jobs import Job
from tidegate.tidb.live_tables import fold
from tidegate.tidb.mvcc import fate


class Clock:
    """PD's timestamps: a transaction begins with one."""

    def __init__(self, info: ConnectionInfo) -> None:
        self._info = info
        self._connection: pymysql.connections.Connection[Any] | None = None

    def tso(self) -> int:
        """Above every one that was given out before. Raises SourceUnavailable, SourceRefused."""
        if self._connection is None:
            self._connection = connect(self._info, read_timeout=ANSWER_SECONDS_MAX)
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT @@tidb_current_ts")
                found = int(cursor.fetchone()[0])
                cursor.execute("ROLLBACK")
        except (pymysql.err.MySQLError, OSError) as error:
            self.close()
            raise named(error, self._info) from error
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  close() waits for the server
            self._connection = None


class History:
    """TiDB's DDL history by SQL."""

    def __init__(self, info: ConnectionInfo) -> None:
        self._info = info

    def job(self, job_id: int) -> bytes | None:
        """Raises SourceUnavailable, SourceRefused."""
        found = self._read("SELECT job_meta FROM mysql.tidb_ddl_history WHERE job_id = %s", job_id)
        return next(iter(found), None)

    def tables(self, tso: int) -> bytes:
        """As they were at a timestamp. Raises SourceUnavailable, SourceRefused, StreamCorrupt.

        A job's FinishedTS is right below its commit_ts: one in between is in here, and its binlog comes once more.
        """
        texts = self._read("SELECT job_meta FROM mysql.tidb_ddl_history")
        jobs = sorted(((json.loads(text)["binlog"] or {}).get("FinishedTS") or 0, text) for text in texts)
        return fold(Job.from_text(text) for finished_ts, text in jobs if finished_ts <= tso).text.encode()

    def _read(self, query: str, *values: int) -> list[bytes]:
        """A connection of its own: a Pump asks so only around a DDL."""
        connection = connect(self._info, read_timeout=ANSWER_SECONDS_MAX)
        try:
            with connection.cursor() as cursor:
                cursor.execute(query, values)
                return [cell if isinstance(cell, bytes) else cell.encode() for (cell,) in cursor.fetchall()]
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
        finally:
            connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  close() waits for the server


@dataclass(frozen=True, slots=True)
class Mvcc:
    """url: of a TiDB's status port."""

    url: str

    def fate(self, key: bytes, start_ts: int) -> int | None:
        """Raises SourceUnavailable when TiDB can't be asked, or answers otherwise than it should."""
        address = f"{self.url.rstrip('/')}/mvcc/hex/{key.hex().upper()}"
        try:
            with urllib.request.urlopen(address, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310  the pipeline file's
                return fate(json.loads(answer.read()), start_ts)
        except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise SourceUnavailable(
                f"can't ask what became of transaction {start_ts}: {error}",
                where=address,
                remedy="its changes wait, and all that was committed after it; bring a TiDB's status port back",
            ) from None
