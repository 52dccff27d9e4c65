"""The knowledge of an apply application between windows.

In:  a pipeline and its lake.
Out: Application, alive as long as the Spark application: Handles, and all that was read with them.

All of it is a copy: after a restart it is read again from bronze, control tables and silver's
transaction versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from spark_jobs.window.handles import Handles
from spark_jobs.window.histories import Histories
from spark_jobs.window.positions import Positions
from spark_jobs.window.states import States
from spark_jobs.window.window import Window
from tidegate.lake.standing.followed import FollowedSources
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.standing.standing import Standing

Memory = TypeVar("Memory")


class Application(Handles):
    """One running apply job. histories: present and past tables, and their columns. positions: how
    far each table is. snapshots: the content of control/snapshots.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.histories = Histories(self)
        self.names = self.histories.names
        self.positions = Positions(self, self.names)
        self.snapshots = KnownEvents(EventLog(self.lake))
        self._memory: dict[type, Any] = {}
        self._checked = (-1, -1)

    @property
    def cut_ts(self) -> int:
        return self.positions.cut_ts

    @property
    def followed(self) -> FollowedSources:
        return self.positions.followed

    @property
    def states(self) -> States:
        return self.positions.states

    def memory(self, kind: type[Memory]) -> Memory:
        """A step's memory between windows, made when first asked for."""
        kept: Memory = self._memory.setdefault(kind, kind())
        return kept

    def load(self) -> None:
        """Read earlier applications' records: the newest published cut, schema histories, table
        states.
        """
        self.positions.load()
        self.histories.read_prewrites(self.positions)
        self.refresh()

    def reload(self) -> None:
        """Forget everything in memory and read it again."""
        self.positions.forget()
        self.histories.version = -1
        self.snapshots = KnownEvents(EventLog(self.lake))
        self._checked = (-1, -1)  # a failed try may have learned something without recording it: look again
        self.load()

    def refresh(self) -> None:
        """Read the rows that capture (a baseline) or a person (a release) has written since the
        last window.
        """
        if self.positions.read_states():
            self.histories.read_judged()
        self.snapshots.look()
        self.histories.read(self.positions, self.snapshots.open_lows())

    def forget_versions(self) -> None:
        """After a published cut: let go of table versions needed by no window any more."""
        self.histories.forget(self.positions, self.snapshots.open_lows())

    def unchecked(self) -> bool:
        """Whether schema_history or table_states changed since this was last asked."""
        now = (self.histories.version, self.positions.states_version)
        changed, self._checked = now != self._checked, now
        return changed

    def record_caught_up(self, window: Window, states: Mapping[str, Standing]) -> None:
        """Publish a window of tables catching up: record their new standings."""
        self.record_states(states, (self.positions.caught_up_id, self.positions.publications(window)))

    def record_states(self, states: Mapping[str, Standing], app_transaction: tuple[str, int] | None = None) -> None:
        """Append table_states events, with the noted ones; earlier events of others count first.

        Their time is later than that of all events of the tables' snapshot readers, even if a reader's clock is ahead.
        Later questions compare these times: was a wave read, or taken, before a hold?
        """
        if not self.positions.record(states, app_transaction, self._told_at):
            self.refresh()

    def _told_at(self) -> dict[str, datetime]:
        """Per logical table the latest time of an event of its going snapshots."""
        newest = dict[str, datetime]()
        for physical, at in self.snapshots.told_at().items():
            name = self.names.logical_name(*physical.pair)
            newest[name] = max(at, newest.get(name, at))
        return newest
