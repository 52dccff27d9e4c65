"""Transactions that TiDB no longer has a record of: put before a person, and decided.

In:  a Pump's prewrites whose records garbage collection took away; control/prewrites; the pipeline
     file's `xa.orphans`.
Out: rows `parked` of control/prewrites; the answers that a person, or the pipeline file, decided.
     Nobody decides a DDL: TiDB's history says what became of it (lost_ddl.py), and until then its
     row is `open`.

All Pumps of a cluster write and read these rows under the first one's name: a prewrite may have
come to two Pumps, and both must give it the same answer. The answer becomes a Commit or Rollback in
their streams. Nobody else takes it from here, so a row's `answer_ts` stays 0. `answer_pos` is the
commit_ts of the transaction's rows if they are to be applied: right above all timestamps named when
its prewrite came. Every later change of these rows waited for its locks, so it is above that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.config import Orphans
from tidegate.lake.bronze.prewrites import PUMPS_ID, by_policy, of_pump, record, unsettled
from tidegate.lake.control import ControlTables, application_version
from tidegate.lake.files import LakeFiles
from tidegate.pump.lost_ddl import LostDdl
from tidegate.segments.prewrites import Prewrite
from tidegate.tables.prewrites_table import PREWRITES, PrewriteState
from tidegate.tidb.records import pairing
from tidegate.tidb.records.pairing import ROLLED_BACK


@dataclass(frozen=True, slots=True)
class Parked:
    """owner: the cluster's first Pump. table_of: `database.table` of a key, "" when it can't be
    told. ddl: None: of a DDL nobody says anything.
    """

    lake: LakeFiles
    owner: str
    policy: Orphans
    table_of: Callable[[bytes], str]
    ddl: LostDdl | None = None

    def decided(self, lost: Sequence[pairing.UnansweredPrewrite[int]]) -> dict[int, int]:
        """start_ts -> commit_ts or ROLLED_BACK of the decided ones; the others are parked, or
        decided as the pipeline file says. Raises LakeUnavailable, LakeRefused.
        """
        known = self._known(lost)
        decisions = [known[prewrite.start_ts] for prewrite in lost if prewrite.start_ts in known]
        answers = {
            decision.start_ts: ROLLED_BACK for decision in decisions if decision.state is PrewriteState.ROLLED_BACK
        }
        return answers | {
            decision.start_ts: decision.answer_pos
            for decision in decisions
            if decision.state is PrewriteState.COMMITTED
        }

    def _known(self, lost: Sequence[pairing.UnansweredPrewrite[int]]) -> dict[int, Prewrite]:
        """The record of each by start_ts, once all are written down.

        A new record is appended only if no other Pump has appended one since the last look: two
        answers to one prewrite would stop the cluster's apply for good.
        """
        tables, counter = ControlTables(self.lake), f"tidegate/{self.owner}/parked"
        by_history: dict[int, Prewrite] = {}  # of DDL, what history says
        while True:  # a turn ends the loop, unless another Pump has written meanwhile
            number = application_version(self.lake, PREWRITES, counter) or 0
            known = {parked.start_ts: parked for parked in unsettled(self.lake).get(self.owner, ()) if of_pump(parked)}
            fresh = [self._parked(orphan) for orphan in lost if not orphan.place and orphan.start_ts not in known]
            for prewrite in lost:
                row = known.get(prewrite.start_ts)
                if prewrite.place and (row is None or row.waits):
                    by_history.setdefault(prewrite.start_ts, self._by_history(prewrite))
                    fresh += (
                        [by_history[prewrite.start_ts]]
                        if row is None or not by_history[prewrite.start_ts].waits
                        else []
                    )
            if not fresh:
                return known
            record(tables, fresh, (counter, number + 1))

    def _parked(self, lost: pairing.UnansweredPrewrite[int]) -> Prewrite:
        state, decider = by_policy(self.policy)
        table = self.table_of(lost.key)
        name, tables = f"{PUMPS_ID}{lost.start_ts}", (table,) if table else ()
        place = (self.owner, name, lost.start_ts, 0, 0, tables, state)
        return Prewrite(*place, answer_pos=lost.came_ts + 1, decided_by=decider)

    def _by_history(self, lost: pairing.UnansweredPrewrite[int]) -> Prewrite:
        fate = self.ddl.fate(lost) if self.ddl is not None else None
        state, decider = PrewriteState.OPEN, ""
        if fate is not None:
            state = PrewriteState.ROLLED_BACK if fate == ROLLED_BACK else PrewriteState.COMMITTED
            decider = f"TiDB's history of DDL job {lost.place}"
        place = (self.owner, f"{PUMPS_ID}{lost.start_ts}", lost.start_ts, 0, 0, (), state)
        return Prewrite(*place, answer_pos=fate or 0, decided_by=decider)
