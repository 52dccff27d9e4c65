"""Tables whose rows are in no log: they are older than capture, the pipeline file keeps them only
since it changed, and nobody has written to them.

In:  a pipeline, its lake, how to reach its sources.
Out: physical tables waiting for a snapshot, though neither schema_history nor control/table_states
     knows them.

Tables that existed at capture's first start are in the baseline. Later ones are in the log, which
apply has followed up to the cut, or up to where the source was left behind. Therefore an older table
without a version existed before, and isn't in the baseline because the pipeline file didn't keep it
then. Nothing in the lake names it, so the server is asked: once per run, because a run reads the
pipeline file once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.commit_ts import physical_ms
from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.lake import control
from tidegate.lake.figures.status import cut_ts
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import followed
from tidegate.lake.standing.followed import FollowedSources
from tidegate.limits import SNAPSHOT_AGAIN_SECONDS, SNAPSHOT_UNHEARD_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.tables_there import tables_there
from tidegate.mysql.start.recorded import newest_statuses
from tidegate.table_names import Physical
from tidegate.tables import FOLLOWED, SCHEMA_HISTORY


@dataclass(slots=True)
class _Told:
    """The answer of a source. unknown: kept tables, each with its Unix time of creation, in
    seconds; without those with a version in schema_history. at: its version at that look. begun:
    whether it has any.
    """

    unknown: dict[tuple[str, str], float]
    at: int | None = None
    begun: bool = False


@dataclass(slots=True)
class Unheard:
    """One run's knowledge of them. unasked: why sources couldn't be asked."""

    pipeline: Pipeline
    lake: LakeFiles
    info_of: Callable[[str], ConnectionInfo]
    unasked: dict[str, TidegateError] = field(default_factory=dict)
    _told: dict[str, _Told] = field(default_factory=dict)  # by source
    _again_at: dict[str, float] = field(default_factory=dict)  # of those in unasked: time.monotonic()
    _followed: tuple[int, FollowedSources] | None = None  # at a version of control/followed

    def tables(self) -> list[Physical]:
        """A source without an answer now is asked again after a while. Raises LakeUnavailable."""
        version = control.version(self.lake, SCHEMA_HISTORY)
        unheard: list[Physical] = []
        for source, of in self.pipeline.sources.items():
            if not of.traits.leaves_out_tables or (heard := self._of(source)) is None or not heard.unknown:
                continue
            if heard.at != version:
                known = newest_statuses(self.lake, source)
                heard.at, heard.begun = version, bool(known)
                heard.unknown = {name: made_at for name, made_at in heard.unknown.items() if name not in known}
            if not heard.unknown or not heard.begun:  # else it is captured
                continue
            reached_ms = physical_ms(self._now_followed().position(source, cut_ts(self.lake)))
            before = reached_ms / 1000 - SNAPSHOT_UNHEARD_SECONDS
            unheard += [Physical(source, *name) for name, made_at in heard.unknown.items() if made_at < before]
        return sorted(unheard)

    def _of(self, source: str) -> _Told | None:
        if source not in self._told and time.monotonic() >= self._again_at.get(source, 0.0):
            try:
                present = tables_there(self.info_of(source), self.pipeline.tables.keeps)
            except TidegateError as error:  # who reads the source says it aloud
                self.unasked[source] = error
                self._again_at[source] = time.monotonic() + SNAPSHOT_AGAIN_SECONDS
            else:  # of one without a time of creation nobody knows whether it is older than the cut
                self.unasked.pop(source, None)
                made = {name: table.made_at for name, table in present.items() if table.made_at is not None}
                self._told[source] = _Told(made)
        return self._told.get(source)

    def _now_followed(self) -> FollowedSources:
        version = control.version(self.lake, FOLLOWED)
        if self._followed is None or self._followed[0] != version:
            self._followed = version, followed.load(self.lake)
        return self._followed[1]
