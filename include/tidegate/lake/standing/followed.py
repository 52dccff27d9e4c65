"""Which tables the pipeline follows, and since when: control/followed.

In:  a lake.
Out: FollowedSources: the selection in force, sources behind the cut, tables and sources that were
     left.

One commit holds one whole change: the new selection, and what it means for every affected source
and table. table_states follows from it, exactly once, under the change's number
(spark_jobs/window/life/following.py).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from tidegate import tables
from tidegate.config import Pipeline, Tables
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import no_files
from tidegate.errors import LakeRefused, TidegateError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.merge.follow import LeftAt
from tidegate.table_names import Physical
from tidegate.tables import State
from tidegate.tables.owner import owner_of

log = logging.getLogger(__name__)

FOLLOWED, CATCHING_UP = "followed", "catching_up"
SELECTION, SOURCE, TABLE = "selection", "source", "table"
_SELECTS: Final = ("include", "exclude", "routes")
_UNREADABLE: Final = (TidegateError, OSError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of a pipeline file."""

    sources: frozenset[str]
    tables: Tables

    @classmethod
    def of(cls, pipeline: Pipeline) -> Selection:
        return cls(frozenset(pipeline.sources), pipeline.tables)

    @classmethod
    def parse(cls, text: str) -> Selection:
        selected = json.loads(text)
        return cls(frozenset(selected["sources"]), Tables.model_validate(selected["tables"]))

    @property
    def text(self) -> str:
        """The selection as JSON. Equal selections have equal texts."""
        selects = self.tables.model_dump(mode="json", include=set(_SELECTS))
        return json.dumps({"sources": sorted(self.sources), "tables": selects}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class FollowedChange:
    """One event of a source (database and table are "") or of a physical table."""

    source: str
    state: str
    commit_ts: int
    reason: str = ""
    database: str = ""
    table: str = ""
    logical: str = ""
    whole: bool | None = None  # of a table that is left: False if silver lacked rows of it
    needs: str | None = None  # of a held table: what it lacks (tidegate/remedy.py)

    @property
    def physical(self) -> Physical:
        return Physical(self.source, self.database, self.table)


@dataclass(slots=True)
class FollowedSources:
    """number: of the newest change; 0 before the first.

    behind: sources behind the cut -> up to where silver has all of them. left: (physical table,
    silver table) no longer kept -> up to where silver has it. sources_left: the same for whole
    sources. changes: of the newest change of the selection, which has the number selected_in.
    """

    number: int = 0
    pipeline: str = ""
    selection: Selection | None = None
    behind: dict[str, int] = field(default_factory=dict)
    left: dict[tuple[Physical, str], LeftAt] = field(default_factory=dict)
    sources_left: dict[str, int] = field(default_factory=dict)
    selected_in: int = 0
    changes: list[FollowedChange] = field(default_factory=list)

    def take_in(self, number: int, rows: Iterable[dict[str, Any]]) -> None:
        """Apply the rows of one commit to this state."""
        for row in rows:
            change = FollowedChange(**{name: row[name] for name in FollowedChange.__dataclass_fields__})
            self.number, self.pipeline = number, row["pipeline"]
            if row["kind"] == SELECTION:
                self.selection, self.selected_in, self.changes = Selection.parse(row["selection"]), number, []
            elif row["kind"] == SOURCE:
                self._source(change)
            else:
                self._table(change)
            if row["kind"] == TABLE and number == self.selected_in:
                self.changes.append(change)

    def _table(self, change: FollowedChange) -> None:
        flow = (change.physical, change.logical)
        self.left.pop(flow, None)
        if change.state == State.LEFT:
            self.left[flow] = LeftAt(change.commit_ts, change.whole is not False)

    def _source(self, change: FollowedChange) -> None:
        for known in (self.behind, self.sources_left):
            known.pop(change.source, None)
        if change.state == CATCHING_UP:
            self.behind[change.source] = change.commit_ts
        elif change.state == State.LEFT:
            self.sources_left[change.source] = change.commit_ts

    def position(self, source: str, cut_ts: int) -> int:
        """The commit_ts up to which silver has all of a source, except for tables that wait on
        their own.
        """
        return min(cut_ts, self.behind.get(source, cut_ts))


def load(lake: LakeFiles) -> FollowedSources:
    """Read control/followed, and apply its rows in order. Raises LakeUnavailable."""
    followed = FollowedSources()
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in control.read(lake, tables.FOLLOWED).to_pylist():
        by_number.setdefault(row["number"], []).append(row)
    order = (SELECTION, SOURCE, TABLE)
    for number, rows in sorted(by_number.items()):
        followed.take_in(number, sorted(rows, key=lambda row: order.index(row["kind"])))
    return followed


def applied_upto(lake: LakeFiles, pipeline: str, source: str) -> int:
    """Up to where silver has a source's changes, except for waiting tables; 0 before apply followed
    it. If that can't be read, it only warns: capture can't wait.
    """
    cuts = DeltaLog(lake.uri(tables.CUTS.path), lake.storage_options, keep=no_files)
    try:
        followed = load(lake)
        cut_ts = cuts.state().transaction(f"tidegate/{pipeline}/cuts")
    except _UNREADABLE as error:
        log.warning("up to where silver has %s can't be read: %s", source, error)
        return 0
    is_followed = followed.selection is not None and source in followed.selection.sources
    return followed.position(source, cut_ts) if is_followed else 0


def was_applied(lake: LakeFiles, source: str) -> bool:
    """Whether apply has taken segments of a source lately (maintain.keep_records_days). False if that can't be read."""
    try:
        return len(control.read(lake, tables.LEDGER, columns=["seq"], filters=[("source", "=", source)])) > 0
    except _UNREADABLE:
        return False


def pipeline_of(lake: LakeFiles) -> str:
    """The pipeline this lake belongs to; "" before a capture's first commit. Raises LakeUnavailable."""
    rows = control.read(lake, tables.FOLLOWED, columns=["number", "pipeline"]).sort_by("number")
    return str(rows["pipeline"][-1]) if rows.num_rows else captures_into(lake)


def captures_into(lake: LakeFiles) -> str:
    """The owner by bronze alone, also before the first apply; "" in the bronze of older releases."""
    bronze = DeltaLog(lake.uri(tables.SEGMENTS.path), lake.storage_options, keep=no_files)
    return owner_of(bronze.state().transactions)


def check_own(lake: LakeFiles, pipeline: str, owner: str) -> None:
    """Refuse the lake of another pipeline: raises LakeRefused. owner: from pipeline_of."""
    if owner not in ("", pipeline):
        raise LakeRefused(
            f"this lake belongs to pipeline {owner}: under another name all of bronze would be applied again",
            where=lake.root,
            remedy=f"name the pipeline {owner} again, or give it a lake path of its own",
        )


def check_owner(lake: LakeFiles, pipeline: str) -> None:
    """As check_own, with the owner as the lake has it. Raises LakeUnavailable, too."""
    check_own(lake, pipeline, pipeline_of(lake))


def check_not_anothers(lake: LakeFiles, pipeline: str) -> bool:
    """As check_own. If the owner can't be read, it only warns, and returns False.

    Capture can't wait for that: a source may purge its log meanwhile.
    """
    try:
        owner = pipeline_of(lake)
    except _UNREADABLE as error:
        log.warning("whose lake %s is can't be read: %s", lake.root, error)
        return False
    check_own(lake, pipeline, owner)
    return True


def rows_of(
    number: int, pipeline: str, changes: Sequence[FollowedChange], selection: Selection | None, cut_ts: int
) -> list[dict[str, Any]]:
    """The rows of one commit: one per change, and the selection if it changed."""
    common = {"number": number, "pipeline": pipeline, "recorded_at": datetime.now(UTC)}
    rows: list[dict[str, Any]] = []
    if selection is not None:
        nobody = dict.fromkeys(("source", "database", "table", "logical", "reason"), "")
        rows.append(
            {
                **common,
                **nobody,
                "kind": SELECTION,
                "selection": selection.text,
                "state": FOLLOWED,
                "commit_ts": cut_ts,
                "whole": None,
                "needs": None,
            }
        )
    for change in changes:
        cells = {name: getattr(change, name) for name in FollowedChange.__dataclass_fields__}
        rows.append({**common, **cells, "kind": TABLE if change.table else SOURCE, "selection": ""})
    return rows
