"""TiDB's rows committed in a window: each row of a Pump waits for its own commit.

In:  the window's pairs of prewrites and commits (pairs.py), schema_history with this window's DDL:
     rows name ids of tables, and only the replay knows an id's table at a commit_ts.
Out: Committed: segments and the commit_ts of their rows; their tables in window.tables; a ledger
     entry of each segment without such rows. Tables are held if they may be changed by a commit
     without rows, or by a commit that comes after the cut has passed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_in
from spark_jobs.window.made import Committed
from spark_jobs.window.pairing.defined import names_at, newest_id
from spark_jobs.window.pairing.pairs import Pairs, Place, pairs_after
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.standing.unlogged_tables import hold_where_unwhole
from spark_jobs.window.waves.shards import is_left_out
from spark_jobs.window.window import Accounted, PrewrittenSegment, Window
from tidegate.errors import UnknownEvent
from tidegate.remedy import REPORT, Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.segments.result import Ledger
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place as HeldPlace
from tidegate.table_names import Physical
from tidegate.tidb.jobs import id_in
from tidegate.tidb.tables.live_tables import VersionKind

_NOT_ASKED_FOR = "table not asked for"

Name = tuple[str, str]


def committed_rows(app: Application, window: Window, paired: Iterable[Pairs]) -> Committed:
    """Raises StreamCorrupt, UnknownEvent."""
    clusters = {pairs.owner: pairs for pairs in paired}
    names_of: dict[str, dict[Place, set[Name]]] = {}
    for owner, pairs in clusters.items():
        _hold_for_lost(app, window, pairs)
        _hold_for_late(app, window, pairs)
        names_of[owner] = _names(app, window, pairs)
        for physical in sorted({Physical(owner, *name) for names in names_of[owner].values() for name in names}):
            hold_where_unwhole(app, window, [physical])
            take_in(app, window, physical)
    for owner, after_ts in _below(app, window).items():
        clusters[owner] = pairs_after(app, window, owner, after_ts)
        _hold_for_lost(app, window, clusters[owner], below=True)
        names_of[owner] = _names(app, window, clusters[owner])
    segments, ledger = list[PrewrittenSegment](), list[Accounted]()
    for owner, pairs in clusters.items():
        for place in sorted(pairs.rows):
            committed = sorted(names_of[owner].get(place, ()))
            names = [name for name in committed if app.names.logical_name(*name) in window.tables]
            if names:
                ref = pairs.refs[place]
                segments.append(PrewrittenSegment(ref, pairs.rows[place], pairs.owner, tuple(names)))
    taken = {(segment.ref.source, segment.ref.seq) for segment in segments}
    for ref in window.refs:
        if not ref.whole and (ref.source, ref.seq) not in taken:
            ignored = Ledger(ref.payload_bytes, ignored={_NOT_ASKED_FOR: ref.payload_bytes})
            ledger.append(Accounted(ref.source, ref.seq, ignored))
    return Committed(segments, ledger)


def _below(app: Application, window: Window) -> dict[str, int]:
    """Clusters with a table that a snapshot's wave begins below the window -> commit_ts from where
    on.
    """
    begins_at: dict[str, int] = {}
    for entry in window.tables.values():
        for physical in entry.physical:
            of, begins = app.pipeline.sources.get(physical.source), entry.begins(physical)
            if of is not None and of.traits.cluster is not None and begins < window.low_ts:
                begins_at[physical.source] = min(begins, begins_at.get(physical.source, begins))
    return begins_at


def _names(app: Application, window: Window, pairs: Pairs) -> dict[Place, set[Name]]:
    """Per segment the kept tables with committed rows in it, but for shards left out of the window.

    Raises UnknownEvent for rows of an unknown table.
    """
    history = app.histories[pairs.owner]
    ids = {table_id for touched in pairs.touched.values() for table_id in touched}
    by_id: dict[int, list[tuple[Name, int, int]]] = {}
    for table_id, name, from_ts, upto_ts in names_at(history, ids):
        if app.names.keeps(pairs.owner, *name) and not is_left_out(app, window, Physical(pairs.owner, *name)):
            by_id.setdefault(table_id, []).append((name, from_ts, upto_ts))
    newest = newest_id(history)
    names_of: dict[Place, set[Name]] = {}
    for place, touched in pairs.touched.items():
        for table_id, (low_ts, high_ts) in touched.items():
            if table_id > newest:
                ref = pairs.refs[place]
                raise UnknownEvent(
                    f"rows of table id {table_id}, committed at {low_ts}, which no DDL job in bronze made",
                    where=f"{ref.source} at {ref.file}:{ref.start_pos}",
                    remedy=f"{REPORT}; a new lake goes on without what lies before it",
                )
            # Rows of no version belong to a table that is gone: their transaction began before its DROP or TRUNCATE.
            for name, from_ts, upto_ts in by_id.get(table_id, ()):
                if from_ts <= high_ts and low_ts < upto_ts:
                    names_of.setdefault(place, set()).add(name)
    return names_of


def _hold_for_lost(app: Application, window: Window, pairs: Pairs, *, below: bool = False) -> None:
    """Hold tables for commits whose rows no Pump has: any older table may lack them. below: only
    tables of this window, some of which begin below it.
    """
    if not pairs.lost:
        return
    history = app.histories[pairs.owner]
    first_ts, last_ts = min(pairs.lost.values()), max(pairs.lost.values())
    for name in history.tables():
        version = history.version_at(*name, last_ts)
        logical = app.names.logical_name(*name)
        known = version is not None and version.status is VersionStatus.ACTIVE
        entry = window.tables.get(logical)
        begins = app.positions.applied(logical) if entry is None else entry.begins(Physical(pairs.owner, *name))
        if not known or not app.names.keeps(pairs.owner, *name) or begins >= last_ts or app.positions.is_held(logical):
            continue
        if below and entry is None:
            continue
        reason = (
            f"{'.'.join(name)}: {len(pairs.lost)} transactions of {pairs.owner} were committed from {first_ts} on whose"
            f" rows no Pump of the pipeline has"
        )
        place = HeldPlace(pairs.owner, *name, "", 0, last_ts)
        hold(app, window, logical, Refused(Cause.NEEDS_ROWS, reason, place, needs=Needs.ROWS))


def _hold_for_late(app: Application, window: Window, pairs: Pairs) -> None:
    """Hold tables for commits that come after the cut has passed them: any table of that age may
    lack their rows.
    """
    if not pairs.late:
        return
    history = app.histories[pairs.owner]
    start_ts, first_ts = min(pairs.late.items(), key=lambda commit: commit[1])
    for name in history.tables():
        versions, logical = history.versions(*name), app.names.logical_name(*name)
        if (
            not app.names.keeps(pairs.owner, *name)
            or app.positions.is_held(logical)
            or not _was_there(versions, pairs.late)
        ):
            continue
        reason = (
            f"{'.'.join(name)}: transaction {start_ts} of {pairs.owner} and {len(pairs.late) - 1} others were committed"
            f" from {first_ts} on, as a Pump said when it had said that they were rolled back, or that no more would"
            f" come there: the table may lack their rows"
        )
        place = HeldPlace(pairs.owner, *name, "", 0, window.low_ts)
        hold(app, window, logical, Refused(Cause.NEEDS_ROWS, reason, place, needs=Needs.ROWS))


def _was_there(versions: Sequence[TableVersion], late: Mapping[int, int]) -> bool:
    """Whether the present table of TiDB's id was there at one of these commits; an emptied table
    has another id.
    """
    last = versions[-1]
    if last.status is not VersionStatus.ACTIVE or not last.origin:
        return False
    first = next(version for version in versions if version.origin and id_in(version.origin) == id_in(last.origin))
    begins = first.kind in (VersionKind.CREATE, VersionKind.TRUNCATE)
    return not begins or any(first.commit_ts <= commit_ts for commit_ts in late.values())
