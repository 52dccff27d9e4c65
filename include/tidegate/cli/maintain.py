"""`tidegate maintain PIPELINE`: the job that <pipeline>__maintain submits, without Airflow.

In:  a pipeline file; an object store's keys in the lake's connection (AIRFLOW_CONN_<ID>).
Out: silver, bronze and control tables in fewer files; a line per step; exit code 75 when a table could not be
     maintained this time, or another maintain is running.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli.lake import open_lake
from tidegate.cli.submit import known_table, submit


def maintain(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    table: Annotated[str | None, typer.Option(help="One silver table, database.table. Default: all")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the work, and do nothing")] = False,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[2]",
) -> None:
    """Keep silver and bronze small and quick to read."""
    arguments = ["--dry-run"] if dry_run else []
    if table:
        known_table(*open_lake(pipeline), table)
        arguments += ["--table", table]
    raise typer.Exit(submit("maintain", pipeline, arguments, master))
