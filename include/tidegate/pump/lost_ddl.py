"""DDL whose answer got lost and whose record garbage collection took away: TiDB's DDL history says what became of it.

In:  the prewrite of a DDL job's binlog; TiDB's history; bronze, with what came to all Pumps of the
     cluster.
Out: the commit_ts of its effect, ROLLED_BACK, or None while unknown.

A job's binlog belongs to one transaction, and a later transaction moves the job from its queue to
the history, where it stays. Once the history has the job, one of its prewrites of that schema
state was committed: above all timestamps named when it came, and below the job's FinishedTS. TiDB
tries only a failed prewrite again, so of several it is the last one. All of them have come once
each Pump's bronze names FinishedTS; before that the last one isn't known.

A job that isn't in the history waits, however long: it may still be in the queue.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.commit_ts import FOREVER
from tidegate.lake.bronze.index import read_segments
from tidegate.lake.bronze.lookback import naming
from tidegate.lake.files import LakeFiles
from tidegate.pump.cluster import finished_ts
from tidegate.pump.ddl import Jobs
from tidegate.tables import SegmentFlag
from tidegate.tidb.records.pairing import ROLLED_BACK, UnansweredPrewrite
from tidegate.tidb.rows.summary import summary_of

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LostDdl:
    """pumps: all of the cluster. _told: jobs reported as waiting."""

    lake: LakeFiles
    pumps: Sequence[str]
    jobs: Jobs
    _told: set[int] = field(default_factory=set)

    def fate(self, lost: UnansweredPrewrite[int]) -> int | None:
        """Raises SourceUnavailable, SourceRefused, LakeUnavailable, LakeRefused, StreamCorrupt."""
        text = self.jobs.job(lost.place)
        if text is None:
            self._tell(lost, "it isn't in TiDB's DDL history: ADMIN SHOW DDL JOBS says whether it runs, or is paused")
            return None
        upto_ts = max(finished_ts(text), lost.came_ts)
        states: dict[int, int] = {}
        for pump in self.pumps:
            refs = naming(self.lake, pump, lost.start_ts, FOREVER)
            if not refs or refs[-1].max_commit_ts < upto_ts:
                self._tell(lost, f"bronze doesn't have yet what came to Pump {pump} until the job was finished")
                return None
            wanted = [ref for ref in refs if ref.flags & SegmentFlag.HAS_DDL and ref.min_commit_ts <= upto_ts]
            for _, segment in read_segments(self.lake, wanted):
                summary = summary_of(segment)
                said = summary.stamps[summary.answered == lost.start_ts]
                if len(said):
                    return int(said[0])  # another Pump, to which it came too, knows
                states |= {start: ddl.schema_state for start, ddl in summary.ddl.items() if ddl.job_id == lost.place}
        if lost.start_ts not in states:
            self._tell(lost, "bronze doesn't have its prewrite yet")
            return None
        own_state = states[lost.start_ts]
        later = any(start > lost.start_ts and state == own_state for start, state in states.items())
        return ROLLED_BACK if later else lost.came_ts + 1

    def _tell(self, lost: UnansweredPrewrite[int], why: str) -> None:
        if lost.start_ts not in self._told:
            self._told.add(lost.start_ts)
            log.error(
                "nobody can say whether transaction %d of DDL job %d was committed: %s. It waits, and so does"
                " everything committed after it",
                lost.start_ts,
                lost.place,
                why,
            )
