"""`tidegate rebuild PIPELINE DB.T`: a silver table anew from bronze alone, beside the old one or in its place.

In:  a pipeline file; an object store's keys in the lake's connection (AIRFLOW_CONN_<ID>).
Out: a new silver table; exit code 1 when bronze doesn't reach back to its beginning, or --compare finds a difference.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli.lake import open_lake
from tidegate.cli.submit import known_table, submit
from tidegate.errors import UsageError


def rebuild(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    table: Annotated[str, typer.Argument(help="Silver table, database.table")],
    *,
    at: Annotated[str, typer.Option(help="A cut_ts, or a time in ISO form. Default: the newest cut")] = "",
    to: Annotated[str, typer.Option(help="Name of the new table. Default: <table>__rebuilt_<cut>")] = "",
    compare: Annotated[bool, typer.Option("--compare", help="Compare with the rows of silver at that cut")] = False,
    swap: Annotated[
        bool, typer.Option("--swap", help="Put it in the place of the live table, in one commit; apply ends for it")
    ] = False,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[2]",
) -> None:
    """Rebuild one silver table from bronze alone, as a new table, or in the place of the live one."""
    from tidegate.lake.rebuild.rebuild_lake import moment

    if swap and at:
        raise UsageError("--swap takes the newest cut", where="command line", remedy="leave out --at")
    loaded, lake = open_lake(pipeline)
    known_table(loaded, lake, table)
    moment(lake, table, at)
    arguments = ["--table", table]
    arguments += [part for name, value in (("--at", at), ("--to", to)) if value for part in (name, value)]
    arguments += ["--compare"] if compare else []
    arguments += ["--swap"] if swap else []
    raise typer.Exit(submit("rebuild", pipeline, arguments, master))
