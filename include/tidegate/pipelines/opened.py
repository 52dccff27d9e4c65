"""Open a pipeline's lake and sources with the caller's connections.

In:  a pipeline as `load` gives it; a function from a connection's id to the connection.
Out: its LakeFiles, a source's ConnectionInfo, a run that captures it; ConfigError where a connection is missing or
     can't be used.

The reader of a source is chosen here, by its kind in the pipeline file: a `match` that mypy knows to be whole.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, assert_never

from tidegate.config import MysqlSource, TicdcSource, TidbSource
from tidegate.connections import from_environment
from tidegate.lake.storage.storage_options import delta_options, store_keys
from tidegate.pipelines.files import find, load

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.capture.run import CaptureRun
    from tidegate.capture.standing import Ask, CaptureStanding, SourceAnswer
    from tidegate.config import Lake, Pipeline
    from tidegate.connections import Connections
    from tidegate.lake.files import LakeFiles
    from tidegate.mysql.connecting.connection import ConnectionInfo
    from tidegate.mysql.looking.asked import Seldom
    from tidegate.query.pinned import PinnedCut
    from tidegate.query.subscription import Subscription
    from tidegate.snapshot.progress.shown import ShownSnapshots


def storage_options(lake: Lake, connections: Connections) -> dict[str, str]:
    """A lake's own options, and those of its connection over them, as delta-rs names them; they may hold keys."""
    return delta_options(lake.storage_options, store_keys(connections(lake.conn_id)) if lake.conn_id else {})


def open_lake(pipeline: Pipeline, connections: Connections) -> LakeFiles:
    """Raises ConfigError."""
    from tidegate.lake.files import LakeFiles

    return LakeFiles(pipeline.lake.path, storage_options(pipeline.lake, connections))


def open_cut(name: str, at: str | int | None = None, connections: Connections = from_environment) -> PinnedCut:
    """All tables of a pipeline, by its name or file, at one cut, for DuckDB, Polars and Spark.

    at: a commit_ts, or a time in ISO 8601 (UTC when it has no offset): the newest cut up to then; None: the newest.
    Raises UsageError, ConfigError, CutNotYet, CutForgotten.
    """
    from tidegate.lake.cuts.published import instant
    from tidegate.query.pinned import PinnedCut

    pipeline = load(find(name))
    stamp = None if at is None else instant(str(at))
    return PinnedCut.at(open_lake(pipeline, connections), pipeline.pipeline, stamp)


def subscribe(
    name: str,
    table: str,
    *,
    since: str | int | None = None,
    group: str | None = None,
    where: str | None = None,
    over_gaps: bool = False,
) -> Subscription:
    """A reader of a table's changelog (docs/changelog.md): its run() hands Arrow batches to a function.

    since: a cut or a time, after which it begins; else where the group is, or at the beginning. Raises UsageError,
    ConfigError.
    """
    from tidegate.changelog.reading import ChangePlace
    from tidegate.lake.cuts.published import instant
    from tidegate.query.subscription import Options, Subscription

    after = None if since is None else ChangePlace.behind(instant(str(since)))
    lake = open_lake(load(find(name)), from_environment)
    return Subscription(lake, table, Options(after, group, where, over_gaps))


def source_info(
    pipeline: Pipeline, source: str, connections: Connections, lake: LakeFiles | None = None
) -> ConnectionInfo:
    """How to reach a source of the pipeline; with a lake, of several hosts the one that capture reads.

    Raises ConfigError, LakeUnavailable; SourceUnavailable when that one gives no answer.
    """
    from tidegate.mysql.connecting.connection import ConnectionInfo

    info = ConnectionInfo.of(connections(pipeline.server(source).conn_id))
    if lake is None or not info.others:
        return info

    from tidegate.lake.figures.status import captured_server
    from tidegate.mysql.servers.hosts import captured_host

    return captured_host(info, captured_server(lake, source))


def sql_info(
    pipeline: Pipeline, source: str, connections: Connections, lake: LakeFiles | None = None
) -> ConnectionInfo:
    """The same of whatever answers SQL: a TiDB, too.

    Raises ConfigError for a changefeed without a known TiDB, and the errors of source_info.
    """
    from tidegate.mysql.connecting.connection import ConnectionInfo

    traits = pipeline.sources[source].traits
    if traits.sql_conn_id is None or traits.has_positions:
        return source_info(pipeline, source, connections, lake)
    return ConnectionInfo.of(connections(traits.sql_conn_id))


def replica_info(pipeline: Pipeline, source: str, connections: Connections) -> ConnectionInfo | None:
    """How to reach the replica whose lag counts, where a source names one. Raises ConfigError."""
    from tidegate.mysql.connecting.connection import ConnectionInfo

    named = pipeline.sources[source].traits.replica_conn_id
    return ConnectionInfo.of(connections(named)) if named else None


def sql_infos(pipeline: Pipeline, connections: Connections, lake: LakeFiles) -> dict[str, ConnectionInfo]:
    """One for each source under whose name tables stand; a changefeed of which no TiDB is known isn't among them.

    Raises what sql_info does.
    """
    return {name: sql_info(pipeline, name, connections, lake) for name in pipeline.owners if pipeline.answers_sql(name)}


def need_connections(pipeline: Pipeline, connections: Connections) -> None:
    """Each source's connection is there and can be read. Raises ConfigError for the first that isn't."""
    for name, entry in pipeline.sources.items():
        match entry:
            case TicdcSource():
                changefeed_options(entry, connections)
            case MysqlSource() | TidbSource():
                pass
            case kind:
                assert_never(kind)
        if pipeline.answers_sql(name):
            sql_info(pipeline, name, connections)


def changefeed_options(source: TicdcSource, connections: Connections) -> dict[str, str]:
    """The options of the store that a changefeed writes to; they may hold keys. Raises ConfigError."""
    return delta_options(source.storage_options, store_keys(connections(source.conn_id)) if source.conn_id else {})


def load_readers(pipeline: Pipeline) -> None:
    """Import what captures its sources, with a stream's compiled code. It starts no thread: the caller may fork."""
    for source in pipeline.sources.values():
        import_module(source.traits.reader)
    from tidegate.compiled import load_all

    load_all("tidegate.mysql.stream")


def capture_run(
    pipeline: Pipeline, source: str, state_dir: Path, *, sources: Connections, lakes: Connections
) -> CaptureRun:
    """A run over a source. state_dir: of the value log unless the pipeline file names a folder. Raises ConfigError."""
    match pipeline.sources[source]:
        case MysqlSource():
            info = source_info(pipeline, source, sources)
            options = storage_options(pipeline.lake, lakes)
            from tidegate.mysql.capturing.reader import binlog_run  # heavy: a mistake in a connection is told before

            return binlog_run(pipeline, source, info, state_dir, storage_options=options)
        case TidbSource():
            from tidegate.pump.opened import pump_run

            sql = sql_info(pipeline, source, sources)
            return pump_run(pipeline, source, sql, state_dir, open_lake(pipeline, lakes))
        case TicdcSource() as entry:
            from tidegate.changefeed.opened import changefeed_run

            options = changefeed_options(entry, sources)
            return changefeed_run(pipeline, source, options, state_dir, open_lake(pipeline, lakes))
        case kind:
            assert_never(kind)


def seen_standing(
    pipeline: Pipeline,
    lake: LakeFiles,
    ask: Ask,
    snapshots: ShownSnapshots | None = None,
    state_dir: Path | None = None,
) -> CaptureStanding:
    """The pipeline as people see it: with what snapshots make of each table that waits. snapshots: of a caller that
    looks again. state_dir: of this machine's value logs, the default one if None. Raises as `standing`.
    """
    from tidegate.capture.standing import standing
    from tidegate.home import state_folder
    from tidegate.snapshot.progress.automatic import seen

    stands = standing(pipeline, lake, ask, state_dir or state_folder())
    return replace(stands, tables=seen(pipeline, lake, stands.tables, snapshots))


def asking(pipeline: Pipeline, lake: LakeFiles, connections: Connections) -> Ask:
    """How `standing` asks the pipeline's sources where they are.

    A caller that asks again keeps it (mysql/looking/asked.py).
    """
    from tidegate.capture.standing import SourceAnswer

    known: dict[str, Seldom] = {}

    def ask(name: str) -> SourceAnswer:
        match pipeline.sources[name]:
            case MysqlSource():
                from tidegate.mysql.looking import asked

                seldom = known.setdefault(name, asked.Seldom())
                return asked.ask(pipeline, lambda: source_info(pipeline, name, connections, lake), seldom)
            case TidbSource():
                return SourceAnswer(error="a Pump has no position of its own to ask for")
            case TicdcSource() as entry:
                from tidegate.changefeed.examination import asked_checkpoint

                return asked_checkpoint(entry, lambda: changefeed_options(entry, connections))
            case kind:
                assert_never(kind)

    return ask
