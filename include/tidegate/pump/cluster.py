"""A Pump's questions to its cluster: for a timestamp, and for the result of a prewrite.

In:  TiDB's SQL connection; the address of its status port.
Out: a TSO of PD, through TiDB; TiDB's MVCC record of a key; the safe point of garbage collection.
     SourceUnavailable.
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pymysql
import pymysql.cursors

from tidegate.commit_ts import FOREVER, compose
from tidegate.errors import SourceUnavailable, StreamCorrupt, TidegateError
from tidegate.limits import ANSWER_SECONDS_MAX, TIDB_GC_LIFE_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.pump.at_timestamp import seen_at
from tidegate.remedy import REPORT
from tidegate.tidb.jobs import Job
from tidegate.tidb.records.mvcc import fate
from tidegate.tidb.tables.live_tables import fold

_TABLE_KEY_BYTES: Final = 9  # t and the table's id (tidb/pkg/tablecodec)
_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


def told_tso(cursor: Any) -> int:
    """A timestamp of PD's: above every one that was given out before. Raises MySQLError, OSError."""
    cursor.execute("BEGIN")
    cursor.execute("SELECT @@tidb_current_ts")
    tso = int(cursor.fetchone()[0])
    cursor.execute("ROLLBACK")
    return tso


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
                return told_tso(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            self.close()
            raise named(error, self._info) from error

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
        texts = self._read("SELECT job_meta FROM mysql.tidb_ddl_history WHERE job_id = %s", job_id)
        return next(iter(texts), None)

    def table_of(self, key: bytes) -> str:
        """The table of a key, `database.table`; "" if unknown."""
        if key[:1] != b"t" or len(key) < _TABLE_KEY_BYTES:
            return ""
        table_id = int.from_bytes(key[1:_TABLE_KEY_BYTES], "big") - (1 << 63)
        query = "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema."
        parts = f"{query}partitions WHERE tidb_partition_id = %s"
        try:
            names = self._read(f"{query}tables WHERE tidb_table_id = %s UNION {parts}", table_id, table_id)
        except TidegateError:
            return ""
        return names[0].decode() if names else ""

    def tables(self, tso: int) -> bytes:
        """The tables as they were at a timestamp. Raises SourceUnavailable, SourceRefused,
        StreamCorrupt.

        A job's FinishedTS is right below its commit_ts. With a timestamp in between, the job is in
        here, and its binlog still comes.
        """
        return self._folded(tso, 0)

    def tables_at(self, ts: int) -> bytes:
        """The same, exactly as at a timestamp that garbage collection hasn't passed; 0: now. Raises likewise."""
        return self._folded(ts or FOREVER, ts)

    def jobs_at(self, ts: int) -> tuple[int, int]:
        """How many jobs the history has at a timestamp, and the largest id. Raises SourceUnavailable, SourceRefused."""
        query = "SELECT CONCAT(COUNT(*), ' ', IFNULL(MAX(job_id), 0)) FROM mysql.tidb_ddl_history"
        number, last = self._read(query, at_ts=ts)[0].split()
        return int(number), int(last)

    def _folded(self, upto_ts: int, at_ts: int) -> bytes:
        """The tables that the jobs up to a timestamp left, as text. at_ts: by the history as it was
        then; 0: as it is.
        """
        stamps = [(finished_ts(text), job_id) for job_id, text in self._jobs(at_ts)]
        ids = [job_id for stamp, job_id in sorted(stamps) if stamp <= upto_ts]
        return fold(Job.from_text(text) for text in self._in_order(ids, at_ts)).text.encode()

    def _in_order(self, ids: Sequence[int], at_ts: int) -> Iterator[bytes]:
        """The jobs' JSON in order of id. Jobs end about in that order, so only those ahead of their
        turn wait in memory, never a history of years.
        """
        wanted, waiting, done = set(ids), dict[int, bytes](), 0
        for job_id, text in self._jobs(at_ts):
            if job_id in wanted:
                waiting[job_id] = text
            while done < len(ids) and ids[done] in waiting:
                yield waiting.pop(ids[done])
                done += 1
        if done < len(ids):
            raise SourceUnavailable(
                f"DDL job {ids[done]} left the history while it was read",
                where=self._info.where,
                remedy="it is read again",
            )

    def _jobs(self, at_ts: int) -> Iterator[tuple[int, bytes]]:
        """Ids and JSON, by id, a row in memory at a time."""
        connection = connect(self._info, read_timeout=ANSWER_SECONDS_MAX)
        try:
            with connection.cursor(pymysql.cursors.SSCursor) as cursor:
                if at_ts:
                    cursor.execute(f"SET SESSION {seen_at(at_ts)}")
                cursor.execute("SELECT job_id, job_meta FROM mysql.tidb_ddl_history ORDER BY job_id")
                while (row := cursor.fetchone()) is not None:
                    yield row
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
        finally:
            connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  close() waits for the server

    def safe_point(self) -> int:
        """The commit_ts at or below which records of commits may be gone; 0 for a TiDB that never
        collected. Raises SourceUnavailable, SourceRefused.
        """
        text = self._collector("tikv_gc_safe_point")
        try:
            return safe_point_of(text) if text else 0
        except ValueError as error:
            raise SourceUnavailable(f"can't read its tikv_gc_safe_point: {error}", remedy=REPORT) from None

    def kept_seconds(self) -> float:
        """How long garbage collection keeps records. Raises SourceUnavailable, SourceRefused."""
        text = self._collector("tikv_gc_life_time")
        try:
            return seconds_of(text) if text else TIDB_GC_LIFE_SECONDS
        except ValueError as error:
            raise SourceUnavailable(f"can't read its tikv_gc_life_time: {error}", remedy=REPORT) from None

    def _collector(self, name: str) -> str:
        """A row of mysql.tidb; "" while it isn't there."""
        values = self._read("SELECT variable_value FROM mysql.tidb WHERE variable_name = %s", name)
        return values[0].decode() if values else ""

    def _read(self, query: str, *values: int | str, at_ts: int = 0) -> list[bytes]:
        """The first column of a SELECT. It makes a connection of its own: it is asked around a DDL, and once in a
        snapshot's wave.
        """
        connection = connect(self._info, read_timeout=ANSWER_SECONDS_MAX)
        try:
            with connection.cursor() as cursor:
                if at_ts:
                    cursor.execute(f"SET SESSION {seen_at(at_ts)}")
                cursor.execute(query, values)
                return [cell if isinstance(cell, bytes) else cell.encode() for (cell,) in cursor.fetchall()]
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
        finally:
            connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  close() waits for the server


def finished_ts(text: bytes) -> int:
    """The binlog timestamp in a job's JSON; 0 without a binlog. Raises StreamCorrupt."""
    try:
        return int((json.loads(text)["binlog"] or {}).get("FinishedTS") or 0)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StreamCorrupt(f"a DDL job's JSON isn't as TiDB writes it: {error!r}", remedy=REPORT) from None


def seconds_of(text: str) -> float:
    """The seconds of a duration as Go writes it: 10m0s, 1h30m0s. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no duration")
    return sum(float(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True))


def safe_point_of(text: str) -> int:
    """The last commit_ts of the second in mysql.tidb's tikv_gc_safe_point: 20240131-23:59:59 +0000. Raises ValueError.

    Later versions add milliseconds after the seconds.
    """
    stamp, zone = text.split(" ")[:2]
    at = datetime.strptime(f"{stamp.split('.')[0]} {zone}", "%Y%m%d-%H:%M:%S %z")
    return compose(int(at.timestamp() * 1000) + 1000)


@dataclass(frozen=True, slots=True)
class Mvcc:
    """url: of a TiDB's status port. history: its SQL port."""

    url: str
    history: History

    def safe_point(self) -> int:
        """0 for a TiDB that never collected. Raises SourceUnavailable, SourceRefused."""
        return self.history.safe_point()

    def fate(self, key: bytes, start_ts: int) -> int | None:
        """Raises SourceUnavailable when TiDB can't be asked, or answers otherwise than it should."""
        address = f"{self.url.rstrip('/')}/mvcc/hex/{key.hex().upper()}"
        try:
            with urllib.request.urlopen(address, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310  the pipeline file's
                return fate(json.loads(answer.read()), start_ts)
        except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise SourceUnavailable(
                f"can't ask for the result of transaction {start_ts}: {error}",
                where=address,
                remedy="its changes wait, and all that was committed after it; bring a TiDB's status port back",
            ) from None
