"""Check a changed pipeline file: it must name all Pumps of each TiDB, and lose none of their data. Check that the
writes of a TiDB's Pumps come from one cluster.

In:  the pipeline file; control/followed, schema histories, bronze.
Out: nothing, or ConfigError; StreamCorrupt where the Pumps of one TiDB have writes of two.

Tables of a cluster are recorded under the name of its first Pump, so this Pump must stay the first.
A Pump may be removed only if the cut has all of its data: its stream may hold commits of another
Pump's rows, and only it has its own rows. A Pump can't join if TiDB has written to it before.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.window.application import Application
from tidegate.errors import ConfigError, StreamCorrupt
from tidegate.lake.bronze.lookback import naming
from tidegate.lake.schema_history.schema_rows import needed_rows
from tidegate.tables import SegmentFlag

_FOREVER: Final = (1 << 63) - 1


def check_one_cluster(app: Application) -> None:
    """Run before each window. A Pump checks only its own writers, and a clone of a cluster has the same table ids.

    Raises StreamCorrupt.
    """
    for pumps in _clusters(app):
        if len(pumps) == 1:
            continue
        refs = app.index.refs
        named = {ref.server_uuid: source for source in pumps for ref in refs.get(source, ()) if ref.server_uuid}
        if len(named) > 1:
            raise StreamCorrupt(
                ", and ".join(f"cluster {cluster} has written to Pump {source}" for cluster, source in named.items())
                + ": the two have rows of their own under the same ids of tables",
                where=app.lake.root,
                remedy="give each Pump cluster_id in the pipeline file; then begin the lake anew (docs/production.md)",
            )


def _clusters(app: Application) -> list[tuple[str, ...]]:
    """The Pumps of each TiDB."""
    sources = app.pipeline.sources
    return sorted({tuple(app.pipeline.pumps(name)) for name, entry in sources.items() if entry.traits.cluster})


def check_clusters(app: Application) -> None:
    """Raises ConfigError."""
    if app.followed.selection is None:
        return
    before, sources = app.followed.selection.sources, app.pipeline.sources
    gone = sorted(before - sources.keys())
    for pumps in _clusters(app):
        _check_owner(app, pumps)
        if before & set(pumps):
            for source in gone:
                _check_left(app, source, pumps)
            for source in sorted(set(pumps) - before):
                _check_joins(app, source)


def _check_owner(app: Application, pumps: tuple[str, ...]) -> None:
    for source in pumps[1:]:
        if app.histories[source].tables():
            raise ConfigError(
                f"tables of {', '.join(pumps)} are recorded under the name of {source}, and {pumps[0]} is the first of"
                " these Pumps in the pipeline file",
                where=app.lake.root,
                remedy=f"put {source} before the others of its cluster in the pipeline file",
            )


def _check_left(app: Application, source: str, pumps: tuple[str, ...]) -> None:
    """source: a Pump that is gone from the pipeline file. pumps: those of its cluster that are
    still there; some of them were followed.
    """
    app.index.refresh(app.cut_ts)
    waits = [
        segment
        for segment in app.index.refs.get(source, ())
        if max(segment.max_commit_ts, segment.resolved_ts) > app.cut_ts
    ]
    if any(not segment.whole for segment in waits):
        raise ConfigError(
            f"Pump {source} is no longer in the pipeline file, and bronze has writes of it that silver lacks",
            where=app.lake.root,
            remedy=f"put {source} back. To remove it: take it out of TiDB's configuration, stop it when each of its"
            " transactions has its answer, let apply run once, and then take it out of the file",
        )
    if any(app.histories[pump].tables() for pump in pumps):
        return
    rows = needed_rows(app.lake, {source}, lambda *_: app.cut_ts)[source].rows
    if any(row["origin"] for row in rows):
        raise ConfigError(
            f"{source} is no longer in the pipeline file, and no table is recorded under the names of"
            f" {', '.join(pumps)}: those of their cluster are recorded under {source}'s",
            where=app.lake.root,
            remedy=f"put {source} back, before the others of its cluster; the first Pump of a cluster can't go",
        )


def _check_joins(app: Application, source: str) -> None:
    """source: a new Pump beside followed ones. Data that TiDB wrote to it up to now lies below
    silver's position.
    """
    app.index.refresh(app.cut_ts)
    if not app.index.has(source):
        return
    left_ts = app.followed.sources_left.get(source, 0)
    written = naming(app.lake, source, left_ts + 1, _FOREVER)
    if any(ref.flags & (SegmentFlag.HAS_PREWRITE | SegmentFlag.HAS_ANSWER) for ref in written):
        raise ConfigError(
            f"Pump {source} joins, and TiDB has written to it already: silver is past these writes, and lacks them",
            where=app.lake.root,
            remedy="start a new lake path. Add a Pump before TiDB writes to it: put it into the pipeline file,"
            " let apply run once, then give TiDB its address",
        )
