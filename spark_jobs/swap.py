"""A rebuilt table is put in the place of the live one, under apply's lease.

In:  a pipeline, its lake, a rebuilt table that says it is whole (lake/rebuild/swap.py).
Out: the live table with the rebuilt one's rows, by one commit; a row of control/cuts that names its version; where the
     rebuilt table is older than the cut, it catches up from bronze. The rebuilt table is gone.

A table that is to catch up is recorded as such before the commit. If a swap is killed before the commit, only files are
left, and VACUUM removes them. If it is killed after the commit, the next apply also finds silver older than published.
A held table stays held until this is run again. A second run does what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.standing.from_bronze import from_bronze
from spark_jobs.window.standing.standings import note
from tidegate import tables
from tidegate.copies.place import CopyPlace, place_of
from tidegate.delta.object_names import LOG
from tidegate.delta.table.state import TableState
from tidegate.errors import LakeRefused
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.lake.rebuild.rebuild_lake import check_captured
from tidegate.lake.rebuild.swap import make_as, rebuilt_ts, swapped
from tidegate.lake.silver.as_published import own_ts, said_of_all
from tidegate.lake.silver.known_history import history_name, known_history, recorded
from tidegate.lake.silver.sizes import size_cells
from tidegate.lake.standing.from_bronze import all_versions
from tidegate.limits import COPY_AT_ONCE_FILES_MAX
from tidegate.silver_names import silver_column
from tidegate.standing.causes import Cause
from tidegate.standing.events import Emptied, SilverOlder
from tidegate.standing.standing import Standing
from tidegate.tables import State

# In these states a rebuilt table may take the place of silver: it has the right rows, and a rebuild refuses if bronze
# lacks some.
_ENDS: Final = (Cause.NEEDS_ROWS, Cause.MISMATCH, Cause.WRITE_FAILED, Cause.FAULT)
_SWAPS: Final = (State.ACTIVE, State.RELEASED, State.HELD)


@dataclass(frozen=True, slots=True)
class Swap:
    """table: logical name. to: path of the rebuilt table; silver: of the live one."""

    lake: LakeFiles
    pipeline: str
    table: str
    to: str
    silver: str

    def bring(self) -> int:
        """Copy the rebuilt table's files into the live table's folder. No version names them yet.
        Returns how many.
        """
        place = place_of(self.lake.root, self.lake.storage_options)
        here = {file.path: file.size for file in place.files(self.silver)}
        beside = [file for file in place.files(self.to) if not file.path.startswith(f"{LOG}/")]
        wanted = [file.path for file in beside if here.get(file.path) != file.size]
        with ThreadPoolExecutor(COPY_AT_ONCE_FILES_MAX, "swap") as pool:
            for _ in pool.map(lambda path: self._bring(place, path), wanted):
                pass
        return len(wanted)

    def _bring(self, place: CopyPlace, path: str) -> None:
        failpoint("swap_before_file")
        place.write(f"{self.silver}/{path}", place.read(f"{self.to}/{path}"))

    def run(self, app: Application, report: Callable[[str], None]) -> TableState:
        """After bring(), with an application that has apply's lease. Raises LakeRefused: then nothing has changed."""
        app.claim()
        app.load()
        app.index.refresh(app.cut_ts)
        app_id = tables.app_id(self.pipeline, self.table)
        rebuilt = self.lake.log(self.to).state()
        at_ts = rebuilt_ts(rebuilt, app_id)
        standing = app.states.get(self.table)
        is_behind = self._came_since(app, at_ts)
        self._check(app, standing, at_ts)
        for physical in app.names.flows().get(self.table, ()):
            for log_name in app.pipeline.pumps(physical.source):  # an older release rebuilt it all the same
                check_captured(app.index, log_name, self.table, at_ts)
        if is_behind:
            self._check_catches_up(app, at_ts)
        names = self._source_columns(app)
        log = self.lake.log(self.silver)
        if is_behind:
            self._record_below(app, log.state(), rebuilt, at_ts, names)
        failpoint("swap_before_commit")
        app.check_claim()
        make_as(log, rebuilt)
        history = history_name(self.pipeline, self.table)
        known = known_history(self.lake.log(self.to), rebuilt, history)
        since_ts = known.since_ts if known is not None else 0
        live = log.update(lambda read: swapped(read, rebuilt, app_id, names, recorded(read, history, since_ts)))
        failpoint("swap_after_commit")
        self._record(app, live, at_ts)
        failpoint("swap_before_end")
        self.lake.delete_folder(self.to)
        after = app.states.get(self.table)
        state = after.state if after is not None else State.ACTIVE
        waits = f": {after.reason}" if after is not None and state is State.HELD else ""
        report(f"{self.table} has the rebuilt rows in version {live.version}, and is {state}{waits}")
        return live

    def _check(self, app: Application, standing: Standing | None, at_ts: int) -> None:
        if not at_ts:
            raise LakeRefused("isn't whole, or was rebuilt by an older release", where=self.to, remedy="rebuild again")
        if standing is not None and standing.state not in _SWAPS:
            raise LakeRefused(f"is {standing.state}: nothing is swapped", where=self.table, remedy="wait for its end")
        live = self.lake.log(self.silver).state()
        if not live.created and (standing is None or not standing.lacks_past):
            raise LakeRefused("has no silver", where=self.table, remedy="see `tidegate lake check`: apply makes it")
        if live.files and not own_ts(live, tables.app_id(self.pipeline, self.table)):
            raise LakeRefused(
                "its silver has rows that aren't tidegate's", where=self.table, remedy="move its folder away"
            )
        flows = app.names.flows().get(self.table, ())
        if any(app.snapshots.touched_since(physical, at_ts) for physical in flows):
            cancel = f"tidegate snapshot cancel {self.pipeline} {self.table}"
            raise LakeRefused(
                "a snapshot of it is under way, or has read rows since",
                where=self.table,
                remedy=f"wait for its end, or end it: {cancel}; then rebuild it again",
            )

    def _came_since(self, app: Application, at_ts: int) -> bool:
        """Whether the live table may have changes that the rebuilt one lacks."""
        if at_ts >= app.positions.mark(self.table):
            return False
        said = said_of_all(self.lake).get(self.table)
        if said is None or not said.own_ts:
            return True
        live = self.lake.log(self.silver).state()
        return max(said.own_ts, own_ts(live, tables.app_id(self.pipeline, self.table))) > at_ts

    def _check_catches_up(self, app: Application, at_ts: int) -> None:
        bronze = from_bronze(app, [self.table]).get(self.table)
        if bronze is None or not bronze.reaches(at_ts):
            raise LakeRefused(
                f"it was rebuilt at {at_ts}, and what came since isn't in the log of this one table alone",
                where=self.table,
                remedy="rebuild it again while apply is stopped",
            )

    def _source_columns(self, app: Application) -> set[str]:
        """Names in silver of all columns that the source ever gave it."""
        versions = all_versions(app.lake, app.names.flows().get(self.table, ()))
        known = chain.from_iterable(versions.values())
        return {silver_column(column.name) for version in known for column in version.columns}

    def _record_below(
        self, app: Application, live: TableState, rebuilt: TableState, at_ts: int, names: set[str]
    ) -> None:
        """Record that the table catches up, before the commit: no hour may count as complete while silver lacks a part
        of it. After a kill right after this, it catches up on changes that silver has already.
        """
        if live.created:
            swapped(live, rebuilt, tables.app_id(self.pipeline, self.table), names, {})  # a refusal must change nothing
        standing = app.states.get(self.table)
        if standing is None or standing.state is not State.HELD:
            note(app, self.table, SilverOlder(at_ts, f"{self.table}: it was rebuilt from bronze up to {at_ts}"))
            app.record_states({})

    def _record(self, app: Application, live: TableState, at_ts: int) -> None:
        """Record the table's standing, then its new version in control/cuts."""
        standing = app.states.get(self.table)
        app.positions.forget_applied(self.table)
        if standing is not None and standing.state is State.HELD and _ends(standing, at_ts):
            note(app, self.table, Emptied(at_ts))
            app.record_states({})
        after = app.states.get(self.table)
        app_id = tables.app_id(self.pipeline, self.table)
        row = {
            "cut_ts": app.cut_ts,
            "table": self.table,
            "delta_version": live.version,
            "applied_ts": app.cut_ts if after is None else after.applied_ts,
            "state": State.ACTIVE if after is None else after.state,
            "published_at": datetime.now(UTC),
            "silver_id": live.table_id,
            "silver_ts": own_ts(live, app_id),
            **size_cells(live),
        }
        app.publish([row])


def _ends(held: Standing, at_ts: int) -> bool:
    """Whether a held table continues after the swap: its cause lies in the rebuilt rows, or a person's release would
    end the hold.
    """
    if held.cause not in _ENDS or held.is_unread:
        return False
    return held.releasable or held.place is None or held.place.at_ts <= at_ts
