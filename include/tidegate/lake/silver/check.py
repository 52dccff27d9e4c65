"""Compares silver with control/, as apply does at its start: each mismatch, and what follows from
it.

In:  a lake, its pipeline file, the tables that snapshots touched.
Out: a Checked per table that was ever published. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tidegate import tables
from tidegate.config import Pipeline
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import no_files
from tidegate.errors import Terminal
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.lake.silver.as_published import own_ts, said_of_all, shown_by
from tidegate.lake.standing.followed import FollowedSources
from tidegate.lake.standing.followed import load as load_followed
from tidegate.lake.standing.from_bronze import FromBronze, keeps_rows
from tidegate.lake.standing.held import last_states
from tidegate.limits import AT_ONCE_TABLES_MIN
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.replay.history import SchemaHistory
from tidegate.standing.silver import (
    AT_REST,
    CATCHES_UP,
    GOES_ON,
    MOVE_AWAY,
    Answer,
    Said,
    Unlike,
    answer,
    catches_up,
    told,
)
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical, splits

Touched = Callable[[Physical, int], bool]


@dataclass(frozen=True, slots=True)
class Checked:
    """A table. published, found: Delta versions; -1 without silver. unlike: what is wrong with
    silver; None: nothing.

    goes_on_from: after a mismatch, the commit_ts from which it catches up; None: it waits for rows,
    or for a person. bronze: whether bronze has all of its rows, so it can be made anew without its
    source. what: a line for people.
    """

    table: str
    state: str
    published: int
    found: int
    unlike: str | None
    goes_on_from: int | None
    bronze: bool
    what: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def check_silver(lake: LakeFiles, pipeline: Pipeline, touched: Touched) -> list[Checked]:
    """Every table that was ever published, by name. Raises LakeUnavailable, LakeRefused."""
    said, states = said_of_all(lake), last_states(lake)
    cuts_id = f"tidegate/{pipeline.pipeline}/cuts"
    cut_ts = control.application_version(lake, tables.CUTS, cuts_id) or 0
    bronze = _Bronze(lake, pipeline, cut_ts, touched)
    with ThreadPoolExecutor(AT_ONCE_TABLES_MIN, "check") as pool:
        checked = partial(_checked, lake, pipeline, states, bronze)
        return list(pool.map(lambda name: checked(name, said[name]), sorted(said)))


def _checked(
    lake: LakeFiles, pipeline: Pipeline, states: Mapping[str, Standing], bronze: _Bronze, name: str, said: Said
) -> Checked:
    standing = states.get(name)
    state = str(standing.state) if standing is not None else tables.State.ACTIVE.value
    told_of = bronze.of(name)
    made_anew = told_of is not None and told_of.beginning(standing) is not None
    place, app_id = lake.uri(tables.silver_path(*bronze.pair(name))), tables.app_id(pipeline.pipeline, name)
    log = DeltaLog(place, lake.storage_options, keep=no_files)
    try:
        newest = log.state()
        if not own_ts(newest, app_id):  # no commit is ours: then its files say whether it has rows
            log = DeltaLog(place, lake.storage_options)
            newest = log.state()
        shown = shown_by(lake, log, newest, app_id, said)
    except Terminal as error:
        return Checked(name, state, said.version, said.version, "unreadable", None, made_anew, f"{name}: {error}")
    verdict = GOES_ON if said.never_filled else answer(said, shown)
    if verdict.unlike is None:
        return Checked(name, state, said.version, shown.version, None, None, made_anew, "as published")
    at_ts, what = _way(standing, told_of, verdict)
    line = f"{told(name, verdict, said)}; {what}"
    return Checked(name, state, said.version, shown.version, str(verdict.unlike), at_ts, made_anew, line)


def _way(standing: Standing | None, bronze: FromBronze | None, verdict: Answer) -> tuple[int | None, str]:
    if verdict.unlike is Unlike.FOREIGN:
        return None, MOVE_AWAY
    if standing is not None and standing.state in AT_REST:
        return None, f"it is {standing.state}, and is asked when it goes on"
    goes_on = standing is None or standing.state in CATCHES_UP
    at_ts = bronze.way(verdict, standing) if bronze is not None and goes_on else None
    return at_ts, catches_up(verdict, at_ts) if at_ts is not None else "the next apply has it wait for its rows"


class _Bronze:
    """The facts of bronze and control/ about tables, read once for all of them."""

    def __init__(self, lake: LakeFiles, pipeline: Pipeline, cut_ts: int, touched: Touched) -> None:
        self._pipeline, self._cut_ts, self._touched = pipeline, cut_ts, touched
        self._index = BronzeIndex(lake)
        self._index.refresh(cut_ts)
        self._followed: FollowedSources = load_followed(lake)
        self._versions: dict[Physical, list[TableVersion]] = {}
        self._flows: dict[str, set[Physical]] = {}
        self._pairs: dict[str, tuple[str, str]] = {}
        self._gaps: dict[str, int] = {}
        for source, of in needed_rows(lake, pipeline.sources, lambda *_: -1).items():
            self._gaps[source] = SchemaHistory(source, of.rows).settings.gap_ts
            for row in sorted(of.rows, key=lambda row: (row["commit_ts"], row["version"])):
                if row["table"]:
                    self._take(TableVersion.from_row(row))

    def _take(self, version: TableVersion) -> None:
        physical = version.physical
        self._versions.setdefault(physical, []).append(version)
        database, table, _ = self._pipeline.tables.logical(*physical[1:])
        name = f"{database}.{table}"
        self._pairs[name] = database, table
        kept = self._pipeline.tables
        if kept.keeps(*physical[1:]) or kept.shadows(*physical[1:]):
            self._flows.setdefault(name, set()).add(physical)

    def pair(self, name: str) -> tuple[str, str]:
        """Database and table of a logical table."""
        return self._pairs.get(name) or splits(name)[0]

    def of(self, name: str) -> FromBronze | None:
        """The facts of bronze about a logical table.

        None if it has several physical tables, or if its source is behind the cut.
        """
        flows = list(self._flows.get(name, ()))
        pipeline = self._pipeline
        if len(flows) != 1 or pipeline.tables.logical(*flows[0][1:])[2] or flows[0][0] in self._followed.behind:
            return None
        physical = flows[0]
        return FromBronze(
            self._cut_ts,
            self._versions[physical],
            max((self._index.begin(log) for log in pipeline.pumps(physical[0])), default=0),
            self._gaps[physical[0]],
            keeps_rows(pipeline.tables, pipeline.ddl, *self.pair(name)),
            partial(self._touched, physical),
        )
