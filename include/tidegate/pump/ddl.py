"""The records of DDL jobs in TiDB's history, for a Pump to land beside their binlogs.

In:  commits of DDL binlogs in a Pump's stream; a TiDB to ask.
Out: payloads for the stream: a job's JSON once it is finished, and at the beginning the tables that
     are there.

A job's binlog has only its text and its id. The table after it, with the column ids that rows use,
stands in TiDB's history alone. Resolved_ts stays below a DDL until its job is in the stream, so a
replay years later needs no TiDB. While TiDB can't be asked, everything after the DDL waits; TiDB's
writes are still taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from tidegate.commit_ts import FOREVER
from tidegate.errors import TidegateError
from tidegate.limits import PUMP_ORPHAN_LOOK_SECONDS
from tidegate.pump.aside import Aside
from tidegate.tidb.records.payload import Binlog, BinlogType, job_payload, tables_payload
from tidegate.tidb.rows.summary import moves_sequence

log = logging.getLogger(__name__)


class Jobs(Protocol):
    """TiDB's DDL history."""

    def job(self, job_id: int) -> bytes | None:
        """A finished job's JSON; None while it isn't there. Raises SourceUnavailable."""
        ...

    def tables(self, tso: int) -> bytes:
        """The text of LiveTables as they were at a timestamp. Raises SourceUnavailable."""
        ...


@dataclass(slots=True)
class JobNotes:
    """jobs: None: no job is landed, and none is waited for. _waiting: commit_ts -> job id."""

    jobs: Jobs | None
    _waiting: dict[int, int] = field(default_factory=dict)
    _ask_at: float = 0.0
    _asked: Aside[list[tuple[int, int, bytes]]] = field(default_factory=lambda: Aside("ddl jobs"))

    def take(self, binlog: Binlog) -> None:
        """Take in a binlog of the stream. Each Commit of a DDL waits for its job, even below
        resolved_ts: a Pump that reads its own segments again may meet the Commit without the
        Prewrite that had held resolved_ts back. When a Commit is sent once more, its job is in the
        stream twice.
        """
        if binlog.tp is BinlogType.JOB:
            self._waiting.pop(binlog.start_ts, None)
        elif self.jobs is not None and binlog.tp is BinlogType.COMMIT and waits_for(binlog):
            self._waiting[binlog.commit_ts] = binlog.ddl_job_id
            self._ask_at = 0.0

    @property
    def waits(self) -> bool:
        """Whether a DDL's job isn't landed yet."""
        return bool(self._waiting)

    def below(self, resolved_ts: int) -> int:
        """The resolved_ts that the landed jobs allow, given the stream's."""
        return min(resolved_ts, min(self._waiting, default=FOREVER) - 1)

    def finished(self) -> Iterator[bytes]:
        """Payloads for jobs that are in the history by now. TiDB is asked once a second, aside: nobody waits for its
        answer.
        """
        now = time.monotonic()
        try:
            jobs = self._asked.answer()
        except TidegateError as error:
            log.warning("DDL jobs aren't known yet, and what comes after them waits: %s", error)
            jobs = None
        for commit_ts, job_id, text in jobs or ():
            if commit_ts in self._waiting:
                yield job_payload(job_id, commit_ts, text)
        if self._waiting and not self._asked.waits and now >= self._ask_at:
            self._ask_at = now + PUMP_ORPHAN_LOOK_SECONDS
            self._asked.ask(partial(self._look_up, sorted(self._waiting.items())))

    def _look_up(self, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int, bytes]]:
        """(commit_ts, job id, JSON) of those that are finished. Raises SourceUnavailable."""
        assert self.jobs is not None, "else none waits"
        texts = [(commit_ts, job_id, self.jobs.job(job_id)) for commit_ts, job_id in wanted]
        return [(commit_ts, job_id, text) for commit_ts, job_id, text in texts if text is not None]

    def begin(self, tso: int) -> bytes | None:
        """A payload with the tables at a timestamp, for a Pump that begins; None: ask again."""
        if self.jobs is None:
            return None
        try:
            return tables_payload(tso, self.jobs.tables(tso))
        except TidegateError as error:
            log.warning("the list of tables isn't known yet: %s", error)
            return None


def waits_for(binlog: Binlog) -> int:
    """The job whose JSON a DDL binlog needs; 0 where no job stands for it."""
    return 0 if moves_sequence(binlog.ddl_query.decode(errors="replace")) else binlog.ddl_job_id
