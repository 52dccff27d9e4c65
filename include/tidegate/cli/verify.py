"""`tidegate verify PIPELINE`: silver against the source's own SELECT, while the source is written to.

In:  a pipeline file; the sources' connections in AIRFLOW_CONN_<ID>, the lake's keys likewise. Capture and apply run, or
     have come to the end of what a quiet source wrote. With --repair accounts may write `tidegate.watermark`.
Out: a line per table on stdout, or JSON; rows in control/verification. Exit code 1 if a table differs, if keys of a
     table couldn't be settled, or if its source can't be read by SQL. Held tables are named, and don't change the exit
     code: `tidegate status` is for these. With --repair the remaining differences count.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tidegate import pipelines
from tidegate.cli.lake import open_lake
from tidegate.connections import from_environment
from tidegate.errors import UsageError
from tidegate.home import EXIT_ERROR


def verify(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline, or path of its file")],
    *,
    table: Annotated[
        list[str] | None,
        typer.Option(help="Only this table, database.table, or the tables of a pattern. May be repeated"),
    ] = None,
    due: Annotated[
        bool, typer.Option("--due", help="Only tables without a comparison within verify.each_table_hours")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Copy different rows again, and compare their tables once more")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a cut that covers the reads", min=0)] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs")] = False,
) -> None:
    """Compare silver with the source's own SELECT, while both go on."""
    from tidegate.repair import due_tables, verify_and_repair
    from tidegate.verify.printing import report_lines
    from tidegate.verify.under_way import VerifyOptions

    loaded, lake = open_lake(pipeline)
    connections = pipelines.sql_infos(loaded, from_environment, lake)
    tables: list[str] | None = table or None
    if due:
        if table or not loaded.verify.each_table_hours:
            remedy = "leave --table out" if table else "give verify.each_table_hours in the pipeline file"
            raise UsageError("--due has no tables to choose from", where=loaded.pipeline, remedy=remedy)
        tables = due_tables(lake, loaded)
        if not tables:
            typer.echo(f"every table was compared within {loaded.verify.each_table_hours} hours")
            return
    options = VerifyOptions.of(loaded.verify, tables=tables, timeout_seconds=timeout)
    report = verify_and_repair(
        loaded, lake, connections, options, repair=repair, report=lambda line: typer.echo(line, err=True)
    )
    if as_json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        print("\n".join(report_lines(report)))
    raise typer.Exit(0 if report.passed else EXIT_ERROR)
