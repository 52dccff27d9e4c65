"""The input of decoding a window, besides its segments.

In:  an Application, a Window whose tables are planned.
Out: DecodePlan, pickled once per window for all workers. Decoded, its result.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from spark_jobs.window.application import Application
from spark_jobs.window.made import StagedChanges
from spark_jobs.window.plan import TablePlan, TableWriter
from spark_jobs.window.shape.cascading import cascade_graph
from spark_jobs.window.shape.filtered import asked_of
from spark_jobs.window.shape.shapes import kept_of
from spark_jobs.window.window import Accounted, PrewrittenSegment, TableWindow, Window
from tidegate import tables
from tidegate.computed.row_expressions import ComputedColumn
from tidegate.conditions.model import Condition
from tidegate.config import Effects
from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import ended
from tidegate.lake.silver.folders import STAGING
from tidegate.masks.masking import Mask
from tidegate.merge.computed import fits
from tidegate.merge.kept import decode_masks, in_silver, left_out, unasked
from tidegate.merge.past import NO_PAST, Past
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.schema.replay.ended import ended_in
from tidegate.segments.result import CommitSpan, Known
from tidegate.table_names import Physical
from tidegate.upsert.keys.hash import SEED, Seed
from tidegate.upsert.target import UpsertTarget

Name = tuple[str, str]
VersionKey = tuple[str, Name, int]  # source, physical table, number of its version


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """A worker's input besides its segments; pickled once per window.

    versions and windows are per source; folder is the staging folder, relative to the lake.
    targets: of the positional writer, per source and physical table. seed: of key hashes. routed:
    physical tables of routed ones. known: other facts of each source. left_out: columns missing in
    silver, by source, physical table and version. masks: likewise, by column. rows: likewise, the
    condition of silver's rows. computed: likewise, silver's columns beside the source's. aliases:
    likewise, silver's names of renamed columns. pasts: the modes of physical tables. below: those
    below foreign keys that act without row events. versioned: physical tables whose writer holds
    all of their changes in the driver. names: logical tables, per source and physical table.
    """

    lake: LakeFiles
    versions: dict[str, dict[Name, Sequence[TableVersion]]]
    windows: dict[str, dict[Name, CommitSpan]]
    known: dict[str, Known]
    folder: str
    targets: dict[str, dict[Name, UpsertTarget]] = field(default_factory=dict)
    seed: Seed = SEED
    routed: dict[str, set[Name]] = field(default_factory=dict)
    left_out: dict[VersionKey, frozenset[str]] = field(default_factory=dict)
    masks: dict[VersionKey, dict[str, Mask]] = field(default_factory=dict)
    rows: dict[VersionKey, Condition] = field(default_factory=dict)
    computed: dict[VersionKey, tuple[ComputedColumn, ...]] = field(default_factory=dict)
    pasts: dict[str, dict[Name, Past]] = field(default_factory=dict)
    below: dict[str, set[Name]] = field(default_factory=dict)
    aliases: dict[VersionKey, dict[str, str]] = field(default_factory=dict)
    versioned: dict[str, set[Name]] = field(default_factory=dict)
    names: dict[str, dict[Name, str]] = field(default_factory=dict)

    @property
    def has_versions(self) -> bool:
        """Whether a table has versions of rows. They need the end of a row's reading."""
        return any(past.versions for pasts in self.pasts.values() for past in pasts.values())

    @property
    def stays_here(self) -> bool:
        """Whether it has keys of masks, or calls functions: neither leaves the driver."""
        if any(column.function for columns in self.computed.values() for column in columns):
            return True
        return any(mask.key is not None for masks in self.masks.values() for mask in masks.values())


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded window. plan: all files staged by one belong together. ledger: the fate of the
    window's bytes. lacking: tables with rows without values of generated columns.
    """

    plan: DecodePlan
    staged: StagedChanges
    ledger: Sequence[Accounted]
    lacking: Collection[Physical] = ()


def plan_decode(
    app: Application, window: Window, committed: Sequence[PrewrittenSegment], plans: Mapping[str, TablePlan]
) -> DecodePlan:
    """The plan for all of a window's tables, as they are now."""
    versions: dict[str, dict[Name, Sequence[TableVersion]]] = {}
    windows: dict[str, dict[Name, CommitSpan]] = {}
    targets: dict[str, dict[Name, UpsertTarget]] = {}
    routed: dict[str, set[Name]] = {}
    missing: dict[VersionKey, frozenset[str]] = {}
    masks: dict[VersionKey, dict[str, Mask]] = {}
    rows: dict[VersionKey, Condition] = {}
    more: dict[VersionKey, tuple[ComputedColumn, ...]] = {}
    pasts: dict[str, dict[Name, Past]] = {}
    aliases: dict[VersionKey, dict[str, str]] = {}
    versioned: dict[str, set[Name]] = {}
    names: dict[str, dict[Name, str]] = {}
    zero_dates = ZeroDates(app.pipeline.apply.zero_dates)
    for entry in window.tables.values():
        plan = plans[entry.name]
        for source, database, table in entry.physical:
            name, begin_ts = (database, table), entry.begins(Physical(source, database, table))
            names.setdefault(source, {})[name] = entry.name
            if plan.writer is TableWriter.POSITIONAL and plan.target is not None:
                targets.setdefault(source, {})[name] = plan.target
            if plan.writer is TableWriter.VERSIONED:
                versioned.setdefault(source, set()).add(name)
            pasts.setdefault(source, {})[name] = past = plan.past
            if entry.routed:
                routed.setdefault(source, set()).add(name)
            versions.setdefault(source, {})[name] = known_versions = app.histories[source].versions(database, table)
            kept = kept_of(app, entry)
            left = unasked(kept, known_versions)
            asks = _asks(app, entry, source, past, known_versions)
            span = CommitSpan(begin_ts, window.cut_ts, zero_dates, past.whole_word, left, asks)
            windows.setdefault(source, {})[name] = span
            for version in known_versions if kept else ():
                missing[source, name, version.version] = left_out(kept, [version])
                masks[source, name, version.version] = decode_masks(kept, version)
                aliases[source, name, version.version] = version.aliases
                # Of a version that can't be asked no row is written: its table is held.
                if (condition := kept.rules.condition) and (asked := asked_of(condition, version)):
                    rows[source, name, version.version] = asked
                if (columns := kept.rules.computed) and fits(columns, in_silver(kept, version)):
                    more[source, name, version.version] = columns
    sources = {ref.source for ref in window.refs} | {segment.source for segment in committed}
    known = {source: _known(app, window, source) for source in sources}
    folder = f"{STAGING}/{window.cut_ts}-{uuid.uuid4().hex[:8]}"
    below = {source: {*of} for source, of in cascade_graph(app).parents.items()}
    shapes = (routed, missing, masks, rows, more, pasts, below, aliases, versioned, names)
    return DecodePlan(app.lake, versions, windows, known, folder, targets, app.key_seed, *shapes)


def _asks(app: Application, entry: TableWindow, source: str, past: Past, versions: Sequence[TableVersion]) -> bool:
    """Whether the source can be asked for values that the log lacks. It shows only the present rows, by their keys. A
    table that keeps earlier rows needs every image, so it can't ask.
    """
    if source not in app.source_logins or past is not NO_PAST or not all(version.key for version in versions):
        return False
    return not app.pipeline.tables.keeps_changelog(entry.database, entry.table)


def _known(app: Application, window: Window, source: str) -> Known:
    refs = [ref for ref in window.refs if ref.source == source]
    held = set[Name]()
    for name in {name for ref in refs for name in app.names.in_segment(ref)}:
        logical = app.names.logical_name(*name)
        if (
            logical in window.held
            or app.positions.is_held(logical)
            or app.positions.waits_below(logical, window.low_ts)
        ):
            held.add(name)
    history = app.histories.get(source)
    has_statements = any(ref.flags & tables.SegmentFlag.HAS_DDL for ref in refs)
    standing = history.standing if history is not None and has_statements else {}
    gone: Mapping[Name, Sequence[tuple[int, int]]] = {}
    if history is not None and has_statements:
        # What apply keeps in memory of tables begins at the cut.
        gone = ended_in(history, window.low_ts) if window.main else ended(app.lake, source, window.low_ts)
    effects = app.pipeline.ddl.statement_effects is Effects.ALL
    return Known(held, standing, gone, app.histories.judged.get(source, {}), effects=effects)
