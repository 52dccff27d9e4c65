"""`tidegate lake check PIPELINE`: compare silver with its published versions.

`tidegate lake upgrade PIPELINE`: give a lake of an older release this one's format; apply does it by itself, too.

In:  a pipeline; its lake (keys in the lake's connection, AIRFLOW_CONN_<ID>); apply's lease.
Out: check: a line for each table not as published, and its way on with the next apply; 1 when there
     is one, or nothing is published.
     upgrade: a line for each control table: what is done, or with --dry-run would be. Killed anywhere, it goes on where
     it was.
"""

from __future__ import annotations

import json
from typing import Annotated, Final

import typer

from tidegate.cli import copies
from tidegate.cli.lake import open_lake
from tidegate.errors import LakeRefused
from tidegate.home import EXIT_ERROR

_HELP: Final = "Back up, restore, move, check or upgrade a lake."

app = typer.Typer(add_completion=False, no_args_is_help=True, help=_HELP)


@app.callback(help=_HELP)
def _group() -> None:
    """Keeps the group: with a single command typer would drop the group's name."""


app.command("backup")(copies.backup)
app.command("restore")(copies.restore)
app.command("move")(copies.move)


@app.command("check")
def check(
    pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="All tables, as JSON, for programs")] = False,
) -> None:
    """Compare silver with its published versions: which tables apply continues, and how. It changes nothing."""
    from tidegate.lake.silver.check import check_silver
    from tidegate.snapshot.progress.standing import KnownEvents
    from tidegate.text_layout import counted

    loaded, lake = open_lake(pipeline)
    checked = check_silver(lake, loaded, KnownEvents.read(lake).touched_since)
    unlike = [table for table in checked if table.unlike is not None]
    if as_json:
        print(json.dumps({"tables": [table.to_json() for table in checked]}))
    else:
        for differing in unlike:
            print(differing.what)
        print(f"{counted(len(checked), 'table', 'tables')}, {len(checked) - len(unlike)} as published")
        only = [table.table for table in checked if not table.bronze]
        if only and len(only) < len(checked):
            print(f"{counted(len(checked) - len(only), 'table has', 'tables have')} all rows in bronze")
        if not checked:
            print(f"nothing is published in {lake.root}: is it the lake, and is its disk mounted?")
    if unlike or not checked:
        raise typer.Exit(EXIT_ERROR)


@app.command("upgrade")
def upgrade(
    pipeline: Annotated[str, typer.Argument(help="Pipeline: its name, or its file")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the work, and do nothing")] = False,
) -> None:
    """Upgrade a lake's control tables to the format of this release."""
    from tidegate.lake.control import lake_upgrade as lake_format
    from tidegate.lake.format.version import format_of
    from tidegate.lake.jobs.leases import take_lease
    from tidegate.lake.standing.followed import load as load_followed
    from tidegate.text_layout import counted

    loaded, lake = open_lake(pipeline)
    before = format_of(lake)
    print(f"{lake.root} has {before.told}")
    if not before.is_there:
        return
    owner = load_followed(lake).pipeline
    if owner not in ("", loaded.pipeline):  # its apply holds a lease of another name
        raise LakeRefused(
            f"this lake belongs to pipeline {owner}", where=lake.root, remedy=f"upgrade it by {owner}'s pipeline file"
        )
    tables = lake_format.plan(lake)
    for table in tables:
        rows = f" ({counted(table.rows, 'row', 'rows')} rewritten)" if table.rows else ""
        print(f"{table.path}: {table.what or 'nothing to do'}{rows}")
    if dry_run or (before.is_ours and not any(table.what for table in tables)):
        print("nothing was changed")
        return
    with take_lease(
        lake, loaded.pipeline, "apply", report=lambda line: typer.echo(f"tidegate: warning: {line}", err=True)
    ):
        lake_format.upgrade(lake, lambda line: print(f"done: {line}"), every=True)
