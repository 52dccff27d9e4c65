"""`tidegate lake backup|restore|move`: copy a lake while everything runs, put a copy in a lake's place, move a lake.

In:  a pipeline; its lake, and another folder or URL, with keys in the lake's connection or in
     --conn-id's.
Out: backup: the copy, a line per table of which something was copied; 1 when a table isn't in it.
     restore: the lake, and what is to be done next. move: the lake at its new place, and the line
     of the pipeline file that changes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tidegate import config, pipelines
from tidegate.cli.lake import open_lake
from tidegate.connections import from_environment
from tidegate.errors import LeaseHeld, TidegateError, UsageError
from tidegate.home import EXIT_ERROR, state_folder
from tidegate.text_layout import counted

if TYPE_CHECKING:
    from tidegate.copies.manifest import CopyManifest
    from tidegate.copies.prune import Prune
    from tidegate.delta.leases.lease import Lease
    from tidegate.lake.files import LakeFiles

_NAMED = 20  # tables, in a line

Pipeline = Annotated[str, typer.Argument(help="Pipeline: its name, or its file")]
ConnId = Annotated[
    str | None, typer.Option(help="Connection with the keys of that folder's store. Default: the lake's own")
]


def backup(
    pipeline: Pipeline,
    target: Annotated[
        str, typer.Argument(help="Folder or URL of the backup; one that has an earlier backup is renewed")
    ],
    *,
    silver: Annotated[
        bool, typer.Option(help="Copy silver and changelogs, too; otherwise they are made from bronze or read again")
    ] = True,
    prune: Annotated[
        bool, typer.Option(help="Then remove files that neither this backup nor the lake needs any more")
    ] = False,
    recheck: Annotated[
        bool, typer.Option(help="Read all tables of an earlier backup, and copy the files again that it has lost")
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="With --prune: copy and remove nothing; show the removals")] = False,
    conn_id: ConnId = None,
) -> None:
    """Copy the lake to another folder while everything runs. Files that are there already aren't copied again."""
    from tidegate.copies.backup import Backup, check_source
    from tidegate.copies.lost import lost_tables
    from tidegate.copies.prune import Prune
    from tidegate.copies.restore import manifest_of
    from tidegate.lake.jobs.leases import take_lease

    loaded, lake = open_lake(pipeline)
    to = _other(loaded, lake, target, conn_id)
    work = Backup(loaded.pipeline, lake, to, _say, silver=silver, recheck=recheck)
    work.check()  # before the lease, which is a file in that folder
    check_source(lake, loaded.pipeline)
    if dry_run:
        if not prune:
            raise UsageError("--dry-run works only with --prune", where=pipeline, remedy="give both, or neither")
        pruned = Prune(lake, to, _say, dry=True)
        pruned.run(manifest_of(to, loaded.pipeline))
        _say_pruned(pruned)
        return
    with take_lease(to, loaded.pipeline, "backup", report=_warn) as lease:
        work.held = lease.check
        made = work.run()
        if prune:
            pruned = Prune(lake, to, _say, lease.check)
            pruned.run(made)
            _say_pruned(pruned)
    brought = f"{counted(work.brought_files, 'file', 'files')}, {work.brought_bytes / 1e6:,.1f} MB copied"
    _say(f"{counted(len(made.tables), 'table', 'tables')} in {to.root}, {brought}; newest cut {made.cut_ts}")
    _say(f"not in it: {_not_in_it(loaded, pipeline, made)}")
    lost = list[str]()
    try:
        lost = lost_tables(lake, {*made.tables, *made.lacks}) if silver else []
    except TidegateError as error:  # the copy is made all the same
        _warn(f"what was published isn't known, so tables may lack that the lake has lost: {error}")
    for path in lost:
        _warn(f"{path} was published, and has no log any more; `tidegate lake check` says how apply goes on with it")
    if lacks := sorted({*made.lacks, *lost}):
        _say(f"nor {counted(len(lacks), 'table', 'tables')}: {', '.join(lacks)}")
        raise typer.Exit(EXIT_ERROR)


def restore(
    pipeline: Pipeline,
    source: Annotated[str, typer.Argument(help="Folder or URL of a backup", metavar="BACKUP")],
    *,
    conn_id: ConnId = None,
) -> None:
    """Put a backup into the pipeline's lake.path, which must be empty; nobody may work on it."""
    from tidegate.copies.restore import Restore

    loaded, lake = open_lake(pipeline)
    pumps = [name for name, entry in loaded.sources.items() if entry.traits.pushes]
    work = Restore(loaded.pipeline, _other(loaded, lake, source, conn_id), lake, _say, pumps)
    made = work.check()
    with _alone(loaded, lake):
        work.check()
        work.run()
    _say(f"{lake.root} has {counted(len(made.tables), 'table', 'tables')} as of {made.at}, newest cut {made.cut_ts}")
    if not made.silver:
        _say("the backup has no silver: the next apply makes tables from bronze, or has them wait for their rows")
    for path in sorted(made.lacks):
        _say(f"{path} isn't in the backup: the next apply makes it from bronze, or has it wait for its rows")
    for name in loaded.sources:
        _say(f"{name}: {_next_of(loaded, name, lake)}")


def move(
    pipeline: Pipeline,
    target: Annotated[str, typer.Argument(help="Folder or URL that the lake goes to")],
    *,
    conn_id: ConnId = None,
) -> None:
    """Copy the lake while everything runs. Run it again once all jobs are stopped: it then moves the lake."""
    from tidegate.copies.move import check_target
    from tidegate.copies.move import move as move_lake
    from tidegate.lake.jobs.leases import take_lease

    loaded, lake = open_lake(pipeline)
    to = _other(loaded, lake, target, conn_id)
    check_target(loaded.pipeline, lake, to)
    try:
        with take_lease(to, loaded.pipeline, "backup", report=_warn):
            move_lake(loaded.pipeline, lake, to, lambda: _alone(loaded, lake), _say)
    except LeaseHeld as error:
        raise LeaseHeld(
            error.what,
            where=error.where,
            remedy="most of it is copied; pause the pipeline's DAGs, wait until no task of them runs, run this again",
        ) from error
    _say(f"the lake is in {to.root} now. In {pipelines.find(pipeline)}: lake: {{path: {to.root}}}")
    if conn_id is not None and conn_id != loaded.lake.conn_id:
        _say(f"and its conn_id: {conn_id}")
    _say(f"{lake.root} stays, and nobody works on it any more: remove it when you like")


class _Leases(NamedTuple):
    held: Sequence[Lease]

    def check(self) -> None:
        """Raises Overtaken if a lease is lost."""
        for lease in self.held:
            lease.check()


@contextmanager
def _alone(pipeline: config.Pipeline, lake: LakeFiles) -> Iterator[_Leases]:
    """Hold all leases of the lake, so that nobody else works on it. Raises LeaseHeld, which names
    the holder.
    """
    from tidegate.lake.jobs.leases import take_lease

    with ExitStack() as held:
        leases = []
        jobs = [(pipeline.pipeline, job) for job in ("apply", "maintain", "rebuild")]
        jobs += [(name, job) for name in pipeline.sources for job in ("capture", "snapshot")]
        for of, job in jobs:
            leases.append(held.enter_context(take_lease(lake, of, job, report=_warn)))
        yield _Leases(leases)


def _other(pipeline: config.Pipeline, lake: LakeFiles, path: str, conn_id: str | None) -> LakeFiles:
    """The other folder. A relative path begins at the current folder."""
    from tidegate.lake.files import LakeFiles
    from tidegate.lake.storage.storage_options import delta_options, lake_root, store_keys, store_of

    root = lake_root(path, Path.cwd())
    if conn_id is not None:
        return LakeFiles(root, delta_options(pipeline.lake.storage_options, store_keys(from_environment(conn_id))))
    same = store_of(root) == store_of(lake.root)
    return LakeFiles(root, dict(lake.storage_options) if same else {})


def _not_in_it(loaded: config.Pipeline, pipeline: str, made: CopyManifest) -> str:
    kept = loaded.capture.value_log_path or state_folder() / "value_log" / loaded.pipeline
    silver = "" if made.silver else "silver and changelogs, "
    return (
        f"{silver}capture's value log ({kept} on its machine), the pipeline file ({pipelines.find(pipeline)}),"
        f" connections ({', '.join(config.conn_ids(loaded))})"
    )


def _next_of(loaded: config.Pipeline, name: str, lake: LakeFiles) -> str:
    """The next step of a source's capture, for people."""
    traits = loaded.sources[name].traits
    if traits.pushes:
        forget = f"tidegate vlog owed {loaded.pipeline} --source {name} --forget"
        return (
            "TiDB can't send again what it committed since the backup, so this Pump waits for your word."
            f" `{forget} put-back` accepts the loss. Then read the tables again: `tidegate snapshot start`"
        )
    if not traits.has_positions:
        return "capture goes on after what the backup has; see `tidegate check`"
    try:
        why = _gap(loaded, name, lake)
    except TidegateError as error:
        return f"whether it still has what comes next isn't known: {error}"
    if why is None:
        return "it still has its log from the backup on: start capture, which goes on by itself"
    return f"{why}; see `tidegate accept {loaded.pipeline} {name}`, and with --lost go on without it"


def _gap(loaded: config.Pipeline, name: str, lake: LakeFiles) -> str | None:
    """Why a server can't continue after bronze's end; None if it can. Capture without a value log decides in the same
    way.
    """
    from tidegate.capture.captured import Captured
    from tidegate.capture.recovery import recover
    from tidegate.capture.value_log.log import ValueLog
    from tidegate.lake.bronze.table import Bronze
    from tidegate.mysql.capturing.acceptance import find_gap
    from tidegate.mysql.capturing.reader import BinlogSource

    server = BinlogSource(loaded, name, pipelines.source_info(loaded, name, from_environment), lake)
    bronze = Bronze(lake, name, continues=server.check_continues)
    with tempfile.TemporaryDirectory() as folder:
        value_log = ValueLog(Path(folder))
        try:
            recovered = recover(bronze, value_log, server.nothing)
            captured = Captured(bronze, value_log, recovered.tail)
            gap = find_gap(server, captured, recovered.checkpoint) if recovered.checkpoint.seq else None
        finally:
            value_log.close()
    return gap.why if gap is not None else None


def _say_pruned(pruned: Prune) -> None:
    what = f"{counted(pruned.files, 'file', 'files')}, {pruned.bytes / 1e6:,.1f} MB"
    _say(f"pruned: {what} would be removed" if pruned.dry else f"pruned: {what} removed")
    if pruned.strange:
        names = ", ".join(pruned.strange[:_NAMED]) + (" ..." if len(pruned.strange) > _NAMED else "")
        many = counted(len(pruned.strange), "table stays", "tables stay")
        _say(f"{many} that this backup didn't take from the lake: {names}. Remove their folders yourself")


def _say(line: str) -> None:
    print(line, flush=True)


def _warn(line: str) -> None:
    typer.echo(f"tidegate: warning: {line}", err=True)
