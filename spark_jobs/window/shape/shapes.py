"""The shape of a logical table at a commit_ts, and the cuts of its window.

In:  an Application's schema histories and a table's share of a window.
Out: SilverShapes, the version changes inside the window, its phases. Nothing is read or written
     here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.window.application import Application
from spark_jobs.window.plan import Change, PlannedPhase, TablePlan
from spark_jobs.window.shape.computing import computed_in
from spark_jobs.window.window import TableWindow
from tidegate import tables
from tidegate.config import Policy
from tidegate.errors import SchemaMismatch
from tidegate.lake.rebuild.rebuild_lake import OnlyTables
from tidegate.merge.column import SilverColumn
from tidegate.merge.conditioned import check_condition
from tidegate.merge.kept import ALL, Kept, check_kept, in_silver, masks_in
from tidegate.merge.past import NO_PAST, Past, check_modes, past_named
from tidegate.merge.phases import DdlPhase, Phase, phases
from tidegate.merge.silver_sql import SilverShape
from tidegate.merge.widening import wider
from tidegate.schema.follow.kinds import ddl_kinds
from tidegate.schema.follow.renames import gives
from tidegate.schema.model.columns import LEFT_OUT, Column, TableVersion, VersionStatus
from tidegate.schema.model.renamed import to_text
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.spark_sql import quote
from tidegate.table_names import Physical


def source_of(column: Column) -> str:
    """The text of a column in silver's metadata: its type at the source, and its name there if that
    differs.
    """
    return column.type if column.silver == column.name else f"{quote(column.name)} {column.type}"


def described(column: Column) -> str:
    """The comment that older releases wrote for a column."""
    return f"{source_of(column)}: {column.comment}" if column.comment else source_of(column)


def shape_of(versions: Sequence[TableVersion], *, routed: bool, past: Past = NO_PAST, kept: Kept = ALL) -> SilverShape:
    """The silver shape of a logical table made of these physical tables (more than one only when routed)."""
    columns: dict[str, SilverColumn] = {}
    condition = kept.rules.condition
    keyed = all(version.key for version in versions)  # without one the hash of a row knows its types
    for version in versions:
        check_kept(kept, version)
        if condition is not None:
            check_condition(condition, version)
        masks = masks_in(kept, version)
        for column in in_silver(kept, version).columns:
            delta = canonical(column).delta
            mask = masks[column.silver].identity if column.silver in masks else ""
            own = SilverColumn(column.silver, delta, column.comment, mask, source=source_of(column))
            known = columns.setdefault(column.silver, own)
            if column.comment and not known.comment:
                known = columns[column.silver] = replace(known, comment=column.comment)
            if known.mask != mask:
                raise SchemaMismatch(
                    f"column {column.name} is masked in some shards, and not in others",
                    where=f"{version.source} {version.name}",
                    remedy="name the column in tables.masks, in place of its comment",
                )
            if known.type == delta:
                continue
            if (both := wider(known.type, delta) if keyed else None) is None:
                raise SchemaMismatch(
                    f"column {column.name} is {delta} here and {known.type} in another shard",
                    where=f"{version.source} {version.name}",
                    remedy="route tables of one shape together",
                )
            if both == delta:
                columns[column.silver] = replace(own, comment=known.comment)
    keys = {version.silver_key for version in versions}
    if len(keys) > 1:
        raise SchemaMismatch(
            f"shards have different keys: {sorted(keys)}",
            where=versions[0].name,
            remedy="route tables of one shape together",
        )
    more = computed_in(kept.rules.computed, (in_silver(kept, version) for version in versions))
    columns |= {column.name: column for column in more}
    key = keys.pop()
    key = (*tables.SHARDS, *key) if routed and key else key
    where = "" if condition is None else str(condition)
    comment = next((version.comment for version in versions if version.comment), versions[0].comment)
    names = to_text(kept.rules.names)
    return SilverShape(tuple(columns.values()), key, routed, past, where, comment=comment, names=names)


def versions_at(app: Application, entry: TableWindow, commit_ts: int) -> list[TableVersion]:
    """The version in force of every physical table with rows in silver then, in order of name."""
    return [
        version
        for version in there_at(app, entry, commit_ts)
        if not (entry.routed and version.status.waits) or is_last_with(app, version, commit_ts)
    ]


def is_last_with(app: Application, version: TableVersion, commit_ts: int) -> bool:
    """Whether a shard was left out at the end of a rebuild's window: silver had its rows up to there, and lacks them
    from there on.

    Live silver may be below that cut, and then lacks them already. Nothing is known of an unproven shard.
    """
    left = version.kind == LEFT_OUT and version.commit_ts == commit_ts
    return left and version.status is not VersionStatus.UNPROVEN and isinstance(app.pipeline.tables, OnlyTables)


def there_at(app: Application, entry: TableWindow, commit_ts: int) -> list[TableVersion]:
    """The version in force of every physical table existing then, in order of name."""
    return [
        version
        for source, database, table in sorted(_all_physical(app, entry))
        if (version := app.histories[source].version_at(database, table, commit_ts)) is not None
        and version.status != VersionStatus.DROPPED
    ]


def goes_on_beside(app: Application, entry: TableWindow, commit_ts: int) -> bool:
    """Whether one shard keeps its rows at the place where others begin anew. Shards that wait don't count: they are
    read later.
    """
    return entry.routed and any(version.commit_ts < commit_ts for version in versions_at(app, entry, commit_ts))


def past_in(app: Application, entry: TableWindow) -> Past:
    """The table's mode, by the pipeline file."""
    return past_named(app.pipeline.tables.pasts(entry.database, entry.table))


def check_past_in(app: Application, entry: TableWindow, plan: TablePlan) -> None:
    """Raise SchemaMismatch for a table with an unfit mode, or with two."""
    words = app.pipeline.tables.pasts(entry.database, entry.table)
    versions = [version for planned in plan.phases for version in planned.versions]
    check_modes(words, entry.name, versions)


def shape_in(app: Application, entry: TableWindow, versions: Sequence[TableVersion]) -> SilverShape:
    """As shape_of, by the pipeline file's rules for the table."""
    rules = app.pipeline.tables
    shape = shape_of(versions, routed=entry.routed, past=past_in(app, entry), kept=kept_of(app, entry))
    own = rules.comments_of(entry.database, entry.table)
    columns = tuple(replace(c, comment=own.columns.get(c.name.lower(), c.comment)) for c in shape.columns)
    comment = shape.comment if own.table is None else own.table
    clustering = rules.clustering_of(entry.database, entry.table)
    return replace(shape, columns=columns, comment=comment, clustering=clustering)


def kept_of(app: Application, entry: TableWindow) -> Kept:
    """The table's columns as the pipeline file keeps them."""
    return Kept(app.pipeline.tables.columns_of(entry.database, entry.table), app.mask_keys)


def version_changes(app: Application, entry: TableWindow, cut_ts: int) -> list[Change]:
    """(version before, version) of every schema version beginning in the table's window. Left out are ignored ones,
    and those at the very moment of a snapshot, but where rows went to another table.
    """
    ignored = {kind for kind, policy in app.pipeline.ddl if policy is Policy.IGNORE}
    own_changes: list[Change] = []
    for source, database, table in sorted(entry.physical):
        before, begin_ts = None, entry.begins(Physical(source, database, table))
        versions = app.histories[source].versions(database, table)
        read = {version.commit_ts: version.version for version in versions if version.kind == SNAPSHOT}
        for version in versions:
            # A view of a quiet server has the commit_ts of the last statement itself: the rows that were read already
            # follow it.
            is_in_rows = version.version < read.get(version.commit_ts, 0) and not gives(before, version)
            is_ours = begin_ts < version.commit_ts <= cut_ts and not is_in_rows
            if is_ours and not ignored.intersection(ddl_kinds(before, version)):
                own_changes.append((before, version))
            before = version
    return own_changes


def planned_phases(
    app: Application, entry: TableWindow, changes: Sequence[Change], cut_ts: int
) -> tuple[PlannedPhase, ...]:
    """The table's window, cut where its schema changes. Raises SchemaMismatch."""
    rows_stay = entry.routed or past_in(app, entry).rows_stay
    parts = phases(entry.after_ts, cut_ts, changes, rows_stay=rows_stay)
    return tuple(_planned(app, entry, phase) for phase in parts)


def _planned(app: Application, entry: TableWindow, phase: Phase) -> PlannedPhase:
    versions = tuple(versions_at(app, entry, phase.upto_ts))
    shape = shape_in(app, entry, versions) if versions else None
    if not isinstance(phase, DdlPhase):
        return PlannedPhase(phase, versions, shape)
    # Of a table that was dropped: what it looked like last.
    before = versions_at(app, entry, phase.upto_ts - 1) or [old for old, _ in phase.changes if old is not None][:1]
    return PlannedPhase(phase, versions, shape, shape_in(app, entry, before) if before else None)


def _all_physical(app: Application, entry: TableWindow) -> set[Physical]:
    """Every physical table of a routed table, also those without changes in this window."""
    if not entry.routed:
        return entry.physical
    return entry.physical | {
        Physical(history.source, database, table)
        for history in app.histories.values()
        for database, table in history.tables()
        if app.names.keeps(history.source, database, table)
        and app.names.logical(database, table)[:2] == (entry.database, entry.table)
    }
